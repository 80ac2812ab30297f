"""The suite that every contract should pass, as pytest items.

A contract of your own is tested like this::

    class TestRefund(ContractSuite):
        @pytest.fixture
        def target(self):
            return FakePayments()

        @pytest.fixture
        def contract(self, target):
            return RefundContract(target)

Each scenario is one item. One that does not apply to this contract or target is skipped with its reason, and the
summary counts it apart: it is no pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest

from corrobo_core.contract import BaseEffect
from corrobo_core.testing.target import ConformanceTarget
from corrobo_core.testing.verify import ScenarioStatus, scenario_names, verify_contract

__all__ = ["ContractSuite"]


class ContractSuite:
    """What holds for every contract. Override the fixtures ``target`` and ``contract``.

    Attributes:
        context: what ``authorize`` and ``revalidate`` are given.
    """

    context: ClassVar[Mapping[str, Any]] = {}

    @pytest.fixture
    def target(self) -> ConformanceTarget:
        """To be overridden: the outside system's fake."""
        raise NotImplementedError("override the fixture `target`: the fake that the contract acts on")

    @pytest.fixture
    def contract(self, target: ConformanceTarget) -> BaseEffect[Any, Any]:
        """To be overridden: the contract under test, made for ``target``."""
        raise NotImplementedError("override the fixture `contract`: an effect that acts on `target`")

    @pytest.mark.parametrize("corrobo_scenario", scenario_names())
    def test_scenario(
        self,
        corrobo_scenario: str,
        contract: BaseEffect[Any, Any],
        target: ConformanceTarget,
        record_property: Callable[[str, object], None],
    ) -> None:
        """The contract holds in this scenario."""
        record_property("corrobo_scenario", corrobo_scenario)
        (result,) = verify_contract(contract, target, scenarios=[corrobo_scenario], context=self.context).results
        if result.status is ScenarioStatus.NOT_APPLICABLE:
            pytest.skip(f"{result.name} is not applicable: {result.detail}")
        if result.status is ScenarioStatus.FAILED:
            pytest.fail(f"{result.name}: {result.summary}\n{result.detail}", pytrace=False)
