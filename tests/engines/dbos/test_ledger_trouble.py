"""C16: what the ledger could not do is never recorded as what the effect did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from dbos import DBOS, SetWorkflowID

from corrobo_core import EffectRunner, LedgerUnavailable
from corrobo_core.commands import LedgerCommand, Open, Record
from corrobo_core.errors import DurabilityError, LedgerNotMigratedError
from corrobo_core.ledgers.ports import Ledger
from corrobo_dbos import effect_step
from tests.engines.dbos.app import async_credit_effect, credit_effect
from tests.engines.dbos.conftest import Local

R = TypeVar("R")


class Failing:
    """A ledger in front of another one, whose next commands of a kind fail."""

    def __init__(self, ledger: Ledger, kind: type[LedgerCommand[Any]], error: Exception, times: int) -> None:
        self._ledger, self._kind, self._error, self.left = ledger, kind, error, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    @property
    def namespace(self) -> str:
        return self._ledger.namespace

    def _fail(self, command: LedgerCommand[Any]) -> None:
        if isinstance(command, self._kind) and self.left:
            self.left -= 1
            raise self._error

    def perform(self, command: LedgerCommand[R]) -> R:
        self._fail(command)
        return self._ledger.perform(command)

    async def perform_async(self, command: LedgerCommand[R]) -> R:
        self._fail(command)
        return await self._ledger.perform_async(command)


GONE = LedgerUnavailable("sqlite", "deadlock detected")


@pytest.mark.parametrize("command", [Open, Record])
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_c16_an_unavailable_ledger_is_waited_for_inside_the_step(
    local: Local, kind: str, command: type[LedgerCommand[Any]]
) -> None:
    ledger: Any = Failing(local.ledger, command, GONE, 1)
    credit = effect_step(ledger)(credit_effect(local.http))
    credit_async = effect_step(ledger)(async_credit_effect(local.http))

    @DBOS.workflow(name="sync")
    def pay() -> str:
        return credit("rf_81", 5_000).reference

    @DBOS.workflow(name="async")
    async def pay_async() -> str:
        return (await credit_async("rf_81", 5_000)).reference

    workflows: dict[str, Callable[[], Any]] = {"sync": pay, "async": pay_async}
    local.launch()
    with SetWorkflowID("wf"):
        assert DBOS.start_workflow(workflows[kind]).get_result() == "rf_81"

    assert ledger.left == 0
    assert local.http.count("rf_81") == 1
    (step,) = DBOS.list_workflow_steps("wf")
    assert step["error"] is None


def test_c16_a_plain_step_replays_the_deadlock_for_ever(local: Local) -> None:
    """The naive twin: the runner in a step of one's own."""
    ledger: Any = Failing(local.ledger, Record, GONE, 1)
    credit = credit_effect(local.http)

    @DBOS.step()
    def naive_step() -> str:
        return EffectRunner(ledger).run(credit, "rf_81", 5_000).unwrap().reference

    @DBOS.workflow()
    def pay() -> str:
        return naive_step()

    local.launch()
    with SetWorkflowID("wf"), pytest.raises(LedgerUnavailable):
        pay()
    with pytest.raises(LedgerUnavailable):
        DBOS.fork_workflow("wf", 2).get_result()

    assert ledger.left == 0  # the ledger works again


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_ledger_that_cannot_be_used_fails_the_workflow_but_leaves_no_checkpoint(local: Local, kind: str) -> None:
    ledger: Any = Failing(local.ledger, Open, DurabilityError("sqlite", "synchronous is off"), 1)
    credit = effect_step(ledger)(credit_effect(local.http))
    credit_async = effect_step(ledger)(async_credit_effect(local.http))

    @DBOS.workflow(name="sync")
    def pay() -> str:
        return credit("rf_81", 5_000).reference

    @DBOS.workflow(name="async")
    async def pay_async() -> str:
        return (await credit_async("rf_81", 5_000)).reference

    workflows: dict[str, Callable[[], Any]] = {"sync": pay, "async": pay_async}
    local.launch()
    with SetWorkflowID("wf"), pytest.raises(DurabilityError, match="synchronous is off"):
        DBOS.start_workflow(workflows[kind]).get_result()

    assert local.steps("wf") == []
    assert DBOS.fork_workflow("wf", 1).get_result() == "rf_81"
    assert local.http.count("rf_81") == 1


def test_a_ledger_that_must_be_migrated_first_is_waited_for(local: Local) -> None:
    """A deploy came before its migration: what was written before is nobody's failure."""
    ledger: Any = Failing(local.ledger, Open, LedgerNotMigratedError("sqlite", "call migrate"), 1)
    credit = effect_step(ledger)(credit_effect(local.http))

    @DBOS.workflow(name="early")
    def pay() -> str:
        return credit("rf_81", 5_000).reference

    local.launch()
    assert DBOS.start_workflow(pay).get_result() == "rf_81"
    assert local.http.count("rf_81") == 1
