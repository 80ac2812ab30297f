"""One pass over one operation, as a generator: it yields commands and receives their answers.

No I/O, no clock, no ids of its own. The synchronous and the asynchronous runner drive this same program, and
the model checker steps through it. A crash is a driver that stops between two commands.

The order of work (L2): open -> authorize -> observe and settle what an earlier attempt left -> revalidate ->
reserve -> execute -> observe -> reconcile -> decide -> record.
"""

from __future__ import annotations

from collections.abc import Generator
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from corrobo_core.commands import (
    Authorize,
    Claim,
    Command,
    Execute,
    Holder,
    Judged,
    KeepLate,
    Load,
    Loaded,
    Observe,
    Open,
    Raised,
    Reading,
    Reconcile,
    Record,
    Refused,
    Revalidate,
    Written,
)
from corrobo_core.decide import Decision as Safe
from corrobo_core.decide import Facts, decide, key_expires
from corrobo_core.errors import IdentityReused
from corrobo_core.frozen import evolve, frozen
from corrobo_core.policy import Policy
from corrobo_core.records import (
    JSON,
    AttemptRecord,
    Decision,
    DecisionKind,
    Disposition,
    Episode,
    Evidence,
    History,
    ObservationRecord,
    Operation,
    OperationKey,
    Reason,
)
from corrobo_core.rulings import Approval, approval_in_force, decision_on, grant_in_force, was_approved
from corrobo_core.transitions import (
    answers_review,
    closed_by,
    decided_by_person,
    late_evidence,
    next_attempt,
    observable_from,
    overtaken,
    reserving,
    superseded,
    was_paused,
    with_attestation,
    with_outcome,
)

__all__ = ["Call", "Conclusion", "Program", "observe", "run"]

_MAX_STARTS = 3  # a process paused this often in one pass (L9) lets the next pass try
_SOONEST, _LATEST = timedelta(milliseconds=250), timedelta(seconds=10)


@frozen
class Call:
    """What a pass is given: all that it may know without asking.

    Attributes:
        nonce: names this pass; never used twice.
        key: the operation.
        intent: canonical JSON text.
        fingerprint: of what is bound (I3).
        policy: the contract's declarations.
        observe_now: read also before ``retry_at`` (O5).
    """

    nonce: str
    key: OperationKey
    intent: str
    fingerprint: str
    policy: Policy
    observe_now: bool = False


@frozen
class Conclusion:
    """What a pass ends with.

    Attributes:
        operation: as stored now; None if ``observe`` found no record.
        now: the ledger's clock.
        in_progress_until: another pass is at work; come back then (C1).
        effect: the confirmed value itself, if this pass saw it; else it is in ``operation.effect``.
        saw_effect: whether ``effect`` is set.
        interrupted: a hook was cancelled or told to stop; the driver goes on with that (L7).
    """

    operation: Operation | None
    now: datetime
    in_progress_until: datetime | None = None
    effect: Any = None
    saw_effect: bool = False
    interrupted: bool = False


Program: TypeAlias = Generator[Command[Any], Any, Conclusion]


def run(call: Call) -> Program:
    """One pass that may make at most one attempt (L2, L3)."""
    this = _Pass(call)
    concluded: Conclusion | None = None
    for _ in range(_MAX_STARTS):
        concluded = yield from this.start()
        paused = concluded.operation is not None and concluded.operation.reason == Reason.PAUSED
        if concluded.interrupted or not paused:
            break
    assert concluded is not None
    return concluded


def observe(call: Call) -> Program:
    """One pass that only reads, whatever it finds (L4)."""
    return (yield from _Pass(call).observe())


@frozen
class _Look:
    """One observation with its verdict, the operation that was looked at, and its history with both."""

    operation: Operation
    history: History
    evidence: Evidence
    reason: Reason
    explanation: str
    began: datetime
    effect: Any = None
    stored: JSON = None


@frozen
class _Checked:
    """The operation after the checks before an attempt, whether one may be made, and under which approval."""

    operation: Operation
    may_attempt: bool = False
    approval: Approval | None = None


class _Pass:
    def __init__(self, call: Call) -> None:
        self.call = call
        self.writes = 0
        self.decisions: tuple[Decision, ...] = ()

    # -- the two programs ------------------------------------------------------------------------------------

    def start(self) -> Program:
        opened = yield from Open(self._new_operation())
        operation, reading = opened.operation, opened.reading
        self.decisions = opened.decisions
        self._refuse_reuse(operation)
        if opened.mine and operation.reserved:
            return (yield from self._attempt(operation, reading))
        if operation.closed:
            return Conclusion(operation, reading.now)
        decision = self._decision_on(operation)
        if decision is not None and decision.kind in (DecisionKind.REJECTED, DecisionKind.APPLIED):
            return (yield from self._record(decided_by_person(operation, decision)))
        if not operation.attempts:
            return (yield from self._next_attempt(operation, reading))
        if opened.holder is Holder.RUNNING and reading.now <= observable_from(operation.latest):
            return _in_progress(operation, reading)
        if decision is None and self._too_early(operation, opened.holder, reading):
            return Conclusion(operation, reading.now)

        running = opened.holder is Holder.RUNNING
        look = yield from self._look(operation if running else superseded(operation), reading)
        if look is None:
            return Conclusion(operation, reading.now, interrupted=True)
        settled, safe = self._settle(look, reading, running=running)
        if safe.attempt_now:
            return (yield from self._next_attempt(settled, reading))
        return (yield from self._record(settled, look))

    def observe(self) -> Program:
        loaded = yield from Load(self.call.key)
        operation, reading = loaded.operation, loaded.reading
        self.decisions = loaded.decisions
        if operation is None:
            return Conclusion(None, reading.now)
        self._refuse_reuse(operation)
        if not operation.attempts:
            return Conclusion(operation, reading.now)
        decision = None if operation.closed else self._decision_on(operation)
        if decision is not None and decision.kind in (DecisionKind.REJECTED, DecisionKind.APPLIED):
            return (yield from self._record(decided_by_person(operation, decision)))
        running = loaded.holder is Holder.RUNNING
        if running and reading.now <= observable_from(operation.latest):
            return _in_progress(operation, reading)
        look = yield from self._look(operation if running else superseded(operation), reading)
        if look is None:
            return Conclusion(operation, reading.now, interrupted=True)
        if operation.closed:  # new evidence, kept; never a reason to reopen (O6)
            return (yield from self._record(evolve(look.operation, history=look.history)))
        settled, _ = self._settle(look, reading, running=running)
        return (yield from self._record(settled, look))

    # -- before an attempt -----------------------------------------------------------------------------------

    def _new_operation(self) -> Operation:
        """Never sent. Without hooks to ask first, its first attempt is reserved by the same statement (L1)."""
        call, nonce = self.call, self._nonce()
        if call.policy.authorizes or call.policy.revalidates:
            return Operation(call.key, call.intent, call.fingerprint, nonce=nonce)
        attempts = (next_attempt((), nonce, call.policy),)
        reason = Reason.IN_PROGRESS.value
        return Operation(call.key, call.intent, call.fingerprint, nonce=nonce, attempts=attempts, reason=reason)

    def _refuse_reuse(self, operation: Operation) -> None:
        key, call = operation.key, self.call
        if key.type != call.key.type:
            raise IdentityReused(key.operation_id, "operation type", key.type, call.key.type)
        if operation.fingerprint != call.fingerprint:
            raise IdentityReused(key.operation_id, "intent", operation.fingerprint, call.fingerprint)

    def _too_early(self, operation: Operation, holder: Holder, reading: Reading) -> bool:
        """A stored time to come back is kept, unless whoever it waited for is gone meanwhile (O5)."""
        if self.call.observe_now or operation.retry_at is None or reading.now >= operation.retry_at:
            return False
        return not operation.reserved or holder is Holder.RUNNING

    def _next_attempt(self, operation: Operation, reading: Reading) -> Program:
        checked = yield from self._check(operation, reading)
        if checked is None:
            return Conclusion(operation, reading.now, interrupted=True)
        if checked.may_attempt:
            return (yield from self._claim(checked.operation, checked.approval))
        if checked.operation == operation:  # it still waits for the same answer
            return Conclusion(operation, reading.now)
        return (yield from self._record(checked.operation))

    def _check(self, operation: Operation, reading: Reading) -> Generator[Command[Any], Any, _Checked | None]:
        """Ask ``authorize`` until it has answered, look at the approval, ask ``revalidate`` (L2, L6, R5, R7)."""
        policy = self.call.policy
        if policy.authorizes and operation.authorized is None:
            answer = yield from Authorize(operation)
            if isinstance(answer, Raised):
                if answer.interrupted:
                    return None
                return self._blocked(operation, Reason.AUTHORIZATION_FAILED, answer.failure.message, reading)
            operation = evolve(operation, authorized=answer.kind, explanation=answer.explanation)
        if operation.authorized == "reject":
            return _Checked(closed_by(operation, Reason.REJECTED, operation.explanation))
        approval = approval_in_force(operation, self.decisions, policy, reading.now)
        if operation.authorized == "review" and approval is None:
            why = operation.review.reason if operation.review else operation.explanation
            return _Checked(self._for_review(operation, why, "authorize", reading))
        needed = operation.authorized == "review"
        if policy.revalidates:
            answer = yield from Revalidate(operation)
            if isinstance(answer, Raised):
                if answer.interrupted:
                    return None
                return self._blocked(operation, Reason.REVALIDATION_FAILED, answer.failure.message, reading)
            if answer.kind == "reject":
                return _Checked(closed_by(operation, Reason.REJECTED, answer.explanation))
            if answer.kind == "review":
                if approval is None or not answers_review(operation.review, answer):
                    return _Checked(self._for_review(operation, answer.explanation, "revalidate", reading))
                needed = True
        return _Checked(operation, may_attempt=True, approval=approval if needed else None)

    def _decision_on(self, operation: Operation) -> Decision | None:
        return decision_on(operation.episode.token, self.decisions) if operation.episode else None

    def _for_review(self, operation: Operation, why: str, asked_by: str, reading: Reading) -> Operation:
        lapsed = operation.review is not None and was_approved(operation.review.token, self.decisions)
        waiting = self._waiting(operation, Disposition.REVIEW, why, asked_by, reading)
        anew = lapsed and waiting.episode != operation.episode
        return evolve(
            waiting,
            disposition=Disposition.REVIEW,
            reason=(Reason.APPROVAL_LAPSED if anew else Reason.REVIEW_REQUIRED).value,
            explanation=why,
            retry_at=None,
        )

    def _waiting(
        self, operation: Operation, kind: Disposition, why: str, asked_by: str, reading: Reading
    ) -> Operation:
        """With an open episode: the one that is open, or else a new one (R2)."""
        current = operation.episode
        if current is not None and (current.kind, current.asked_by) == (kind, asked_by):
            same_question = kind is Disposition.INVESTIGATE or current.reason == why
            if same_question and not any(d.token == current.token for d in self.decisions):
                return operation
        number = operation.episodes + 1
        episode = Episode(f"ep{number}-{self._nonce()}", number, kind, reading.now, why, asked_by)
        review = episode if kind is Disposition.REVIEW else operation.review
        return evolve(operation, episode=episode, episodes=number, review=review)

    def _blocked(self, operation: Operation, reason: Reason, why: str, reading: Reading) -> _Checked:
        blocked = evolve(
            operation,
            disposition=None,
            reason=reason.value,
            explanation=why,
            retry_at=reading.now + self.call.policy.poll.delay(operation.looks),
            looks=operation.looks + 1,
            episode=None,
        )
        return _Checked(blocked)

    def _claim(self, operation: Operation, approval: Approval | None) -> Program:
        """Reserve another attempt; whoever else does so first, wins (C3)."""
        nonce = self._nonce()
        until = approval.until if approval else None
        reply = yield from Claim(reserving(operation, nonce, self.call.policy, approval), until)
        if isinstance(reply, Written):
            return (yield from self._attempt(reply.operation, reply.reading))
        loaded = yield from Load(self.call.key)
        stored = loaded.operation
        if stored is not None and stored.nonce == nonce:  # only the reply was lost (C2)
            clock = Reading(loaded.reading.now, reply.reading.sent, loaded.reading.received)
            return (yield from self._attempt(stored, clock))
        if stored is not None and stored.version == operation.version and operation.review is not None:
            # Nobody else wrote: the approval ended before the attempt could start (R5).
            self.decisions = loaded.decisions
            asked = operation.review
            again = self._for_review(evolve(operation, episode=None), asked.reason, asked.asked_by, loaded.reading)
            return (yield from self._record(again))
        return _stored(loaded)

    # -- the attempt -----------------------------------------------------------------------------------------

    def _attempt(self, operation: Operation, reading: Reading) -> Program:
        reserved = operation.latest
        done = yield from Execute(operation, self._not_after(operation, reading), reserved.timeout)
        made = with_outcome(reserved, done, reading)
        operation = evolve(operation, attempts=(*operation.attempts[:-1], made), owner=None)
        if done.interrupted or was_paused(made):
            reason = Reason.PAUSED if was_paused(made) and not done.interrupted else Reason.INTERRUPTED
            concluded = yield from self._record(evolve(operation, reason=reason.value))
            return evolve(concluded, interrupted=done.interrupted)

        look = yield from self._look(operation, reading)
        if look is None:
            unseen = evolve(operation, reason=Reason.INTERRUPTED.value)
            return evolve((yield from self._record(unseen)), interrupted=True)
        settled, _ = self._settle(look, reading, running=False)
        return (yield from self._record(settled, look))

    def _not_after(self, operation: Operation, reading: Reading) -> float | None:
        """Stopwatch time after which this attempt must not begin to send (L9, D2)."""
        policy, limits = self.call.policy, []
        if policy.start_allowance is not None:
            limits.append(reading.sent + policy.start_allowance.total_seconds())
        expires, earlier = key_expires(operation.attempts, policy), operation.attempts[:-1]
        # A person who allowed this attempt has answered for the earlier ones, with whatever key (R8).
        if expires is not None and earlier and grant_in_force(earlier, self.decisions) is None:
            left = expires - reading.now - policy.key_use
            limits.append(reading.sent + left.total_seconds())
        return min(limits, default=None)

    # -- after an attempt, this pass's or an earlier one's ---------------------------------------------------

    def _look(self, operation: Operation, reading: Reading) -> Generator[Command[Any], Any, _Look | None]:
        """Observe and reconcile. None: interrupted."""
        saw = yield from Observe(operation)
        if isinstance(saw, Raised):
            if saw.interrupted:
                return None
            why = f"observe raised {saw.failure.type}: {saw.failure.message}"
            return _looked(operation, Evidence.UNKNOWN, Reason.NOT_ESTABLISHED, why, reading.now, "observe")
        observation, began = saw.observation, reading.at_least(saw.began)
        verdict = yield from Reconcile(operation, observation)
        source, proof = observation.source, observation.proves_absence
        if isinstance(verdict, Raised):
            if verdict.interrupted:
                return None
            why = f"reconcile raised {verdict.failure.type}: {verdict.failure.message}"
            return _looked(operation, Evidence.UNKNOWN, Reason.RECONCILE_FAILED, why, began, source, proof)
        if verdict.evidence is Evidence.NOT_APPLIED and not proof:  # O2
            why = f"{source} found nothing, and could have missed it"
            return _looked(operation, Evidence.UNKNOWN, Reason.ABSENCE_NOT_PROVEN, why, began, source, proof)
        return _looked(
            operation,
            verdict.evidence,
            Reason.NOT_ESTABLISHED,
            verdict.explanation or verdict.code,
            began,
            source,
            proof,
            verdict,
        )

    def _settle(self, look: _Look, reading: Reading, *, running: bool) -> tuple[Operation, Safe]:
        """Decide what is safe next, and the operation that says so. Writes nothing."""
        operation = look.operation
        grant = grant_in_force(operation.attempts, self.decisions)
        decision = decide(
            Facts(
                evidence=look.evidence,
                reason=look.reason,
                attempts=operation.attempts,
                running=running and operation.reserved,
                began=look.began,
                looks=operation.looks,
                policy=self.call.policy,
                granted_at=None if grant is None else grant.decided_at,
            )
        )
        history = look.history if grant is None else with_attestation(look.history, grant, Evidence.NOT_APPLIED)
        open_question = decision.disposition is None or decision.disposition is Disposition.INVESTIGATE
        unanswered = decision.disposition is Disposition.INVESTIGATE  # while it converges, nobody need be called
        asked = operation.episode is not None and operation.episode.kind is Disposition.REVIEW
        settled = evolve(
            operation,
            disposition=decision.disposition,
            reason=decision.reason.value,
            explanation=look.explanation,
            retry_at=look.began if decision.attempt_now else decision.retry_at,
            evidence=look.evidence,
            effect=look.stored if look.evidence is Evidence.APPLIED else operation.effect,
            history=history,
            looks=operation.looks + 1 if open_question else 0,
            looking_since=(operation.looking_since or look.began) if unanswered else None,
            episode=operation.episode if unanswered or (decision.attempt_now and asked) else None,
        )
        if unanswered:
            settled = self._waiting(settled, Disposition.INVESTIGATE, decision.reason.value, "", reading)
        if settled.closed or decision.attempt_now:  # seen or decided while its owner runs: nothing to wait for
            settled = superseded(settled)
        return settled, decision

    # -- recording -------------------------------------------------------------------------------------------

    def _record(self, operation: Operation, look: _Look | None = None) -> Program:
        """Store the operation if nobody else has written meanwhile; else report what is stored (C2)."""
        operation = evolve(operation, nonce=self._nonce())
        reply = yield from Record(operation)
        if isinstance(reply, Refused):
            loaded = yield from Load(self.call.key)
            if loaded.operation is None or loaded.operation.nonce != operation.nonce:
                return (yield from self._lost(operation, loaded))
            stored, now = loaded.operation, loaded.reading.now
        else:
            stored, now = reply.operation, reply.reading.now
        saw = look is not None and look.evidence is Evidence.APPLIED
        return Conclusion(stored, now, effect=look.effect if saw and look else None, saw_effect=saw)

    def _lost(self, mine: Operation, loaded: Loaded) -> Program:
        """Another pass has written. What this one learned of its own attempt is kept and decides nothing (C2)."""
        made = mine.latest if mine.attempts and self._is_mine(mine.latest) else None
        stored = loaded.operation
        if made is None or stored is None:
            return _stored(loaded)
        while stored is not None and stored.reserved and stored.latest.nonce == made.nonce:
            # Others looked or decided meanwhile, and nobody superseded the attempt: its outcome belongs there. Each
            # refusal means that one more of them has written.
            merged = evolve(overtaken(stored, mine, made), nonce=self._nonce())
            reply = yield from Record(merged)
            if isinstance(reply, Written):
                return Conclusion(reply.operation, reply.reading.now)
            loaded = yield from Load(self.call.key)
            stored = loaded.operation
            if stored is not None and stored.nonce == merged.nonce:  # only the reply was lost (C2)
                return Conclusion(stored, loaded.reading.now)
        yield from KeepLate(self.call.key, made.number, made.nonce, late_evidence(mine, made))
        return _stored((yield from Load(self.call.key)))

    def _nonce(self) -> str:
        self.writes += 1
        return f"{self.call.nonce}.{self.writes}"

    def _is_mine(self, attempt: AttemptRecord) -> bool:
        return attempt.nonce.partition(".")[0] == self.call.nonce


# -- conclusions ----------------------------------------------------------------------------------------------


def _looked(
    operation: Operation,
    evidence: Evidence,
    reason: Reason,
    explanation: str,
    began: datetime,
    source: str,
    proves_absence: bool = False,
    judged: Judged | None = None,
) -> _Look:
    record = ObservationRecord(
        began=began,
        attempt=operation.latest.number,
        source=source,
        proves_absence=proves_absence,
        evidence=evidence,
        code=judged.code if judged else reason.value,
        explanation=explanation,
    )
    effect, stored = (judged.effect, judged.stored) if judged else (None, None)
    return _Look(operation, operation.history.plus(record), evidence, reason, explanation, began, effect, stored)


def _in_progress(operation: Operation, reading: Reading) -> Conclusion:
    """Come back after half the attempt's age: soon while it is young, rarely when it is slow (C1)."""
    started = operation.latest.started
    assert started is not None
    pause = min(max((reading.now - started) / 2, _SOONEST), _LATEST)
    return Conclusion(operation, reading.now, in_progress_until=reading.now + pause)


def _stored(loaded: Loaded) -> Conclusion:
    if loaded.operation is not None and loaded.operation.reserved:
        return _in_progress(loaded.operation, loaded.reading)
    return Conclusion(loaded.operation, loaded.reading.now)
