"""What a scenario of the contract suite is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import getdoc

from corrobo_core.testing._stage import Stage

__all__ = ["Scenario", "Scenarios"]


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


class Scenarios(dict[str, Scenario]):
    """Scenarios by name, in the order in which they are played."""

    def add(self, play: Callable[[Stage], None]) -> Callable[[Stage], None]:
        """Add a function: its name and its docstring are the scenario's."""
        self[play.__name__] = Scenario(play.__name__, getdoc(play) or "", play)
        return play
