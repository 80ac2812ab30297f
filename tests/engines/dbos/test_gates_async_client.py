"""The reviewer's client on an event loop: the same calls, with the same results."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
from dbos import DBOS, SetWorkflowID

from corrobo_core import AsyncReviewDesk, MemoryLedger, ReviewDesk, UsageError
from corrobo_core.gates import ClaimOk, ClaimRefused, GateStatus, SubmitRefused
from corrobo_dbos import (
    AsyncDbosGateClient,
    DbosGateClient,
    DbosGates,
    Delivered,
    NotDecided,
    NoWorkflow,
    effect_step,
)
from examples.http_ledger import Credit, answer_lost, reads_fail
from tests.engines.dbos.app import credit_effect, reviewed_effect
from tests.engines.dbos.conftest import Here, World
from tests.engines.dbos.questions import NO, REQUEST, SELDOM, YES, question, waiting, wake
from tests.engines.dbos.test_gates_effects import ALLOW, NOW, gated, start


async def asked(here: Here) -> Any:
    """The question that waits, once it does."""
    return await asyncio.to_thread(waiting, DbosGateClient(here.ledger, "wf"))


async def test_a_question_is_claimed_answered_and_taken_once(here: Here, world: World) -> None:
    gates = DbosGates(here.ledger, look_every=SELDOM)

    @DBOS.workflow()
    def release() -> Any:
        return gates.ask(question()).response

    def started() -> Any:
        here.launch()
        with SetWorkflowID("wf"):
            return DBOS.start_workflow(release)

    handle = await asyncio.to_thread(started)
    view = await asked(here)
    with world.client() as dbos:
        reviewer = AsyncDbosGateClient(here.ledger, "wf", dbos=dbos)
        assert await reviewer.list_pending() == (view,)
        id_, digest = view.request_id, view.request.digest
        claims = await asyncio.gather(*(reviewer.claim(id_, name, claim_token=name) for name in ("a", "b")))
        (winner,) = [claim.claim_token for claim in claims if isinstance(claim, ClaimOk)]
        assert ClaimRefused("claimed", winner) in claims
        assert (await reviewer.release(id_, winner)).ok
        assert (await reviewer.claim(id_, "c", claim_token="c")).ok
        assert (await reviewer.release_claim(id_, operator="ops", reason="gone home")).ok
        assert (await reviewer.claim(id_, "d", claim_token="d")).ok

        clicks = [await reviewer.submit(id_, "d", "d", digest, YES) for _ in range(2)]
        assert await asyncio.to_thread(handle.get_result) == YES
        late = await reviewer.submit(id_, "d", "d", digest, NO)
        progress = await reviewer.progress(id_)
        kinds = [event.kind for event in await reviewer.history(id_)]

    assert isinstance(clicks[0], Delivered) and clicks[0].woken and not clicks[0].again
    # The workflow may have ended between the clicks.
    assert clicks[1] == NoWorkflow("finished", "wf", "SUCCESS") or (
        isinstance(clicks[1], Delivered) and clicks[1].again
    )
    assert late == NoWorkflow("finished", "wf", "SUCCESS")
    assert progress is not None and (progress.consumed, progress.view.status) == (True, GateStatus.ANSWERED)
    assert kinds.count("callback-submitted") == 1
    assert await AsyncDbosGateClient(here.ledger, "nobody").claim(REQUEST.request_id, "a") == NoWorkflow(
        "unknown", "nobody", None
    )


async def test_a_review_is_decided_at_the_async_desk_and_the_effect_happens_once(here: Here) -> None:
    handle = await asyncio.to_thread(start, here, gated(here, reviewed_effect(here.http), SELDOM))
    view = await asked(here)
    id_, digest = view.request_id, view.request.digest
    no_desk = AsyncDbosGateClient(here.ledger, "wf")
    reviewer = AsyncDbosGateClient(here.ledger, "wf", desk=AsyncReviewDesk(here.ledger))
    assert (await reviewer.claim(id_, "alice", claim_token="token")).ok
    with pytest.raises(UsageError, match=r"AsyncDbosGateClient.* pass a review desk"):
        await no_desk.submit(id_, "token", "alice", digest, ALLOW)
    unreadable = await reviewer.submit(id_, "token", "alice", digest, {"kind": "maybe"})
    assert isinstance(unreadable, SubmitRefused) and unreadable.kind == "invalid"
    assert here.http.count() == 0
    delivered = await reviewer.submit(id_, "token", "alice", digest, ALLOW)

    assert isinstance(delivered, Delivered) and delivered.decision is not None
    assert delivered.decision.decision.reviewer == "alice"
    assert (await asyncio.to_thread(handle.get_result)).reference == "rf_81"
    assert here.http.count() == 1


async def test_a_question_decided_elsewhere_is_refused_and_an_attested_value_must_fit(here: Here) -> None:
    here.http.fail_next(answer_lost(), reads_fail(times=None))
    gates = DbosGates(here.ledger, look_every=SELDOM)
    credit = effect_step(here.ledger, look_again_for=NOW, gates=gates)(credit_effect(here.http))
    handle = await asyncio.to_thread(start, here, credit)
    view = await asked(here)
    id_, digest, desk = view.request_id, view.request.digest, AsyncReviewDesk(here.ledger)
    reviewer = AsyncDbosGateClient(here.ledger, "wf", desk=desk, effects=[credit])
    assert (await reviewer.claim(id_, "ada", claim_token="token")).ok
    unfit = await reviewer.submit(id_, "token", "ada", digest, {"kind": "applied", "value": "cr_1"})
    assert isinstance(unfit, SubmitRefused) and unfit.kind == "invalid"
    shown = await desk.show("rf_81")
    assert shown is not None and shown.token is not None
    value = Credit("cr_1", "alice", "rf_81", 7)
    await desk.applied(credit.effect, "rf_81", value, token=shown.token, reviewer="command line")
    other = await reviewer.submit(id_, "token", "ada", digest, {"kind": "not_applied"})
    assert isinstance(other, NotDecided)
    assert (other.code, other.refusal.first_reviewer) == ("ALREADY_DECIDED", "command line")
    await asyncio.to_thread(wake, "wf", view)
    assert await asyncio.to_thread(handle.get_result) == value
    assert here.http.count() == 1


def test_both_clients_have_the_same_calls() -> None:
    def calls(client: type) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(member).parameters)
            for name, member in inspect.getmembers(client, inspect.isfunction)
            if not name.startswith("_") or name == "__init__"
        }

    assert calls(AsyncDbosGateClient) == calls(DbosGateClient)


def test_each_client_takes_its_own_kind_of_desk() -> None:
    ledger = MemoryLedger()
    with pytest.raises(UsageError, match="takes a ReviewDesk"):
        DbosGateClient(ledger, "wf", desk=AsyncReviewDesk(ledger))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="takes an AsyncReviewDesk"):
        AsyncDbosGateClient(ledger, "wf", desk=ReviewDesk(ledger))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"AsyncDbosGateClient.* takes effects"):
        AsyncDbosGateClient(ledger, "wf", effects=["refund"])
