"""A queue of its own for each test, workers that come and go, and messages of reviewers."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from corrobo_core.gates import ClaimOk, GateView
from corrobo_temporal import (
    TemporalGateClient,
    WorkflowGone,
    decision_activities,
    effect_activity,
    observe_activity,
)
from corrobo_temporal.gate_wire import MEMO, SIGNAL
from tests.engines.temporal.gate_workflows import GATED, Ask, Release, Remind, Reminded, Send, SendAll
from tests.engines.temporal.questions import asked
from tests.engines.temporal.scripted import Scripted

YES, NO = {"approved": True}, {"approved": False}
UNCACHED: dict[str, Any] = {"max_cached_workflows": 0}
Handle = WorkflowHandle[Any, Any]
cached_or_not = pytest.mark.parametrize("options", [{}, UNCACHED], ids=["cached", "uncached"])


class Gated:
    """The gates' workflows on one task queue."""

    def __init__(self, client: Client) -> None:
        self.client, self.queue = client, f"gates-{uuid.uuid4()}"

    def worker(self, **options: Any) -> Worker:
        """A worker, to be run with ``async with``."""
        return Worker(self.client, task_queue=self.queue, workflows=GATED, **options)

    async def start(self, order: Ask, **options: Any) -> Handle:
        """Start a workflow that asks."""
        given = {"id": f"gated-{uuid.uuid4()}", "execution_timeout": timedelta(seconds=60), **options}
        return await self.client.start_workflow(Release.run, order, task_queue=self.queue, **given)

    async def remind(self, order: Remind) -> Handle:
        """Start a workflow that asks, and has people reminded."""
        return await self.client.start_workflow(
            Reminded.run, order, id=f"reminded-{uuid.uuid4()}", task_queue=self.queue
        )

    def gates(self, handle: Handle, **options: Any) -> TemporalGateClient:
        """A reviewer's client of a workflow."""
        return TemporalGateClient(self.client, handle.id, **options)

    async def reset(self, handle: Handle) -> Handle:
        """Start the workflow anew from after its first task; signals and updates are applied again."""
        events = [event async for event in handle.fetch_history_events()]
        tasks = [e.event_id for e in events if e.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED]
        reply = await self.client.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace=self.client.namespace,
                workflow_execution=WorkflowExecution(workflow_id=handle.id),
                reason="a test",
                workflow_task_finish_event_id=tasks[0],
                request_id=str(uuid.uuid4()),
            )
        )
        return self.client.get_workflow_handle(handle.id, run_id=reply.run_id)


async def claimed(gates: TemporalGateClient, revision: str, router: str = "ada") -> str:
    """Claim a question, and give the token."""
    claim = await gates.claim(asked(revision).request_id, router)
    assert isinstance(claim, ClaimOk), claim
    return claim.claim_token


async def submitted(
    gates: TemporalGateClient, revision: str, token: str, response: Any = None, **options: Any
) -> Any:
    """Submit an answer as ada."""
    request = asked(revision)
    return await gates.submit(
        request.request_id, token, "ada", request.digest, YES if response is None else response, **options
    )


async def opened(gates: TemporalGateClient, revision: str) -> GateView:
    """The question, as soon as it is there."""
    request_id = asked(revision).request_id
    for number in count(1):
        if request_id in await _open_by_memo(gates) or number % 20 == 0:  # it may have been answered at once
            view = await gates.show(request_id)
            if view is not None and not isinstance(view, WorkflowGone):
                return view
        await asyncio.sleep(0.05)
    raise AssertionError("unreachable")


async def _open_by_memo(gates: TemporalGateClient) -> list[str]:
    """Which questions are open. A query can cost a worker without a cache its task for ten seconds; this cannot."""
    memo = await (await gates._handle.describe()).memo()
    return [question["requestId"] for question in memo.get(MEMO, {}).get("open", [])]


async def kinds(gates: TemporalGateClient) -> list[str]:
    """The kinds of all events so far."""
    history = await gates.history()
    assert not isinstance(history, WorkflowGone)
    return [str(event["kind"]).removeprefix("callback-") for event in history]


async def refused(gates: TemporalGateClient) -> list[str]:
    """The kinds of the last refusals."""
    refusals = await gates.refusals()
    assert not isinstance(refusals, WorkflowGone)
    return [refusal["kind"] for refusal in refusals["last"]]


def message(kind: str, revision: str, router: str = "ada", **fields: Any) -> dict[str, Any]:
    """What a plain signal carries."""
    return {"kind": kind, "requestId": asked(revision).request_id, "routerId": router, **fields}


def answer(revision: str, response: Any = None, router: str = "ada") -> dict[str, Any]:
    """A claim and its submission in one signal."""
    return message("answer", revision, router, response=YES if response is None else response)


async def continued(gated: Gated, handle: Handle) -> Handle:
    """The next run, once this one has continued as new."""
    while True:
        run_id = (await gated.client.get_workflow_handle(handle.id).describe()).run_id
        if run_id != handle.first_execution_run_id:
            return gated.client.get_workflow_handle(handle.id, run_id=run_id)
        await asyncio.sleep(0.05)


@activity.defn
async def remind(revision: str) -> None:
    """Remind people of a question. Whoever counts reminders reads the history."""


# -- effects -----------------------------------------------------------------------------------------------


class Office:
    """Workers for one scripted effect: of the workflow, of the effect, and of the reviewers' desk."""

    def __init__(self, gated: Gated, stack: AsyncExitStack) -> None:
        self.gated, self._stack = gated, stack
        self.activities, self.decisions = f"act-{uuid.uuid4()}", f"desk-{uuid.uuid4()}"

    async def open(
        self,
        case: Scripted,
        *,
        desk: bool = True,
        naive: bool = False,
        max_cached_workflows: int = 1000,
        **options: Any,
    ) -> None:
        """Start them; ``naive``: with a plain activity in the effect's place."""
        await self._stack.enter_async_context(self.gated.worker(max_cached_workflows=max_cached_workflows))
        threads = self._stack.enter_context(ThreadPoolExecutor(4))
        activities = [
            _plain(case)
            if naive
            else effect_activity(case.effect, case.ledger, activity_name="send", look_again_for=timedelta()),
            observe_activity(case.effect, case.ledger, activity_name="send"),
        ]
        effects = Worker(
            self.gated.client, task_queue=self.activities, activities=activities, activity_executor=threads
        )
        await self._stack.enter_async_context(effects)
        if desk:
            decisions = decision_activities(case.ledger, effects=[case.effect], **options)
            worker = Worker(self.gated.client, task_queue=self.decisions, activities=decisions)
            await self._stack.enter_async_context(worker)

    async def start(self, *references: str, **options: Any) -> tuple[Handle, TemporalGateClient]:
        """Start the workflow."""
        order = Send(self.activities, self.decisions, list(references), **options)
        handle = await self.gated.client.start_workflow(
            SendAll.run,
            order,
            id=f"send-{uuid.uuid4()}",
            task_queue=self.gated.queue,
            execution_timeout=timedelta(seconds=60),
        )
        return handle, self.gated.gates(handle)


def _plain(case: Scripted) -> Callable[[str], str]:
    @activity.defn(name="send")
    def plain(reference: str) -> str:
        return case.provider.write(reference)

    return plain


async def pending(gates: TemporalGateClient, number: int = 1) -> list[GateView]:
    """That many open questions, as soon as they are asked."""
    while True:
        if len(await _open_by_memo(gates)) >= number:
            found = await gates.list_pending()
            if not isinstance(found, WorkflowGone) and len(found) == number:
                return list(found)
        await asyncio.sleep(0.05)


def says(view: GateView, response: Any, router: str = "ada", **fields: Any) -> dict[str, Any]:
    return {
        "kind": "answer",
        "requestId": view.request_id,
        "routerId": router,
        "response": response,
        "actor": {"name": router},
        **fields,
    }


__all__ = [
    "NO",
    "SIGNAL",
    "UNCACHED",
    "YES",
    "Ask",
    "Gated",
    "Handle",
    "Office",
    "answer",
    "cached_or_not",
    "claimed",
    "continued",
    "kinds",
    "message",
    "opened",
    "pending",
    "refused",
    "remind",
    "says",
    "submitted",
]
