"""Openings: a few steps that lead straight to where much can go wrong, which steps drawn one by one seldom do.

Each is plain data, and says which setup it needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from corrobo_core.records import DecisionKind
from tests.model.machine.contracts import ONLY_WITH_KEYS, RETENTION, SEEN_LATER
from tests.model.machine.plans import Check, Dies, Look, Meanwhile, Says, Send, Slow, TakenForDead, Turn, Unanswered
from tests.model.machine.stage import Setup

if TYPE_CHECKING:
    from tests.model.machine.operations import Operations


_AGE = 10  # seconds that an approval counts


class Script(Protocol):
    """One opening."""

    def needs(self, setup: Setup) -> Setup:
        """The setup, with what makes it possible."""
        ...

    def play(self, machine: Operations) -> None:
        """Its steps, each on every ledger."""
        ...


def _plain(setup: Setup) -> Setup:
    """Nobody is asked, so that an operation is opened and reserved by one statement."""
    return replace(setup, authorizes=None, revalidates=False, calm=False)


def _eager(turn: Turn) -> Turn:
    return replace(turn, reads_only=False, observe_now=True, check=Check.PROCEED)


@dataclass(frozen=True)
class HeldUp:
    """A process is paused before it sends, or its statement's reply is long on its way (L9)."""

    turn: Turn
    at: int
    after: bool
    by: int

    def needs(self, setup: Setup) -> Setup:
        return _plain(setup)

    def play(self, machine: Operations) -> None:
        machine.one_pass(replace(_eager(self.turn), at=self.at, after=self.after, what=Slow(0, self.by)))


@dataclass(frozen=True)
class Hangs:
    """A hook hangs, before or after it has sent, and somebody comes and looks (C5, O6)."""

    turn: Turn
    after: bool
    seconds: int
    then: Turn

    def needs(self, setup: Setup) -> Setup:
        return _plain(setup)

    def play(self, machine: Operations) -> None:
        what = Meanwhile(self.seconds, _eager(self.then))
        machine.one_pass(replace(_eager(self.turn), at=2, after=self.after, what=what))


@dataclass(frozen=True)
class CutShort:
    """A pass ends in the middle, and another one comes at once (L5, L7, C4)."""

    turn: Turn
    at: int
    after: bool
    what: Dies | Unanswered | TakenForDead | None
    then: Turn

    def needs(self, setup: Setup) -> Setup:
        return _plain(setup)

    def play(self, machine: Operations) -> None:
        at, what = (0, None) if self.turn.send is Send.STOPPED else (self.at, self.what)
        machine.one_pass(replace(_eager(self.turn), at=at, after=self.after, what=what))
        machine.one_pass(_eager(self.then))


@dataclass(frozen=True)
class WhenOver:
    """A request lands last; a read begins about when it is over, as was declared or is declared now (D3, O4)."""

    turn: Turn
    by: int
    then: Turn
    look: Look

    def needs(self, setup: Setup) -> Setup:
        return _plain(setup)

    def play(self, machine: Operations) -> None:
        machine.one_pass(replace(_eager(self.turn), send=Send.LATE, landing=4))
        again = machine.fitting(replace(_eager(self.then), looks=(self.look, Look.HONEST)))
        machine.until_over(again.contract, self.by)
        machine.one_pass(again)


@dataclass(frozen=True)
class SlowRead:
    """A read begins just before all is over, and what it shows is known after; or the statement before it (D4a)."""

    turn: Turn
    early: int
    slow: int
    statement: bool

    def needs(self, setup: Setup) -> Setup:
        return _plain(setup)

    def play(self, machine: Operations) -> None:
        again = machine.fitting(replace(_eager(self.turn), send=Send.LOST, looks=(Look.HONEST, Look.HONEST)))
        machine.one_pass(again)
        machine.until_over(again.contract, -self.early - (self.slow if self.statement else 0))
        at, after = (1, False) if self.statement else (2, True)
        machine.one_pass(replace(again, at=at, after=after, what=Slow(self.slow, 0)))


@dataclass(frozen=True)
class SeenLater:
    """An answer means that the effect is there, and reads show it later (D4); the answer can be no value (T4)."""

    send: Send
    strange: bool
    by: int

    def needs(self, setup: Setup) -> Setup:
        return _plain(setup)

    def play(self, machine: Operations) -> None:
        again = machine.fitting(Turn(contract=SEEN_LATER, observe_now=True, looks=(Look.STALE, Look.STALE)))
        machine.one_pass(replace(again, send=self.send, strange=self.strange))
        machine.until_over(again.contract, self.by)
        machine.one_pass(again)


@dataclass(frozen=True)
class ManyLooks:
    """Nobody can say what became of it, and it is looked at again and again (O7)."""

    turn: Turn
    send: Send

    def needs(self, setup: Setup) -> Setup:
        return _plain(setup)

    def play(self, machine: Operations) -> None:
        again = replace(_eager(self.turn), send=self.send, looks=(Look.INCOMPLETE, Look.INCOMPLETE))
        machine.one_pass(again)
        for _ in range(21):
            machine.one_pass(replace(again, reads_only=True))


@dataclass(frozen=True)
class WhenTheKeyExpires:
    """A retry, about when the provider forgets the key; the process can be paused before it sends (D2).

    Attributes:
        when: how long after the key is forgotten it begins, and for how long it is paused; seconds.
    """

    send: Send
    when: tuple[int, int]
    look: Look

    def needs(self, setup: Setup) -> Setup:
        return replace(_plain(setup), deduplicates=True)

    def play(self, machine: Operations) -> None:
        again = Turn(contract=ONLY_WITH_KEYS, observe_now=True)
        machine.one_pass(replace(again, send=self.send))
        by, slow = self.when
        machine.time.pass_by(RETENTION + by)
        what = Slow(0, slow) if slow else None
        machine.one_pass(replace(again, looks=(Look.HONEST, self.look), at=3, after=True, what=what))


@dataclass(frozen=True)
class Refused:
    """The second is sent at once, since it would be recognised; its refusal speaks for itself alone (T2)."""

    turn: Turn
    send: Send

    def needs(self, setup: Setup) -> Setup:
        return replace(_plain(setup), deduplicates=True)

    def play(self, machine: Operations) -> None:
        again = replace(_eager(self.turn), contract=ONLY_WITH_KEYS)
        for how in (self.send, Send.REFUSED):
            machine.one_pass(replace(again, send=how))


@dataclass(frozen=True)
class OneAfterTheOther:
    """People help as often as they can (R8)."""

    turn: Turn
    send: Send

    def needs(self, setup: Setup) -> Setup:
        return setup

    def play(self, machine: Operations) -> None:
        again = replace(_eager(self.turn), send=self.send)
        for _ in range(3):
            machine.one_pass(again)
            machine.until_over(again.contract, 1)
            machine.one_pass(replace(again, reads_only=True))
            machine.somebody_decides_well()


@dataclass(frozen=True)
class Attested:
    """Somebody says, rightly, that it comes to nothing; what the next read shows counts all the same (R8).

    Attributes:
        waits: until all is over.
    """

    turn: Turn
    send: Send
    look: Look
    waits: bool

    def needs(self, setup: Setup) -> Setup:
        return _plain(setup)

    def play(self, machine: Operations) -> None:
        again = replace(_eager(self.turn), landing=4)
        machine.one_pass(replace(again, send=self.send, looks=(Look.FAILS, Look.FAILS)))
        machine.somebody_decides(Says(DecisionKind.NOT_APPLIED))
        if self.waits:
            machine.until_over(again.contract, 1)
        machine.one_pass(replace(again, looks=(self.look, Look.HONEST)))


@dataclass(frozen=True)
class Approved:
    """A pass after an approval, which may have lapsed by then, or been revoked, or lapse on the way (R5).

    Attributes:
        checked: ``revalidate`` is asked, too, and only while an approval is in force (L2).
    """

    checked: bool
    says: Says
    by: int
    revoked: bool
    turn: Turn
    what: Slow | None
    at: int

    def needs(self, setup: Setup) -> Setup:
        return replace(setup, authorizes=Check.REVIEW, revalidates=self.checked)

    def play(self, machine: Operations) -> None:
        machine.one_pass(Turn(observe_now=True))
        machine.somebody_decides(self.says)
        machine.time.pass_by(self.by)
        if self.revoked:
            machine.somebody_decides(Says(DecisionKind.REVOKED))
        machine.one_pass(replace(self.turn, reads_only=False, at=self.at, what=self.what))


@dataclass(frozen=True)
class LapsesOnTheWay:
    """An approval ends while the claim waits for a lock: just before, just then, or just after (R5).

    Attributes:
        decided: seconds from then at which it was decided, as is claimed.
    """

    checked: bool
    aged: bool
    by: int
    decided: int | None

    def needs(self, setup: Setup) -> Setup:
        return replace(
            setup,
            authorizes=Check.REVIEW,
            revalidates=self.checked,
            max_age=_AGE if self.aged else None,
            calm=False,
        )

    def play(self, machine: Operations) -> None:
        machine.one_pass(Turn(observe_now=True))
        expires = None if self.aged else _AGE
        machine.somebody_decides(Says(DecisionKind.APPROVED, decided=self.decided, expires=expires))
        machine.time.pass_by(1)
        claim = 3 if self.checked else 2
        machine.one_pass(Turn(at=claim, what=Slow(_AGE - 1 + self.by, 0)))


@dataclass(frozen=True)
class AskedBeforeTheRetry:
    """``revalidate`` asks for a review of the second attempt, and the first one lands meanwhile (R6)."""

    turn: Turn
    send: Send
    by: int
    asks: Check

    def needs(self, setup: Setup) -> Setup:
        return replace(setup, authorizes=None, revalidates=True)

    def play(self, machine: Operations) -> None:
        again = replace(_eager(self.turn), landing=4, looks=(Look.HONEST, Look.HONEST))
        machine.one_pass(replace(again, send=self.send))
        machine.until_over(again.contract, self.by)
        asked = replace(again, check=self.asks)
        machine.one_pass(asked)
        machine.somebody_decides_well()
        machine.one_pass(asked)
