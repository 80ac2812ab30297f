"""Right and wrong uses of gates on Temporal; each wrong one must be an error for every type checker."""

from __future__ import annotations

from datetime import timedelta
from typing import assert_type

from temporalio import workflow
from temporalio.client import Client

from corrobo_core.gates import (
    Answer,
    ApprovalSubject,
    ClaimOk,
    ClaimRefused,
    GateDefinition,
    GateView,
    SubmitRefused,
)
from corrobo_core.records import JSON
from corrobo_temporal import CallbackGates, TemporalGateClient, WorkflowEffects, WorkflowGone

QUESTION = GateDefinition(
    gate_id="release", gate_version=1, decision_text="Release?", response_schema={"type": "object"}, input={}
)


# -- workflows -----------------------------------------------------------------------------------------------


@workflow.defn
class Release:
    @workflow.init
    def __init__(self, subject: ApprovalSubject) -> None:
        self.gates = CallbackGates(patience=timedelta(seconds=5))
        self.effects = WorkflowEffects(
            schedule_to_close_timeout=timedelta(hours=1), gates=self.gates, decisions_task_queue="decisions"
        )

    @workflow.run
    async def run(self, subject: ApprovalSubject) -> None:
        answer = await self.gates.ask(QUESTION, deadline=timedelta(days=2))
        assert_type(answer, Answer)
        assert_type(answer.response, JSON)
        await self.gates.ask(QUESTION, subject)
        self.gates.post(QUESTION)
        await self.gates.close()

        print(self.gates.ask(QUESTION).response)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
        await self.gates.ask("Release?")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        await self.gates.ask(QUESTION, deadline=60)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        await self.gates.ask(QUESTION, timedelta(days=2))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        await self.gates.post(QUESTION)  # type: ignore[misc]  # pyright: ignore[reportGeneralTypeIssues]
        CallbackGates("release")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        CallbackGates(patience=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        WorkflowEffects(schedule_to_close_timeout=timedelta(hours=1), gates=QUESTION)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# -- reviewers -----------------------------------------------------------------------------------------------


async def reviewer(client: Client) -> None:
    gates = TemporalGateClient(client, "wf", patience=timedelta(seconds=5))
    pending = await gates.list_pending()
    assert_type(pending, tuple[GateView, ...] | WorkflowGone)
    claim = await gates.claim("r", "ada", lease=timedelta(minutes=5))
    if not isinstance(claim, ClaimOk):
        assert_type(claim, ClaimRefused | WorkflowGone)
        return
    submitted = await gates.submit("r", claim.claim_token, "ada", "digest", {"approved": True})
    if submitted.ok is True:
        assert_type(submitted.answer, Answer)
    else:
        assert_type(submitted, SubmitRefused | WorkflowGone)

    len(pending)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    str(submitted.answer)  # type: ignore[union-attr]  # pyright: ignore[reportAttributeAccessIssue]
    print(gates.claim("r", "ada").ok)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    await gates.claim("r")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await gates.submit("r", claim.claim_token, "ada", "digest")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await gates.submit("r", claim.claim_token, "ada", "digest", object())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    TemporalGateClient("wf", client)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    TemporalGateClient(client, "wf", "run")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
