"""What the ledger does when PostgreSQL conflicts, waits, vanishes or loses replies (C2, C9, L9)."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from corrobo_core.clocks import stopwatch
from corrobo_core.commands import Claim, KeepLate, LedgerCommand, Load, Open, Record, Refused, Written
from corrobo_core.errors import CorroboError, DsnError, LedgerError, LedgerUnavailable
from corrobo_core.frozen import evolve
from corrobo_core.ledgers._pg_errors import Lost
from corrobo_core.ledgers._pg_wire import AsyncWire, SyncWire
from corrobo_core.ledgers.postgres import PostgresLedger
from corrobo_core.records import Operation
from corrobo_core.testing._operations import new_nonce, pass_of, recorded, reserving, unsent
from tests.support.postgres import PostgresServer

Admin = psycopg.Connection[tuple[Any, ...]]
Ask = Callable[[PostgresLedger, LedgerCommand[Any]], Any]

SECOND = timedelta(seconds=1)


def sync(ledger: PostgresLedger, command: LedgerCommand[Any]) -> Any:
    return ledger.perform(command)


def on_a_loop(ledger: PostgresLedger, command: LedgerCommand[Any]) -> Any:
    async def ask() -> Any:
        async with ledger:
            return await ledger.perform_async(command)

    return asyncio.run(ask())


both = pytest.mark.parametrize("ask", [sync, on_a_loop])


@contextmanager
def in_thread(work: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
    """Run it meanwhile; the yielded function waits for its result."""
    result: list[Any] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def wait() -> Any:
        thread.join(30)
        assert result, "still running"
        if isinstance(result[0], BaseException):
            raise result[0]
        return result[0]

    try:
        yield wait
    finally:
        thread.join(30)


def opened(ledger: PostgresLedger) -> Operation:
    return ledger.perform(Open(reserving(unsent()))).operation


# -- conflicts (C9, report C16) -------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("sqlstate", ["40001", "40P01", "55P03"])
def test_C9_report_C16_a_conflict_is_retried_around_the_statement(
    ledger: PostgresLedger, admin: Admin, ask: Ask, sqlstate: str
) -> None:
    """The server refuses every kind of write twice before it lets one pass."""
    unmade, done = ledger.perform(Open(unsent())).operation, recorded(opened(ledger))
    admin.execute("create sequence public.tries")
    admin.execute("grant all on sequence public.tries to public")
    admin.execute(
        "create function public.refuse() returns trigger language plpgsql as $$ begin"
        f" if nextval('public.tries') % 3 <> 0 then raise sqlstate '{sqlstate}'; end if; return new; end $$"
    )
    for table in ("operation", "late_evidence"):
        admin.execute(
            f"create trigger refuse before insert or update on corrobo.{table}"
            " for each row execute function public.refuse()"
        )
    assert ask(ledger, Open(reserving(unsent()))).mine
    assert isinstance(ask(ledger, Claim(reserving(unmade))), Written)
    assert isinstance(ask(ledger, Record(done)), Written)
    ask(ledger, KeepLate(done.key, 1, done.latest.nonce, {"outcome": "RESPONDED"}))
    assert admin.execute("select last_value from public.tries").fetchone() == (12,)
    assert admin.execute("select count(*) from corrobo.late_evidence").fetchone() == (1,)


def test_C9_a_conflict_without_end_is_unavailable_in_time(
    ledger: PostgresLedger, admin: Admin, postgres_dsn: str
) -> None:
    done = recorded(opened(ledger))
    admin.execute(
        "create function public.refuse() returns trigger language plpgsql as"
        " $$ begin raise sqlstate '40001'; end $$"
    )
    admin.execute(
        "create trigger refuse before update on corrobo.operation for each row execute function public.refuse()"
    )
    began = time.monotonic()
    with (
        PostgresLedger(postgres_dsn, unavailable_after=SECOND) as impatient,
        pytest.raises(LedgerUnavailable, match="40001") as failed,
    ):
        impatient.perform(Record(done))
    assert failed.value.retryable
    assert 0.5 < time.monotonic() - began < 10


def test_C9_report_C16_races_under_repeatable_read_are_decided_inside(
    postgres_dsn: str, admin: Admin, ledger: PostgresLedger
) -> None:
    admin.execute(f"alter database {admin.info.dbname} set default_transaction_isolation = 'repeatable read'")
    with PostgresLedger(postgres_dsn) as racing:

        async def race() -> None:
            async with racing:
                for _ in range(25):
                    operation = unsent()
                    racers = [Open(reserving(evolve(operation, nonce=new_nonce()))) for _ in range(8)]
                    replies = await asyncio.gather(*(racing.perform_async(racer) for racer in racers))
                    assert [reply.mine for reply in replies].count(True) == 1
                    stored = replies[0].operation
                    claims = [Claim(reserving(recorded(stored))) for _ in range(8)]
                    written = await asyncio.gather(*(racing.perform_async(claim) for claim in claims))
                    assert [isinstance(reply, Written) for reply in written].count(True) == 1

        asyncio.run(race())


# -- waiting for locks (C1, D5) -------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("blocked_for", [0.3, 2.6], ids=["shorter", "longer than one lock timeout"])
def test_D5_a_claims_start_is_read_after_the_lock_wait(
    ledger: PostgresLedger, admin: Admin, ask: Ask, blocked_for: float
) -> None:
    unmade = ledger.perform(Open(unsent())).operation
    with in_thread(lambda: _hold_row(admin, unmade, blocked_for)) as released:
        time.sleep(0.1)
        before = stopwatch()
        reply = ask(ledger, Claim(reserving(unmade)))
    assert isinstance(reply, Written)
    started = reply.operation.latest.started
    assert started is not None
    assert started >= released()
    assert before <= reply.reading.sent <= before + blocked_for / 2  # of the first sending (L9)
    assert reply.reading.received - reply.reading.sent >= blocked_for - 0.2


def _hold_row(admin: Admin, operation: Operation, seconds: float) -> Any:
    """Lock the row in a transaction; the database's time just before it is let go."""
    with admin.transaction():
        admin.execute("select from corrobo.operation where id = %s for update", (operation.key.operation_id,))
        time.sleep(seconds)
        (now,) = admin.execute("select clock_timestamp()").fetchone() or (None,)
    return now


def test_R5_an_approval_that_ran_out_during_the_lock_wait_is_refused(ledger: PostgresLedger, admin: Admin) -> None:
    unmade = ledger.perform(Open(unsent()))
    until = unmade.reading.now + timedelta(seconds=0.5)
    with in_thread(lambda: _hold_row(admin, unmade.operation, 0.8)):
        time.sleep(0.1)
        assert isinstance(ledger.perform(Claim(reserving(unmade.operation), approved_until=until)), Refused)
    again = Claim(reserving(unmade.operation), approved_until=until + timedelta(minutes=1))
    assert isinstance(ledger.perform(again), Written)


# -- lost replies (C2, L9) ------------------------------------------------------------------------------------


@pytest.fixture
def losing_a_reply(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The server answers, and the first reply with a write is lost on the way. Holds when each was sent."""
    sent: list[float] = []

    def lost(wire: SyncWire | AsyncWire) -> bool:
        sent.append(wire.sent)
        if len(sent) == 1:
            wire.broken = True
        return len(sent) == 1

    exchange, exchange_async = SyncWire.exchange, AsyncWire.exchange

    def once(wire: SyncWire, *arguments: Any) -> Any:
        reply = exchange(wire, *arguments)
        if lost(wire):
            time.sleep(0.05)
            raise Lost("the reply was lost")
        return reply

    async def once_async(wire: AsyncWire, *arguments: Any) -> Any:
        reply = await exchange_async(wire, *arguments)
        if lost(wire):
            await asyncio.sleep(0.05)
            raise Lost("the reply was lost")
        return reply

    monkeypatch.setattr(SyncWire, "exchange", once)
    monkeypatch.setattr(AsyncWire, "exchange", once_async)
    yield sent
    assert len(sent) > 1, "nothing was repeated"


@both
def test_C2_L9_an_open_whose_reply_was_lost_finds_its_own_row(
    ledger: PostgresLedger, ask: Ask, losing_a_reply: list[float]
) -> None:
    ledger.pass_started(pass_of(operation := reserving(unsent())))
    reply = ask(ledger, Open(operation))
    assert reply.mine
    assert reply.operation.version == 1
    assert reply.reading.sent == losing_a_reply[0] < losing_a_reply[1] < reply.reading.received


@pytest.mark.parametrize("kind", [Claim, Record])
@both
def test_C2_a_write_whose_reply_was_lost_is_refused_and_its_nonce_tells(
    ledger: PostgresLedger, ask: Ask, kind: Any, request: pytest.FixtureRequest
) -> None:
    operation = ledger.perform(Open(unsent())).operation
    sent = request.getfixturevalue("losing_a_reply")
    wanted = reserving(operation) if kind is Claim else evolve(operation, nonce=new_nonce())
    reply = ask(ledger, kind(wanted))
    assert isinstance(reply, Refused)
    assert reply.reading.sent == sent[0]
    stored = ledger.perform(Load(operation.key)).operation
    assert stored is not None
    assert (stored.nonce, stored.version) == (wanted.nonce, 2)


def test_C2_late_evidence_whose_reply_was_lost_is_kept_once(
    ledger: PostgresLedger, admin: Admin, losing_a_reply: list[float]
) -> None:
    ledger.perform(KeepLate(unsent().key, 1, new_nonce(), {"a": 1}))
    assert admin.execute("select count(*) from corrobo.late_evidence").fetchone() == (1,)


# -- outages (C9, report C18) ---------------------------------------------------------------------------------


@both
def test_report_C18_a_server_that_stops_after_the_write_and_is_back_after_3_s(
    server: PostgresServer, ask: Ask
) -> None:
    with PostgresLedger(server.dsn()) as ledger:
        reserved = opened(ledger)
        server.crash()
        with in_thread(lambda: _start_after(server, 3)):
            done = recorded(reserved)
            reply = ask(ledger, Record(done))
        assert isinstance(reply, Written)
        assert ledger.perform(Load(done.key)).operation == reply.operation
        assert opened(ledger).owner != reserved.owner  # the old lock went down with the server


def _start_after(server: PostgresServer, seconds: float) -> bool:
    time.sleep(seconds)
    server.start()
    return True


@pytest.mark.parametrize("how", ["stop", "crash"])
def test_report_C18_a_server_that_stops_in_the_middle_of_a_record(server: PostgresServer, how: str) -> None:
    with PostgresLedger(server.dsn()) as ledger:
        done = recorded(opened(ledger))
        with psycopg.connect(server.dsn()) as blocker:
            blocker.execute("select from corrobo.operation for update")
            with in_thread(lambda: ledger.perform(Record(done))) as reply:
                time.sleep(0.3)  # it waits for the row now
                getattr(server, how)()
                time.sleep(1)
                server.start()
                assert isinstance(reply(), Written)
            blocker.close()
        stored = ledger.perform(Load(done.key)).operation
        assert stored is not None
        assert (stored.nonce, stored.version) == (done.nonce, 2)


@both
def test_C9_without_a_server_a_command_gives_up_in_time(server: PostgresServer, ask: Ask) -> None:
    with PostgresLedger(server.dsn(), unavailable_after=SECOND) as ledger:
        done = recorded(opened(ledger))
        server.stop()
        began = time.monotonic()
        with pytest.raises(LedgerUnavailable, match="within 1 s") as failed:
            sync(ledger, Record(done)) if ask is sync else asyncio.run(ledger.perform_async(Record(done)))
        assert failed.value.retryable
        assert 0.5 < time.monotonic() - began < 10


def test_C9_idle_connections_that_the_server_closed_are_replaced_unnoticed(
    ledger: PostgresLedger, admin: Admin
) -> None:
    async def use() -> None:
        async with ledger:
            for _ in range(3):
                replies = await asyncio.gather(
                    *(ledger.perform_async(Open(reserving(unsent()))) for _ in range(32))
                )
                assert all(reply.mine for reply in replies)
                admin.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'corrobo'"
                )

    asyncio.run(use())
    for _ in range(3):
        assert ledger.perform(Open(reserving(unsent()))).mine
        admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'corrobo'")


def test_C9_a_server_that_says_nothing_any_more_is_given_up(
    ledger: PostgresLedger, admin: Admin, postgres_dsn: str
) -> None:
    """A backend that is stopped, as a host that has vanished: no reply, no reset."""
    with PostgresLedger(postgres_dsn, unavailable_after=SECOND, pool_size=1) as impatient:
        done = recorded(opened(impatient))
        admin.execute(
            "create function public.sleep() returns trigger language plpgsql as"
            " $$ begin perform pg_sleep(20); return new; end $$"
        )
        admin.execute(
            "create trigger sleep before update on corrobo.operation for each row execute function public.sleep()"
        )
        began = time.monotonic()
        with pytest.raises(LedgerUnavailable):
            impatient.perform(Record(done))
        assert time.monotonic() - began < 10
        admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'")


# -- cancellation (L7) ----------------------------------------------------------------------------------------


def test_L7_a_cancelled_command_leaves_the_pool_whole(ledger: PostgresLedger, admin: Admin) -> None:
    async def use() -> None:
        async with PostgresLedger(ledger._address._dsn, pool_size=2) as small:
            reserved = (await small.perform_async(Open(reserving(unsent())))).operation
            with admin.transaction():
                admin.execute("select from corrobo.operation for update")
                tasks = [asyncio.create_task(small.perform_async(Record(recorded(reserved)))) for _ in range(6)]
                await asyncio.sleep(0.2)
                for task in tasks:
                    task.cancel()
                assert {type(r) for r in await asyncio.gather(*tasks, return_exceptions=True)} == {
                    asyncio.CancelledError
                }
            replies = await asyncio.gather(*(small.perform_async(Open(reserving(unsent()))) for _ in range(20)))
            assert all(reply.mine for reply in replies)

    asyncio.run(use())


# -- errors (T3) ----------------------------------------------------------------------------------------------

SECRET = "hunter2-hunter2"


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://someone:{SECRET}@127.0.0.1:1/db",
        f"host=127.0.0.1 port=1 user=someone password='{SECRET}'",
        f"postgresql://someone:{SECRET}@127.0.0.1:notaport/db",
        f"postgresql://someone:{SECRET}@[/db",
        f"postgresql://someone:a@{SECRET}@127.0.0.1:1/db",  # libpq takes what follows the first @ for the host
        f"postgresql://someone:1/{SECRET}@127.0.0.1/db",  # and this for a port and a database
        f"postgresql://someone:{SECRET}",
        f"host=x pass word={SECRET}",
        f"postgresql://h/db?{SECRET}=1",
    ],
)
def test_errors_never_hold_a_password(dsn: str) -> None:
    with pytest.raises(CorroboError) as failed:
        ledger = PostgresLedger(dsn, unavailable_after=timedelta(seconds=0.3))
        assert SECRET not in repr(ledger)
        ledger.perform(Load(unsent().key))
    assert isinstance(failed.value, LedgerUnavailable | DsnError)
    shown = "".join(traceback.format_exception(failed.value)) + repr(pickle.loads(pickle.dumps(failed.value)))
    assert SECRET not in shown


def test_a_refused_login_is_said_at_once(ledger: PostgresLedger, postgres_dsn: str) -> None:
    nobody = postgres_dsn.replace("postgres@", "nobody_here@")
    began = time.monotonic()
    with pytest.raises(LedgerUnavailable, match="does not exist"), PostgresLedger(nobody):
        pass
    assert time.monotonic() - began < 10


def test_I4_text_that_the_server_cannot_hold_is_refused_and_not_cut(ledger: PostgresLedger) -> None:
    with pytest.raises(LedgerError, match="22021"):
        ledger.perform(Open(reserving(unsent("a\x00b"))))
    assert ledger.perform(Load(unsent("a").key)).operation is None
