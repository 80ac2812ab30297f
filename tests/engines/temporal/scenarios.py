"""Workflows with gates, played through on a server: their histories are recorded, and replayed in the tests."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any
from unittest import mock

from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Worker

from corrobo_core import MemoryLedger
from corrobo_temporal import decision_activities, effect_activity
from examples.approve_release.release import DECISIONS, ApprovedRelease
from examples.approve_release.release import release as release_effect
from examples.http_ledger import running_http_ledger
from tests.engines.temporal.gate_support import (
    NO,
    SIGNAL,
    YES,
    Gated,
    Handle,
    Office,
    answer,
    claimed,
    continued,
    message,
    opened,
    pending,
    remind,
    says,
    submitted,
)
from tests.engines.temporal.gate_workflows import GATED, Ask, Release, Remind
from tests.engines.temporal.questions import asked
from tests.engines.temporal.scripted import APPLIED, reviewed, scripted

Options = dict[str, Any]
Scenario = Callable[[Client, Options], Awaitable[list[Handle]]]
WORKFLOWS: list[type] = [*GATED, ApprovedRelease]


async def interleaved(client: Client, options: Options) -> list[Handle]:
    """Claims, releases, submissions and refusals by updates and signals, several of them in one task."""
    gated = Gated(client)
    handle = await gated.start(Ask(["r1", "r2"], linger=True, deadline=50))
    gates = gated.gates(handle)
    await handle.signal(SIGNAL, message("claim", "r1", "grace", claimToken="g"))
    await handle.signal(SIGNAL, answer("r2", NO, "grace"))
    await handle.signal(SIGNAL, args=["nonsense"])
    async with gated.worker(**options):
        await opened(gates, "r1")
        await gates.claim(asked("r1").request_id, "ada")
        await gates.release(asked("r1").request_id, "g")
        token = await claimed(gates, "r1")
        late = message("claim", "r1", "grace", claimToken="g2")
        await asyncio.gather(
            handle.signal(SIGNAL, late), submitted(gates, "r1", token, YES), submitted(gates, "r1", token, NO)
        )
        await submitted(gates, "r2", token)
        await handle.signal(Release.finish)
        await handle.result()
    return [handle]


async def expired(client: Client, options: Options) -> list[Handle]:
    """A deadline passes, and an answer comes late."""
    gated = Gated(client)
    async with gated.worker(**options):
        handle = await gated.start(Ask(["r1"], deadline=1.0, linger=True))
        gates = gated.gates(handle)
        token = await claimed(gates, "r1")
        await asyncio.sleep(1.2)
        await submitted(gates, "r1", token)
        await handle.signal(Release.finish)
        await handle.result()
    return [handle]


async def reminded(client: Client, options: Options) -> list[Handle]:
    """Somebody is reminded before the deadline, and answers."""
    gated = Gated(client)
    async with gated.worker(activities=[remind], **options):
        handle = await gated.remind(Remind("r1", deadline=50, warn_after=0.5))
        await opened(gated.gates(handle), "r1")
        await asyncio.sleep(0.7)
        await handle.signal(SIGNAL, answer("r1"))
        await handle.result()
    return [handle]


async def continued_as_new(client: Client, options: Options) -> list[Handle]:
    """A claim, a deadline and a signal that came early are carried into the next run."""
    gated = Gated(client)
    async with gated.worker(**options):
        handle = await gated.start(Ask(["r1", "r2"], rounds=1, deadline=50))
        token = await claimed(gated.gates(handle), "r1")
        await handle.signal(SIGNAL, answer("r2", NO))
        await handle.signal(Release.continue_as_new)
        latest = await continued(gated, handle)
        await submitted(gated.gates(latest), "r1", token)
        await latest.result()
    first = client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
    return [first, latest]


async def effects(client: Client, options: Options) -> list[Handle]:
    """Two effects that need approval, beside one another; one answer comes in while the other effect is sent."""
    case = scripted(APPLIED, authorize=reviewed)
    async with AsyncExitStack() as stack:
        office = Office(Gated(client), stack)
        await office.open(case, **options)
        handle, gates = await office.start("rf_1", "rf_2", approve_last="r1")
        first, second = await pending(gates, 2)
        await handle.signal(SIGNAL, says(first, {"kind": "allow"}))
        await handle.signal(SIGNAL, says(second, {"kind": "allow"}, "grace"))
        await handle.signal(SIGNAL, answer("r1"))
        await handle.result()
    return [handle]


async def approve_release(client: Client, options: Options) -> list[Handle]:
    """The workflow of the example."""
    ledger, queue = MemoryLedger(), f"releases-{uuid.uuid4()}"
    with running_http_ledger() as outside, mock.patch.dict(os.environ, HTTP_LEDGER_URL=outside.url):
        async with AsyncExitStack() as stack:
            desk = Worker(client, task_queue=DECISIONS, activities=decision_activities(ledger))
            await stack.enter_async_context(desk)
            sends = [effect_activity(release_effect, ledger)]
            executor = stack.enter_context(ThreadPoolExecutor(4))
            worker = Worker(
                client,
                task_queue=queue,
                workflows=[ApprovedRelease],
                activities=sends,
                activity_executor=executor,
                **options,
            )
            await stack.enter_async_context(worker)
            handle = await client.start_workflow(
                ApprovedRelease.run, "2026.11", id=f"release-{uuid.uuid4()}", task_queue=queue
            )
            [view] = await pending(Gated(client).gates(handle))
            await handle.signal(SIGNAL, says(view, {"kind": "allow"}))
            await handle.result()
    return [handle]


SCENARIOS: dict[str, Scenario] = {
    "gates-interleaved": interleaved,
    "gates-expired": expired,
    "gates-reminded": reminded,
    "gates-continued-as-new": continued_as_new,
    "gates-effects": effects,
    "example-approve-release": approve_release,
}
CACHES: dict[str, Options] = {"cached": {}, "uncached": {"max_cached_workflows": 0}}


async def play(name: str, cache: str, client: Client) -> list[WorkflowHistory]:
    """Play a scenario, and fetch what it left."""
    handles = await SCENARIOS[name](client, CACHES[cache])
    return [await handle.fetch_history() for handle in handles]
