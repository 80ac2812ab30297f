"""A ledger closes on an event loop whose own threads are gone: ``DBOS.destroy()`` shuts them down."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from corrobo_core import PostgresLedger, SqliteLedger


async def end_the_loop_s_threads() -> None:
    threads = ThreadPoolExecutor(1)
    asyncio.get_running_loop().set_default_executor(threads)
    threads.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        await asyncio.to_thread(print)


async def test_a_sqlite_ledger_closes_after_the_loop_s_threads(tmp_path: Path) -> None:
    async with SqliteLedger(tmp_path / "effects.db") as ledger:
        ledger.migrate()
        await end_the_loop_s_threads()


async def test_a_postgres_ledger_closes_after_the_loop_s_threads(postgres_dsn: str) -> None:
    async with PostgresLedger(postgres_dsn) as ledger:
        ledger.migrate()
        await end_the_loop_s_threads()
