"""What one effect costs on PostgreSQL."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import Awaitable, Callable

import psycopg

from corrobo_core import AsyncEffectRunner, EffectRunner, PostgresLedger
from tests.bench.effects import empty, waiting
from tests.bench.measuring import ROUNDS, at_once, ratio
from tests.bench.peers import POOL, nine_statements, two_statements
from tests.support.postgres import PostgresServer, fresh_database, running_postgres

_numbers = itertools.count()


def fresh_reference() -> str:
    """A reference that was never used, as long as a UUID is not."""
    return f"op-{next(_numbers):09d}"


def statements_and_commits() -> dict[str, float]:
    """For a first attempt: what the server itself logs and counts."""
    effects = 50
    with running_postgres(log_statement="all", log_min_messages="log") as server:
        with PostgresLedger(server.dsn()) as ledger:
            ledger.migrate()
        counts = []
        for count in (1, 1 + effects):  # opening and closing the ledger costs statements of its own
            before = _statements(server), _commits(server)
            with PostgresLedger(server.dsn()) as ledger:
                for _ in range(count):
                    EffectRunner(ledger).run(empty, fresh_reference()).unwrap()
            after = _statements(server), _commits(server)
            counts.append((after[0] - before[0], after[1] - before[1]))
    return {
        "statements_per_effect": (counts[1][0] - counts[0][0]) / effects,
        "commits_per_effect": (counts[1][1] - counts[0][1]) / effects,
    }


def _statements(server: PostgresServer) -> int:
    log = server.log_text()
    return log.count("LOG:  execute ") + log.count("LOG:  statement: ")


def _commits(server: PostgresServer) -> int:
    time.sleep(0.2)  # a session that has ended reports its counts at once
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        row = connection.execute(
            "select xact_commit from pg_stat_database where datname = current_database()"
        ).fetchone()
    assert row is not None
    commits: int = row[0]
    return commits


async def held_while_hooks_run(dsn: str) -> dict[str, float]:
    """Sessions that are busy, in a transaction or hold a lock, seen from outside while 200 hooks run."""
    async with PostgresLedger(dsn) as ledger:
        await ledger.migrate_async()
        runner, effect = AsyncEffectRunner(ledger), waiting(1.0)
        running = asyncio.gather(*(runner.run(effect, fresh_reference()) for _ in range(200)))
        await asyncio.sleep(0.6)
        held = await asyncio.to_thread(_held, dsn)
        await running
    return {"held_connections": held}


def _held(dsn: str) -> float:
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(
            """
            select count(*) from pg_stat_activity a
            where a.pid <> pg_backend_pid() and a.backend_type = 'client backend'
              and a.datname = current_database()
              and (a.state <> 'idle'
                   or exists (select from pg_locks l where l.pid = a.pid and l.locktype <> 'advisory'))
            """
        ).fetchone()
        locks = connection.execute("select count(*) from pg_locks where locktype = 'advisory'").fetchone()
    assert row is not None
    assert locks is not None
    busy, advisory = int(row[0]), int(locks[0])
    return float(busy + max(0, advisory - 1))  # the owner's lock is one for each process


async def speed(dsn: str) -> dict[str, float]:
    """Our operations per second ÷ those of the same statements on bare psycopg, and of nine statements."""
    found: dict[str, float] = {}
    async with (
        PostgresLedger(dsn, pool_size=POOL) as ledger,
        two_statements(dsn) as two,
        nine_statements(dsn) as nine,
    ):
        await ledger.migrate_async()
        runner = AsyncEffectRunner(ledger)

        def ours(count: int, total: int, provider: float) -> Callable[[], Awaitable[None]]:
            effect = waiting(provider)

            async def one(_: int) -> None:
                (await runner.run(effect, fresh_reference())).unwrap()

            return lambda: at_once(count, total, one)

        def theirs(
            run: Callable[[str, float], Awaitable[None]], count: int, total: int, provider: float
        ) -> Callable[[], Awaitable[None]]:
            return lambda: at_once(count, total, lambda _: run(fresh_reference(), provider))

        found["vs_two_statements_1"] = await ratio(ours(1, 300, 0), theirs(two.run, 1, 300, 0))
        found["vs_two_statements_32"] = await ratio(ours(32, 1500, 0), theirs(two.run, 32, 1500, 0))
        found["vs_two_statements_300x200ms"] = await ratio(ours(300, 1500, 0.2), theirs(two.run, 300, 1500, 0.2), 5)
        # Nine statements manage a few dozen a second: a smaller number, and seconds per operation.
        per_op_ours = await _per_operation(ours(300, 1500, 0.2), 1500)
        per_op_nine = await _per_operation(theirs(nine.run, 300, 300, 0.2), 300)
        found["vs_nine_statements_300x200ms"] = per_op_nine / per_op_ours
    return found


async def _per_operation(work: Callable[[], Awaitable[None]], total: int) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        await work()
        times.append((time.perf_counter() - start) / total)
    return statistics.median(times)


FILL = """
insert into {schema}.operation (ns, id, type, fp, intent, version, owner, nonce, started, doc)
select 'filler', 'op-' || n, o.type, o.fp, o.intent, o.version, null, o.nonce, o.started, o.doc
from generate_series(1, %s) n, (select * from {schema}.operation limit 1) o
"""


def growth(admin_dsn: str) -> dict[str, float]:
    """p50 of one effect with 1,000,000 operations stored ÷ p50 with 1,000, in turn."""
    with fresh_database(admin_dsn) as small, fresh_database(admin_dsn) as large:
        ledgers = []
        for dsn, stored in ((small, 1_000), (large, 1_000_000)):
            ledger = PostgresLedger(dsn)
            ledger.migrate()
            EffectRunner(ledger).run(empty, fresh_reference()).unwrap()
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute(FILL.format(schema='"corrobo"').encode(), (stored,))
                connection.execute("vacuum analyze")
                connection.execute("checkpoint")
            ledgers.append(ledger)
        ratios = []
        for number in range(ROUNDS + 1):
            few, many = (_p50(ledger) for ledger in ledgers)
            if number:  # the first round warms up
                ratios.append(many / few)
        for ledger in ledgers:
            ledger.close()
    return {"growth_1k_to_1m": statistics.median(ratios)}


def _p50(ledger: PostgresLedger, effects: int = 200) -> float:
    runner, times = EffectRunner(ledger), []
    for _ in range(effects):
        start = time.perf_counter()
        runner.run(empty, fresh_reference())
        times.append(time.perf_counter() - start)
    return statistics.median(times)
