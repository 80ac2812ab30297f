"""What a failure of an effect activity says, and how to read it back.

The types and the fields of the details are written into workflow histories: they are never renamed. Messages
hold no data; details do.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from corrobo_core import CorroboError, Disposition, EffectResult, Evidence, LedgerError, LedgerNotReadyError

__all__ = [
    "DETAILS_VERSION",
    "EffectInvestigateError",
    "EffectNotYetError",
    "EffectReplanError",
    "EffectReviewError",
    "EffectStatus",
    "EffectValueLostError",
    "TemporalEffectError",
    "disposition_of",
    "error_for",
    "refusal_for",
]

DETAILS_VERSION = 1


@dataclass(frozen=True, slots=True)
class EffectStatus:
    """What is known about one effect, as a failure carries it.

    Attributes:
        operation_type: such as ``payments/refund``.
        operation_id: the operation.
        disposition: what is safe to do next; None: come back at ``retry_at``.
        evidence: what is known about the world; None before anything was observed.
        reason: reason code, such as ``SETTLING``.
        explanation: one sentence for people.
        retry_at: ledger time of the next useful pass, or None.
        token: what a person's decision must name, or None.
    """

    operation_type: str
    operation_id: str
    disposition: Disposition | None
    evidence: Evidence | None
    reason: str
    explanation: str
    retry_at: datetime | None = None
    token: str | None = None

    @classmethod
    def of(cls, result: EffectResult[Any]) -> EffectStatus:
        """The status of a pass."""
        return cls(
            result.operation_type,
            result.operation_id,
            result.disposition,
            result.evidence,
            result.reason,
            result.explanation,
            result.retry_at,
            result.token,
        )

    def details(self) -> dict[str, Any]:
        """The form in a failure's details: JSON, with a version."""
        return {
            "version": DETAILS_VERSION,
            "operation_type": self.operation_type,
            "operation_id": self.operation_id,
            "disposition": None if self.disposition is None else self.disposition.value,
            "evidence": None if self.evidence is None else self.evidence.value,
            "reason": self.reason,
            "explanation": self.explanation,
            "retry_at": None if self.retry_at is None else self.retry_at.isoformat(),
            "token": self.token,
        }

    @classmethod
    def from_details(cls, details: object) -> EffectStatus | None:
        """Read `details` back; None if it is something else, or from a release that knows other words."""
        if not isinstance(details, dict) or details.get("version") != DETAILS_VERSION:
            return None
        try:
            disposition, evidence, retry_at = details["disposition"], details["evidence"], details["retry_at"]
            return cls(
                details["operation_type"],
                details["operation_id"],
                None if disposition is None else Disposition(disposition),
                None if evidence is None else Evidence(evidence),
                details["reason"],
                details["explanation"],
                None if retry_at is None else datetime.fromisoformat(retry_at),
                details["token"],
            )
        except (KeyError, TypeError, ValueError):
            return None


def disposition_of(error: BaseException | None) -> EffectStatus | None:
    """What an error says about an effect, whatever it is wrapped in.

    Args:
        error: caught around an effect activity, by workflow code or a client: an ``ActivityError`` in either
            form that a schedule-to-close timeout takes, a `TemporalEffectError`, a ``WorkflowFailureError``.

    Returns:
        the status, or None if no effect activity has said anything (a worker that died says nothing).
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, ApplicationError) and error.details:
            status = EffectStatus.from_details(error.details[0])
            if status is not None:
                return status
        error = error.__cause__
    return None


# -- errors --------------------------------------------------------------------------------------------------


class TemporalEffectError(ApplicationError):
    """The effect is not confirmed. Raised by effect activities, and by `WorkflowEffects` in workflow code.

    Past a failure converter it is a plain ``ApplicationError`` with the same type and details: read it with
    `disposition_of`.

    Args:
        status: what is known.
        next_retry_delay: when the server should make the next pass; None leaves that to the retry policy.
        final: the activity must not be retried.
    """

    code: ClassVar[str]
    advice: ClassVar[str]

    def __init__(
        self, status: EffectStatus, *, next_retry_delay: timedelta | None = None, final: bool = True
    ) -> None:
        super().__init__(
            self.advice,
            status.details(),
            type=self.code,
            non_retryable=final,
            next_retry_delay=next_retry_delay,
            category=ApplicationErrorCategory.BENIGN,
        )
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.status, self.next_retry_delay, self.non_retryable)


def _rebuilt(
    kind: type[TemporalEffectError], status: EffectStatus, delay: timedelta | None, final: bool
) -> TemporalEffectError:
    return kind(status, next_retry_delay=delay, final=final)


class EffectNotYetError(TemporalEffectError):
    """Nothing to decide yet. From an activity, it is retried when the next pass is useful."""

    code = "corrobo.NotYet"
    advice = "the effect is not confirmed yet; another pass will tell"


class EffectReplanError(TemporalEffectError):
    """The world differs from what was intended, or the provider refused: make a new decision with a new id."""

    code = "corrobo.Replan"
    advice = "the effect will not happen as intended; make a new decision with a new id"


class EffectReviewError(TemporalEffectError):
    """A person must approve before anything is sent."""

    code = "corrobo.Review"
    advice = "a person must approve the effect first"


class EffectInvestigateError(TemporalEffectError):
    """Evidence cannot tell what happened. Calling again only reads, and may find out; else ask a person."""

    code = "corrobo.Investigate"
    advice = "evidence cannot tell what happened; look again later, or ask a person"


class EffectValueLostError(TemporalEffectError):
    """The effect is confirmed, but its value could not be stored. It must not be repeated."""

    code = "corrobo.ValueLost"
    advice = "the effect happened, but its value could not be stored; read it from the provider"


_FINAL: dict[Disposition, type[TemporalEffectError]] = {
    Disposition.COMPLETE: EffectValueLostError,
    Disposition.REPLAN: EffectReplanError,
    Disposition.REVIEW: EffectReviewError,
    Disposition.INVESTIGATE: EffectInvestigateError,
}


def error_for(status: EffectStatus, *, final: bool = True) -> TemporalEffectError:
    """The error for a status, when no other pass will be made.

    Args:
        status: what is known.
        final: also "come back later" is not retried.
    """
    if status.disposition is None or status.disposition is Disposition.RETRY:
        return EffectNotYetError(status, final=final)
    return _FINAL[status.disposition](status)


# -- refusals ------------------------------------------------------------------------------------------------

_REFUSALS = {
    "ContractError": "the effect's contract is incomplete or contradicts itself",
    "IdentityError": "the operation id is not usable",
    "IdentityReused": "the operation id already belongs to another operation type or intent",
    "IntentError": "the intent cannot be bound or stored exactly",
    "LedgerNotMigratedError": "the ledger must be migrated first",
    "LedgerUnavailable": "the ledger did not answer",
    "UsageError": "a function was called where it cannot work",
}


def refusal_for(error: CorroboError) -> ApplicationError:
    """A core error as a failure: its own name as type, its text in the details, retried if that can help."""
    name = type(error).__name__
    general = "the ledger refused" if isinstance(error, LedgerError) else "the effect was refused"
    return ApplicationError(
        _REFUSALS.get(name, general),
        {"version": DETAILS_VERSION, "error": name, "explanation": str(error)},
        type=name,
        non_retryable=not (error.retryable or isinstance(error, LedgerNotReadyError)),
    )
