"""What a decision about gates is made of.

Source: semantics G3, G5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeAlias, TypeVar

from corrobo_core.gates.events import CallbackExpired, GateEvent
from corrobo_core.gates.state import GateState, RequestState

__all__ = ["Decide", "Decided", "expiry", "nothing"]

R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")


@dataclass(frozen=True)
class Decided(Generic[R_co]):
    """What was decided.

    Attributes:
        events: to append, all or none; empty: nothing changes.
        result: what the caller is answered, once they are appended.
        before: append only before this time of the store's clock; None: whenever.
    """

    events: tuple[GateEvent, ...]
    result: R_co
    before: datetime | None = None


Decide: TypeAlias = Callable[[GateState, datetime], Decided[R]]
"""A decision that waits for the state and the store's time."""


def nothing(result: R) -> Decided[R]:
    """An answer that changes nothing."""
    return Decided((), result)


def expiry(state: RequestState, now: datetime) -> CallbackExpired:
    """The event for a deadline that has passed."""
    return CallbackExpired(state.request.request_id, now)
