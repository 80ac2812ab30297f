"""What an SQLite commit means is checked, and waiting for one is bounded (C1, C9, C10)."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from corrobo_core.commands import Claim, Holder, KeepLate, LedgerCommand, Load, Open, Record, Written
from corrobo_core.errors import DurabilityError, LedgerCorruptError, LedgerError, LedgerUnavailable, UsageError
from corrobo_core.ledgers.sqlite import SqliteLedger
from corrobo_core.records import Operation, evolve
from corrobo_core.testing._operations import new_nonce, recorded, reserving, unsent

# -- durability ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("synchronous", ["NORMAL", "OFF"])
def test_less_than_full_is_refused_unless_duplicates_are_accepted_in_words(
    tmp_path: Path, synchronous: Any
) -> None:
    with pytest.raises(DurabilityError, match="accept_duplicates_after_crash=True"):
        SqliteLedger(tmp_path / "effects.db", synchronous=synchronous)
    with SqliteLedger(
        tmp_path / "effects.db", synchronous=synchronous, accept_duplicates_after_crash=True
    ) as ledger:
        ledger.migrate()
        assert ledger.perform(Open(reserving(unsent()))).mine


def test_every_connection_syncs_each_commit(sqlite_ledger: SqliteLedger) -> None:
    with sqlite_ledger._pool.connection() as one, sqlite_ledger._pool.connection() as two:
        assert one is not two
        for connection in (one, two):
            assert connection.execute("pragma synchronous").fetchone() == (2,)
            assert connection.execute("pragma journal_mode").fetchone() == ("wal",)


class _Deaf(sqlite3.Connection):
    """A build of SQLite that ignores one pragma."""

    ignored: str

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql.startswith(f"pragma {self.ignored} ="):
            sql = f"pragma {self.ignored} = {'normal' if self.ignored == 'synchronous' else 'delete'}"
        return super().execute(sql, *values)


@pytest.mark.parametrize("ignored", ["synchronous", "journal_mode"])
def test_a_setting_that_does_not_read_back_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ignored: str
) -> None:
    SqliteLedger(tmp_path / "effects.db").migrate()
    with closing(sqlite3.connect(tmp_path / "effects.db")) as connection:
        connection.execute("pragma journal_mode = delete").fetchall()
    monkeypatch.setattr(_Deaf, "ignored", ignored, raising=False)
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=_Deaf))
    with pytest.raises(DurabilityError, match="stays"), SqliteLedger(tmp_path / "effects.db"):
        pass


def test_a_connection_that_is_not_in_autocommit_mode_commits_nothing_unnoticed(
    sqlite_ledger: SqliteLedger, sqlite_path: Path
) -> None:
    """L1."""
    with sqlite_ledger._pool.connection() as connection:
        connection.isolation_level = "DEFERRED"
    with pytest.raises(LedgerError, match="nothing was committed"):
        sqlite_ledger.perform(Open(operation := reserving(unsent())))
    assert sqlite_ledger.perform(Load(operation.key)).operation is None


@pytest.mark.parametrize("path", [":memory:", "", "file:effects.db?mode=memory", "a\0b"])
def test_what_is_no_file_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="path"):
        SqliteLedger(path)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"namespace": ""}, "namespace"),
        ({"namespace": "a\0b"}, "namespace"),
        ({"namespace": "\ud800"}, "namespace"),
        ({"namespace": "x" * 201}, "namespace"),
        ({"lock_timeout": timedelta()}, "lock_timeout"),
        ({"synchronous": "LOUD"}, "synchronous"),
    ],
)
def test_unusable_arguments_are_named(tmp_path: Path, options: dict[str, Any], field: str) -> None:
    with pytest.raises(UsageError, match=field):
        SqliteLedger(tmp_path / "effects.db", **options)


def test_constructing_does_no_io(tmp_path: Path) -> None:
    SqliteLedger(tmp_path / "missing" / "effects.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["with space.db", "what?.db", "a#b%20c.db", "Zoë.db"])
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    with SqliteLedger(tmp_path / name) as ledger:
        ledger.migrate()
        ledger.perform(Open(reserving(unsent())))
        assert {path.name for path in tmp_path.iterdir()} == {name, f"{name}-wal", f"{name}-shm", f"{name}-owners"}


# -- what is stored --------------------------------------------------------------------------------------------


def test_a_damaged_record_stops_its_own_operation_only(sqlite_ledger: SqliteLedger, sqlite_path: Path) -> None:
    damaged = sqlite_ledger.perform(Open(reserving(unsent("damaged")))).operation
    sound = sqlite_ledger.perform(Open(reserving(unsent("sound")))).operation
    for document in ("{", "[]", '{"format":2}', '{"format":1,"attempts":[{}],"reason":""}'):
        with closing(sqlite3.connect(sqlite_path)) as connection:
            connection.execute("update corrobo_operation set doc = ? where id = 'damaged'", (document,))
            connection.commit()
        for command in (Load(damaged.key), Open(evolve(damaged, nonce=new_nonce()))):
            with pytest.raises(LedgerCorruptError, match="damaged"):
                sqlite_ledger.perform(command)  # type: ignore[misc]  # a reply of either kind
    assert sqlite_ledger.perform(Load(sound.key)).operation == sound


def test_late_evidence_is_kept_beside_the_operation(sqlite_ledger: SqliteLedger, sqlite_path: Path) -> None:
    """C2."""
    opened = sqlite_ledger.perform(Open(reserving(unsent("1")))).operation
    before = datetime.now(UTC)
    sqlite_ledger.perform(KeepLate(opened.key, 1, opened.nonce, {"outcome": "RESPONDED", "text": "ü"}))
    with closing(sqlite3.connect(sqlite_path)) as connection:
        ((*kept, at, evidence),) = connection.execute(
            "select ns, id, attempt, nonce, at, evidence from corrobo_late_evidence"
        )
    assert kept == ["default", "1", 1, opened.nonce]
    assert before <= datetime.fromisoformat(at) <= datetime.now(UTC)
    assert json.loads(evidence) == {"outcome": "RESPONDED", "text": "ü"}


def test_two_event_loops_and_a_thread_share_one_ledger(sqlite_ledger: SqliteLedger) -> None:
    async def on_a_loop() -> list[bool]:
        opened = await asyncio.gather(
            *(sqlite_ledger.perform_async(Open(reserving(unsent(f"shared {n}")))) for n in range(20))
        )
        return [reply.mine for reply in opened]

    with ThreadPoolExecutor(3) as threads:
        loops = [threads.submit(asyncio.run, on_a_loop()) for _ in range(2)]
        plain = threads.submit(
            lambda: [sqlite_ledger.perform(Open(reserving(unsent(f"shared {n}")))).mine for n in range(20)]
        )
        replies = [loop.result() for loop in loops] + [plain.result()]
    assert [sum(mine) for mine in zip(*replies, strict=True)] == [1] * 20


# -- waiting ---------------------------------------------------------------------------------------------------


@contextmanager
def locked(path: Path) -> Iterator[sqlite3.Connection]:
    """Another process's long transaction."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as connection:
        connection.execute("begin immediate")
        yield connection


@pytest.fixture
def impatient(sqlite_ledger: SqliteLedger, sqlite_path: Path) -> Iterator[SqliteLedger]:
    with SqliteLedger(sqlite_path, lock_timeout=timedelta(seconds=0.2)) as ledger:
        yield ledger


def test_waiting_for_another_writer_is_bounded(impatient: SqliteLedger, sqlite_path: Path) -> None:
    opened = impatient.perform(Open(unsent())).operation
    commands: list[LedgerCommand[Any]] = [Open(reserving(unsent())), Claim(reserving(opened)), Record(opened)]
    with locked(sqlite_path):
        for command in commands:
            begun = time.monotonic()
            with pytest.raises(LedgerUnavailable, match="locked") as caught:
                impatient.perform(command)
            assert caught.value.retryable
            assert 0.15 < time.monotonic() - begun < 2
    assert isinstance(impatient.perform(Record(opened)), Written)


def test_waiting_is_bounded_for_many_at_once(impatient: SqliteLedger, sqlite_path: Path) -> None:
    """Threads of one process stand in one line, and all of them are told in time: not one after the other."""

    def refused() -> bool:
        with pytest.raises(LedgerUnavailable, match="locked"):
            impatient.perform(Open(reserving(unsent())))
        return True

    with locked(sqlite_path), ThreadPoolExecutor(40) as threads:
        begun = time.monotonic()
        asked = [threads.submit(refused) for _ in range(40)]
        assert all(one.result() for one in asked)
        assert time.monotonic() - begun < 4


@pytest.mark.parametrize("replaced", [False, True])
def test_L1_nothing_is_reserved_in_a_file_that_nobody_else_sees(
    sqlite_ledger: SqliteLedger, sqlite_path: Path, replaced: bool
) -> None:
    """Removed, or a backup put in its place: this process still writes to the old one, and alone."""
    opened = sqlite_ledger.perform(Open(reserving(unsent()))).operation
    unattempted = sqlite_ledger.perform(Open(unsent("another"))).operation
    copy = sqlite_path.with_name("copy.db")
    with closing(sqlite3.connect(sqlite_path)) as connection:
        connection.execute("vacuum into ?", (str(copy),))
    for beside in ("", "-wal", "-shm"):
        Path(f"{sqlite_path}{beside}").unlink(missing_ok=True)
    if replaced:
        copy.rename(sqlite_path)
    commands: list[LedgerCommand[Any]] = [Open(reserving(unsent("new"))), Claim(reserving(unattempted))]
    for command in commands:
        with pytest.raises(LedgerError, match="removed or replaced") as caught:
            sqlite_ledger.perform(command)
        assert not caught.value.retryable
    assert isinstance(sqlite_ledger.perform(Record(recorded(opened))), Written), "the write was made: say so"
    if replaced:
        sqlite_ledger.close()
        assert isinstance(sqlite_ledger.perform(Claim(reserving(unattempted))), Written)


class _Interrupted:
    """A lock whose next caller is interrupted right after it has acquired it: Ctrl-C, or a task's time limit."""

    def __init__(self, lock: Any) -> None:
        self._lock, self._again = lock, True

    def acquire(self, **options: Any) -> bool:
        acquired: bool = self._lock.acquire(**options)
        if self._again:
            self._again = False
            raise KeyboardInterrupt
        return acquired

    def release(self) -> None:
        self._lock.release()


def test_L7_a_signal_between_lock_and_statement_leaves_no_writer_behind(
    impatient: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that goes on after it must not find its own file locked, in whatever thread."""
    opened = impatient.perform(Open(unsent())).operation
    pool = impatient._pool
    monkeypatch.setattr(pool, "_writer", _Interrupted(pool._writer))
    with pytest.raises(KeyboardInterrupt):
        impatient.perform(Record(opened))
    with ThreadPoolExecutor(1) as thread:
        assert isinstance(thread.submit(impatient.perform, Record(opened)).result(), Written)


def test_L7_a_lock_that_a_signal_left_behind_is_given_up_with_the_next_write(impatient: SqliteLedger) -> None:
    opened = impatient.perform(Open(unsent())).operation
    impatient._pool._writer.acquire()  # the signal came before anything else could
    assert isinstance(impatient.perform(Record(opened)), Written)
    with ThreadPoolExecutor(1) as thread:
        again = thread.submit(impatient.perform, Record(evolve(opened, version=opened.version + 1)))
        assert isinstance(again.result(), Written)


def test_readers_wait_for_no_writer(impatient: SqliteLedger, sqlite_path: Path) -> None:
    """C1: also whoever opens an operation that is there."""
    opened = impatient.perform(Open(reserving(unsent()))).operation
    with locked(sqlite_path):
        assert impatient.perform(Load(opened.key)).operation == opened
        assert impatient.perform(Open(evolve(opened, nonce=new_nonce()))).operation == opened


def _open(ledger: SqliteLedger, there: Operation) -> datetime | None:
    return ledger.perform(Open(reserving(unsent()))).operation.latest.started


def _claim(ledger: SqliteLedger, there: Operation) -> datetime | None:
    claimed = ledger.perform(Claim(reserving(there)))
    assert isinstance(claimed, Written)
    return claimed.operation.latest.started


def _record(ledger: SqliteLedger, there: Operation) -> datetime | None:
    return ledger.perform(Record(evolve(there, nonce=new_nonce()))).reading.now


@pytest.mark.parametrize("ask", [_open, _claim, _record])
def test_the_clock_is_read_after_the_wait(
    sqlite_ledger: SqliteLedger,
    sqlite_path: Path,
    ask: Callable[[SqliteLedger, Operation], datetime | None],
) -> None:
    """D5: an attempt starts when it is reserved, not when somebody began to wait."""
    there = sqlite_ledger.perform(Open(unsent())).operation
    freed: list[datetime] = []

    def free(connection: sqlite3.Connection) -> None:
        time.sleep(0.3)
        freed.append(datetime.now(UTC))
        connection.execute("rollback")

    with locked(sqlite_path) as connection:
        thread = threading.Thread(target=free, args=(connection,))
        thread.start()
        read = ask(sqlite_ledger, there)
        thread.join()
    assert read is not None
    assert read >= freed[0]


def test_threads_of_one_ledger_do_not_lock_each_other_out(sqlite_path: Path, sqlite_ledger: SqliteLedger) -> None:
    failures: list[BaseException] = []

    def work(name: int) -> None:
        try:
            for n in range(20):
                opened = sqlite_ledger.perform(Open(reserving(unsent(f"{name} {n}")))).operation
                assert isinstance(sqlite_ledger.perform(Record(recorded(opened))), Written)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# -- abandoned attempts ------------------------------------------------------------------------------------------


def test_an_abandoned_attempt_is_marked_when_the_ledger_can_write_again(
    impatient: SqliteLedger, sqlite_ledger: SqliteLedger, sqlite_path: Path
) -> None:
    """L7."""
    opened = impatient.perform(Open(reserving(unsent()))).operation
    with locked(sqlite_path):
        impatient.abandon(opened.key, opened.nonce)
        begun = time.monotonic()
        impatient.perform(Load(opened.key))  # answered, although nothing could be marked
        assert time.monotonic() - begun < 1
        assert sqlite_ledger.perform(Load(opened.key)).holder is Holder.RUNNING
    impatient.perform(Load(unsent().key))
    found = sqlite_ledger.perform(Load(opened.key))
    assert found.holder is Holder.NOBODY
    assert found.operation is not None
    assert found.operation.latest.abandoned is not None


def test_abandoning_does_no_io(impatient: SqliteLedger, sqlite_path: Path) -> None:
    opened = impatient.perform(Open(reserving(unsent()))).operation
    impatient.abandon(opened.key, opened.nonce)
    with closing(sqlite3.connect(sqlite_path)) as connection:
        assert connection.execute("select version, owner is null from corrobo_operation").fetchall() == [(1, 0)]


# -- leaving nothing behind --------------------------------------------------------------------------------------


def _descriptors() -> int:
    return len(os.listdir("/dev/fd"))  # noqa: PTH208


async def test_closing_gives_back_every_descriptor_and_thread(
    sqlite_path: Path, sqlite_ledger: SqliteLedger
) -> None:
    sqlite_ledger.close()
    before, threads = _descriptors(), threading.active_count()
    async with SqliteLedger(sqlite_path) as ledger:
        await asyncio.gather(*(ledger.perform_async(Open(reserving(unsent()))) for _ in range(10)))
        ledger.perform(Load(unsent().key))
        assert _descriptors() > before
    assert _descriptors() == before
    assert threading.active_count() <= threads + 1  # the event loop's own
    assert list(sqlite_path.with_name("effects.db-owners").iterdir()) == []


def test_a_connection_in_use_while_the_ledger_closes_is_closed_afterwards(sqlite_ledger: SqliteLedger) -> None:
    with sqlite_ledger._pool.connection() as connection:
        sqlite_ledger.close()
        connection.execute("select 1").fetchall()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("select 1")


def test_a_ledger_that_is_forgotten_open_gives_up_its_owner(sqlite_ledger: SqliteLedger, sqlite_path: Path) -> None:
    forgotten = SqliteLedger(sqlite_path)
    opened = forgotten.perform(Open(reserving(unsent()))).operation
    assert sqlite_ledger.perform(Load(opened.key)).holder is Holder.RUNNING
    del forgotten
    gc.collect()
    assert sqlite_ledger.perform(Load(opened.key)).holder is Holder.GONE


def test_the_last_to_leave_closes(sqlite_ledger: SqliteLedger, sqlite_path: Path) -> None:
    with SqliteLedger(sqlite_path) as ledger:
        with ledger:
            opened = ledger.perform(Open(reserving(unsent()))).operation
        assert sqlite_ledger.perform(Load(opened.key)).holder is Holder.RUNNING
    assert sqlite_ledger.perform(Load(opened.key)).holder is Holder.GONE
