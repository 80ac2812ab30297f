"""The two kinds of workers: ``releases`` runs the workflow and the effect, ``decisions`` records what people say.

Each has a database role of its own, and only the second one's may write decisions.
"""

import asyncio
import sys

from temporalio.client import Client
from temporalio.worker import Worker

from corrobo_core import PostgresLedger
from corrobo_temporal import CorroboPlugin
from examples.approve_release.release import DECISIONS, ApprovedRelease, release


async def main(kind: str, address: str, database: str) -> None:
    """Serve until killed."""
    ledger = PostgresLedger(database)
    client = await Client.connect(address, plugins=[CorroboPlugin()])
    if kind == "decisions":
        worker = Worker(client, task_queue=DECISIONS, plugins=[CorroboPlugin(ledger, decides=[release])])
    else:
        worker = Worker(
            client,
            task_queue="releases",
            workflows=[ApprovedRelease],
            plugins=[CorroboPlugin(ledger, effects=[release])],
            max_cached_workflows=0,  # a fresh worker gets the workflow at once
        )
    async with worker:
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
