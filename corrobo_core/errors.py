"""Every error this library raises, in one tree.

Arguments go raw to ``super().__init__`` and the text is made in ``__str__``, so that every error survives
pickle, DBOS's serializers and Temporal's failure converter. ``retryable`` says whether the same call can
succeed later without anybody changing anything.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

__all__ = [
    "ContractError",
    "CorroboError",
    "DecisionRefused",
    "DsnError",
    "DurabilityError",
    "EffectError",
    "EffectValueError",
    "IdentityError",
    "IdentityReused",
    "IntentError",
    "InvestigateError",
    "LedgerCorruptError",
    "LedgerError",
    "LedgerNotMigratedError",
    "LedgerNotReadyError",
    "LedgerTooNewError",
    "LedgerUnavailable",
    "NotSent",
    "NotYetError",
    "OwnerConnectionError",
    "Rejected",
    "ReplanError",
    "ReviewError",
    "StandbyError",
    "UsageError",
]


class CorroboError(Exception):
    """Base of every error of this library."""

    retryable: ClassVar[bool] = False


# -- refused before anything is written or sent (L8) ---------------------------------------------------------


class ContractError(CorroboError):
    """An effect contract is incomplete or contradicts itself. Not retryable: change the contract.

    Args:
        effect: the operation type, such as ``payments/refund``.
        field: the argument or hook that is wrong.
        problem: what is wrong and what to do.
    """

    def __init__(self, effect: str, field: str, problem: str) -> None:
        super().__init__(effect, field, problem)
        self.effect, self.field, self.problem = effect, field, problem

    def __str__(self) -> str:
        return f"effect {self.effect!r}: {self.field}: {self.problem}"


class IdentityError(CorroboError):
    """An operation id is not usable. Not retryable: mint a proper id when the decision is made.

    Args:
        effect: the operation type.
        field: what produced the id.
        problem: what is wrong and what to do; never the id itself where it may be secret.
    """

    def __init__(self, effect: str, field: str, problem: str) -> None:
        super().__init__(effect, field, problem)
        self.effect, self.field, self.problem = effect, field, problem

    def __str__(self) -> str:
        return f"effect {self.effect!r}: {self.field}: {self.problem}"


class IntentError(CorroboError):
    """An intent cannot be bound or stored exactly (I2, I4). Not retryable: change the value.

    Args:
        path: where in the intent, such as ``order.items[2].price``.
        problem: the kind of value found and what to do; never the value.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"intent field {self.path}: {self.problem}"


class IdentityReused(CorroboError):
    """An operation id already belongs to another operation type or intent (I1). Not retryable.

    Args:
        operation_id: the id that both use.
        field: ``operation type`` or ``intent``.
        recorded: the recorded type or fingerprint.
        given: the one that came now.
    """

    def __init__(self, operation_id: str, field: str, recorded: str, given: str) -> None:
        super().__init__(operation_id, field, recorded, given)
        self.operation_id, self.field, self.recorded, self.given = operation_id, field, recorded, given

    def __str__(self) -> str:
        return (
            f"operation {self.operation_id!r} is recorded with another {self.field} "
            f"({self.recorded}, now {self.given}); a new decision needs a new operation id"
        )


class UsageError(CorroboError):
    """A public function was called where it cannot work. Not retryable: move the call.

    Args:
        what: the function or decorator.
        problem: what is wrong and the allowed place.
    """

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(what, problem)
        self.what, self.problem = what, problem

    def __str__(self) -> str:
        return f"{self.what}: {self.problem}"


# -- what a hook says about the one request that it sent (section 3) -----------------------------------------


class Rejected(CorroboError):
    """Raised by ``execute``: the provider answered and definitely refused this request.

    Args:
        cause: the provider's error, or what it said.
        retryable: it refused for now only (rate limit); False means for good.
        retry_after: not before this long after now, and so for now only; None when the provider names no time.
    """

    def __init__(
        self,
        cause: BaseException | str,
        retryable: bool = False,
        retry_after: timedelta | None = None,
    ) -> None:
        super().__init__(cause, retryable, retry_after)
        # Whoever names a time for the next attempt has not refused for good.
        self.cause, self.refused_for_now = cause, retryable or retry_after is not None
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"rejected: {_cause(self.cause)}"


class NotSent(CorroboError):
    """Raised by ``execute``: this request provably never left (name lookup, connection refused).

    Args:
        cause: the error that proves it.
    """

    def __init__(self, cause: BaseException | str) -> None:
        super().__init__(cause)
        self.cause = cause

    def __str__(self) -> str:
        return f"not sent: {_cause(self.cause)}"


def _cause(cause: BaseException | str) -> str:
    return cause if isinstance(cause, str) else f"{type(cause).__name__}: {cause}"


class DecisionRefused(CorroboError):
    """A person's decision does not count, and nothing was recorded (R4). Not retryable as it is.

    Args:
        operation_id: the operation.
        code: such as ``STALE_TOKEN``.
        disposition: the operation's, now; None if it has none.
        first_decision: for ``ALREADY_DECIDED``: what was decided.
        first_reviewer: for ``ALREADY_DECIDED``: by whom.
    """

    def __init__(
        self,
        operation_id: str,
        code: str,
        disposition: str | None = None,
        first_decision: str | None = None,
        first_reviewer: str | None = None,
    ) -> None:
        super().__init__(operation_id, code, disposition, first_decision, first_reviewer)
        self.operation_id, self.code, self.disposition = operation_id, code, disposition
        self.first_decision, self.first_reviewer = first_decision, first_reviewer

    def __str__(self) -> str:
        first = f"; decided before: {self.first_decision} by {self.first_reviewer}" if self.first_decision else ""
        return f"operation {self.operation_id!r}: {self.code} (it is now {self.disposition}){first}"


# -- the ledger ----------------------------------------------------------------------------------------------


class LedgerError(CorroboError):
    """Base of what a ledger refuses or cannot do.

    Args:
        ledger: which one, without credentials.
        problem: what is wrong and what to do.
    """

    def __init__(self, ledger: str, problem: str) -> None:
        super().__init__(ledger, problem)
        self.ledger, self.problem = ledger, problem

    def __str__(self) -> str:
        return f"{self.ledger}: {self.problem}"


class LedgerNotReadyError(LedgerError):
    """The ledger cannot answer now. What was sent before is as it was: this is nobody's outcome.

    An operator, a deploy or time mends it; whoever retries by itself, such as an engine, should go on doing so.
    """


class LedgerUnavailable(LedgerNotReadyError):
    """The database did not answer in a bounded time (C9). Retryable: the next pass observes first."""

    retryable = True


class LedgerNotMigratedError(LedgerNotReadyError):
    """The ledger has no schema, or an older one than this release needs (C12). Run the named command."""


class LedgerTooNewError(LedgerNotReadyError):
    """The ledger's schema is newer than this release knows (C12). Upgrade the library."""


class DurabilityError(LedgerError):
    """The database may forget what it has confirmed (C10). Change the setting, or accept it in words."""


class StandbyError(LedgerNotReadyError):
    """The address leads to a hot standby (C8). Pass the primary's."""


class OwnerConnectionError(LedgerError):
    """The owner connection goes through a transaction pooler (C7). Pass a direct address for it."""


class DsnError(LedgerError):
    """A DSN is missing or names no ledger this library has. Not retryable: fix the address."""


class LedgerCorruptError(LedgerError):
    """One stored record does not read back. Only that operation is affected; look at it by hand."""


# -- what EffectResult.unwrap() raises -----------------------------------------------------------------------


class EffectError(CorroboError):
    """Base of what ``EffectResult.unwrap()`` raises: the effect is not confirmed.

    Args:
        operation_type: such as ``payments/refund``.
        operation_id: the operation.
        reason: reason code, such as ``SETTLING``.
        explanation: one sentence for people.
        evidence: the evidence's name, or None before anything was observed.
        retry_at: ledger time of the next useful pass, or None.
        token: what a person's decision must name, or None.
    """

    advice: ClassVar[str] = ""

    def __init__(
        self,
        operation_type: str,
        operation_id: str,
        reason: str,
        explanation: str,
        evidence: str | None = None,
        retry_at: datetime | None = None,
        token: str | None = None,
    ) -> None:
        super().__init__(operation_type, operation_id, reason, explanation, evidence, retry_at, token)
        self.operation_type, self.operation_id = operation_type, operation_id
        self.reason, self.explanation = reason, explanation
        self.evidence, self.retry_at, self.token = evidence, retry_at, token

    @property
    def code(self) -> str:
        """The reason code; portable serializers keep an attribute of this name."""
        return self.reason

    @property
    def data(self) -> dict[str, str | None]:
        """Which operation this is about, as plain data; portable serializers keep it."""
        retry_at = self.retry_at.isoformat() if self.retry_at else None
        return {
            "operation_type": self.operation_type,
            "operation_id": self.operation_id,
            "evidence": self.evidence,
            "retry_at": retry_at,
            "token": self.token,
        }

    def __str__(self) -> str:
        when = f"; come back at {self.retry_at.isoformat()}" if self.retry_at else ""
        return (
            f"{self.operation_type} {self.operation_id!r}: {self.reason}: {self.explanation} ({self.advice}{when})"
        )


class NotYetError(EffectError):
    """Nothing to decide yet: in progress, settling, or converging. Retryable, at ``retry_at``."""

    retryable = True
    advice = "call again with the same id"


class ReplanError(EffectError):
    """The world differs from what was intended, or the provider refused. Make a new decision with a new id."""

    advice = "make a new decision with a new id"


class ReviewError(EffectError):
    """A person must approve before anything is sent."""

    advice = "a person must decide"


class InvestigateError(EffectError):
    """Evidence cannot tell what happened. Calling again only reads, and may find out; else ask a person."""

    advice = "calling again only reads until the evidence allows more"


class EffectValueError(EffectError):
    """The effect is confirmed, but its value could not be stored and is gone. The effect must not be repeated."""

    advice = "the effect happened; read its value from the provider"
