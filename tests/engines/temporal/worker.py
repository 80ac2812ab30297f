"""An activity worker in a process of its own: ``worker.py ADDRESS TASK_QUEUE SQLITE_FILE``."""

import asyncio
import sys
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import Worker

from corrobo_core import SqliteLedger
from corrobo_temporal import CorroboPlugin
from tests.engines.temporal.effects import ALL, naive, naive_async


async def main(address: str, task_queue: str, file: str) -> None:
    client = await Client.connect(address)
    ledger = SqliteLedger(file)
    ledger.migrate()
    plugin = CorroboPlugin(ledger, effects=ALL)
    worker = Worker(
        client,
        task_queue=task_queue,
        activities=[naive, naive_async],
        plugins=[plugin],
        max_heartbeat_throttle_interval=timedelta(milliseconds=100),  # room for a busy machine
    )
    async with worker:
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
