"""Time that passes only when somebody says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from corrobo_core.canonical import idempotency_key
from corrobo_core.clocks import stopwatch
from corrobo_core.commands import Claim, LedgerCommand, Open, Opened, Reading, Written
from corrobo_core.frozen import evolve
from corrobo_core.ledgers.memory import MemoryLedger
from corrobo_core.records import OperationKey

__all__ = ["VirtualClock", "VirtualLedger"]

R = TypeVar("R")

_NEVER = float("inf")
_START = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualClock:
    """A clock that stands still until it is moved. Calling it gives the time, as `MemoryLedger` wants it.

    Args:
        start: its first reading, aware; the first of January 2026 (UTC) unless given.

    Raises:
        ValueError: a naive ``start``. Not retryable.
    """

    def __init__(self, start: datetime = _START) -> None:
        if start.tzinfo is None:
            raise ValueError("VirtualClock start: naive datetime; pass an aware one")
        self._now = start

    def __call__(self) -> datetime:
        """The time, aware."""
        return self._now

    def pass_by(self, span: timedelta) -> None:
        """Move forward by ``span``.

        Raises:
            ValueError: it is negative. Not retryable.
        """
        if span < timedelta():
            raise ValueError(f"VirtualClock span: {span} is negative, and time does not go back")
        self._now += span


class VirtualLedger(MemoryLedger):
    """A memory ledger for which no real time counts, however slow the machine.

    Args:
        clock: the ledger's clock.
    """

    # A reply is read at the end of time on the stopwatch, so that nothing elapses after it on the ledger's clock.

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock=clock)
        self._virtual = clock
        self._pause: tuple[timedelta, bool] | None = None

    def pause(self, span: timedelta, *, noticed: bool) -> None:
        """Let the process stand still after its next reservation, before anything is sent (L9).

        Args:
            span: for so long.
            noticed: its stopwatch counts the pause; else it is just short enough not to matter.
        """
        self._pause = span, noticed

    def perform(self, command: LedgerCommand[R], /) -> R:
        """Answer one command."""
        reply: Any = super().perform(command)
        reading: Reading | None = getattr(reply, "reading", None)
        if reading is None:
            return reply  # type: ignore[no-any-return]
        sent = _NEVER
        if self._pause is not None and _reserves(command, reply):
            (span, noticed), self._pause = self._pause, None
            self._virtual.pass_by(span)
            sent = stopwatch() - span.total_seconds() if noticed else _NEVER
        answer: R = evolve(reply, reading=Reading(reading.now, sent, _NEVER))
        return answer

    def idempotency_key(self, key: OperationKey, /) -> str:
        """The same in every ledger of the suite, as in every process of one application (I5)."""
        return idempotency_key("contract suite", key.namespace, key.type, key.operation_id)


def _reserves(command: LedgerCommand[Any], reply: Any) -> bool:
    if isinstance(command, Open):
        return isinstance(reply, Opened) and reply.mine and reply.operation.reserved
    return isinstance(command, Claim) and isinstance(reply, Written)
