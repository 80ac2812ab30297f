"""Arguments that Temporal would not take: refused by name, or started one workflow task later.

The server takes 2 MiB for one activity, and 4 MiB for all that one workflow task starts. Beyond that the task fails
again and again, or the workflow is ended, and the reason stands in the worker's log alone.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow

from corrobo_core import IntentError
from corrobo_temporal.failures import refusal_for

__all__ = ["MAX_ARGUMENT_BYTES", "Sizes"]

MAX_ARGUMENT_BYTES = 2 * 1024 * 1024
_REST_OF_A_TASK = 64 * 1024  # names, timeouts and other commands
_NEXT_TASK = timedelta(milliseconds=1)


class Sizes:
    """Adds up what one workflow starts in one task.

    Args:
        most: bytes for one activity; twice as many for a task.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._task = self._started = 0

    async def room_for(self, name: str, arguments: list[object]) -> None:
        """Wait until an activity with these arguments can be started in this task.

        Raises:
            ApplicationError: they are too large for any: an IntentError, as an activity refuses. Not retryable.

        Source: semantics I4, L8.
        """
        size = sum(payload.ByteSize() for payload in workflow.payload_converter().to_payloads(arguments))
        if size > self._most:
            problem = f"{size} bytes, more than the {self._most} that Temporal takes; pass a reference to the data"
            raise refusal_for(IntentError(f"arguments of {name}", problem))
        while self._started_in_this_task() + size > 2 * self._most - _REST_OF_A_TASK:
            await workflow.sleep(_NEXT_TASK)
        self._started += size

    def _started_in_this_task(self) -> int:
        task = workflow.info().get_current_history_length()
        if task != self._task:
            self._task, self._started = task, 0
        return self._started
