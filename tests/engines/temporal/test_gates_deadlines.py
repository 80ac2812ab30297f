"""Deadlines, warnings before them, leases and operators: questions whose time runs out, or claims whose router does
not come back.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio.api.enums.v1 import EventType

from corrobo_core.gates import ClaimRefused, ReleaseOk, ReleaseRefused, SubmitOk
from corrobo_temporal import WorkflowGone
from tests.engines.temporal.gate_support import (
    SIGNAL,
    UNCACHED,
    YES,
    Gated,
    Handle,
    answer,
    cached_or_not,
    claimed,
    opened,
    remind,
    submitted,
)
from tests.engines.temporal.gate_workflows import Ask, Release, Remind
from tests.engines.temporal.questions import asked


async def test_D07_one_absolute_deadline_for_questions_in_turn_that_no_restart_extends(gated: Gated) -> None:
    async with gated.worker(**UNCACHED):
        handle = await gated.start(Ask(["r1", "r2", "r3"], deadline=3.0))
        first = await opened(gated.gates(handle), "r1")
        await handle.signal(SIGNAL, answer("r1"))
        second = await opened(gated.gates(handle), "r2")
    await asyncio.sleep(3.5)
    async with gated.worker(**UNCACHED):
        assert second.deadline == first.deadline
        assert await handle.result() == [["ada", YES], "expired", "expired"]


@cached_or_not
async def test_D13_an_answer_after_the_deadline_is_kept_and_decides_nothing(
    gated: Gated, options: dict[str, Any]
) -> None:
    async with gated.worker(**options):
        handle = await gated.start(Ask(["r1"], deadline=2.0, linger=True))
        gates = gated.gates(handle)
        token = await claimed(gates, "r1")
        await asyncio.sleep(2.5)
        late = await submitted(gates, "r1", token)
        assert (late.kind, late.late) == ("expired", True)
        shown = await gates.show(asked("r1").request_id)
        assert shown is not None and not isinstance(shown, WorkflowGone)
        assert (shown.status, [one.response for one in shown.late]) == ("expired", [YES])
        assert await gates.claim(asked("r1").request_id, "grace") == ClaimRefused("expired", "ada")
        await handle.signal(Release.finish)
        assert await handle.result() == ["expired"]


async def test_D13_a_signal_after_the_deadline_while_no_worker_was_there_comes_too_late(gated: Gated) -> None:
    async with gated.worker(**UNCACHED):
        handle = await gated.start(Ask(["r1"], deadline=1.5))
        await opened(gated.gates(handle), "r1")
    await asyncio.sleep(2.0)
    await handle.signal(SIGNAL, answer("r1"))
    async with gated.worker(**UNCACHED):
        assert await handle.result() == ["expired"]


async def reminders(handle: Handle) -> int:
    """How often the workflow had somebody reminded, by its history."""
    events = [event async for event in handle.fetch_history_events()]
    return sum(event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED for event in events)


async def warned(handle: Handle) -> None:
    """Wait for the first reminder."""
    while True:
        if await reminders(handle):
            return
        await asyncio.sleep(0.05)


async def test_D13_people_are_warned_before_a_question_expires_though_the_worker_was_away(gated: Gated) -> None:
    async with gated.worker(activities=[remind], **UNCACHED):
        handle = await gated.remind(Remind("r1", deadline=60, warn_after=1.0))
        await opened(gated.gates(handle), "r1")
    await asyncio.sleep(1.2)  # the warning falls due while nobody is there
    async with gated.worker(activities=[remind], **UNCACHED):
        await warned(handle)
        await handle.signal(SIGNAL, answer("r1"))
        assert await handle.result() == YES
    assert await reminders(handle) == 1


async def test_D13_nobody_is_warned_once_a_question_is_answered(gated: Gated) -> None:
    async with gated.worker(activities=[remind]):
        handle = await gated.remind(Remind("r1", deadline=60, warn_after=30))
        await handle.signal(SIGNAL, answer("r1"))
        assert await handle.result() == YES
    assert await reminders(handle) == 0


async def test_D13_after_the_warning_the_question_expires_all_the_same(gated: Gated) -> None:
    async with gated.worker(activities=[remind]):
        handle = await gated.remind(Remind("r1", deadline=1.0, warn_after=0.3))
        assert await handle.result() == "expired"
    assert await reminders(handle) == 1


async def test_a_claim_with_a_lease_can_be_taken_over(gated: Gated) -> None:
    async with gated.worker(**UNCACHED):
        handle = await gated.start(Ask(["r1"]))
        gates = gated.gates(handle)
        request_id = asked("r1").request_id
        assert (await gates.claim(request_id, "grace", lease=timedelta(seconds=1))).ok
        assert await gates.claim(request_id, "ada") == ClaimRefused("claimed", "grace")
        await asyncio.sleep(1.2)
        assert isinstance(await submitted(gates, "r1", await claimed(gates, "r1")), SubmitOk)
        assert await handle.result() == [["ada", YES]]


async def test_G11_an_operator_takes_a_claim_away_and_it_is_recorded_who_and_why(gated: Gated) -> None:
    async with gated.worker(**UNCACHED):
        handle = await gated.start(Ask(["r1"]))
        gates, request_id = gated.gates(handle), asked("r1").request_id
        await claimed(gates, "r1", "grace")
        assert await gates.release_claim(request_id, operator="joan", reason="she left") == ReleaseOk()
        again = await gates.release_claim(request_id, operator="joan", reason="she left")
        assert again == ReleaseRefused("not-owner")
        await claimed(gates, "r1", "grace")
        taken = {"kind": "release-claim", "requestId": request_id, "operator": "joan", "reason": "again"}
        await handle.signal(SIGNAL, taken)
        assert isinstance(await submitted(gates, "r1", await claimed(gates, "r1")), SubmitOk)
        history = await gates.history()
        assert not isinstance(history, WorkflowGone)
        told = [event["reason"] for event in history if event["kind"] == "callback-rejected"]
        assert told == ["released by operator joan: she left", "released by operator joan: again"]
        assert await handle.result() == [["ada", YES]]
