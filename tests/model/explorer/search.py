"""Breadth first through every state of a configuration, to its end or to the first rule that breaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import process_time

from tests.model.explorer import invariants
from tests.model.explorer.finishing import Finishing
from tests.model.explorer.library import Library
from tests.model.explorer.moves import Move, Moves
from tests.model.explorer.state import Configuration, State
from tests.model.explorer.telling import Teller


@dataclass(frozen=True, slots=True)
class Explored:
    """What was found.

    Attributes:
        configuration: its name.
        states: how many there are.
        transitions: how many moves lead from one to another.
        attempts: the most attempts that one row holds.
        sent: the most requests that one history sends.
        broken: the rule that breaks; None if none does.
        trace: the shortest way there, one line for each move.
        seconds: of processor time.
        moves: what can happen, and to whom: the names of moves, with what their pass asks.
        reasons: why an operation can be where it is.
    """

    configuration: str
    states: int
    transitions: int
    attempts: int
    sent: int
    broken: str | None
    trace: tuple[str, ...]
    seconds: float
    moves: frozenset[str]
    reasons: frozenset[str]


class Search:
    """One configuration's exploration."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._library = Library(configuration)
        self._moves = Moves(configuration, self._library)
        self._finishing = Finishing(self._library, self._moves)
        self._teller = Teller(self._library)
        self._states: dict[State, int] = {}
        self._came: list[tuple[int, Move]] = []
        self._transitions = 0
        self._met: set[tuple[Move, int]] = set()

    def run(self) -> Explored:
        """Explore it."""
        began = process_time()
        with self._library.clock.in_force():
            broken, trace = self._explore()
        rows = self._library.rows()
        return Explored(
            self._configuration.name,
            len(self._states),
            self._transitions,
            max((len(row.attempts) for row in rows), default=0),
            max(len(state.requests) for state in self._states),
            broken,
            trace,
            process_time() - began,
            frozenset(self._teller.named(*met) for met in self._met),
            frozenset(row.reason for row in rows if row.reason),
        )

    def _explore(self) -> tuple[str | None, tuple[str, ...]]:
        first = self._moves.first()
        self._states[first] = 0
        self._came.append((-1, Move("start")))
        level = [first]
        while level:
            found: list[State] = []
            for state in level:
                for move, after, broken in self._moves.of(state):
                    self._transitions += 1
                    self._met.add(
                        (move, state.passes[move.about].point if 0 <= move.about < len(state.passes) else -1)
                    )
                    if after not in self._states:
                        self._states[after] = len(self._came)
                        self._came.append((self._states[state], move))
                        found.append(after)
                        problem = broken or self._problem(after)
                    else:
                        problem = broken
                    if problem:
                        return problem, self._trace(state, move, after)
            level = found
        return None, ()

    def _problem(self, state: State) -> str | None:
        row = self._library.row(state.stored)
        return invariants.holding(state, row) or self._finishing.problem(state)

    def _trace(self, state: State, move: Move, after: State) -> tuple[str, ...]:
        """The way to a state, and one move more."""
        states = list(self._states)
        steps = [(state, move, after)]
        for before, how, then in self._back(states, self._states[state]):
            steps.append((before, how, then))
        return tuple(self._teller.line(*step) for step in reversed(steps))

    def _back(self, states: list[State], index: int) -> Iterator[tuple[State, Move, State]]:
        while index > 0:
            parent, move = self._came[index]
            yield states[parent], move, states[index]
            index = parent
