"""Messages of routers to the gates of a workflow: updates with a reply, signals without one, and queries.

For the sandbox. Handlers never raise: that would fail the workflow task, and leave the router without a reply.

Source: semantics G2, G9, G11, G12.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from temporalio import workflow

from corrobo_core import CorroboError
from corrobo_core.gates import GateConflictError, protocol
from corrobo_core.gates.calls import Calls
from corrobo_core.gates.jsontext import sha256
from corrobo_core.records import JSON
from corrobo_temporal._book import Book
from corrobo_temporal._messages import decoded, raw, raw_async
from corrobo_temporal.gate_wire import (
    HISTORY,
    PENDING,
    REFUSALS,
    SHOW,
    SIGNAL,
    UPDATES,
    Message,
    reply_to_wire,
    view_to_wire,
)

__all__ = ["Inbox"]

_NOTHING_MORE: Mapping[str, JSON] = {"routerId": None, "answer": None, "same": None, "late": False}


class Inbox:
    """Applies messages to a book. It takes the workflow's handlers when it is made.

    Args:
        book: of the gates.
        calls: with the run's plan.
        patience: how long an update waits for its question.
    """

    def __init__(self, book: Book, calls: Calls, patience: timedelta) -> None:
        self._book, self._calls, self._patience = book, calls, patience
        workflow.set_signal_handler(SIGNAL, raw(self._on_signal))
        for kind, name in UPDATES.items():
            workflow.set_update_handler(name, raw_async(self._on_update, kind))
        workflow.set_query_handler(PENDING, self._pending)
        workflow.set_query_handler(SHOW, self._show)
        workflow.set_query_handler(HISTORY, self._history)
        workflow.set_query_handler(REFUSALS, self._refusals)

    # -- messages --------------------------------------------------------------------------------------------

    async def _on_update(self, kind: str, given: tuple[Any, ...]) -> dict[str, JSON]:
        try:
            message = Message.parse(decoded(given), kind)
        except ValueError as error:
            return self._refuse(None, "invalid", str(error))
        if not self._asked(message) and not self._book.closed:
            with suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda: self._book.closed or self._asked(message), timeout=self._patience
                )
        return self._apply(message)

    def _on_signal(self, given: tuple[Any, ...]) -> None:
        """Nobody waits for a reply: what is refused is kept for the query."""
        try:
            message = Message.parse(decoded(given))
        except ValueError as error:
            self._refuse(None, "invalid", str(error))
            return
        if self._asked(message):
            self._apply(message)
            return
        for dropped in self._book.keep(message):
            self._apply(dropped)
        self._book.changed()

    def apply_early(self) -> None:
        """Apply the signals whose question is there now."""
        for message in [each for each in self._book.early if self._asked(each)]:
            self._book.early.remove(message)
            self._apply(message)

    def _asked(self, message: Message) -> bool:
        return self._book.state.get(message.request_id) is not None

    # -- decisions -------------------------------------------------------------------------------------------

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
            self._note(message, str(reply["kind"]), reason if isinstance(reason, str) else "")
        return reply

    def _step(self, message: Message) -> dict[str, JSON]:
        calls, decide = self._calls, self._book.decide
        request_id, router_id, token = message.request_id, message.router_id, message.claim_token
        match message.kind:
            case "claim":
                return reply_to_wire(decide(calls.claim(request_id, router_id, token, message.lease).decide))
            case "release":
                return reply_to_wire(decide(calls.release(request_id, token).decide))
            case "release-claim":
                return reply_to_wire(
                    decide(calls.release_claim(request_id, message.operator, message.reason).decide)
                )
            case _:
                digest = message.request_digest or ""
                submit = calls.submit(request_id, token, router_id, digest, message.response, message.actor)
                return reply_to_wire(decide(submit.decide))

    def _answer(self, message: Message) -> dict[str, JSON]:
        """Claim and submit in one piece, as `direct_router` does: no claim is left behind (G9)."""
        token = "signal:" + sha256(f"{message.request_id}\n{message.router_id}")
        known = self._book.state.get(message.request_id)
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
            self._book.decide(self._calls.release(message.request_id, token).decide)
        return reply

    def _refuse(self, message: Message | None, kind: str, reason: str) -> dict[str, JSON]:
        self._note(message, kind, reason)
        return {**_NOTHING_MORE, "ok": False, "kind": kind, "reason": reason}

    def _note(self, message: Message | None, kind: str, reason: str) -> None:
        if message is None:
            self._book.refuse(None, None, None, kind, reason)
        else:
            who = message.router_id or message.operator or None
            self._book.refuse(message.kind, message.request_id, who, kind, reason)

    # -- queries ---------------------------------------------------------------------------------------------

    # The SDK resolves these annotations in this module, where JSON's own names are unknown.
    def _pending(self) -> list[dict[str, Any]]:
        return [view_to_wire(view) for view in protocol.list_pending(self._book.state, now=workflow.now())]

    def _show(self, request_id: str) -> dict[str, Any] | None:
        view = protocol.view(self._book.state, request_id, now=workflow.now())
        return None if view is None else view_to_wire(view)

    def _history(self) -> list[dict[str, Any]]:
        return self._book.history()

    def _refusals(self) -> dict[str, Any]:
        early: list[JSON] = [{"message": each.kind, "requestId": each.request_id} for each in self._book.early]
        return {"count": self._book.refused, "last": list(self._book.refusals), "early": early}
