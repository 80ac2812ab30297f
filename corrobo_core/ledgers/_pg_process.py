"""What one process holds for a PostgreSQL ledger: its owner and its pools, opened on first use.

Source: semantics C4, C6, C11.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

from corrobo_core.ledgers._pg_address import Address
from corrobo_core.ledgers._pg_owner import Owner
from corrobo_core.ledgers._pg_pool import AsyncPool, SyncPool

__all__ = ["Process"]


class Process:
    """Owner and pools.

    Args:
        statements: where statements go; may be a transaction pooler.
        owner: of this process.
        pool_size: connections in each pool at most.
    """

    def __init__(self, statements: Address, owner: Owner, pool_size: int) -> None:
        self._address, self._size = statements, pool_size
        self.owner = owner
        self._lock = threading.Lock()
        self._users = 0
        self._sync: SyncPool | None = None
        self._async: dict[asyncio.AbstractEventLoop, AsyncPool] = {}

    def pool(self) -> SyncPool:
        """The pool of this process's threads."""
        pool = self._sync
        if pool is None:
            with self._lock:
                pool = self._sync = self._sync or SyncPool(self._address, self._size)
        return pool

    def async_pool(self) -> AsyncPool:
        """The pool of the running event loop."""
        loop = asyncio.get_running_loop()
        pool = self._async.get(loop)
        if pool is None:
            with self._lock:
                self._close_ended_loops()
                pool = self._async[loop] = AsyncPool(self._address, self._size)
        return pool

    def _close_ended_loops(self) -> None:
        for loop in [loop for loop in self._async if loop.is_closed()]:
            self._async.pop(loop).close()

    # -- closing --------------------------------------------------------------------------------------------------

    def enter(self) -> None:
        """One more ``with`` block uses the ledger."""
        with self._lock:
            self._users += 1

    def leave(self) -> bool:
        """One fewer; True if it was the last."""
        with self._lock:
            self._users -= 1
            return self._users == 0

    def close_async_pool(self) -> None:
        """Close the running loop's pool."""
        pool = self._async.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            pool.close()

    def close(self) -> None:
        """Close everything that this process has opened, of every loop."""
        with self._lock:
            sync, self._sync = self._sync, None
            pools, self._async = list(self._async.values()), {}
        if sync is not None:
            sync.close()
        for pool in pools:
            if _runs_elsewhere(pool.loop):
                with suppress(RuntimeError):  # it has just ended
                    pool.loop.call_soon_threadsafe(pool.close)
            else:
                pool.close()
        self.owner.close()

    # -- forks ----------------------------------------------------------------------------------------------------

    def after_fork_in_child(self) -> None:
        """Begin anew; the parent's connections are let go without a word to the server."""
        sync, pools = self._sync, list(self._async.values())
        self._lock, self._users = threading.Lock(), 0
        self._sync, self._async = None, {}
        for pool in [sync, *pools]:
            if pool is not None:
                pool.leave_to_parent()
        self.owner.after_fork_in_child()


def _runs_elsewhere(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return loop.is_running() and asyncio.get_running_loop() is not loop
    except RuntimeError:
        return loop.is_running()
