"""The connections of one process: one pool for its threads, one for each event loop.

psycopg_pool is not used: its worker threads do not survive a fork (C11), an asynchronous pool left open keeps
``asyncio.run`` from returning, and after an outage it hides why it has no connection. These pools have no workers:
whoever needs a connection opens it.
"""

from __future__ import annotations

import asyncio
import queue
from abc import ABC
from collections import deque
from typing import Generic, NamedTuple, TypeVar

from corrobo_core.ledgers._pg_address import Address
from corrobo_core.ledgers._pg_errors import Again
from corrobo_core.ledgers._pg_wire import AsyncWire, SyncWire, Wire

__all__ = ["AsyncPool", "SyncPool"]

W = TypeVar("W", bound=Wire)

_TICK = 0.1  # seconds


class _Pool(ABC, Generic[W]):
    """A stack of idle connections: the warmest is lent first."""

    def __init__(self, address: Address, size: int) -> None:
        self._address, self._size = address, size
        self._idle: list[W] = []  # append and pop are atomic
        self._open: set[W] = set()
        self._closed = False

    def _pop(self) -> W | None:
        while self._idle:
            try:
                wire = self._idle.pop()
            except IndexError:  # another thread was faster
                return None
            if wire.reusable:
                return wire
            self._discard(wire)
        return None

    def _put(self, wire: W) -> None:
        if wire.reusable and not self._closed:
            self._idle.append(wire)
        else:
            self._discard(wire)

    def _discard(self, wire: W) -> None:
        self._open.discard(wire)
        wire.close()

    def _exhausted(self) -> Again:
        return Again(f"all {self._size} connections stayed in use; raise pool_size, or make fewer passes at once")

    def drop_idle(self) -> None:
        """Close what is idle: after one connection was lost, the others lead nowhere either."""
        while self._idle:
            try:
                wire = self._idle.pop()
            except IndexError:
                return
            self._discard(wire)

    def close(self) -> None:
        """Close what is idle now, and what is lent when it comes back."""
        self._closed = True
        self.drop_idle()

    def leave_to_parent(self) -> None:
        """In a forked child: let go of every connection without a word to the server (C11)."""
        self._closed = True
        self._idle.clear()
        for wire in self._open:
            wire.leave_to_parent()
        self._open.clear()


class SyncPool(_Pool[SyncWire]):
    """For the threads of one process.

    Args:
        address: where to connect.
        size: how many connections are open at most.
    """

    def __init__(self, address: Address, size: int) -> None:
        super().__init__(address, size)
        self._permits: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(size):
            self._permits.put(None)

    def take(self, timeout: float) -> SyncWire:
        """Borrow a connection; `give` it back.

        Args:
            timeout: seconds to wait for one.

        Raises:
            Again: all were in use all the time, or the server did not let us in.
        """
        try:
            self._permits.get(timeout=timeout)
        except queue.Empty:
            raise self._exhausted() from None
        try:
            return self._pop() or self._connect()
        except BaseException:
            self._permits.put(None)
            raise

    def _connect(self) -> SyncWire:
        wire = SyncWire(self._address.connect(), self._address.place)
        self._open.add(wire)
        return wire

    def give(self, wire: SyncWire) -> None:
        """Put it back; it is closed if it cannot be used again."""
        try:
            self._put(wire)
        finally:
            self._permits.put(None)


class _Waiter(NamedTuple):
    permit: asyncio.Future[None]
    until: float  # loop time


class AsyncPool(_Pool[AsyncWire]):
    """For one event loop. Made and used on it.

    One timer watches over all its statements and all that wait for a connection: one for each would cost as much
    as a statement's other bookkeeping.

    Args:
        address: where to connect.
        size: how many connections are open at most.
    """

    def __init__(self, address: Address, size: int) -> None:
        super().__init__(address, size)
        self.loop = asyncio.get_running_loop()
        self.opening = asyncio.Lock()  # one task at a time waits for the owner's lock
        self._permits = size
        self._waiting: deque[_Waiter] = deque()
        self._watching = False

    async def take(self, timeout: float) -> AsyncWire:
        """`SyncPool.take`."""
        if not self._watching:
            self._watch()
        if self._permits:
            self._permits -= 1
        else:
            await self._permit(timeout)
        try:
            return self._pop() or await self._connect()
        except BaseException:
            self._pass_on()
            raise

    async def _permit(self, timeout: float) -> None:
        permit: asyncio.Future[None] = self.loop.create_future()
        self._waiting.append(_Waiter(permit, self.loop.time() + timeout))
        try:
            await permit
        except asyncio.CancelledError:
            if not permit.cancelled():  # it had just been granted
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """Give a permit to whoever has waited longest."""
        while self._waiting:
            permit = self._waiting.popleft().permit
            if not permit.done():
                permit.set_result(None)
                return
        self._permits += 1

    def _watch(self) -> None:
        """End what has taken too long; look again soon, while there is anything to watch."""
        now = self.loop.time()
        for wire in self._open:
            wire.expire(now)
        for permit, until in self._waiting:
            if now >= until and not permit.done():
                permit.set_exception(self._exhausted())
        self._watching = not self._watching or self._permits < self._size
        if self._watching:
            self.loop.call_later(_TICK, self._watch)

    async def _connect(self) -> AsyncWire:
        wire = AsyncWire(await self._address.connect_async(), self._address.place, self.loop)
        self._open.add(wire)
        return wire

    def give(self, wire: AsyncWire) -> None:
        """Put it back; it is closed if it cannot be used again."""
        try:
            self._put(wire)
        finally:
            self._pass_on()
