"""Everything that is asked of DBOS, in one place: public names of `dbos`, and one attribute's name."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import Enum
from typing import Any

from dbos import DBOS, DBOSClient, StepInfo, StepReservation, WorkflowStatus, WorkflowStatusString
from dbos import error as dbos_error

from corrobo_core import UsageError

__all__ = [
    "MARK",
    "AsyncWorkflows",
    "Place",
    "Receive",
    "Workflows",
    "is_dbos_function",
    "on_event_loop",
    "place",
    "receive",
    "receive_async",
    "reserve",
    "run",
    "run_async",
    "sleep",
    "sleep_async",
    "workflow_id",
]

log = logging.getLogger("corrobo_dbos")

MARK = "dbos_"
"""What the names of the attributes begin with that DBOS sets on functions it decorates. Not documented by DBOS."""

_NAME_MARK = "dbos_function_name"
_SOONEST, _LATEST = 1.0, 10.0  # s; how long a cancellation may stay unnoticed while an effect waits


class Place(Enum):
    """Where a call comes from."""

    OUTSIDE = "outside any workflow"
    WORKFLOW = "in workflow code"
    STEP = "inside a step"


def place() -> Place:
    """Where this call comes from, as DBOS sees it."""
    if DBOS.workflow_id is None:
        return Place.OUTSIDE
    return Place.WORKFLOW if DBOS.step_id is None else Place.STEP


def workflow_id() -> str:
    """Of the workflow that this is called in.

    Raises:
        UsageError: in none. Not retryable.
    """
    found = DBOS.workflow_id
    if found is None:
        raise UsageError("corrobo_dbos", "was called outside any workflow")
    return found


def on_event_loop() -> bool:
    """Whether this thread runs an event loop right now."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def is_dbos_function(fn: object) -> bool:
    """Whether a function carries ``@DBOS.step`` or ``@DBOS.workflow``."""
    return hasattr(fn, _NAME_MARK)


# -- one step ------------------------------------------------------------------------------------------------


class _NoOutcome(BaseException):
    """Carries an error out of a step without a checkpoint: DBOS records what is an `Exception`, and only that."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def reserve() -> StepReservation:
    """Draw the next step id of this workflow."""
    return DBOS.reserve_step()


def run(reserved: StepReservation, name: str, work: Callable[[], Any]) -> Any:
    """Run ``work`` as the reserved step, or return what it returned before a restart.

    What ``work`` raises is raised here and is not checkpointed: the step runs again on replay.
    """

    def step() -> Any:
        try:
            return work()
        except Exception as error:
            raise _NoOutcome(error) from error

    try:
        return reserved.run({"name": name}, step)
    except _NoOutcome as carrier:
        error = carrier.error
    raise error  # outside, so that it keeps its own cause


async def run_async(reserved: StepReservation, name: str, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """`run`, on the event loop that runs the workflow."""

    async def step() -> Any:
        try:
            return await work()
        except Exception as error:
            raise _NoOutcome(error) from error

    try:
        return await reserved.run_async({"name": name}, step)
    except _NoOutcome as carrier:
        error = carrier.error
    raise error  # outside, so that it keeps its own cause


# -- waiting inside a step -----------------------------------------------------------------------------------


def sleep(seconds: float) -> None:
    """Wait inside a step, and notice when its workflow is cancelled.

    Raises:
        DBOSWorkflowCancelledError: it is. DBOS checkpoints nothing then, and a resumed workflow runs the step
            again.
    """
    for part in _parts(seconds):
        time.sleep(part)
        own = DBOS.workflow_id
        try:
            found = DBOS.list_workflows(**_cancelled(own))
        except dbos_error.DBOSQueryTimeoutError as error:
            _not_asked(own, error)
        else:
            _stop_if(found, own)


async def sleep_async(seconds: float) -> None:
    """`sleep`, on a running event loop."""
    for part in _parts(seconds):
        await asyncio.sleep(part)
        own = DBOS.workflow_id
        try:
            found = await DBOS.list_workflows_async(**_cancelled(own))
        except dbos_error.DBOSQueryTimeoutError as error:
            _not_asked(own, error)
        else:
            _stop_if(found, own)


def _parts(seconds: float) -> list[float]:
    """The wait, cut where the workflow's status is looked up: the longer it is, the rarer."""
    longest = min(max(seconds / 10, _SOONEST), _LATEST)
    whole, rest = divmod(seconds, longest)
    return [longest] * int(whole) + ([rest] if rest else [])


def _cancelled(workflow_id: str | None) -> dict[str, Any]:
    return {
        "workflow_ids": [workflow_id],
        "status": WorkflowStatusString.CANCELLED.value,
        "load_input": False,
        "load_output": False,
        "shard_key": DBOS.shard_key,
    }


def _stop_if(found: list[Any], workflow_id: str | None) -> None:
    if found:
        raise dbos_error.DBOSWorkflowCancelledError(
            f"Workflow {workflow_id} is cancelled; its effect no longer waits"
        )


def _not_asked(workflow_id: str | None, error: Exception) -> None:
    log.warning("could not look up whether workflow %s is cancelled: %s", workflow_id, error)


# -- messages --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Receive:
    """Wait in workflow code for a message, or for the time to pass. What it says is not looked at.

    Takes two step ids, and goes on where it was after a restart.

    Args:
        topic: of the message.
        seconds: how long.
    """

    topic: str
    seconds: float


def receive(topic: str, seconds: float) -> None:
    """Do what a `Receive` says."""
    DBOS.recv(topic, seconds)


async def receive_async(topic: str, seconds: float) -> None:
    """`receive`, on the event loop that runs the workflow."""
    await DBOS.recv_async(topic, seconds)


# -- from outside ----------------------------------------------------------------------------------------------


class Workflows:
    """What is asked about workflows from outside of them.

    Args:
        client: for processes without DBOS; None: this process's own DBOS.
    """

    def __init__(self, client: DBOSClient | None) -> None:
        self._dbos: type[DBOS] | DBOSClient = DBOS if client is None else client

    def status(self, workflow_id: str) -> WorkflowStatus | None:
        """Where a workflow stands; None if there is none."""
        return next(iter(self._dbos.list_workflows(**_only(workflow_id))), None)

    def steps(self, workflow_id: str) -> list[StepInfo]:
        """What is in its history."""
        return self._dbos.list_workflow_steps(workflow_id)

    def wake(self, workflow_id: str, topic: str, key: str) -> None:
        """Send a message, once for each key."""
        self._dbos.send(workflow_id, "look", topic, idempotency_key=key)


class AsyncWorkflows:
    """`Workflows`, for an event loop: the same methods, awaited."""

    def __init__(self, client: DBOSClient | None) -> None:
        self._dbos: type[DBOS] | DBOSClient = DBOS if client is None else client

    async def status(self, workflow_id: str) -> WorkflowStatus | None:
        """See `Workflows.status`."""
        return next(iter(await self._dbos.list_workflows_async(**_only(workflow_id))), None)

    async def steps(self, workflow_id: str) -> list[StepInfo]:
        """See `Workflows.steps`."""
        return await self._dbos.list_workflow_steps_async(workflow_id)

    async def wake(self, workflow_id: str, topic: str, key: str) -> None:
        """See `Workflows.wake`."""
        await self._dbos.send_async(workflow_id, "look", topic, idempotency_key=key)


def _only(workflow_id: str) -> dict[str, Any]:
    return {"workflow_ids": [workflow_id], "load_input": False, "load_output": False}
