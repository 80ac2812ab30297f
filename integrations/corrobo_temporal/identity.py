"""Operation ids for decisions that workflow code makes, where the application has minted none."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

import temporalio.api.common.v1
import temporalio.client
import temporalio.worker
from temporalio import activity, workflow
from temporalio.converter import DataConverter

from corrobo_core import UsageError

__all__ = ["HEADER", "CorroboInterceptor", "stable_identity"]

HEADER = "corrobo-first-run"

_MAX_NAME = 200
_MAX_SCOPE = 300  # an operation id has 512 characters
_first_run: ContextVar[str | None] = ContextVar("corrobo_first_run", default=None)


def stable_identity(name: str) -> str:
    """An operation id for one decision of this workflow.

    It is the same for every activity retry, replay, workflow reset, workflow retry and continued-as-new run, and
    another one when a workflow is started anew under an old workflow id. So within the whole life of a workflow one
    name is one decision: a loop, a cron schedule or a workflow that continues as new puts what distinguishes its
    rounds into the name, such as ``stable_identity(f"charge-{month}")``, or its second round is answered with
    the first one's effect.

    An id that the application mints when the decision is made is better: it also survives a workflow that
    is started a second time by mistake.

    Args:
        name: 1 to 200 characters, unique among the workflow's decisions. It becomes part of the id.

    Returns:
        in a workflow, and in its activities where `CorroboInterceptor` is on the workflow's worker and on the
        activity's, an id made of workflow id, first run id and name; in a standalone activity one made of its own
        ids.

    Raises:
        UsageError: elsewhere, in an activity without the interceptor, or for an unusable name. Not retryable.

    Source: semantics section 1, I1.
    """
    if not isinstance(name, str) or not 1 <= len(name) <= _MAX_NAME or name != name.strip():
        raise UsageError("stable_identity", f"name: pass 1 to {_MAX_NAME} characters without white space around")
    if workflow.in_workflow():
        info = workflow.info()
        return _joined(info.workflow_id, info.first_execution_run_id, name)
    if activity.in_activity():
        return _in_activity(activity.info(), name)
    raise UsageError("stable_identity", "works in workflow code and in activities")


def _in_activity(info: activity.Info, name: str) -> str:
    if info.workflow_id is None:
        if info.activity_run_id is None:
            raise UsageError("stable_identity", "this server tells no run id of a standalone activity")
        return _joined(f"activity:{info.activity_id}", info.activity_run_id, name)
    first_run = _first_run.get()
    if first_run is None:
        raise UsageError(
            "stable_identity",
            "in an activity it needs CorroboPlugin on the workflow's worker and on this one; or pass the id in",
        )
    return _joined(info.workflow_id, first_run, name)


def _joined(scope: str, run_id: str, name: str) -> str:
    if len(scope) > _MAX_SCOPE or scope != scope.strip():
        scope = hashlib.sha256(scope.encode()).hexdigest()
    return f"{scope}/{run_id}/{name}"


# -- the header ----------------------------------------------------------------------------------------------

Headers = Mapping[str, temporalio.api.common.v1.Payload]


class CorroboInterceptor(temporalio.client.Interceptor, temporalio.worker.Interceptor):
    """Tells activities which run their workflow began with. Given twice, it does the same as once.

    `CorroboPlugin` brings it. Without the plugin, give it to the client, which hands it to its workers.
    """

    def workflow_interceptor_class(
        self, input: temporalio.worker.WorkflowInterceptorClassInput
    ) -> type[temporalio.worker.WorkflowInboundInterceptor]:
        """See the base class."""
        return _WorkflowInbound

    def intercept_activity(
        self, next: temporalio.worker.ActivityInboundInterceptor
    ) -> temporalio.worker.ActivityInboundInterceptor:
        """See the base class."""
        return _ActivityInbound(next)


class _WorkflowInbound(temporalio.worker.WorkflowInboundInterceptor):
    def init(self, outbound: temporalio.worker.WorkflowOutboundInterceptor) -> None:
        super().init(_WorkflowOutbound(outbound))


class _HasHeaders(Protocol):
    headers: Headers


InputT = TypeVar("InputT", bound=_HasHeaders)


class _WorkflowOutbound(temporalio.worker.WorkflowOutboundInterceptor):
    def start_activity(self, input: temporalio.worker.StartActivityInput) -> workflow.ActivityHandle[Any]:
        return super().start_activity(_with_first_run(input))

    def start_local_activity(
        self, input: temporalio.worker.StartLocalActivityInput
    ) -> workflow.ActivityHandle[Any]:
        return super().start_local_activity(_with_first_run(input))


def _with_first_run(input: InputT) -> InputT:
    run_id = workflow.info().first_execution_run_id
    # Always the plain converter: the header must be read whatever converter the other side uses.
    payload = DataConverter.default.payload_converter.to_payload(run_id)
    input.headers = {**input.headers, HEADER: payload}
    return input


class _ActivityInbound(temporalio.worker.ActivityInboundInterceptor):
    async def execute_activity(self, input: temporalio.worker.ExecuteActivityInput) -> Any:
        payload = input.headers.get(HEADER)
        if payload is None:
            return await super().execute_activity(input)
        run_id: str = DataConverter.default.payload_converter.from_payload(payload, str)
        token = _first_run.set(run_id)
        try:
            return await super().execute_activity(input)
        finally:
            _first_run.reset(token)
