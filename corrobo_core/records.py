"""Frozen facts: what the ledger keeps and what a pass returns. No behaviour beyond reading them.

Source: semantics sections 1, 3, 4, 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Generic, TypeAlias, TypeVar

from corrobo_core.errors import (
    EffectError,
    EffectValueError,
    InvestigateError,
    NotYetError,
    ReplanError,
    ReviewError,
)
from corrobo_core.frozen import evolve, frozen

__all__ = [
    "JSON",
    "AttemptRecord",
    "Check",
    "Decision",
    "DecisionKind",
    "Disposition",
    "EffectResult",
    "Episode",
    "Evidence",
    "Failure",
    "History",
    "Observation",
    "ObservationRecord",
    "Operation",
    "OperationKey",
    "Outcome",
    "Reason",
    "RefusalCode",
    "Unstorable",
    "Verdict",
    "evolve",
]

JSON: TypeAlias = "None | bool | int | float | str | Sequence[JSON] | Mapping[str, JSON]"

D = TypeVar("D")
R = TypeVar("R")
T = TypeVar("T")  # the classmethods' own: a class that is not specialised has no type to give


class Evidence(StrEnum):
    """What is known about the world."""

    APPLIED = "APPLIED"
    NOT_APPLIED = "NOT_APPLIED"
    CONFLICTED = "CONFLICTED"
    PENDING = "PENDING"
    UNKNOWN = "UNKNOWN"


class Disposition(StrEnum):
    """What is safe to do next."""

    COMPLETE = "COMPLETE"
    RETRY = "RETRY"
    REPLAN = "REPLAN"
    REVIEW = "REVIEW"
    INVESTIGATE = "INVESTIGATE"


CLOSED = frozenset({Disposition.COMPLETE, Disposition.REPLAN})


class Outcome(StrEnum):
    """How ``execute`` ended, as the transport saw it (section 3)."""

    RESPONDED = "RESPONDED"
    REJECTED = "REJECTED"
    NOT_SENT = "NOT_SENT"
    AMBIGUOUS = "AMBIGUOUS"
    UNRECORDED = "UNRECORDED"


class Reason(StrEnum):
    """Why a disposition was chosen. Shipped codes are promises: never renamed."""

    EFFECT_CONFIRMED = "EFFECT_CONFIRMED"
    WORLD_CHANGED = "WORLD_CHANGED"
    CONVERGING = "CONVERGING"
    NOT_ESTABLISHED = "NOT_ESTABLISHED"
    ABSENCE_NOT_PROVEN = "ABSENCE_NOT_PROVEN"
    RECONCILE_FAILED = "RECONCILE_FAILED"
    STILL_RUNNING = "STILL_RUNNING"
    SETTLING = "SETTLING"
    IN_FLIGHT_NOT_RULED_OUT = "IN_FLIGHT_NOT_RULED_OUT"
    PROVIDER_REFUSED = "PROVIDER_REFUSED"
    NOT_RETRYABLE = "NOT_RETRYABLE"
    ATTEMPTS_EXHAUSTED = "ATTEMPTS_EXHAUSTED"
    KEY_EXPIRED = "KEY_EXPIRED"
    SAFE_RETRY = "SAFE_RETRY"
    # From a person's attestation (R8):
    ATTESTED_NOT_APPLIED = "ATTESTED_NOT_APPLIED"
    ATTESTED_TOO_EARLY = "ATTESTED_TOO_EARLY"
    # Not from evidence:
    NEVER_SENT = "NEVER_SENT"
    IN_PROGRESS = "IN_PROGRESS"
    INTERRUPTED = "INTERRUPTED"
    OVERTAKEN = "OVERTAKEN"
    PAUSED = "PAUSED"
    REVIEW_REQUIRED = "REVIEW_REQUIRED"
    APPROVAL_LAPSED = "APPROVAL_LAPSED"
    AUTHORIZATION_FAILED = "AUTHORIZATION_FAILED"
    REVALIDATION_FAILED = "REVALIDATION_FAILED"
    REJECTED = "REJECTED"


@frozen
class OperationKey:
    """Names one operation: its namespace, its id and its type (I1)."""

    namespace: str
    operation_id: str
    type: str


@frozen
class Failure:
    """An exception as it is stored: its type's name and its message, never the object (T3)."""

    type: str
    message: str


@frozen
class Unstorable:
    """Stands for a value too large to store: its size in bytes and its digest (T4)."""

    size_bytes: int
    sha256: str


@frozen
class AttemptRecord:
    """One time the write was, or may have been, sent.

    Attributes:
        number: 1 for the first; a number is never used twice.
        nonce: names the reserving write.
        window: how long after ``started`` the effect could still land, lag included; None: not declared (D3).
        lag: the declared observation lag.
        timeout: how long the hook may take; None if not bounded.
        finished_by_response: a returned value means that the effect is there (``responds_after_effect``).
        started: ledger time of the reservation.
        ended: upper bound of the ledger time at which the hook ended; None while reserved.
        outcome: None while reserved.
        retryable: a refusal that was for now only.
        retry_after: ledger time before which the provider wants no other attempt.
        failure: the exception, if one was raised.
        response: the stored form of what ``execute`` returned.
        abandoned: ledger time at which its process gave it up without a record (L7).
        approval: the decision it was made under.
    """

    number: int
    nonce: str
    window: timedelta | None = None
    lag: timedelta = timedelta()
    timeout: timedelta | None = None
    finished_by_response: bool = False
    started: datetime | None = None
    ended: datetime | None = None
    outcome: Outcome | None = None
    retryable: bool = False
    retry_after: datetime | None = None
    failure: Failure | None = None
    response: JSON = None
    abandoned: datetime | None = None
    approval: JSON = None


@frozen
class Observation(Generic[D]):
    """What one read of the authoritative system returned (O1). Make one with `Observation.of`.

    Attributes:
        data: what was read, for ``reconcile``.
        source: which read this was, such as ``payments.refunds``.
        proves_absence: False if this read could have missed an effect that has landed (a search index, one
            page of a list, a replica).
        observed_at: the provider's own time of the read, if it gives one; aware.
    """

    data: D
    source: str
    proves_absence: bool
    observed_at: datetime | None = None

    @classmethod
    def of(
        cls, data: T, *, source: str, proves_absence: bool, observed_at: datetime | None = None
    ) -> Observation[T]:
        """Say what was read, where, and whether an empty answer would prove that nothing is there.

        Raises:
            ValueError: an empty source, or a naive ``observed_at``. Not retryable.

        Source: semantics O1.
        """
        if not isinstance(source, str) or not source:
            raise ValueError("Observation source: give the read a name, such as 'payments.refunds'")
        if not isinstance(proves_absence, bool):
            raise ValueError("Observation proves_absence: must be True or False")
        if observed_at is not None and observed_at.tzinfo is None:
            raise ValueError("Observation observed_at: naive datetime; pass an aware one")
        return Observation(data, source, proves_absence, observed_at)


@frozen
class Verdict(Generic[R]):
    """What ``reconcile`` makes of an observation. Make one with the classmethods.

    Attributes:
        evidence: one of the five.
        code: the contract's own short code, such as ``REFUNDED``.
        explanation: one sentence for people.
        effect: the confirmed effect's value, for ``applied``.
    """

    evidence: Evidence
    code: str
    explanation: str
    effect: R | None = None

    @classmethod
    def applied(cls, code: str, explanation: str = "", *, effect: T) -> Verdict[T]:
        """The intended effect is there, with this value."""
        return Verdict(Evidence.APPLIED, code, explanation, effect)

    @classmethod
    def not_applied(cls, code: str, explanation: str = "") -> Verdict[R]:
        """The effect is not there. Counts only if the read proves absence (O2)."""
        return cls(Evidence.NOT_APPLIED, code, explanation)

    @classmethod
    def conflicted(cls, code: str, explanation: str = "") -> Verdict[R]:
        """Something is there that this intent cannot explain: a new plan is needed."""
        return cls(Evidence.CONFLICTED, code, explanation)

    @classmethod
    def pending(cls, code: str, explanation: str = "") -> Verdict[R]:
        """The provider is still working on it."""
        return cls(Evidence.PENDING, code, explanation)

    @classmethod
    def unknown(cls, code: str, explanation: str = "") -> Verdict[R]:
        """This read cannot tell."""
        return cls(Evidence.UNKNOWN, code, explanation)


@frozen
class Check:
    """What ``authorize`` and ``revalidate`` answer (R7). Make one with the classmethods."""

    kind: str
    explanation: str = ""

    @classmethod
    def proceed(cls) -> Check:
        """Go on."""
        return cls("proceed")

    @classmethod
    def requires_review(cls, explanation: str) -> Check:
        """A person must approve first."""
        return cls("review", explanation)

    @classmethod
    def reject(cls, explanation: str) -> Check:
        """Close the operation without another attempt: the disposition is ``REPLAN``."""
        return cls("reject", explanation)


@frozen
class ObservationRecord:
    """One observation and its verdict, as kept.

    Attributes:
        began: lower bound of the ledger time at which the read began (D4a).
        attempt: number of the attempt that was looked for.
        source: which read, or the person who attested it.
        proves_absence: as the observation said.
        evidence: after rule O2.
        code: the contract's code, or a reason code.
        explanation: one sentence.
    """

    began: datetime
    attempt: int
    source: str
    proves_absence: bool
    evidence: Evidence
    code: str
    explanation: str


@frozen
class History:
    """Observations, bounded: the first, the last twenty, and how many there were (O7)."""

    KEPT = 20

    first: ObservationRecord | None = None
    last: tuple[ObservationRecord, ...] = ()
    count: int = 0

    def plus(self, record: ObservationRecord) -> History:
        """The history with one more observation."""
        return History(self.first or record, (*self.last, record)[-self.KEPT :], self.count + 1)


@frozen
class Episode:
    """One time that an operation waits for a person (R2).

    Attributes:
        token: what a decision must name.
        generation: 1 for the operation's first episode.
        kind: ``REVIEW`` or ``INVESTIGATE``.
        opened_at: ledger time.
        reason: why, for people.
        asked_by: ``authorize`` or ``revalidate`` for a review; empty for an investigation.
    """

    token: str
    generation: int
    kind: Disposition
    opened_at: datetime
    reason: str
    asked_by: str = ""


class DecisionKind(StrEnum):
    """What a person can say (R3)."""

    APPROVED = "approved"
    REJECTED = "rejected"
    APPLIED = "applied"
    NOT_APPLIED = "not_applied"
    REVOKED = "revoked"


class RefusalCode(StrEnum):
    """Why a decision was not recorded (R4)."""

    NOT_AWAITING_DECISION = "NOT_AWAITING_DECISION"
    STALE_TOKEN = "STALE_TOKEN"
    DECIDED_BEFORE_OPENED = "DECIDED_BEFORE_OPENED"
    INTENT_MISMATCH = "INTENT_MISMATCH"
    ALREADY_EXPIRED = "ALREADY_EXPIRED"
    ALREADY_DECIDED = "ALREADY_DECIDED"
    ALREADY_USED = "ALREADY_USED"


@frozen
class Decision:
    """What a person decided about one episode; append-only (R1, R3).

    Attributes:
        token: the episode's.
        kind: what was decided.
        reviewer: who, as the application says (R9).
        decided_at: when, as the application says; else the ledger's clock.
        expires_at: ledger time after which an approval counts no more, or None.
        intent_fingerprint: what the reviewer was shown, or None.
        note: for people.
        effect: stored form of the effect's value, for ``applied``.
        attempt: number of the latest attempt that existed then; 0 if there was none.
    """

    token: str
    kind: DecisionKind
    reviewer: str
    decided_at: datetime
    expires_at: datetime | None = None
    intent_fingerprint: str | None = None
    note: str = ""
    effect: JSON = None
    attempt: int = 0


@frozen
class Operation:
    """Everything that the ledger's fence protects: one operation with all its attempts (C2).

    Attributes:
        key: namespace, id and type.
        intent: canonical JSON text.
        fingerprint: ``v1:sha256:<hex>`` of it (I3).
        version: counts writes; every write names the one it read.
        nonce: names the last write.
        owner: key of the process whose attempt is reserved, or None.
        attempts: all of them but for superseded ``NOT_SENT`` ones.
        disposition: None while there is nothing to do but come back.
        reason: a `Reason` code.
        explanation: one sentence.
        retry_at: ledger time of the next useful pass.
        evidence: of the latest look; once ``APPLIED`` it stays (O6).
        effect: stored form of the effect's value.
        history: observations, bounded.
        looks: consecutive looks without an answer, for the poll backoff.
        looking_since: when the first of them began.
        authorized: ``authorize``'s recorded answer, or None.
        episode: what waits for a person, if something does.
        episodes: how many were opened so far.
        review: the latest review's episode, whose approval may be in force.
    """

    key: OperationKey
    intent: str
    fingerprint: str
    version: int = 0
    nonce: str = ""
    owner: int | None = None
    attempts: tuple[AttemptRecord, ...] = ()
    disposition: Disposition | None = None
    reason: str = Reason.NEVER_SENT.value
    explanation: str = ""
    retry_at: datetime | None = None
    evidence: Evidence | None = None
    effect: JSON = None
    history: History = field(default_factory=History)
    looks: int = 0
    looking_since: datetime | None = None
    authorized: str | None = None
    episode: Episode | None = None
    episodes: int = 0
    review: Episode | None = None

    @property
    def latest(self) -> AttemptRecord:
        """The attempt made last. Only asked when there is one."""
        return self.attempts[-1]

    @property
    def reserved(self) -> bool:
        """An attempt is reserved and has no recorded outcome (L5)."""
        return bool(self.attempts) and self.attempts[-1].outcome is None

    @property
    def closed(self) -> bool:
        """No pass will ever execute again."""
        return self.disposition in CLOSED


_RAISED: dict[Disposition | None, type[EffectError]] = {
    None: NotYetError,
    Disposition.RETRY: NotYetError,
    Disposition.REPLAN: ReplanError,
    Disposition.REVIEW: ReviewError,
    Disposition.INVESTIGATE: InvestigateError,
}


@frozen
class EffectResult(Generic[R]):
    """What one pass found out and what is safe to do next.

    Attributes:
        operation_type: such as ``payments/refund``.
        operation_id: the operation.
        disposition: what to do; None means come back at ``retry_at``.
        evidence: what is known; None before anything was observed.
        reason: reason code.
        explanation: one sentence for people.
        retry_at: ledger time of the next useful pass, or None.
        now: the ledger's clock when this was decided, to turn ``retry_at`` into a wait.
        effect: the confirmed effect, for ``COMPLETE``.
        value_lost: ``COMPLETE``, but the value could not be stored (T4).
        looking_since: ledger time since when looking gives no answer, or None.
        token: what a person's decision must name, or None.
        attempts: the attempts so far.
        history: the observations so far.
    """

    operation_type: str
    operation_id: str
    disposition: Disposition | None
    evidence: Evidence | None
    reason: str
    explanation: str
    retry_at: datetime | None
    now: datetime
    effect: R | None = None
    value_lost: bool = False
    looking_since: datetime | None = None
    token: str | None = None
    attempts: tuple[AttemptRecord, ...] = ()
    history: History = field(default_factory=History)

    @property
    def wait(self) -> timedelta:
        """How long from now to ``retry_at``; zero if there is nothing to wait for."""
        return timedelta() if self.retry_at is None else max(self.retry_at - self.now, timedelta())

    def unwrap(self) -> R:
        """Return the effect, or raise what says why there is none and what to do.

        Raises:
            NotYetError: come back at ``retry_at``. Retryable.
            ReplanError: make a new decision with a new id.
            ReviewError: a person must approve.
            InvestigateError: evidence cannot tell; a later call looks again, or a person decides.
            EffectValueError: the effect happened, its value could not be stored.

        Source: semantics section 5.
        """
        if self.disposition is Disposition.COMPLETE and not self.value_lost:
            return self.effect  # type: ignore[return-value]  # R may be Optional; None is then the value
        raise self.error()

    def error(self) -> EffectError:
        """The error that `unwrap` raises for anything but a confirmed effect with its value."""
        kind = EffectValueError if self.disposition is Disposition.COMPLETE else _RAISED[self.disposition]
        evidence = self.evidence.value if self.evidence else None
        return kind(
            self.operation_type,
            self.operation_id,
            self.reason,
            self.explanation,
            evidence,
            self.retry_at,
            self.token,
        )


AnyVerdict: TypeAlias = Verdict[Any]
