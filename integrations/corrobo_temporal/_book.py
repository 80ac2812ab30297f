"""What the gates of one workflow know: events, early messages, refusals; and how that changes.

For the sandbox. Everything here is replayed, so two rules hold. Every step that reads the workflow's time or
changes a gate emits a command (a memo, which the UI shows): in a task without commands the time is another one at
replay, and an update can come before the question does. And nothing is made up: claim tokens come from the routers
(G10).

Source: semantics G3, G7, G10.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from temporalio import workflow

from corrobo_core import UsageError
from corrobo_core.gates import GateEvent, GateState, GateView, condense, event_to_wire, fold, protocol
from corrobo_core.gates.decided import Decide
from corrobo_core.records import JSON
from corrobo_temporal._messages import carried as carried_event
from corrobo_temporal._messages import restored
from corrobo_temporal.gate_wire import MEMO, Message

__all__ = ["Book"]

R = TypeVar("R")

_KEPT_REFUSALS = 100
_KEPT_EARLY = 100
_KEPT_ANSWERED = 200
# A run can begin with 2 MiB: half a MiB of answers, one of early signals, and the rest for what is open.
_ANSWERED_BYTES = 512 * 1024
_EARLY_BYTES = 1024 * 1024
_SHOWN = 10
_SHOWN_TEXT = 200
_LONGEST_TIMER = timedelta(days=365)


class Book:
    """The events of a workflow's gates and their fold, with a timer for each deadline.

    Attributes:
        events: of this run; after continue-as-new they begin with what was carried.
        state: their fold. It holds claim tokens.
        early: signals that wait for their question.
        refusals: the last ones.
        refused: how many there were.
        closed: nothing is asked any more.
    """

    def __init__(self) -> None:
        self.events: list[GateEvent] = []
        self.state = GateState()
        self.early: list[Message] = []
        self.refusals: list[dict[str, JSON]] = []
        self.refused = 0
        self.closed = False
        self._alarms: dict[str, asyncio.Task[None]] = {}

    # -- what every step does --------------------------------------------------------------------------------

    def decide(self, decide: Decide[R]) -> R:
        """Decide by the workflow's time, and keep the events."""
        decided = decide(self.state, workflow.now())
        self._append(decided.events)
        self.changed()
        return decided.result

    def _append(self, events: Iterable[GateEvent]) -> None:
        new = list(events)
        self.state = fold(new, self.state, position=len(self.events))
        self.events += new

    def refuse(
        self, message: str | None, request_id: str | None, router_id: str | None, kind: str, reason: str
    ) -> None:
        """Keep a refusal, for the query that shows them."""
        refusal: dict[str, JSON] = {
            "at": workflow.now().isoformat(),
            "message": message,
            "requestId": request_id,
            "routerId": router_id,
            "kind": kind,
            "reason": reason,
        }
        self.refused += 1
        self.refusals = [*self.refusals[-(_KEPT_REFUSALS - 1) :], refusal]
        self.changed()

    def changed(self) -> None:
        """Emit a command, always, and keep one timer for each deadline."""
        live = [each for each in self.state.requests.values() if each.live]
        workflow.upsert_memo(
            {
                MEMO: {
                    "open": [_shown(GateView.of(each, workflow.now())) for each in live[:_SHOWN]],
                    "openCount": len(live),
                    "events": len(self.events),
                    "refused": self.refused,
                }
            }
        )
        if self.closed:
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
        self.decide(lambda state, now: protocol.expire(state, now=now))

    def keep(self, message: Message) -> list[Message]:
        """Keep a signal until its question is asked, and give back the oldest ones, for which there is no room."""
        self.early.append(message)
        sizes = [len(json.dumps(_early(each))) for each in self.early]
        too_many = max(0, len(sizes) - _KEPT_EARLY)
        while len(sizes) - too_many > 1 and sum(sizes[too_many:]) > _EARLY_BYTES:
            too_many += 1
        dropped, self.early = self.early[:too_many], self.early[too_many:]
        return dropped

    # -- the end of a run ------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ask nothing any more, and stop the timers."""
        self.closed = True
        for alarm in self._alarms.values():
            alarm.cancel()
        self._alarms.clear()

    def carry(self) -> dict[str, Any]:
        """All of it, for the next run."""
        return {
            "version": 1,
            "events": self._worth_carrying(),
            "early": [_early(each) for each in self.early],
            "refusals": list(self.refusals),
            "refused": self.refused,
        }

    def _worth_carrying(self) -> list[dict[str, Any]]:
        """Everything that is open, and of what has ended the latest, as far as there is room."""
        events = {
            key: [carried_event(event) for event in condense(GateState({key: each}))]
            for key, each in self.state.requests.items()
        }
        ended = [key for key, each in self.state.requests.items() if not each.live]
        room = _ANSWERED_BYTES
        for number, key in enumerate(reversed(ended)):
            room -= len(json.dumps(events[key]))
            if number and (room < 0 or number >= _KEPT_ANSWERED):
                for old in ended[: len(ended) - number]:
                    del events[old]
                break
        return [event for of_request in events.values() for event in of_request]

    def take_over(self, carried: Mapping[str, Any]) -> None:
        """Begin with what the run before carried."""
        if carried.get("version") != 1:
            raise UsageError("CallbackGates", "carried: pass what carry() gave the run before")
        self._append(restored(event) for event in carried["events"])
        self.early = [Message.parse(each) for each in carried["early"]]
        self.refusals, self.refused = list(carried["refusals"]), carried["refused"]
        self.changed()

    def history(self) -> list[dict[str, JSON]]:
        """The events as queries show them, without claim tokens (G12)."""
        wires = (event_to_wire(event) for event in self.events)
        return [{name: value for name, value in wire.items() if name != "claimToken"} for wire in wires]


def _early(message: Message) -> dict[str, JSON]:
    return {"kind": message.kind, **message.to_wire()}


def _shown(view: GateView) -> dict[str, JSON]:
    text = view.request.decision_text
    return {
        "requestId": view.request_id,
        "question": text if len(text) <= _SHOWN_TEXT else text[: _SHOWN_TEXT - 1] + "…",
        "status": view.status.value,
        "routerId": view.router_id,
        "deadline": None if view.deadline is None else view.deadline.isoformat(),
    }
