"""A process stands still at any step, others go on without it, and then it goes on too (L9, C2, C5; row A02)."""

from __future__ import annotations

import threading

import pytest

from corrobo_core import Disposition, EffectResult, EffectRunner
from corrobo_core.policy import Policy
from tests.crash.outside import NEVER, OK, Answer, Outside, Scenario
from tests.crash.process import Process, Seat, Side, credit_effect
from tests.crash.storages import Memory

LOST = Scenario("response lost", (Answer(raises=lambda: ConnectionResetError("by peer")), OK))
LATE = Scenario("lands late", (Answer(0.5, lambda: TimeoutError("no answer")), OK))
GONE = Scenario("never arrives", (Answer(NEVER, lambda: TimeoutError("no answer")), OK))
FINE = Scenario("first attempt", (OK,))
STEPS = ["Open", "execute", "observe", "reconcile", "Record"]

# What remains (L9): a pause inside the hook, after the check and before the system call. Nobody can close it.
PLACES: list[tuple[int, Side]] = [
    (number, side)
    for number, name in enumerate(STEPS, 1)
    for side in ("before", "after")
    if (name, side) != ("execute", "before")
]


class Zombie:
    """A process in a thread that stands still at one step until it is told to go on."""

    def __init__(self, storage: Memory, scenario: Scenario, outside: Outside, at: int, side: Side) -> None:
        self.stands, self._go_on = threading.Event(), threading.Event()
        self.process = Process(storage.ledger, at, side, what=self._stand_still)
        seat = Seat()
        seat.process = self.process
        effect = credit_effect(scenario, outside, seat, storage.window)
        self.results: list[EffectResult[int]] = []
        self._thread = threading.Thread(
            target=lambda: self.results.append(EffectRunner(self.process.ledger).run(effect, "r1")), daemon=True
        )
        self._thread.start()
        assert self.stands.wait(10)

    def _stand_still(self) -> None:
        self.stands.set()
        assert self._go_on.wait(10)

    def go_on(self) -> EffectResult[int]:
        self._go_on.set()
        self._thread.join(10)
        assert len(self.results) == 1, "it raised"
        return self.results[0]


def others(storage: Memory, scenario: Scenario, outside: Outside, rounds: int) -> EffectResult[int]:
    """What another process comes to in so many passes, each when it is due."""
    seat = Seat()
    seat.process = Process(storage.ledger)
    effect = credit_effect(scenario, outside, seat, storage.window)
    for _ in range(rounds):
        result = EffectRunner(seat.process.ledger).run(effect, "r1")
        if result.disposition is Disposition.COMPLETE:
            assert outside.landed("r1") == 1
            break
        storage.wait(max(result.wait.total_seconds(), 0.01))
    return result


def play(
    storage: Memory, scenario: Scenario, at: int, side: Side, *, taken_for_dead: bool, stands_for: float
) -> Outside:
    outside = Outside(storage.now, storage.window)
    zombie = Zombie(storage, scenario, outside, at, side)
    if taken_for_dead:
        for nonce in zombie.process.nonces:
            storage.ledger.pass_ended(nonce)
    storage.wait(stands_for * storage.window)
    others(storage, scenario, outside, rounds=8)
    mine = zombie.go_on()
    if mine.disposition is Disposition.COMPLETE:
        assert outside.landed("r1") == 1
    end = others(storage, scenario, outside, rounds=20)
    storage.wait(2 * storage.window)
    assert end.disposition is Disposition.COMPLETE
    return outside


@pytest.mark.parametrize("stands_for", [0.1, 0.6, 1.01, 5.0])
@pytest.mark.parametrize("taken_for_dead", [False, True], ids=["alive", "taken for dead"])
@pytest.mark.parametrize(("at", "side"), PLACES)
@pytest.mark.parametrize("scenario", [FINE, LOST, LATE, GONE], ids=lambda scenario: scenario.name)
def test_L9_a_process_that_stood_still_makes_no_second_effect(
    memory_storage: Memory, scenario: Scenario, at: int, side: Side, taken_for_dead: bool, stands_for: float
) -> None:
    outside = play(memory_storage, scenario, at, side, taken_for_dead=taken_for_dead, stands_for=stands_for)
    assert outside.effects("r1") == 1


def test_without_the_check_before_the_send_there_are_two_effects(
    memory_storage: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: the reservation is as good an hour later as at once."""
    monkeypatch.setattr(Policy, "start_allowance", None)
    with pytest.raises(AssertionError, match="assert 2 == 1"):
        play(memory_storage, FINE, 1, "after", taken_for_dead=True, stands_for=5.0)
