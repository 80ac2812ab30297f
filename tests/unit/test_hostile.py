"""What a hostile reader tried: each test was a way to send twice, to say something false, or to be stuck."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from pydantic import TypeAdapter

from corrobo_core import (
    AsyncEffectRunner,
    Attempt,
    Observation,
    Verdict,
    effect,
)
from corrobo_core.clocks import stopwatch
from corrobo_core.commands import LedgerCommand, Open
from corrobo_core.frozen import evolve
from corrobo_core.ledgers.document import to_document
from corrobo_core.policy import Backoff
from corrobo_core.records import Outcome
from corrobo_core.values import LOST, ValueType
from tests.unit.harness import Clock, Harness
from tests.unit.world import WatchedLedger, World

SYNC = Harness("sync")
SECOND = timedelta(seconds=1)


# -- hooks that answer nonsense -------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["nul \x00", "lone \ud800", "x" * 5000, None, object(), b"x"])
def test_T4_no_source_of_a_read_loses_an_outcome(source: Any, world: World, ledger: WatchedLedger) -> None:
    credit = SYNC.effect(world, observe=lambda attempt, reference: Observation([reference], source, True))
    result = SYNC.run(ledger, credit)
    (stored,) = ledger._rows.values()
    (seen,) = json.loads(to_document(stored))["history"]["last"]
    assert "\x00" not in seen["source"]
    assert len(seen["source"].encode()) < 2100
    assert result.attempts[0].outcome is Outcome.RESPONDED


def test_T4_a_stored_value_that_its_type_chokes_on_stops_no_pass() -> None:
    @dataclass
    class Choosy:
        x: int

        def __post_init__(self) -> None:
            raise RuntimeError("not today")

    assert ValueType(TypeAdapter(Choosy)).decode({"x": 1}) is LOST


def test_a_hook_that_returns_a_coroutine_has_not_responded(world: World, ledger: WatchedLedger) -> None:
    async def later(attempt: Attempt, reference: str) -> int:
        return world.credit(reference)

    credit = SYNC.effect(world, execute=later)
    result = SYNC.run(ledger, credit)
    assert world.sent == []
    assert result.attempts[0].outcome is Outcome.AMBIGUOUS


def test_a_steep_backoff_ends_at_its_maximum() -> None:
    assert Backoff(SECOND, timedelta(minutes=1), factor=1e9).delay(64) == timedelta(minutes=1)


# -- threads and cancellation ---------------------------------------------------------------------------------


def test_L9_a_hook_that_waited_too_long_for_a_thread_is_not_called() -> None:
    """The allowance holds for the send, not for the moment when the hook was queued."""
    world, ledger, release = World(), WatchedLedger(), threading.Event()
    credit = Harness("thread").effect(
        world, in_flight_window=timedelta(seconds=0.4), execute_timeout=timedelta(seconds=0.2)
    )
    begun: list[float] = []

    def watch(command: LedgerCommand[Any]) -> None:
        if isinstance(command, Open):
            begun.append(stopwatch())

    ledger.before = watch
    sent_at: list[float] = []
    original = world.credit

    def credited(reference: str) -> int:
        sent_at.append(stopwatch())
        return original(reference)

    world.credit = credited  # type: ignore[method-assign]

    async def main() -> Any:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        busy = asyncio.get_running_loop().run_in_executor(None, release.wait, 5)
        task = asyncio.create_task(AsyncEffectRunner(ledger).run(credit, "r1"))
        await asyncio.sleep(0.5)
        release.set()
        await busy
        return await task

    result = asyncio.run(main())
    assert result.attempts[0].outcome is Outcome.NOT_SENT or sent_at[0] - begun[0] <= 0.2
    assert len(world.sent) == 1
    assert sent_at[0] - begun[-1] <= 0.21


def test_L7_a_loop_that_ends_waits_for_the_hook_in_its_thread() -> None:
    """`asyncio.run` cancels every task, the one inside the shield too: the thread goes on, and its end counts."""
    world, ledger, entered, go_on = World(), WatchedLedger(), threading.Event(), threading.Event()

    def execute(attempt: Attempt, reference: str) -> int:
        entered.set()
        go_on.wait(5)
        return world.credit(reference)

    credit = Harness("thread").effect(world, execute=execute)

    async def main() -> None:
        asyncio.create_task(AsyncEffectRunner(ledger).run(credit, "r1"))  # noqa: RUF006
        while not entered.is_set():  # noqa: ASYNC110  # set by a thread
            await asyncio.sleep(0.01)
        threading.Timer(0.3, go_on.set).start()

    asyncio.run(main())
    (stored,) = ledger._rows.values()
    assert stored.latest.outcome is Outcome.RESPONDED


def test_a_coroutine_destroyed_in_a_hook_begins_nothing_more(world: World, ledger: WatchedLedger) -> None:
    looked: list[str] = []

    async def execute(attempt: Attempt, reference: str) -> int:
        await asyncio.Event().wait()
        return 1

    made: Any = effect("world/credit", identity=lambda reference: reference, in_flight_window=10 * SECOND)(execute)

    async def see(attempt: Attempt, reference: str) -> Observation[list[str]]:
        looked.append(reference)
        return world.find(reference)

    seen = made.observe(see)
    seen.reconcile(lambda attempt, found: Verdict.not_applied("NOTHING"))
    loop = asyncio.new_event_loop()
    task = loop.create_task(AsyncEffectRunner(ledger).run(made, "r1"))
    loop.run_until_complete(asyncio.sleep(0.05))
    loop.close()
    del task, loop
    contextvars.Context().run(gc.collect)
    assert looked == []


# -- the ledger's trouble -------------------------------------------------------------------------------------


def test_L7_an_opening_whose_reply_was_lost_is_given_up_also_if_somebody_looked_meanwhile(
    world: World, ledger: WatchedLedger, clock: Clock
) -> None:
    """The row is this pass's reservation, under another pass's nonce: nobody makes the attempt."""
    credit = SYNC.effect(world)
    marked: list[str] = []
    ledger.abandon = lambda key, nonce: marked.append(nonce)  # type: ignore[method-assign]

    def touch(command: LedgerCommand[Any]) -> None:
        if isinstance(command, Open) and not ledger.commands:
            ledger._answer(command)  # committed, its reply lost; then somebody looks, and writes
            ((place, row),) = ledger._rows.items()
            ledger._rows[place] = evolve(row, nonce="other.1", version=row.version + 1)

    ledger.before = touch
    SYNC.run(ledger, credit)
    assert world.sent == []
    assert len(marked) == 1
