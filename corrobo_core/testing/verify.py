"""Play every scenario with one contract, and report.

Source: semantics L4, D2, O2, O4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from corrobo_core.contract import BaseEffect
from corrobo_core.errors import UsageError
from corrobo_core.testing._registry import Scenario
from corrobo_core.testing._scenarios import SCENARIOS
from corrobo_core.testing._stage import ContractBroken, NotApplicable, Stage, ending
from corrobo_core.testing.target import ConformanceTarget

__all__ = ["ContractReport", "ScenarioResult", "ScenarioStatus", "scenario_names", "verify_contract"]


class ScenarioStatus(StrEnum):
    """What came of one scenario. Not applicable is not passed: nothing was shown."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """One line of a report.

    Attributes:
        name: of the scenario.
        status: what came of it.
        summary: what happens in it.
        detail: how the operation ended, what is wrong and what to change, or why it is not applicable.
    """

    name: str
    status: ScenarioStatus
    summary: str
    detail: str


@dataclass(frozen=True, slots=True)
class ContractReport:
    """What came of all scenarios. ``print`` it for a table.

    Attributes:
        contract: the operation type.
        results: one for each scenario, in order.
    """

    contract: str
    results: tuple[ScenarioResult, ...]

    def of(self, status: ScenarioStatus) -> tuple[ScenarioResult, ...]:
        """The lines with this status."""
        return tuple(result for result in self.results if result.status is status)

    @property
    def passed(self) -> bool:
        """No scenario failed, and at least one was played. Look at those that are not applicable, too."""
        return not self.of(ScenarioStatus.FAILED) and bool(self.of(ScenarioStatus.PASSED))

    @property
    def failures(self) -> tuple[ScenarioResult, ...]:
        """The scenarios that failed."""
        return self.of(ScenarioStatus.FAILED)

    @property
    def not_applicable(self) -> tuple[ScenarioResult, ...]:
        """The scenarios that could not be played."""
        return self.of(ScenarioStatus.NOT_APPLICABLE)

    def __str__(self) -> str:
        name = max((len(result.name) for result in self.results), default=0)
        status = max((len(result.status) for result in self.results), default=0)
        counts = ", ".join(f"{len(self.of(status))} {status.value}" for status in ScenarioStatus)
        lines = [f"{self.contract}: {counts}"]
        lines += [f"{r.name:<{name}}  {r.status.value:<{status}}  {r.detail}".rstrip() for r in self.results]
        return "\n".join(lines)


def scenario_names() -> tuple[str, ...]:
    """The names of all scenarios, in the order in which they are played."""
    return tuple(SCENARIOS)


def verify_contract(
    contract: BaseEffect[Any, Any],
    target: ConformanceTarget,
    *,
    scenarios: Iterable[str] | None = None,
    context: Mapping[str, Any] | None = None,
) -> ContractReport:
    """Drive a contract through everything that can go wrong, and count its effects at the target.

    No real time is waited for. The target is reset before each scenario.

    Args:
        contract: an effect of either kind, made for this target.
        target: the outside system's fake.
        scenarios: names of those to play; all unless given.
        context: what ``authorize`` and ``revalidate`` are given.

    Returns:
        what came of each scenario; ``assert report.passed, report``.

    Raises:
        UsageError: there is no such scenario, or no contract. Not retryable.
        ContractError: the contract is incomplete. Not retryable.
    """
    if not isinstance(contract, BaseEffect):
        raise UsageError("verify_contract", f"contract: pass an effect, not a {type(contract).__name__}")
    chosen = [found_scenario(name) for name in (SCENARIOS if scenarios is None else scenarios)]
    results = tuple(play(scenario, contract, target, context) for scenario in chosen)
    return ContractReport(contract.definition.type, results)


def found_scenario(name: str) -> Scenario:
    """The scenario of that name.

    Raises:
        UsageError: there is none. Not retryable.
    """
    if name not in SCENARIOS:
        raise UsageError("scenario", f"{name!r} is none; choose from {', '.join(SCENARIOS)}")
    return SCENARIOS[name]


def play(
    scenario: Scenario,
    contract: BaseEffect[Any, Any],
    target: ConformanceTarget,
    context: Mapping[str, Any] | None = None,
) -> ScenarioResult:
    """Play one scenario."""
    with Stage(contract, target, context) as stage:
        try:
            scenario.play(stage)
        except NotApplicable as reason:
            return ScenarioResult(scenario.name, ScenarioStatus.NOT_APPLICABLE, scenario.summary, str(reason))
        except ContractBroken as broken:
            return ScenarioResult(scenario.name, ScenarioStatus.FAILED, scenario.summary, str(broken))
        except Exception as error:
            seen = f"raised {type(error).__name__}: {error}"
            return ScenarioResult(scenario.name, ScenarioStatus.FAILED, scenario.summary, seen)
        detail = ending(stage.ended) if stage.ended else ""
        return ScenarioResult(scenario.name, ScenarioStatus.PASSED, scenario.summary, detail)
