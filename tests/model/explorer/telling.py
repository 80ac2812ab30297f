"""A trace for people: one line for each move, with what the ledger and the outside system hold after it."""

from __future__ import annotations

from corrobo_core.records import Operation
from tests.model.explorer.library import Library
from tests.model.explorer.moves import Move
from tests.model.explorer.state import State


class Teller:
    """Tells moves."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def line(self, before: State, move: Move, after: State) -> str:
        """One move, as one line."""
        said = f"{before.now:>3} s  {self._what(before, move, after)}"
        parts = []
        if after.stored != before.stored:
            parts.append("ledger: " + _row(self._library.row(after.stored)))
        if after.requests != before.requests:
            parts.append("outside: " + ", ".join(request.state for request in after.requests))
        return "  |  ".join([f"{said:<60}", *parts]).rstrip()

    def named(self, move: Move, point: int) -> str:
        """What a move is, and what its pass asks at it: "Record: crash"."""
        how = f" ({move.how})" if move.how else ""
        if move.about < 0:
            return move.name + how
        return f"{self._asks(point)}: {move.name}{how}"

    def _what(self, before: State, move: Move, after: State) -> str:
        how = f" ({move.how})" if move.how else ""
        if move.name == "a second passes":
            return move.name
        if move.name == "lands":
            return f"request {move.about + 1} lands"
        if move.name == "the desk":
            return f"the review desk: {move.how}"
        name = self._name(before, move.about, after)
        asked = self._asked(before, move.about)
        return f"{name} {asked if move.name == 'statement' else f'{asked}: {move.name}'}{how}"

    def _name(self, before: State, index: int, after: State) -> str:
        if index < len(before.passes):
            return self._library.nonce(before.passes[index].point)
        new = {self._library.nonce(going.point) for going in after.passes}
        new -= {self._library.nonce(going.point) for going in before.passes}
        return f"{new.pop() if new else 'a pass'} begins:"

    def _asked(self, before: State, index: int) -> str:
        return self._asks(before.passes[index].point if index < len(before.passes) else -1)

    def _asks(self, point: int) -> str:
        return "Open" if point < 0 else type(self._library.asks(point)).__name__


def _row(row: Operation | None) -> str:
    if row is None:
        return "nothing"
    attempts = ", ".join(attempt.outcome.value if attempt.outcome else "reserved" for attempt in row.attempts)
    told = f"{row.disposition.value if row.disposition else '-'} {row.reason}"
    return f"v{row.version} {told} [{attempts}]"
