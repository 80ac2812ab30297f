"""The owner lock: who is dead, who is alive, and what a lost lock means (C4, C5, C7, C11)."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from corrobo_core.commands import Claim, Holder, Load, Open, Record, Refused, Written
from corrobo_core.errors import OwnerConnectionError
from corrobo_core.frozen import evolve
from corrobo_core.ledgers.postgres import PostgresLedger
from corrobo_core.records import Outcome
from corrobo_core.testing._operations import new_nonce, pass_of, recorded, reserving, unsent
from tests.support.postgres import with_database
from tests.support.processes import Child, child

WORKER = "tests.ledgers.postgres.worker"
Admin = psycopg.Connection[tuple[Any, ...]]


def said(process: Child, marker: str) -> Any:
    return json.loads(process.wait_for(marker).partition(marker)[2])


def advisory_locks(admin: Admin) -> int:
    (count,) = admin.execute("select count(*) from pg_locks where locktype = 'advisory'").fetchone() or (None,)
    assert isinstance(count, int)
    return count


def holder_becomes(ledger: PostgresLedger, operation_id: str, wanted: Holder, within: float) -> float:
    """Seconds until the ledger says so."""
    began = time.monotonic()
    while ledger.perform(Load(unsent(operation_id).key)).holder is not wanted:
        assert time.monotonic() - began < within, f"still not {wanted} after {within} s"
        time.sleep(0.01)
    return time.monotonic() - began


def end_owner_session(admin: Admin, owner: int | None) -> None:
    """As a cloud provider's maintenance does."""
    assert owner is not None
    ended = admin.execute(
        "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objsubid = 1"
        " and classid::bigint = ((%s::bigint >> 32) & 4294967295) and objid::bigint = (%s::bigint & 4294967295)",
        (owner, owner),
    ).fetchall()
    assert ended == [(True,)]
    while advisory_locks(admin):
        time.sleep(0.005)


# -- death --------------------------------------------------------------------------------------------------


def test_C4_a_killed_holder_is_gone_within_a_second(ledger: PostgresLedger, postgres_dsn: str) -> None:
    with child(WORKER, "hold", postgres_dsn, postgres_dsn, "held") as process:
        assert said(process, "reserved")[:2] == [True, "running"]
        assert ledger.perform(Load(unsent("held").key)).holder is Holder.RUNNING
        process.kill()
        assert holder_becomes(ledger, "held", Holder.GONE, within=1.0) < 1.0


def test_C4_a_stopped_holder_is_still_running(ledger: PostgresLedger, postgres_dsn: str) -> None:
    with child(WORKER, "hold", postgres_dsn, postgres_dsn, "held") as process:
        said(process, "reserved")
        process.pause()
        time.sleep(0.3)
        assert ledger.perform(Load(unsent("held").key)).holder is Holder.RUNNING
        process.resume()


def test_report_C01_behind_a_pooler_a_killed_holder_leaves_no_lock(
    ledger: PostgresLedger, admin: Admin, postgres_dsn: str, pgbouncer_dsn: str
) -> None:
    ledger.perform(Load(unsent().key))
    before = advisory_locks(admin)
    with child(WORKER, "hold", pgbouncer_dsn, postgres_dsn, "held") as process:
        said(process, "reserved")
        assert advisory_locks(admin) == before + 1
        process.kill()
        holder_becomes(ledger, "held", Holder.GONE, within=1.0)
        assert advisory_locks(admin) == before


# -- addresses that cannot hold a lock ------------------------------------------------------------------------


def test_C7_report_C01_an_owner_behind_a_pooler_is_refused_before_it_locks(
    ledger: PostgresLedger, admin: Admin, pgbouncer_dsn: str
) -> None:
    ledger.close()
    with pytest.raises(OwnerConnectionError, match="owner_dsn=") as refused, PostgresLedger(pgbouncer_dsn):
        pass
    assert not refused.value.retryable
    assert advisory_locks(admin) == 0


def test_C7_naive_twin_a_lock_taken_through_a_pooler_outlives_its_client(admin: Admin, pgbouncer_dsn: str) -> None:
    with psycopg.connect(pgbouncer_dsn, autocommit=True) as session:
        session.execute("select pg_advisory_lock(77)")
    time.sleep(0.2)
    assert advisory_locks(admin) == 1


def test_C7_an_owner_in_another_database_is_refused(ledger: PostgresLedger, postgres_dsn: str) -> None:
    elsewhere = with_database(postgres_dsn, "postgres")
    PostgresLedger(elsewhere).migrate()
    try:
        with (
            PostgresLedger(postgres_dsn, owner_dsn=elsewhere) as misled,
            pytest.raises(OwnerConnectionError, match="different databases"),
        ):
            misled.perform(Open(reserving(operation := unsent())))
        assert ledger.perform(Load(operation.key)).operation is None
    finally:
        with psycopg.connect(elsewhere, autocommit=True) as session:
            session.execute("drop schema corrobo cascade")


def test_C7_the_owner_session_notices_a_dead_host_and_never_times_out(
    ledger: PostgresLedger, admin: Admin, postgres_dsn: str
) -> None:
    for setting in ("statement_timeout", "idle_session_timeout"):
        admin.execute(
            f"alter database {psycopg.conninfo.conninfo_to_dict(postgres_dsn)['dbname']} set {setting} = '1s'"
        )
    with PostgresLedger(postgres_dsn) as other:
        owner = other.perform(Open(reserving(unsent()))).operation.owner
        session = other._process.owner._session
        assert session is not None
        shown = {
            name: session.execute(f"show {name}").fetchone()
            for name in ("statement_timeout", "idle_session_timeout", "tcp_keepalives_idle")
        }
        assert shown["statement_timeout"] == shown["idle_session_timeout"] == ("0",)
        time.sleep(1.5)
        assert other.perform(Open(reserving(unsent()))).operation.owner == owner


# -- a lost owner session -------------------------------------------------------------------------------------


def test_C11_a_lost_owner_session_gives_a_new_key_on_the_next_use(ledger: PostgresLedger, admin: Admin) -> None:
    first = ledger.perform(Open(reserving(unsent()))).operation.owner
    end_owner_session(admin, first)
    opened = ledger.perform(Open(reserving(unsent())))
    assert opened.mine
    assert opened.operation.owner not in (None, first)
    assert advisory_locks(admin) == 1


async def test_C9_a_lost_owner_session_waits_for_no_hook(ledger: PostgresLedger, admin: Admin) -> None:
    """Synchronous hooks that hang keep all threads of the loop; other passes go on without one of them."""
    threads, hangs = ThreadPoolExecutor(1), threading.Event()
    asyncio.get_running_loop().set_default_executor(threads)
    await ledger.perform_async(Open(reserving(unsent())))
    hanging = threads.submit(hangs.wait)
    try:
        end_owner_session(admin, ledger._process.owner.key)
        async with asyncio.timeout(5):
            opened = await ledger.perform_async(Open(reserving(unsent("another"))))
        assert opened.mine
        assert not hanging.done()
    finally:
        hangs.set()
        ledger._process.close_async_pool()


def test_C11_a_claim_notices_the_lost_lock_too(ledger: PostgresLedger, admin: Admin) -> None:
    first = ledger.perform(Open(reserving(unsent()))).operation.owner
    unmade = ledger.perform(Open(unsent())).operation
    end_owner_session(admin, first)
    claimed = ledger.perform(Claim(reserving(unmade)))
    assert isinstance(claimed, Written)
    assert claimed.operation.owner not in (None, first)
    assert claimed.operation.version == 2


def test_C11_what_was_reserved_under_the_lost_key_can_still_be_recorded(
    ledger: PostgresLedger, admin: Admin
) -> None:
    ledger.pass_started(pass_of(operation := reserving(unsent())))
    opened = ledger.perform(Open(operation))
    end_owner_session(admin, opened.operation.owner)
    ledger.perform(Open(reserving(unsent())))  # takes the new key
    assert ledger.perform(Load(operation.key)).holder is Holder.RUNNING  # this process knows better than the lock
    assert isinstance(ledger.perform(Record(recorded(opened.operation))), Written)


def test_report_C03_whoever_lost_its_lock_cannot_record_over_its_successor(
    ledger: PostgresLedger, admin: Admin, postgres_dsn: str
) -> None:
    """The server took the lock away; the holder does not know, and goes on."""
    ledger.pass_started(pass_of(operation := reserving(unsent())))
    opened = ledger.perform(Open(operation))
    ledger_closed = advisory_locks(admin)
    assert ledger_closed == 1
    end_owner_session(admin, opened.operation.owner)

    with PostgresLedger(postgres_dsn) as successor:
        seen = successor.perform(Load(operation.key))
        assert seen.holder is Holder.GONE
        assert seen.operation is not None
        taken = successor.perform(Claim(reserving(recorded(seen.operation, Outcome.UNRECORDED))))
        assert isinstance(taken, Written)

        assert isinstance(ledger.perform(Record(recorded(opened.operation))), Refused)
        assert isinstance(ledger.perform(Claim(reserving(recorded(opened.operation)))), Refused)
        assert successor.perform(Load(operation.key)).operation == taken.operation


def test_C2_an_open_whose_own_lock_is_gone_reads_without_writing(ledger: PostgresLedger, admin: Admin) -> None:
    """A row that is there is returned at once; the next reservation takes the new key."""
    opened = ledger.perform(Open(reserving(operation := unsent()))).operation
    end_owner_session(admin, opened.owner)
    again = ledger.perform(Open(evolve(operation, nonce=new_nonce())))
    assert again.operation == opened
    assert ledger.perform(Open(reserving(unsent()))).operation.owner != opened.owner


# -- forks ------------------------------------------------------------------------------------------------------


def test_C11_a_forked_child_has_its_own_owner_and_leaves_the_parents_alone(
    ledger: PostgresLedger, postgres_dsn: str
) -> None:
    with child(WORKER, "fork", postgres_dsn, env={"PYTHONWARNINGS": "default::ResourceWarning"}) as process:
        _, _, parents_key = said(process, "reserved")
        holder, mine, childs_key = said(process, "child")
        assert (holder, mine) == ("running", True)
        assert childs_key != parents_key
        assert said(process, "parent") == ["running", parents_key, "gone"]
        assert process.wait() == 0
        assert "Warning" not in process.output


def test_C11_a_process_with_an_event_loop_can_fork(ledger: PostgresLedger, postgres_dsn: str) -> None:
    with child(WORKER, "fork_inside_a_loop", postgres_dsn) as process:
        assert said(process, "child") == [True] * 8
        assert said(process, "failed") == []
        assert said(process, "parent") == [True] * 8
        assert process.wait() == 0


@pytest.mark.parametrize("forgetful", ["no", "yes"])
def test_C11_a_child_that_outlives_its_parent_does_not_keep_the_parents_lock(
    ledger: PostgresLedger, postgres_dsn: str, forgetful: str
) -> None:
    """``yes`` is the naive twin: the inherited socket keeps the dead parent's session alive."""
    with child(WORKER, "hold_with_child", postgres_dsn, "held", forgetful) as process:
        process.wait_for("forked")
        process.kill()
        if forgetful == "yes":
            time.sleep(0.5)
            assert ledger.perform(Load(unsent("held").key)).holder is Holder.RUNNING
        else:
            holder_becomes(ledger, "held", Holder.GONE, within=1.0)
