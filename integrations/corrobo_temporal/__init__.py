"""Effects on Temporal: activities that are retried without sending twice."""

from temporalio import workflow as _workflow

# The sandbox would import all of this again for every workflow run.
with _workflow.unsafe.imports_passed_through():
    from corrobo_temporal.activities import effect_activity, observe_activity
    from corrobo_temporal.adopted import adopt_activity
    from corrobo_temporal.decisions import decide_late, decision_activities
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
    from corrobo_temporal.gate_client import GatesUnavailable, TemporalGateClient, WorkflowGone
    from corrobo_temporal.gates import CallbackGates, GateUnansweredError
    from corrobo_temporal.identity import CorroboInterceptor, stable_identity
    from corrobo_temporal.people import DecisionsUnavailableError
    from corrobo_temporal.plugin import CorroboPlugin
    from corrobo_temporal.workflow import WorkflowEffects

__all__ = [
    "CallbackGates",
    "CorroboInterceptor",
    "CorroboPlugin",
    "DecisionsUnavailableError",
    "EffectInvestigateError",
    "EffectNotYetError",
    "EffectReplanError",
    "EffectReviewError",
    "EffectStatus",
    "EffectValueLostError",
    "GateUnansweredError",
    "GatesUnavailable",
    "TemporalEffectError",
    "TemporalGateClient",
    "WorkflowEffects",
    "WorkflowGone",
    "adopt_activity",
    "decide_late",
    "decision_activities",
    "disposition_of",
    "effect_activity",
    "observe_activity",
    "stable_identity",
]
