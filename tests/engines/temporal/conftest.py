"""A workflow worker in this process, activity workers in others, and an HTTP ledger that counts."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from examples.http_ledger import HttpLedger
from tests.engines.temporal.workflows import Call, CallActivity
from tests.support.processes import Child, child


class Engine:
    """Starts workers and workflows of one test."""

    def __init__(self, client: Client, address: str, folder: Path, ledger: HttpLedger, stack: ExitStack) -> None:
        self.client, self._address, self._file, self._stack = client, address, folder / "effects.db", stack
        self._env = {"HTTP_LEDGER_URL": ledger.url}
        self.workflows, self.activities = f"wf-{uuid.uuid4()}", f"act-{uuid.uuid4()}"

    async def start_workers(self, count: int = 1) -> list[Child]:
        """Start activity workers in processes of their own, and wait until they poll."""
        workers = [self._stack.enter_context(self._worker()) for _ in range(count)]
        await asyncio.gather(*(asyncio.to_thread(worker.wait_for, "ready") for worker in workers))
        return workers

    def _worker(self) -> Any:
        return child(
            "tests.engines.temporal.worker", self._address, self.activities, str(self._file), env=self._env
        )

    async def start(self, activity: str, *args: Any, **options: Any) -> WorkflowHandle[CallActivity, Any]:
        """Start a workflow that calls one activity."""
        call = Call(activity, list(args), self.activities, **options)
        return await self.client.start_workflow(
            CallActivity.run, call, id=f"call-{uuid.uuid4()}", task_queue=self.workflows
        )


@pytest.fixture
async def engine(
    temporal_client: Client, temporal_address: str, tmp_path: Path, http_ledger: HttpLedger
) -> AsyncIterator[Engine]:
    """This test's queues, with a workflow worker in this process."""
    with ExitStack() as stack:
        engine = Engine(temporal_client, temporal_address, tmp_path, http_ledger, stack)
        async with Worker(temporal_client, task_queue=engine.workflows, workflows=[CallActivity]):
            yield engine
