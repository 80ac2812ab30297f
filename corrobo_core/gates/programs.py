"""What is done with gates in a ledger, written once: generators that ask the ledger, driven by a synchronous and by
an asynchronous client.

Source: semantics G3, G5; section 10.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from corrobo_core.commands import Command
from corrobo_core.errors import LedgerUnavailable
from corrobo_core.gates import protocol
from corrobo_core.gates.decided import Decide
from corrobo_core.gates.errors import GateHistoryError
from corrobo_core.gates.events import GateEvent
from corrobo_core.gates.jsontext import plain_text
from corrobo_core.gates.log import Log, by_gate
from corrobo_core.gates.results import ExpireOk
from corrobo_core.gates.state import EMPTY, GateState, RequestState
from corrobo_core.ledgers.gate_port import Appended, AppendGate, GateRow, GateRows, ReadGates

__all__ = ["OnDamage", "Program", "Programs"]

R = TypeVar("R")
Program: TypeAlias = Generator[Command[Any], Any, R]
OnDamage: TypeAlias = Callable[[GateHistoryError], None]

_TRIES = 1_000
_CACHED = 4_096


class Programs:
    """What is done with the logs of one stream.

    Args:
        namespace: of the ledger.
        stream: such as a run id.
    """

    def __init__(self, namespace: str, stream: str) -> None:
        self._namespace = namespace
        self.stream = plain_text(stream, "stream")
        self._known: dict[str, Log] = {}  # reading and replacing one is atomic

    # -- one gate ------------------------------------------------------------------------------------------

    def change(self, gate: str | None, decide: Decide[R]) -> Program[R]:
        """Read what is new, decide, append; again if the log grew meanwhile (G5)."""
        if gate is None:  # no request can have this id
            reply: GateRows = yield from ReadGates(self._namespace, self.stream, "")
            return decide(EMPTY, reply.now).result
        log = self._known.get(gate) or Log(self._where(gate))
        nonce, decided = "", None
        for _ in range(_TRIES):
            log, rows, now = yield from self._read_on(gate, log)
            if decided is not None and any(row.nonce == nonce for row in rows):
                return decided.result  # it was written, and the reply was lost on its way (C2)
            decided = decide(log.state, now)
            if not decided.events:
                return decided.result
            new, nonce = log.rows_for(decided.events), secrets.token_hex(16)
            grown = log.grown(decided.events, new)  # what does not fit is never written
            append = AppendGate(self._namespace, self.stream, gate, log.revision, nonce, new, decided.before)
            appended: Appended = yield from append
            if appended.written:
                self._know(gate, grown)
                return decided.result
        raise LedgerUnavailable(f"stream {self.stream!r}", f"gate {gate!r} is too busy: {_TRIES} tries")

    def _read_on(self, gate: str, known: Log) -> Program[tuple[Log, tuple[GateRow, ...], datetime]]:
        """The log now, the rows that were new, and the ledger's clock."""
        reply: GateRows
        if known.revision:
            reply = yield from ReadGates(self._namespace, self.stream, gate, known.revision - 1)
            if reply.rows and known.ends_with(reply.rows[0]):
                return self._know(gate, known.plus(reply.rows[1:])), reply.rows[1:], reply.now
        # Nothing is known; or what is known is not there any more: a backup was restored.
        reply = yield from ReadGates(self._namespace, self.stream, gate)
        return self._know(gate, Log(self._where(gate)).plus(reply.rows)), reply.rows, reply.now

    def _know(self, gate: str, log: Log) -> Log:
        if len(self._known) >= _CACHED:
            self._known.clear()
        self._known[gate] = log
        return log

    def _where(self, gate: str) -> str:
        return f"stream {self.stream!r}, gate {gate!r}"

    # -- all gates -----------------------------------------------------------------------------------------

    def look(self, gate: str | None, on_damage: OnDamage | None = None) -> Program[tuple[GateState, datetime]]:
        """The state of one gate, or of all with the requests in the order of the stream."""
        if gate is not None:
            known = self._known.get(gate) or Log(self._where(gate))
            log, _, now = yield from self._read_on(gate, known)
            return log.state, now
        reply: GateRows = yield from ReadGates(self._namespace, self.stream)
        return self._whole(reply.rows, on_damage), reply.now

    def _whole(self, rows: tuple[GateRow, ...], on_damage: OnDamage | None) -> GateState:
        found: list[tuple[int, RequestState]] = []
        for gate, (places, own) in by_gate(rows).items():
            try:
                log, events = Log(self._where(gate)).read(own)
            except GateHistoryError as error:
                if on_damage is None:
                    raise
                on_damage(error)
                continue
            self._know(gate, log)
            backwards = zip(reversed(places), reversed(events), strict=True)
            first = {event.request_id: place for place, event in backwards}
            found.extend((first[each.request.request_id], each) for each in log.state.requests.values())
        ordered = sorted(found, key=lambda item: item[0])
        return GateState(MappingProxyType({each.request.request_id: each for _, each in ordered}))

    def events(self, gate: str | None, request_id: str | None) -> Program[tuple[GateEvent, ...]]:
        """The events of one request, or of all, in the order of the stream."""
        reply: GateRows = yield from ReadGates(self._namespace, self.stream, gate)
        found: list[tuple[int, GateEvent]] = []
        for name, (places, own) in by_gate(reply.rows).items():
            log, events = Log(self._where(name)).read(own)
            self._know(name, log)
            found.extend(zip(places, events, strict=True))
        ordered = sorted(found, key=lambda item: item[0])
        return tuple(each for _, each in ordered if request_id is None or each.request_id == request_id)

    def expire(self) -> Program[ExpireOk]:
        """Record every expiry that is due, gate by gate."""
        state, now = yield from self.look(None)
        due = [each for each in state.requests.values() if each.due(now)]
        expired: list[str] = []
        for gate in dict.fromkeys(each.request.gate_id for each in due):
            done = yield from self.change(gate, lambda state, now: protocol.expire(state, now=now))
            expired.extend(done.request_ids)
        return ExpireOk(tuple(expired))
