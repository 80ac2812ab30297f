"""A process that uses a PostgreSQL ledger, for the tests that race, kill and fork it.

``python -m tests.ledgers.postgres.worker ACTION ARGUMENT ...``; it prints one marked line for each step.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import Callable

import psycopg

from corrobo_core.commands import Load, Open
from corrobo_core.ledgers.postgres import PostgresLedger
from corrobo_core.testing._operations import pass_of, reserving, unsent


def say(marker: str, value: object = None) -> None:
    """One line for the test."""
    print(marker, json.dumps(value), flush=True)


# -- races --------------------------------------------------------------------------------------------------


def race(dsn: str, count: str) -> None:
    """Open ``count`` ids from the moment that the test lets go of lock 1; say which are mine."""
    with PostgresLedger(dsn) as ledger:
        ledger.perform(Load(unsent().key))
        _wait_for_the_start(dsn)
        mine = [n for n in range(int(count)) if ledger.perform(Open(reserving(unsent(f"raced {n}")))).mine]
    say("mine", mine)


def race_naively(dsn: str, count: str) -> None:
    """The same without the ledger's statement: look first, then insert."""
    with psycopg.connect(dsn, autocommit=True) as session:
        _wait_for_the_start(dsn)
        mine = []
        for n in range(int(count)):
            if not session.execute("select 1 from naive where id = %s", (n,)).fetchall():
                session.execute("insert into naive values (%s)", (n,))
                mine.append(n)
    say("mine", mine)


def _wait_for_the_start(dsn: str, lock: int = 1) -> None:
    with psycopg.connect(dsn, autocommit=True) as session:
        say("ready")
        session.execute("select pg_advisory_lock_shared(%s::int)", (lock,))


# -- migrations -----------------------------------------------------------------------------------------------


def migrate(dsn: str, rounds: str) -> None:
    """Migrate the database again and again, each time from the moment that the test lets go of its lock."""
    for n in range(int(rounds)):
        _wait_for_the_start(dsn, lock=1 + n % 2)
        PostgresLedger(dsn).migrate()
        with PostgresLedger(dsn) as ledger:
            say("opened", ledger.perform(Open(reserving(unsent(f"by {os.getpid()}")))).mine)


def migrate_naively(dsn: str, rounds: str) -> None:
    """The same with nothing but "if not exists"."""
    for n in range(int(rounds)):
        _wait_for_the_start(dsn, lock=1 + n % 2)
        with psycopg.connect(dsn, autocommit=True) as session:
            try:
                session.execute("create schema if not exists naive")
                session.execute("create table if not exists naive.version (version int primary key)")
                if not session.execute("select from naive.version").fetchall():
                    session.execute("insert into naive.version values (1)")
                say("opened", True)
            except psycopg.Error as error:
                say("opened", error.sqlstate)


# -- holding an attempt ---------------------------------------------------------------------------------------


def hold(dsn: str, owner_dsn: str, operation_id: str) -> None:
    """Reserve an attempt, and run until killed."""
    ledger = PostgresLedger(dsn, owner_dsn=owner_dsn)
    _reserve(ledger, operation_id)
    signal.pause()


def hold_with_child(dsn: str, operation_id: str, forgetful: str) -> None:
    """Reserve an attempt, and fork a child that outlives this process; ``forgetful``: it keeps what it inherits."""
    ledger = PostgresLedger(dsn)
    _reserve(ledger, operation_id)
    if forgetful == "yes":
        ledger._process.owner.after_fork_in_child = lambda: None  # type: ignore[method-assign]
    if os.fork() == 0:
        say("forked")
    signal.pause()


def _reserve(ledger: PostgresLedger, operation_id: str) -> None:
    operation = reserving(unsent(operation_id))
    ledger.pass_started(pass_of(operation))
    opened = ledger.perform(Open(operation))
    say("reserved", [opened.mine, opened.holder.value, opened.operation.owner])


# -- forks ----------------------------------------------------------------------------------------------------


def fork(dsn: str) -> None:
    """A child that uses the ledger, closes it and ends leaves its parent's attempt, lock and connections alone."""
    ledger = PostgresLedger(dsn)
    _reserve(ledger, "the parent's")
    pid = os.fork()
    if pid == 0:
        parents = ledger.perform(Load(unsent("the parent's").key))
        own = ledger.perform(Open(reserving(unsent("the child's"))))
        say("child", [parents.holder.value, own.mine, own.operation.owner])
        ledger.close()
        gc.collect()
        sys.exit(0)  # with all the clean-up of an ordinary end
    assert os.waitpid(pid, 0)[1] == 0
    again = ledger.perform(Load(unsent("the parent's").key))
    child = ledger.perform(Load(unsent("the child's").key))
    assert again.operation is not None
    say("parent", [again.holder.value, again.operation.owner, child.holder.value])
    ledger.close()


def fork_inside_a_loop(dsn: str) -> None:
    """A process with an event loop forks in between; the child runs a loop of its own."""

    async def reserve(ledger: PostgresLedger, operation_id: str) -> bool:
        return (await ledger.perform_async(Open(reserving(unsent(operation_id))))).mine

    async def parent(ledger: PostgresLedger) -> None:
        async with ledger:
            await asyncio.gather(*(reserve(ledger, f"before {n}") for n in range(8)))
            pid = os.fork()
            if pid == 0:
                # The loop was copied too. It cannot be used, and must not be touched: see the child below.
                os._exit(_in_own_thread(lambda: asyncio.run(_child(ledger))))
            assert os.waitpid(pid, 0)[1] == 0  # noqa: ASYNC222
            mine = await asyncio.gather(*(reserve(ledger, f"after {n}") for n in range(8)))
            say("parent", mine)

    async def _child(ledger: PostgresLedger) -> None:
        async with ledger:
            say("child", await asyncio.gather(*(reserve(ledger, f"child {n}") for n in range(8))))

    asyncio.run(parent(PostgresLedger(dsn)))


def _in_own_thread(work: Callable[[], object]) -> int:
    import threading

    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    say("failed", [repr(error) for error in failed])
    return len(failed)


# -- endings --------------------------------------------------------------------------------------------------


def left_open(dsn: str, how: str) -> None:
    """End without closing the ledger."""
    ledger = PostgresLedger(dsn)

    async def use() -> None:
        await asyncio.gather(*(ledger.perform_async(Load(unsent().key)) for _ in range(20)))

    if how in ("sync", "both"):
        ledger.perform(Load(unsent().key))
    if how in ("async", "both"):
        asyncio.run(use())
    say("ending")


def closed(dsn: str) -> None:
    """Use and close ledgers in every way; nothing may be left."""

    async def use(ledger: PostgresLedger) -> None:
        async with ledger:
            await asyncio.gather(*(ledger.perform_async(Load(unsent().key)) for _ in range(20)))

    with PostgresLedger(dsn) as ledger:
        ledger.perform(Load(unsent().key))
    for _ in range(3):
        asyncio.run(use(ledger))
    with ledger:
        ledger.perform(Load(unsent().key))
        asyncio.run(use(ledger))
    del ledger
    gc.collect()
    say("ending")


ACTIONS: dict[str, Callable[..., None]] = {
    action.__name__: action
    for action in (
        race,
        race_naively,
        migrate,
        migrate_naively,
        hold,
        hold_with_child,
        fork,
        fork_inside_a_loop,
        left_open,
        closed,
    )
}

if __name__ == "__main__":
    ACTIONS[sys.argv[1]](*sys.argv[2:])
