"""Effects on Temporal: activities that are retried without sending twice."""

from corrobo_temporal.activities import effect_activity, observe_activity
from corrobo_temporal.failures import (
    EffectInvestigateError,
    EffectNotYetError,
    EffectReplanError,
    EffectReviewError,
    EffectStatus,
    EffectValueLostError,
    TemporalEffectError,
    disposition_of,
)

__all__ = [
    "EffectInvestigateError",
    "EffectNotYetError",
    "EffectReplanError",
    "EffectReviewError",
    "EffectStatus",
    "EffectValueLostError",
    "TemporalEffectError",
    "disposition_of",
    "effect_activity",
    "observe_activity",
]
