"""The outside system: what was sent to it and when, what is there, and what it shows. Times are the stopwatch's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tests.model.machine.contracts import RETENTION, Declared
from tests.model.machine.plans import Send

AMOUNT = 5  # of the operation; somebody else's effect has another
_UNKNOWN_WINDOW = 40.0  # what nobody has declared can take this long
_FOR_NOW = 3.0

Shown = Literal["nothing", "pending", "there", "twice", "another"]


@dataclass
class Effect:
    """Something that is there, or will be.

    Attributes:
        first_sent: of its key, where the provider deduplicates.
        lands: when it appears.
        gone: when it was taken back.
    """

    first_sent: float
    lands: float
    gone: float | None = None

    def there(self, at: float) -> bool:
        return self.lands <= at and (self.gone is None or at < self.gone)


@dataclass
class Sent:
    """One request, as the outside system saw it.

    Attributes:
        reserved: when the statement that reserved its attempt was sent.
        at: when it was sent.
        ended: when the hook ended.
        how: what became of it.
        declared: by the contract that sent it.
        latest: when it can last have an effect, if what was declared is true.
        pending_until: it shows as pending before.
    """

    reserved: float
    at: float
    how: Send
    declared: Declared
    latest: float | None
    ended: float = 0.0
    pending_until: float | None = None

    @property
    def refused(self) -> bool:
        """The caller was told that this one can have no effect."""
        return self.how in (Send.REFUSED, Send.REFUSED_FOR_NOW, Send.NOT_SENT)

    def over(self, today: Declared, *, recorded: bool = False, closing: bool = False) -> float | None:
        """When it cannot have an effect, or show it late, by what was declared; None: nobody can say.

        A window of zero counts only while the next request is deduplicated, too, and if there is a next one: it
        says nothing when a refusal would be closing. Today's window can be longer, or known no more, and today's
        reads staler. With a recorded end, a hook that overran its timeout is counted from there (L9).
        """
        if self.refused:
            return self.ended
        if self.how is Send.ANSWERED and self.declared.answers_after_effect:
            return self.ended + max(self.declared.lag, today.lag)
        if self.declared.deduplicates and today.deduplicates:
            return None if closing else self.at
        timeout = self.declared.timeout
        overran = recorded and timeout is not None and self.ended - self.reserved > timeout
        if self.declared.window is None or today.window is None:
            return None
        window = max(self.declared.window, today.window)
        return (self.ended if overran else self.reserved) + window + max(self.declared.lag, today.lag)

    def at_once(self, today: Declared) -> bool:
        """It is over at that very moment, and not only after it."""
        sure = (
            self.how is Send.ANSWERED
            and self.declared.answers_after_effect
            and not max(self.declared.lag, today.lag)
        )
        return self.refused or sure or (self.declared.deduplicates and today.deduplicates)


@dataclass
class Outside:
    """One provider.

    Attributes:
        deduplicates: it remembers keys for `RETENTION`.
        keys: every idempotency key it was given.
    """

    deduplicates: bool = False
    effects: list[Effect] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    reads: int = 0

    def receive(self, reserved: float, now: float, how: Send, landing: int, declared: Declared, key: str) -> Sent:
        """One request. Whoever raises or returns afterwards is not of interest here."""
        limit = self._latest(reserved, now, declared)
        sent = Sent(reserved, now, how, declared, limit)
        self.sent.append(sent)
        self.keys.add(key)
        when = now + (limit - now) * landing / 4
        if how in (Send.ANSWERED, Send.REPLY_LOST):
            self._lands(now, now)
        elif how in (Send.LATE, Send.ANSWER_FIRST, Send.STOPPED):
            self._lands(now, when)
        if how in (Send.ANSWER_FIRST, Send.DROPPED):
            sent.pending_until = when
        return sent

    def _latest(self, reserved: float, now: float, declared: Declared) -> float:
        if declared.window is None:
            return now + _UNKNOWN_WINDOW
        return max(now, reserved + (declared.window or 10.0))

    def _lands(self, now: float, when: float) -> None:
        remembered = [e for e in self.effects if now < e.first_sent + RETENTION] if self.deduplicates else []
        if remembered:
            remembered[-1].lands = min(remembered[-1].lands, when)
        else:
            self.effects.append(Effect(now, when))

    def shows(self, at: float) -> Shown:
        """What is to be seen as of some time."""
        self.reads += 1
        if any(since <= at for since in self.others):
            return "another"
        there = sum(each.there(at) for each in self.effects)
        if there:
            return "there" if there == 1 else "twice"
        processing = any(s.pending_until is not None and s.at <= at < s.pending_until for s in self.sent)
        return "pending" if processing else "nothing"

    def there(self, now: float) -> bool:
        return any(each.there(now) for each in self.effects)

    def will_be_there(self, now: float) -> bool:
        """Something is there, or still to come."""
        return any(each.gone is None for each in self.effects)

    def retry_after(self) -> float:
        return _FOR_NOW
