"""Right and wrong uses of gates on DBOS; each wrong one must be an error for every type checker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import assert_type

from dbos import DBOS, DBOSClient

from corrobo_core import AsyncReviewDesk, Attempt, Backoff, DecisionRecorded, MemoryLedger, ReviewDesk, effect
from corrobo_core.gates import Answer, ApprovalSubject, ClaimOk, ClaimRefused, GateDefinition, GateView
from corrobo_core.records import JSON
from corrobo_dbos import (
    AsyncDbosGateClient,
    DbosGateClient,
    DbosGates,
    Delivered,
    Delivery,
    NotDecided,
    NoWorkflow,
    Progress,
    effect_step,
)

ledger = MemoryLedger()
gates = DbosGates(ledger, look_every=Backoff(timedelta(seconds=1), timedelta(seconds=9)))
QUESTION = GateDefinition(
    gate_id="release", gate_version=1, decision_text="Release?", response_schema={"type": "object"}, input={}
)


@effect_step(ledger, gates=gates)
@effect("payments/refund", identity=lambda refund_id: refund_id)
def refund(attempt: Attempt, refund_id: str) -> str:
    return refund_id


# -- workflows -----------------------------------------------------------------------------------------------


@DBOS.workflow()
def release(subject: ApprovalSubject) -> None:
    answer = gates.ask(QUESTION)
    assert_type(answer, Answer)
    assert_type(answer.response, JSON)
    gates.ask(QUESTION, deadline=timedelta(days=2), subject=subject)
    gates.ask(QUESTION, deadline=datetime(2030, 1, 1, tzinfo=UTC))

    gates.ask("Release?")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    gates.ask(QUESTION, deadline=60)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    gates.ask(QUESTION, timedelta(days=2))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    gates.ask(QUESTION, subject="release")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@DBOS.workflow()
async def release_later() -> None:
    assert_type(await gates.ask_async(QUESTION, deadline=timedelta(days=2)), Answer)
    str(gates.ask_async(QUESTION).response)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    await gates.ask(QUESTION)  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]


def made() -> None:
    DbosGates()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    DbosGates("effects.db")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    DbosGates(ledger, look_every=30)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    effect_step(ledger, gates=ledger)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# -- reviewers -----------------------------------------------------------------------------------------------


def reviewer(dbos: DBOSClient) -> None:
    client = DbosGateClient(ledger, "wf", dbos=dbos, desk=ReviewDesk(ledger), effects=[refund])
    assert_type(client.list_pending(), tuple[GateView, ...])
    assert_type(client.progress("r"), Progress | None)
    claim = client.claim("r", "ada", lease=timedelta(minutes=5))
    if not isinstance(claim, ClaimOk):
        assert_type(claim, ClaimRefused | NoWorkflow)
        return
    delivery = client.submit("r", claim.claim_token, "ada", "digest", {"kind": "allow"}, actor={"name": "ada"})
    assert_type(delivery, Delivery)
    if delivery.ok is True:
        assert_type(delivery, Delivered)
        assert_type(delivery.decision, DecisionRecorded | None)
    elif isinstance(delivery, NotDecided):
        assert_type(delivery.code, str)

    str(delivery.answer)  # type: ignore[union-attr]  # pyright: ignore[reportAttributeAccessIssue]
    client.claim("r")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.claim("r", "ada", lease=300)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.submit("r", claim.claim_token, "ada", "digest")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.submit("r", claim.claim_token, "ada", "digest", object())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.submit("r", claim.claim_token, "ada", "digest", True, actor="ada")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.release_claim("r", "ada", "gone")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    DbosGateClient(ledger, "wf", desk=AsyncReviewDesk(ledger))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    DbosGateClient("wf", ledger)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def async_reviewer(dbos: DBOSClient) -> None:
    client = AsyncDbosGateClient(ledger, "wf", dbos=dbos, desk=AsyncReviewDesk(ledger), effects=[refund])
    assert_type(await client.list_pending(), tuple[GateView, ...])
    claim = await client.claim("r", "ada")
    if claim.ok is True:
        assert_type(await client.submit("r", claim.claim_token, "ada", "digest", None), Delivery)

    print(client.claim("r", "ada").ok)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    str(claim.claim_token)  # type: ignore[union-attr]  # pyright: ignore[reportAttributeAccessIssue]
    AsyncDbosGateClient(ledger, "wf", desk=ReviewDesk(ledger))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
