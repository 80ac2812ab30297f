"""A gate's log as it is stored: rows read back into events and state, events written into rows. No I/O.

Source: semantics G3, G5, A3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from corrobo_core.gates.errors import GateHistoryError
from corrobo_core.gates.events import (
    CallbackRequested,
    CallbackSubmitted,
    GateEvent,
    event_from_json,
    event_to_json,
)
from corrobo_core.gates.state import EMPTY, GateState, fold
from corrobo_core.ledgers.gate_port import START, GateRow, NewRow, chained

__all__ = ["Log", "by_gate"]


@dataclass(frozen=True)
class Log:
    """One gate's log, up to a revision.

    Attributes:
        where: names it in errors.
        revision: how many events it has.
        chain: over all of them.
        state: the fold of all of them.
    """

    where: str
    revision: int = 0
    chain: str = START
    state: GateState = field(default=EMPTY)

    def plus(self, rows: Sequence[GateRow]) -> Log:
        """The log with the rows that follow; see `read`."""
        return self.read(rows)[0]

    def read(self, rows: Sequence[GateRow]) -> tuple[Log, tuple[GateEvent, ...]]:
        """The log with the rows that follow, and their events.

        Raises:
            GateHistoryError: one is missing or was changed, or does not fit. Only this gate is affected. Not
                retryable: look at it by hand.
        """
        revision, chain = self.revision, self.chain
        events: list[GateEvent] = []
        for row in rows:
            revision += 1
            chain = chained(chain, row.event, row.beside)
            if (row.revision, row.chain) != (revision, chain):
                raise GateHistoryError(
                    self.where, revision, "this row, or one before it, is missing or was changed"
                )
            events.append(_event(row, self.where))
        return Log(self.where, revision, chain, fold(events, self.state, self.where, self.revision)), tuple(events)

    def ends_with(self, row: GateRow) -> bool:
        """Whether this is the last row of what is known."""
        return (row.revision, row.chain) == (self.revision, self.chain)

    def rows_for(self, events: Iterable[GateEvent]) -> tuple[NewRow, ...]:
        """The rows that append events."""
        chain, rows = self.chain, []
        for event in events:
            text, beside = event_to_json(event), _beside(event)
            chain = chained(chain, text, beside)
            rows.append(NewRow(text, beside, chain))
        return tuple(rows)

    def grown(self, events: Sequence[GateEvent], rows: Sequence[NewRow]) -> Log:
        """The log after its rows were appended, without reading them back."""
        state = fold(events, self.state, self.where, self.revision)
        return Log(self.where, self.revision + len(rows), rows[-1].chain, state)


def _beside(event: GateEvent) -> str | None:
    match event:
        case CallbackRequested():
            return event.subject_json
        case CallbackSubmitted():
            return event.approval_json
        case _:
            return None


def _event(row: GateRow, where: str) -> GateEvent:
    """The event of a row, with what is stored beside it.

    Raises:
        GateHistoryError: it does not read. Not retryable.
    """
    try:
        event = event_from_json(row.event)
    except ValueError as error:
        raise GateHistoryError(where, row.revision, str(error)) from None
    if row.beside is None:
        return event
    match event:
        case CallbackRequested():
            return replace(event, subject_json=row.beside)
        case CallbackSubmitted():
            return replace(event, approval_json=row.beside)
        case _:
            raise GateHistoryError(where, row.revision, f"{event.kind} has something beside it")


def by_gate(rows: Iterable[GateRow]) -> dict[str, tuple[list[int], list[GateRow]]]:
    """The rows of each gate in their order, and where in the stream each of them is."""
    found: dict[str, tuple[list[int], list[GateRow]]] = {}
    for place, row in enumerate(rows):
        places, own = found.setdefault(row.gate, ([], []))
        places.append(place)
        own.append(row)
    return found
