"""One wait for people at a time in each workflow: the step ids that it takes cannot all be drawn at its call.

Two of them side by side would swap their messages and steps on replay. DBOS does not say which calls belong to one
execution of a workflow, and a cancelled execution may linger beside the resumed one; but within one execution the
step ids that are drawn only grow.
"""

from __future__ import annotations

import threading
from types import TracebackType
from weakref import WeakValueDictionary

from corrobo_core import UsageError

__all__ = ["Turn"]

_lock = threading.Lock()


class _Execution:
    """One run of a workflow's code, as far as its calls tell."""

    def __init__(self) -> None:
        self.last, self.waiting = -1, False


class _Workflow:
    """The runs of one workflow id in this process that have calls now, oldest first."""

    def __init__(self) -> None:
        self.executions: list[_Execution] = []


_workflows: WeakValueDictionary[str, _Workflow] = WeakValueDictionary()  # kept by the turns


class Turn:
    """One call's turn to wait; used as a context manager around all of its steps.

    Args:
        who: what is called, for the error.
        workflow_id: of the workflow that calls.
        step_id: the first step id, drawn at the call.
    """

    def __init__(self, who: str, workflow_id: str, step_id: int) -> None:
        self._who = who
        with _lock:
            self._workflow = _workflows.setdefault(workflow_id, _Workflow())
            runs = self._workflow.executions
            own = next((run for run in reversed(runs) if run.last < step_id), None)
            if own is None:
                own = _Execution()
                runs.append(own)
            own.last = step_id
            self._execution = own

    def __enter__(self) -> None:
        with _lock:
            if self._execution.waiting:
                raise UsageError(
                    self._who,
                    "may wait for a person, and another one of this workflow does already; "
                    "start one child workflow for each",
                )
            self._execution.waiting = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _lock:
            self._execution.waiting = False
