"""Whether a state can still finish: everybody dies, and one process goes on undisturbed."""

from __future__ import annotations

from corrobo_core.records import Operation, Reason
from tests.model.explorer import invariants
from tests.model.explorer.contract import seconds_of
from tests.model.explorer.library import Library
from tests.model.explorer.moves import Moves
from tests.model.explorer.outside import Requests
from tests.model.explorer.state import State

_PASSES = 8


class Finishing:
    """Asks it of every state, each different one once.

    What the world still owes lands at once, or never: one question each. A pass that goes on undisturbed has no
    other choice, so there is one way, and at its end the operation is closed or waits for a person.
    """

    def __init__(self, library: Library, moves: Moves) -> None:
        self._library, self._moves = library, moves
        self._known: dict[tuple[int, int, Requests, int], str | None] = {}

    def problem(self, state: State) -> str | None:
        """Why it can not finish, or which rule breaks on the way; None: it can."""
        alone = self._moves.deserted(state)
        key = (state.now, alone.stored, alone.requests, alone.behind)
        if key not in self._known:
            self._known[key] = self._finish(self._moves.all_landed(alone)) or self._finish(alone)
        return self._known[key]

    def _finish(self, state: State) -> str | None:
        for _ in range(_PASSES):
            row = self._library.row(state.stored)
            if row is not None and (row.closed or (row.episode is not None and row.reason != Reason.STILL_RUNNING)):
                return None
            state, broken = self._one_pass(self._later(state, row))
            if broken:
                return f"left alone: {broken}"
        row = self._library.row(state.stored)
        return f"never finishes: {_PASSES} undisturbed passes later it is {row and row.reason}"

    def _later(self, state: State, row: Operation | None) -> State:
        """When the row says to come back; a second later, if it says nothing."""
        if row is None:
            return state
        if row.retry_at is None:
            return self._moves.at(state, state.now + 1)
        return self._moves.at(state, max(state.now, seconds_of(row.retry_at) + state.behind))

    def _one_pass(self, state: State) -> tuple[State, str | None]:
        _, state, broken = self._moves.alone(state)
        while state.passes and not broken:
            _, state, broken = self._moves.undisturbed(state)
        return state, broken or invariants.holding(state, self._library.row(state.stored))
