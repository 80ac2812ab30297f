"""Operations in PostgreSQL, for any number of processes and hosts."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import Self, TypeVar, cast

from psycopg import sql

from corrobo_core.canonical import idempotency_key
from corrobo_core.commands import LedgerCommand
from corrobo_core.errors import LedgerError, LedgerNotMigratedError, StandbyError, UsageError
from corrobo_core.ledgers._forks import watch_forks
from corrobo_core.ledgers._pg_address import Address
from corrobo_core.ledgers._pg_errors import Again, Lost, Patience
from corrobo_core.ledgers._pg_migrate import migrate
from corrobo_core.ledgers._pg_owner import Owner
from corrobo_core.ledgers._pg_pool import AsyncPool
from corrobo_core.ledgers._pg_process import Process
from corrobo_core.ledgers._pg_statements import Query, Statements
from corrobo_core.ledgers._shared import LedgerBase, in_own_thread
from corrobo_core.ledgers.roles import Roles
from corrobo_core.records import OperationKey

__all__ = ["PostgresLedger"]

R = TypeVar("R")

_FOR_A_MARK = timedelta(seconds=1)
_LONGEST_IDENTIFIER = 63  # bytes


class PostgresLedger(LedgerBase):
    """Durable record of operations and attempts in one schema of a PostgreSQL database (13 or newer).

    One object serves a process: its threads share one pool, and each event loop has its own. One more connection is
    the process's owner; nothing else is held while a hook runs. Constructing does no I/O; the first use, or ``with
    ledger:`` and ``async with ledger:``, opens it.

    Args:
        dsn: a URL or keyword string of the primary; may lead through a transaction pooler.
        owner_dsn: the same database without a pooler; ``dsn`` unless given.
        schema: holds the ledger's tables; two schemas are two ledgers.
        namespace: operations of two namespaces never meet, and may have equal ids.
        redact: sees every text of an exception before it is stored.
        pool_size: statements that one pool runs at once.
        unavailable_after: how long a command may wait for a connection and repeat itself.
        accept_duplicates_after_crash: allows ``fsync = off`` and ``synchronous_commit = off``. After a crash of the
            server reservations can be missing then, and their writes are sent once more.

    Raises:
        UsageError, DsnError: an argument is not usable. Not retryable.

    Source: semantics section 6, L1.
    """

    def __init__(
        self,
        dsn: str,
        *,
        owner_dsn: str | None = None,
        schema: str = "corrobo",
        namespace: str = "default",
        redact: Callable[[str], str] | None = None,
        pool_size: int = 16,
        unavailable_after: timedelta = timedelta(seconds=30),
        accept_duplicates_after_crash: bool = False,
    ) -> None:
        super().__init__(namespace, redact)
        if pool_size < 1:
            raise UsageError("PostgresLedger", "pool_size: pass 1 or more")
        if unavailable_after <= timedelta():
            raise UsageError("PostgresLedger", "unavailable_after: pass more than zero")
        self._schema, self._bound = _checked_schema(schema), unavailable_after
        self._address = Address(dsn, schema, "dsn")
        owner_address = self._address if owner_dsn is None else Address(owner_dsn, schema, "owner_dsn")
        owner = Owner(owner_address, schema)
        quoted = sql.Identifier(schema).as_string()
        self._statements = Statements(
            self._address.place, quoted, owner, self._passes, accept_duplicates_after_crash
        )
        self._process = Process(self._address, owner, pool_size)
        watch_forks(self)
        weakref.finalize(self, self._process.close)  # also when it is forgotten open

    def __repr__(self) -> str:
        return f"<PostgresLedger {self._address.place.name}, namespace {self.namespace}>"

    # -- schema -------------------------------------------------------------------------------------------------

    def migrate(self, *, roles: Roles | None = None) -> None:
        """Make the schema and its tables, or bring them to this release. Does nothing where nothing is missing.

        Many processes may call it at once, also on an empty database and through a pooler. The role must be allowed
        to create the schema, or to create tables in it.

        Args:
            roles: grants the runner's and the reviewer's role what they need and no more; from then on a login that
                owns the tables is refused (R1). Without, one login does everything.

        Raises:
            LedgerUnavailable: the server did not answer, or another migration took too long. Retryable.
            LedgerTooNewError: the schema was migrated by a newer release. Not retryable.
            StandbyError, LedgerError: the server refused. Not retryable.

        Source: semantics C12.
        """
        migrate(self._address, self._schema, self._bound, roles)

    async def migrate_async(self, *, roles: Roles | None = None) -> None:
        """`migrate`, without stopping the event loop."""
        await asyncio.to_thread(self.migrate, roles=roles)

    # -- commands -----------------------------------------------------------------------------------------------

    def perform(self, command: LedgerCommand[R], /) -> R:
        """Answer one command with one statement, repeated while there is hope (C9).

        Raises:
            LedgerUnavailable: the database did not answer within ``unavailable_after``. Retryable.
            LedgerNotMigratedError: call `migrate` once. Not retryable.
            LedgerTooNewError: upgrade the library. Not retryable.
            DurabilityError, StandbyError, OwnerConnectionError: this database cannot be relied on. Not retryable.
            LedgerError: PostgreSQL refused in another way. Not retryable.

        Source: semantics C1, C2, C6, C9.
        """
        if self._marks_before(command):
            self._mark_abandoned()
        reply = self._repeat(self._statements.query(command), Patience(self._address.place, self._bound))
        return cast("R", reply)

    async def perform_async(self, command: LedgerCommand[R], /) -> R:
        """`perform`, on the running event loop and its own pool."""
        if self._marks_before(command):
            await self._mark_abandoned_async()
        query = self._statements.query(command)
        reply = await self._repeat_async(query, Patience(self._address.place, self._bound))
        return cast("R", reply)

    def _repeat(self, query: Query, patience: Patience) -> object:
        first: float | None = None
        while True:
            pool = self._process.pool()
            try:
                own = self._process.owner.ensure()
                wire = pool.take(patience.left)
                try:
                    reply = wire.exchange(query.statement, query.values(own), patience.for_a_reply)
                finally:
                    first = wire.sent if first is None else first
                    pool.give(wire)
                return query.answer(reply, first, own)
            except StandbyError:
                pool.drop_idle()  # a new connection may lead to the primary
                raise
            except Again as failure:
                if isinstance(failure, Lost):
                    pool.drop_idle()
                pause = patience.pause(failure)
            if pause:
                time.sleep(pause)

    async def _repeat_async(self, query: Query, patience: Patience) -> object:
        first: float | None = None
        while True:
            pool = self._process.async_pool()
            try:
                own = self._process.owner.key
                if own is None:
                    own = await self._own_async(pool)
                wire = await pool.take(patience.left)
                try:
                    reply = await wire.exchange(query.statement, query.values(own), patience.for_a_reply)
                finally:
                    first = wire.sent if first is None else first
                    pool.give(wire)
                return query.answer(reply, first, own)
            except StandbyError:
                pool.drop_idle()  # a new connection may lead to the primary
                raise
            except Again as failure:
                if isinstance(failure, Lost):
                    pool.drop_idle()
                pause = patience.pause(failure)
            await asyncio.sleep(pause)

    async def _own_async(self, pool: AsyncPool) -> int:
        async with pool.opening:
            return await in_own_thread(self._process.owner.ensure)

    def idempotency_key(self, key: OperationKey, /) -> str:
        """The operation's key for the provider (I5)."""
        owner = self._process.owner
        if owner.ledger_id is None:
            self._ensure_owner()
        assert owner.ledger_id is not None
        return idempotency_key(owner.ledger_id, key.namespace, key.type, key.operation_id)

    # -- attempts given up (L7) -----------------------------------------------------------------------------------

    def _mark_abandoned(self) -> None:
        """Mark them; what cannot be marked now stays in the queue."""
        while item := self._abandoned.take():
            try:
                self._repeat(self._statements.abandonment(*item), self._no_patience())
            except BaseException as error:
                self._abandoned.add(*item)
                if not isinstance(error, LedgerError):
                    raise
                return

    async def _mark_abandoned_async(self) -> None:
        while item := self._abandoned.take():
            try:
                await self._repeat_async(self._statements.abandonment(*item), self._no_patience())
            except BaseException as error:
                self._abandoned.add(*item)
                if not isinstance(error, LedgerError):
                    raise
                return

    def _no_patience(self) -> Patience:
        """Whoever asks something else is waiting meanwhile, and the next pass tries again."""
        return Patience(self._address.place, _FOR_A_MARK, once=True)

    # -- opening and closing ------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._process.enter()
        try:
            self._begin()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    async def __aenter__(self) -> Self:
        self._process.enter()
        try:
            await asyncio.to_thread(self._begin)
        except BaseException:
            self._leave()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._abandoned:
            await self._mark_abandoned_async()
        self._process.close_async_pool()
        await in_own_thread(self._leave)

    def _begin(self) -> None:
        """What cannot work is said at the start. A ledger that is not migrated can still be."""
        with suppress(LedgerNotMigratedError):
            self._ensure_owner()

    def _ensure_owner(self) -> None:
        patience = Patience(self._address.place, self._bound)
        while True:
            try:
                self._process.owner.ensure()
                return
            except Again as failure:
                pause = patience.pause(failure)
            time.sleep(pause)

    def _leave(self) -> None:
        if self._process.leave():
            self.close()

    def close(self) -> None:
        """Mark what was abandoned, close all connections, and give up the owner.

        Attempts that are still reserved by this process count as given up from now on. A later use opens again.
        """
        if self._abandoned:
            self._mark_abandoned()
        self._process.close()

    # -- forks --------------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """No owner session may be half open (C11)."""
        self._process.owner.before_fork()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._process.owner.after_fork_in_parent()

    def after_fork_in_child(self) -> None:
        """Begin anew: the parent's passes, attempts, connections and lock are not this process's."""
        self._passes.clear()
        self._abandoned.clear()
        self._process.after_fork_in_child()


def _checked_schema(schema: object) -> str:
    if not isinstance(schema, str) or not schema or "\x00" in schema:
        raise UsageError("PostgresLedger", "schema: pass the name of a schema, as text")
    if "%" in schema or "$$" in schema:  # they mean something inside of statements, also in a quoted name
        raise UsageError("PostgresLedger", "schema: pass a name without % and $$")
    if len(schema.encode("utf-8", "replace")) > _LONGEST_IDENTIFIER:
        raise UsageError(
            "PostgresLedger", f"schema: pass at most {_LONGEST_IDENTIFIER} bytes; PostgreSQL cuts the rest"
        )
    return schema
