"""What ledgers do around ``os.fork``, so that parent and child never share a connection or a lock (C11)."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

__all__ = ["ForkAware", "watch_forks"]


class ForkAware(Protocol):
    """Told about every ``os.fork`` of this process. ``subprocess`` does not fork this way."""

    def before_fork(self) -> None:
        """Come to rest: nothing may be in use when the process is copied."""
        ...

    def after_fork_in_parent(self) -> None:
        """Go on."""
        ...

    def after_fork_in_child(self) -> None:
        """Begin anew: own owner, own connections, own locks; nothing of the parent's is unlocked."""
        ...


_watching: weakref.WeakSet[ForkAware] = weakref.WeakSet()
_lock = threading.Lock()  # held across the fork: one at a time, and none that is not told


def watch_forks(aware: ForkAware) -> None:
    """Tell ``aware`` about forks for as long as it exists."""
    with _lock:
        _watching.add(aware)


def _before() -> None:
    _lock.acquire()
    for aware in _watching:
        aware.before_fork()


def _after_in_parent() -> None:
    for aware in _watching:
        aware.after_fork_in_parent()
    _lock.release()


def _after_in_child() -> None:
    for aware in _watching:
        aware.after_fork_in_child()
    _lock.release()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
