"""The effect of the crash tests, each of whose hooks is a step of the process that runs it just now."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta

from corrobo_core import Attempt, Backoff, Check, Effect, Observation, RetryPolicy, Verdict, effect
from corrobo_core.testing._process import Killed, Process, Side
from tests.crash.outside import Outside, Scenario

__all__ = ["Killed", "Process", "Seat", "Side", "credit_effect"]


class Seat:
    """The process that runs an effect just now; one effect serves many processes."""

    process: Process

    def step(self, name: str) -> AbstractContextManager[None]:
        return self.process.step(name)


def credit_effect(scenario: Scenario, outside: Outside, seat: Seat, window: float) -> Effect[[str], int]:
    """The effect of a scenario; each of its hooks is a step of the process in the seat."""
    short, long = (Backoff(wait, wait) for wait in (timedelta(seconds=window / 20), timedelta(seconds=window / 2)))

    @effect(
        "crash/credit",
        identity=lambda reference: reference,
        in_flight_window=timedelta(seconds=window),
        execute_timeout=timedelta(seconds=window / 3),
        retry=RetryPolicy(max_attempts=3, backoff=short),
        poll=long,
    )
    def credit(attempt: Attempt, reference: str) -> int:
        with seat.step("execute"):
            return outside.request(scenario, reference)

    @credit.observe
    def see(attempt: Attempt, reference: str) -> Observation[list[str]]:
        with seat.step("observe"):
            return Observation.of(outside.read(scenario, reference), source="outside", proves_absence=True)

    @see.reconcile
    def judge(attempt: Attempt, found: list[str]) -> Verdict[int]:
        with seat.step("reconcile"):
            match found:
                case []:
                    return Verdict.not_applied("NOTHING")
                case ["pending"]:
                    return Verdict.pending("PENDING")
                case ["done"]:
                    return Verdict.applied("DONE", effect=1)
                case _:
                    return Verdict.conflicted("DUPLICATES", f"{len(found)} effects")

    if scenario.checks:
        credit.authorize(_check("authorize", seat))
        credit.revalidate(_check("revalidate", seat))
    return credit


def _check(name: str, seat: Seat) -> Callable[[Attempt], Check]:
    def hook(attempt: Attempt) -> Check:
        with seat.step(name):
            return Check.proceed()

    return hook
