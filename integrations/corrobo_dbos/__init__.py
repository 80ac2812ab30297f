"""Corrobo for DBOS: effects as steps, and questions to people."""

from corrobo_dbos.deliveries import Delivered, Delivery, NotDecided, NoWorkflow, Progress
from corrobo_dbos.failures import CheckpointError, GateClosedError, GateExpiredError, GateSupersededError
from corrobo_dbos.gates import DbosGates
from corrobo_dbos.reviewers import AsyncDbosGateClient, DbosGateClient
from corrobo_dbos.steps import (
    AsyncEffectStep,
    AsyncFunctionStep,
    EffectStep,
    EffectStepDecorator,
    FunctionStep,
    effect_step,
)

__all__ = [
    "AsyncDbosGateClient",
    "AsyncEffectStep",
    "AsyncFunctionStep",
    "CheckpointError",
    "DbosGateClient",
    "DbosGates",
    "Delivered",
    "Delivery",
    "EffectStep",
    "EffectStepDecorator",
    "FunctionStep",
    "GateClosedError",
    "GateExpiredError",
    "GateSupersededError",
    "NoWorkflow",
    "NotDecided",
    "Progress",
    "effect_step",
]
