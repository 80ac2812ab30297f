"""One statement at a time on one PostgreSQL connection, synchronously or on an event loop.

psycopg connects; statements then go straight to its libpq wrapper, for three reasons: waiting for a reply has a
bound even if the server's host has vanished, the stopwatch is read next to the system calls (L9), and it costs a
third of the processor time. Parameters and columns travel in binary form: no quoting, no date style, no time zone,
and text with NUL is refused by the server instead of being cut. Statements are unprepared, and each is its own
transaction (C7).
"""

from __future__ import annotations

import asyncio
import os
import select
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import psycopg
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from corrobo_core.clocks import stopwatch
from corrobo_core.errors import StandbyError
from corrobo_core.ledgers._pg_errors import Lost, Place, refusal

__all__ = ["AsyncWire", "Columns", "Reply", "SyncWire", "Wire", "leave_to_parent"]

Columns: TypeAlias = "Sequence[bytes | None]"
_BINARY = 1


class Reply(NamedTuple):
    """The first row, or None, and the stopwatch when the reply had been read."""

    row: Columns | None
    received: float


class Wire:
    """What both kinds share: sending, and reading what has arrived. No waiting.

    Attributes:
        broken: the connection must not be used again.
        sent: stopwatch before the latest statement was sent.
    """

    def __init__(self, connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], place: Place) -> None:
        self._connection = connection  # psycopg warns about connections that are forgotten while open
        self._pg: PGconn = connection.pgconn
        self._fd = self._pg.socket
        self._place = place
        self._result: PGresult | None = None
        self.broken = False
        self.sent = 0.0

    def _send(self, statement: bytes, values: Columns) -> bool:
        """Begin; True once everything has left."""
        self._result = None
        self.sent = stopwatch()
        try:
            self._pg.send_query_params(statement, values, None, (_BINARY,) * len(values), _BINARY)
            return self._pg.flush() == 0
        except psycopg.OperationalError as error:
            raise self._lost(error) from None

    def _flush(self) -> bool:
        try:
            return self._pg.flush() == 0
        except psycopg.OperationalError as error:
            raise self._lost(error) from None

    def _arrived(self) -> PGresult | None:
        """Take in what has arrived; the result once it is complete, its end included (L1)."""
        pg = self._pg
        try:
            pg.consume_input()
            while not pg.is_busy():
                result = pg.get_result()
                if result is None:
                    return self._result
                self._result = result
        except psycopg.OperationalError as error:
            if self._result is not None and self._result.status == ExecStatus.FATAL_ERROR:
                self.broken = True
                return self._result  # the server's last words say more
            raise self._lost(error) from None
        return None

    def _row(self, result: PGresult) -> Columns | None:
        if result.status == ExecStatus.TUPLES_OK:
            if not result.ntuples:
                return None
            return [result.get_value(0, column) for column in range(result.nfields)]
        if result.status == ExecStatus.COMMAND_OK:
            return None
        raise self._refused(result)

    def _refused(self, result: PGresult) -> Exception:
        if self._pg.status != ConnStatus.OK:
            self.broken = True
        sqlstate = (result.error_field(DiagnosticField.SQLSTATE) or b"").decode("ascii", "replace")
        message = (result.error_field(DiagnosticField.MESSAGE_PRIMARY) or result.error_message).decode(
            "utf-8", "replace"
        )
        failure = refusal(self._place, sqlstate, message)
        if isinstance(failure, Lost | StandbyError):
            self.broken = True  # the next one may lead to a server that answers, or to the primary
        return failure

    def _lost(self, error: BaseException | str) -> Lost:
        self.broken = True
        return Lost(self._place.clean(error) or "the server closed the connection")

    @property
    def reusable(self) -> bool:
        """Nothing is wrong with the connection, and no statement is under way on it."""
        return not self.broken and self._pg.transaction_status == TransactionStatus.IDLE

    def close(self) -> None:
        """End the session."""
        self.broken = True
        self._pg.finish()

    def leave_to_parent(self) -> None:
        """In a forked child: let go of the socket without a word to the server (C11)."""
        self.broken = True
        leave_to_parent(self._connection)


_inherited: list[object] = []


def leave_to_parent(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """In a forked child: drop an inherited connection so that the parent's session lives on.

    The descriptor is pointed at ``/dev/null``; what libpq still writes, such as its farewell, goes there.
    """
    pg = connection.pgconn
    if pg.status != ConnStatus.OK:
        return
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, pg.socket, inheritable=False)
    os.close(null)
    if pg.transaction_status == TransactionStatus.IDLE:
        pg.finish()
    else:  # a thread that did not come along was using it: its memory is not to be touched
        _inherited.append(connection)


class SyncWire(Wire):
    """For threads; used by one at a time."""

    def __init__(self, connection: psycopg.Connection[Any], place: Place) -> None:
        super().__init__(connection, place)
        self._readable = select.poll()
        self._readable.register(self._fd, select.POLLIN)

    def exchange(self, statement: bytes, values: Columns, timeout: float) -> Reply:
        """Send a statement and read its reply to the end.

        Args:
            statement: with ``$1`` and so on.
            values: in binary form.
            timeout: seconds to wait for the reply.

        Raises:
            Again: no answer; what the statement did is unknown to the caller.
            LedgerError: refused for good.
        """
        until = time.monotonic() + timeout
        if not self._send(statement, values):
            self._flush_all(until)
        result = None
        while result is None:
            self._wait(self._readable, until)
            result = self._arrived()
        received = stopwatch()
        return Reply(self._row(result), received)

    def _flush_all(self, until: float) -> None:
        """A large intent does not fit into the socket's buffer. The server may talk meanwhile."""
        both = select.poll()
        both.register(self._fd, select.POLLIN | select.POLLOUT)
        while not self._flush():
            self._wait(both, until)
            if select.select([self._fd], [], [], 0)[0]:
                self._arrived()

    def _wait(self, poller: select.poll, until: float) -> None:
        if not poller.poll(max(until - time.monotonic(), 0) * 1000):
            raise self._lost("no reply in time")


class AsyncWire(Wire):
    """For one event loop; used by one task at a time.

    Its socket is watched as long as it is open, so that an idle connection that the server closes is noticed.
    """

    def __init__(
        self, connection: psycopg.AsyncConnection[Any], place: Place, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(connection, place)
        self._loop = loop
        self._waiting: asyncio.Future[PGresult] | None = None
        self._until = 0.0  # loop time
        self._writing = False
        loop.add_reader(self._fd, self._on_readable)

    async def exchange(self, statement: bytes, values: Columns, timeout: float) -> Reply:
        """`SyncWire.exchange`, if somebody calls `expire` now and then.

        Cancelled, it leaves the connection broken: its reply may still come.
        """
        waiting = self._waiting = self._loop.create_future()
        self._until = self._loop.time() + timeout
        try:
            if not self._send(statement, values):
                self._writing = True
                self._loop.add_writer(self._fd, self._on_writable)
            result = await waiting
        except BaseException:
            self.broken = True
            raise
        finally:
            self._waiting = None
        received = stopwatch()
        return Reply(self._row(result), received)

    def _on_readable(self) -> None:
        try:
            result = self._arrived()
        except Lost as lost:
            self._unwatch()
            self._fail(lost)
            return
        if result is not None and self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(result)

    def _on_writable(self) -> None:
        try:
            done = self._flush()
        except Lost as lost:
            self._fail(lost)
            done = True
        if done:
            self._writing = False
            self._loop.remove_writer(self._fd)

    def expire(self, now: float) -> None:
        """Give up a reply whose time is over.

        Args:
            now: of the loop.
        """
        if self._waiting is not None and now >= self._until:
            self._fail("no reply in time")

    def _fail(self, why: Lost | str) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(why if isinstance(why, Lost) else self._lost(why))

    def _unwatch(self) -> None:
        if not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
            if self._writing:
                self._loop.remove_writer(self._fd)

    def close(self) -> None:
        """End the session. Called on its loop, or when that does not run."""
        self._unwatch()
        super().close()
