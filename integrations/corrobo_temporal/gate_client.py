"""The reviewers' side of gates in workflows: list, claim, submit and release, with typed results."""

from __future__ import annotations

import asyncio
import secrets
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal, TypeAlias, TypeVar, cast

from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from corrobo_core import CorroboError
from corrobo_core.gates import (
    Answer,
    ClaimResult,
    GateArgumentError,
    GateConflictError,
    GateView,
    ReleaseResult,
    SubmitResult,
)
from corrobo_core.gates.jsontext import canonical
from corrobo_core.records import JSON
from corrobo_temporal.gate_wire import (
    HISTORY,
    PENDING,
    REFUSALS,
    SHOW,
    UPDATES,
    Message,
    claim_reply,
    release_reply,
    submit_reply,
    view_from_wire,
)

__all__ = ["GatesUnavailable", "TemporalGateClient", "WorkflowGone"]

R = TypeVar("R")

Gone: TypeAlias = Literal[
    "unknown", "completed", "terminated", "continued-as-new", "failed", "canceled", "timed-out"
]
_GONE: Mapping[WorkflowExecutionStatus, Gone] = {
    WorkflowExecutionStatus.COMPLETED: "completed",
    WorkflowExecutionStatus.FAILED: "failed",
    WorkflowExecutionStatus.CANCELED: "canceled",
    WorkflowExecutionStatus.TERMINATED: "terminated",
    WorkflowExecutionStatus.CONTINUED_AS_NEW: "continued-as-new",
    WorkflowExecutionStatus.TIMED_OUT: "timed-out",
}
_TRIES = 5
_PAUSE = 0.2  # seconds between them
_UNREACHABLE = frozenset(
    {RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.UNAVAILABLE, RPCStatusCode.CANCELLED, RPCStatusCode.ABORTED}
)


@dataclass(frozen=True)
class WorkflowGone:
    """Nobody is there to take the message: nothing was recorded.

    Attributes:
        kind: what became of the workflow, or of the run that the client was made for; ``unknown``: there never was
            one, or its retention time is over.
        workflow_id: of the workflow.
        run_id: of the run that was looked at; None if there is none.
        undelivered: of a submission: the answer that came too late, as it would have been recorded. It is kept
            nowhere else: store it, or, where the question is an effect's, record it by `decide_late`.
    """

    kind: Gone
    workflow_id: str
    run_id: str | None = None
    undelivered: Answer | None = None
    ok: Literal[False] = False


class GatesUnavailable(CorroboError):
    """No answer from the workflow: no worker, no server, or a workflow without gates.

    Retryable, with the same claim token: the message may or may not have been applied.

    Args:
        workflow_id: of the workflow.
        problem: what was tried, and what happened.
    """

    retryable = True

    def __init__(self, workflow_id: str, problem: str) -> None:
        super().__init__(workflow_id, problem)
        self.workflow_id, self.problem = workflow_id, problem

    def __str__(self) -> str:
        return f"workflow {self.workflow_id!r}: {self.problem}"


class TemporalGateClient:
    """Answers the questions of one workflow that has `CallbackGates`.

    Args:
        client: of Temporal.
        workflow_id: of the workflow.
        run_id: of one run; unless given, whichever run is the latest.
        patience: how long to wait for the workflow's worker.

    Every method returns `WorkflowGone` where nobody is there to take the message, and raises

    * `GatesUnavailable`: no answer in time. Retryable, with the same claim token.
    * `GateArgumentError`: an argument cannot be right. Not retryable.

    Source: semantics G2, G10, G12.
    """

    def __init__(
        self,
        client: Client,
        workflow_id: str,
        *,
        run_id: str | None = None,
        patience: timedelta = timedelta(seconds=30),
    ) -> None:
        self._client, self._workflow_id, self._run_id = client, workflow_id, run_id
        self._patience = patience

    # -- looking -----------------------------------------------------------------------------------------------

    async def list_pending(self) -> tuple[GateView, ...] | WorkflowGone:
        """The questions that a router could claim now, oldest first."""
        found = await self._query(PENDING)
        return found if isinstance(found, WorkflowGone) else tuple(view_from_wire(view) for view in found)

    async def show(self, request_id: str) -> GateView | WorkflowGone | None:
        """One question, or None if the workflow has not asked it. Also of a workflow that has ended."""
        found = await self._query(SHOW, request_id)
        return found if found is None or isinstance(found, WorkflowGone) else view_from_wire(found)

    async def history(self) -> list[dict[str, JSON]] | WorkflowGone:
        """The events in their wire form, without claim tokens (G12). Also of a workflow that has ended."""
        return cast("list[dict[str, JSON]] | WorkflowGone", await self._query(HISTORY))

    async def refusals(self) -> dict[str, Any] | WorkflowGone:
        """What was refused: ``count``, the ``last`` ones, and ``early`` signals that wait for their question."""
        return cast("dict[str, Any] | WorkflowGone", await self._query(REFUSALS))

    # -- routing -----------------------------------------------------------------------------------------------

    async def claim(
        self,
        request_id: str,
        router_id: str,
        *,
        claim_token: str | None = None,
        lease: timedelta | None = None,
        update_id: str | None = None,
    ) -> ClaimResult | WorkflowGone:
        """See `corrobo_core.gates.Gates.claim`.

        Args:
            request_id: of the question.
            router_id: who claims.
            claim_token: give one to be able to repeat a call whose reply was lost.
            lease: from then on another router may take the claim over.
            update_id: of the update; Temporal answers the same id in the same run with the same reply.
        """
        token = claim_token or secrets.token_urlsafe(24)
        message = Message("claim", request_id, router_id, token, lease=lease)
        return await self._update(message, claim_reply, update_id)

    async def submit(
        self,
        request_id: str,
        claim_token: str,
        router_id: str,
        request_digest: str,
        response: JSON,
        *,
        actor: Mapping[str, JSON] | None = None,
        update_id: str | None = None,
    ) -> SubmitResult | WorkflowGone:
        """See `corrobo_core.gates.Gates.submit`.

        Raises:
            GateConflictError: an approval that has another decision or actor already. Not retryable.
        """
        message = Message("submit", request_id, router_id, claim_token, request_digest, response, actor)
        return await self._update(message, submit_reply, update_id)

    async def release(
        self, request_id: str, claim_token: str, *, update_id: str | None = None
    ) -> ReleaseResult | WorkflowGone:
        """Give a claimed question back."""
        message = Message("release", request_id, claim_token=claim_token)
        return await self._update(message, release_reply, update_id)

    async def release_claim(
        self, request_id: str, *, operator: str, reason: str, update_id: str | None = None
    ) -> ReleaseResult | WorkflowGone:
        """Take a claim from whoever holds it; the operator's name and reason are recorded (G11)."""
        message = Message("release-claim", request_id, operator=operator, reason=reason)
        return await self._update(message, release_reply, update_id)

    # -- Temporal ----------------------------------------------------------------------------------------------

    @property
    def _handle(self) -> WorkflowHandle[Any, Any]:
        return self._client.get_workflow_handle(self._workflow_id, run_id=self._run_id)

    async def _query(self, name: str, *args: str) -> Any:
        try:
            return await self._handle.query(name, args=args, rpc_timeout=self._patience)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                gone = await self._gone()
                if gone is not None:
                    return gone
            raise GatesUnavailable(self._workflow_id, f"the query {name} was not answered ({error})") from error

    async def _update(
        self, message: Message, read: Callable[[Mapping[str, Any]], R], update_id: str | None
    ) -> R | WorkflowGone:
        """Sent again under the same id where the run ended under it: the next run carries what was recorded."""
        name, wire, update_id = UPDATES[message.kind], _checked(message), update_id or str(uuid.uuid4())
        problem = ""
        for _ in range(_TRIES):
            try:
                reply = await asyncio.wait_for(
                    self._handle.execute_update(name, wire, id=update_id), self._patience.total_seconds()
                )
            except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
                raise GatesUnavailable(self._workflow_id, f"no worker took the update {name} in time") from error
            except WorkflowUpdateFailedError as error:
                problem = str(error.cause)
                if not _ended_meanwhile(error):
                    raise GatesUnavailable(self._workflow_id, f"{name} failed: {problem}") from error
            except RPCError as error:
                problem = str(error)
                if error.status is not RPCStatusCode.NOT_FOUND and error.status not in _UNREACHABLE:
                    raise GatesUnavailable(self._workflow_id, f"{name} failed: {problem}") from error
            else:
                return _read(message, reply, read)
            gone = await self._gone()
            if gone is not None:
                return replace(gone, undelivered=_undelivered(message))
            await asyncio.sleep(_PAUSE)
        raise GatesUnavailable(self._workflow_id, f"{name} was not taken in {_TRIES} tries: {problem}")

    async def _gone(self) -> WorkflowGone | None:
        """What became of the workflow; None if it runs."""
        try:
            described = await self._handle.describe(rpc_timeout=self._patience)
        except RPCError as error:
            if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
                return WorkflowGone("unknown", self._workflow_id, self._run_id)
            raise GatesUnavailable(self._workflow_id, f"cannot be described ({error})") from error
        status = described.status
        if status is None or status not in _GONE:
            return None
        return WorkflowGone(_GONE[status], self._workflow_id, described.run_id)


def _checked(message: Message) -> dict[str, JSON]:
    wire = message.to_wire()
    try:
        Message.parse(wire, message.kind)
    except ValueError as error:
        raise GateArgumentError(message.kind, str(error)) from None
    return wire


def _undelivered(message: Message) -> Answer | None:
    return None if message.kind != "submit" else Answer(message.router_id, canonical(message.response, "response"))


def _ended_meanwhile(error: WorkflowUpdateFailedError) -> bool:
    cause = error.cause
    return isinstance(cause, ApplicationError) and cause.type == "AcceptedUpdateCompletedWorkflow"


def _read(message: Message, reply: Mapping[str, Any], read: Callable[[Mapping[str, Any]], R]) -> R:
    if reply.get("kind") == "conflict":
        raise GateConflictError(message.request_id, reply["reason"])
    if reply.get("kind") == "invalid" and message.kind != "submit":
        raise GateArgumentError(message.kind, reply["reason"])
    return read(reply)
