"""Everything that is asked of DBOS, in one place: public names of `dbos`, and one attribute's name."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any

from dbos import DBOS, StepReservation, WorkflowStatusString
from dbos import error as dbos_error

__all__ = [
    "MARK",
    "Place",
    "is_dbos_function",
    "place",
    "reserve",
    "run",
    "run_async",
    "sleep",
    "sleep_async",
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
        workflow_id = DBOS.workflow_id
        try:
            found = DBOS.list_workflows(**_cancelled(workflow_id))
        except dbos_error.DBOSQueryTimeoutError as error:
            _not_asked(workflow_id, error)
        else:
            _stop_if(found, workflow_id)


async def sleep_async(seconds: float) -> None:
    """`sleep`, on a running event loop."""
    for part in _parts(seconds):
        await asyncio.sleep(part)
        workflow_id = DBOS.workflow_id
        try:
            found = await DBOS.list_workflows_async(**_cancelled(workflow_id))
        except dbos_error.DBOSQueryTimeoutError as error:
            _not_asked(workflow_id, error)
        else:
            _stop_if(found, workflow_id)


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
