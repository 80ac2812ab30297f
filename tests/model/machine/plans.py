"""What a test tells the outside world to do: plain data, drawn by hypothesis and printed when an example fails."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from corrobo_core.records import DecisionKind


class Send(StrEnum):
    """What becomes of one request, and of its answer."""

    ANSWERED = "it lands, and is answered"
    REPLY_LOST = "it lands, and the answer is lost"
    LATE = "no answer; it lands later"
    ANSWER_FIRST = "it is answered, and lands later"
    DROPPED = "it is answered, shows as pending, and comes to nothing"
    LOST = "the request is lost"
    REFUSED = "it is refused for good"
    REFUSED_FOR_NOW = "it is refused for now"
    NOT_SENT = "it cannot be sent"
    STOPPED = "it lands later, and the process is told to stop"
    STOPPED_BEFORE = "the process is told to stop before it is sent"


class Look(StrEnum):
    """What becomes of one read."""

    HONEST = "it shows what is there"
    STALE = "it shows what was there, as long ago as declared"
    FAILS = "it fails"
    INCOMPLETE = "it could miss what is there"
    MISJUDGED = "it is good, and reconcile raises"
    NONSENSE = "it is no observation"
    STOPPED = "the process is told to stop"


class Check(StrEnum):
    """What ``authorize`` and ``revalidate`` answer."""

    PROCEED = "proceed"
    REVIEW = "review"
    REJECT = "reject"
    RAISES = "raises"


# -- what happens in the middle of a pass ----------------------------------------------------------------------


@dataclass(frozen=True)
class Dies:
    """The process is killed."""


@dataclass(frozen=True)
class TakenForDead:
    """Its process is taken for dead, and goes on after another pass."""

    then: Turn


@dataclass(frozen=True)
class Unanswered:
    """The ledger does not answer: before the statement it was not done, after it it was."""


@dataclass(frozen=True)
class Repeated:
    """The reply of the next statement is lost, and the ledger repeats it by itself."""


@dataclass(frozen=True)
class Slow:
    """Time passes: for the next statement on its way and back, or here if a hook is next."""

    there: int
    back: int


@dataclass(frozen=True)
class SetBack:
    """The ledger's clock is set back."""

    seconds: int


@dataclass(frozen=True)
class Meanwhile:
    """Time passes here, and then another process makes a whole pass."""

    seconds: int
    then: Turn


@dataclass(frozen=True)
class Says:
    """A person says something at the desk.

    Attributes:
        token: "open", "before" (the episode before), or "wrong".
        decided: seconds from now at which it was decided, as is claimed; None: not said.
        expires: seconds from now at which an approval ends.
        shown: whether the right intent is named, or None: none is.
    """

    kind: DecisionKind
    reviewer: str = "ada"
    token: str = "open"
    decided: int | None = None
    expires: int | None = None
    shown: bool | None = None


@dataclass(frozen=True)
class Turn:
    """One pass of one caller.

    Attributes:
        process: whose.
        contract: index in `contracts.DECLARED`.
        reads_only: it is ``observe`` and not ``run``.
        observe_now: it reads before ``retry_at``, too.
        send: what becomes of its request.
        landing: 0 to 4, when, between now (0) and the last moment of the window (4).
        slow: seconds that the hook goes on after it has sent.
        strange: its answer is a value that nothing can store (T4).
        looks: what becomes of its first read, and of every later one.
        check: what ``revalidate`` answers, and whether ``authorize`` raises.
        at: number of the step at which something happens; 0: nothing does.
        after: whether it happens after that step, or before.
        what: happens there.
    """

    process: int = 0
    contract: int = 0
    reads_only: bool = False
    observe_now: bool = False
    send: Send = Send.ANSWERED
    landing: int = 0
    slow: int = 0
    strange: bool = False
    looks: tuple[Look, Look] = (Look.HONEST, Look.HONEST)
    check: Check = Check.PROCEED
    at: int = 0
    after: bool = False
    what: Happening | None = None


Happening: TypeAlias = "Dies | TakenForDead | Unanswered | Repeated | Slow | SetBack | Meanwhile | Says | Turn"
