"""Everything the lifecycle asks, one frozen dataclass for each question, with the type of its answer.

``reply = yield from Open(...)`` is an ``Opened`` for the type checker. A driver performs the command: ledger
commands are at most one statement and one transaction; hook commands call the contract. Clock readings and
liveness arrive with the replies: there is no statement for the time.

Source: semantics L1, L2, C2, C6, D4a, D5.
"""

from __future__ import annotations

from collections.abc import Generator
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Generic, TypeVar

from corrobo_core.frozen import frozen
from corrobo_core.records import (
    JSON,
    Check,
    Decision,
    DecisionKind,
    Evidence,
    Failure,
    Observation,
    Operation,
    OperationKey,
    Outcome,
    RefusalCode,
)

__all__ = [
    "Authorize",
    "Claim",
    "Command",
    "Decide",
    "Decided",
    "Execute",
    "Executed",
    "Holder",
    "HookCommand",
    "Judged",
    "KeepLate",
    "LedgerCommand",
    "Load",
    "Loaded",
    "NotDecided",
    "Observe",
    "Open",
    "Opened",
    "Raised",
    "Reading",
    "Reconcile",
    "Record",
    "Refused",
    "Revalidate",
    "Saw",
    "Written",
]

R = TypeVar("R")


class Command(Generic[R]):
    """A question with an answer of type ``R``."""

    __slots__ = ()

    def __iter__(self) -> Generator[Command[Any], Any, R]:
        reply: R = yield self
        return reply


class LedgerCommand(Command[R]):
    """Answered by the ledger with one statement."""

    __slots__ = ()


class HookCommand(Command[R]):
    """Answered by the contract; no statement, lock or connection is held meanwhile (C6)."""

    __slots__ = ()
    operation: Operation


# -- answers that carry time ---------------------------------------------------------------------------------


@frozen
class Reading:
    """One reading of the ledger's clock, tied to the process's stopwatch.

    Attributes:
        now: the ledger's clock, read while the statement ran.
        sent: stopwatch before the statement was sent, in seconds. Counts suspend.
        received: stopwatch when its reply had been read.
    """

    now: datetime
    sent: float
    received: float

    def at_least(self, stopwatch: float) -> datetime:
        """Lower bound of the ledger's clock at a later stopwatch time: when a read began (D4a)."""
        return self.now + timedelta(seconds=max(stopwatch - self.received, 0.0))

    def at_most(self, stopwatch: float) -> datetime:
        """Upper bound of the ledger's clock at a later stopwatch time: when a hook ended."""
        return self.now + timedelta(seconds=max(stopwatch - self.sent, 0.0))


class Holder(Enum):
    """Who makes the reserved attempt (C4)."""

    NOBODY = "nobody"  # none reserved, or it was abandoned
    RUNNING = "running"  # its process lives, and if it is this process, its pass is still going on
    GONE = "gone"  # its process is dead, or is this one and the pass has ended


# -- the ledger ----------------------------------------------------------------------------------------------


@frozen
class Opened:
    """The operation as stored, whether this very command inserted it, and people's decisions about it."""

    operation: Operation
    mine: bool
    holder: Holder
    reading: Reading
    decisions: tuple[Decision, ...] = ()


@frozen
class Open(LedgerCommand[Opened]):
    """Insert the operation, or return what is there.

    With an attempt in ``operation`` it is reserved by the same statement: ``started`` becomes the ledger's
    clock and the owner this process. ``operation.nonce`` names this write; a repetition finds its own row.
    """

    operation: Operation


@frozen
class Loaded:
    """The operation as stored, or None, and people's decisions about it, oldest first."""

    operation: Operation | None
    holder: Holder
    reading: Reading
    decisions: tuple[Decision, ...] = ()


@frozen
class Load(LedgerCommand[Loaded]):
    """Read one operation; writes nothing."""

    key: OperationKey


@frozen
class Written:
    """The write was applied; ``operation`` is what is stored now."""

    operation: Operation
    reading: Reading


@frozen
class Refused:
    """The stored version was another one: nothing was written (C2)."""

    reading: Reading


@frozen
class Claim(LedgerCommand[Written | Refused]):
    """Reserve ``operation.attempts[-1]`` if the stored version is still ``operation.version`` (C3).

    ``started`` becomes the ledger's clock, read after any lock wait, and the owner this process. With
    ``approved_until`` it is refused at or after that time, by the same reading (R5).
    """

    operation: Operation
    approved_until: datetime | None = None


@frozen
class Record(LedgerCommand[Written | Refused]):
    """Store ``operation`` if the stored version is still ``operation.version`` (C2)."""

    operation: Operation


@frozen
class KeepLate(LedgerCommand[None]):
    """Keep what a pass learned about its own attempt after it lost the operation; decides nothing (C2)."""

    key: OperationKey
    attempt: int
    nonce: str
    evidence: JSON


@frozen
class Decided:
    """The decision is recorded. ``again``: it was recorded before, and nothing changed."""

    decision: Decision
    operation: Operation
    again: bool
    reading: Reading


@frozen
class NotDecided:
    """Refused, and nothing recorded (R4). ``first`` is what was decided before, for ``ALREADY_DECIDED``."""

    code: RefusalCode
    operation: Operation | None
    first: Decision | None
    reading: Reading


@frozen
class Decide(LedgerCommand[Decided | NotDecided]):
    """Append a person's decision, if its episode is open and nothing speaks against it (R3, R4).

    The episode is locked first, and the operation's version goes up, so that a pass that read the operation
    before the decision cannot write after it. ``decided_at`` None means the ledger's clock.
    """

    namespace: str
    operation_id: str
    token: str
    kind: DecisionKind
    reviewer: str
    decided_at: datetime | None = None
    expires_at: datetime | None = None
    intent_fingerprint: str | None = None
    note: str = ""
    effect: JSON = None


# -- the contract --------------------------------------------------------------------------------------------


@frozen
class Raised:
    """The hook raised, or answered nonsense. ``interrupted``: cancelled or told to stop; the pass must end."""

    failure: Failure
    interrupted: bool = False


@frozen
class Authorize(HookCommand[Check | Raised]):
    """May this operation be attempted at all?"""

    operation: Operation


@frozen
class Revalidate(HookCommand[Check | Raised]):
    """Is a new attempt still right, now? Gates new attempts only (L6)."""

    operation: Operation


@frozen
class Executed:
    """How ``execute`` ended (section 3).

    Attributes:
        ended: stopwatch when it ended.
        response: stored form of what it returned.
        retry_after: not before this long after its end.
        interrupted: cancelled or told to stop; the pass must end after its bookkeeping.
    """

    outcome: Outcome
    ended: float
    response: JSON = None
    failure: Failure | None = None
    retryable: bool = False
    retry_after: timedelta | None = None
    interrupted: bool = False


@frozen
class Execute(HookCommand[Executed]):
    """Send the write, unless the stopwatch is past ``not_after``: then answer ``NOT_SENT`` (L9)."""

    operation: Operation
    not_after: float | None
    timeout: timedelta | None


@frozen
class Saw:
    """What ``observe`` returned, and the stopwatch when it began."""

    observation: Observation[Any]
    began: float


@frozen
class Observe(HookCommand[Saw | Raised]):
    """Read the authoritative system (L4). A `Raised` reply counts as begun when the command was."""

    operation: Operation


@frozen
class Judged:
    """What ``reconcile`` made of it. ``effect`` is the value, ``stored`` the form that the ledger keeps."""

    evidence: Evidence
    code: str
    explanation: str
    effect: Any = None
    stored: JSON = None


@frozen
class Reconcile(HookCommand[Judged | Raised]):
    """Compare what was seen with what was intended. Pure (O8)."""

    operation: Operation
    observation: Observation[Any]
