"""Corrobo for DBOS: effects as steps."""

from corrobo_dbos.failures import CheckpointError
from corrobo_dbos.steps import (
    AsyncEffectStep,
    AsyncFunctionStep,
    EffectStep,
    EffectStepDecorator,
    FunctionStep,
    effect_step,
)

__all__ = [
    "AsyncEffectStep",
    "AsyncFunctionStep",
    "CheckpointError",
    "EffectStep",
    "EffectStepDecorator",
    "FunctionStep",
    "effect_step",
]
