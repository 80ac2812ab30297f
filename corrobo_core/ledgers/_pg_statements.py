"""The statements of the PostgreSQL ledger, one for each command: what is sent, and what the reply means.

No I/O. The SQL is in ``sql/postgres``.

Source: semantics L1, C2, C3, C4, C10, C11, D5.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import Any, Protocol

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
from corrobo_core.errors import DurabilityError
from corrobo_core.frozen import evolve
from corrobo_core.ledgers._decisions import read_decisions
from corrobo_core.ledgers._pg_errors import Again, OwnerLost, Place
from corrobo_core.ledgers._pg_gates import gate_query
from corrobo_core.ledgers._pg_owner import Owner
from corrobo_core.ledgers._pg_wire import Columns, Reply
from corrobo_core.ledgers._shared import Passes, Row, read_row, with_reservation
from corrobo_core.ledgers.document import to_document
from corrobo_core.ledgers.gate_port import AppendGate, ReadGates
from corrobo_core.records import Decision, Operation, OperationKey, RefusalCode

__all__ = ["Query", "Statements"]

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)  # PostgreSQL's, in binary form
_MICROSECOND = timedelta(microseconds=1)
_TRUE, _FALSE = b"\x01", b"\x00"


class Query(Protocol):
    """One command as a statement. Kept while it is repeated: the stopwatch of the first sending counts (L9)."""

    statement: bytes

    def values(self, own: int) -> Columns:
        """The parameters, for the owner key that is held now."""
        ...

    def answer(self, reply: Reply, sent: float, own: int) -> Any:
        """The command's reply.

        Raises:
            OwnerLost: nothing was done, since the lock of ``own`` is not held.
            DurabilityError, StandbyError, LedgerCorruptError: refused. Not retryable.
        """
        ...


class Statements:
    """Makes queries of commands.

    Args:
        place: for error texts, and the schema that the statements are written for.
        quoted_schema: as an SQL identifier.
        owner: told when its lock turns out to be gone.
        passes: what runs in this process.
        accepts_duplicates: whether weaker durability is accepted (C10).
    """

    def __init__(
        self, place: Place, quoted_schema: str, owner: Owner, passes: Passes, accepts_duplicates: bool
    ) -> None:
        self.place, self.owner, self.passes = place, owner, passes
        self.accepts = _TRUE if accepts_duplicates else _FALSE
        self.open, self.load, self.claim, self.record, self.keep_late, self.abandon = (
            _text(name, quoted_schema) for name in ("open", "load", "claim", "record", "keep_late", "abandon")
        )
        self.decide = _text("decide", quoted_schema)
        self.gate_read, self.gate_append = _text("gate_read", quoted_schema), _text("gate_append", quoted_schema)

    def query(self, command: LedgerCommand[Any]) -> Query:
        """The query for one command."""
        match command:
            case Open(operation):
                return _Open(self, operation)
            case Record(operation):
                return _Record(self, operation)
            case Claim(operation, approved_until):
                return _Claim(self, operation, approved_until)
            case Load(key):
                return _Load(self, key)
            case Decide():
                return _Decide(self, command)
            case KeepLate():
                return _KeepLate(self, command)
            case ReadGates() | AppendGate():
                return gate_query(self, command)
            case _:
                raise TypeError(f"not a ledger command: {type(command).__name__}")

    def abandonment(self, key: OperationKey, nonce: str) -> Query:
        """The query that marks an attempt as given up (L7)."""
        return _Abandon(self, key, nonce)

    # -- what the replies have in common ------------------------------------------------------------------------

    def reading(self, row: Columns, reply: Reply, sent: float) -> Reading:
        """The clock, from the first column; the second says whether the server is a standby (C8)."""
        if row[1] == _TRUE:
            raise self.place.standby()
        return Reading(_time(row[0]), sent, reply.received)

    def refuse(self, own_lock: bytes | None, durable: bytes | None, own: int) -> None:
        """Say why an opening or claiming statement did nothing, if it was for one of these reasons."""
        if durable == _FALSE:
            raise DurabilityError(
                self.place.name,
                "fsync or synchronous_commit is off: after a crash of the server reservations can be missing, and"
                " their writes are sent twice. Turn both on, or say accept_duplicates_after_crash=True",
            )
        if own_lock == _FALSE:
            self.owner.lost(own)
            raise OwnerLost("this process's owner lock is gone")

    def stored(self, key: OperationKey, columns: Columns) -> Operation:
        """An operation from version, owner, nonce, started, abandoned, type, fp, intent and doc."""
        version, owner, nonce, started, abandoned, kind, fp, intent, doc = columns
        row = Row(
            type=_str(kind),
            fp=_str(fp),
            intent=_str(intent),
            version=_int(version),
            owner=None if owner is None else _int(owner),
            nonce=_str(nonce),
            started=None if started is None else _time(started),
            doc=_str(doc),
        )
        operation = read_row(self.place.name, key.namespace, key.operation_id, row)
        if abandoned is None or not operation.attempts:
            return operation
        given_up = evolve(operation.attempts[-1], abandoned=_time(abandoned))
        return evolve(operation, attempts=(*operation.attempts[:-1], given_up))

    def decisions(self, key: OperationKey, column: bytes | None) -> tuple[Decision, ...]:
        """People's decisions, from a JSON array or null."""
        return read_decisions(self.place.name, key.operation_id, None if column is None else _str(column))

    def holder(self, operation: Operation, lives: bytes | None) -> Holder:
        """Who makes the reserved attempt (C4).

        Args:
            operation: as stored.
            lives: whether the lock of an owner other than ours is held.
        """
        if operation.owner is None or not operation.attempts:
            return Holder.NOBODY
        if operation.owner in self.owner.keys:
            alive = self.passes.running(operation.attempts[-1].nonce)
        else:
            alive = lives == _TRUE
        return Holder.RUNNING if alive else Holder.GONE


# -- one for each command ---------------------------------------------------------------------------------------


class _Open:
    def __init__(self, all_: Statements, operation: Operation) -> None:
        self.statement, self._all, self._operation = all_.open, all_, operation
        key = operation.key
        self._head = [key.namespace.encode(), key.operation_id.encode(), key.type.encode()]
        self._head += [operation.fingerprint.encode(), operation.intent.encode()]
        reserves = _TRUE if operation.attempts else _FALSE
        self._tail = [operation.nonce.encode(), to_document(operation).encode(), reserves, all_.accepts]

    def values(self, own: int) -> Columns:
        return [*self._head, _int8(own), *self._tail]

    def answer(self, reply: Reply, sent: float, own: int) -> Opened:
        row = _there(reply)
        reading = self._all.reading(row, reply, sent)
        version = row[5]
        if version is None:
            self._all.refuse(row[2], row[3], own)
            raise Again("the statement answered with no operation")
        if row[2] == _FALSE:
            self._all.owner.lost(own)
        given = self._operation
        mine = row[7] == self._tail[0]
        stored = self._inserted(row) if mine else self._all.stored(given.key, row[5:14])
        decisions = self._all.decisions(given.key, row[14])
        return Opened(stored, mine, self._all.holder(stored, row[4]), reading, decisions)

    def _inserted(self, row: Columns) -> Operation:
        """Our own row, which no other write has followed: it need not be read back."""
        version, owner, started = _int(row[5]), row[6], row[8]
        if owner is None or started is None:
            return evolve(self._operation, version=version, owner=None)
        return with_reservation(self._operation, version, _int(owner), _time(started))


class _Load:
    def __init__(self, all_: Statements, key: OperationKey) -> None:
        self.statement, self._all, self._key = all_.load, all_, key

    def values(self, own: int) -> Columns:
        return [self._key.namespace.encode(), self._key.operation_id.encode(), _int8(own)]

    def answer(self, reply: Reply, sent: float, own: int) -> Loaded:
        row = _there(reply)
        reading = self._all.reading(row, reply, sent)
        if row[3] is None:
            return Loaded(None, Holder.NOBODY, reading)
        stored = self._all.stored(self._key, row[3:12])
        decisions = self._all.decisions(self._key, row[12])
        return Loaded(stored, self._all.holder(stored, row[2]), reading, decisions)


class _Claim:
    def __init__(self, all_: Statements, operation: Operation, approved_until: datetime | None) -> None:
        self.statement, self._all, self._operation = all_.claim, all_, operation
        self._tail = [operation.nonce.encode(), to_document(operation).encode(), all_.accepts, _at(approved_until)]

    def values(self, own: int) -> Columns:
        return [*_fence(self._operation), _int8(own), *self._tail]

    def answer(self, reply: Reply, sent: float, own: int) -> Written | Refused:
        row = _there(reply)
        reading = self._all.reading(row, reply, sent)
        if row[4] is None:
            self._all.refuse(row[2], row[3], own)
            return Refused(reading)
        given = self._operation
        return Written(with_reservation(given, given.version + 1, own, _time(row[4])), reading)


class _Record:
    def __init__(self, all_: Statements, operation: Operation) -> None:
        self.statement, self._all, self._operation = all_.record, all_, operation
        self._doc = to_document(operation).encode()

    def values(self, own: int) -> Columns:
        given = self._operation
        owner = None if given.owner is None else _int8(given.owner)
        return [*_fence(given), owner, given.nonce.encode(), self._doc]

    def answer(self, reply: Reply, sent: float, own: int) -> Written | Refused:
        row = _there(reply)
        reading = self._all.reading(row, reply, sent)
        if row[2] is None:
            return Refused(reading)
        return Written(evolve(self._operation, version=_int(row[2])), reading)


class _Decide:
    def __init__(self, all_: Statements, asked: Decide) -> None:
        self.statement, self._all, self._asked = all_.decide, all_, asked

    def values(self, own: int) -> Columns:
        asked = self._asked
        texts = [asked.namespace, asked.operation_id, asked.token, asked.kind.value, asked.reviewer]
        fp, effect = asked.intent_fingerprint, asked.effect
        return [
            *(text.encode() for text in texts),
            _at(asked.decided_at),
            _at(asked.expires_at),
            None if fp is None else fp.encode(),
            asked.note.encode(),
            None if effect is None else json.dumps(effect, allow_nan=False).encode(),
        ]

    def answer(self, reply: Reply, sent: float, own: int) -> Decided | NotDecided:
        row = _there(reply)
        reading = self._all.reading(row, reply, sent)
        key = OperationKey(self._asked.namespace, self._asked.operation_id, "")
        code, decision, earlier = (None if column is None else _str(column) for column in row[2:5])
        operation = None if row[5] is None else self._all.stored(key, row[5:14])
        if code is not None and code != "AGAIN":
            first = read_decisions(self._all.place.name, key.operation_id, earlier and f"[{earlier}]")
            return NotDecided(RefusalCode(code), operation, first[0] if first else None, reading)
        (said,) = read_decisions(self._all.place.name, key.operation_id, f"[{decision}]")
        assert operation is not None
        return Decided(said, operation, code is not None, reading)


class _KeepLate:
    def __init__(self, all_: Statements, late: KeepLate) -> None:
        self.statement = all_.keep_late
        evidence = json.dumps(late.evidence, ensure_ascii=True, allow_nan=False)
        texts = (late.key.namespace.encode(), late.key.operation_id.encode())
        self._values = [*texts, _int8(late.attempt), late.nonce.encode(), evidence.encode()]

    def values(self, own: int) -> Columns:
        return self._values

    def answer(self, reply: Reply, sent: float, own: int) -> None:
        return None


class _Abandon:
    def __init__(self, all_: Statements, key: OperationKey, nonce: str) -> None:
        self.statement = all_.abandon
        self._all = all_
        self._values = [key.namespace.encode(), key.operation_id.encode(), nonce.encode()]

    def values(self, own: int) -> Columns:
        keys = ",".join(str(key) for key in self._all.owner.keys)
        return [*self._values, f"{{{keys}}}".encode()]

    def answer(self, reply: Reply, sent: float, own: int) -> None:
        return None


# -- binary form --------------------------------------------------------------------------------------------------


def _fence(operation: Operation) -> list[bytes]:
    key = operation.key
    return [key.namespace.encode(), key.operation_id.encode(), _int8(operation.version)]


def _there(reply: Reply) -> Columns:
    assert reply.row is not None, "these statements answer with exactly one row"
    return reply.row


def _int8(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)


def _at(time: datetime | None) -> bytes | None:
    return None if time is None else _int8((time - _EPOCH) // _MICROSECOND)


def _int(column: bytes | None) -> int:
    assert column is not None
    return int.from_bytes(column, "big", signed=True)


def _str(column: bytes | None) -> str:
    assert column is not None
    return column.decode()


def _time(column: bytes | None) -> datetime:
    return _EPOCH + timedelta(microseconds=_int(column))


def _text(name: str, quoted_schema: str) -> bytes:
    folder = resources.files("corrobo_core.ledgers") / "sql" / "postgres"
    lines = (folder / f"{name}.sql").read_text("utf-8").splitlines()
    statement = " ".join(line.strip() for line in lines if not line.lstrip().startswith("--"))
    return statement.replace("{schema}", quoted_schema).encode()
