"""A Temporal worker for both groups: ``temporal_worker.py ADDRESS``."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from corrobo_temporal import CorroboPlugin
    from examples.http_ledger import Credit
    from tests.soak.effects import AMOUNT, client, credit_effect, effect_ledger, end_with_parent

TASK_QUEUE = "soak"
THREADS = 20
ACTIVITIES = {"effect": "credit", "naive": "credit_naively"}


@workflow.defn
class OneCredit:
    """One credit, as an effect or naively: the same call."""

    @workflow.run
    async def run(self, group: str, reference: str) -> str:
        """The credit's id."""
        made: Credit = await workflow.execute_activity(
            ACTIVITIES[group],
            args=[reference, AMOUNT],
            result_type=Credit,
            schedule_to_close_timeout=timedelta(minutes=10),
            heartbeat_timeout=timedelta(seconds=2),  # how the server notices that the worker is dead
            retry_policy=RetryPolicy(
                initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=1)
            ),
        )
        return made.id


@activity.defn
def credit_naively(reference: str, amount_cents: int) -> Credit:
    """Send, and leave the rest to Temporal's retries."""
    return client().send(reference, amount_cents)


async def main(address: str) -> None:
    """Work until killed."""
    end_with_parent()
    temporal = await Client.connect(address, plugins=[CorroboPlugin()])
    with ThreadPoolExecutor(THREADS) as threads:
        worker = Worker(
            temporal,
            task_queue=TASK_QUEUE,
            workflows=[OneCredit],
            activities=[credit_naively],
            activity_executor=threads,
            max_concurrent_activities=THREADS,
            max_cached_workflows=0,  # a fresh worker gets a killed one's workflows at once
            plugins=[CorroboPlugin(effect_ledger(), effects=[credit_effect()])],
        )
        async with worker:
            print("ready", flush=True)
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
