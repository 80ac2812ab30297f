"""The owner: one session of this process that holds one advisory lock, for as long as the process lives.

Whoever wants to know whether an owner lives asks whether its key can be locked; no timer, no heartbeat.

Source: semantics C4, C7, C11.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import sql

from corrobo_core.errors import LedgerTooNewError, OwnerConnectionError
from corrobo_core.ledgers._pg_address import Address
from corrobo_core.ledgers._pg_errors import Lost, refusal
from corrobo_core.ledgers._pg_roles import check_login
from corrobo_core.ledgers._pg_wire import leave_to_parent
from corrobo_core.ledgers._shared import migrations, new_owner_key

__all__ = ["Owner", "check_version"]

# No pause of this process may end the session, and a host that has vanished must be noticed within seconds.
_SETTINGS = {
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_session_timeout": "0",
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "11000",
}


class Owner:
    """The owner of one ledger object in one process.

    Args:
        address: leads to the server itself, not to a pooler.
        schema: where the ledger's version is kept.

    Attributes:
        key: of the lock that is held, or None.
        keys: every key that this process has had: what it reserved under an earlier one is still its own.
        ledger_id: the ledger's random id, once a session was opened.
    """

    def __init__(self, address: Address, schema: str) -> None:
        self._address, self._schema = address, schema
        self._session: psycopg.Connection[Any] | None = None
        self._lock = threading.Lock()
        self.key: int | None = None
        self.keys: set[int] = set()
        self.ledger_id: str | None = None

    def ensure(self) -> int:
        """The key of a lock that is held, as far as is known; opens a session where there is none.

        Raises:
            Lost: the server did not let us in.
            OwnerConnectionError, StandbyError, LedgerNotMigratedError, LedgerTooNewError: refused. Not retryable.
        """
        key = self.key
        if key is not None:
            return key
        with self._lock:
            if self.key is None:
                self._begin()
            assert self.key is not None
            return self.key

    def lost(self, key: int) -> None:
        """A statement found that the lock of ``key`` is not held: the next use takes a new one (C11)."""
        if self.key != key:  # somebody else found out first, and may be waiting for the server now
            return
        with self._lock:
            if self.key == key:
                self._end()

    def close(self) -> None:
        """Give the lock up."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        session, self._session, self.key = self._session, None, None
        if session is not None:
            session.close()

    def _begin(self) -> None:
        session = self._address.connect()
        try:
            self.ledger_id = self._checked(session)
            key = self._locked(session)
        except psycopg.Error as error:
            session.close()
            diagnosis = error.diag.message_primary or str(error)
            raise refusal(self._address.place, error.sqlstate or "", diagnosis) from None
        except BaseException:
            session.close()
            raise
        self.keys.add(key)
        self._session, self.key = session, key

    def _checked(self, session: psycopg.Connection[Any]) -> str:
        """Refuse poolers before anything is set or locked: through one, both would outlive this process."""
        backend, standby = _one(session.execute("select pg_backend_pid(), pg_is_in_recovery()"))
        if backend != session.info.backend_pid:
            raise OwnerConnectionError(
                self._address.place.name,
                "the owner connection goes through a connection pooler, where a lock outlives its process; "
                "pass owner_dsn= with the database's direct address (statements may keep the pooler)",
            )
        if standby:
            raise self._address.place.standby()
        ledger_id = check_version(session, self._address, self._schema)
        check_login(session, self._address, self._schema)
        return ledger_id

    def _locked(self, session: psycopg.Connection[Any]) -> int:
        session.execute(
            "select set_config(name, value, false) from unnest(%s::text[], %s::text[]) as wanted (name, value)"
            " join pg_settings using (name)",  # what this server does not know is left out
            (list(_SETTINGS), list(_SETTINGS.values())),
        )
        while True:
            key = new_owner_key()
            (free,) = _one(session.execute("select pg_try_advisory_lock(%s::bigint)", (key,)))
            if free:
                return key

    # -- forks --------------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """No session may be in the making while the process is copied: its socket would be inherited unseen."""
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Begin without an owner; the parent's lock stays the parent's."""
        session, self._session, self.key = self._session, None, None
        self.keys = set()
        self._lock = threading.Lock()
        if session is not None:
            with suppress(OSError):
                leave_to_parent(session)


def check_version(session: psycopg.Connection[Any], address: Address, schema: str) -> str:
    """The ledger's id, if its schema is the one that this release works with.

    Raises:
        LedgerNotMigratedError, LedgerTooNewError: it is not. Not retryable.
        psycopg.Error: the server refused.
    """
    newest = len(migrations("postgres"))
    query = sql.SQL("select version, id from {}.ledger").format(sql.Identifier(schema))
    row = session.execute(query).fetchone()
    if row is None or row[0] < newest:
        found = f"schema {schema!r} is at version {row[0] if row else 0}, and this release needs {newest}"
        raise address.place.not_migrated(found)
    if row[0] > newest:
        found = f"schema {schema!r} is at version {row[0]}, and this release knows {newest}; upgrade corrobo-core"
        raise LedgerTooNewError(address.place.name, found)
    ledger_id: str = row[1]
    return ledger_id


def _one(cursor: psycopg.Cursor[Any]) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = cursor.fetchone()
    if row is None:
        raise Lost("the server answered with no row")
    return row
