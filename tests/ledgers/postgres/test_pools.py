"""Connections: how many, whose, and what becomes of them at the end (C6, C11, report C04)."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from corrobo_core.commands import Load, Open, Record, Written
from corrobo_core.errors import LedgerUnavailable
from corrobo_core.ledgers.postgres import PostgresLedger
from corrobo_core.testing._operations import recorded, reserving, unsent
from tests.support.processes import child

WORKER = "tests.ledgers.postgres.worker"
Admin = psycopg.Connection[tuple[Any, ...]]


def sessions(admin: Admin) -> int:
    (count,) = admin.execute(
        "select count(*) from pg_stat_activity where application_name = 'corrobo'"
    ).fetchone() or (None,)
    assert isinstance(count, int)
    return count


def becomes(admin: Admin, wanted: int) -> None:
    until = time.monotonic() + 5
    while (count := sessions(admin)) != wanted:
        assert time.monotonic() < until, f"{count} sessions, not {wanted}"
        time.sleep(0.01)


# -- lending (C6, report C04) -----------------------------------------------------------------------------------


def test_report_C04_more_effects_than_connections_all_finish(
    ledger: PostgresLedger, admin: Admin, postgres_dsn: str
) -> None:
    """40 at once with a pool of 4, while their provider takes a second: nothing is held meanwhile."""
    provider = asyncio.Semaphore(0)

    async def effect(small: PostgresLedger) -> bool:
        opened = await small.perform_async(Open(reserving(unsent())))
        await provider.acquire()
        reply = await small.perform_async(Record(recorded(opened.operation)))
        return isinstance(reply, Written)

    async def all_of_them() -> tuple[int, list[bool], float]:
        async with PostgresLedger(postgres_dsn, pool_size=4) as small:
            tasks = [asyncio.create_task(effect(small)) for _ in range(40)]
            await asyncio.to_thread(_wait_until_opened, admin, 40)
            (busy,) = await asyncio.to_thread(_busy, admin)
            began = time.monotonic()
            for _ in tasks:
                provider.release()
            return busy, await asyncio.gather(*tasks), time.monotonic() - began

    busy, done, took = asyncio.run(all_of_them())
    assert busy == 0
    assert done == [True] * 40
    assert took < 20
    becomes(admin, 0)


def _wait_until_opened(admin: Admin, wanted: int) -> None:
    while admin.execute("select count(*) from corrobo.operation").fetchone() != (wanted,):
        time.sleep(0.01)


def _busy(admin: Admin) -> tuple[Any, ...]:
    return admin.execute(
        "select count(*) from pg_stat_activity where application_name = 'corrobo' and state <> 'idle'"
    ).fetchone() or (None,)


@pytest.mark.parametrize("kind", ["threads", "tasks"])
def test_report_C04_waiting_for_a_connection_ends_with_a_named_error(
    ledger: PostgresLedger, admin: Admin, postgres_dsn: str, kind: str
) -> None:
    reserved = ledger.perform(Open(reserving(unsent()))).operation
    bound = timedelta(seconds=0.7)
    small = PostgresLedger(postgres_dsn, pool_size=1, unavailable_after=bound)
    with small, admin.transaction():
        admin.execute("select from corrobo.operation for update")  # keeps the one connection busy
        began = time.monotonic()
        failures = (
            _fail_in_threads(small, reserved) if kind == "threads" else asyncio.run(_fail_in_tasks(small, reserved))
        )
        assert time.monotonic() - began < 10
    assert all(isinstance(failure, LedgerUnavailable) for failure in failures)
    assert any("pool_size" in str(failure) for failure in failures)


def _fail_in_threads(small: PostgresLedger, reserved: Any) -> list[BaseException]:
    failures: list[BaseException] = []

    def record() -> None:
        try:
            small.perform(Record(recorded(reserved)))
        except LedgerUnavailable as error:
            failures.append(error)

    threads = [threading.Thread(target=record) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failures) == 4
    return failures


async def _fail_in_tasks(small: PostgresLedger, reserved: Any) -> list[BaseException | Any]:
    async with small:
        tasks = [small.perform_async(Record(recorded(reserved))) for _ in range(4)]
        return await asyncio.gather(*tasks, return_exceptions=True)


def test_a_pool_opens_no_more_than_it_needs(ledger: PostgresLedger, admin: Admin) -> None:
    for _ in range(20):
        ledger.perform(Load(unsent().key))
    becomes(admin, 2)  # the owner's, and one

    async def use() -> None:
        async with ledger:
            for _ in range(20):
                await ledger.perform_async(Load(unsent().key))
            becomes(admin, 3)
            await asyncio.gather(*(ledger.perform_async(Load(unsent().key)) for _ in range(100)))
            assert sessions(admin) <= 2 + 16
        becomes(admin, 2)

    asyncio.run(use())


# -- sharing ----------------------------------------------------------------------------------------------------


def test_one_ledger_serves_threads_and_loops_at_once(ledger: PostgresLedger, admin: Admin) -> None:
    failures: list[BaseException] = []

    def in_thread() -> None:
        for _ in range(30):
            assert ledger.perform(Open(reserving(unsent()))).mine

    async def on_loop() -> None:
        async with ledger:
            replies = await asyncio.gather(*(ledger.perform_async(Open(reserving(unsent()))) for _ in range(30)))
            assert all(reply.mine for reply in replies)

    def guarded(work: Any) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    work = [in_thread, lambda: asyncio.run(on_loop())] * 3
    threads = [threading.Thread(target=guarded, args=(job,)) for job in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert admin.execute("select count(distinct owner) from corrobo.operation").fetchone() == (1,)


def test_loops_that_come_and_go_leave_no_connections(ledger: PostgresLedger, admin: Admin) -> None:
    async def use() -> None:  # not as documented: without `async with`
        await asyncio.gather(*(ledger.perform_async(Load(unsent().key)) for _ in range(5)))

    for _ in range(20):
        asyncio.run(use())
    assert sessions(admin) <= 1 + 5
    ledger.close()
    becomes(admin, 0)


def test_a_closed_ledger_opens_again(ledger: PostgresLedger, admin: Admin) -> None:
    first = ledger.perform(Open(reserving(unsent()))).operation.owner
    ledger.close()
    becomes(admin, 0)
    assert ledger.perform(Open(reserving(unsent()))).operation.owner != first


def test_constructing_does_no_io() -> None:
    ledger = PostgresLedger("postgresql://nobody@/nothing?host=/nowhere")
    assert "nothing" in repr(ledger)


# -- endings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["sync", "async", "both"])
def test_a_process_that_leaves_its_ledger_open_ends_at_once(
    ledger: PostgresLedger, postgres_dsn: str, how: str
) -> None:
    with child(WORKER, "left_open", postgres_dsn, how) as process:
        process.wait_for("ending")
        assert process.wait(timeout=5) == 0
        assert "Error" not in process.output


def test_a_ledger_that_was_closed_leaves_no_warning(ledger: PostgresLedger, postgres_dsn: str) -> None:
    with child(WORKER, "closed", postgres_dsn, env={"PYTHONWARNINGS": "error"}) as process:
        process.wait_for("ending")
        assert process.wait(timeout=5) == 0
        assert process.lines == ["ending null"]
