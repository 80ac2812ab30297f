"""Servers, databases and roles that are set up in other ways than ours (C7, C8, C10, D5)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

import corrobo_core.ledgers
from corrobo_core.canonical import decode_value, encode_value
from corrobo_core.commands import Claim, Holder, LedgerCommand, Load, Open, Record, Written
from corrobo_core.errors import DurabilityError, LedgerError, StandbyError, UsageError
from corrobo_core.frozen import evolve
from corrobo_core.ledgers.postgres import PostgresLedger
from corrobo_core.testing._operations import new_nonce, recorded, reserving, unsent
from tests.support.pgbouncer import running_pgbouncer
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.standby import Standby

Admin = psycopg.Connection[tuple[Any, ...]]


# -- durability (C10) -------------------------------------------------------------------------------------------


def _refused(ledger: PostgresLedger, command: LedgerCommand[Any]) -> DurabilityError:
    with pytest.raises(DurabilityError, match="accept_duplicates_after_crash") as refused:
        ledger.perform(command)
    assert not refused.value.retryable
    return refused.value


def test_C10_fsync_off_is_refused_unless_duplicates_are_accepted() -> None:
    with running_postgres(fsync="off") as server:
        with PostgresLedger(server.dsn()) as ledger:
            ledger.migrate()
            _refused(ledger, Open(reserving(operation := unsent())))
            _refused(ledger, Open(unsent()))
            assert ledger.perform(Load(operation.key)).operation is None
        with PostgresLedger(server.dsn(), accept_duplicates_after_crash=True) as bold:
            assert bold.perform(Open(operation)).mine


def test_C10_synchronous_commit_off_is_refused_unless_duplicates_are_accepted(
    ledger: PostgresLedger, admin: Admin, postgres_dsn: str
) -> None:
    unmade = ledger.perform(Open(unsent())).operation
    made = ledger.perform(Open(reserving(unsent()))).operation
    admin.execute(f"alter database {admin.info.dbname} set synchronous_commit = off")
    with PostgresLedger(postgres_dsn) as careful:
        _refused(careful, Open(reserving(operation := unsent())))
        _refused(careful, Claim(reserving(unmade)))
        assert careful.perform(Load(operation.key)).operation is None
        assert careful.perform(Load(unmade.key)).operation == unmade
        # What has happened is recorded in any case: losing the record costs a read, not a duplicate.
        assert isinstance(careful.perform(Record(recorded(made))), Written)
    with PostgresLedger(postgres_dsn, accept_duplicates_after_crash=True) as bold:
        assert bold.perform(Open(operation)).mine
        assert isinstance(bold.perform(Claim(reserving(unmade))), Written)


@pytest.mark.parametrize("level", ["local", "remote_write", "on", "remote_apply"])
def test_C10_every_level_that_survives_a_crash_is_accepted(
    ledger: PostgresLedger, admin: Admin, postgres_dsn: str, level: str
) -> None:
    admin.execute(f"alter database {admin.info.dbname} set synchronous_commit = {level}")
    with PostgresLedger(postgres_dsn) as careful:
        assert careful.perform(Open(reserving(unsent()))).mine


# -- standbys (C8, report C15) ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def replicated() -> Iterator[tuple[PostgresServer, Standby]]:
    with running_postgres(wal_level="replica") as primary:
        PostgresLedger(primary.dsn()).migrate()
        standby = Standby(primary)
        try:
            yield primary, standby
        finally:
            standby.close()


def test_report_C15_a_lagging_replica_would_answer_with_the_past_and_is_refused(
    replicated: tuple[PostgresServer, Standby],
) -> None:
    primary, standby = replicated
    with PostgresLedger(primary.dsn()) as ledger, psycopg.connect(standby.dsn(), autocommit=True) as replica:
        stored = ledger.perform(Open(reserving(unsent("done")))).operation
        unmade = ledger.perform(Open(unsent("unmade"))).operation
        seen = "select version from corrobo.operation where id = 'done'"
        while not replica.execute(seen).fetchall():
            time.sleep(0.01)
        replica.execute("select pg_wal_replay_pause()")
        done = ledger.perform(Record(recorded(stored)))
        assert isinstance(done, Written)
        assert replica.execute(seen).fetchall() == [(1,)]  # the naive twin: decides from this

        commands: list[LedgerCommand[Any]] = [
            Load(stored.key),
            Open(reserving(unsent())),
            Claim(reserving(unmade)),
            Record(evolve(unmade, nonce=new_nonce())),
        ]
        misled = PostgresLedger(standby.dsn(), owner_dsn=primary.dsn())
        with misled:
            for command in commands:
                with pytest.raises(StandbyError) as refused:
                    misled.perform(command)
                assert not refused.value.retryable
                with pytest.raises(StandbyError):
                    asyncio.run(_ask(misled, command))
        replica.execute("select pg_wal_replay_resume()")


async def _ask(ledger: PostgresLedger, command: LedgerCommand[Any]) -> Any:
    async with ledger:
        return await ledger.perform_async(command)


def test_C8_a_standby_is_refused_as_owner_and_for_migrating(replicated: tuple[PostgresServer, Standby]) -> None:
    primary, standby = replicated
    with pytest.raises(StandbyError), PostgresLedger(standby.dsn()):
        pass
    with pytest.raises(StandbyError), PostgresLedger(primary.dsn(), owner_dsn=standby.dsn()):
        pass
    with pytest.raises(StandbyError):
        PostgresLedger(standby.dsn(), schema="new").migrate()


# -- time (D5, reports C12, C13) --------------------------------------------------------------------------------


@pytest.mark.parametrize("skew", [90, -90], ids=["the worker's clock is slow", "the worker's clock is fast"])
def test_report_C12_only_the_databases_clock_counts(
    ledger: PostgresLedger, admin: Admin, postgres_dsn: str, skew: int
) -> None:
    """The database's clock is moved against the worker's, by a function that is found before its own."""
    admin.execute("create schema skewed")
    admin.execute(
        "create function skewed.clock_timestamp() returns timestamptz language sql as"
        f" $$ select pg_catalog.clock_timestamp() + interval '{skew} s' $$"
    )
    admin.execute(f"alter database {admin.info.dbname} set search_path = skewed, pg_catalog")
    with PostgresLedger(postgres_dsn) as skewed:
        there = datetime.now(UTC) + timedelta(seconds=skew)
        opened = skewed.perform(Open(reserving(unsent())))
        claimed = skewed.perform(Claim(reserving(skewed.perform(Open(unsent())).operation)))
        recorded_ = skewed.perform(Record(recorded(opened.operation)))
        loaded = skewed.perform(Load(opened.operation.key))
        assert isinstance(claimed, Written)
        times = [opened.operation.latest.started, claimed.operation.latest.started]
        times += [reply.reading.now for reply in (opened, claimed, recorded_, loaded)]
        assert all(time is not None and abs(time - there) < timedelta(seconds=20) for time in times)


def test_report_C12_the_ledger_never_reads_the_workers_clock() -> None:
    folder = Path(corrobo_core.ledgers.__file__).parent
    modules = [folder / "postgres.py", *folder.glob("_pg_*.py"), folder / "_shared.py"]
    assert len(modules) > 8
    for module in modules:
        for reading in ("time.time(", "datetime.now(", "utcnow(", ".today("):
            assert reading not in module.read_text("utf-8"), f"{module.name}: {reading}"


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/Los_Angeles"])
def test_report_C13_session_time_zones_and_date_styles_change_nothing(
    ledger: PostgresLedger, admin: Admin, postgres_dsn: str, zone: str
) -> None:
    for setting in (f"timezone = '{zone}'", "datestyle = 'German'", "intervalstyle = 'sql_standard'"):
        admin.execute(f"alter database {admin.info.dbname} set {setting}")
    with PostgresLedger(postgres_dsn) as far:
        opened = far.perform(Open(reserving(unsent())))
        until = opened.reading.now + timedelta(minutes=1)
        unmade = far.perform(Open(unsent())).operation
        assert isinstance(far.perform(Claim(reserving(unmade), approved_until=until)), Written)
        far.abandon(opened.operation.key, opened.operation.nonce)
        far.perform(Load(opened.operation.key))
        here = ledger.perform(Load(opened.operation.key))
        there = far.perform(Load(opened.operation.key))
        assert here.operation == there.operation
        assert here.operation is not None
        assert here.operation.latest.started == opened.operation.latest.started
        assert opened.reading.now <= there.reading.now <= opened.reading.now + timedelta(seconds=30)
        assert there.reading.now.utcoffset() == timedelta()
        assert here.operation.latest.abandoned is not None
        assert here.operation.latest.abandoned.utcoffset() == timedelta()


def test_report_C13_every_time_column_has_a_zone(ledger: PostgresLedger, admin: Admin) -> None:
    kinds = admin.execute(
        "select distinct data_type from information_schema.columns"
        " where table_schema = 'corrobo' and (data_type like 'timestamp%' or data_type like 'date%')"
    ).fetchall()
    assert kinds == [("timestamp with time zone",)]


# -- idle transactions (C6, report C08) -------------------------------------------------------------------------


def test_report_C08_nothing_is_held_while_the_provider_works(
    ledger: PostgresLedger, admin: Admin, postgres_dsn: str
) -> None:
    admin.execute(f"alter database {admin.info.dbname} set idle_in_transaction_session_timeout = '1s'")
    with PostgresLedger(postgres_dsn) as timed:
        timed.pass_started((operation := reserving(unsent())).latest.nonce.partition(".")[0])
        opened = timed.perform(Open(operation)).operation
        sessions = admin.execute(
            "select state, xact_start is null, backend_xmin is null from pg_stat_activity"
            " where application_name = 'corrobo'"
        ).fetchall()
        locks = admin.execute(
            "select mode from pg_locks where pid in"
            " (select pid from pg_stat_activity where application_name = 'corrobo')"
        ).fetchall()
        time.sleep(2.5)  # the provider
        assert len(sessions) >= 2
        assert set(sessions) == {("idle", True, True)}
        assert locks == [("ExclusiveLock",)]  # the process's owner lock, whatever is in flight
        assert timed.perform(Load(operation.key)).holder is Holder.RUNNING
        assert isinstance(timed.perform(Record(recorded(opened))), Written)


# -- names (C8, report C17) -------------------------------------------------------------------------------------


def test_report_C17_two_tenants_share_a_pooler_and_an_operation_id(postgres_dsn: str, admin: Admin) -> None:
    admin.execute(f"alter database {admin.info.dbname} set search_path = tenant_b, public")
    with running_pgbouncer(postgres_dsn, pool_size=1) as pooled:
        a = PostgresLedger(pooled, owner_dsn=postgres_dsn, schema="tenant_a")
        b = PostgresLedger(pooled, owner_dsn=postgres_dsn, schema="tenant_b")
        with a, b:
            a.migrate()
            b.migrate()
            first = a.perform(Open(reserving(unsent("1001"))))
            assert b.perform(Load(first.operation.key)).operation is None
            second = b.perform(Open(reserving(unsent("1001"))))
            assert first.mine
            assert second.mine
            assert isinstance(a.perform(Record(recorded(first.operation))), Written)
            assert b.perform(Load(second.operation.key)).operation == second.operation
            assert a.idempotency_key(first.operation.key) != b.idempotency_key(first.operation.key)
    counts = "select (select count(*) from tenant_a.operation), (select count(*) from tenant_b.operation)"
    assert admin.execute(counts).fetchone() == (1, 1)


@pytest.mark.parametrize("schema", ["", "x" * 64, "Ω" * 32, "a\x00b", None])
def test_C8_a_schema_name_that_postgresql_would_change_is_refused(schema: Any) -> None:
    with pytest.raises(UsageError, match="schema"):
        PostgresLedger("postgresql://", schema=schema)


@pytest.mark.parametrize("argument", [{"pool_size": 0}, {"unavailable_after": timedelta()}, {"namespace": ""}])
def test_arguments_that_cannot_work_are_refused(argument: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(argument))):
        PostgresLedger("postgresql://", **argument)


# -- keys (report C05) ------------------------------------------------------------------------------------------


def test_report_C05_ids_whose_hashes_collide_do_not_wait_for_each_other(
    ledger: PostgresLedger, admin: Admin
) -> None:
    """Locks are rows, not hashes of ids. Among 400,000 ids some have one 32-bit hash."""
    colliding = admin.execute(
        "select min(id), max(id) from (select 'order/' || n id from generate_series(1, 400000) n) ids"
        " group by hashtext(id) having count(*) > 1 limit 1"
    ).fetchone()
    assert colliding is not None
    first, second = (ledger.perform(Open(reserving(unsent(operation_id)))) for operation_id in colliding)
    assert first.mine
    assert second.mine
    with admin.transaction():
        admin.execute("select from corrobo.operation where id = %s for update", (colliding[0],))
        began = time.monotonic()
        assert isinstance(ledger.perform(Record(recorded(second.operation))), Written)
        assert time.monotonic() - began < 1.5  # less than one lock timeout
    assert ledger.perform(Load(first.operation.key)).operation == first.operation


# -- values (T4, reports C09, C10, C11) -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        "\x00",
        {"a\x00b": "c\x00d"},
        "\ud83d",
        ["\ude00\ud83d", "ok"],
        {"\ud800": 1},
        float("inf"),
        float("-inf"),
        1e20,
        -0.0,
        1e-7,
        2**80,
        b"\x00\xff",
    ],
)
def test_T4_reports_C09_C10_C11_a_result_that_json_cannot_hold_is_recorded_all_the_same(
    ledger: PostgresLedger, value: Any
) -> None:
    opened = ledger.perform(Open(reserving(unsent()))).operation
    done = evolve(recorded(opened), effect=encode_value(value))
    written = ledger.perform(Record(done))
    assert isinstance(written, Written)
    loaded = ledger.perform(Load(done.key)).operation
    assert loaded == written.operation
    back = decode_value(loaded.effect)
    assert (type(back), repr(back)) == (type(value), repr(value))


def test_a_database_that_cannot_hold_every_text_is_refused(postgres_admin: str) -> None:
    with psycopg.connect(postgres_admin, autocommit=True) as admin:
        admin.execute("create database latin encoding 'LATIN1' locale 'C' template template0")
        try:
            with pytest.raises(LedgerError, match="LATIN1"):
                PostgresLedger(postgres_admin.replace("/postgres?", "/latin?")).migrate()
        finally:
            admin.execute("drop database latin with (force)")
