"""An effect that needs people, in a workflow: the question, the answer's way to the desk, and one write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from corrobo_core import DecisionRefused, MemoryLedger, ReviewDesk, UsageError
from corrobo_core.gates import Answer, ClaimOk, GateView
from corrobo_temporal import (
    CorroboPlugin,
    TemporalGateClient,
    WorkflowEffects,
    WorkflowGone,
    decide_late,
    decision_activities,
    disposition_of,
)
from corrobo_temporal.gate_wire import SIGNAL
from tests.engines.temporal.gate_support import (
    Ask,
    Gated,
    Handle,
    Office,
    answer,
    kinds,
    opened,
    pending,
    refused,
    says,
)
from tests.engines.temporal.scripted import APPLIED, NOT_APPLIED, UNKNOWN, reviewed, scripted

ALLOW, DENY = {"kind": "allow"}, {"kind": "deny", "reason": "not today"}


@pytest.fixture
async def office(gated: Gated) -> AsyncIterator[Office]:
    async with AsyncExitStack() as stack:
        yield Office(gated, stack)


def token_of(view: GateView) -> str:
    given: Any = view.request.input
    return str(given["token"])


# -- reviews -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cached", [1000, 0], ids=["cached", "uncached"])
async def test_A6_an_approved_effect_is_sent_once(office: Office, cached: int) -> None:
    case = scripted(APPLIED, authorize=reviewed)
    await office.open(case, max_cached_workflows=cached)
    handle, gates = await office.start("rf_1")
    [view] = await pending(gates)
    assert case.provider.writes == []
    assert view.request.decision_text == "May test/scripted 'rf_1' be sent?"
    await handle.signal(SIGNAL, says(view, ALLOW))
    assert await handle.result() == ["receipt"]
    assert case.provider.writes == ["rf_1"]
    shown = ReviewDesk(case.ledger).show("rf_1")
    assert shown is not None and shown.token is None


async def test_A6_a_denied_effect_is_never_sent(office: Office) -> None:
    case = scripted(APPLIED, authorize=reviewed)
    await office.open(case)
    handle, gates = await office.start("rf_1")
    [view] = await pending(gates)
    await handle.signal(SIGNAL, says(view, DENY))
    error = await failure_of(handle)
    assert (error.type, case.provider.writes) == ("corrobo.Replan", [])


async def failure_of(handle: Handle) -> ApplicationError:
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause


async def test_a_decision_made_at_the_desk_goes_on_and_takes_the_question_back(office: Office) -> None:
    case = scripted(APPLIED, authorize=reviewed)
    await office.open(case)
    handle, gates = await office.start("rf_1", look_every=0.5)
    [view] = await pending(gates)
    ReviewDesk(case.ledger).approved("rf_1", token=token_of(view), reviewer="grace")
    assert await handle.result() == ["receipt"]
    after = await gates.show(view.request_id)
    assert after is not None and not isinstance(after, WorkflowGone) and after.status == "superseded"
    assert case.provider.writes == ["rf_1"]


async def test_effects_that_wait_side_by_side_do_not_supersede_each_other(office: Office) -> None:
    case = scripted(APPLIED, authorize=reviewed)
    await office.open(case)
    handle, gates = await office.start("rf_1", "rf_2")
    for view in await pending(gates, 2):
        await handle.signal(SIGNAL, says(view, ALLOW))
    assert await handle.result() == ["receipt", "receipt"]
    assert sorted(case.provider.writes) == ["rf_1", "rf_2"]


async def test_D10_a_reviewer_whose_right_was_taken_away_decides_nothing_and_it_is_asked_again(
    office: Office,
) -> None:
    rights = {"grace"}
    case = scripted(APPLIED, authorize=reviewed)
    await office.open(case, may_decide=lambda reviewer, waiting: reviewer in rights)
    handle, gates = await office.start("rf_1")
    [view] = await pending(gates)
    await handle.signal(SIGNAL, says(view, ALLOW, "ada"))
    [again] = await pending(gates)
    assert (again.request_id != view.request_id, case.provider.writes) == (True, [])
    assert await refused(gates) == ["NOT_ALLOWED"]
    await handle.signal(SIGNAL, says(again, ALLOW, "grace"))
    assert await handle.result() == ["receipt"]


async def test_nobody_answers_in_time_and_the_error_tells_what_waits(office: Office) -> None:
    case = scripted(APPLIED, authorize=reviewed)
    await office.open(case)
    handle, _ = await office.start("rf_1", answer_within=1.0)
    error = await failure_of(handle)
    status = disposition_of(error)
    assert error.type == "corrobo.Review"
    assert status is not None and status.token is not None
    assert case.provider.writes == []


async def test_without_a_worker_for_decisions_the_error_says_so(office: Office) -> None:
    case = scripted(APPLIED, authorize=reviewed)
    await office.open(case, desk=False)
    handle, _ = await office.start("rf_1", decisions_timeout=1.0)
    error = await failure_of(handle)
    status = disposition_of(error)
    assert error.type == "corrobo.DecisionsUnavailable"
    assert "no worker listens" in error.message
    assert error.details[1] == {"task_queue": office.decisions}
    assert status is not None and status.operation_id == "rf_1"


async def test_a_desk_on_another_ledger_is_noticed_before_anybody_is_asked(office: Office) -> None:
    case, other = scripted(APPLIED, authorize=reviewed), scripted(APPLIED)
    await office.open(case, desk=False)
    decisions = decision_activities(other.ledger)
    async with Worker(office.gated.client, task_queue=office.decisions, activities=decisions):
        handle, _ = await office.start("rf_1")
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
    assert "does not know the operation" in repr(caught.value.cause.__cause__)


# -- answers that come too late --------------------------------------------------------------------------------


async def gone_with(gates: TemporalGateClient, view: GateView, token: str, response: Any) -> WorkflowGone:
    """Answer a question whose workflow has ended."""
    done = await gates.submit(view.request_id, token, "ada", view.request.digest, response)
    assert isinstance(done, WorkflowGone)
    return done


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "naive"])
async def test_D06_an_answer_for_a_terminated_workflow_is_recorded_at_the_desk_and_counts_in_the_next_one(
    office: Office, recorded: bool
) -> None:
    """The naive twin throws away what it was handed back: the same person is asked the same again."""
    case = scripted(APPLIED, authorize=reviewed)
    await office.open(case)
    handle, gates = await office.start("rf_1")
    [view] = await pending(gates)
    claim = await gates.claim(view.request_id, "ada")
    assert isinstance(claim, ClaimOk)
    await handle.terminate()
    gone = await gone_with(gates, view, claim.claim_token, ALLOW)
    assert (gone.kind, gone.undelivered) == ("terminated", Answer("ada", '{"kind":"allow"}'))
    assert gone.undelivered is not None
    if not recorded:
        handle, gates = await office.start("rf_1")
        [again] = await pending(gates)
        assert token_of(again) == token_of(view)
        assert case.provider.writes == []
        await handle.terminate()
        return
    for repeated in (False, True):
        decision = await decide_late(case.ledger, view, gone.undelivered, actor={"name": "Ada L."})
        assert (decision.again, decision.decision.reviewer) == (repeated, "Ada L.")
    other = Answer("ada", '{"kind":"deny","reason":"no"}')
    with pytest.raises(DecisionRefused) as told:
        await decide_late(case.ledger, view, other)
    assert told.value.code == "ALREADY_DECIDED"
    handle, _ = await office.start("rf_1")
    assert await handle.result() == ["receipt"]
    assert case.provider.writes == ["rf_1"]


async def test_D06_a_late_answer_to_an_investigation_needs_the_effect_and_a_value_of_its_type(
    office: Office,
) -> None:
    case = scripted(UNKNOWN, raises=TimeoutError("lost"))
    await office.open(case)
    handle, gates = await office.start("rf_1")
    [view] = await pending(gates)
    await handle.terminate()
    applied = Answer("ada", '{"kind":"applied","value":"receipt-7"}')
    for answered, problem in [
        (applied, "was not given the effect"),
        (Answer("ada", '{"kind":"perhaps"}'), "does not fit the question"),
    ]:
        with pytest.raises(UsageError, match=problem):
            await decide_late(case.ledger, view, answered)
    with pytest.raises(UsageError, match="not what the effect returns"):
        await decide_late(case.ledger, view, Answer("ada", '{"kind":"applied","value":7}'), effects=[case.effect])
    await decide_late(case.ledger, view, applied, effects=[case.effect])
    handle, _ = await office.start("rf_1")
    assert await handle.result() == ["receipt-7"]


async def test_a_late_answer_to_a_question_that_is_no_effects_is_for_the_application(gated: Gated) -> None:
    async with gated.worker():
        handle = await gated.start(Ask(["r1"]))
        view = await opened(gated.gates(handle), "r1")
        await handle.terminate()
    with pytest.raises(UsageError, match="keep its answer yourself"):
        await decide_late(MemoryLedger(), view, Answer("ada", '{"approved":true}'))


# -- investigations ----------------------------------------------------------------------------------------


async def test_a_person_attests_that_it_happened_and_the_workflow_completes(office: Office) -> None:
    case = scripted(UNKNOWN, raises=TimeoutError("lost"))
    await office.open(case)
    handle, gates = await office.start("rf_1")
    [view] = await pending(gates)
    await handle.signal(SIGNAL, says(view, {"kind": "applied", "value": 7}))  # not what the effect returns
    [again] = await pending(gates)
    assert (again.request_id != view.request_id, await refused(gates)) == (True, ["INVALID_VALUE"])
    await handle.signal(SIGNAL, says(again, {"kind": "applied", "value": "receipt-7"}))
    assert await handle.result() == ["receipt-7"]
    assert case.provider.writes == ["rf_1"]


async def test_a_person_attests_that_it_did_not_happen_and_it_is_sent_once_more(office: Office) -> None:
    case = scripted(UNKNOWN, NOT_APPLIED, APPLIED, raises=TimeoutError("lost"))
    await office.open(case)
    handle, gates = await office.start("rf_1")
    [view] = await pending(gates)
    case.clock.forward(seconds=61)
    await handle.signal(SIGNAL, says(view, {"kind": "not_applied"}))
    assert await handle.result() == ["receipt"]
    assert case.provider.writes == ["rf_1", "rf_1"]


async def test_looking_again_settles_it_without_the_person(office: Office) -> None:
    case = scripted(UNKNOWN, APPLIED, raises=TimeoutError("lost"))
    await office.open(case)
    handle, gates = await office.start("rf_1", look_every=0.5)
    await pending(gates)
    case.clock.forward(seconds=61)
    assert await handle.result() == ["receipt"]
    assert await gates.list_pending() == ()
    assert case.provider.writes == ["rf_1"]


# -- what was done before a wait ------------------------------------------------------------------------------


@pytest.mark.parametrize("cached", [1000, 0], ids=["cached", "uncached"])
async def test_D17_an_effect_before_a_wait_is_not_repeated_when_the_workflow_resumes(
    office: Office, cached: int
) -> None:
    case = scripted(APPLIED)
    await office.open(case, max_cached_workflows=cached)
    handle, gates = await office.start("rf_1", approve_last="r1")
    await opened(gates, "r1")
    again = await office.gated.reset(handle)  # the whole workflow runs again from its start
    await opened(gates, "r1")
    await again.signal(SIGNAL, answer("r1"))
    assert await again.result() == ["receipt"]
    assert case.provider.writes == ["rf_1"]


@pytest.mark.parametrize("protected", [True, False], ids=["effect", "naive"])
async def test_D17_resumed_with_one_of_two_decisions_an_effect_is_not_repeated_and_the_answer_counts(
    office: Office, protected: bool
) -> None:
    """The naive twin has a plain activity in the effect's place: it writes again."""
    case = scripted(APPLIED)
    await office.open(case, naive=not protected, max_cached_workflows=0)
    handle, gates = await office.start("rf_1", approve_last="r1", approve_then="r2")
    await opened(gates, "r1")
    await handle.signal(SIGNAL, answer("r1"))
    await opened(gates, "r2")
    again = await office.gated.reset(handle)  # the whole workflow runs again, with the one answer there is
    await opened(gates, "r2")
    await again.signal(SIGNAL, answer("r2"))
    assert await again.result() == ["receipt"]
    assert await kinds(gates) == ["requested", "claimed", "submitted"] * 2
    assert case.provider.writes == ["rf_1"] * (1 if protected else 2)


# -- wrong use -------------------------------------------------------------------------------------------------


def test_gates_and_their_queue_come_together() -> None:
    with pytest.raises(UsageError, match="or neither"):
        WorkflowEffects(schedule_to_close_timeout=timedelta(seconds=1), decisions_task_queue="desk")


def test_the_plugin_brings_decisions_only_where_it_is_told_to() -> None:
    with pytest.raises(UsageError, match="need a ledger"):
        CorroboPlugin(decides=[])
    assert CorroboPlugin(MemoryLedger())._activities == []
    assert len(CorroboPlugin(MemoryLedger(), decides=[])._activities) == 2
