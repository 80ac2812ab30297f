"""The statements of gates in PostgreSQL (section 9). No I/O. The SQL is in ``sql/postgres``."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from corrobo_core.ledgers._pg_errors import Again
from corrobo_core.ledgers._pg_wire import Columns, Reply
from corrobo_core.ledgers.gate_port import Appended, AppendGate, GateRow, GateRows, ReadGates

if TYPE_CHECKING:
    from corrobo_core.ledgers._pg_statements import Query, Statements

__all__ = ["gate_query"]

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)  # PostgreSQL's, in binary form
_MICROSECOND = timedelta(microseconds=1)
_YES = b"\x01"


def gate_query(all_: Statements, command: ReadGates | AppendGate) -> Query:
    """The query for one command."""
    return _Read(all_, command) if isinstance(command, ReadGates) else _Append(all_, command)


def _int8(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)


class _Read:
    def __init__(self, all_: Statements, command: ReadGates) -> None:
        self.statement, self._all = all_.gate_read, all_
        gate = None if command.gate is None else command.gate.encode()
        self._values = [command.namespace.encode(), command.stream.encode(), gate, _int8(command.after)]

    def values(self, own: int) -> Columns:
        return self._values

    def answer(self, reply: Reply, sent: float, own: int) -> GateRows:
        assert reply.row is not None, "this statement answers with exactly one row"
        now = self._all.reading(reply.row, reply, sent).now
        found = reply.row[2]
        rows = [] if found is None else json.loads(found)
        return GateRows(tuple(GateRow(*row) for row in rows), now)


class _Append:
    def __init__(self, all_: Statements, command: AppendGate) -> None:
        self.statement, self._all = all_.gate_append, all_
        before = None if command.before is None else _int8((command.before - _EPOCH) // _MICROSECOND)
        names = (command.namespace.encode(), command.stream.encode(), command.gate.encode())
        rows = json.dumps(command.rows, ensure_ascii=True).encode()
        self._values = [*names, _int8(command.revision), command.nonce.encode(), rows, before, all_.accepts]

    def values(self, own: int) -> Columns:
        return self._values

    def answer(self, reply: Reply, sent: float, own: int) -> Appended:
        row = reply.row
        if row is None:
            raise Again("the statement answered with no row")
        now = self._all.reading(row, reply, sent).now
        self._all.refuse(_YES, row[2], own)
        return Appended(row[3] is not None, now)
