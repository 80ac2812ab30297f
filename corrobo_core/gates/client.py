"""Gates in this process's memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TypeVar

from corrobo_core.gates.approvals import RunPlan
from corrobo_core.gates.base import Gates
from corrobo_core.gates.calls import Call
from corrobo_core.gates.events import GateEvent, from_lines
from corrobo_core.gates.jsontext import MAX_BYTES, aware
from corrobo_core.gates.results import ExpireOk
from corrobo_core.gates.state import EMPTY, GateState, fold

__all__ = ["GateClient", "replay"]

R = TypeVar("R")


def _utc_now() -> datetime:
    return datetime.now(UTC)


class GateClient(Gates):
    """Gates whose events are kept in a list: for tests, and for questions that need not outlive the process.

    Args:
        clock: the store's clock; returns aware datetimes.
        plan: of the run, where approvals are bound to it.
        response_limit: bytes that an answer may have.

    Source: semantics section 9. Safe to use from every thread.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], datetime] = _utc_now,
        plan: RunPlan | None = None,
        response_limit: int = MAX_BYTES,
    ) -> None:
        super().__init__(plan=plan, response_limit=response_limit)
        self._clock = clock
        self._lock = threading.RLock()
        self._events: tuple[GateEvent, ...] = ()
        self._state: GateState = EMPTY

    def _run(self, call: Call[R]) -> R:
        with self._lock:
            decided = call.decide(self._state, self._now())
            self._record(decided.events)
            return decided.result

    def _record(self, events: Iterable[GateEvent]) -> None:
        new = tuple(events)
        self._state = fold(new, self._state, position=len(self._events))
        self._events += new

    def _look(self, gate: str | None) -> tuple[GateState, datetime]:
        with self._lock:
            return self._state, self._now()

    def _now(self) -> datetime:
        return aware(self._clock(), "clock")

    def history(self, request_id: str | None = None) -> tuple[GateEvent, ...]:
        """The events, of one request or of all, in their order. They hold claim tokens (G12)."""
        return tuple(each for each in self._events if request_id is None or each.request_id == request_id)

    def expire(self) -> ExpireOk:
        """Record every expiry that is due. Nobody needs to: whoever acts after a deadline does (G7)."""
        return self._run(self._calls.expire())

    @property
    def state(self) -> GateState:
        """The fold of the events. It holds claim tokens: show `list_pending` or `show` instead."""
        return self._state


def replay(
    history: str | Iterable[GateEvent],
    *,
    clock: Callable[[], datetime] = _utc_now,
    plan: RunPlan | None = None,
) -> GateClient:
    """A client in the state that a history leaves.

    Args:
        history: events, or JSON lines as `to_lines` or another implementation wrote them.
        clock: of the new client.
        plan: of the run, where approvals are bound to it.

    Raises:
        GateHistoryError: the history does not read, or an event does not fit. Not retryable.

    Source: semantics G3.
    """
    client = GateClient(clock=clock, plan=plan)
    client._record(from_lines(history) if isinstance(history, str) else history)
    return client
