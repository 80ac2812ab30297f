"""One pass: what its hooks do, what happens in the middle of it, and what must hold before it may send."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from corrobo_core import Attempt, Observation, Verdict
from corrobo_core.commands import Claim, LedgerCommand, Open, Record, Written
from corrobo_core.errors import LedgerUnavailable, NotSent, Rejected
from corrobo_core.ledgers.ports import Ledger
from corrobo_core.records import Check as Answer
from corrobo_core.records import OperationKey, evolve
from tests.crash.process import Killed, Process
from tests.model.machine.contracts import CONTEXT, DECLARED, RETENTION
from tests.model.machine.outside import AMOUNT, Sent
from tests.model.machine.plans import (
    Check,
    Dies,
    Look,
    Meanwhile,
    Repeated,
    Says,
    Send,
    SetBack,
    Slow,
    TakenForDead,
    Turn,
    Unanswered,
)

if TYPE_CHECKING:
    from tests.model.machine.stage import Stage

R = TypeVar("R")


@dataclass(frozen=True)
class Seen:
    """One read of a pass: when it began, and what it could prove."""

    began: float
    how: Look
    shown: str

    @property
    def proof(self) -> bool:
        """It could not have missed what is there (O1)."""
        return self.how in (Look.HONEST, Look.STALE, Look.MISJUDGED)


class Pass:
    """One pass of one process, as its hooks and its ledger see it."""

    def __init__(self, stage: Stage, turn: Turn) -> None:
        self.stage, self.turn, self.note = stage, turn, f"note {len(stage.nonces)}"
        self.declared = DECLARED[turn.contract]
        self.watched = Watched(self)
        side: Any = "after" if turn.after else "before"
        self.process = Process(self.watched, turn.at, side, self._happens)
        self.began = stage.time.elapsed
        self.reserved: float | None = None
        self.spent = self.recorded = self.given_up = False
        self.sent: Sent | None = None
        self.seen: list[Seen] = []
        self.checked: Check | None = None
        self.reads = 0

    # -- what happens in the middle ------------------------------------------------------------------------

    def _happens(self) -> None:
        what, stage = self.turn.what, self.stage
        in_hook = self.process.steps[-1].islower()
        if what is not None and not isinstance(what, Repeated):
            stage.disturbed = True
        match what:
            case Dies():
                self.process.dead = True
                raise Killed
            case TakenForDead(then):
                self.given_up = True
                for nonce in self.process.nonces:
                    stage.store.ledger(self.turn.process).pass_ended(nonce)
                stage.play(replace(then, process=self.turn.process))
            case Unanswered():
                if not in_hook:
                    raise LedgerUnavailable("model", "the connection broke")
            case Repeated():
                self.watched.repeats = True
            case Slow(there, back):
                if in_hook or self.turn.after:
                    stage.time.pass_by(there + back)
                else:
                    self.watched.slow = there, back
            case Meanwhile(seconds, then):
                stage.time.pass_by(seconds)
                stage.play(replace(then, process=1 - self.turn.process))
            case SetBack(seconds):
                stage.time.set_back(seconds)
            case Says():
                stage.people.say(what, self.turn.process)
            case Turn():
                stage.play(replace(what, process=1 - self.turn.process))
            case None:
                pass

    # -- hooks ---------------------------------------------------------------------------------------------

    def execute(self, attempt: Attempt, amount: int, note: str) -> int:
        stage, turn, now = self.stage, self.turn, self.stage.time
        began = now.elapsed
        self._may_send(amount)
        self._given(attempt, note)
        with self.process.step("execute"):
            late = self.declared.timeout is not None and now.elapsed - began > self.declared.timeout
            how = Send.NOT_SENT if late else self._honest(turn.send)
            if how is Send.STOPPED_BEFORE:
                raise KeyboardInterrupt
            assert self.reserved is not None
            self.sent = stage.outside.receive(
                self.reserved, now.elapsed, how, turn.landing, self.declared, attempt.idempotency_key
            )
            now.pass_by(turn.slow)
            self.sent.ended = now.elapsed
        self.sent.ended = now.elapsed
        return self._answer(how)

    def _honest(self, how: Send) -> Send:
        """A contract that says that an answer means the effect is there tells the truth."""
        told = {Send.ANSWER_FIRST: Send.LATE, Send.DROPPED: Send.LOST}
        return told.get(how, how) if self.declared.answers_after_effect else how

    def _answer(self, how: Send) -> int:
        match how:
            case Send.ANSWERED | Send.ANSWER_FIRST | Send.DROPPED:
                strange: Any = object()
                return strange if self.turn.strange else AMOUNT
            case Send.REFUSED:
                raise Rejected("no")
            case Send.REFUSED_FOR_NOW:
                raise Rejected(
                    "not now", retryable=True, retry_after=timedelta(seconds=self.stage.outside.retry_after())
                )
            case Send.NOT_SENT:
                raise NotSent("no route")
            case Send.STOPPED:
                raise KeyboardInterrupt
            case _:
                raise ConnectionError("reset")

    def observe(self, attempt: Attempt, amount: int, note: str) -> Any:
        stage, began = self.stage, self.stage.time.elapsed
        self._given(attempt, note)
        how = self.turn.looks[min(self.reads, 1)]
        self.reads += 1
        with self.process.step("observe"):
            if how in (Look.FAILS, Look.STOPPED):
                self.seen.append(Seen(began, how, "no answer"))
                raise ConnectionError("reset") if how is Look.FAILS else KeyboardInterrupt
            lag = self.declared.lag if how is Look.STALE else 0
            shown = stage.outside.shows(stage.time.elapsed - lag)
        self.seen.append(Seen(began, how, shown))
        if how is Look.NONSENSE:
            return {"found": shown}
        return Observation.of(shown, source="model", proves_absence=how is not Look.INCOMPLETE)

    def reconcile(self, attempt: Attempt, data: Any) -> Verdict[int]:
        self.stage.check_history(attempt.history, [*self.stage.looked, *self.seen[:-1]])
        if self.seen[-1].how is Look.MISJUDGED:
            raise ZeroDivisionError("a bug in reconcile")
        match data:
            case "there":
                return Verdict.applied("THERE", effect=AMOUNT)
            case "pending":
                return Verdict.pending("PENDING")
            case "nothing":
                return Verdict.not_applied("NOTHING")
            case _:
                return Verdict.conflicted(data.upper())

    def authorize(self, attempt: Attempt) -> Answer:
        assert self.stage.setup.authorizes is not None
        self._asked(attempt)
        with self.process.step("authorize"):
            return _answer(Check.RAISES if self.turn.check is Check.RAISES else self.stage.setup.authorizes)

    def revalidate(self, attempt: Attempt) -> Answer:
        self._asked(attempt)
        with self.process.step("revalidate"):
            self.checked = self.turn.check
            return _answer(self.turn.check)

    # -- what hooks are given ------------------------------------------------------------------------------

    def _given(self, attempt: Attempt, note: str) -> None:
        """I2, I6: what was recorded, and nothing of this call."""
        if note != self.stage.note:
            self.stage.wrong(f"it is about {note!r}, and {self.stage.note!r} is recorded")
        if attempt.context:
            self.stage.wrong("what is sent or read may depend on the caller")

    def _asked(self, attempt: Attempt) -> None:
        if attempt.context != CONTEXT:
            self.stage.wrong("whoever is asked does not know the caller")

    # -- what must hold before something is sent -----------------------------------------------------------

    def _may_send(self, amount: int) -> None:
        stage, wrong = self.stage, self.stage.wrong
        if amount != AMOUNT:
            wrong(f"sent with the amount {amount}")
        if self.turn.reads_only:
            wrong("observe has sent something")
        if self.reserved is None or self.spent:
            wrong("sent without a reservation of its own")
        self.spent = True
        self._in_time()
        granted = stage.people.grants(stage.outside.sent)
        self._while_the_key_is_known(granted)
        if any(each.at_work() for each in stage.running if each is not self):
            wrong("sent while the owner of an earlier attempt lives")
        # Taken for dead, it goes on; where the provider recognises it, that is all there is to it (C5, L9).
        recognised = self.given_up and self.declared.deduplicates
        if any(e is not self.sent for e in stage.outside.sent) and not recognised:
            self._must_have_read(granted)
        spent = sum(each.how is not Send.NOT_SENT for each in stage.outside.sent)
        allowed = self.declared.max_attempts if self.declared.retryable else 1
        if spent >= allowed and not granted:
            wrong(f"sent {spent + 1} times")
        if stage.setup.revalidates and self.checked in (Check.REJECT, Check.RAISES, None):
            wrong(f"sent although revalidate says {self.checked}")

    def at_work(self) -> bool:
        """It makes an attempt just now."""
        return not (self.reserved is None or self.recorded or self.given_up or self.process.dead)

    def holds(self) -> bool:
        """It makes an attempt just now, and its window is not over: others leave it alone (C1, C5)."""
        if self.reserved is None or not self.at_work():
            return False
        after = self.declared.settles_after or self.declared.timeout or 600.0
        return self.stage.time.elapsed <= self.reserved + after

    def _in_time(self) -> None:
        """L9: begun while it can still end within its window."""
        window, timeout = self.declared.window, self.declared.timeout
        if window and timeout is not None and self.reserved is not None:
            waited = self.stage.time.elapsed - self.reserved
            if waited > window - timeout:
                self.stage.wrong(f"begun to send {waited:g} s after the reservation")

    def _while_the_key_is_known(self, granted: datetime | None) -> None:
        """D2: what relies on its key is sent while the provider still knows it, until its timeout is over."""
        earlier = [each.reserved for each in self.stage.outside.sent if each.how is not Send.NOT_SENT]
        if not self.declared.deduplicates or not earlier or granted:
            return
        assert self.declared.timeout is not None
        left = min(earlier) + RETENTION - self.declared.timeout - self.stage.time.elapsed
        if left < 0:
            self.stage.wrong(f"sent {-left:g} s too late for its key")

    def _must_have_read(self, granted: datetime | None) -> None:
        """D4: sent again only after a good read that began when every earlier request was over."""
        if not self.seen:
            self.stage.wrong("sent again without a read")
            return
        last = self.seen[-1]
        good = last.how in (Look.HONEST, Look.STALE) and last.shown == "nothing"
        unclear = last.shown in ("nothing", "no answer") or last.how in (Look.MISJUDGED, Look.NONSENSE)
        if not good and not (granted and unclear):
            self.stage.wrong(f"sent again although the read shows {last.shown}: {last.how}")
        for earlier in self.stage.outside.sent:
            over, at_once = earlier.over(self.declared), earlier.at_once(self.declared)
            if granted and not good and over is not None and not at_once and granted <= self.stage.time.at(over):
                self.stage.wrong(
                    "sent again on the word of somebody who looked before the earlier request was over"
                )
            if over is None and not granted:
                self.stage.wrong("sent again, and nobody knows whether the earlier request is over")
            if over is not None and (last.began < over or (last.began == over and not at_once)):
                self.stage.wrong(f"sent again after a read at {last.began:g}; earlier request over at {over:g}")


def _answer(check: Check) -> Answer:
    match check:
        case Check.PROCEED:
            return Answer.proceed()
        case Check.REVIEW:
            return Answer.requires_review("ask first")
        case Check.REJECT:
            return Answer.reject("no")
        case Check.RAISES:
            raise ConnectionError("reset")


class Watched:
    """The ledger of one pass: it tells the time, can be slow or lose a reply, and sees what is let through."""

    def __init__(self, this: Pass) -> None:
        self._pass, self._stage = this, this.stage
        self.repeats = False
        self.slow: tuple[int, int] | None = None

    @property
    def _ledger(self) -> Ledger:
        return self._stage.store.ledger(self._pass.turn.process)

    @property
    def namespace(self) -> str:
        return self._ledger.namespace

    def perform(self, command: LedgerCommand[R], /) -> R:
        time, (there, back) = self._stage.time, self.slow or (0, 0)
        sent = time.stopwatch()
        time.pass_by(there)
        reply = self._once(command)
        if self.repeats:
            reply = self._once(command)
        time.pass_by(back)
        if self.slow and reply is not None:
            at: Any = reply
            reply = evolve(at, reading=evolve(at.reading, sent=sent, received=time.stopwatch()))
        self.repeats, self.slow = False, None
        return reply

    def _once(self, command: LedgerCommand[R]) -> R:
        self._stage.store.tell_time()
        reply = self._ledger.perform(command)
        self._let_through(command, reply)
        return reply

    async def perform_async(self, command: LedgerCommand[R], /) -> R:
        return self.perform(command)

    def _let_through(self, command: LedgerCommand[Any], reply: Any) -> None:
        this = self._pass
        opened = isinstance(command, Open) and command.operation.reserved and reply.mine
        if (isinstance(command, Claim) and isinstance(reply, Written)) or opened:
            if this.reserved is None:
                self._stage.people.check_reservation()
            if self._stage.closed is not None:
                self._stage.wrong(f"reserved after it was {self._stage.closed}")
            this.reserved, this.spent, this.recorded = self._stage.time.elapsed, False, False
        if isinstance(command, Record) and isinstance(reply, Written):
            this.recorded = True
        if isinstance(command, Open) and self._stage.note is None:
            self._stage.note = this.note

    def pass_started(self, nonce: str, /) -> None:
        self._stage.nonces.append(nonce)
        self._ledger.pass_started(nonce)

    def pass_ended(self, nonce: str, /) -> None:
        self._ledger.pass_ended(nonce)

    def abandon(self, key: OperationKey, nonce: str, /) -> None:
        self._ledger.abandon(key, nonce)

    def idempotency_key(self, key: OperationKey, /) -> str:
        return self._ledger.idempotency_key(key)
