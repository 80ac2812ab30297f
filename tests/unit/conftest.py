"""Fixtures of the pure core's tests: a harness of each kind, an outside world, and time that only tests move."""

from __future__ import annotations

import pytest

from corrobo_core import attempt, hooks
from corrobo_core.ledgers import memory
from tests.unit.harness import KINDS, Clock, Harness
from tests.unit.world import WatchedLedger, World


@pytest.fixture(params=KINDS)
def harness(request: pytest.FixtureRequest) -> Harness:
    """Runs effects sync, async, and sync in threads of a loop."""
    return Harness(request.param)


@pytest.fixture
def world() -> World:
    """An outside system that counts."""
    return World()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of the memory ledger and of the stopwatch: it stands still until a test moves it."""
    made = Clock()
    for module in (attempt, hooks, memory):
        monkeypatch.setattr(module, "stopwatch", made.stopwatch)
    return made


@pytest.fixture
def ledger(clock: Clock) -> WatchedLedger:
    """A memory ledger with that time, whose commands can be watched and made to fail."""
    return WatchedLedger(clock=clock)
