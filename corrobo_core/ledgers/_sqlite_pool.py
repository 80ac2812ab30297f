"""The connections of one process to one SQLite ledger, each lent to one thread at a time."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator

from corrobo_core.errors import LedgerError, UsageError
from corrobo_core.ledgers._sqlite_file import SqliteFile

__all__ = ["Pool"]

_MAX_IDLE = 8
_inherited: list[sqlite3.Connection] = []


class Pool:
    """A stack of connections.

    They belong to no thread, so that threads that end leave none behind. Before a fork all of them are closed:
    SQLite remembers in the process's memory which locks the process holds, and a child that inherited this would
    believe that it holds locks it does not hold.

    Attributes:
        ledger_id: the ledger's random id, once a connection was opened.
    """

    def __init__(self, file: SqliteFile) -> None:
        self.ledger_id: str | None = None
        self._file = file
        self._idle: list[sqlite3.Connection] = []
        self._generation = 0
        self._unusable = False
        self._begin()

    def _begin(self) -> None:
        self._guard = threading.Condition()
        self._inode: tuple[int, int] | None = None
        # It knows its thread: a signal's handler can raise right after it was acquired, and it must not stay so.
        self._writer = threading.RLock()
        self._users = 0
        self._forking = False

    # -- lending ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """While this lasts, no fork happens."""
        with self._guard:
            while self._forking:
                self._guard.wait()
            self._users += 1
        try:
            yield
        finally:
            with self._guard:
                self._users -= 1
                self._guard.notify_all()

    @contextlib.contextmanager
    def connection(self, wait: float | None = None) -> Iterator[sqlite3.Connection]:
        """Lend a connection. SQLite's errors become the ledger's, and close it.

        Args:
            wait: seconds that its statements wait for other processes' writers; the file's own if None.
        """
        with self.in_use():
            generation = self._generation
            lent = self._take() or self._open()
            sound = False
            try:
                if wait is not None:
                    lent.execute(f"pragma busy_timeout = {wait * 1000:.0f}").fetchall()
                yield lent
                sound = wait is None  # one that waits otherwise is not lent again
            except sqlite3.Error as error:
                raise self._file.named(error) from error
            finally:
                if not (sound and self._put_back(lent, generation)):
                    lent.close()

    def _take(self) -> sqlite3.Connection | None:
        with self._guard:
            return self._idle.pop() if self._idle else None

    def _put_back(self, lent: sqlite3.Connection, generation: int) -> bool:
        with self._guard:
            wanted = generation == self._generation and len(self._idle) < _MAX_IDLE
            if wanted:
                self._idle.append(lent)
            return wanted

    def _open(self) -> sqlite3.Connection:
        if self._unusable:
            raise UsageError(self._file.name, "it was in use when this process was forked; make a new one")
        try:
            connection, self.ledger_id = self._file.connect()
        except sqlite3.Error as error:
            raise self._file.named(error) from error
        self._inode = self._inode or self._file.inode
        return connection

    def check_in_place(self) -> None:
        """Before a reservation: these connections still lead to the file that everybody else opens (L1).

        Raises:
            LedgerError: it was removed or replaced. Not retryable.
        """
        if self._inode is not None and self._file.inode != self._inode:
            raise LedgerError(
                self._file.name,
                "the file was removed or replaced while it was in use: nobody else would see what is recorded in"
                " the old one. Look at what has happened to it, and start this process anew",
            )

    @contextlib.contextmanager
    def writing(self, wait: float | None = None) -> Iterator[None]:
        """Stand in line with this process's writers. SQLite's own waiting is polling, and not fair.

        Args:
            wait: seconds to wait at most; the file's own if None.
        """
        try:
            if not self._writer.acquire(timeout=self._file.wait if wait is None else wait):
                raise self._file.busy()
            yield
        finally:
            with contextlib.suppress(RuntimeError):  # not this thread's any more, or never
                while True:
                    self._writer.release()

    def close(self) -> None:
        """Close all that are idle; what is lent is closed when it comes back."""
        with self._guard:
            self._generation += 1
            self._inode = None
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    # -- forks --------------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Let statements finish, lend nothing more, close everything."""
        with self._guard:
            self._forking = True
            # A writer waits in line, then for other processes, then writes.
            self._guard.wait_for(lambda: not self._users, timeout=2 * self._file.wait + 1)
        if not self._users:
            self.close()

    def after_fork_in_parent(self) -> None:
        """Lend again."""
        with self._guard:
            self._forking = False
            self._guard.notify_all()

    def after_fork_in_child(self) -> None:
        """Begin without connections. Where some were inherited after all, refuse: they cannot be used or closed."""
        if self._users or self._idle:
            self._unusable = True
            _inherited.extend(self._idle)
            self._idle = []
        self._begin()
