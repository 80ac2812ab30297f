"""A Temporal worker: one workflow whose one activity sends the credit, naively or as an effect."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy, WorkflowIDConflictPolicy
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from corrobo_core import PostgresLedger
    from corrobo_temporal import CorroboPlugin, effect_activity
    from examples.http_ledger import Credit
    from examples.killed_worker.effects import credit, credit_naively


@workflow.defn
class OneCredit:
    """One credit, by whichever activity."""

    @workflow.run
    async def run(self, activity_name: str) -> Credit:
        """Call the activity by its name; an effect activity is called like any other."""
        done: Credit = await workflow.execute_activity(
            activity_name,
            args=["cr_1", 5_000],
            result_type=Credit,
            schedule_to_close_timeout=timedelta(seconds=60),
            start_to_close_timeout=timedelta(seconds=30),
            heartbeat_timeout=timedelta(seconds=1),  # how the server notices that the worker is dead
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=100)),
        )
        return done


async def main(kind: str, address: str, dsn: str) -> None:
    """Serve, start the workflow or find it running, and wait for its end."""
    client = await Client.connect(address, plugins=[CorroboPlugin()])
    with PostgresLedger(dsn) as ledger, ThreadPoolExecutor() as threads:
        ledger.migrate()
        naive = activity.defn(name="credit_naively")(credit_naively)
        worker = Worker(
            client,
            task_queue=f"demo-{kind}",
            workflows=[OneCredit],
            activities=[naive, effect_activity(credit, ledger)],
            activity_executor=threads,
            max_cached_workflows=0,  # a fresh worker gets the workflow at once
        )
        async with worker:
            workflow_run = await client.start_workflow(
                OneCredit.run,
                "credit" if kind == "corrobo" else "credit_naively",
                id=f"one-credit-{kind}",
                task_queue=f"demo-{kind}",
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )
            await workflow_run.result()
            print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
