"""A queue of its own for each test, workers that come and go, and messages of reviewers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from corrobo_temporal.gate_wire import SIGNAL
from tests.engines.temporal.gate_workflows import GATED, Ask, Release
from tests.engines.temporal.questions import asked


class Gated:
    """The gates' workflows on one task queue."""

    def __init__(self, client: Client) -> None:
        self.client, self.queue = client, f"gates-{uuid.uuid4()}"

    def worker(self, **options: Any) -> Worker:
        """A worker, to be run with ``async with``."""
        return Worker(self.client, task_queue=self.queue, workflows=GATED, **options)

    async def start(self, order: Ask, **options: Any) -> WorkflowHandle[Any, Any]:
        """Start a workflow that asks."""
        given = {"id": f"gated-{uuid.uuid4()}", "execution_timeout": timedelta(seconds=60), **options}
        return await self.client.start_workflow(Release.run, order, task_queue=self.queue, **given)


def answer(revision: str, router: str, response: object) -> dict[str, Any]:
    """The arguments of a signal that claims and submits in one."""
    message = {
        "kind": "answer",
        "requestId": asked(revision).request_id,
        "routerId": router,
        "response": response,
    }
    return {"signal": SIGNAL, "arg": message}


def of(kind: str, revision: str, **fields: Any) -> Mapping[str, Any]:
    """The arguments of a signal of another kind."""
    return {"signal": SIGNAL, "arg": {"kind": kind, "requestId": asked(revision).request_id, **fields}}
