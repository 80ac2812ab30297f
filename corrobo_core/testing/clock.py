"""Time that passes only when somebody says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["VirtualClock"]

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
