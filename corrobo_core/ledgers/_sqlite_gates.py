"""The statements of gates in SQLite (section 9)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from corrobo_core.ledgers._sqlite_file import clock
from corrobo_core.ledgers.gate_port import Appended, AppendGate, GateRow, GateRows, ReadGates

__all__ = ["append_gate", "read_gates"]

_COLUMNS = "gate, revision, nonce, event, beside, chain"
_READ_ONE = (
    f"select {_COLUMNS} from corrobo_gate_event where ns = ? and stream = ? and gate = ? and revision > ?"
    " order by revision"
)
_READ_ALL = f"select {_COLUMNS} from corrobo_gate_event where ns = ? and stream = ? order by seq"
# corrobo_now() is called after any wait for the lock (D5); its texts sort as their times do.
_APPEND = (
    f"insert into corrobo_gate_event (ns, stream, {_COLUMNS}, recorded)"
    " select :ns, :stream, :gate, :revision + 1 + key, :nonce,"
    " json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), corrobo_now()"
    " from json_each(:rows)"
    " where :revision = (select coalesce(max(revision), 0) from corrobo_gate_event"
    "   where ns = :ns and stream = :stream and gate = :gate)"
    " and (:before is null or corrobo_now() < :before)"
    " order by key returning revision"
)


def read_gates(run: Callable[[str, Any], list[tuple[Any, ...]]], command: ReadGates) -> GateRows:
    """Answer a read; ``run`` executes a statement and fetches its rows to the end."""
    if command.gate is None:
        rows = run(_READ_ALL, (command.namespace, command.stream))
    else:
        rows = run(_READ_ONE, (command.namespace, command.stream, command.gate, command.after))
    return GateRows(tuple(GateRow(*row) for row in rows), datetime.fromisoformat(clock()))


def append_gate(write: Callable[[str, Any], list[tuple[Any, ...]]], command: AppendGate) -> Appended:
    """Answer an append; ``write`` executes a statement in its turn, and returns once it is committed."""
    before = command.before
    values = {
        "ns": command.namespace,
        "stream": command.stream,
        "gate": command.gate,
        "revision": command.revision,
        "nonce": command.nonce,
        "rows": json.dumps(command.rows, ensure_ascii=False),
        "before": None if before is None else before.astimezone(UTC).isoformat(timespec="microseconds"),
    }
    written = write(_APPEND, values)
    return Appended(bool(written), datetime.fromisoformat(clock()))
