"""An effect that may need people, in a workflow: the question, the wait, and the answer's way to the review desk.

For the sandbox. Both activities run on a queue whose workers hold the reviewer's role: what people are shown comes
from their ledger, and what they answer goes there. The process that makes attempts decides nothing (R1).

Source: semantics R1, R2, A6.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutError, TimeoutType

from corrobo_core.gates import (
    ActionDecision,
    ApprovalSubject,
    ArtifactReference,
    GateDefinition,
    GateStatus,
    GateView,
    create_approval_gate,
    create_gate,
)
from corrobo_core.records import JSON
from corrobo_temporal.failures import EffectInvestigateError, EffectReviewError, EffectStatus
from corrobo_temporal.gates import CallbackGates

__all__ = ["ASK", "DECIDE", "DecisionsUnavailableError", "People"]

R = TypeVar("R")

ASK, DECIDE = "corrobo.ask", "corrobo.decide"  # names of activities: compatibility data

_RETRIES = RetryPolicy(
    initial_interval=timedelta(seconds=1), backoff_coefficient=2.0, maximum_interval=timedelta(seconds=10)
)
_TRIES = 5  # of one decision activity, as a multiple of its timeout


class DecisionsUnavailableError(ApplicationError):
    """A person must decide, and nobody who may record decisions was there: is a worker with them running?

    `disposition_of` tells what waits. Running the effect again goes on; an answer that a gate holds is kept.

    Args:
        status: what waits for a decision.
        task_queue: where no worker took the activity in time.
        problem: in a few words.
    """

    def __init__(self, status: EffectStatus, task_queue: str, problem: str) -> None:
        super().__init__(
            f"decisions cannot be recorded: {problem}; run a worker with decision_activities there",
            status.details(),
            {"task_queue": task_queue},
            type="corrobo.DecisionsUnavailable",
            non_retryable=True,
        )
        self.status, self.task_queue, self.problem = status, task_queue, problem

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.task_queue, self.problem)


class People:
    """Who is asked when evidence or a check cannot decide.

    Args:
        gates: of the workflow.
        task_queue: of the decision activities.
        timeout: how long to wait for a worker there, and for one call.
        look_every: how often to make another pass meanwhile, which sees decisions made elsewhere.
        answer_within: deadline of each question; None: it waits for ever.
    """

    def __init__(
        self,
        gates: CallbackGates,
        task_queue: str,
        timeout: timedelta,
        look_every: timedelta,
        answer_within: timedelta | None,
    ) -> None:
        self._gates, self._task_queue, self._timeout = gates, task_queue, timeout
        self._look_every, self._answer_within = look_every, answer_within

    async def follow(self, run: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Make passes, and ask people in between, until one ends with something that no person decides."""
        case, forgotten = _Case(), False
        try:
            while True:
                try:
                    return await run()
                except (EffectReviewError, EffectInvestigateError) as error:
                    if error.status.token is None:
                        raise
                    waiting = error
                if not await self._decided(case, waiting.status):
                    raise waiting
        except GeneratorExit:  # the worker forgets the run, in any thread: nothing happens in its name any more
            forgotten = True
            raise
        finally:
            if not forgotten:
                self._withdraw(case)

    async def _decided(self, case: _Case, status: EffectStatus) -> bool:
        """Ask, and wait until it is time for another pass; False: the question has expired."""
        case.at(status)
        shown = await self._call(ASK, {**_names(status), "asked": case.asked}, status)
        if not shown["open"]:  # decided already; should that not show in the next pass, do not hurry
            if case.seen_closed:
                await workflow.sleep(self._look_every)
            case.seen_closed = True
            return True
        view = self._posted(case, shown)
        with suppress(asyncio.TimeoutError):
            await workflow.wait_condition(lambda: not self._live(view.request_id), timeout=self._look_every)
        now = self._view(view.request_id)
        if now.status is GateStatus.ANSWERED:
            await self._record(case, now, shown, status)
        return now.status is not GateStatus.EXPIRED

    def _posted(self, case: _Case, shown: Mapping[str, Any]) -> GateView:
        definition, subject = _definition(shown["question"]), _subject(shown["subject"])
        request_id = _request_id(definition, subject)
        if case.question not in (None, request_id):
            self._withdraw(case)
        known = self._gates.show(request_id)
        if known is None or known.status is GateStatus.SUPERSEDED:
            self._gates.post(definition, subject, deadline=self._answer_within, reopen=True)
        case.question = request_id
        return self._view(request_id)

    async def _record(self, case: _Case, view: GateView, shown: Mapping[str, Any], status: EffectStatus) -> None:
        order = {
            **_names(status),
            "fingerprint": shown["fingerprint"],
            **self._said(view, _definition(shown["question"]), _subject(shown["subject"])),
        }
        done = await self._call(DECIDE, order, status)
        if not done["recorded"]:
            self._gates.note("decision", view.request_id, order["reviewer"], done["code"], done["reason"])
        case.asked += 1  # should the same episode still wait, this answer did not reach it: ask again

    def _said(self, view: GateView, definition: GateDefinition, subject: ApprovalSubject | None) -> dict[str, Any]:
        """The answer as a decision."""
        assert view.answer is not None
        if subject is None:
            response: Any = view.answer.response
            return {
                "decision": response["kind"],
                "reviewer": view.answer.router_id,
                "note": response.get("note", ""),
                "value": response.get("value"),
            }
        approval: ActionDecision = self._gates.resolve_approval(definition, subject)
        actor: Any = view.approval["binding"]["actor"] if isinstance(view.approval, dict) else {}
        named = actor.get("name")
        return {
            "decision": {"allow": "approved", "deny": "rejected"}.get(approval.kind, "none"),
            "reviewer": named if isinstance(named, str) and named.strip() else view.answer.router_id,
            "note": approval.reason or "",
            "value": None,
        }

    def _view(self, request_id: str) -> GateView:
        view = self._gates.show(request_id)
        assert view is not None
        return view

    def _live(self, request_id: str) -> bool:
        return self._gates.state.requests[request_id].live

    def _withdraw(self, case: _Case) -> None:
        if case.question is not None and self._live(case.question):
            self._gates.supersede(case.question, "it waits for no answer any more")
        case.question = None

    async def _call(self, activity: str, order: dict[str, Any], status: EffectStatus) -> dict[str, Any]:
        try:
            done: dict[str, Any] = await workflow.execute_activity(
                activity,
                order,
                result_type=dict,
                task_queue=self._task_queue,
                schedule_to_start_timeout=self._timeout,
                start_to_close_timeout=self._timeout,
                schedule_to_close_timeout=_TRIES * self._timeout,
                retry_policy=_RETRIES,
            )
        except ActivityError as error:
            cause = error.cause
            if isinstance(cause, TimeoutError):
                late = cause.type is TimeoutType.SCHEDULE_TO_START
                problem = (
                    "no worker listens on the decisions' task queue" if late else "their worker did not answer"
                )
                raise DecisionsUnavailableError(status, self._task_queue, problem) from error
            raise
        return done


class _Case:
    """One effect that waits: its episode, and the question about it."""

    def __init__(self) -> None:
        self.token: str | None = None
        self.asked = 1
        self.seen_closed = False
        self.question: str | None = None

    def at(self, status: EffectStatus) -> None:
        """Another episode is another question."""
        if status.token != self.token:
            self.token, self.asked, self.seen_closed = status.token, 1, False


def _names(status: EffectStatus) -> dict[str, Any]:
    return {"operationId": status.operation_id, "operationType": status.operation_type, "token": status.token}


def _request_id(definition: GateDefinition, subject: ApprovalSubject | None) -> str:
    request = create_gate(definition) if subject is None else create_approval_gate(definition, subject)
    return request.request_id


def _definition(wire: Mapping[str, Any]) -> GateDefinition:
    return GateDefinition(
        wire["gateId"],
        wire["gateVersion"],
        wire["decisionText"],
        wire["responseSchema"],
        wire["input"],
        wire["presentation"],
    )


def _subject(wire: Mapping[str, Any] | None) -> ApprovalSubject | None:
    if wire is None:
        return None
    intent = wire["intent"].encode()
    reference = ArtifactReference.of(intent, "application/json")
    scope: Mapping[str, JSON] = wire["scope"]
    return ApprovalSubject({"intent": reference.digest}, scope, reference, intent)
