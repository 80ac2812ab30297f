"""The stopwatch: the one process-local clock that time bounds are measured with."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

__all__ = ["stopwatch"]

# Linux's CLOCK_MONOTONIC stands still while the machine sleeps; a window does not (L9).
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


# A partial, since a pass reads it ten times.
stopwatch: Callable[[], float] = partial(time.clock_gettime, _CLOCK)
"""Seconds since some point in the past: never goes back, and counts suspend where the system can (L9, D4a)."""
