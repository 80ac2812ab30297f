"""Effects that need people: they ask by themselves, and the reviewer's process decides."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from dbos import DBOS, SetWorkflowID

from corrobo_core import (
    Backoff,
    Effect,
    InvestigateError,
    MemoryLedger,
    ReplanError,
    ReviewDesk,
    ReviewError,
    UsageError,
)
from corrobo_core.gates import GateStatus, StoredGateClient, SubmitRefused
from corrobo_core.gates.effects import EFFECT_PLAN
from corrobo_dbos import DbosGateClient, DbosGates, Delivered, NotDecided, effect_step
from examples.http_ledger import Credit, answer_lost, reads_fail, refused
from tests.engines.dbos.app import async_credit_effect, credit_effect, reviewed_effect
from tests.engines.dbos.conftest import Here, Local
from tests.engines.dbos.questions import OFTEN, SELDOM, answered, waiting, waits_for_message, wake

ALLOW, DENY = {"kind": "allow"}, {"kind": "deny", "reason": "not this one"}
NOW = timedelta()


def desk_client(here: Here, workflow_id: str = "wf", *effects: Any) -> DbosGateClient:
    return DbosGateClient(here.ledger, workflow_id, desk=ReviewDesk(here.ledger), effects=effects)


def gated(here: Here, credit: Effect[[str, int], Credit], look_every: Backoff) -> Any:
    return effect_step(here.ledger, gates=DbosGates(here.ledger, look_every=look_every))(credit)


def start(here: Here, credit: Any) -> Any:
    @DBOS.workflow()
    def pay(reference: str) -> Credit:
        paid: Credit = credit(reference, 7)
        return paid

    here.launch()
    with SetWorkflowID("wf"):
        return DBOS.start_workflow(pay, "rf_81")


def test_a_review_is_asked_for_approved_and_the_effect_happens_once(here: Here) -> None:
    handle = start(here, gated(here, reviewed_effect(here.http), SELDOM))
    client = desk_client(here)
    asked = waiting(client, "effect-review")
    shown = ReviewDesk(here.ledger).show("rf_81")
    assert shown is not None
    named = asked.request.input
    assert isinstance(named, dict)
    assert (named["operationType"], named["operationId"], named["token"], named["fingerprint"]) == (
        "tests/reviewed",
        "rf_81",
        shown.token,
        shown.intent_fingerprint,
    )
    assert here.http.count() == 0
    waits_for_message("wf")
    delivered = answered(client, asked, ALLOW, "alice")

    assert isinstance(delivered, Delivered) and delivered.decision is not None
    assert delivered.decision.decision.reviewer == "alice"
    assert handle.get_result().reference == "rf_81"
    assert here.http.count() == 1
    assert here.steps("wf") == [
        (1, "tests/reviewed"),
        (2, "corrobo.gate.ask"),
        (3, "DBOS.recv"),
        (4, "DBOS.sleep"),
        (5, "tests/reviewed"),
    ]


def test_a_denial_closes_it_without_a_send(here: Here) -> None:
    handle = start(here, gated(here, reviewed_effect(here.http), SELDOM))
    client = desk_client(here)
    answered(client, waiting(client), DENY)
    with pytest.raises(ReplanError):
        handle.get_result()
    assert here.http.count() == 0


def test_a_decision_made_elsewhere_is_noticed_and_the_question_is_taken_back(here: Here) -> None:
    handle = start(here, gated(here, reviewed_effect(here.http), OFTEN))
    client, desk = desk_client(here), ReviewDesk(here.ledger)
    asked = waiting(client)
    shown = desk.show("rf_81")
    assert shown is not None and shown.token is not None
    desk.approved("rf_81", token=shown.token, reviewer="command line")
    assert handle.get_result().reference == "rf_81"
    left = client.show(asked.request_id)
    assert left is not None and left.status is GateStatus.SUPERSEDED
    assert here.http.count() == 1


def test_a_question_decided_elsewhere_is_refused_with_the_first_decision(here: Here) -> None:
    handle = start(here, gated(here, reviewed_effect(here.http), SELDOM))
    client, desk = desk_client(here), ReviewDesk(here.ledger)
    asked = waiting(client)
    shown = desk.show("rf_81")
    assert shown is not None and shown.token is not None
    desk.approved("rf_81", token=shown.token, reviewer="command line")
    other = answered(client, asked, DENY)
    assert isinstance(other, NotDecided)
    assert (other.code, other.refusal.first_reviewer) == ("ALREADY_DECIDED", "command line")
    left = client.show(asked.request_id)
    assert left is not None and left.answer is None
    wake("wf", asked)
    assert handle.get_result().reference == "rf_81"


def test_an_answer_that_did_not_reach_the_desk_decides_nothing_and_is_asked_again(here: Here) -> None:
    """Also what a process with the runner's role could do: write an answer into the stream."""
    handle = start(here, gated(here, reviewed_effect(here.http), OFTEN))
    client = desk_client(here)
    asked = waiting(client)
    forger = StoredGateClient(here.ledger, "wf", plan=EFFECT_PLAN)
    claim = forger.claim(asked.request_id, "runner")
    assert claim.ok
    name = {"name": "runner"}
    forged = forger.submit(asked.request_id, claim.claim_token, "runner", asked.request.digest, ALLOW, actor=name)
    assert forged.ok
    again = waiting(client)
    assert again.request_id != asked.request_id
    assert here.http.count() == 0
    answered(client, again, ALLOW)
    assert handle.get_result().reference == "rf_81"
    assert here.http.count() == 1


def test_an_approval_that_lapsed_is_asked_for_again(local: Local) -> None:
    """The write was refused for now; the approval is older than it may be when it would be sent again."""
    local.http.fail_next(refused(503))
    credit = reviewed_effect(
        local.http, max_approval_age=timedelta(seconds=3), in_flight_window=timedelta(seconds=4)
    )
    handle = start(local, gated(local, credit, SELDOM))
    client = desk_client(local)
    first = waiting(client)
    answered(client, first, ALLOW)
    second = waiting(client, timeout=30)
    assert second.request_id != first.request_id
    assert local.http.count() == 0
    answered(client, second, ALLOW)
    assert handle.get_result().reference == "rf_81"
    assert (local.http.count(), local.http.counts().write_requests) == (1, 2)


def test_an_investigation_is_attested_as_applied(here: Here) -> None:
    here.http.fail_next(answer_lost(), reads_fail(times=None))
    credit = credit_effect(here.http)
    step = effect_step(here.ledger, look_again_for=NOW, gates=DbosGates(here.ledger, look_every=SELDOM))(credit)
    handle = start(here, step)
    client = desk_client(here, "wf", step)
    asked = waiting(client, "effect-investigation")
    invalid = answered(client, asked, {"kind": "applied", "value": "cr_1"}, "ada")
    assert isinstance(invalid, SubmitRefused) and invalid.kind == "invalid"
    value: dict[str, Any] = {"id": "cr_1", "account": "alice", "reference": "rf_81", "amount_cents": 7}
    digest = asked.request.digest
    delivered = client.submit(asked.request_id, "token", "ada", digest, {"kind": "applied", "value": value})
    assert isinstance(delivered, Delivered)
    assert handle.get_result() == Credit(**value)
    assert here.http.count() == 1


def test_an_investigation_is_attested_as_not_applied_and_one_more_attempt_is_made(here: Here) -> None:
    here.http.fail_next(refused(503), reads_fail())
    credit = credit_effect(here.http, poll=Backoff(timedelta(milliseconds=50), timedelta(milliseconds=50)))
    step = effect_step(here.ledger, look_again_for=NOW, gates=DbosGates(here.ledger, look_every=SELDOM))(credit)
    handle = start(here, step)
    client = desk_client(here)
    delivered = answered(client, waiting(client, "effect-investigation"), {"kind": "not_applied"})
    assert isinstance(delivered, Delivered)
    assert handle.get_result().reference == "rf_81"
    assert here.http.count() == 1


def test_a_look_that_succeeds_ends_the_investigation(here: Here) -> None:
    here.http.fail_next(answer_lost(), reads_fail(times=None))
    step = effect_step(here.ledger, look_again_for=NOW, gates=DbosGates(here.ledger, look_every=OFTEN))(
        credit_effect(here.http)
    )
    handle = start(here, step)
    client = desk_client(here)
    asked = waiting(client)
    here.http.heal()
    assert handle.get_result().reference == "rf_81"
    left = client.show(asked.request_id)
    assert left is not None and left.status is GateStatus.SUPERSEDED
    assert here.http.count() == 1


def test_without_gates_the_error_says_what_waits_and_which_token_it_needs(here: Here) -> None:
    handle = start(here, effect_step(here.ledger)(reviewed_effect(here.http)))
    with pytest.raises(ReviewError) as review:
        handle.get_result()
    shown = ReviewDesk(here.ledger).show("rf_81")
    assert shown is not None
    assert (review.value.operation_id, review.value.token) == ("rf_81", shown.token)

    here.http.fail_next(answer_lost(), reads_fail(times=None))
    step = effect_step(here.ledger, look_again_for=NOW)(credit_effect(here.http))
    with pytest.raises(InvestigateError) as investigation:
        step("rf_82", 7)
    assert investigation.value.token is not None


async def test_two_effects_with_gates_side_by_side_are_refused_and_in_child_workflows_they_are_not(
    here: Here,
) -> None:
    gates = DbosGates(here.ledger, look_every=OFTEN)
    credit = effect_step(here.ledger, gates=gates)(async_credit_effect(here.http))

    @DBOS.workflow()
    async def one(reference: str) -> str:
        return (await credit(reference, 7)).reference

    @DBOS.workflow()
    async def beside() -> list[str]:
        found = await asyncio.gather(credit("a", 7), credit("b", 7), return_exceptions=True)
        return [getattr(each, "reference", str(each)) for each in found]

    @DBOS.workflow()
    async def children() -> list[str]:
        handles = [await DBOS.start_workflow_async(one, reference) for reference in ("c", "d")]
        return [await handle.get_result() for handle in handles]

    here.launch()
    first, second = await beside()
    assert (first, here.http.count("a"), here.http.count("b")) == ("a", 1, 0)
    assert "start one child workflow for each" in second
    assert await children() == ["c", "d"]


def test_gates_on_another_ledger_and_a_client_without_desk_are_refused(here: Here) -> None:
    with pytest.raises(UsageError, match="gates: must be a DbosGates on the same ledger"):
        effect_step(MemoryLedger(), gates=DbosGates(here.ledger))
    handle = start(here, gated(here, reviewed_effect(here.http), SELDOM))
    client = DbosGateClient(here.ledger, "wf")
    asked = waiting(client)
    with pytest.raises(UsageError, match="pass a review desk as desk="):
        answered(client, asked, ALLOW)
    left = client.show(asked.request_id)
    assert left is not None and left.status is GateStatus.CLAIMED
    digest = asked.request.digest
    assert desk_client(here).submit(asked.request_id, "token", "router", digest, ALLOW).ok
    assert handle.get_result().reference == "rf_81"
