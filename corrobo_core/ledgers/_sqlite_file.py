"""How an SQLite ledger's file is opened, what is checked then, and what SQLite's errors mean.

Source: semantics C10, C11, C12.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from corrobo_core.errors import (
    DurabilityError,
    LedgerError,
    LedgerNotMigratedError,
    LedgerTooNewError,
    LedgerUnavailable,
)
from corrobo_core.ledgers._owner_file import network_filesystem
from corrobo_core.ledgers._shared import migrations

__all__ = ["SqliteFile", "Synchronous", "as_stored", "clock"]

T = TypeVar("T")

Synchronous: TypeAlias = Literal["OFF", "NORMAL", "FULL", "EXTRA"]

LEVELS: dict[Synchronous, int] = {"OFF": 0, "NORMAL": 1, "FULL": 2, "EXTRA": 3}
_PAUSE = 0.005  # seconds
_OLDEST_SQLITE = (3, 37, 0)  # RETURNING, and strict tables

# Somebody else holds the lock, the disk is full, files are used up: it can be over by itself.
_PASSING = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PROTOCOL,
    }
)


def clock() -> str:
    """The ledger's clock: this host's wall clock, ISO 8601 in UTC; all processes of one file read the same."""
    return as_stored(datetime.now(UTC))


def as_stored(time: datetime) -> str:
    """A time as the ledger's clock writes it, so that texts compare like times."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True)
class SqliteFile:
    """One ledger file.

    Attributes:
        path: absolute.
        synchronous: what SQLite syncs at each commit.
        wait: seconds that a statement may wait for another writer.
    """

    path: Path
    synchronous: Synchronous
    wait: float

    @property
    def name(self) -> str:
        """For error texts."""
        return f"SQLite ledger {self.path}"

    @property
    def owners(self) -> Path:
        """The folder of the owners' files: the same one by whatever link the ledger was reached."""
        real = self.path.resolve()
        return real.with_name(real.name + "-owners")

    @property
    def inode(self) -> tuple[int, int] | None:
        """Which file lies at the path now; None: none."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    # -- opening ------------------------------------------------------------------------------------------------

    def connect(self) -> tuple[sqlite3.Connection, str]:
        """A connection to a migrated ledger, and the ledger's id.

        Raises:
            LedgerNotMigratedError, LedgerTooNewError, DurabilityError, LedgerError: see there. Not retryable.
            sqlite3.Error: the file could not be opened; see `named`.
        """
        if not self.path.exists():
            raise self._not_migrated("there is none yet")
        return self.patiently(self._connect)

    def _connect(self) -> tuple[sqlite3.Connection, str]:
        connection = self.open("rw")
        try:
            ledger_id = self._checked_id(connection)
            # A ledger is in WAL mode since it was migrated; to enter it anew needs the file for oneself.
            if connection.execute("pragma journal_mode").fetchone() != ("wal",):
                self.enter_wal(connection)
        except BaseException:
            connection.close()
            raise
        return connection, ledger_id

    def open(self, mode: Literal["rw", "rwc"]) -> sqlite3.Connection:
        """A connection that syncs every commit; what the file holds is not looked at."""
        if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
            raise LedgerError(
                self.name, f"SQLite {sqlite3.sqlite_version} is too old; 3.37 is the oldest that works"
            )
        self._refuse_network()
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode={mode}",
            uri=True,
            timeout=self.wait,
            isolation_level=None,  # autocommit: every statement is its own transaction
            check_same_thread=False,
        )
        try:
            self._sync_commits(connection)
            connection.create_function("corrobo_now", 0, clock)
        except BaseException:
            connection.close()
            raise
        return connection

    def _refuse_network(self) -> None:
        kind = network_filesystem(self.path.resolve().parent)
        if kind:
            raise LedgerError(
                self.name,
                f"it is on a network file system ({kind}), where SQLite's locks do not hold between hosts."
                " Use a local disk, or PostgreSQL",
            )

    def _sync_commits(self, connection: sqlite3.Connection) -> None:
        """Set what a commit means, and believe only what reads back (C10)."""
        connection.execute(f"pragma synchronous = {self.synchronous}").fetchall()
        connection.execute("pragma fullfsync = on").fetchall()  # macOS: plain fsync ends in the drive's cache
        (level,) = connection.execute("pragma synchronous").fetchone()
        if level < LEVELS[self.synchronous]:
            raise DurabilityError(
                self.name,
                f"synchronous stays {level} where {self.synchronous} was asked for: a power failure could take back"
                " a confirmed reservation. Use another build of SQLite",
            )

    def enter_wal(self, connection: sqlite3.Connection) -> None:
        """Let readers and writers not wait for each other; the file remembers it.

        Raises:
            DurabilityError: the folder cannot hold a WAL. Not retryable.
        """
        (mode,) = connection.execute("pragma journal_mode = wal").fetchone()
        if mode != "wal":
            raise DurabilityError(self.name, f"its journal mode stays {mode!r}: this folder cannot hold a WAL")

    def patiently(self, action: Callable[[], T]) -> T:
        """Do something again while the file is locked: some locks SQLite does not wait for by itself."""
        until = time.monotonic() + self.wait
        while True:
            try:
                return action()
            except sqlite3.Error as error:
                if not _is_busy(error) or time.monotonic() > until:
                    raise
            time.sleep(_PAUSE)

    # -- the schema ---------------------------------------------------------------------------------------------

    def schema(self, connection: sqlite3.Connection) -> tuple[int, str] | None:
        """Version and ledger id; None where nothing was migrated yet."""
        there = connection.execute("select 1 from sqlite_master where name = 'corrobo_ledger'").fetchall()
        if not there:
            return None
        version, ledger_id = connection.execute("select version, id from corrobo_ledger").fetchone()
        return version, ledger_id

    def _checked_id(self, connection: sqlite3.Connection) -> str:
        newest = len(migrations("sqlite"))
        version, ledger_id = self.schema(connection) or (0, "")
        if version < newest:
            raise self._not_migrated(f"it is at version {version}, and this release needs {newest}")
        self.refuse_newer(version)
        return ledger_id

    def _not_migrated(self, why: str) -> LedgerNotMigratedError:
        return LedgerNotMigratedError(self.name, f"no schema to work with ({why}). Call ledger.migrate() once")

    def refuse_newer(self, version: int) -> None:
        """Refuse a schema that this release does not know.

        Raises:
            LedgerTooNewError: upgrade the library. Not retryable.
        """
        newest = len(migrations("sqlite"))
        if version > newest:
            raise LedgerTooNewError(
                self.name, f"its schema is version {version}, this release knows {newest}. Upgrade corrobo-core"
            )

    # -- errors -------------------------------------------------------------------------------------------------

    def named(self, error: sqlite3.Error) -> LedgerError:
        """The ledger's error for one of SQLite's."""
        code = _code(error)
        what = f"{error} ({getattr(error, 'sqlite_errorname', type(error).__name__)})"
        if _is_busy(error):
            return self.busy()
        if code == sqlite3.SQLITE_CANTOPEN and not self._reachable():
            return LedgerError(self.name, f"it cannot be opened: {what}. Look at the path and its permissions")
        if code in _PASSING:
            return LedgerUnavailable(self.name, f"SQLite did not answer: {what}")
        return LedgerError(self.name, f"SQLite refused: {what}")

    def busy(self) -> LedgerUnavailable:
        """Another writer kept the file locked for longer than this ledger waits."""
        return LedgerUnavailable(self.name, f"another writer kept it locked; it waits {self.wait:g} s")

    def _reachable(self) -> bool:
        wanted = os.R_OK | os.W_OK
        return os.access(self.path.parent, wanted | os.X_OK) and (
            not self.path.exists() or os.access(self.path, wanted)
        )


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", -1) & 0xFF  # without the extended part


def _is_busy(error: sqlite3.Error) -> bool:
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
