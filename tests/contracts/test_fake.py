"""The fake does what its faults say, and counts what is there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from corrobo_core.testing import EntryState, FakeProvider, Fault, FaultKind, Listing, VirtualClock
from corrobo_core.testing._stage import Stage
from corrobo_core.testing.verify import verify_contract
from tests.contracts.good import GOOD

MINUTE = timedelta(minutes=1)
TICK = timedelta(microseconds=1)
SETTLED, PENDING, REJECTED = EntryState.SETTLED, EntryState.PENDING, EntryState.REJECTED


class Plain(FakeProvider[str]):
    def intent(self, number: int, /) -> tuple[str]:
        return (f"intent {number}",)

    def changed_intent(self) -> None:
        return None

    def states(self) -> list[EntryState]:
        return [entry.state for entry in self.read().entries]

    def sent(self, fault: Fault) -> object:
        """What a write with this fault comes to: its answer or its error."""
        self.plan(fault)
        try:
            return self.write("it")
        except BaseException as error:
            return error


@pytest.fixture
def fake() -> Plain:
    return Plain()


STOP = KeyboardInterrupt()


@pytest.mark.parametrize(
    ("kind", "comes_to", "at_once", "later"),
    [
        (FaultKind.RESPONSE_LOST, TimeoutError, [SETTLED], [SETTLED]),
        (FaultKind.REQUEST_LOST, TimeoutError, [], []),
        (FaultKind.LANDS_LATE, TimeoutError, [], [SETTLED]),
        (FaultKind.ANSWERS_FIRST, str, [], [SETTLED]),
        (FaultKind.REFUSED, ValueError, [], []),
        (FaultKind.PENDING, str, [PENDING], [SETTLED]),
        (FaultKind.PENDING_THEN_REJECTED, str, [PENDING], [REJECTED]),
        (FaultKind.REVERSED, str, [SETTLED], [REJECTED]),
        (FaultKind.CANCELLED_BEFORE, KeyboardInterrupt, [], []),
        (FaultKind.CANCELLED_AFTER, KeyboardInterrupt, [], [SETTLED]),
        (FaultKind.GARBLED, bytes, [], [SETTLED]),
    ],
)
def test_what_a_faulty_write_comes_to(
    fake: Plain, kind: FaultKind, comes_to: type, at_once: list[EntryState], later: list[EntryState]
) -> None:
    assert isinstance(fake.sent(Fault(kind, MINUTE, error=STOP, value=b"\xff")), comes_to)
    assert fake.states() == at_once
    assert fake.effects() == sum(state is not REJECTED for state in at_once)
    fake.clock.pass_by(MINUTE - TICK)
    assert fake.states() == at_once
    fake.clock.pass_by(TICK)
    assert fake.states() == later
    assert fake.effects() == sum(state is not REJECTED for state in later)
    assert fake.writes() == 1
    assert fake.write("again") == "again"
    assert fake.states() == [*later, SETTLED]


def test_what_a_faulty_read_comes_to(fake: Plain) -> None:
    fake.write("it")
    fake.clock.pass_by(MINUTE)
    for fault in (
        Fault(FaultKind.READ_FAILS),
        Fault(FaultKind.READ_CANCELLED, error=STOP),
        Fault(FaultKind.READ_PARTIAL),
        Fault(FaultKind.READ_STALE, MINUTE),
        Fault(FaultKind.READ_STALE, MINUTE + TICK),
    ):
        fake.plan(fault)
    with pytest.raises(TimeoutError):
        fake.read()
    with pytest.raises(KeyboardInterrupt):
        fake.read()
    assert fake.read() == Listing((), complete=False)
    assert fake.states() == [SETTLED]
    assert fake.states() == []
    assert fake.states() == [SETTLED]


def test_every_kind_of_fault_is_tried_above_and_used_by_some_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: set[FaultKind] = set()
    plan = Stage.plan

    def noting(stage: Stage, kind: FaultKind, *args: timedelta, **details: Any) -> None:
        planned.add(kind)
        plan(stage, kind, *args, **details)

    monkeypatch.setattr(Stage, "plan", noting)
    for good in GOOD:
        target = good.target()
        verify_contract(good.contract(target), target)
    assert planned == set(FaultKind)


def test_faults_wait_for_requests_of_their_kind_and_happen_as_often_as_said(fake: Plain) -> None:
    fake.plan(Fault(FaultKind.READ_PARTIAL, times=2))
    fake.plan(Fault(FaultKind.REQUEST_LOST))
    fake.plan(Fault(FaultKind.READ_STALE, MINUTE, times=None))
    with pytest.raises(TimeoutError):
        fake.write("lost")
    fake.write("it")
    assert [fake.read().complete for _ in range(2)] == [False, False]
    assert [fake.states() for _ in range(3)] == [[], [], []]


def test_a_key_is_known_from_the_request_on_and_forgotten_in_the_end() -> None:
    fake = Plain(keeps_keys=MINUTE)
    fake.plan(Fault(FaultKind.LANDS_LATE, 3 * MINUTE))
    with pytest.raises(TimeoutError):
        fake.write("first", key="k")
    assert fake.write("second", key="k") == "first"
    assert fake.write("another", key="l") == "another"
    fake.clock.pass_by(MINUTE - TICK)
    assert fake.write("third", key="k") == "first"
    fake.clock.pass_by(TICK)
    assert fake.write("fourth", key="k") == "fourth"
    fake.clock.pass_by(3 * MINUTE)
    assert [entry.record for entry in fake.read().entries] == ["first", "another", "fourth"]


def test_without_keys_nothing_is_deduplicated(fake: Plain) -> None:
    for _ in range(2):
        fake.write("it", key="k")
    assert fake.effects() == 2


def test_a_reset_fake_knows_nothing_but_the_time(fake: Plain) -> None:
    fake.write("it")
    fake.plan(Fault(FaultKind.REQUEST_LOST))
    fake.clock.pass_by(MINUTE)
    now = fake.clock()
    fake.reset()
    assert (fake.effects(), fake.writes(), fake.states(), fake.clock()) == (0, 0, [], now)
    fake.write("it")


# -- the clock -------------------------------------------------------------------------------------------------


def test_a_virtual_clock_stands_still_and_goes_forward_only() -> None:
    clock = VirtualClock(datetime(2030, 1, 1, tzinfo=UTC))
    assert clock() == clock() == datetime(2030, 1, 1, tzinfo=UTC)
    clock.pass_by(MINUTE)
    assert clock() == datetime(2030, 1, 1, 0, 1, tzinfo=UTC)
    with pytest.raises(ValueError, match="span: -1 day, 23:59:59 is negative"):
        clock.pass_by(timedelta(seconds=-1))
    with pytest.raises(ValueError, match="start: naive datetime; pass an aware one"):
        VirtualClock(datetime(2030, 1, 1))  # noqa: DTZ001  # that is what is refused
