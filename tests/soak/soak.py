"""The soak itself: hand in work, let the killer strike, then stop all faults and drive everything to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from random import Random

from corrobo_core import PostgresLedger
from tests.soak.effects import LEDGER, URL
from tests.soak.engines import GROUPS, Ended, Engine, Group, dbos, job_queue, temporal
from tests.soak.killer import Killer, drawn
from tests.soak.outside import Outside, running_outside
from tests.soak.processes import Fleet, running_fleet
from tests.soak.report import Report, Tally, tally
from tests.support.postgres import PostgresServer, fresh_database, running_postgres

TICK = 0.05  # seconds
SAY_EVERY = 5.0
LOOK_EVERY = 0.5
SUBMITTED_WITHIN = 0.85  # share of the time with faults
Say = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """What to run.

    Attributes:
        seconds: how long faults go on.
        effects: how many, on all engines together; and as many naive twins.
        seed: decides what goes wrong, and when.
        finish_within: seconds for everything to end after the last fault.
    """

    seconds: float
    effects: int
    seed: str
    finish_within: float = 120.0


@dataclass(frozen=True)
class World:
    """The servers."""

    outside: Outside
    postgres: PostgresServer
    ledger_dsn: str
    engines: list[Engine]

    def environment(self) -> dict[str, str]:
        """What the workers find in theirs."""
        return {URL: self.outside.http.url, LEDGER: self.ledger_dsn}


@contextmanager
def running_world(seed: str) -> Iterator[World]:
    """All servers, with an empty database for each engine and one for the ledger."""
    with ExitStack() as stack:
        postgres = stack.enter_context(running_postgres(recovery_init_sync_method="syncfs"))

        def database() -> str:
            return stack.enter_context(fresh_database(postgres.dsn()))

        ledger_dsn = database()
        PostgresLedger(ledger_dsn).migrate()
        engines: list[Engine] = [
            stack.enter_context(job_queue(database())),
            stack.enter_context(temporal()),
            stack.enter_context(dbos(database())),
        ]
        yield World(stack.enter_context(running_outside(seed)), postgres, ledger_dsn, engines)


@dataclass
class Soak:
    """One run.

    Attributes:
        submitted: the references, by engine and group.
        again: how often an effect was handed in once more.
    """

    settings: Settings
    world: World
    fleet: Fleet
    killer: Killer
    say: Say
    submitted: dict[tuple[str, Group], list[str]] = field(default_factory=dict)
    again: int = 0
    _began: float = field(default_factory=time.monotonic)
    _said: float = 0.0

    def run(self) -> Report:
        """From the first fault to the last effect."""
        self.world.outside.faults(True)
        self._with_faults()
        self.world.outside.faults(False)
        self.say("faults have stopped; driving everything to its end")
        ended = self._to_the_end()
        return self._report(ended)

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    # -- while things go wrong ------------------------------------------------------------------------------------

    def _with_faults(self) -> None:
        between = self.settings.seconds * SUBMITTED_WITHIN / self.settings.effects
        number = 0
        while number < self.settings.effects or self.now < self.settings.seconds or self.killer.busy:
            while number < self.settings.effects and number * between <= self.now:
                self._submit(number)
                number += 1
            self.killer.tick(self.now)
            self._tick()
        self.killer.rest()

    def _submit(self, number: int) -> None:
        engine = self.world.engines[number % len(self.world.engines)]
        for group in GROUPS:
            reference = f"{group}-{engine.name}-{number}"
            self.submitted.setdefault((engine.name, group), []).append(reference)
            engine.submit(group, reference)

    def _tick(self, pause: float = TICK) -> None:
        self.fleet.restart_ended()
        if self.now - self._said >= SAY_EVERY:
            self._said = self.now
            self.say(self._progress())
        time.sleep(pause)

    def _progress(self) -> str:
        commits, faults = self.world.outside.book()
        counts = {group: tally(self._references(group), commits, []) for group in GROUPS}
        effects, naive = counts["effect"], counts["naive"]
        return (
            f"{self.now:5.0f} s  effects {effects.found}/{effects.expected}, {effects.duplicates} twice;"
            f"  naive {naive.found}/{naive.expected}, {naive.duplicates} twice;"
            f"  {self.fleet.killed} kills, {sum(faults.values()) + sum(self.killer.injected.values())} faults"
        )

    # -- afterwards -----------------------------------------------------------------------------------------------

    def _to_the_end(self) -> list[Ended]:
        deadline = time.monotonic() + self.settings.finish_within
        wanted = {reference for references in self.submitted.values() for reference in references}
        while True:
            ended = [end for engine in self.world.engines for end in engine.ended()]
            missing = wanted - {end.reference for end in ended if end.error is None}
            if not missing or time.monotonic() > deadline:
                return ended
            self._submit_again([end for end in ended if end.error is not None])
            self._tick(LOOK_EVERY)

    def _submit_again(self, failed: list[Ended]) -> None:
        """What a caller does with an effect whose engine has given up: calls again, with the same id."""
        for end in failed:
            group, engine_name, _ = end.reference.split("-")
            for engine in self.world.engines:
                if engine.name == engine_name:
                    self.again += 1
                    engine.submit("naive" if group == "naive" else "effect", end.reference)

    def _references(self, group: Group, engine: str | None = None) -> list[str]:
        return [
            reference
            for (name, of), references in self.submitted.items()
            if of == group and engine in (None, name)
            for reference in references
        ]

    def _report(self, ended: list[Ended]) -> Report:
        commits, faults = self.world.outside.book()

        def counted(group: Group, engine: str | None = None) -> Tally:
            return tally(self._references(group, engine), commits, ended)

        return Report(
            seed=self.settings.seed,
            seconds=self.settings.seconds,
            wall_seconds=round(self.now, 1),
            effects=counted("effect"),
            naive=counted("naive"),
            by_engine={e.name: {group: counted(group, e.name) for group in GROUPS} for e in self.world.engines},
            kills=self.fleet.killed,
            faults=faults + self.killer.injected,
            submitted_again=self.again,
            failed_workers=self.fleet.failed,
        )


def soak(settings: Settings, say: Say) -> Report:
    """Start everything, run, and leave nothing behind."""
    say(f"seed {settings.seed}: starting servers")
    with running_world(settings.seed) as world:
        programs = [program for engine in world.engines for program in engine.programs(world.environment())]
        draw = Random(settings.seed)
        with running_fleet(programs) as fleet:
            strikes = drawn(settings.seconds, draw)
            killer = Killer(strikes, draw, fleet, world.postgres, world.ledger_dsn, world.outside)
            return Soak(settings, world, fleet, killer, say).run()
