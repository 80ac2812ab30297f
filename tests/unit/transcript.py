"""Transcripts of the lifecycle: send a reply, expect the next command.

A program asks, the test answers. Nothing here decides anything: every reply is written out by the test, except
what every ledger does (number the write, set the start of a reserved attempt).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar

from corrobo_core.commands import (
    Claim,
    Command,
    Execute,
    Executed,
    Holder,
    Judged,
    KeepLate,
    Load,
    Loaded,
    Observe,
    Open,
    Opened,
    Raised,
    Reconcile,
    Record,
    Refused,
    Saw,
    Written,
)
from corrobo_core.lifecycle import Call, Conclusion, Program
from corrobo_core.policy import Policy
from corrobo_core.records import (
    JSON,
    AttemptRecord,
    Evidence,
    Failure,
    Observation,
    Operation,
    Outcome,
    evolve,
)
from tests.unit.facts import FINGERPRINT, INTENT, KEY, at, policy, reading

C = TypeVar("C", bound=Command[Any])

OWNER = 7
BROKEN = Failure("ValueError", "broken")


def call(declared: Policy | None = None, **fields: Any) -> Call:
    return Call("me", KEY, INTENT, FINGERPRINT, declared or policy(), **fields)


def operation(*attempts: AttemptRecord, **fields: Any) -> Operation:
    """As stored by somebody else, with these attempts."""
    fields.setdefault("version", 4)
    fields.setdefault("nonce", "other.9")
    fields.setdefault("owner", OWNER if attempts and attempts[-1].outcome is None else None)
    return Operation(KEY, INTENT, FINGERPRINT, attempts=attempts, **fields)


def started(reserved: Operation, now: float) -> Operation:
    """What a ledger makes of an operation that it opens or claims."""
    stored = evolve(reserved, version=reserved.version + 1)
    if not reserved.reserved:
        return stored
    begun = evolve(reserved.latest, started=at(now))
    return evolve(stored, attempts=(*reserved.attempts[:-1], begun), owner=OWNER)


def _must_be_mine(asked: Command[Any]) -> None:
    """Whatever is asked is about this operation, and every write has a name of this pass."""
    key = asked.key if isinstance(asked, Load | KeepLate) else asked.operation.key  # type: ignore[attr-defined]
    assert key == KEY
    if isinstance(asked, Open | Claim | Record):
        assert asked.operation.nonce.partition(".")[0] == "me"


class Transcript:
    """One pass, step by step."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._asked: Command[Any] | None = None
        self._end: Conclusion | None = None
        self.commands: list[Command[Any]] = []
        self._step(None)

    def _step(self, reply: Any) -> None:
        try:
            self._asked = self._program.send(reply)
            _must_be_mine(self._asked)
            self.commands.append(self._asked)
        except StopIteration as stop:
            self._asked, self._end = None, stop.value
        if self._end is not None and not isinstance(self._end.now, datetime):
            raise AssertionError("the pass does not say when it has ended")

    def expect(self, kind: type[C]) -> C:
        """The command asked now, which must be of this kind."""
        assert isinstance(self._asked, kind), (
            f"expected {kind.__name__}, the program asks {self._asked or 'nothing'}"
        )
        return self._asked

    def reply(self, answer: Any) -> None:
        assert self._asked is not None, "the pass has ended"
        self._step(answer)

    def end(self) -> Conclusion:
        assert self._end is not None, f"the pass goes on: {self._asked}"
        return self._end

    @property
    def sent(self) -> int:
        """How often the program asked to execute."""
        return sum(isinstance(command, Execute) for command in self.commands)

    @property
    def written(self) -> int:
        return sum(isinstance(command, Record | Claim) for command in self.commands)

    # -- answers, with the usual values ----------------------------------------------------------------------

    def opened_new(self, now: float = 0) -> Open:
        """The ledger inserted the operation."""
        asked = self.expect(Open)
        self.reply(Opened(started(asked.operation, now), True, Holder.RUNNING, reading(now)))
        return asked

    def opened(self, stored: Operation, now: float, holder: Holder | None = None) -> Open:
        """The ledger returned what was there."""
        asked = self.expect(Open)
        if holder is None:
            holder = Holder.GONE if stored.reserved and stored.owner else Holder.NOBODY
        self.reply(Opened(stored, False, holder, reading(now)))
        return asked

    def loaded(self, stored: Operation | None, now: float, holder: Holder = Holder.NOBODY) -> Load:
        asked = self.expect(Load)
        self.reply(Loaded(stored, holder, reading(now)))
        return asked

    def claimed(self, now: float) -> Claim:
        asked = self.expect(Claim)
        self.reply(Written(started(asked.operation, now), reading(now)))
        return asked

    def executed(self, outcome: Outcome = Outcome.RESPONDED, ended: float = 1, **fields: Any) -> Execute:
        asked = self.expect(Execute)
        if outcome is Outcome.AMBIGUOUS:
            fields.setdefault("failure", BROKEN)
        self.reply(Executed(outcome, ended, **fields))
        return asked

    def saw(
        self,
        evidence: Evidence,
        began: float = 2,
        *,
        proves_absence: bool = True,
        effect: Any = None,
        stored: JSON = None,
    ) -> Observe:
        """``observe`` returned something, and ``reconcile`` made this of it."""
        asked = self.expect(Observe)
        self.reply(Saw(Observation.of("data", source="provider", proves_absence=proves_absence), began))
        assert self.expect(Reconcile).observation.data == "data"
        self.reply(Judged(evidence, "CODE", "what was seen", effect=effect, stored=stored))
        return asked

    def raised(self, kind: type[Command[Any]], *, interrupted: bool = False) -> None:
        """The hook raised."""
        self.expect(kind)
        self.reply(Raised(BROKEN, interrupted=interrupted))

    def recorded(self, now: float = 3) -> Operation:
        """The ledger stored it; what was stored."""
        asked = self.expect(Record)
        stored = evolve(asked.operation, version=asked.operation.version + 1)
        self.reply(Written(stored, reading(now)))
        return stored

    def refused(self, kind: type[Record] | type[Claim], now: float = 3) -> Operation:
        """The stored version was another one; what would have been stored."""
        asked: Any = self.expect(kind)
        self.reply(Refused(reading(now)))
        stored: Operation = asked.operation
        return stored
