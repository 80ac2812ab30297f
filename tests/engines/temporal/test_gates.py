"""Questions in workflows, on a real server: no decision is lost, and none is applied twice.

Rows of reports are named by their letters. "Uncached" workers forget a workflow after each task, as killed ones do.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from corrobo_core.gates import Answer, ClaimRefused, ReleaseOk, SubmitOk, SubmitRefused
from corrobo_temporal import WorkflowGone
from tests.engines.temporal.gate_support import (
    NO,
    SIGNAL,
    UNCACHED,
    YES,
    Gated,
    answer,
    cached_or_not,
    claimed,
    continued,
    kinds,
    message,
    opened,
    refused,
    submitted,
)
from tests.engines.temporal.gate_workflows import Ask, Release
from tests.engines.temporal.questions import asked

# -- the thin path -------------------------------------------------------------------------------------------


@cached_or_not
async def test_a_question_is_claimed_answered_and_the_workflow_goes_on(
    gated: Gated, options: dict[str, Any]
) -> None:
    async with gated.worker(**options):
        handle = await gated.start(Ask(["r1"]))
        gates = gated.gates(handle)
        token = await claimed(gates, "r1")
        assert await gates.release(asked("r1").request_id, token) == ReleaseOk()
        token = await claimed(gates, "r1")
        assert isinstance(await submitted(gates, "r1", token), SubmitOk)
        assert await handle.result() == [["ada", YES]]
        assert await kinds(gates) == ["requested", "claimed", "released", "claimed", "submitted"]


async def test_an_open_question_is_listed_and_shown_in_the_ui_and_no_token_is(gated: Gated) -> None:
    async with gated.worker():
        handle = await gated.start(Ask(["r1"], deadline=60))
        gates = gated.gates(handle)
        await opened(gates, "r1")
        found = await gates.list_pending()
        assert not isinstance(found, WorkflowGone)
        assert [(view.request, view.deadline is not None) for view in found] == [(asked("r1"), True)]
        token = await claimed(gates, "r1")
        assert await gates.list_pending() == ()
        memo = (await (await handle.describe()).memo())["corrobo_gates"]
        assert [(one["question"], one["status"]) for one in memo["open"]] == [("Approve release r1?", "claimed")]
        everything = [memo, await gates.history(), repr(await gates.show(asked("r1").request_id))]
        assert token not in json.dumps(everything)
        await handle.terminate()


# -- decisions that come early, at once, or again ------------------------------------------------------------


async def test_D02_a_signal_before_the_first_task_decides(gated: Gated) -> None:
    handle = await gated.start(Ask(["r1"]))
    await handle.signal(SIGNAL, answer("r1"))
    async with gated.worker():
        assert await handle.result() == [["ada", YES]]


async def test_D02_signal_with_start_decides(gated: Gated) -> None:
    handle = await gated.start(Ask(["r1"]), start_signal=SIGNAL, start_signal_args=[answer("r1", NO)])
    async with gated.worker(**UNCACHED):
        assert await handle.result() == [["ada", NO]]


@cached_or_not
async def test_D02_a_signal_long_before_its_question_is_kept_for_it(gated: Gated, options: dict[str, Any]) -> None:
    async with gated.worker(**options):
        handle = await gated.start(Ask(["r1"], wait_first=1.5, patience=0.2))
        await handle.signal(SIGNAL, answer("r1"))
        refusals = await gated.gates(handle).refusals()
        assert not isinstance(refusals, WorkflowGone)
        assert [early["requestId"] for early in refusals["early"]] == [asked("r1").request_id]
        assert await handle.result() == [["ada", YES]]


async def test_an_update_waits_for_its_question(gated: Gated) -> None:
    async with gated.worker():
        handle = await gated.start(Ask(["r1"], wait_first=1.0))
        gates = gated.gates(handle)
        token = await claimed(gates, "r1")
        assert isinstance(await submitted(gates, "r1", token), SubmitOk)
        assert await handle.result() == [["ada", YES]]


async def test_of_several_submissions_in_one_task_the_first_decides(gated: Gated) -> None:
    handle = await gated.start(Ask(["r1"], linger=True))
    digest = asked("r1").digest
    await handle.signal(SIGNAL, message("claim", "r1", claimToken="t"))
    for response in (YES, NO, YES):
        submission = message("submit", "r1", claimToken="t", requestDigest=digest, response=response)
        await handle.signal(SIGNAL, submission)
    async with gated.worker():
        await handle.signal(Release.finish)
        assert await handle.result() == [["ada", YES]]
        assert await kinds(gated.gates(handle)) == ["requested", "claimed", "submitted"]
        assert await refused(gated.gates(handle)) == ["not-claimed", "not-claimed"]


async def test_an_update_that_is_sent_again_under_its_id_applies_once(gated: Gated) -> None:
    async with gated.worker():
        handle = await gated.start(Ask(["r1"], linger=True))
        gates = gated.gates(handle)
        token = await claimed(gates, "r1")
        first = await submitted(gates, "r1", token, update_id="click")
        assert isinstance(first, SubmitOk)
        assert await submitted(gates, "r1", token, update_id="click") == first
        assert await kinds(gates) == ["requested", "claimed", "submitted"]
        await handle.signal(Release.finish)
        assert await handle.result() == [["ada", YES]]


async def test_D11_two_clicks_are_one_decision_and_the_second_is_told_so(gated: Gated) -> None:
    async with gated.worker():
        handle = await gated.start(Ask(["r1"], linger=True))
        token = await claimed(gated.gates(handle), "r1")
        both = await asyncio.gather(*(submitted(gated.gates(handle), "r1", token) for _ in range(2)))
        assert sorted(type(each).__name__ for each in both) == ["SubmitOk", "SubmitRefused"]
        again = next(each for each in both if isinstance(each, SubmitRefused))
        assert (again.kind, again.same) == ("not-claimed", True)
        other = await submitted(gated.gates(handle), "r1", token, NO)
        assert (other.same, other.answer.response) == (False, YES)
        await handle.signal(Release.finish)
        assert await handle.result() == [["ada", YES]]


async def test_D10_a_late_retry_for_one_question_never_answers_the_next(gated: Gated) -> None:
    async with gated.worker():
        handle = await gated.start(Ask(["r1", "r2"]))
        gates = gated.gates(handle)
        token = await claimed(gates, "r1")
        await submitted(gates, "r1", token)
        await opened(gates, "r2")
        again = await submitted(gates, "r1", token)
        assert (again.kind, again.same) == ("not-claimed", True)
        crossed = await gates.submit(asked("r2").request_id, token, "ada", asked("r1").digest, YES)
        assert isinstance(crossed, SubmitRefused) and crossed.kind == "not-claimed"
        mine = await claimed(gates, "r2")
        stale = await gates.submit(asked("r2").request_id, mine, "ada", asked("r1").digest, YES)
        assert isinstance(stale, SubmitRefused) and stale.kind == "stale"
        assert isinstance(await submitted(gates, "r2", mine, NO), SubmitOk)
        assert await handle.result() == [["ada", YES], ["ada", NO]]


# -- the worker dies, the workflow is reset, a run ends ------------------------------------------------------


async def test_a_claim_outlives_its_worker(gated: Gated) -> None:
    async with gated.worker(**UNCACHED):
        handle = await gated.start(Ask(["r1"]))
        gates = gated.gates(handle)
        token = await claimed(gates, "r1")
    await handle.signal(SIGNAL, answer("r1", NO, "grace"))  # she has no claim, and nobody is there to tell her
    async with gated.worker(**UNCACHED):
        assert isinstance(await submitted(gates, "r1", token), SubmitOk)
        assert await handle.result() == [["ada", YES]]
        assert await refused(gates) == ["claimed"]


@cached_or_not
async def test_a_reset_workflow_comes_to_the_same_decisions(gated: Gated, options: dict[str, Any]) -> None:
    """Signals and updates are applied again, and the routers' own tokens still fit (G10)."""
    async with gated.worker(**options):
        handle = await gated.start(Ask(["r1", "r2"]))
        gates = gated.gates(handle)
        token = await claimed(gates, "r1")
        await submitted(gates, "r1", token)
        held = await claimed(gates, "r2")
        again = await gated.reset(handle)
        assert isinstance(await submitted(gates, "r2", held, NO), SubmitOk)
        assert await again.result() == [["ada", YES], ["ada", NO]]
        assert await kinds(gates) == ["requested", "claimed", "submitted"] * 2


@cached_or_not
async def test_D03_a_claim_is_carried_into_the_next_run(gated: Gated, options: dict[str, Any]) -> None:
    async with gated.worker(**options):
        handle = await gated.start(Ask(["r1"], rounds=1, deadline=50))
        gates = gated.gates(handle)
        token = await claimed(gates, "r1")
        before = await gates.show(asked("r1").request_id)
        await handle.signal(Release.continue_as_new)
        await continued(gated, handle)
        assert await gates.show(asked("r1").request_id) == before  # its deadline is the same (D07)
        assert isinstance(await submitted(gates, "r1", token), SubmitOk)
        assert await gated.client.get_workflow_handle(handle.id).result() == [["ada", YES]]


async def test_D03_claims_while_the_run_ends_are_answered(gated: Gated) -> None:
    """One of them wins, in whichever run; the others are told so; nobody waits in vain."""
    async with gated.worker():
        handle = await gated.start(Ask(["r1"], rounds=1))
        await opened(gated.gates(handle), "r1")

        async def claim(number: int) -> Any:
            await asyncio.sleep(number * 0.01)
            return await gated.gates(handle).claim(asked("r1").request_id, f"router-{number}", claim_token="t")

        *claims, _ = await asyncio.gather(*map(claim, range(8)), handle.signal(Release.continue_as_new))
        await continued(gated, handle)
        assert sum(each.ok for each in claims) == 1
        assert {each.kind for each in claims if not each.ok} == {"claimed"}
        await gated.client.get_workflow_handle(handle.id).terminate()


async def test_D05_an_update_that_is_sent_again_in_the_next_run_applies_once(gated: Gated) -> None:
    async with gated.worker():
        handle = await gated.start(Ask(["r1", "r2"], rounds=1))
        gates = gated.gates(handle)
        token = await claimed(gates, "r1")
        assert isinstance(await submitted(gates, "r1", token, update_id="click"), SubmitOk)
        await opened(gates, "r2")
        await handle.signal(Release.continue_as_new)
        await continued(gated, handle)
        again = await submitted(gates, "r1", token, update_id="click")
        assert (again.kind, again.same) == ("not-claimed", True)
        await gated.client.get_workflow_handle(handle.id).signal(SIGNAL, answer("r2", NO))
        assert await gated.client.get_workflow_handle(handle.id).result() == [["ada", YES], ["ada", NO]]
        assert (await kinds(gates)).count("submitted") == 2


async def test_D03_a_signal_before_its_question_is_carried_too(gated: Gated) -> None:
    async with gated.worker():
        handle = await gated.start(Ask(["r1", "r2"], rounds=1))
        await opened(gated.gates(handle), "r1")
        await handle.signal(SIGNAL, answer("r2", NO))
        await handle.signal(Release.continue_as_new)
        await continued(gated, handle)
        latest = gated.client.get_workflow_handle(handle.id)
        await latest.signal(SIGNAL, answer("r1"))
        assert await latest.result() == [["ada", YES], ["ada", NO]]


async def test_a_claim_for_a_question_that_never_comes_is_missing_and_holds_up_nothing(gated: Gated) -> None:
    async with gated.worker():
        handle = await gated.start(Ask(["r1"], patience=40))
        gates = gated.gates(handle)
        await opened(gates, "r1")
        never = asyncio.create_task(gates.claim(asked("never").request_id, "ada"))
        await asyncio.sleep(0.5)
        await handle.signal(SIGNAL, answer("r1"))
        assert await asyncio.wait_for(handle.result(), 20) == [["ada", YES]]
        assert await never == ClaimRefused("missing")


async def test_a_claim_for_a_question_that_does_not_come_in_time_is_missing(gated: Gated) -> None:
    async with gated.worker():
        handle = await gated.start(Ask(["r1"], patience=0.3))
        assert await gated.gates(handle).claim(asked("never").request_id, "ada") == ClaimRefused("missing")
        await handle.terminate()


# -- who is there --------------------------------------------------------------------------------------------


async def test_D06_unknown_completed_terminated_and_continued_are_four_results(gated: Gated) -> None:
    async with gated.worker():
        completed, terminated, renewed = [await gated.start(Ask(["r1"], rounds=1)) for _ in range(3)]
        for handle in (completed, terminated, renewed):
            await opened(gated.gates(handle), "r1")
        await completed.signal(SIGNAL, answer("r1"))
        await completed.result()
        await terminated.terminate()
        await renewed.signal(Release.continue_as_new)
        await continued(gated, renewed)
        first = gated.gates(renewed, run_id=renewed.first_execution_run_id)
        clients = [gated.gates(completed), gated.gates(terminated), first]
        found = [await submitted(client, "r1", "token") for client in clients]
        assert [each.kind for each in found] == ["completed", "terminated", "continued-as-new"]
        late_answer = Answer("ada", '{"approved":true}')
        assert [each.undelivered for each in found] == [late_answer] * 3  # handed back, to be kept
        unknown = gated.client.get_workflow_handle("nobody")
        gone = await claimed_or_gone(gated, unknown)
        assert gone == WorkflowGone("unknown", "nobody")
        assert (await gated.gates(unknown).list_pending()) == gone
        late = await gated.gates(completed).show(asked("r1").request_id)
        assert late is not None and not isinstance(late, WorkflowGone) and late.answer is not None
        await gated.client.get_workflow_handle(renewed.id).terminate()


async def claimed_or_gone(gated: Gated, handle: Any) -> Any:
    return await gated.gates(handle).claim(asked("r1").request_id, "ada")


# -- plain signals -------------------------------------------------------------------------------------------


async def test_the_temporal_program_answers_as_the_how_to_shows(gated: Gated, temporal_address: str) -> None:
    """Its answer comes while there is no worker."""
    handle = await gated.start(Ask(["r1"]))
    program = Path(sys.executable).with_name("temporal")
    options = {"--address": temporal_address, "--workflow-id": handle.id, "--name": SIGNAL}
    given = [part for option in options.items() for part in option]
    command = [str(program), "workflow", "signal", *given, "--input", json.dumps(answer("r1"))]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    async with gated.worker():
        assert await handle.result() == [["ada", YES]]


BAD: list[Any] = [
    [],
    [1, 2],
    ["text"],
    [{"kind": "answer"}],
    [{"kind": "shout", "requestId": "x", "routerId": "ada"}],
    [message("answer", "r1", response=YES, more=1)],
    [message("answer", "r1", "", response=YES)],
    [message("claim", "r1", claimToken="t", leaseSeconds=-1)],
    [b"\xff"],
]


async def test_a_signal_that_nobody_can_read_is_refused_visibly_and_the_workflow_goes_on(gated: Gated) -> None:
    async with gated.worker():
        handle = await gated.start(Ask(["r1"]))
        for args in BAD:
            await handle.signal(SIGNAL, args=args)
        wrong = answer("r1", {"approved": "yes"})
        await handle.signal(SIGNAL, wrong)
        gates = gated.gates(handle)
        await opened(gates, "r1")
        assert await refused(gates) == ["invalid"] * (len(BAD) + 1)
        pending = await gates.list_pending()
        assert not isinstance(pending, WorkflowGone) and len(pending) == 1  # the wrong answer's claim is released
        await handle.signal(SIGNAL, answer("r1"))
        assert await handle.result() == [["ada", YES]]
