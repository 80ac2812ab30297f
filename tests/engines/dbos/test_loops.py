"""Effects run on whichever event loop or thread DBOS picks, all on one ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dbos import DBOS

from tests.engines.dbos.app import register
from tests.engines.dbos.conftest import World
from tests.support.dbos import dbos_config, running_dbos

EACH = 25


@pytest.fixture
def registry() -> Any:
    """An empty one, before and after."""
    DBOS.destroy(destroy_registry=True)
    yield
    DBOS.destroy(destroy_registry=True)


@pytest.mark.usefixtures("registry")
def test_dequeued_awaited_and_threaded_effects_share_a_ledger(world: World) -> None:
    """Dequeued async workflows run on DBOS's own event loop, awaited ones on the caller's, sync ones in threads."""
    loops: set[Any] = set()
    database = world.system_database
    with world.open_ledger() as ledger:
        workflows = register(ledger, world.http)

        @DBOS.workflow(name="where")
        async def where() -> None:
            loops.add(asyncio.get_running_loop())

        async def awaited() -> list[str]:
            async with ledger:
                await where()
                calls = (workflows["guarded_async"](f"awaited-{n}") for n in range(EACH))
                return [one for found in await asyncio.gather(*calls) for one in found]

        with running_dbos(dbos_config(database if "://" in database else Path(database))):
            DBOS.register_queue("effects", polling_interval_sec=0.1)
            enqueue: Callable[..., Any] = DBOS.enqueue_workflow
            dequeued = [enqueue("effects", workflows["guarded_async"], f"dequeued-{n}") for n in range(EACH)]
            threaded = [enqueue("effects", workflows["guarded"], f"threaded-{n}") for n in range(EACH)]
            enqueue("effects", where).get_result()
            results = asyncio.run(awaited())
            results += [one for handle in dequeued for one in handle.get_result()]
            results += [handle.get_result() for handle in threaded]

    assert len(loops) == 2
    assert sorted(results) == sorted(
        f"{kind}-{n}" for kind in ("awaited", "dequeued", "threaded") for n in range(EACH)
    )
    assert world.http.count() == 3 * EACH
