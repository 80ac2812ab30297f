"""Workflows of the tests. The sandbox imports this file for every run: it stays small."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy

QUICK = RetryPolicy(initial_interval=timedelta(milliseconds=50), backoff_coefficient=1.0)


@dataclass
class Call:
    """One activity call. Times are in seconds."""

    activity: str
    args: list[Any]
    task_queue: str
    heartbeat: float | None = 0.4
    start_to_close: float | None = None
    schedule_to_close: float = 20.0
    maximum_attempts: int = 0


@workflow.defn
class CallActivity:
    """Calls one activity and returns what it returns."""

    @workflow.run
    async def run(self, call: Call) -> Any:
        return await workflow.execute_activity(
            call.activity,
            args=call.args,
            task_queue=call.task_queue,
            heartbeat_timeout=seconds(call.heartbeat),
            start_to_close_timeout=seconds(call.start_to_close),
            schedule_to_close_timeout=seconds(call.schedule_to_close),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(milliseconds=50),
                backoff_coefficient=1.0,
                maximum_attempts=call.maximum_attempts,
            ),
        )


def seconds(value: float | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)
