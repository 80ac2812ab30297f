"""Several passes over one operation, interleaved in any way, stopped, taken for dead, crashed: never two effects.

The world is honest: an effect lands within the declared window, a read is no staler than declared, and a refusal
refuses. Everything else is drawn: who runs when, how long each thing takes, what is lost. Mutants show that it can
fail. (That nothing bad happens does not depend on who is taken for dead: C5.)
"""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from corrobo_core import decide
from corrobo_core.commands import (
    Claim,
    Command,
    Execute,
    Executed,
    Judged,
    LedgerCommand,
    Observe,
    Raised,
    Reading,
    Reconcile,
    Record,
    Saw,
)
from corrobo_core.decide import TABLE
from corrobo_core.ledgers import memory
from corrobo_core.ledgers.memory import MemoryLedger
from corrobo_core.lifecycle import Call, Conclusion, observe, run
from corrobo_core.policy import Backoff, Policy, RetryPolicy
from corrobo_core.records import Disposition, Evidence, Observation, Operation, Outcome, Reason, evolve
from tests.unit.facts import FINGERPRINT, INTENT, KEY, seconds
from tests.unit.transcript import BROKEN

START = datetime(2026, 1, 1, tzinfo=UTC)


class Broken(AssertionError):
    """Two effects, or a lie."""


class World:
    """One provider, one ledger, one clock.

    Args:
        rng: draws everything.
        lands_within: how long after an attempt starts its effect really lands, at the latest.
    """

    def __init__(self, rng: Random, lands_within: float | None = None) -> None:
        self.rng, self.time = rng, 0.0
        self.window, self.lag = 10.0, rng.choice([0.0, 6.0])
        self.lands_within = self.window if lands_within is None else lands_within
        self.landings: list[float] = []
        self.ledger = MemoryLedger(clock=lambda: START + timedelta(seconds=self.time))
        short = Backoff(seconds(1), seconds(2))
        self.policy = Policy(
            window=seconds(self.window),
            execute_timeout=seconds(4),
            observation_lag=seconds(self.lag),
            responds_after_effect=rng.choice([True, False]),
            retry=RetryPolicy(max_attempts=rng.choice([2, 5]), backoff=short),
            poll=short,
        )

    def now(self) -> float:
        return self.time

    def pass_by(self) -> None:
        self.time += self.rng.choice([0, 0, 0, 0, 0.5, 1, 2, 5, 11])

    @property
    def stored(self) -> Operation | None:
        return self.ledger._rows.get((KEY.namespace, KEY.operation_id))

    def landed(self) -> int:
        return sum(landing <= self.time for landing in self.landings)

    def seen(self) -> int:
        """What a read finds: no staler than declared."""
        stale = self.rng.random() * self.lag
        return sum(landing <= self.time - stale for landing in self.landings)

    def send(self, started: float, answers: Outcome) -> None:
        """The request is out; when does its effect land? At once, if the answer says that it is there."""
        latest = max(started + self.lands_within, self.time)
        sure = answers is Outcome.RESPONDED and self.policy.responds_after_effect
        arrives = sure or answers is Outcome.RESPONDED or self.rng.random() < 0.7
        if arrives:
            self.landings.append(self.time if sure else self.time + self.rng.random() * (latest - self.time))
        if len(self.landings) > 1:
            raise Broken(f"two effects: {self.landings}")


class Actor:
    """One pass of one process, advanced step by step."""

    def __init__(self, world: World, nonce: str) -> None:
        self.world, self.nonce = world, nonce
        given = Call(nonce, KEY, INTENT, FINGERPRINT, world.policy, observe_now=world.rng.random() < 0.2)
        self._program = observe(given) if world.rng.random() < 0.15 else run(given)
        self.end: Conclusion | None = None
        self.sleeps_until = 0.0
        world.ledger.pass_started(nonce)
        self._work = self._working()

    def step(self) -> bool:
        """Advance; False once it has ended."""
        if next(self._work, "ended") is None:
            return True
        self.world.ledger.pass_ended(self.nonce)
        return False

    def _working(self) -> Generator[None, None, None]:
        reply: Any = None
        while True:
            try:
                asked = self._program.send(reply)
            except StopIteration as stop:
                self.end = stop.value
                return
            reply = yield from self._perform(asked)

    def _perform(self, asked: Command[Any]) -> Any:
        match asked:
            case LedgerCommand():
                return self._ledger(asked)
            case Execute():
                return self._execute(asked)
            case Observe():
                return self._observe()
            case Reconcile(_, observation):
                return self._reconcile(observation.data)
            case _:
                raise TypeError(asked)

    def _ledger(self, asked: LedgerCommand[Any]) -> Any:
        """A statement takes time before and after the moment at which it counts."""
        sent = self.world.time
        yield
        reply = self.world.ledger.perform(asked)
        yield
        if reply is None:
            return None
        return evolve(reply, reading=Reading(reply.reading.now, sent, self.world.time))

    def _execute(self, asked: Execute) -> Any:
        world, rng = self.world, self.world.rng
        if asked.not_after is not None and world.time > asked.not_after:
            return Executed(Outcome.NOT_SENT, world.time)
        started = asked.operation.latest.started
        assert started is not None
        outcome = rng.choice([Outcome.RESPONDED, *[Outcome.AMBIGUOUS] * 3, Outcome.REJECTED, Outcome.NOT_SENT])
        if outcome in (Outcome.RESPONDED, Outcome.AMBIGUOUS):
            world.send((started - START).total_seconds(), outcome)
        yield
        failed = outcome is not Outcome.RESPONDED
        stop = outcome is Outcome.AMBIGUOUS and rng.random() < 0.1
        return Executed(outcome, world.time, failure=BROKEN if failed else None, retryable=True, interrupted=stop)

    def _observe(self) -> Any:
        began = self.world.time
        yield
        found = self.world.seen()
        yield
        if self.world.rng.random() < 0.1:
            return Raised(BROKEN, interrupted=self.world.rng.random() < 0.3)
        return Saw(Observation.of(found, source="world", proves_absence=True), began)

    def _reconcile(self, found: int) -> Any:
        yield from ()
        evidence = {0: Evidence.NOT_APPLIED, 1: Evidence.APPLIED}.get(found, Evidence.CONFLICTED)
        return Judged(evidence, "CODE", "", effect=found)

    def crash(self) -> None:
        """The process is gone, whatever it was doing."""
        self._work.close()


def play(seed: int, lands_within: float | None = None) -> World:
    """One history of the world, to its end. Raises `Broken`."""
    rng = Random(seed)
    world = World(rng, lands_within)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "stopwatch", world.now)
        _disturbed(world)
        _to_the_end(world)
    return world


def _disturbed(world: World) -> None:
    rng, born = world.rng, 0
    actors: list[Actor] = []
    for _ in range(rng.choice([30, 60, 90])):
        awake = [actor for actor in actors if actor.sleeps_until <= world.time]
        if not awake or (len(actors) < 3 and rng.random() < 0.1):
            born += 1
            awake = [Actor(world, f"pass{born}")]
            actors += awake
        actor = rng.choice(awake)
        chance = rng.random()
        if chance < 0.04:  # it dies
            actors.remove(actor)
            actor.crash()
        elif chance < 0.08:  # it stands still
            actor.sleeps_until = world.time + rng.choice([6, 14, 30])
        elif not actor.step():
            actors.remove(actor)
        if chance < 0.06 and rng.random() < 0.6:  # and it is taken for dead, rightly or not
            world.ledger.pass_ended(actor.nonce)
        world.pass_by()
        _check(world)


def _to_the_end(world: World) -> None:
    """Everybody is gone, and known to be; one process goes on undisturbed but for what the provider does."""
    world.ledger._running.clear()
    for number in range(60):
        actor = Actor(world, f"last{number}")
        while actor.step():
            _check(world)
        stored = world.stored
        if stored is not None and stored.closed:
            break
        world.time += 3
    world.time += 40
    _check(world)
    stored = world.stored
    complete = stored is not None and stored.disposition is Disposition.COMPLETE
    if complete != (len(world.landings) == 1):
        raise Broken(f"{len(world.landings)} effects, and the ledger says {stored and stored.reason}")


def _check(world: World) -> None:
    stored = world.stored
    if stored is not None and stored.disposition is Disposition.COMPLETE and world.landed() != 1:
        raise Broken("COMPLETE, and it is not there")


WORLDS = 1_500


def broken(lands_within: float | None = None, worlds: int = 8 * WORLDS) -> str | None:
    """How the first of so many worlds breaks; None if none does."""
    for seed in range(worlds):
        try:
            play(seed, lands_within)
        except Broken as error:
            return str(error)
    return None


def test_no_interleaving_makes_two_effects_or_lies() -> None:
    worlds = [play(seed) for seed in range(WORLDS)]
    attempts = [len(world.stored.attempts) for world in worlds if world.stored]
    assert sum(count > 1 for count in attempts) > WORLDS / 10, "else nothing would be proven"
    assert sum(len(world.landings) for world in worlds) > WORLDS / 2
    assert any(world.ledger.late for world in worlds), "and nobody ever loses an operation"


# -- mutants ----------------------------------------------------------------------------------------------------


def test_an_effect_that_lands_after_its_window_is_found_out() -> None:
    """The one thing that the contract must get right."""
    assert broken(lands_within=20) is not None


def test_a_table_that_does_not_wait_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped = (Reason.SETTLING, Reason.IN_FLIGHT_NOT_RULED_OUT)
    monkeypatch.setattr(decide, "TABLE", tuple(row for row in TABLE if row.reason not in dropped))
    assert "two effects" in (broken() or "")


def test_L9_sending_however_late_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Policy, "start_allowance", None)
    assert "two effects" in (broken() or "")


def test_C2_writing_whatever_the_version_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = MemoryLedger._answer

    def unfenced(self: MemoryLedger, command: LedgerCommand[Any]) -> Any:
        if isinstance(command, Claim | Record):
            stored = self._find(command.operation.key)
            assert stored is not None
            command = type(command)(evolve(command.operation, version=stored.version))
        return answer(self, command)

    monkeypatch.setattr(MemoryLedger, "_answer", unfenced)
    assert broken() is not None


def test_O4_a_lag_that_is_not_waited_for_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Policy, "settles_after", property(lambda self: self.window))
    assert broken() is None  # what a deploy can lengthen (D3) adds today's lag again
    monkeypatch.setattr(decide, "_as_read_today", lambda attempt, _: attempt)
    assert "two effects" in (broken() or "")
