"""One time for all ledgers, moved by the test alone.

Memory takes a clock. SQLite's clock is a function of ours, and so is every stopwatch: both are replaced where they
were imported. PostgreSQL's clock stays PostgreSQL's: the statements are sent as they are shipped, and find another
``clock_timestamp()`` on the database's search path, one that reads a table of one row (see `stores`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from corrobo_core import clocks
from corrobo_core.ledgers import _sqlite_file

START = datetime(2026, 1, 1, tzinfo=UTC)


class Time:
    """Seconds since the beginning, and how far the ledgers' clocks were set back."""

    def __init__(self) -> None:
        self.elapsed, self.behind = 0.0, 0.0

    def stopwatch(self) -> float:
        """What no clock step touches."""
        return self.elapsed

    def now(self) -> datetime:
        """What the ledgers' clocks show."""
        return self.at(self.elapsed)

    def at(self, elapsed: float) -> datetime:
        """What they show, or showed if nobody has set them back since, at a stopwatch time."""
        return START + timedelta(seconds=elapsed - self.behind)

    def pass_by(self, seconds: float) -> None:
        self.elapsed += seconds

    def set_back(self, seconds: float) -> None:
        """Somebody corrects the clock of the database's host."""
        self.behind += seconds

    def reset(self, to: tuple[float, float] = (0.0, 0.0)) -> None:
        self.elapsed, self.behind = to

    @property
    def mark(self) -> tuple[float, float]:
        return self.elapsed, self.behind


@contextmanager
def virtual(time: Time) -> Iterator[None]:
    """Every stopwatch and SQLite's clock show this time."""
    stopwatch, clock = clocks.stopwatch, _sqlite_file.clock
    replaced = (
        ("stopwatch", stopwatch, time.stopwatch),
        ("clock", clock, lambda: _sqlite_file.as_stored(time.now())),
    )
    with pytest.MonkeyPatch.context() as patch:
        for module in [m for name, m in sys.modules.items() if name.startswith("corrobo_core")]:
            for name, real, ours in replaced:
                if getattr(module, name, None) is real:
                    patch.setattr(module, name, ours)
        yield
