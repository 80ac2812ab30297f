"""The stopwatch: the one process-local clock that time bounds are measured with."""

from __future__ import annotations

import time

__all__ = ["stopwatch"]

# Linux's CLOCK_MONOTONIC stands still while the machine sleeps; a window does not (L9).
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def stopwatch() -> float:
    """Seconds since some point in the past: never goes back, and counts suspend where the system can.

    Source: semantics L9, D4a.
    """
    return time.clock_gettime(_CLOCK)
