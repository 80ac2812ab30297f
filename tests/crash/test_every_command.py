"""A process ends before or after any step; others go on. Never two effects or a wrong COMPLETE, always an end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from corrobo_core import AsyncEffectRunner, Disposition, Effect, EffectResult, EffectRunner, decide
from corrobo_core.decide import TABLE
from corrobo_core.ledgers.ports import Ledger
from corrobo_core.records import Evidence, Reason
from tests.crash.outside import SCENARIOS, Outside, Scenario
from tests.crash.process import Killed, Process, Seat, Side, credit_effect
from tests.crash.storages import Memory, Storage, opened

SIDES: tuple[Side, Side] = ("before", "after")
ENDS = (Disposition.COMPLETE, Disposition.REPLAN)


def run_sync(ledger: Any, made: Effect[[str], int], reference: str) -> EffectResult[int]:
    return EffectRunner(ledger).run(made, reference)


def run_async(ledger: Any, made: Effect[[str], int], reference: str) -> EffectResult[int]:
    return asyncio.run(AsyncEffectRunner(ledger).run(made, reference))


class Stage:
    """One scenario on one storage."""

    def __init__(self, storage: Storage, scenario: Scenario) -> None:
        self.storage, self.scenario = storage, scenario
        self.outside = Outside(storage.now, storage.window)
        self.seat = Seat()
        self.effect = credit_effect(scenario, self.outside, self.seat, storage.window)


class Case:
    """One operation: processes make its passes one after the other, and one of them ends at the chosen step.

    Args:
        stage: where.
        at: the step, counted over all passes; 0: none.
        side: before or after it.
        found_dead_after: how long it takes others to see that it has ended, as a share of the window.
    """

    def __init__(self, stage: Stage, at: int, side: Side, found_dead_after: float = 0) -> None:
        self.stage, self.storage, self.outside = stage, stage.storage, stage.outside
        self.at, self.side, self.found_dead_after = at, side, found_dead_after
        self.reference = f"{stage.scenario.name} {side} {at}"
        self.steps: list[str] = []
        self.killed = False
        self.result: EffectResult[int] | None = None
        self._next = self.storage.now()
        self._unburied: tuple[float, Ledger, Process] | None = None

    @property
    def done(self) -> bool:
        return self.result is not None and self.result.disposition in ENDS and self._unburied is None

    @property
    def due(self) -> float:
        """When there is something to do for it."""
        return min(self._next, self._unburied[0]) if self._unburied else self._next

    def go_on(self, ledger: Ledger, run: Callable[[Any, Effect[[str], int], str], EffectResult[int]]) -> None:
        """One more pass if it is time; ``ledger`` is that of the process that lives on."""
        self._bury()
        if self.storage.now() < self._next or self.done:
            return
        if self.killed or not self.at:
            self._one_pass(Process(ledger, done=len(self.steps)), run)
            return
        mine = self.storage.open()
        process = Process(mine, self.at, self.side, done=len(self.steps))
        try:
            self._one_pass(process, run)
        except Killed:
            self.killed = True
            self._next = self.storage.now()
            found = self.storage.now() + self.found_dead_after * self.storage.window
            self._unburied = found, mine, process
            self._bury()
        else:
            self.storage.close(mine, process)

    def _one_pass(self, process: Process, run: Callable[[Any, Effect[[str], int], str], EffectResult[int]]) -> None:
        self.stage.seat.process = process
        try:
            self.result = run(process.ledger, self.stage.effect, self.reference)
        finally:
            self.steps += process.steps
        if self.result.disposition is Disposition.COMPLETE:
            assert self.outside.landed(self.reference) == 1, f"{self.reference}: COMPLETE, and it is not there"
        self._next = self.storage.now() + self.result.wait.total_seconds()

    def _bury(self) -> None:
        if self._unburied is not None and self.storage.now() >= self._unburied[0]:
            _, ledger, process = self._unburied
            self._unburied = None
            self.storage.close(ledger, process)

    def judge(self) -> None:
        """Everything has landed that ever will."""
        assert self.result is not None
        story = f"{self.reference}: {self.steps}"
        assert self.outside.effects(self.reference) == self.stage.scenario.effects, story
        assert self.outside.landed(self.reference) == self.stage.scenario.effects, story
        assert self.result.disposition is self.stage.scenario.disposition, story
        assert self.result.evidence is (
            Evidence.APPLIED if self.stage.scenario.effects else Evidence.NOT_APPLIED
        ), story


def play(stage: Stage, cases: list[Case], run: Any = run_sync) -> None:
    """Make passes until every operation has ended, then wait for whatever may still land, and judge."""
    storage = stage.storage
    gives_up = storage.now() + max(60 * storage.window, 30)
    with opened(storage) as living:
        while not all(case.done for case in cases):
            for case in cases:
                case.go_on(living, run)
            left = [case for case in cases if not case.done]
            assert storage.now() < gives_up, f"never end: {[(case.reference, case.result) for case in left]}"
            due = min((case.due for case in left), default=0.0)
            storage.wait(max(due - storage.now(), storage.window / 25))
        storage.wait(storage.window)
        stage.seat.process = Process(living)
        for case in cases:
            case.judge()
            again = run(living, stage.effect, case.reference)
            assert case.result is not None
            assert (again.disposition, again.effect) == (case.result.disposition, case.result.effect)


def steps_of(stage: Stage) -> list[str]:
    """The steps of all passes if nothing is disturbed."""
    case = Case(stage, at=0, side="before")
    play(stage, [case])
    return case.steps


def every_case(stage: Stage, found_dead_after: float = 0) -> list[Case]:
    numbers = range(1, len(steps_of(stage)) + 1)
    return [Case(stage, at, side, found_dead_after) for at in numbers for side in SIDES]


every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


@every_scenario
def test_a_crash_at_every_step(storage: Storage, scenario: Scenario) -> None:
    stage = Stage(storage, scenario)
    cases = every_case(stage)
    play(stage, cases)
    # On real time a busy machine can save a look or two; in memory every one meets its end.
    assert sum(case.killed for case in cases) >= len(cases) * (1 if isinstance(storage, Memory) else 0.8)


@every_scenario
def test_a_crash_at_every_step_on_an_event_loop(memory_storage: Memory, scenario: Scenario) -> None:
    stage = Stage(memory_storage, scenario)
    cases = every_case(stage)
    play(stage, cases, run_async)
    assert all(case.killed for case in cases)


@pytest.mark.parametrize("after", [0.5, 1.5], ids=["within its window", "after its window"])
@every_scenario
def test_C5_a_crash_that_others_notice_late(memory_storage: Memory, scenario: Scenario, after: float) -> None:
    stage = Stage(memory_storage, scenario)
    cases = every_case(stage, after)
    play(stage, cases)
    assert all(case.killed for case in cases)


def test_the_steps_are_all_that_a_pass_does(memory_storage: Memory) -> None:
    by_name = {scenario.name: Stage(memory_storage, scenario) for scenario in SCENARIOS}
    first = ["Open", "execute", "observe", "reconcile", "Record"]
    assert steps_of(by_name["first attempt"]) == first
    assert steps_of(by_name["with checks"]) == ["Open", "authorize", "revalidate", "Claim", *first[1:]]
    assert steps_of(by_name["never arrives"]) == [
        *first,
        *("Open", "observe", "reconcile", "Claim", "execute", "observe", "reconcile", "Record"),
    ]


# -- it can fail ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if "late" in s.name], ids=lambda scenario: scenario.name)
def test_without_waiting_for_the_window_there_are_two_effects(
    memory_storage: Memory, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: a table that takes every absence for settled."""
    waits = (Reason.SETTLING, Reason.IN_FLIGHT_NOT_RULED_OUT)
    monkeypatch.setattr(decide, "TABLE", tuple(row for row in TABLE if row.reason not in waits))
    stage = Stage(memory_storage, scenario)
    cases = [Case(stage, at, "after") for at in range(1, 6)]
    with pytest.raises(AssertionError):
        play(stage, cases)
    assert max(stage.outside.effects(case.reference) for case in cases) > 1


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.effects], ids=lambda scenario: scenario.name)
def test_a_naive_twin_has_two_effects(memory_storage: Memory, scenario: Scenario) -> None:
    """The same provider, the same ends: a loop that sends until something says that it worked."""
    outside, done = Outside(memory_storage.now, memory_storage.window), set()

    def send(process: Process, reference: str) -> None:
        with process.step("send"):
            outside.request(scenario, reference)
        with process.step("remember"):
            done.add(reference)

    def attempts(reference: str, process: Process) -> None:
        while reference not in done and outside.effects(reference) < 2:
            try:
                send(process, reference)
            except Killed:
                process = Process(memory_storage.ledger)  # restarted, and it begins again
            except Exception:
                continue

    ends = [(at, side) for at in range(1, 5) for side in SIDES]
    for at, side in ends:
        attempts(f"{side} {at}", Process(memory_storage.ledger, at, side))
    assert max(outside.effects(f"{side} {at}") for at, side in ends) == 2
