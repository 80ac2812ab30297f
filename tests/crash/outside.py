"""The outside system of the crash tests: it counts effects, and they land when they land."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from corrobo_core import Disposition, NotSent, Rejected

NEVER = math.inf


@dataclass(frozen=True)
class Answer:
    """What the provider makes of one request.

    Attributes:
        lands_after: share of the window after which the effect is there; `NEVER`: it never is.
        raises: what the client raises instead of returning.
    """

    lands_after: float = 0.0
    raises: Callable[[], Exception] | None = None


@dataclass(frozen=True)
class Scenario:
    """How the provider answers one operation's requests, the last answer for ever; and how that must end.

    Attributes:
        reads_fail: so many reads raise first.
        pending_for: share of the window for which a landed effect is still pending.
        checks: the contract has `authorize` and `revalidate`.
    """

    name: str
    answers: tuple[Answer, ...]
    disposition: Disposition = Disposition.COMPLETE
    effects: int = 1
    reads_fail: int = 0
    pending_for: float = 0.0
    checks: bool = False


def _later() -> Exception:
    return Rejected("slow down", retryable=True, retry_after=timedelta(milliseconds=1))


OK = Answer()
LOST = Answer(raises=lambda: ConnectionResetError("by peer"))
SCENARIOS = [
    Scenario("first attempt", (OK,)),
    Scenario("with checks", (OK,), checks=True),
    Scenario("response lost", (LOST,)),
    Scenario("lands late", (Answer(0.5, lambda: TimeoutError("no answer")),)),
    Scenario("lands late after its answer", (Answer(0.5),)),
    Scenario("never arrives", (Answer(NEVER, lambda: TimeoutError("no answer")), OK)),
    Scenario("refused", (Answer(NEVER, lambda: Rejected("card expired")),), Disposition.REPLAN, effects=0),
    Scenario("refused for now", (Answer(NEVER, _later), OK)),
    Scenario("not sent", (Answer(NEVER, lambda: NotSent(OSError("no route"))), OK)),
    Scenario("pending", (OK,), pending_for=0.4),
    Scenario("reads fail at first", (LOST,), reads_fail=2),
]


class Outside:
    """Requests by reference, with the time at which each lands.

    Args:
        now: its clock, in seconds.
        window: how long after an attempt starts its effect may land, in seconds.
    """

    def __init__(self, now: Callable[[], float], window: float) -> None:
        self._now, self._window = now, window
        self._landings: defaultdict[str, list[float]] = defaultdict(list)
        self._reads: defaultdict[str, int] = defaultdict(int)

    def request(self, scenario: Scenario, reference: str) -> int:
        """One request that writes; its answer."""
        number = len(self._landings[reference])
        answer = scenario.answers[min(number, len(scenario.answers) - 1)]
        self._landings[reference].append(self._now() + answer.lands_after * self._window)
        if answer.raises is not None:
            raise answer.raises()
        return number

    def read(self, scenario: Scenario, reference: str) -> list[str]:
        """What is there now, as the states of the effects."""
        self._reads[reference] += 1
        if self._reads[reference] <= scenario.reads_fail:
            raise ConnectionError("outage")
        there = [landed for landed in self._landings[reference] if landed <= self._now()]
        pending = scenario.pending_for * self._window
        return ["pending" if self._now() < landed + pending else "done" for landed in there]

    def landed(self, reference: str) -> int:
        """Effects that are there."""
        return sum(landing <= self._now() for landing in self._landings[reference])

    def effects(self, reference: str) -> int:
        """Effects that are there or will be."""
        return sum(landing < NEVER for landing in self._landings[reference])
