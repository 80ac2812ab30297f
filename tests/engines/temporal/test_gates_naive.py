"""The naive twins of the tests of gates: the same messages, to a workflow that keeps a field. Each loses a
decision, or takes one twice. What gates do instead is told in `test_gates`, by the same letters.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from tests.engines.temporal.gate_support import UNCACHED, Gated, Handle, continued
from tests.engines.temporal.naive_gates import NaiveApprovals, Wanted


class Naive:
    """One naive workflow, and its worker, once it is wanted."""

    def __init__(self, client: Client, stack: AsyncExitStack) -> None:
        self.client, self._stack, self._queue = client, stack, f"naive-{uuid.uuid4()}"

    async def start(self, *revisions: str) -> Handle:
        order = Wanted(list(revisions))
        return await self.client.start_workflow(
            NaiveApprovals.run, order, id=f"naive-{uuid.uuid4()}", task_queue=self._queue
        )

    def worker(self) -> Worker:
        return Worker(self.client, task_queue=self._queue, workflows=[NaiveApprovals], **UNCACHED)

    async def work(self) -> None:
        await self._stack.enter_async_context(self.worker())

    async def waiting(self, *revisions: str) -> Handle:
        """Start one, and wait until it waits."""
        await self.work()
        handle = await self.start(*revisions)
        await handle.query(NaiveApprovals.waiting)
        return handle


@pytest.fixture
async def naive(temporal_client: Client) -> AsyncIterator[Naive]:
    async with AsyncExitStack() as stack:
        yield Naive(temporal_client, stack)


async def test_D02_a_naive_workflow_loses_a_signal_before_its_first_task(naive: Naive) -> None:
    handle = await naive.start("r1")
    await handle.signal(NaiveApprovals.approve, "ada")
    await naive.work()
    assert await handle.result() == ["nobody"]


async def test_D03_a_naive_workflow_loses_a_decision_that_comes_as_it_continues_as_new(naive: Naive) -> None:
    async with naive.worker():
        handle = await naive.start("r1")
        await handle.query(NaiveApprovals.waiting)
    await handle.signal(NaiveApprovals.continue_as_new)
    await handle.signal(NaiveApprovals.approve, "ada")
    async with naive.worker():
        latest = naive.client.get_workflow_handle(handle.id)
        assert await latest.result() == ["ada", "nobody"]  # it was heard, and not acted upon


async def test_D05_a_naive_workflow_takes_an_update_of_the_same_id_again_in_the_next_run(
    naive: Naive, gated: Gated
) -> None:
    handle = await naive.waiting("r1", "r2", "r3")
    assert await handle.execute_update(NaiveApprovals.decide, "ada", id="click")
    await handle.signal(NaiveApprovals.continue_as_new)
    latest = await continued(gated, handle)
    await latest.query(NaiveApprovals.waiting)
    assert await latest.execute_update(NaiveApprovals.decide, "ada", id="click")
    assert await latest.result() == ["ada", "ada"]


async def test_D11_a_naive_workflow_tells_two_reviewers_that_each_has_decided(naive: Naive) -> None:
    handle = await naive.waiting("r1")
    told = await asyncio.gather(*(handle.execute_update(NaiveApprovals.decide, who) for who in ("ada", "grace")))
    assert told == [True, True]
    assert sorted(await handle.result()) == ["ada", "grace"]


async def test_D10_a_naive_workflow_takes_one_approval_for_the_next_question_too(naive: Naive) -> None:
    handle = await naive.waiting("r1", "r2")
    assert await handle.execute_update(NaiveApprovals.decide, "ada")
    assert await handle.result() == ["ada"]  # both are released, and "r2" was approved by nobody
