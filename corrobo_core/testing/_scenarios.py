"""Every scenario of the contract suite, by name. Each plays one operation (or two) against the target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import getdoc

from corrobo_core.testing._stage import Stage
from corrobo_core.testing.target import FaultKind

__all__ = ["SCENARIOS", "Scenario"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One situation that a contract must hold in.

    Attributes:
        name: for reports and ``--corrobo-scenario``.
        summary: what happens, in one line.
        play: plays it; raises `ContractBroken` or `NotApplicable`.
    """

    name: str
    summary: str
    play: Callable[[Stage], None]


SCENARIOS: dict[str, Scenario] = {}


def _scenario(play: Callable[[Stage], None]) -> Callable[[Stage], None]:
    SCENARIOS[play.__name__] = Scenario(play.__name__, getdoc(play) or "", play)
    return play


@_scenario
def normal(stage: Stage) -> None:
    """Nothing goes wrong, and the operation is called once more after its end."""
    stage.must_complete(stage.finish())


@_scenario
def response_lost(stage: Stage) -> None:
    """The write is carried out, and its answer is lost."""
    stage.plan(FaultKind.RESPONSE_LOST)
    stage.must_complete(stage.finish())


@_scenario
def request_lost(stage: Stage) -> None:
    """The write never arrives, and its caller cannot tell."""
    stage.plan(FaultKind.REQUEST_LOST)
    stage.finish()


@_scenario
def lands_before_window_ends(stage: Stage) -> None:
    """No answer, and the effect appears at half the declared window."""
    stage.plan(FaultKind.LANDS_LATE, stage.window / 2)
    stage.must_complete(stage.finish())


@_scenario
def lands_as_window_ends(stage: Stage) -> None:
    """No answer, and the effect appears in the last instant of the declared window."""
    stage.plan(FaultKind.LANDS_LATE, stage.window)
    stage.must_complete(stage.finish())
