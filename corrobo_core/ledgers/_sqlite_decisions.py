"""Recording a person's decision in SQLite: read, judge and append in one transaction (R3, R4)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from corrobo_core.clocks import stopwatch
from corrobo_core.commands import Decide, Decided, NotDecided, Reading
from corrobo_core.frozen import evolve
from corrobo_core.ledgers._decisions import to_document
from corrobo_core.records import Decision, Operation
from corrobo_core.rulings import Refusal, judge

__all__ = ["decide"]

_APPEND = (
    "insert into corrobo_decision (ns, id, token, kind, recorded, doc)"
    " values (:ns, :id, :token, :kind, corrobo_now(), :doc)"
)
# A pass that has read the operation before the decision cannot write after it.
_BUMP = "update corrobo_operation set version = version + 1 where ns = :ns and id = :id"


def decide(
    connection: sqlite3.Connection,
    asked: Decide,
    read: Callable[[], tuple[Operation | None, tuple[Decision, ...], Reading]],
) -> Decided | NotDecided:
    """Answer one `Decide`.

    Args:
        connection: no other writer until this returns.
        asked: the command.
        read: the operation and its decisions, read on this connection.
    """
    sent = stopwatch()
    connection.execute("begin immediate").fetchall()
    try:
        operation, decisions, reading = read()
        ruling = judge(operation, decisions, asked, reading.now)
        reply = _reply(
            connection, asked, operation, decisions, ruling, Reading(reading.now, sent, reading.received)
        )
        connection.execute("commit").fetchall()
        return reply
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback").fetchall()
        raise


def _reply(
    connection: sqlite3.Connection,
    asked: Decide,
    operation: Operation | None,
    decisions: tuple[Decision, ...],
    ruling: Decision | Refusal,
    reading: Reading,
) -> Decided | NotDecided:
    if isinstance(ruling, Refusal):
        return NotDecided(ruling.code, operation, ruling.first, reading)
    assert operation is not None
    if ruling in decisions:
        return Decided(ruling, operation, True, reading)
    place: dict[str, Any] = {"ns": asked.namespace, "id": asked.operation_id}
    values = {**place, "token": ruling.token, "kind": ruling.kind.value, "doc": to_document(ruling)}
    connection.execute(_APPEND, values).fetchall()
    connection.execute(_BUMP, place).fetchall()
    return Decided(ruling, evolve(operation, version=operation.version + 1), False, reading)
