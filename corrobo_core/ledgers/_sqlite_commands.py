"""The statements of the SQLite ledger, one for each command.

Source: semantics L1, C2, C3, C4, D5.
"""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime
from typing import Any, NamedTuple

from corrobo_core.clocks import stopwatch
from corrobo_core.commands import (
    Claim,
    Decide,
    Decided,
    Holder,
    KeepLate,
    LedgerCommand,
    Load,
    Loaded,
    NotDecided,
    Open,
    Opened,
    Reading,
    Record,
    Refused,
    Written,
)
from corrobo_core.errors import LedgerError, LedgerUnavailable
from corrobo_core.frozen import evolve
from corrobo_core.ledgers._decisions import read_decisions
from corrobo_core.ledgers._owner_file import Owner
from corrobo_core.ledgers._shared import Abandoned, Passes, Row, holder, read_row, with_reservation
from corrobo_core.ledgers._sqlite_decisions import decide
from corrobo_core.ledgers._sqlite_file import SqliteFile, as_stored, clock
from corrobo_core.ledgers._sqlite_gates import append_gate, read_gates
from corrobo_core.ledgers._sqlite_pool import Pool
from corrobo_core.ledgers.document import to_document
from corrobo_core.ledgers.gate_port import AppendGate, ReadGates
from corrobo_core.records import Decision, Operation, OperationKey

__all__ = ["Commands"]

# corrobo_now() is called for the row, and so after any wait for the lock (D5).
_COLUMNS = "type, fp, intent, version, owner, nonce, started, doc, corrobo_now()"
_DECISIONS = (
    "(select json_group_array(json(d.doc)) from"
    " (select doc from corrobo_decision where ns = o.ns and id = o.id order by seq) d)"
)
_READ = f"select {_COLUMNS}, {_DECISIONS} from corrobo_operation o where ns = ? and id = ?"
# `on conflict do nothing` would return no row to the loser of a race.
_INSERT = (
    "insert into corrobo_operation (ns, id, type, fp, intent, version, owner, nonce, started, doc)"
    " values (:ns, :id, :type, :fp, :intent, 1, :owner, :nonce,"
    " case when :owner is not null then corrobo_now() end, :doc)"
    f" on conflict (ns, id) do update set version = version returning {_COLUMNS}"
)
_CLAIM = (
    "update corrobo_operation set version = version + 1, owner = :owner, nonce = :nonce, doc = :doc,"
    " started = corrobo_now() where ns = :ns and id = :id and version = :version"
    " and (:until is null or corrobo_now() < :until) returning started, corrobo_now()"
)
_RECORD = (
    "update corrobo_operation set version = version + 1, owner = :owner, nonce = :nonce, doc = :doc"
    " where ns = :ns and id = :id and version = :version returning started, corrobo_now()"
)
_KEEP_LATE = (
    "insert into corrobo_late_evidence (ns, id, attempt, nonce, at, evidence)"
    " values (:ns, :id, :attempt, :nonce, corrobo_now(), :evidence)"
)
_ABANDON = (
    "update corrobo_operation set version = version + 1, owner = null, nonce = nonce || '.abandoned',"
    " doc = json_set(doc, '$.attempts[#-1].abandoned', corrobo_now())"
    " where ns = :ns and id = :id and owner = :owner"
    " and json_extract(doc, '$.attempts[#-1].nonce') = :nonce"
    " and json_extract(doc, '$.attempts[#-1].outcome') is null"
)


class _Answer(NamedTuple):
    rows: list[tuple[Any, ...]]
    sent: float
    received: float

    def reading(self, now: str) -> Reading:
        return Reading(datetime.fromisoformat(now), self.sent, self.received)


class Commands:
    """Answers commands with statements."""

    def __init__(self, file: SqliteFile, pool: Pool, owner: Owner, passes: Passes) -> None:
        self._file, self._pool, self._owner, self._passes = file, pool, owner, passes

    def answer(self, command: LedgerCommand[Any]) -> Any:
        """Perform one command."""
        if isinstance(command, Claim) or (isinstance(command, Open) and command.operation.attempts):
            self._pool.check_in_place()
        with self._pool.connection() as connection:
            match command:
                case Open(operation):
                    return self._open(connection, operation)
                case Load(key):
                    return self._load(connection, key)
                case Claim(operation, approved_until):
                    return self._claim(connection, operation, approved_until)
                case Record(operation):
                    return self._record(connection, operation)
                case Decide():
                    return self._decide(connection, command)
                case KeepLate():
                    return self._keep_late(connection, command)
                case ReadGates():
                    return read_gates(lambda sql, values: self._run(connection, sql, values).rows, command)
                case AppendGate():
                    return append_gate(lambda sql, values: self._write(connection, sql, values).rows, command)
                case _:
                    raise TypeError(f"not a ledger command: {type(command).__name__}")

    def mark(self, abandoned: Abandoned, *, wait: float) -> None:
        """Mark what was abandoned; what cannot be marked now stays in the queue (L7).

        Args:
            abandoned: the queue.
            wait: seconds for each to wait for other writers.
        """
        while item := abandoned.take():
            key, nonce = item
            values = {"ns": key.namespace, "id": key.operation_id, "owner": self._owner.key, "nonce": nonce}
            try:
                with self._pool.connection(wait) as connection:
                    self._write(connection, _ABANDON, values, wait)
            except LedgerError:
                abandoned.add(key, nonce)
                return

    # -- one for each command -----------------------------------------------------------------------------------

    def _open(self, connection: sqlite3.Connection, operation: Operation) -> Opened:
        # An index look-up is nothing beside a commit, and whoever finds a row waits for no writer (C1).
        found = self._run(connection, _READ, (operation.key.namespace, operation.key.operation_id))
        if found.rows:
            return self._opened(operation.nonce, operation.key, found)
        owner = self._own_key() if operation.attempts else None
        values = {**_written(operation), "type": operation.key.type, "fp": operation.fingerprint}
        values |= {"intent": operation.intent, "owner": owner}
        return self._opened(operation.nonce, operation.key, self._write(connection, _INSERT, values))

    def _opened(self, nonce: str, key: OperationKey, answer: _Answer) -> Opened:
        stored, decisions, reading = self._stored(key, answer)
        return Opened(stored, stored.nonce == nonce, self._holder(stored), reading, decisions)

    def _load(self, connection: sqlite3.Connection, key: OperationKey) -> Loaded:
        found = self._run(connection, _READ, (key.namespace, key.operation_id))
        if not found.rows:
            return Loaded(None, Holder.NOBODY, found.reading(clock()))
        stored, decisions, reading = self._stored(key, found)
        return Loaded(stored, self._holder(stored), reading, decisions)

    def _claim(
        self, connection: sqlite3.Connection, operation: Operation, approved_until: datetime | None
    ) -> Written | Refused:
        owner = self._own_key()
        until = None if approved_until is None else as_stored(approved_until)
        values = {**_written(operation), "owner": owner, "version": operation.version, "until": until}
        answer = self._write(connection, _CLAIM, values)
        if not answer.rows:
            return Refused(answer.reading(clock()))
        started, now = answer.rows[0]
        claimed = with_reservation(operation, operation.version + 1, owner, datetime.fromisoformat(started))
        return Written(claimed, answer.reading(now))

    def _record(self, connection: sqlite3.Connection, operation: Operation) -> Written | Refused:
        values = {**_written(operation), "owner": operation.owner, "version": operation.version}
        answer = self._write(connection, _RECORD, values)
        if not answer.rows:
            return Refused(answer.reading(clock()))
        return Written(evolve(operation, version=operation.version + 1), answer.reading(answer.rows[0][1]))

    def _decide(self, connection: sqlite3.Connection, asked: Decide) -> Decided | NotDecided:
        key = OperationKey(asked.namespace, asked.operation_id, "")

        def read() -> tuple[Operation | None, tuple[Decision, ...], Reading]:
            sent = stopwatch()
            rows = connection.execute(_READ, (asked.namespace, asked.operation_id)).fetchall()
            answer = _Answer(rows, sent, stopwatch())
            return self._stored(key, answer) if rows else (None, (), answer.reading(clock()))

        with self._pool.writing(None):
            return decide(connection, asked, read)

    def _keep_late(self, connection: sqlite3.Connection, late: KeepLate) -> None:
        values = {
            "ns": late.key.namespace,
            "id": late.key.operation_id,
            "attempt": late.attempt,
            "nonce": late.nonce,
            "evidence": json.dumps(late.evidence, ensure_ascii=True, allow_nan=False),
        }
        self._write(connection, _KEEP_LATE, values)

    # -- pieces -------------------------------------------------------------------------------------------------

    def _write(
        self, connection: sqlite3.Connection, sql: str, values: dict[str, Any], wait: float | None = None
    ) -> _Answer:
        with self._pool.writing(wait):
            return self._run(connection, sql, values)

    def _run(self, connection: sqlite3.Connection, sql: str, values: Any) -> _Answer:
        sent = stopwatch()
        rows = connection.execute(sql, values).fetchall()  # to its end: before, nothing is committed (L1)
        received = stopwatch()
        if connection.in_transaction:
            raise LedgerError(self._file.name, "the connection is not in autocommit mode; nothing was committed")
        return _Answer(rows, sent, received)

    def _stored(self, key: OperationKey, answer: _Answer) -> tuple[Operation, tuple[Decision, ...], Reading]:
        kind, fp, intent, version, owner, nonce, started, doc, now, *about = answer.rows[0]
        begun = None if started is None else datetime.fromisoformat(started)
        row = Row(kind, fp, intent, version, owner, nonce, begun, doc)
        stored = read_row(self._file.name, key.namespace, key.operation_id, row)
        decisions = read_decisions(self._file.name, key.operation_id, about[0] if about else None)
        return stored, decisions, answer.reading(now)

    def _own_key(self) -> int:
        try:
            return self._owner.standing()
        except OSError as error:
            raise LedgerUnavailable(
                self._file.name, f"no owner's file could be locked beside it ({error})"
            ) from error

    def _holder(self, operation: Operation) -> Holder:
        return holder(operation, self._owner.key, self._passes, self._owner.lives)


def _written(operation: Operation) -> dict[str, Any]:
    return {
        "ns": operation.key.namespace,
        "id": operation.key.operation_id,
        "nonce": operation.nonce,
        "doc": to_document(operation),
    }
