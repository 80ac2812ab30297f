"""Did the write happen? Records the attempt, asks the authoritative system, decides from evidence."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from corrobo_core.attempt import Attempt, current_attempt
from corrobo_core.contract import AsyncEffect, AsyncEffectContract, BaseEffect, Effect, EffectContract, effect
from corrobo_core.errors import (
    ContractError,
    CorroboError,
    DecisionRefused,
    EffectError,
    EffectValueError,
    IdentityError,
    IdentityReused,
    IntentError,
    InvestigateError,
    LedgerError,
    LedgerNotReadyError,
    LedgerUnavailable,
    NotSent,
    NotYetError,
    Rejected,
    ReplanError,
    ReviewError,
    UsageError,
)
from corrobo_core.ledgers.memory import MemoryLedger
from corrobo_core.policy import Backoff, RetryPolicy
from corrobo_core.records import (
    Check,
    Disposition,
    EffectResult,
    Evidence,
    Observation,
    Outcome,
    Reason,
    Verdict,
)
from corrobo_core.reviews import AsyncReviewDesk, DecisionRecorded, ReviewDesk, Waiting
from corrobo_core.runner import AsyncEffectRunner, EffectRunner

if TYPE_CHECKING:
    from corrobo_core.ledgers.env import from_env
    from corrobo_core.ledgers.postgres import PostgresLedger
    from corrobo_core.ledgers.roles import Roles
    from corrobo_core.ledgers.sqlite import SqliteLedger

__all__ = [
    "AsyncEffect",
    "AsyncEffectContract",
    "AsyncEffectRunner",
    "AsyncReviewDesk",
    "Attempt",
    "Backoff",
    "BaseEffect",
    "Check",
    "ContractError",
    "CorroboError",
    "DecisionRecorded",
    "DecisionRefused",
    "Disposition",
    "Effect",
    "EffectContract",
    "EffectError",
    "EffectResult",
    "EffectRunner",
    "EffectValueError",
    "Evidence",
    "IdentityError",
    "IdentityReused",
    "IntentError",
    "InvestigateError",
    "LedgerError",
    "LedgerNotReadyError",
    "LedgerUnavailable",
    "MemoryLedger",
    "NotSent",
    "NotYetError",
    "Observation",
    "Outcome",
    "PostgresLedger",
    "Reason",
    "Rejected",
    "ReplanError",
    "RetryPolicy",
    "ReviewDesk",
    "ReviewError",
    "Roles",
    "SqliteLedger",
    "UsageError",
    "Verdict",
    "Waiting",
    "current_attempt",
    "effect",
    "from_env",
]

# Drivers are imported by those who use them.
_LAZY = {
    "PostgresLedger": "corrobo_core.ledgers.postgres",
    "Roles": "corrobo_core.ledgers.roles",
    "SqliteLedger": "corrobo_core.ledgers.sqlite",
    "from_env": "corrobo_core.ledgers.env",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
