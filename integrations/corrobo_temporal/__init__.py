"""Effects on Temporal: activities that are retried without sending twice."""

from temporalio import workflow as _workflow

# The sandbox would import all of this again for every workflow run.
with _workflow.unsafe.imports_passed_through():
    from corrobo_temporal.activities import effect_activity, observe_activity
    from corrobo_temporal.adopted import adopt_activity
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
    from corrobo_temporal.identity import CorroboInterceptor, stable_identity
    from corrobo_temporal.plugin import CorroboPlugin
    from corrobo_temporal.workflow import WorkflowEffects

__all__ = [
    "CorroboInterceptor",
    "CorroboPlugin",
    "EffectInvestigateError",
    "EffectNotYetError",
    "EffectReplanError",
    "EffectReviewError",
    "EffectStatus",
    "EffectValueLostError",
    "TemporalEffectError",
    "WorkflowEffects",
    "adopt_activity",
    "disposition_of",
    "effect_activity",
    "observe_activity",
    "stable_identity",
]
