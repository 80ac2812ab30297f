"""Callback gates in a workflow: questions that signals and updates answer, and that no restart forgets.

For the sandbox. What is known is in `_book`, what routers send comes to `_inbox`.

Source: semantics section 9.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from corrobo_core import UsageError
from corrobo_core.gates import (
    ActionDecision,
    Answer,
    ApprovalSubject,
    GateDefinition,
    GateRequest,
    GateState,
    GateStatus,
    GateView,
    PostResult,
    RunPlan,
    create_approval_gate,
    create_gate,
    protocol,
    resolve_approval,
)
from corrobo_core.gates.calls import Calls
from corrobo_core.gates.jsontext import sha256
from corrobo_temporal._book import Book
from corrobo_temporal._inbox import Inbox
from corrobo_temporal.gate_wire import SIGNAL

__all__ = ["CallbackGates", "GateUnansweredError"]

PATIENCE = timedelta(seconds=10)


class GateUnansweredError(ApplicationError):
    """A question will not be answered any more. Asking the same one again gives the same error.

    Args:
        request_id: of the question.
        kind: its deadline has passed, or a newer question of the same gate took its place.
    """

    def __init__(self, request_id: str, kind: Literal["expired", "superseded"]) -> None:
        super().__init__(
            f"the question was not answered: {kind}",
            {"request_id": request_id, "kind": kind},
            type="corrobo.GateUnanswered",
            non_retryable=True,
        )
        self.request_id, self.kind = request_id, kind

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.request_id, self.kind)


class CallbackGates:
    """The gates of one workflow. Make one in ``@workflow.init``, so that its handlers are there before any message.

    Routers answer by `TemporalGateClient`, or by the signal ``corrobo_gate`` from any SDK and the ``temporal``
    program. Before the workflow returns or continues as new: ``await gates.close()``.

    Args:
        carried: what `carry` gave the run before, after continue-as-new; None in a first run.
        patience: how long an update for a question that was not asked yet waits for it, before it is answered
            ``missing``. A signal is kept until the question is asked.
        plan: of the run, where approvals are bound to one; unless given, one made of the workflow's ids.

    Raises:
        UsageError: outside a workflow, or the workflow has gates already. Not retryable.

    Source: semantics G2 to G12.
    """

    def __init__(
        self,
        carried: Mapping[str, Any] | None = None,
        *,
        patience: timedelta = PATIENCE,
        plan: RunPlan | None = None,
    ) -> None:
        if not workflow.in_workflow():
            raise UsageError("CallbackGates", "are for workflows: make them in @workflow.init")
        if workflow.get_signal_handler(SIGNAL) is not None:
            raise UsageError("CallbackGates", "this workflow has gates already; one object holds any number")
        self._calls = Calls(plan or _plan())
        self._book = Book()
        self._inbox = Inbox(self._book, self._calls, patience)
        if carried:
            self._book.take_over(carried)

    # -- asking ----------------------------------------------------------------------------------------------

    async def ask(
        self,
        definition: GateDefinition,
        subject: ApprovalSubject | None = None,
        *,
        deadline: datetime | timedelta | None = None,
    ) -> Answer:
        """Ask a question and wait for its answer. The same question again, also in a later run, is the same one.

        Args:
            definition: the question; a newer one of the same gate supersedes it.
            subject: makes it an approval of exactly these bytes.
            deadline: when it expires, by the workflow's time, or how long from now; fixed when it is first asked.

        Raises:
            GateUnansweredError: it has expired or was superseded. Fails the workflow unless caught.
            GateArgumentError, ApprovalSubjectError: it cannot be asked like this. Fails the workflow task.

        Source: semantics G2, G4, G7.
        """
        request = _request(definition, subject)
        request_id = request.request_id
        known = self._book.state.get(request_id)
        past = isinstance(deadline, datetime) and deadline.tzinfo is not None and deadline <= workflow.now()
        if known is None and past:
            raise GateUnansweredError(request_id, "expired")
        posted = self._post(request, subject, None if known is not None else deadline)
        if not posted.ok:
            raise GateUnansweredError(request_id, posted.kind)
        await workflow.wait_condition(lambda: not self._book.state.requests[request_id].live)
        return self._ended(request_id)

    def post(
        self,
        definition: GateDefinition,
        subject: ApprovalSubject | None = None,
        *,
        deadline: datetime | timedelta | None = None,
        reopen: bool = False,
    ) -> PostResult:
        """Ask a question without waiting; `show` has its answer. See `corrobo_core.gates.Gates.post`."""
        return self._post(_request(definition, subject), subject, deadline, reopen)

    def supersede(self, request_id: str, superseded_by: str) -> None:
        """Withdraw an open question, because of something newer, in a few words."""
        self._book.decide(self._calls.supersede(request_id, superseded_by).decide)

    def show(self, request_id: str) -> GateView | None:
        """One question as it stands; without tokens."""
        return protocol.view(self._book.state, request_id, now=workflow.now())

    def resolve_approval(self, definition: GateDefinition, subject: ApprovalSubject) -> ActionDecision:
        """The recorded decision, if it was made for exactly this; else a ``wait``. Applies nothing (A5)."""
        return resolve_approval(self._book.state, _request(definition, subject), subject, self._calls.plan)

    def note(self, message: str, request_id: str, router_id: str, kind: str, reason: str) -> None:
        """Keep something that was refused elsewhere, for the query that shows refusals."""
        self._book.refuse(message, request_id, router_id, kind, reason)

    @property
    def state(self) -> GateState:
        """The fold of the events. It holds claim tokens."""
        return self._book.state

    def _post(
        self,
        request: GateRequest,
        subject: ApprovalSubject | None,
        deadline: datetime | timedelta | None,
        reopen: bool = False,
    ) -> PostResult:
        if self._book.closed:
            raise UsageError("CallbackGates", "are closed: ask before close()")
        posted = self._book.decide(self._calls.post(request, subject, deadline, reopen).decide)
        self._inbox.apply_early()
        return posted

    def _ended(self, request_id: str) -> Answer:
        ended = self._book.state.requests[request_id]
        if ended.answer is not None:
            return ended.answer
        raise GateUnansweredError(request_id, "expired" if ended.status is GateStatus.EXPIRED else "superseded")

    # -- the end of a run ------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Let every waiting router go, with its reply. Nothing can be asked afterwards.

        Await it as the last thing before returning, or before continuing as new with `carry`. Without it, a router
        whose update is at work gets no reply.
        """
        self._book.close()
        await workflow.wait_condition(workflow.all_handlers_finished)

    def carry(self) -> dict[str, Any]:
        """What the next run needs: for ``workflow.continue_as_new``, and then for ``CallbackGates(carried)``.

        Open questions with their claims and deadlines, the last answers (so that a router who repeats itself is
        told so), signals that came before their question, and refusals. JSON; it holds claim tokens.
        """
        return self._book.carry()


# -- helpers -------------------------------------------------------------------------------------------------


def _plan() -> RunPlan:
    """A plan for runs that name none: this workflow, through resets and continue-as-new."""
    info = workflow.info()
    run = f"{info.namespace}\n{info.workflow_id}\n{info.first_execution_run_id}"
    return RunPlan("sha256:" + sha256(run), "sha256:" + sha256(info.workflow_type))


def _request(definition: GateDefinition, subject: ApprovalSubject | None) -> GateRequest:
    return create_gate(definition) if subject is None else create_approval_gate(definition, subject)
