"""An outside system in memory that misbehaves on demand: what a fake of your provider can be built upon."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Generic, TypeVar

from corrobo_core.testing.clock import VirtualClock
from corrobo_core.testing.target import Fault, FaultKind

__all__ = ["Entry", "EntryState", "FakeProvider", "Listing"]

T = TypeVar("T")

_NONE = timedelta()
_DELAYS_LANDING = (
    FaultKind.LANDS_LATE,
    FaultKind.ANSWERS_FIRST,
    FaultKind.CANCELLED_AFTER,
    FaultKind.GARBLED,
)
_STAYS_PENDING = (FaultKind.PENDING, FaultKind.PENDING_THEN_REJECTED)
_ENDS_REJECTED = (FaultKind.PENDING_THEN_REJECTED, FaultKind.REVERSED)
_GIVES_NO_ANSWER = (FaultKind.RESPONSE_LOST, FaultKind.LANDS_LATE)


class EntryState(StrEnum):
    """What a provider says about something that it was told to do."""

    PENDING = "pending"
    SETTLED = "settled"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """One record as a read shows it."""

    record: T
    state: EntryState


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """What a read shows: oldest first. ``complete``: nothing that is there was left out."""

    entries: tuple[Entry[T], ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class _Kept(Generic[T]):
    record: T
    key: str | None
    accepted: datetime
    lands: datetime
    settles: datetime
    rejected: datetime | None

    def state(self, when: datetime) -> EntryState | None:
        if when < self.lands:
            return None
        if self.rejected is not None and when >= self.rejected:
            return EntryState.REJECTED
        return EntryState.SETTLED if when >= self.settles else EntryState.PENDING


class FakeProvider(Generic[T]):
    """The part of a `ConformanceTarget` that is the same for every provider: time, faults, counting.

    A subclass adds the provider's own requests, made of `write` and `read`, the methods ``intent`` and
    ``changed_intent``, and, if its client has errors of its own, `no_answer` and `refusal`.

    Args:
        clock: of the provider; a new one unless given.
        lands_within: the longest time after a request was sent that its effect may still appear.
        reads_lag: how stale reads can be at worst.
        keeps_keys: how long keys are remembered and writes deduplicated by them; zero: not at all.
        page_size: how many entries one read of the subclass shows; None: all.
    """

    supports: Collection[FaultKind] = frozenset(FaultKind)

    def __init__(
        self,
        clock: VirtualClock | None = None,
        *,
        lands_within: timedelta | None = None,
        reads_lag: timedelta = _NONE,
        keeps_keys: timedelta = _NONE,
        page_size: int | None = None,
    ) -> None:
        self.clock, self.page_size = clock or VirtualClock(), page_size
        self.lands_within, self.reads_lag, self.keeps_keys = lands_within, reads_lag, keeps_keys
        self._kept: list[_Kept[T]] = []
        self._planned: list[Fault] = []
        self._writes = 0

    # -- for the provider's own requests ---------------------------------------------------------------------

    def write(self, record: T, *, key: str | None = None) -> T:
        """One request that writes: keep the record as an effect, unless a planned fault says otherwise.

        Args:
            record: what to keep.
            key: the idempotency key, if this provider takes one.

        Returns:
            the record, or the one that was kept under the same key.

        Raises:
            Exception: what `no_answer` or `refusal` gives, or a fault's own ``error``.
        """
        self._writes += 1
        fault = self._next(of_read=False)
        kind = fault.kind if fault else None
        if kind is FaultKind.REQUEST_LOST:
            raise self.no_answer()
        if kind is FaultKind.REFUSED:
            raise self.refusal()
        if fault and kind is FaultKind.CANCELLED_BEFORE:
            raise fault.error or self.no_answer()
        kept = self._keep(record, key, fault)
        if kind in _GIVES_NO_ANSWER:
            raise self.no_answer()
        if fault and kind is FaultKind.CANCELLED_AFTER:
            raise fault.error or self.no_answer()
        if fault and kind is FaultKind.GARBLED:
            garbled: Any = fault.value
            return garbled  # type: ignore[no-any-return]  # anything, as a provider's answer can be
        return kept.record

    def read(self) -> Listing[T]:
        """One request that reads everything.

        Raises:
            Exception: what `no_answer` gives, or a fault's own ``error``.
        """
        fault = self._next(of_read=True)
        kind = fault.kind if fault else None
        if kind is FaultKind.READ_FAILS:
            raise self.no_answer()
        if fault and kind is FaultKind.READ_CANCELLED:
            raise fault.error or self.no_answer()
        if kind is FaultKind.READ_PARTIAL:
            return Listing((), complete=False)
        when = self.clock() - (fault.delay if fault else _NONE)
        shown = [(kept.record, kept.state(when)) for kept in self._kept]
        return Listing(tuple(Entry(record, state) for record, state in shown if state), complete=True)

    def no_answer(self) -> Exception:
        """What the provider's client raises when no answer comes."""
        return TimeoutError("no answer")

    def refusal(self) -> Exception:
        """What the provider's client raises when a request is refused for good."""
        return ValueError("refused")

    # -- for the suite ---------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Forget everything but the time."""
        self._kept.clear()
        self._planned.clear()
        self._writes = 0

    def plan(self, fault: Fault, /) -> None:
        """Let this go wrong with the next requests of its kind."""
        self._planned.append(fault)

    def effects(self) -> int:
        """How many effects are there now: landed, and not rejected."""
        return sum(kept.state(self.clock()) in (EntryState.PENDING, EntryState.SETTLED) for kept in self._kept)

    def writes(self) -> int:
        """How many requests that write were made, whatever became of them."""
        return self._writes

    # -- inside ----------------------------------------------------------------------------------------------

    def _next(self, *, of_read: bool) -> Fault | None:
        for index, fault in enumerate(self._planned):
            if fault.kind.of_read is of_read:
                left = None if fault.times is None else fault.times - 1
                self._planned[index : index + 1] = [] if left == 0 else [replace(fault, times=left)]
                return fault
        return None

    def _keep(self, record: T, key: str | None, fault: Fault | None) -> _Kept[T]:
        now = self.clock()
        known = [kept for kept in self._kept if key is not None and kept.key == key]
        if known and now - known[-1].accepted < self.keeps_keys:
            return known[-1]
        kind, delay = (fault.kind, fault.delay) if fault else (None, _NONE)
        kept = _Kept(
            record,
            key,
            accepted=now,
            lands=now + (delay if kind in _DELAYS_LANDING else _NONE),
            settles=now + (delay if kind in _STAYS_PENDING else _NONE),
            rejected=now + delay if kind in _ENDS_REJECTED else None,
        )
        self._kept.append(kept)
        return kept
