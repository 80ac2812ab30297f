"""What a ledger keeps of gates: events in append-only logs, one log for each gate of a stream.

Two commands, one statement each. A log's revision is the number of its events; an append names the revision that it
was decided on, and does nothing if the log has grown since. Logs of different gates never wait for each other:
whatever is decided about a gate depends on its own events alone (G4).

Source: semantics G3, G5, A3, C2.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from corrobo_core.commands import LedgerCommand

__all__ = ["START", "AppendGate", "Appended", "GateLog", "GateRow", "GateRows", "NewRow", "ReadGates", "chained"]

START = "0" * 64


class GateRow(NamedTuple):
    """One event as stored.

    Attributes:
        gate: whose log it is in.
        revision: its number in that log, from 1.
        nonce: names the append that wrote it.
        event: canonical JSON text of its wire form.
        beside: what belongs to it and is no part of its wire form, canonical JSON text, or None.
        chain: `chained` over everything up to here.
    """

    gate: str
    revision: int
    nonce: str
    event: str
    beside: str | None
    chain: str


class NewRow(NamedTuple):
    """One event to store; see `GateRow`."""

    event: str
    beside: str | None
    chain: str


def chained(before: str, event: str, beside: str | None) -> str:
    """The chain after one more event: a row that was changed, lost or put elsewhere breaks it."""
    return hashlib.sha256(f"{before}\n{event}\n{beside or ''}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class GateRows:
    """Events in the order in which they were recorded, and the ledger's clock."""

    rows: tuple[GateRow, ...]
    now: datetime


@dataclass(frozen=True, slots=True)
class ReadGates(LedgerCommand[GateRows]):
    """Read one log after a revision, or all logs of a stream.

    Attributes:
        namespace: of the ledger.
        stream: such as a run id.
        gate: None for all.
        after: the revision that is known already; 0 with all.
    """

    namespace: str
    stream: str
    gate: str | None = None
    after: int = 0


@dataclass(frozen=True, slots=True)
class Appended:
    """Whether the rows were written, all or none, and the ledger's clock."""

    written: bool
    now: datetime


@dataclass(frozen=True, slots=True)
class AppendGate(LedgerCommand[Appended]):
    """Append to one log, if it is still at a revision, and the clock has not reached ``before``.

    A repeated append whose first reply was lost is not written again; its nonce is in the rows then.

    Attributes:
        namespace: of the ledger.
        stream: such as a run id.
        gate: whose log.
        revision: that the log must be at; 0 if it is empty.
        nonce: names this append.
        rows: one or more.
        before: None: whenever.
    """

    namespace: str
    stream: str
    gate: str
    revision: int
    nonce: str
    rows: tuple[NewRow, ...]
    before: datetime | None = None


class GateLog:
    """Logs in this process's memory. The caller holds a lock."""

    def __init__(self) -> None:
        self._streams: defaultdict[tuple[str, str], list[GateRow]] = defaultdict(list)
        self._gates: defaultdict[tuple[str, str, str], list[GateRow]] = defaultdict(list)

    def read(self, command: ReadGates) -> tuple[GateRow, ...]:
        """The rows that a read is answered with."""
        if command.gate is None:
            return tuple(self._streams[command.namespace, command.stream])
        return tuple(self._gates[command.namespace, command.stream, command.gate][command.after :])

    def append(self, command: AppendGate, now: datetime) -> bool:
        """Whether the rows were written."""
        log = self._gates[command.namespace, command.stream, command.gate]
        if len(log) != command.revision or (command.before is not None and now >= command.before):
            return False
        rows = [
            GateRow(command.gate, number, command.nonce, *new)
            for number, new in enumerate(command.rows, command.revision + 1)
        ]
        log.extend(rows)
        self._streams[command.namespace, command.stream].extend(rows)
        return True
