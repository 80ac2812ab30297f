"""Operations in one SQLite file, for the processes of one host."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

from corrobo_core.canonical import idempotency_key
from corrobo_core.commands import LedgerCommand
from corrobo_core.errors import DurabilityError, LedgerNotMigratedError, UsageError
from corrobo_core.ledgers._forks import watch_forks
from corrobo_core.ledgers._owner_file import Owner
from corrobo_core.ledgers._shared import LedgerBase, in_own_thread
from corrobo_core.ledgers._sqlite_commands import Commands
from corrobo_core.ledgers._sqlite_file import LEVELS, SqliteFile, Synchronous
from corrobo_core.ledgers._sqlite_migrate import migrate
from corrobo_core.ledgers._sqlite_pool import Pool
from corrobo_core.records import OperationKey

__all__ = ["SqliteLedger"]

R = TypeVar("R")

_PATIENCE_FOR_MARKS = 0.1  # seconds: whoever asks something else waits meanwhile
_THREADS = 4  # for async callers; SQLite writes one at a time in any case


class SqliteLedger(LedgerBase):
    """Durable record of operations and attempts in one file.

    Many processes of one host may use the file at once, each by its own `SqliteLedger`; threads and event loops
    of one process share one. Constructing does no I/O; the first use, or ``with ledger:``, opens it.

    Args:
        path: the file, on a local disk. Beside it appear ``-wal``, ``-shm`` and a folder ``-owners``.
        namespace: operations of two namespaces never meet, and may have equal ids.
        redact: sees every text of an exception before it is stored.
        lock_timeout: how long a statement may wait for other writers of the file.
        synchronous: what SQLite syncs at each commit: ``FULL`` or ``EXTRA``.
        accept_duplicates_after_crash: allows ``NORMAL`` and ``OFF``. After a power failure reservations can be
            missing then, and their writes are sent once more.

    Raises:
        UsageError: an argument is not usable. Not retryable.
        DurabilityError: less than ``FULL``, and duplicates not accepted. Not retryable.

    Source: semantics section 6, L1, C10, C11.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        namespace: str = "default",
        redact: Callable[[str], str] | None = None,
        lock_timeout: timedelta = timedelta(seconds=5),
        synchronous: Synchronous = "FULL",
        accept_duplicates_after_crash: bool = False,
    ) -> None:
        super().__init__(namespace, redact)
        if lock_timeout <= timedelta():
            raise UsageError("SqliteLedger", "lock_timeout: pass more than zero")
        file = SqliteFile(_checked_path(path), synchronous, lock_timeout.total_seconds())
        _check_durability(file, accept_duplicates_after_crash)
        self._file, self._pool, self._owner = file, Pool(file), Owner(lambda: file.owners)
        self._commands = Commands(file, self._pool, self._owner, self._passes)
        self._lock = threading.Lock()
        self._users = 0
        self._threads: ThreadPoolExecutor | None = None
        watch_forks(self)
        weakref.finalize(self, _let_go, self._pool, self._owner)  # also when it is forgotten open

    def __repr__(self) -> str:
        return f"SqliteLedger({str(self._file.path)!r}, namespace={self.namespace!r})"

    # -- schema -------------------------------------------------------------------------------------------------

    def migrate(self) -> None:
        """Make the file and its tables, or bring them to this release. Does nothing where nothing is missing.

        Many processes may call it at once.

        Raises:
            LedgerUnavailable: another process kept the file locked. Retryable.
            LedgerTooNewError: the file was migrated by a newer release. Not retryable.
            LedgerError: the folder is missing or not writable, or on a network file system. Not retryable.

        Source: semantics C12.
        """
        with self._pool.in_use():
            migrate(self._file)

    # -- commands -----------------------------------------------------------------------------------------------

    def perform(self, command: LedgerCommand[R], /) -> R:
        """Answer one command with one transaction.

        Raises:
            LedgerUnavailable: the file stayed locked, the disk is full or did not answer. Retryable.
            LedgerNotMigratedError: call `migrate` once. Not retryable.
            LedgerTooNewError: upgrade the library. Not retryable.
            DurabilityError: this SQLite cannot promise that commits stay. Not retryable.
            LedgerError: SQLite refused in another way. Not retryable.

        Source: semantics C1, C2, C6.
        """
        if self._marks_before(command):
            self._commands.mark(self._abandoned, wait=_PATIENCE_FOR_MARKS)
        return cast("R", self._commands.answer(command))

    async def perform_async(self, command: LedgerCommand[R], /) -> R:
        """`perform`, in one of this ledger's few threads."""
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_THREADS, "corrobo-sqlite")
            threads = self._threads
        return await asyncio.get_running_loop().run_in_executor(threads, self.perform, command)

    def idempotency_key(self, key: OperationKey, /) -> str:
        """The operation's key for the provider (I5)."""
        ledger_id = self._pool.ledger_id
        if ledger_id is None:
            with self._pool.connection():
                ledger_id = self._pool.ledger_id
        assert ledger_id is not None
        return idempotency_key(ledger_id, key.namespace, key.type, key.operation_id)

    # -- opening and closing ------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        with self._lock:
            self._users += 1
        try:
            # What cannot work is said at the start. A ledger that is not migrated can still be.
            with suppress(LedgerNotMigratedError), self._pool.connection():
                pass
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await in_own_thread(self._leave)

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            last = self._users == 0
        if last:
            self.close()

    def close(self) -> None:
        """Mark what was abandoned, close all connections and threads, and give up the owner.

        Attempts that are still reserved by this process count as given up from now on. A later use opens again.
        """
        with self._lock:
            threads, self._threads = self._threads, None
        if threads:
            threads.shutdown()
        if self._abandoned:
            self._commands.mark(self._abandoned, wait=self._file.wait)
        _let_go(self._pool, self._owner)

    # -- forks --------------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Let running statements end, and close the connections (C11)."""
        self._pool.before_fork()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._pool.after_fork_in_parent()

    def after_fork_in_child(self) -> None:
        """Begin anew: the parent's passes, attempts and lock are not this process's."""
        self._lock = threading.Lock()
        self._threads = None
        self._passes.clear()
        self._abandoned.clear()
        self._owner.after_fork_in_child()
        self._pool.after_fork_in_child()


def _let_go(pool: Pool, owner: Owner) -> None:
    pool.close()
    owner.release()


def _checked_path(path: str | PathLike[str]) -> Path:
    text = fspath(path)
    if not isinstance(text, str) or not text or "\x00" in text:
        raise UsageError("SqliteLedger", "path: pass the path of a file, as text")
    if text == ":memory:" or text.startswith("file:"):
        raise UsageError(
            "SqliteLedger",
            f"path: {text!r} is no file that survives a crash. Pass the path of one, or use MemoryLedger in tests",
        )
    return Path(text).absolute()


def _check_durability(file: SqliteFile, accepted: bool) -> None:
    level = LEVELS.get(file.synchronous)
    if level is None:
        raise UsageError("SqliteLedger", f"synchronous: pass one of {', '.join(LEVELS)}")
    if level < LEVELS["FULL"] and not accepted:
        raise DurabilityError(
            file.name,
            f"with synchronous={file.synchronous} a power failure can take back a confirmed reservation, and its"
            " write is sent twice. Use FULL, or say accept_duplicates_after_crash=True",
        )
