"""An activity worker in a process of its own: ``worker.py ADDRESS TASK_QUEUE SQLITE_FILE``."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

from temporalio.client import Client
from temporalio.worker import Worker

from corrobo_core import SqliteLedger
from corrobo_temporal import effect_activity
from tests.engines.temporal.effects import credit, credit_async, naive, naive_async


async def main(address: str, task_queue: str, file: str) -> None:
    client = await Client.connect(address)
    with SqliteLedger(file) as ledger, ThreadPoolExecutor(8) as threads:
        ledger.migrate()
        worker = Worker(
            client,
            task_queue=task_queue,
            activities=[naive, naive_async, effect_activity(credit, ledger), effect_activity(credit_async, ledger)],
            activity_executor=threads,
        )
        async with worker:
            print("ready", flush=True)
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
