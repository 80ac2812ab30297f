"""Real processes that want the same thing at once: operations (C1), and the schema (C12)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql

from corrobo_core.commands import Load, Open
from corrobo_core.errors import LedgerError, LedgerNotMigratedError, LedgerTooNewError
from corrobo_core.ledgers._shared import migrations
from corrobo_core.ledgers.postgres import PostgresLedger
from corrobo_core.testing._operations import reserving, unsent
from tests.support.processes import Child, child

WORKER = "tests.ledgers.postgres.worker"
Admin = psycopg.Connection[tuple[Any, ...]]


def said(process: Child, marker: str) -> Any:
    return json.loads(process.wait_for(marker, timeout=60).partition(marker)[2])


@contextmanager
def processes(count: int, action: str, *arguments: str) -> Iterator[list[Child]]:
    with ExitStack() as running:
        yield [running.enter_context(child(WORKER, action, *arguments)) for _ in range(count)]


class Start:
    """Lets processes that are ready go, all at the same moment; they wait for locks 1 and 2 in turn."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._rounds = 0
        admin.execute("select pg_advisory_lock(1::int), pg_advisory_lock(2::int)")

    def go(self, racers: list[Child]) -> None:
        for racer in racers:
            racer.wait_for("ready", timeout=60)
        self._admin.execute("select pg_advisory_unlock(%s::int)", (1 + self._rounds % 2,))

    def release(self) -> None:
        """Let go of both."""
        self._admin.execute("select pg_advisory_unlock_all()")

    def hold(self) -> None:
        """Once all have run: those of the next round wait for the other lock."""
        self._admin.execute("select pg_advisory_lock(%s::int)", (1 + self._rounds % 2,))
        self._rounds += 1


# -- operations (C1) ------------------------------------------------------------------------------------------


def _race(action: str, admin: Admin, dsn: str) -> Counter[int]:
    start = Start(admin)
    with processes(2, action, dsn, "200") as racers:
        start.go(racers)
        mine = Counter(n for racer in racers for n in said(racer, "mine"))
    start.release()
    return mine


def test_C1_of_two_processes_one_opens_each_of_200_ids(
    ledger: PostgresLedger, admin: Admin, postgres_dsn: str
) -> None:
    assert _race("race", admin, postgres_dsn) == Counter(range(200))
    assert ledger.perform(Load(unsent("raced 0").key)).operation is not None
    assert admin.execute("select count(*), min(version), max(version) from corrobo.operation").fetchone() == (
        200,
        1,
        1,
    )


def test_C1_naive_twin_looking_first_opens_some_ids_twice(admin: Admin, postgres_dsn: str) -> None:
    admin.execute("create table naive (id int)")
    for _ in range(5):
        if any(count > 1 for count in _race("race_naively", admin, postgres_dsn).values()):
            return
        admin.execute("truncate naive")
    pytest.fail("the race was never close: the test above shows nothing")


# -- the schema (C12, report C06) -----------------------------------------------------------------------------

ROUNDS, MIGRATING = 50, 8


def _migrate_at_once(admin: Admin, dsn: str, action: str, schema: str, rounds: int) -> Iterator[list[Any]]:
    """What each process said, round by round; each begins with an empty database."""
    start = Start(admin)
    with processes(MIGRATING, action, dsn, str(rounds)) as racers:
        for _ in range(rounds):
            start.go(racers)
            yield [said(racer, "opened") for racer in racers]
            start.hold()
            admin.execute(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(schema)))


def test_C12_report_C06_eight_processes_migrate_an_empty_database_50_times(admin: Admin, postgres_dsn: str) -> None:
    newest, rounds = len(migrations("postgres")), 0
    for answers in _migrate_at_once(admin, postgres_dsn, "migrate", "corrobo", ROUNDS):
        assert answers == [True] * MIGRATING
        assert admin.execute("select count(*), min(version) from corrobo.ledger").fetchone() == (1, newest)
        assert admin.execute("select count(*) from corrobo.operation").fetchone() == (MIGRATING,)
        rounds += 1
    assert rounds == ROUNDS


def test_C12_naive_twin_if_not_exists_fails_in_the_same_race(admin: Admin, postgres_dsn: str) -> None:
    rounds = _migrate_at_once(admin, postgres_dsn, "migrate_naively", "naive", 10)
    failed = {answer for answers in rounds for answer in answers}
    assert failed & {"23505", "42P06", "42P07", "XX000"}, f"the race was never close: {failed}"


def test_C12_migrating_again_keeps_the_ledgers_id(ledger: PostgresLedger, postgres_dsn: str) -> None:
    key = unsent().key
    before = ledger.idempotency_key(key)
    for _ in range(2):
        PostgresLedger(postgres_dsn).migrate()
    with PostgresLedger(postgres_dsn) as other:
        assert other.idempotency_key(key) == before


async def test_C12_migrating_from_an_event_loop(postgres_dsn: str) -> None:
    async with PostgresLedger(postgres_dsn) as ledger:
        await ledger.migrate_async()
        assert (await ledger.perform_async(Open(reserving(unsent())))).mine


def test_C12_a_missing_schema_names_the_call(postgres_dsn: str) -> None:
    with (
        PostgresLedger(postgres_dsn) as ledger,
        pytest.raises(LedgerNotMigratedError, match=r"migrate\(\)") as missing,
    ):
        ledger.perform(Load(unsent().key))
    assert not missing.value.retryable


def test_C12_a_schema_that_was_dropped_meanwhile_names_the_call(ledger: PostgresLedger, admin: Admin) -> None:
    ledger.perform(Load(unsent().key))
    admin.execute("drop schema corrobo cascade")
    with pytest.raises(LedgerNotMigratedError, match=r"migrate\(\)"):
        ledger.perform(Open(reserving(unsent())))
    ledger.migrate()
    assert ledger.perform(Open(reserving(unsent()))).mine


def test_C12_an_older_schema_names_the_call_and_a_newer_one_the_upgrade(
    ledger: PostgresLedger, admin: Admin, postgres_dsn: str
) -> None:
    for version, error, text in ((0, LedgerNotMigratedError, r"migrate\(\)"), (99, LedgerTooNewError, "upgrade")):
        admin.execute("update corrobo.ledger set version = %s", (version,))
        with pytest.raises(error, match=text):
            PostgresLedger(postgres_dsn).perform(Load(unsent().key))
    with pytest.raises(LedgerTooNewError):
        ledger.migrate()


def test_C12_a_role_that_may_not_create_schemas_migrates_one_that_is_there(postgres_dsn: str, admin: Admin) -> None:
    role = f"runner_{admin.info.dbname}"
    admin.execute(f"create role {role} login")
    own = postgres_dsn.replace("postgres@", f"{role}@")
    try:
        with pytest.raises(LedgerError, match="grant this role") as refused:
            PostgresLedger(own).migrate()
        assert type(refused.value) is LedgerError
        admin.execute(f"create schema corrobo authorization {role}")
        PostgresLedger(own).migrate()
        PostgresLedger(own).migrate()
        with PostgresLedger(own) as ledger:
            assert ledger.perform(Open(reserving(unsent()))).mine
    finally:
        admin.execute(f"drop owned by {role} cascade")
        admin.execute(f"drop role {role}")


def test_C12_migrating_goes_through_a_pooler_in_a_session_that_defaults_to_repeatable_read(
    postgres_dsn: str, pgbouncer_dsn: str, admin: Admin
) -> None:
    admin.execute(f"alter database {admin.info.dbname} set default_transaction_isolation = 'repeatable read'")
    admin.execute(f"alter database {admin.info.dbname} set default_transaction_read_only = on")
    PostgresLedger(pgbouncer_dsn).migrate()
    assert admin.execute("select count(*) from corrobo.ledger").fetchone() == (1,)
