"""A workflow worker in this process, activity workers in others or here, and an HTTP ledger that counts."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from examples.http_ledger import HttpLedger
from tests.engines.temporal.gate_support import Gated
from tests.engines.temporal.workflows import ALL, Call, CallActivity, DescribeEnd, Ended
from tests.support.processes import Child, child


class Engine:
    """Starts workers and workflows of one test, and stops them with it."""

    def __init__(self, client: Client, address: str, folder: Path, url: str, stack: AsyncExitStack) -> None:
        self.client, self._address, self._stack, self._url = client, address, stack, url
        self.database = folder / "effects.db"
        self.workflows, self.activities = f"wf-{uuid.uuid4()}", f"act-{uuid.uuid4()}"

    async def start_workers(self, count: int = 1) -> list[Child]:
        """Start activity workers in processes of their own, and wait until they poll."""
        workers = [self._stack.enter_context(self._worker()) for _ in range(count)]
        await asyncio.gather(*(asyncio.to_thread(worker.wait_for, "ready") for worker in workers))
        return workers

    def _worker(self) -> AbstractContextManager[Child]:
        arguments = (self._address, self.activities, str(self.database))
        return child("tests.engines.temporal.worker", *arguments, env={"HTTP_LEDGER_URL": self._url})

    async def enter(self, worker: Worker) -> Worker:
        """Run a worker until the test ends."""
        return await self._stack.enter_async_context(worker)

    async def serve(self, *activities: Callable[..., Any], **options: Any) -> Worker:
        """Start an activity worker in this process."""
        threads = self._stack.enter_context(ThreadPoolExecutor(8))
        options = {
            "task_queue": self.activities,
            "max_heartbeat_throttle_interval": timedelta(milliseconds=100),  # room for a busy machine
            **options,
        }
        worker = Worker(self.client, activities=activities, activity_executor=threads, **options)
        return await self.enter(worker)

    def call(self, activity: str, *args: Any, **options: Any) -> Call:
        """A call of an activity on this test's queue."""
        return Call(activity, list(args), self.activities, **options)

    async def start(self, run: Any, arg: Any, **options: Any) -> WorkflowHandle[Any, Any]:
        """Start a workflow."""
        return await self.client.start_workflow(
            run, arg, id=f"wf-{uuid.uuid4()}", task_queue=self.workflows, **options
        )

    async def start_call(self, activity: str, *args: Any, **options: Any) -> WorkflowHandle[Any, Any]:
        """Start a workflow that calls one activity."""
        return await self.start(CallActivity.run, self.call(activity, *args, **options))

    async def end_of(self, activity: str, *args: Any, **options: Any) -> Ended:
        """How an activity call ends, as its workflow sees it."""
        handle = await self.start(DescribeEnd.run, self.call(activity, *args, **options))
        ended: Ended = await handle.result()
        return ended


@pytest.fixture
async def engine(
    temporal_client: Client,
    temporal_address: str,
    tmp_path: Path,
    http_ledger: HttpLedger,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Engine]:
    """This test's queues, with a workflow worker in this process."""
    monkeypatch.setenv("HTTP_LEDGER_URL", http_ledger.url)
    async with AsyncExitStack() as stack:
        engine = Engine(temporal_client, temporal_address, tmp_path, http_ledger.url, stack)
        await stack.enter_async_context(_workflow_worker(engine))
        yield engine


def _workflow_worker(engine: Engine, workflows: Sequence[type] = ALL) -> Worker:
    return Worker(engine.client, task_queue=engine.workflows, workflows=workflows)


@pytest.fixture
def gated(temporal_client: Client) -> Gated:
    """The gates' workflows, on a queue of this test."""
    return Gated(temporal_client)
