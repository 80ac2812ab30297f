"""Wall time of workflows with one effect ÷ the same with a plain activity or step."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from statistics import median
from uuid import uuid4

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from dbos import DBOS

    from corrobo_core import PostgresLedger
    from corrobo_dbos import effect_step
    from corrobo_temporal import CorroboPlugin, effect_activity
    from tests.bench.effects import empty, waiting
    from tests.bench.measuring import at_once, ratio
    from tests.support.dbos import dbos_config, running_dbos
    from tests.support.postgres import fresh_database
    from tests.support.temporal import running_temporal


@workflow.defn
class OneActivity:
    """One activity, by its name."""

    @workflow.run
    async def run(self, name: str, reference: str) -> None:
        """Call it."""
        await workflow.execute_activity(name, reference, schedule_to_close_timeout=timedelta(seconds=30))


@activity.defn
async def plain(reference: str) -> None:
    """What the effect does, without being one."""


def temporal(dsn: str) -> dict[str, float]:
    """100 workflows, 10 at once, in each round."""
    with running_temporal() as address:
        return asyncio.run(_temporal(address, dsn))


async def _temporal(address: str, dsn: str) -> dict[str, float]:
    client = await Client.connect(address, plugins=[CorroboPlugin()])
    async with PostgresLedger(dsn) as ledger:
        await ledger.migrate_async()
        activities = [plain, effect_activity(waiting(0), ledger, activity_name="effect")]
        async with Worker(client, task_queue="bench", workflows=[OneActivity], activities=activities):

            async def one(name: str) -> None:
                reference = uuid4().hex
                await client.execute_workflow(
                    OneActivity.run, args=[name, reference], id=reference, task_queue="bench"
                )

            found = await ratio(
                lambda: at_once(10, 100, lambda _: one("plain")),
                lambda: at_once(10, 100, lambda _: one("effect")),
            )
    return {"temporal_ratio": found}


def dbos(admin_dsn: str) -> dict[str, float]:
    """100 workflows one after the other in each round."""
    with (
        fresh_database(admin_dsn) as engine,
        fresh_database(admin_dsn) as effects,
        PostgresLedger(effects) as ledger,
    ):
        ledger.migrate()
        effect = effect_step(ledger)(empty)

        @DBOS.step()
        def plain_step(reference: str) -> None:
            pass

        @DBOS.workflow()
        def with_effect(reference: str) -> None:
            effect(reference)

        @DBOS.workflow()
        def with_step(reference: str) -> None:
            plain_step(reference)

        with running_dbos(dbos_config(engine)):
            ratios = []
            for number in range(8):
                times = []
                for run in (with_step, with_effect):
                    start = time.perf_counter()
                    for _ in range(100):
                        run(uuid4().hex)
                    times.append(time.perf_counter() - start)
                if number:  # the first round warms up
                    ratios.append(times[1] / times[0])
    return {"dbos_ratio": median(ratios)}
