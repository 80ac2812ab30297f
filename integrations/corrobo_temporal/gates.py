"""Callback gates in a workflow: questions that signals and updates answer, and that no restart forgets.

For the sandbox. Everything here is replayed, so two rules hold. Every step that reads the workflow's time or
changes a gate emits a command (a memo, which the UI shows): in a task without commands the time is another one at
replay, and an update can come before the question does. And nothing is made up: claim tokens come from the routers
(G10).

Source: semantics section 9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from corrobo_core import CorroboError, UsageError
from corrobo_core.gates import (
    ActionDecision,
    Answer,
    ApprovalSubject,
    GateConflictError,
    GateDefinition,
    GateEvent,
    GateRequest,
    GateState,
    GateStatus,
    GateView,
    PostResult,
    RunPlan,
    condense,
    create_approval_gate,
    create_gate,
    event_to_wire,
    fold,
    protocol,
    resolve_approval,
)
from corrobo_core.gates.calls import Calls
from corrobo_core.gates.decided import Decide
from corrobo_core.gates.jsontext import sha256
from corrobo_core.records import JSON
from corrobo_temporal._messages import carried as carried_event
from corrobo_temporal._messages import decoded, raw, raw_async, restored
from corrobo_temporal.gate_wire import (
    CLAIM,
    HISTORY,
    MEMO,
    PENDING,
    REFUSALS,
    RELEASE,
    SHOW,
    SIGNAL,
    SUBMIT,
    Message,
    reply_to_wire,
    view_to_wire,
)

__all__ = ["CallbackGates", "GateUnansweredError"]

R = TypeVar("R")

PATIENCE = timedelta(seconds=10)
_KEPT_EARLY = 100
_KEPT_REFUSALS = 100
_KEPT_ANSWERED = 200
_SHOWN = 10
_SHOWN_TEXT = 200
_NOTHING_MORE: Mapping[str, JSON] = {"routerId": None, "answer": None, "same": None, "late": False}
_LONGEST_TIMER = timedelta(days=365)


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
        self._patience = patience
        self._events: list[GateEvent] = []
        self._state = GateState()
        self._early: list[Message] = []
        self._refusals: list[dict[str, JSON]] = []
        self._refused = 0
        self._alarms: dict[str, asyncio.Task[None]] = {}
        self._closed = False
        self._take_handlers()
        if carried:
            self._take_over(carried)

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
        known = self._state.get(request_id)
        past = isinstance(deadline, datetime) and deadline.tzinfo is not None and deadline <= workflow.now()
        if known is None and past:
            raise GateUnansweredError(request_id, "expired")
        posted = self._post(request, subject, None if known is not None else deadline)
        if not posted.ok:
            raise GateUnansweredError(request_id, posted.kind)
        await workflow.wait_condition(lambda: not self._state.requests[request_id].live)
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
        self._decide(self._calls.supersede(request_id, superseded_by).decide)

    def show(self, request_id: str) -> GateView | None:
        """One question as it stands; without tokens."""
        return protocol.view(self._state, request_id, now=workflow.now())

    def resolve_approval(self, definition: GateDefinition, subject: ApprovalSubject) -> ActionDecision:
        """The recorded decision, if it was made for exactly this; else a ``wait``. Applies nothing (A5)."""
        return resolve_approval(self._state, _request(definition, subject), subject, self._calls.plan)

    def note(self, message: str, request_id: str, router_id: str, kind: str, reason: str) -> None:
        """Keep something that was refused elsewhere, for the query that shows refusals."""
        self._keep(message, request_id, router_id, kind, reason)

    @property
    def state(self) -> GateState:
        """The fold of the events. It holds claim tokens."""
        return self._state

    def _post(
        self,
        request: GateRequest,
        subject: ApprovalSubject | None,
        deadline: datetime | timedelta | None,
        reopen: bool = False,
    ) -> PostResult:
        if self._closed:
            raise UsageError("CallbackGates", "are closed: ask before close()")
        posted = self._decide(self._calls.post(request, subject, deadline, reopen).decide)
        self._apply_early()
        return posted

    def _ended(self, request_id: str) -> Answer:
        ended = self._state.requests[request_id]
        if ended.answer is not None:
            return ended.answer
        raise GateUnansweredError(request_id, "expired" if ended.status is GateStatus.EXPIRED else "superseded")

    # -- the end of a run ------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Let every waiting router go, with its reply. Nothing can be asked afterwards.

        Await it as the last thing before returning, or before continuing as new with `carry`. Without it, a router
        whose update is at work gets no reply.
        """
        self._closed = True
        for alarm in self._alarms.values():
            alarm.cancel()
        self._alarms.clear()
        await workflow.wait_condition(workflow.all_handlers_finished)

    def carry(self) -> dict[str, Any]:
        """What the next run needs: for ``workflow.continue_as_new``, and then for ``CallbackGates(carried)``.

        Open questions with their claims and deadlines, the last answers (so that a router who repeats itself is
        told so), signals that came before their question, and refusals. JSON; it holds claim tokens.
        """
        open_or_recent = self._worth_carrying()
        return {
            "version": 1,
            "events": [carried_event(event) for event in condense(open_or_recent)],
            "early": [{"kind": each.kind, **each.to_wire()} for each in self._early],
            "refusals": list(self._refusals),
            "refused": self._refused,
        }

    def _worth_carrying(self) -> GateState:
        ended = [key for key, each in self._state.requests.items() if not each.live]
        old = set(ended[:-_KEPT_ANSWERED])
        return GateState({key: each for key, each in self._state.requests.items() if key not in old})

    def _take_over(self, carried: Mapping[str, Any]) -> None:
        if carried.get("version") != 1:
            raise UsageError("CallbackGates", "carried: pass what carry() gave the run before")
        self._append(restored(event) for event in carried["events"])
        self._early = [Message.parse(each) for each in carried["early"]]
        self._refusals, self._refused = list(carried["refusals"]), carried["refused"]
        self._changed()

    # -- what every step does --------------------------------------------------------------------------------

    def _decide(self, decide: Decide[R]) -> R:
        decided = decide(self._state, workflow.now())
        self._append(decided.events)
        self._changed()
        return decided.result

    def _append(self, events: Iterable[GateEvent]) -> None:
        new = list(events)
        self._state = fold(new, self._state, position=len(self._events))
        self._events += new

    def _changed(self) -> None:
        """Emit a command, always, and keep one timer for each deadline."""
        live = [each for each in self._state.requests.values() if each.live]
        workflow.upsert_memo(
            {
                MEMO: {
                    "open": [_shown(GateView.of(each, workflow.now())) for each in live[:_SHOWN]],
                    "openCount": len(live),
                    "events": len(self._events),
                    "refused": self._refused,
                }
            }
        )
        if self._closed:
            return
        due = {each.request.request_id: each.deadline for each in live if each.deadline is not None}
        for request_id in [each for each in self._alarms if each not in due]:
            self._alarms.pop(request_id).cancel()
        for request_id, deadline in due.items():
            if request_id not in self._alarms:
                self._alarms[request_id] = asyncio.create_task(self._expire_at(deadline))

    async def _expire_at(self, deadline: datetime) -> None:
        while (left := deadline - workflow.now()) > timedelta():
            await workflow.sleep(min(left, _LONGEST_TIMER))
        self._alarms = {key: task for key, task in self._alarms.items() if task is not asyncio.current_task()}
        self._decide(lambda state, now: protocol.expire(state, now=now))

    # -- messages --------------------------------------------------------------------------------------------

    def _take_handlers(self) -> None:
        workflow.set_signal_handler(SIGNAL, raw(self._on_signal))
        for name, kind in ((CLAIM, "claim"), (SUBMIT, "submit"), (RELEASE, "release")):
            workflow.set_update_handler(name, raw_async(self._on_update, kind))
        workflow.set_query_handler(PENDING, self._pending)
        workflow.set_query_handler(SHOW, self._show)
        workflow.set_query_handler(HISTORY, self._history)
        workflow.set_query_handler(REFUSALS, self._all_refusals)

    async def _on_update(self, kind: str, given: tuple[Any, ...]) -> dict[str, JSON]:
        """Never raises: that would fail the workflow task, and leave the router without a reply."""
        try:
            message = Message.parse(decoded(given), kind)
        except ValueError as error:
            return self._refuse(None, "invalid", str(error))
        if self._state.get(message.request_id) is None and not self._closed:
            with suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda: self._closed or self._state.get(message.request_id) is not None, timeout=self._patience
                )
        return self._apply(message)

    def _on_signal(self, given: tuple[Any, ...]) -> None:
        """Nobody waits for a reply: what is refused is kept for the query. Never raises, as above."""
        try:
            message = Message.parse(decoded(given))
        except ValueError as error:
            self._refuse(None, "invalid", str(error))
            return
        if self._state.get(message.request_id) is not None:
            self._apply(message)
            return
        self._early.append(message)
        if len(self._early) > _KEPT_EARLY:
            self._apply(self._early.pop(0))
        self._changed()

    def _apply_early(self) -> None:
        for message in [each for each in self._early if self._state.get(each.request_id) is not None]:
            self._early.remove(message)
            self._apply(message)

    def _apply(self, message: Message) -> dict[str, JSON]:
        """Decide on one message, in one piece."""
        try:
            reply = self._answer(message) if message.kind == "answer" else self._step(message)
        except GateConflictError as error:
            return self._refuse(message, "conflict", error.problem)
        except CorroboError as error:
            return self._refuse(message, "invalid", str(error))
        if not reply["ok"]:
            reason = reply.get("reason")
            self._note_refusal(message, str(reply["kind"]), reason if isinstance(reason, str) else "")
        return reply

    def _step(self, message: Message) -> dict[str, JSON]:
        calls, request_id, token = self._calls, message.request_id, message.claim_token
        if message.kind == "claim":
            claim = calls.claim(request_id, message.router_id, token, message.lease)
            return reply_to_wire(self._decide(claim.decide))
        if message.kind == "release":
            return reply_to_wire(self._decide(calls.release(request_id, token).decide))
        digest = message.request_digest or ""
        submit = calls.submit(request_id, token, message.router_id, digest, message.response, message.actor)
        return reply_to_wire(self._decide(submit.decide))

    def _answer(self, message: Message) -> dict[str, JSON]:
        """Claim and submit in one piece, as `direct_router` does: no claim is left behind (G9)."""
        token = "signal:" + sha256(f"{message.request_id}\n{message.router_id}")
        known = self._state.get(message.request_id)
        submit = replace(
            message,
            kind="submit",
            claim_token=token,
            request_digest=message.request_digest or message.request_id.rpartition("#")[2],
        )
        if known is not None and known.answer is None:
            claimed = self._step(replace(submit, kind="claim"))
            if not claimed["ok"]:
                return claimed
        reply = self._step(submit)
        if not reply["ok"]:
            self._decide(self._calls.release(message.request_id, token).decide)
        return reply

    def _refuse(self, message: Message | None, kind: str, reason: str) -> dict[str, JSON]:
        self._note_refusal(message, kind, reason)
        return {**_NOTHING_MORE, "ok": False, "kind": kind, "reason": reason}

    def _note_refusal(self, message: Message | None, kind: str, reason: str) -> None:
        if message is None:
            self._keep(None, None, None, kind, reason)
        else:
            self._keep(message.kind, message.request_id, message.router_id or None, kind, reason)

    def _keep(
        self, message: str | None, request_id: str | None, router_id: str | None, kind: str, reason: str
    ) -> None:
        refusal: dict[str, JSON] = {
            "at": workflow.now().isoformat(),
            "message": message,
            "requestId": request_id,
            "routerId": router_id,
            "kind": kind,
            "reason": reason,
        }
        self._refused += 1
        self._refusals = [*self._refusals[-(_KEPT_REFUSALS - 1) :], refusal]
        self._changed()

    # -- queries ---------------------------------------------------------------------------------------------

    # The SDK resolves these annotations in this module, where JSON's own names are unknown.
    def _pending(self) -> list[dict[str, Any]]:
        return [view_to_wire(view) for view in protocol.list_pending(self._state, now=workflow.now())]

    def _show(self, request_id: str) -> dict[str, Any] | None:
        view = self.show(request_id)
        return None if view is None else view_to_wire(view)

    def _history(self) -> list[dict[str, Any]]:
        """Without claim tokens (G12)."""
        wires = (event_to_wire(event) for event in self._events)
        return [{name: value for name, value in wire.items() if name != "claimToken"} for wire in wires]

    def _all_refusals(self) -> dict[str, Any]:
        early: list[JSON] = [{"message": each.kind, "requestId": each.request_id} for each in self._early]
        return {"count": self._refused, "last": list(self._refusals), "early": early}


# -- helpers -------------------------------------------------------------------------------------------------


def _plan() -> RunPlan:
    """A plan for runs that name none: this workflow, through resets and continue-as-new."""
    info = workflow.info()
    run = f"{info.namespace}\n{info.workflow_id}\n{info.first_execution_run_id}"
    return RunPlan("sha256:" + sha256(run), "sha256:" + sha256(info.workflow_type))


def _request(definition: GateDefinition, subject: ApprovalSubject | None) -> GateRequest:
    return create_gate(definition) if subject is None else create_approval_gate(definition, subject)


def _shown(view: GateView) -> dict[str, JSON]:
    text = view.request.decision_text
    return {
        "requestId": view.request_id,
        "question": text if len(text) <= _SHOWN_TEXT else text[: _SHOWN_TEXT - 1] + "…",
        "status": view.status.value,
        "routerId": view.router_id,
        "deadline": None if view.deadline is None else view.deadline.isoformat(),
    }
