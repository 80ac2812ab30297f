"""Reports about ledgers on PostgreSQL: connections, sessions, clocks and outages (C03 to C18)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import psycopg_pool
import pytest
import time_machine
from psycopg import sql

from corrobo_core import (
    AsyncEffectRunner,
    Attempt,
    Disposition,
    EffectRunner,
    LedgerUnavailable,
    Observation,
    Outcome,
    Reason,
    Verdict,
    effect,
)
from corrobo_core.ledgers.postgres import PostgresLedger
from examples.http_ledger import Credit, HttpLedger, slow_commit
from tests.reports.provider import Provider, effect_at, judge
from tests.support.credits import CreditEffect, HttpxCredits, seconds
from tests.support.ledgers import AnyLedger, ledger_at
from tests.support.postgres import running_postgres

POOL = 2
CALLERS = 8


@pytest.fixture
def database(postgres_dsn: str) -> str:
    """A migrated ledger in a database of its own: every other session in it is the ledger's."""
    PostgresLedger(postgres_dsn).migrate()
    return postgres_dsn


def sessions(dsn: str) -> list[tuple[str, bool]]:
    """State of each other session, and whether it is in a transaction."""
    with psycopg.connect(dsn) as admin:
        return admin.execute(
            "select state, xact_start is not null from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"
        ).fetchall()


# -- C03: the session that says "I live" is cut --------------------------------------------------------------


class HeldCredit:
    """A worker whose write is held back until it is let go, before or after the commit."""

    def __init__(self, http: HttpLedger, *, commits_first: bool, window: float) -> None:
        client = HttpxCredits(http)
        self.begun, self.go_on = threading.Event(), threading.Event()

        def send(reference: str, amount_cents: int) -> Credit:
            made = client.send(reference, amount_cents) if commits_first else None
            self.begun.set()
            assert self.go_on.wait(30)
            return made or client.send(reference, amount_cents)

        self.effect = CreditEffect(client, send=send, in_flight_window=seconds(window))


def cut_owner_session(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as admin:
        cut = admin.execute(
            "select pg_terminate_backend(pid, 5000) from pg_locks where locktype = 'advisory' and granted"
            " and database = (select oid from pg_database where datname = current_database())"
        ).fetchall()
    assert cut == [(True,)]


@pytest.mark.parametrize("commits_first", [True, False], ids=["written", "not yet written"])
def test_c03_a_worker_whose_session_was_cut_in_mid_execute_writes_once(
    commits_first: bool, http_ledger: HttpLedger, database: str, reference: str
) -> None:
    held = HeldCredit(http_ledger, commits_first=commits_first, window=1.5)
    with PostgresLedger(database) as first, ThreadPoolExecutor(1) as thread:
        running = thread.submit(held.effect.run, first, reference)
        assert held.begun.wait(10)
        cut_owner_session(database)
        with PostgresLedger(database) as second:
            credit = CreditEffect(HttpxCredits(http_ledger), in_flight_window=seconds(1.5))
            seen = credit.run(second, reference)
            assert seen.attempts[0].outcome is Outcome.UNRECORDED  # taken for dead
            expected = Disposition.COMPLETE if commits_first else Disposition.RETRY
            assert seen.disposition is expected
            held.go_on.set()
            reported = running.result()
            assert reported.disposition is seen.disposition  # what is stored; its own record was refused
            assert reported.attempts == seen.attempts
            assert credit.settle(second, reference).disposition is Disposition.COMPLETE
        # The first worker has a new session, and goes on working.
        assert CreditEffect(HttpxCredits(http_ledger)).run(first, f"{reference} next").effect
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 1)


# -- C04: as many effects as connections ---------------------------------------------------------------------


def test_c04_a_connection_for_each_operation_runs_out(database: str) -> None:
    with (
        psycopg_pool.ConnectionPool(database, min_size=POOL, max_size=POOL, timeout=0.3, open=True) as pool,
        pool.connection(),
        pool.connection(),
        pytest.raises(psycopg_pool.PoolTimeout),
        pool.connection(),
    ):
        pass


def test_c04_more_threads_than_connections_execute_at_once(database: str) -> None:
    provider, together = Provider(), threading.Barrier(CALLERS + 1)
    send = provider.send

    def when_all_are_here() -> object:
        together.wait(10)  # all inside their hooks
        together.wait(10)  # looked at
        return send()

    provider.send = when_all_are_here  # type: ignore[method-assign]
    provider.says = ["done"]
    do = effect_at(provider, in_flight_window=seconds(30))
    with PostgresLedger(database, pool_size=POOL) as ledger, ThreadPoolExecutor(CALLERS) as threads:
        runner = EffectRunner(ledger)
        running = [threads.submit(runner.run, do, f"op {number}") for number in range(CALLERS)]
        together.wait(10)
        found = sessions(database)
        assert len(found) <= POOL + 1  # and the owner's
        assert set(found) == {("idle", False)}
        together.wait(10)
        assert {future.result().disposition for future in running} == {Disposition.COMPLETE}
    assert provider.sends == CALLERS


async def test_c04_more_tasks_than_connections_execute_at_once(database: str) -> None:
    inside, go_on, sent = asyncio.Semaphore(0), asyncio.Event(), list[str]()

    @effect("test/async", identity=lambda name: name, in_flight_window=seconds(30))
    async def do(attempt: Attempt, name: str) -> str:
        inside.release()
        await go_on.wait()
        sent.append(name)
        return name

    @do.observe
    async def seen(attempt: Attempt, name: str) -> Observation[list[str]]:
        return Observation.of([one for one in sent if one == name], source="list", proves_absence=True)

    @seen.reconcile
    def judged(attempt: Attempt, found: list[str]) -> Verdict[str]:
        return judge(found)

    async with PostgresLedger(database, pool_size=POOL) as ledger:
        runner = AsyncEffectRunner(ledger)
        running = [asyncio.create_task(runner.run(do, f"op {number}")) for number in range(CALLERS)]
        for _ in range(CALLERS):
            await asyncio.wait_for(inside.acquire(), 10)
        found = await asyncio.to_thread(sessions, database)
        assert len(found) <= POOL + 1
        assert set(found) == {("idle", False)}
        go_on.set()
        results = await asyncio.gather(*running)
    assert {result.disposition for result in results} == {Disposition.COMPLETE}
    assert len(sent) == CALLERS


def test_c04_waiting_for_a_connection_ends_with_a_named_error(database: str) -> None:
    provider = Provider()
    do = effect_at(provider, in_flight_window=seconds(30))
    with (
        PostgresLedger(database, pool_size=1, unavailable_after=seconds(0.6)) as ledger,
        psycopg.connect(database) as admin,
        ThreadPoolExecutor(3) as threads,
    ):
        tables = admin.execute("select tablename from pg_tables where schemaname = 'corrobo'").fetchall()
        for (table,) in tables:
            admin.execute(sql.SQL("lock table {}").format(sql.Identifier("corrobo", table)))
        runner, began = EffectRunner(ledger), time.monotonic()
        running = [threads.submit(runner.run, do, f"op {number}") for number in range(3)]
        for future in running:
            with pytest.raises(LedgerUnavailable):
                future.result()
        assert time.monotonic() - began < 10
        admin.rollback()
        assert provider.sends == 0
        assert runner.run(do, "another").disposition is Disposition.COMPLETE
    assert provider.sends == 1


# -- C08: a server that ends idle transactions ---------------------------------------------------------------


@pytest.fixture
def impatient_database(database: str) -> str:
    with psycopg.connect(database, autocommit=True) as admin:
        name = sql.Identifier(admin.info.dbname)
        admin.execute(sql.SQL("alter database {} set idle_in_transaction_session_timeout = '500ms'").format(name))
    return database


def test_c08_a_transaction_around_the_provider_is_ended_by_the_server(impatient_database: str) -> None:
    with psycopg.connect(impatient_database) as connection:
        connection.execute("select 1")
        time.sleep(1)
        with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
            connection.execute("select 1")


def test_c08_no_session_is_in_a_transaction_while_the_provider_works(impatient_database: str) -> None:
    provider, states = Provider(), list[tuple[str, bool]]()
    send = provider.send

    def slowly() -> object:
        for _ in range(4):
            time.sleep(0.3)
            states.extend(sessions(impatient_database))
        return send()

    provider.send = slowly  # type: ignore[method-assign]
    do = effect_at(provider, in_flight_window=seconds(30))
    with PostgresLedger(impatient_database) as ledger:
        result = EffectRunner(ledger).run(do, "op")
    assert (result.disposition, provider.sends) == (Disposition.COMPLETE, 1)
    assert set(states) == {("idle", False)}


# -- C12: a worker whose clock is fast -----------------------------------------------------------------------


class ByWorkersClock:
    """The mutant: a ledger whose readings are the worker's own clock."""

    def __init__(self, ledger: AnyLedger) -> None:
        self._ledger = ledger

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def perform(self, command: Any) -> Any:
        reply = self._ledger.perform(command)
        if hasattr(reply, "reading"):
            reply = replace(reply, reading=replace(reply.reading, now=datetime.now(UTC)))
        return reply


@contextmanager
def fast_clock() -> Iterator[None]:
    with time_machine.travel(datetime.now(UTC) + timedelta(seconds=90), tick=True):
        yield


def retried_by_a_fast_worker(
    http: HttpLedger, address: str, reference: str, through: Callable[[AnyLedger], Any]
) -> int:
    """The request lands within its window; another worker, 90 s ahead, comes before it has landed."""
    http.fail_next(slow_commit(0.7))
    credit = CreditEffect(HttpxCredits(http, timeout=0.1), in_flight_window=seconds(1.4))
    with ledger_at(address) as ledger:
        first = credit.run(ledger, reference)
    assert (first.disposition, first.reason) == (Disposition.RETRY, Reason.SETTLING)
    with fast_clock(), ledger_at(address) as ledger:
        assert datetime.now(UTC) > first.now + seconds(80)
        fast = through(ledger)
        again = credit.run(fast, reference)
        if fast is ledger:
            assert (again.disposition, again.retry_at) == (first.disposition, first.retry_at)
            assert abs(again.now - first.now) < seconds(10)
        assert credit.settle(fast, reference).disposition in (Disposition.COMPLETE, Disposition.REPLAN)
    http.wait_for_count(1, reference)
    time.sleep(0.8 if fast is not ledger else 0)
    return http.count(reference)


def test_c12_a_fast_clock_ends_nobodys_window(
    http_ledger: HttpLedger, postgres_address: str, reference: str
) -> None:
    assert retried_by_a_fast_worker(http_ledger, postgres_address, reference, lambda ledger: ledger) == 1


def test_c12_judged_by_the_workers_clock_it_is_written_twice(
    http_ledger: HttpLedger, postgres_address: str, reference: str
) -> None:
    assert retried_by_a_fast_worker(http_ledger, postgres_address, reference, ByWorkersClock) == 2


def test_c12_a_fast_worker_reserves_by_the_databases_clock(
    http_ledger: HttpLedger, postgres_address: str, reference: str
) -> None:
    credit = CreditEffect(HttpxCredits(http_ledger), in_flight_window=seconds(5))
    with fast_clock(), ledger_at(postgres_address) as ledger:
        result = credit.run(ledger, reference)
    started = result.attempts[0].started
    assert started is not None
    assert abs(started - datetime.now(UTC)) < seconds(30)


# -- C18: the database is gone when the outcome is to be recorded --------------------------------------------


def test_c18_an_outage_after_the_write_loses_nothing(http_ledger: HttpLedger, reference: str) -> None:
    written, go_on = threading.Barrier(3), threading.Event()
    client = HttpxCredits(http_ledger)

    def send(about: str, amount_cents: int) -> Credit:
        made = client.send(about, amount_cents)
        written.wait(10)
        assert go_on.wait(30)
        return made

    credit = CreditEffect(client, send=send, in_flight_window=seconds(60))
    with running_postgres() as server:
        PostgresLedger(server.dsn()).migrate()
        with (
            PostgresLedger(server.dsn()) as patient,
            PostgresLedger(server.dsn(), unavailable_after=seconds(0.5)) as impatient,
            ThreadPoolExecutor(2) as threads,
        ):
            waiting = threads.submit(credit.run, patient, f"{reference} a")
            giving_up = threads.submit(credit.run, impatient, f"{reference} b")
            written.wait(10)
            server.stop()
            back = threading.Timer(3, server.start)
            back.start()
            go_on.set()
            with pytest.raises(LedgerUnavailable) as caught:
                giving_up.result()
            assert caught.value.retryable
            assert not waiting.done()
            assert waiting.result().disposition is Disposition.COMPLETE
            back.join()
            later = credit.run(impatient, f"{reference} b")
            assert later.disposition is Disposition.COMPLETE
            assert [attempt.outcome for attempt in later.attempts] == [Outcome.UNRECORDED]
    for about in (f"{reference} a", f"{reference} b"):
        counts = http_ledger.counts(about)
        assert (counts.credits, counts.write_requests) == (1, 1)
