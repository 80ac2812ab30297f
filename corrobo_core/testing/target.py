"""What the contract suite asks of the outside system that a contract is tested against.

Source: semantics D2, O1, O4, L4.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Protocol

from corrobo_core.testing.clock import VirtualClock

__all__ = ["ConformanceTarget", "Fault", "FaultKind"]


class FaultKind(StrEnum):
    """What can go wrong with one request to the outside system, as its caller sees it.

    Writes:

    - ``RESPONSE_LOST``: carry it out, and fail as the client does when no answer comes.
    - ``REQUEST_LOST``: fail in the same way, and carry out nothing.
    - ``LANDS_LATE``: fail in the same way, and carry it out ``delay`` later.
    - ``ANSWERS_FIRST``: answer that all is well, and carry it out ``delay`` later.
    - ``REFUSED``: refuse for good, as the client sees a refusal, and carry out nothing.
    - ``PENDING``: carry it out; reads show it as pending, and from ``delay`` on as settled.
    - ``PENDING_THEN_REJECTED``: likewise, and from ``delay`` on as rejected: no effect any more.
    - ``REVERSED``: carry it out; from ``delay`` on it is rejected.
    - ``CANCELLED_BEFORE``: carry out nothing, and raise ``error``.
    - ``CANCELLED_AFTER``: raise ``error``, and carry it out ``delay`` later.
    - ``GARBLED``: return ``value`` instead of an answer, and carry it out ``delay`` later.

    Reads:

    - ``READ_FAILS``: fail as the client does when no answer comes.
    - ``READ_CANCELLED``: raise ``error``.
    - ``READ_STALE``: show what was there ``delay`` ago.
    - ``READ_PARTIAL``: find nothing, and say in this provider's way that something may be missing.
    """

    RESPONSE_LOST = "response_lost"
    REQUEST_LOST = "request_lost"
    LANDS_LATE = "lands_late"
    ANSWERS_FIRST = "answers_first"
    REFUSED = "refused"
    PENDING = "pending"
    PENDING_THEN_REJECTED = "pending_then_rejected"
    REVERSED = "reversed"
    CANCELLED_BEFORE = "cancelled_before"
    CANCELLED_AFTER = "cancelled_after"
    GARBLED = "garbled"
    READ_FAILS = "read_fails"
    READ_CANCELLED = "read_cancelled"
    READ_STALE = "read_stale"
    READ_PARTIAL = "read_partial"

    @property
    def of_read(self) -> bool:
        """It happens to reads; the others happen to writes."""
        return self.value.startswith("read_")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong with the next requests of its kind.

    Args:
        kind: what goes wrong.
        delay: on the target's clock; see `FaultKind`.
        error: what to raise, for the cancelled ones.
        value: what to return, for ``GARBLED``.
        times: how many requests it happens to; None: to all from now on.
    """

    kind: FaultKind
    delay: timedelta = timedelta()
    error: BaseException | None = None
    value: Any = None
    times: int | None = 1


class ConformanceTarget(Protocol):
    """The outside system of a contract under test: a fake that misbehaves on demand, and counts.

    `FakeProvider` is one to build upon. What a target cannot do it leaves out of ``supports``: scenarios that
    need it are reported as not applicable, never as passed.

    Attributes:
        clock: the time of the fake; the suite moves it, and its ledger runs on it.
        supports: the faults that it can be told to have.
        lands_within: the longest time after a request was sent that its effect may still appear; None if it
            is not known.
        reads_lag: how stale its reads can be at worst; zero: never.
        keeps_keys: how long it deduplicates by idempotency key; zero: not at all.
        page_size: how many effects one read shows; None: all of them.
    """

    clock: VirtualClock
    supports: Collection[FaultKind]
    lands_within: timedelta | None
    reads_lag: timedelta
    keeps_keys: timedelta
    page_size: int | None

    def reset(self) -> None:
        """Forget all effects, keys, counts and faults. Called before each scenario."""
        ...

    def intent(self, number: int, /) -> tuple[Any, ...]:
        """What the contract is called with for one decision: the same each time for the same number.

        Different numbers are different decisions, as alike as two can be: the same customer, order, amount.
        """
        ...

    def changed_intent(self) -> tuple[Any, ...] | None:
        """``intent(1)`` with the same identity and another content, such as another amount; None: there is none."""
        ...

    def plan(self, fault: Fault, /) -> None:
        """Let this go wrong with the next requests of its kind; after faults that were planned before."""
        ...

    def effects(self) -> int:
        """How many effects are there now: landed, and not rejected. Counted by the fake itself."""
        ...

    def writes(self) -> int:
        """How many requests that write it was sent, whatever became of them."""
        ...
