"""Tables: facts and policy in, disposition out. The only place where evidence becomes a disposition. Pure.

Source: semantics section 5, D4, D4a.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from corrobo_core.frozen import evolve, frozen
from corrobo_core.policy import Policy
from corrobo_core.records import AttemptRecord, Disposition, Evidence, Outcome, Reason

__all__ = ["GRANTED", "TABLE", "Decision", "Facts", "Row", "decide", "key_expires", "settlement"]

ALWAYS = datetime.min.replace(tzinfo=UTC)  # compared by identity: "settled, whatever the time"


@frozen
class Facts:
    """All that a decision may depend on.

    Attributes:
        evidence: after rule O2.
        reason: for ``UNKNOWN``, why.
        attempts: every attempt, latest last.
        running: the latest attempt is unrecorded and its owner lives.
        began: lower bound of the ledger time at which the observation began (D4a).
        looks: consecutive looks without an answer, before this one.
        policy: the contract's declarations.
        granted_at: ledger time at which a person attested that no attempt so far was applied, and allowed one more
            (R8); None if nobody did.
    """

    evidence: Evidence
    reason: Reason
    attempts: tuple[AttemptRecord, ...]
    running: bool
    began: datetime
    looks: int
    policy: Policy
    granted_at: datetime | None = None


@frozen
class Decision:
    """What is safe to do next, why, and when: ``retry_at`` None with ``RETRY`` means now."""

    disposition: Disposition | None
    reason: Reason
    retry_at: datetime | None = None

    @property
    def attempt_now(self) -> bool:
        """Another attempt is safe, and need not wait."""
        return self.disposition is Disposition.RETRY and self.retry_at is None


# -- settlement (D4) -----------------------------------------------------------------------------------------


def settlement(attempt: AttemptRecord) -> datetime | None:
    """The ledger time after which an attempt's effect can no longer appear.

    Returns:
        `ALWAYS` for an attempt that is finished as such; None if no window was recorded for it (D3).
    """
    if attempt.outcome in (Outcome.REJECTED, Outcome.NOT_SENT):
        return ALWAYS
    if attempt.outcome is Outcome.RESPONDED and attempt.finished_by_response:
        return ALWAYS if not attempt.lag else _end(attempt) + attempt.lag
    if attempt.window is None:
        return None
    if not attempt.window:  # the provider deduplicates, and reads are never stale (D2)
        return ALWAYS
    return _counted_from(attempt) + attempt.window


def _end(attempt: AttemptRecord) -> datetime:
    end = attempt.ended or attempt.abandoned or attempt.started
    assert end is not None
    return end


def _counted_from(attempt: AttemptRecord) -> datetime:
    """The start; the end, for a hook that overran its timeout (L9)."""
    assert attempt.started is not None
    end = _end(attempt)
    overran = attempt.timeout is not None and end - attempt.started > attempt.timeout
    return end if overran else attempt.started


def _unsettled(facts: Facts, when: datetime | None = None) -> list[AttemptRecord]:
    """The attempts that had not settled when the observation began, or at another time."""
    moment = when or facts.began

    def settled(attempt: AttemptRecord) -> bool:
        at = settlement(attempt)
        return at is not None and (at is ALWAYS or moment > at)

    attempts = [_as_read_today(attempt, facts) for attempt in facts.attempts]
    return [attempt for attempt in attempts if not settled(attempt)]


def _as_read_today(attempt: AttemptRecord, facts: Facts) -> AttemptRecord:
    """With what a later deploy lengthens (D3): a window, a lag, or, by declaring none any more, a window for good.

    So a window of zero counts only while the contract still says that the provider deduplicates: without, today's
    window is longer (D2). And today's reads can be staler than those that the attempt was sent under: they could
    miss what landed last.
    """
    lag = max(attempt.lag, facts.policy.observation_lag)
    window: timedelta | None = None
    if attempt.window is not None and facts.policy.window is not None:
        longest = max(attempt.window - attempt.lag, facts.policy.window)
        # Zero promises that a next attempt does no harm, not that this one lands no more: a refusal ends it (T2).
        window = longest + lag if longest or not _refused_for_good(facts) else None
    if window == attempt.window and lag == attempt.lag:
        return attempt
    return evolve(attempt, window=window, lag=lag)


# -- conditions ----------------------------------------------------------------------------------------------


def _any(_: Facts) -> bool:
    return True


def _running(facts: Facts) -> bool:
    return facts.running


def _settling(facts: Facts) -> bool:
    return any(settlement(attempt) is not None for attempt in _unsettled(facts))


def _attested_too_early(facts: Facts) -> bool:
    """Something could still land when the person looked, and only a read could tell whether it has."""
    return any(settlement(attempt) is not None for attempt in _unsettled(facts, facts.granted_at))


def _window_unknown(facts: Facts) -> bool:
    return bool(_unsettled(facts))


def _refused_for_good(facts: Facts) -> bool:
    latest = facts.attempts[-1]
    return latest.outcome is Outcome.REJECTED and not latest.retryable


def _not_retryable(facts: Facts) -> bool:
    return not facts.policy.retry.retryable and _sent(facts) > 0


def _exhausted(facts: Facts) -> bool:
    return _sent(facts) >= facts.policy.retry.max_attempts


def _sent(facts: Facts) -> int:
    """How many attempts were, or may have been, sent: ``NOT_SENT`` uses up none (L9)."""
    return sum(attempt.outcome is not Outcome.NOT_SENT for attempt in facts.attempts)


def _key_expired(facts: Facts) -> bool:
    expires = key_expires(facts.attempts, facts.policy)
    return expires is not None and facts.began + facts.policy.key_use >= expires


def key_expires(attempts: tuple[AttemptRecord, ...], policy: Policy) -> datetime | None:
    """Ledger time at which the provider may forget this operation's key; None if it knows none (D2)."""
    if policy.key_retention is None:
        return None
    sent = [a.started for a in attempts if a.outcome is not Outcome.NOT_SENT and a.started]
    try:
        return min(sent) + policy.key_retention if sent else None
    except OverflowError:  # timedelta.max: the provider never forgets
        return None


# -- when to come back ---------------------------------------------------------------------------------------


def _no_time(_: Facts) -> datetime | None:
    return None


def _next_look(facts: Facts) -> datetime | None:
    return facts.began + facts.policy.poll.delay(facts.looks)


def _all_settled(facts: Facts) -> datetime | None:
    # One microsecond more: settled means strictly after (D4).
    known = [at for a in _unsettled(facts) if (at := settlement(a)) is not None]
    return max(known) + timedelta(microseconds=1)


def _next_attempt(facts: Facts) -> datetime | None:
    latest = facts.attempts[-1]
    if latest.retry_after is not None:
        return latest.retry_after if latest.retry_after > facts.began else None
    # A process paused before its send (NOT_SENT without a failure) need not spare the provider.
    failures = [
        a for a in facts.attempts if a.failure and (a.outcome is Outcome.NOT_SENT or a.outcome is Outcome.REJECTED)
    ]
    if not failures or failures[-1] is not latest:
        return None
    at = _end(latest) + facts.policy.retry.backoff.delay(len(failures) - 1)
    return at if at > facts.began else None


@frozen
class Row:
    """One line of the table: the first whose evidence and condition match decides."""

    evidence: Evidence
    condition: Callable[[Facts], bool]
    disposition: Disposition | None
    reason: Reason | None  # None: the facts' own
    when: Callable[[Facts], datetime | None] = _no_time


TABLE: tuple[Row, ...] = (
    Row(Evidence.APPLIED, _any, Disposition.COMPLETE, Reason.EFFECT_CONFIRMED),
    Row(Evidence.CONFLICTED, _any, Disposition.REPLAN, Reason.WORLD_CHANGED),
    Row(Evidence.PENDING, _any, None, Reason.CONVERGING, _next_look),
    Row(Evidence.UNKNOWN, _any, Disposition.INVESTIGATE, None, _next_look),
    Row(Evidence.NOT_APPLIED, _running, Disposition.INVESTIGATE, Reason.STILL_RUNNING, _next_look),
    Row(Evidence.NOT_APPLIED, _settling, Disposition.RETRY, Reason.SETTLING, _all_settled),
    Row(
        Evidence.NOT_APPLIED,
        _window_unknown,
        Disposition.INVESTIGATE,
        Reason.IN_FLIGHT_NOT_RULED_OUT,
        _next_look,
    ),
    Row(Evidence.NOT_APPLIED, _refused_for_good, Disposition.REPLAN, Reason.PROVIDER_REFUSED),
    Row(Evidence.NOT_APPLIED, _not_retryable, Disposition.INVESTIGATE, Reason.NOT_RETRYABLE, _next_look),
    Row(Evidence.NOT_APPLIED, _exhausted, Disposition.INVESTIGATE, Reason.ATTEMPTS_EXHAUSTED, _next_look),
    Row(Evidence.NOT_APPLIED, _key_expired, Disposition.INVESTIGATE, Reason.KEY_EXPIRED, _next_look),
    Row(Evidence.NOT_APPLIED, _any, Disposition.RETRY, Reason.SAFE_RETRY, _next_attempt),
)

# A person attested that no attempt so far was applied (R8): it overrides policy, used-up attempts and missing
# windows. Declared windows are still waited out, and what the read shows still comes first. Where the read cannot
# tell, the person's word must be about what can land no more.
_SETTLING = Disposition.RETRY, Reason.SETTLING, _all_settled
_GRANTED = Disposition.RETRY, Reason.ATTESTED_NOT_APPLIED, _next_attempt
GRANTED: tuple[Row, ...] = (
    Row(Evidence.UNKNOWN, _settling, *_SETTLING),
    Row(Evidence.UNKNOWN, _attested_too_early, Disposition.INVESTIGATE, Reason.ATTESTED_TOO_EARLY, _next_look),
    Row(Evidence.UNKNOWN, _any, *_GRANTED),
    Row(Evidence.NOT_APPLIED, _settling, *_SETTLING),
    Row(Evidence.NOT_APPLIED, _any, *_GRANTED),
)


def decide(facts: Facts) -> Decision:
    """Map evidence to what is safe to do next: the first matching row of `TABLE`, after `GRANTED` if it counts.

    Source: semantics section 5, D1, D7, R8.
    """
    for row in TABLE if facts.granted_at is None else (*GRANTED, *TABLE):
        if row.evidence is facts.evidence and row.condition(facts):
            return Decision(row.disposition, row.reason or facts.reason, row.when(facts))
    raise AssertionError("the table has a last row for every evidence")
