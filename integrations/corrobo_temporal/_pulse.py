"""Heartbeats of an activity while a pass runs, so that a dead worker is noticed and a busy one is not.

They repeat the details that the body set last, or else those of the attempt before: a heartbeat without details
would erase them. They pause while a hook runs past its deadline, so that a hung one does not look alive.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

from temporalio import activity

from corrobo_core import Attempt
from corrobo_temporal._sdk import Heartbeat, replace_heartbeat

__all__ = ["beating", "beating_async", "working_on"]

_BEATS_PER_TIMEOUT = 4
_current: ContextVar[_Pulse | None] = ContextVar("corrobo_pulse", default=None)


class _Pulse:
    """One activity's heartbeat."""

    def __init__(self, timeout: timedelta, details: tuple[Any, ...]) -> None:
        self.interval = timeout.total_seconds() / _BEATS_PER_TIMEOUT
        self.attempt: Attempt | None = None
        self._details = details
        self._send: Heartbeat | None = None
        self._lock = threading.Lock()  # an older beat must not overtake a newer one
        replace_heartbeat(self._through)

    def _through(self, send: Heartbeat) -> Heartbeat:
        self._send = send

        def heartbeat(*details: Any) -> None:
            with self._lock:
                self._details = details
                send(*details)

        return heartbeat

    def beat(self) -> None:
        """Send one heartbeat, unless a hook hangs."""
        attempt = self.attempt
        if attempt is not None and attempt.time_left() == timedelta():
            return
        with self._lock:
            if self._send is not None:
                self._send(*self._details)


def _started() -> _Pulse | None:
    info = activity.info()
    if info.heartbeat_timeout is None:
        return None
    return _Pulse(info.heartbeat_timeout, tuple(info.heartbeat_details))


@contextmanager
def beating() -> Iterator[None]:
    """Beat from a thread, for synchronous activities."""
    pulse = _started()
    if pulse is None:
        yield
        return
    stop = threading.Event()
    token = _current.set(pulse)
    threading.Thread(target=_beat_until, args=(stop, pulse), name="corrobo-heartbeat", daemon=True).start()
    try:
        yield
    finally:
        stop.set()
        _current.reset(token)


def _beat_until(stop: threading.Event, pulse: _Pulse) -> None:
    while not stop.wait(pulse.interval):
        with suppress(Exception):  # the worker is shutting down; the server will notice
            pulse.beat()


@contextmanager
def beating_async() -> Iterator[None]:
    """Beat from the event loop, for asynchronous activities: a body that blocks the loop is not alive."""
    pulse = _started()
    if pulse is None:
        yield
        return
    token = _current.set(pulse)
    timers = _Timers(asyncio.get_running_loop(), pulse)
    try:
        yield
    finally:
        timers.stop()
        _current.reset(token)


class _Timers:
    def __init__(self, loop: asyncio.AbstractEventLoop, pulse: _Pulse) -> None:
        self._loop, self._pulse = loop, pulse
        self._next = loop.call_later(pulse.interval, self._beat)

    def _beat(self) -> None:
        self._next = self._loop.call_later(self._pulse.interval, self._beat)
        self._pulse.beat()

    def stop(self) -> None:
        self._next.cancel()


@contextmanager
def working_on(attempt: Attempt) -> Iterator[None]:
    """While inside, the attempt's deadline also ends the heartbeats."""
    pulse = _current.get()
    if pulse is None:
        yield
        return
    pulse.attempt = attempt
    try:
        yield
    finally:
        pulse.attempt = None
