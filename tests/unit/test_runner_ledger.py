"""When the ledger fails, when several run at once, when a pass comes too late (L1, L5, L9, C1, C2, C5, C9)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from corrobo_core import (
    Attempt,
    Disposition,
    LedgerUnavailable,
    Outcome,
    Reason,
)
from corrobo_core.commands import Claim, KeepLate, LedgerCommand, Open, Record
from tests.unit.harness import Clock, Harness
from tests.unit.world import WatchedLedger, World, failing

# -- when the ledger fails (L7, C2, C9) -----------------------------------------------------------------------


SYNC = Harness("sync")


def failing_at(kind: type[LedgerCommand[Any]], *, once: bool = True) -> Callable[[LedgerCommand[Any]], None]:
    left = [1 if once else 10**6]

    def hook(command: LedgerCommand[Any]) -> None:
        if isinstance(command, kind) and left[0]:
            left[0] -= 1
            raise LedgerUnavailable("memory", "gone")

    return hook


def test_L1_a_reservation_that_failed_sends_nothing(harness: Harness, ledger: WatchedLedger, world: World) -> None:
    ledger.before = failing_at(Open)
    credit = harness.effect(world)
    with pytest.raises(LedgerUnavailable):
        harness.run(ledger, credit)
    assert (world.sent, ledger._running) == ([], set())
    assert harness.run(ledger, credit).disposition is Disposition.COMPLETE


def test_L1_a_reservation_whose_reply_was_lost_sends_nothing_and_is_given_up(
    harness: Harness, ledger: WatchedLedger, clock: Clock, world: World
) -> None:
    ledger.after = failing_at(Open)
    credit = harness.effect(world)
    with pytest.raises(LedgerUnavailable):
        harness.run(ledger, credit)
    stored = next(iter(ledger._rows.values()))
    assert (stored.reserved, stored.owner) == (True, None)
    assert stored.latest.abandoned is not None
    assert harness.run(ledger, credit).reason == Reason.SETTLING
    clock.pass_by(20)
    assert harness.run(ledger, credit).disposition is Disposition.COMPLETE
    assert world.sent == ["r1"]


@pytest.mark.parametrize("side", ["before", "after"])
def test_C9_a_record_that_failed_leaves_the_attempt_to_the_next_pass(
    harness: Harness, ledger: WatchedLedger, world: World, side: str
) -> None:
    setattr(ledger, side, failing_at(Record))
    credit = harness.effect(world)
    with pytest.raises(LedgerUnavailable):
        harness.run(ledger, credit)
    stored = next(iter(ledger._rows.values()))
    assert stored.closed is (side == "after")
    assert (stored.owner, ledger._running) == (None, set()), "nobody need wait for this process to exit"
    assert harness.run(ledger, credit).disposition is Disposition.COMPLETE
    assert world.sent == ["r1"]


def test_L5_after_a_crash_the_hooks_are_told_that_nothing_was_recorded(
    harness: Harness, ledger: WatchedLedger, world: World
) -> None:
    outcomes: list[Outcome | None] = []

    def observe(attempt: Attempt, reference: str) -> Any:
        outcomes.append(attempt.outcome)
        return world.find(reference)

    credit = harness.effect(world, observe=observe)
    ledger.before = failing_at(Record)
    with pytest.raises(LedgerUnavailable):
        harness.run(ledger, credit)
    harness.run(ledger, credit)
    assert outcomes == [Outcome.RESPONDED, Outcome.UNRECORDED]


# -- several at once (C1, C2, C5) -----------------------------------------------------------------------------


def test_C1_while_an_attempt_is_made_others_are_told_when_to_come_back(
    harness: Harness, ledger: WatchedLedger, world: World
) -> None:
    others: list[Any] = []

    def execute(attempt: Attempt, reference: str) -> int:
        if not others:
            others.append(SYNC.run(ledger, SYNC.effect(world)))
            others.append(SYNC.observe(ledger, SYNC.effect(world)))
        return world.credit(reference)

    assert harness.run(ledger, harness.effect(world, execute=execute)).disposition is Disposition.COMPLETE
    for other in others:
        assert (other.reason, other.disposition) == (Reason.IN_PROGRESS, None)
        assert other.wait == timedelta(milliseconds=250)
    assert world.sent == ["r1"]


def test_C5_O6_a_slow_attempt_that_others_looked_at_keeps_the_effect_that_it_saw(
    harness: Harness, ledger: WatchedLedger, clock: Clock, world: World
) -> None:
    others: list[Any] = []

    def execute(attempt: Attempt, reference: str) -> int:
        clock.pass_by(3_600)
        others.append(SYNC.run(ledger, SYNC.effect(world)))
        return world.credit(reference)

    result = harness.run(ledger, harness.effect(world, execute=execute))
    assert [other.reason for other in others] == [Reason.STILL_RUNNING]
    assert (result.disposition, result.attempts[0].outcome) == (Disposition.COMPLETE, Outcome.RESPONDED)
    assert world.sent == ["r1"]


def test_C2_A02_a_late_completion_is_kept_as_evidence_and_decides_nothing(
    harness: Harness, ledger: WatchedLedger, clock: Clock, world: World
) -> None:
    """Its process was taken for dead; another one looked, found nothing, and made attempt 2."""
    others: list[Any] = []

    def execute(attempt: Attempt, reference: str) -> str:
        if attempt.number == 1:
            clock.pass_by(3_600)
            ledger._running.clear()
            others.append(SYNC.run(ledger, SYNC.effect(world)))
        return "late"

    result = harness.run(ledger, harness.effect(world, execute=execute))
    assert others[0].disposition is Disposition.COMPLETE
    assert [attempt.number for attempt in others[0].attempts] == [1, 2]
    assert (result.disposition, result.attempts) == (Disposition.COMPLETE, others[0].attempts)
    late = ledger.late
    assert [(one.attempt, one.nonce) for one in late] == [(1, others[0].attempts[0].nonce)]
    assert isinstance(late[0].evidence, dict)
    assert late[0].evidence["response"] == "late"
    assert isinstance(ledger.commands[-2], KeepLate)
    assert world.sent == ["r1"]


def test_no_pass_stays_registered(harness: Harness, ledger: WatchedLedger, world: World) -> None:
    ends: list[Any] = [{}, {"execute": failing(ValueError())}, {"execute": failing(KeyboardInterrupt())}]
    for n, hooks in enumerate(ends):
        credit = harness.effect(world, **hooks)
        with contextlib.suppress(KeyboardInterrupt):
            harness.run(ledger, credit, f"r{n}")
        assert ledger._running == set()


# -- too late to send (L9) ------------------------------------------------------------------------------------


def stopping(ledger: WatchedLedger, clock: Clock, times: int) -> Callable[[LedgerCommand[Any]], None]:
    """The process stands still for a minute right after it has reserved an attempt, so many times."""
    left = [times]

    def stopped(command: LedgerCommand[Any]) -> None:
        if isinstance(command, Open | Claim) and next(iter(ledger._rows.values())).reserved and left[0]:
            left[0] -= 1
            clock.pass_by(60)

    return stopped


@pytest.mark.parametrize("pauses", [1, 2])
def test_L9_a_pass_that_was_stopped_before_it_sent_sends_once(
    harness: Harness, ledger: WatchedLedger, clock: Clock, world: World, pauses: int
) -> None:
    ledger.after = stopping(ledger, clock, pauses)
    result = harness.run(ledger, harness.effect(world, max_attempts=1))
    assert [attempt.outcome for attempt in result.attempts] == [*[Outcome.NOT_SENT] * pauses, Outcome.RESPONDED]
    assert result.disposition is Disposition.COMPLETE
    assert world.sent == ["r1"]


def test_L9_a_pass_that_is_stopped_every_time_sends_nothing(
    harness: Harness, ledger: WatchedLedger, clock: Clock, world: World
) -> None:
    ledger.after = stopping(ledger, clock, 3)
    credit = harness.effect(world)
    result = harness.run(ledger, credit)
    assert (result.reason, result.disposition) == (Reason.PAUSED, None)
    assert [attempt.outcome for attempt in result.attempts] == [Outcome.NOT_SENT] * 3
    assert world.sent == []
    assert harness.run(ledger, credit).disposition is Disposition.COMPLETE
    assert world.sent == ["r1"]


def test_L9_without_a_window_a_pause_is_no_reason_not_to_send(
    harness: Harness, ledger: WatchedLedger, clock: Clock, world: World
) -> None:
    ledger.after = stopping(ledger, clock, 1)
    assert (
        harness.run(ledger, harness.effect(world, in_flight_window=None)).attempts[0].outcome is Outcome.RESPONDED
    )


def test_L9_a_send_that_begins_exactly_in_time_is_made(ledger: WatchedLedger, clock: Clock, world: World) -> None:
    harness = Harness("sync")

    def stopped_for(seconds: float) -> Callable[[LedgerCommand[Any]], None]:
        return lambda command: clock.pass_by(seconds) if isinstance(command, Open) else None

    ledger.after = stopped_for(5)
    assert harness.run(ledger, harness.effect(world)).attempts[0].outcome is Outcome.RESPONDED
    ledger.after = stopped_for(5.001)
    outcomes = [attempt.outcome for attempt in harness.run(ledger, harness.effect(world), "r2").attempts]
    assert outcomes[0] is Outcome.NOT_SENT
