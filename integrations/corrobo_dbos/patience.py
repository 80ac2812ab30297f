"""What to do between two passes of one effect: a generator, driven by the sync and the async step alike.

Source: semantics O5, C9.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from corrobo_core import Backoff, Disposition, EffectResult, LedgerNotReadyError, Reason

__all__ = ["Look", "Pause", "Program", "Reply", "until_decided"]

log = logging.getLogger("corrobo_dbos")

_LOOKING_HELPS = frozenset(
    {
        Reason.NOT_ESTABLISHED,
        Reason.ABSENCE_NOT_PROVEN,
        Reason.RECONCILE_FAILED,
        Reason.STILL_RUNNING,
        Reason.IN_FLIGHT_NOT_RULED_OUT,
    }
)
_ZERO = timedelta()
_SHORTEST_PAUSE = 0.05  # s; a ledger that says "again, now" is not asked in a tight loop
_LEDGER_GONE = Backoff(timedelta(seconds=1), timedelta(seconds=30))


@dataclass(frozen=True, slots=True)
class Look:
    """Make one pass. The reply is its result, or the `LedgerNotReadyError` that it raised.

    Args:
        now: read the world also before the recorded ``retry_at``.
    """

    now: bool = False


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait, unless the workflow is cancelled.

    Args:
        seconds: how long.
    """

    seconds: float


Reply: TypeAlias = EffectResult[Any] | LedgerNotReadyError
Program: TypeAlias = Generator[Look | Pause, Reply | None, EffectResult[Any]]


def until_decided(look_again_for: timedelta) -> Program:
    """Pass after pass, until one ends with something that waiting does not change.

    Args:
        look_again_for: how long evidence may stay unclear, in ledger time since the first look that gave no
            answer, before the caller is told.
    """
    now, failures, passes = False, 0, 0
    while True:
        reply = yield Look(now)
        if isinstance(reply, LedgerNotReadyError):
            # Nobody knows what happened; that is no outcome and must not become the step's (C9).
            pause = _LEDGER_GONE.delay(failures)
            failures += 1
            log.warning("effect step waits %.0f s for its ledger: %s", pause.total_seconds(), reply)
            yield Pause(pause.total_seconds())
            continue
        assert reply is not None
        result, failures, passes = reply, 0, passes + 1
        if result.disposition not in (None, Disposition.RETRY, Disposition.INVESTIGATE):
            return result
        pause, now = result.wait, False
        if result.disposition is Disposition.INVESTIGATE:
            left = _left_to_look(result, look_again_for)
            if result.reason not in _LOOKING_HELPS or (left <= _ZERO and (passes > 1 or not look_again_for)):
                return result
            # Before a person is called, there is a last look: also at what was left unclear long ago.
            now, pause = left < pause, min(pause, left)
        yield Pause(max(pause.total_seconds(), _SHORTEST_PAUSE))


def _left_to_look(result: EffectResult[Any], look_again_for: timedelta) -> timedelta:
    since = result.looking_since or result.now
    return since + look_again_for - result.now
