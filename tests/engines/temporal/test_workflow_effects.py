"""`WorkflowEffects` follows an effect through, and raises what the workflow can act on."""

from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ActivityError, ApplicationError

from corrobo_core import Check, Effect, EffectRunner, LedgerUnavailable, MemoryLedger
from corrobo_temporal import disposition_of, effect_activity, observe_activity
from examples.http_ledger import HttpLedger, answer_lost, client_killed, lands_late, reads_fail
from tests.engines.temporal.conftest import Engine
from tests.engines.temporal.effects import credit
from tests.engines.temporal.scripted import APPLIED, CONFLICTED, UNKNOWN, scripted
from tests.engines.temporal.workflows import Run, RunCredit


async def failure_of(engine: Engine, **options: Any) -> WorkflowFailureError:
    """The error of a workflow that runs the effect named "credit"."""
    handle = await engine.start(RunCredit.run, Run(engine.activities, "rf_1", **options))
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    return caught.value


async def serve(engine: Engine, effect: Effect[Any, Any], ledger: MemoryLedger, **options: Any) -> None:
    await engine.serve(
        effect_activity(effect, ledger, activity_name="credit", **options),
        observe_activity(effect, ledger, activity_name="credit"),
    )


@pytest.mark.parametrize("stub", [False, True], ids=["effect", "stub"])
async def test_it_returns_the_effect_with_its_type(engine: Engine, http_ledger: HttpLedger, stub: bool) -> None:
    http_ledger.fail_next(answer_lost())
    await serve(engine, credit, MemoryLedger())
    handle = await engine.start(RunCredit.run, Run(engine.activities, "rf_1", stub=stub))
    result = await handle.result()
    assert (result.reference, result.amount_cents) == ("rf_1", 5_000)  # a Credit, with the default filled in
    assert http_ledger.count("rf_1") == 1


@pytest.mark.parametrize(
    ("type", "reason"),
    [
        ("corrobo.Replan", "WORLD_CHANGED"),
        ("corrobo.Review", "REVIEW_REQUIRED"),
        ("corrobo.Investigate", "NOT_ESTABLISHED"),
    ],
)
async def test_what_needs_a_decision_fails_the_workflow_and_not_its_task(
    engine: Engine, type: str, reason: str
) -> None:
    cases = {
        "corrobo.Replan": scripted(CONFLICTED),
        "corrobo.Review": scripted(APPLIED, authorize=lambda attempt: Check.requires_review("big")),
        "corrobo.Investigate": scripted(UNKNOWN),
    }
    await serve(engine, cases[type].effect, cases[type].ledger, look_again_for=timedelta())
    error = await failure_of(engine, stub=True)
    assert isinstance(error.cause, ApplicationError)
    assert error.cause.type == type
    status = disposition_of(error)
    assert status is not None
    assert (status.reason, status.operation_id) == (reason, "rf_1")


async def test_out_of_time_it_looks_once_more_and_finds_the_effect(engine: Engine, http_ledger: HttpLedger) -> None:
    http_ledger.fail_next(lands_late(0.5))  # its window ends after the workflow's time
    await serve(engine, credit, MemoryLedger())
    handle = await engine.start(RunCredit.run, Run(engine.activities, "rf_1", schedule_to_close=0.9))
    result = await handle.result()
    assert result.reference == "rf_1"
    assert http_ledger.count("rf_1") == 1


async def test_out_of_time_with_nothing_to_see_it_says_so(engine: Engine, http_ledger: HttpLedger) -> None:
    http_ledger.fail_next(answer_lost(), reads_fail(times=None))
    await serve(engine, credit, MemoryLedger())
    error = await failure_of(engine, schedule_to_close=0.05)
    status = disposition_of(error)
    assert status is not None
    assert isinstance(error.cause, ApplicationError)
    assert (error.cause.type, status.reason) == ("corrobo.Investigate", "NOT_ESTABLISHED")
    assert http_ledger.count("rf_1") == 1


async def test_out_of_time_without_the_reading_activity_it_says_what_was_known(
    engine: Engine, http_ledger: HttpLedger
) -> None:
    http_ledger.fail_next(lands_late(5.0))
    await engine.serve(effect_activity(credit, MemoryLedger()))
    error = await failure_of(engine, schedule_to_close=0.5)
    assert isinstance(error.cause, ApplicationError)
    assert error.cause.type == "corrobo.NotYet"
    status = disposition_of(error)
    assert status is not None
    assert status.reason == "SETTLING"


async def test_a_refusal_reaches_the_workflow_as_it_is(engine: Engine) -> None:
    case = scripted(APPLIED)
    EffectRunner(case.ledger).run(case.effect, "rf_1", 1)  # the same id, with another intent
    await serve(engine, case.effect, case.ledger)
    error = await failure_of(engine, stub=True)
    assert isinstance(error.cause, ActivityError)
    assert isinstance(error.cause.cause, ApplicationError)
    assert error.cause.cause.type == "IdentityReused"
    assert disposition_of(error) is None


async def test_a_ledger_that_does_not_answer_is_asked_until_the_time_is_over(engine: Engine) -> None:
    class Silent(MemoryLedger):
        asked = 0

        def perform(self, command: Any, /) -> Any:
            self.asked += 1
            raise LedgerUnavailable("memory", "no answer")

    ledger = Silent()
    await engine.serve(effect_activity(credit, ledger))
    error = await failure_of(engine, schedule_to_close=1.5)
    assert isinstance(error.cause, ActivityError)
    assert disposition_of(error) is None
    assert ledger.asked == 2


async def test_a12_one_attempt_and_a_killed_worker_looking_finds_the_effect(
    engine: Engine, http_ledger: HttpLedger
) -> None:
    http_ledger.fail_next(client_killed("after_commit"))
    await engine.start_workers(2)
    ended = await engine.end_of("credit", "rf_1", maximum_attempts=1)
    assert ended.shape == ["ActivityError", "TimeoutError HEARTBEAT"]  # all that Temporal knows
    assert ended.disposition is None

    handle = await engine.start(RunCredit.run, Run(engine.activities, "rf_1", observe_only=True))
    result = await handle.result()
    assert result.reference == "rf_1"
    assert http_ledger.count("rf_1") == 1


async def test_observing_what_was_never_sent_says_so_and_sends_nothing(
    engine: Engine, http_ledger: HttpLedger
) -> None:
    await serve(engine, credit, MemoryLedger())
    error = await failure_of(engine, observe_only=True)
    status = disposition_of(error)
    assert status is not None
    assert (status.reason, status.disposition) == ("NEVER_SENT", None)
    assert http_ledger.count() == 0
