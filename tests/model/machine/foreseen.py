"""What each pass must come to where nothing goes wrong in the middle: section 5 of the semantics, told once more.

It knows what was sent and when, what each read showed, and what people said; not what is stored.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from corrobo_core.records import DecisionKind, EffectResult
from tests.model.machine.contracts import POLL, RETENTION, RETRY
from tests.model.machine.outside import Sent
from tests.model.machine.plans import Check, Look, Send

if TYPE_CHECKING:
    from tests.model.machine.passes import Pass, Seen
    from tests.model.machine.stage import Stage

_MOMENT = timedelta(microseconds=1)


class End(NamedTuple):
    """What a pass comes to, as far as it is foreseen."""

    disposition: str | None
    reason: str
    evidence: str | None = None
    retry_at: datetime | None = None


_NEVER = End(None, "NEVER_SENT")


class Foreseen:
    """One operation's passes, foreseen one by one."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._last = _NEVER
        self._looks = 0
        self._authorized = False
        self._told = 0
        self._there = False

    def judge(self, this: Pass, result: EffectResult[Any], sent: list[Sent]) -> None:
        """Say what is wrong with a pass. ``sent``: what had been sent before it."""
        self._pass, self._sent, self._reads = this, sent, list(this.seen)
        end = self._observed() if this.turn.reads_only else self._run()
        got = End(result.disposition, result.reason, result.evidence, result.retry_at)
        if end.reason == "REVIEW_REQUIRED" and got.reason == "APPROVAL_LAPSED":
            end = end._replace(reason="APPROVAL_LAPSED")
        if got != end:
            self._stage.wrong(f"{this.turn} comes to {got}, and not {end}")
        if self._reads:
            self._stage.wrong(f"{this.turn} reads once too often")
        self._last = end
        if this.seen:
            self._told = len(self._stage.people.said)
        self._there = self._there or not this.turn.reads_only

    # -- the order of work (L2) --------------------------------------------------------------------------------

    def _observed(self) -> End:
        if not self._there or not self._sent:
            return self._last
        if self._last.disposition in ("COMPLETE", "REPLAN"):
            self._read()
            return self._last
        if (end := self._ended_by_a_person()) is not None:
            return end
        return self._decided(self._read())

    def _run(self) -> End:
        if self._last.disposition in ("COMPLETE", "REPLAN"):
            return self._last
        if (end := self._ended_by_a_person()) is not None:
            return end
        if not self._sent:
            return self._attempt(None)
        if self._too_early():
            return self._last
        end = self._decided(self._read())
        now = end.disposition == "RETRY" and end.retry_at == self._at(self._pass.began)
        return self._attempt(end.evidence) if now else end

    def _ended_by_a_person(self) -> End | None:
        for said in self._stage.people.said:
            if said.says.kind is DecisionKind.REJECTED:
                return End("REPLAN", "REJECTED", self._last.evidence)
            if said.says.kind is DecisionKind.APPLIED:
                return End("COMPLETE", "EFFECT_CONFIRMED", "APPLIED")
        return None

    def _too_early(self) -> bool:
        news = any(each.says.kind is DecisionKind.NOT_APPLIED for each in self._stage.people.said[self._told :])
        if news or self._pass.turn.observe_now or self._last.retry_at is None:
            return False
        return self._at(self._pass.began) < self._last.retry_at

    def _attempt(self, evidence: str | None) -> End:
        setup, check, people = self._stage.setup, self._pass.turn.check, self._stage.people
        if setup.authorizes is not None and not self._authorized:
            if check is Check.RAISES:
                return self._blocked("AUTHORIZATION_FAILED", evidence)
            self._authorized = True
        if setup.authorizes is Check.REJECT:
            return End("REPLAN", "REJECTED", evidence)
        if setup.authorizes is Check.REVIEW and not people.approves(self._pass.began):
            return End("REVIEW", "REVIEW_REQUIRED", evidence)
        if setup.revalidates and check is Check.RAISES:
            return self._blocked("REVALIDATION_FAILED", evidence)
        if setup.revalidates and check is Check.REJECT:
            return End("REPLAN", "REJECTED", evidence)
        if setup.revalidates and check is Check.REVIEW and not people.approves(self._pass.began):
            return End("REVIEW", "REVIEW_REQUIRED", evidence)
        return self._sends()

    def _blocked(self, reason: str, evidence: str | None) -> End:
        self._looks += 1
        return End(None, reason, evidence, self._at(self._pass.began) + POLL.delay(self._looks - 1))

    def _sends(self) -> End:
        this = self._pass
        if this.sent is None:
            self._stage.wrong(f"{this.turn} sends nothing")
            return self._last
        self._sent, self._looks = [*self._sent, this.sent], 0
        return self._decided(self._read())

    # -- evidence, and what is safe then -------------------------------------------------------------------------

    def _read(self) -> Seen | None:
        if not self._reads:
            self._stage.wrong(f"{self._pass.turn} does not read")
            return None
        return self._reads.pop(0)

    def _decided(self, seen: Seen | None) -> End:
        if seen is None:
            return self._last
        evidence, reason = _evidence(seen)
        # A read that failed counts as begun when the pass last heard from the ledger.
        failed = seen.how in (Look.FAILS, Look.NONSENSE)
        end = self._table(evidence, reason, self._pass.began if failed else seen.began)
        waits = end.disposition in (None, "INVESTIGATE")
        self._looks = self._looks + 1 if waits else 0
        return end

    def _table(self, evidence: str, reason: str, began: float) -> End:
        later = self._at(began) + POLL.delay(self._looks)
        match evidence:
            case "APPLIED":
                return End("COMPLETE", "EFFECT_CONFIRMED", evidence)
            case "CONFLICTED":
                return End("REPLAN", "WORLD_CHANGED", evidence)
            case "PENDING":
                return End(None, "CONVERGING", evidence, later)
        granted = self._stage.people.grants(self._sent)
        if evidence == "UNKNOWN" and not granted:
            return End("INVESTIGATE", reason, evidence, later)
        open_ = [each for each in self._sent if not self._is_over(each, began)]
        known = [over for each in open_ if (over := self._over(each)) is not None]
        if known:
            return End("RETRY", "SETTLING", evidence, self._at(max(known)) + _MOMENT)
        if granted:
            if evidence == "UNKNOWN" and not all(self._was_over(each, granted) for each in self._sent):
                return End("INVESTIGATE", "ATTESTED_TOO_EARLY", evidence, later)
            return End("RETRY", "ATTESTED_NOT_APPLIED", evidence, self._next(began))
        if open_:
            return End("INVESTIGATE", "IN_FLIGHT_NOT_RULED_OUT", evidence, later)
        if self._sent[-1].how is Send.REFUSED:
            return End("REPLAN", "PROVIDER_REFUSED", evidence)
        if (why := self._no_more(began)) is not None:
            return End("INVESTIGATE", why, evidence, later)
        return End("RETRY", "SAFE_RETRY", evidence, self._next(began))

    def _no_more(self, began: float) -> str | None:
        declared = self._pass.declared
        spent = [each for each in self._sent if each.how is not Send.NOT_SENT]
        if spent and not declared.retryable:
            return "NOT_RETRYABLE"
        if len(spent) >= declared.max_attempts:
            return "ATTEMPTS_EXHAUSTED"
        if declared.deduplicates and spent:
            assert declared.timeout is not None
            if began + declared.timeout >= min(each.reserved for each in spent) + RETENTION:
                return "KEY_EXPIRED"
        return None

    def _over(self, sent: Sent) -> float | None:
        return sent.over(self._pass.declared, recorded=True, closing=self._sent[-1].how is Send.REFUSED)

    def _is_over(self, sent: Sent, began: float) -> bool:
        over = self._over(sent)
        return over is not None and (began > over or sent.at_once(self._pass.declared))

    def _was_over(self, sent: Sent, granted: datetime) -> bool:
        """When a person looked; where nobody can say when it is over, the person's word is all there is."""
        over = self._over(sent)
        return over is None or granted > self._at(over) or sent.at_once(self._pass.declared)

    def _next(self, began: float) -> datetime:
        """When the next attempt may be made."""
        latest = self._sent[-1]
        at = began
        if latest.how is Send.REFUSED_FOR_NOW:
            at = latest.ended + self._stage.outside.retry_after()
        elif latest.how in (Send.NOT_SENT, Send.REFUSED):
            spared = sum(each.refused for each in self._sent)
            at = latest.ended + RETRY.delay(spared - 1).total_seconds()
        return self._at(max(at, began))

    def _at(self, elapsed: float) -> datetime:
        return self._stage.time.at(elapsed)


def _evidence(seen: Seen) -> tuple[str, str]:
    """What a read proves, and why it proves nothing."""
    if seen.how in (Look.FAILS, Look.NONSENSE):
        return "UNKNOWN", "NOT_ESTABLISHED"
    if seen.how is Look.MISJUDGED:
        return "UNKNOWN", "RECONCILE_FAILED"
    if seen.shown == "nothing" and seen.how is Look.INCOMPLETE:
        return "UNKNOWN", "ABSENCE_NOT_PROVEN"
    told = {"nothing": "NOT_APPLIED", "there": "APPLIED", "pending": "PENDING"}
    return told.get(seen.shown, "CONFLICTED"), ""
