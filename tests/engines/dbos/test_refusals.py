"""Where an effect step cannot work, it says so before anything is written or sent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from dbos import DBOS, SetWorkflowID, SQLAlchemyDatasource

from corrobo_core import Attempt, ContractError, MemoryLedger, UsageError, effect
from corrobo_dbos import effect_step
from examples.http_ledger import Counts
from tests.engines.dbos.app import async_credit_effect, credit_effect
from tests.engines.dbos.conftest import Local

NOTHING = Counts(credits=0, write_requests=0, read_requests=0)


def test_e10_inside_a_step_it_is_refused(local: Local) -> None:
    credit = effect_step(local.ledger)(credit_effect(local.http))

    @DBOS.step()
    def outer() -> None:
        credit("rf_81", 5_000)

    @DBOS.workflow()
    def workflow() -> None:
        outer()

    local.launch()
    with pytest.raises(UsageError, match=r"inside a DBOS step; .* call it from workflow code"):
        workflow()

    assert local.http.counts() == NOTHING


async def test_e10_inside_a_step_an_async_one_is_refused(local: Local) -> None:
    credit = effect_step(local.ledger)(async_credit_effect(local.http))

    @DBOS.step()
    async def outer() -> None:
        await credit("rf_81", 5_000)

    @DBOS.workflow()
    async def workflow() -> None:
        await outer()

    local.launch()
    with pytest.raises(UsageError, match="inside a DBOS step"):
        await workflow()

    assert local.http.counts() == NOTHING


def test_e10_inside_a_transaction_it_is_refused(local: Local, tmp_path: Path) -> None:
    credit = effect_step(local.ledger)(credit_effect(local.http))
    datasource = SQLAlchemyDatasource.create(f"sqlite:///{tmp_path / 'app.db'}")

    def transaction() -> None:
        credit("rf_81", 5_000)

    @DBOS.workflow()
    def workflow() -> None:
        datasource.run_tx_step(None, transaction)

    local.launch()
    with pytest.raises(UsageError, match="inside a DBOS step"):
        workflow()

    assert local.http.counts() == NOTHING


async def test_e10_a_sync_effect_in_an_async_workflow_is_refused(local: Local) -> None:
    credit = effect_step(local.ledger)(credit_effect(local.http))

    @DBOS.workflow()
    async def workflow() -> None:
        credit("rf_81", 5_000)

    local.launch()
    with (
        SetWorkflowID("wf"),
        pytest.raises(UsageError, match=r"sync effect in an async workflow.*make the effect async"),
    ):
        await workflow()

    assert local.http.counts() == NOTHING
    assert await DBOS.list_workflow_steps_async("wf") == []


def test_an_async_effect_in_a_sync_workflow_is_refused(local: Local) -> None:
    credit = effect_step(local.ledger)(async_credit_effect(local.http))

    @DBOS.workflow()
    def workflow() -> None:
        credit("rf_81", 5_000)  # type: ignore[unused-coroutine]

    local.launch()
    with pytest.raises(UsageError, match=r"async effect in a sync workflow.*make the workflow async"):
        workflow()

    assert local.http.counts() == NOTHING


@pytest.mark.parametrize("kind", ["retried step", "step", "workflow"])
def test_dbos_decorators_over_or_under_an_effect_step_are_refused(local: Local, kind: str) -> None:
    decorators: dict[str, Callable[..., Any]] = {
        "retried step": DBOS.step(retries_allowed=True),
        "step": DBOS.step(),
        "workflow": DBOS.workflow(),
    }
    decorator, ledger = decorators[kind], MemoryLedger()

    def act(attempt: Attempt, reference: str) -> str:
        return reference

    with pytest.raises(UsageError, match=r"is a step already.*take DBOS's decorator off"):
        decorator(effect_step(ledger)(credit_effect(local.http)))
    with pytest.raises(UsageError, match=r"take @DBOS\.step off the function"):
        effect_step(ledger)(decorator(act))
    with pytest.raises(UsageError, match=r"take @DBOS\.step off the function"):
        effect_step(ledger)(effect("tests/act", identity=lambda reference: reference)(decorator(act)))


def test_what_is_no_effect_is_refused(local: Local) -> None:
    def act(reference: str) -> str:
        return reference

    with pytest.raises(UsageError, match="takes an effect, not a function; put it over @effect"):
        effect_step(MemoryLedger())(act)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match=r"takes a ledger first: @effect_step\(ledger\)"):
        effect_step(credit_effect(local.http))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"name": ""}, "name: must be printable text"),
        ({"name": "a\nb"}, "name: must be printable text"),
        ({"name": 7}, "name: must be printable text"),
        ({"look_again_for": 600}, "look_again_for: must be a timedelta"),
        ({"look_again_for": timedelta(seconds=-1)}, "look_again_for: must be a timedelta, zero or more"),
    ],
)
def test_unusable_options_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        effect_step(MemoryLedger(), **options)


def test_an_effect_without_observe_is_refused_when_called(local: Local) -> None:
    @effect_step(local.ledger)
    @effect("tests/unfinished", identity=lambda reference: reference)
    def act(attempt: Attempt, reference: str) -> str:
        return reference

    @DBOS.workflow()
    def workflow() -> str:
        return act("rf_81")

    local.launch()
    with pytest.raises(ContractError, match="observe: is missing"):
        workflow()
