"""Interruptions: whatever stops a hook, its bookkeeping is finished, and the effect happens once (L7; A03, A10)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

import anyio
import pytest

from corrobo_core import AsyncEffectRunner, Attempt, Disposition, EffectRunner, Evidence, Outcome, Reason, effect
from corrobo_core.commands import LedgerCommand
from corrobo_core.records import Check, Observation, Operation
from tests.unit.harness import Clock, Harness
from tests.unit.world import WatchedLedger, World, credit_effect, failing, judge

R = TypeVar("R")


class Stop(BaseException):
    """How engines stop threads: an exception thrown into them."""


def stored(ledger: WatchedLedger) -> Operation:
    return next(iter(ledger._rows.values()))


STOPS: list[type[BaseException]] = [KeyboardInterrupt, SystemExit, asyncio.CancelledError, Stop]
# asyncio lets these two out of the loop as soon as a task raises them; asyncio.run then cancels what is left.
LOOP_ENDING = (KeyboardInterrupt, SystemExit)


# -- raised by a hook -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("arrives", [True, False])
def test_L7_execute_is_stopped(
    harness: Harness, ledger: WatchedLedger, clock: Clock, world: World, stop: type[BaseException], arrives: bool
) -> None:
    def execute(attempt: Attempt, reference: str) -> int:
        if attempt.number == 1:
            if arrives:
                world.credit(reference)
            raise stop("now")
        return world.credit(reference)

    credit = harness.effect(world, execute=execute)
    with pytest.raises(stop):
        harness.run(ledger, credit)
    left = stored(ledger)
    assert (left.latest.outcome, left.reason, left.owner) == (Outcome.AMBIGUOUS, Reason.INTERRUPTED, None)
    assert left.latest.failure is not None
    assert left.latest.failure.type == stop.__name__
    assert (ledger._running, world.reads) == (set(), 0)

    result = harness.run(ledger, credit)
    assert result.disposition is (Disposition.COMPLETE if arrives else Disposition.RETRY)
    clock.pass_by(11)
    assert harness.run(ledger, credit).disposition is Disposition.COMPLETE
    assert world.sent == ["r1"]


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("hook", ["observe", "reconcile"])
def test_L7_a_look_is_stopped(
    harness: Harness, ledger: WatchedLedger, world: World, stop: type[BaseException], hook: str
) -> None:
    hooks: Any = {hook: failing(stop("now"))}
    with pytest.raises(stop):
        harness.run(ledger, harness.effect(world, **hooks))
    left = stored(ledger)
    assert (left.latest.outcome, left.latest.response) == (Outcome.RESPONDED, 1)
    assert (left.reason, left.evidence, left.owner) == (Reason.INTERRUPTED, None, None)
    for way in (harness.run, harness.observe):
        with pytest.raises(stop):
            way(ledger, harness.effect(world, **hooks))
        assert stored(ledger) == left
    assert harness.run(ledger, harness.effect(world)).disposition is Disposition.COMPLETE
    assert world.sent == ["r1"]


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("hook", ["authorize", "revalidate"])
def test_L7_a_check_is_stopped(
    harness: Harness, ledger: WatchedLedger, world: World, stop: type[BaseException], hook: str
) -> None:
    hooks: Any = {hook: failing(stop("now"))}
    with pytest.raises(stop):
        harness.run(ledger, harness.effect(world, **hooks))
    assert stored(ledger).attempts == ()
    assert world.sent == []
    passes: Any = {hook: lambda *_: Check.proceed()}
    assert harness.run(ledger, harness.effect(world, **passes)).disposition is Disposition.COMPLETE
    assert world.sent == ["r1"]


@pytest.mark.parametrize("stop", STOPS)
def test_L7_a_pass_that_starts_over_after_a_pause_can_be_stopped(
    harness: Harness, ledger: WatchedLedger, clock: Clock, world: World, stop: type[BaseException]
) -> None:
    ledger.after = lambda command: clock.pass_by(60) if len(ledger.commands) == 1 else None
    with pytest.raises(stop):
        harness.run(ledger, harness.effect(world, observe=failing(stop("now"))))
    assert stored(ledger).reason == Reason.PAUSED
    assert (world.sent, ledger.asked) == ([], ["Open", "Record", "Open"])


@pytest.mark.parametrize("at", ["Open", "Record"])
@pytest.mark.parametrize("side", ["before", "after"])
def test_L7_the_process_is_stopped_in_the_ledger(
    ledger: WatchedLedger, clock: Clock, world: World, at: str, side: str
) -> None:
    """Ctrl-C in the middle of a statement: the attempt is given up, so that nobody waits for this process."""
    left = [True]

    def stop(command: LedgerCommand[Any]) -> None:
        if type(command).__name__ == at and left:
            left.pop()
            raise KeyboardInterrupt

    setattr(ledger, side, stop)
    credit, runner = credit_effect(world), EffectRunner(ledger)
    with pytest.raises(KeyboardInterrupt):
        runner.run(credit, "r1", 1)
    assert ledger._running == set()
    assert all(row.owner is None for row in ledger._rows.values())
    runner.run(credit, "r1", 1)
    clock.pass_by(11)
    assert runner.run(credit, "r1", 1).disposition is Disposition.COMPLETE
    assert world.sent == ["r1"]


# -- asyncio --------------------------------------------------------------------------------------------------


class SlowLedger(WatchedLedger):
    """A ledger that answers only after other tasks had their turn, as one on a network."""

    async def perform_async(self, command: LedgerCommand[R], /) -> R:
        await asyncio.sleep(0.005)
        reply = self.perform(command)
        await asyncio.sleep(0.005)
        return reply


class AsyncWorld(World):
    """Says where it is, and waits there for so long."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: dict[str, float] = {}
        self.at: list[str] = []

    async def point(self, name: str) -> None:
        self.at.append(name)
        await asyncio.sleep(self.waits.get(name, 0))


def async_credit(world: AsyncWorld, **options: Any) -> Any:
    options.setdefault("in_flight_window", timedelta(seconds=10))

    @effect("world/credit", identity=lambda reference: reference, **options)
    async def credit(attempt: Attempt, reference: str) -> int:
        await world.point("before the send")
        sent = world.credit(reference)
        await world.point("after the send")
        return sent

    @credit.observe
    async def see(attempt: Attempt, reference: str) -> Observation[list[str]]:
        await world.point("before the read")
        found = world.find(reference)
        await world.point("after the read")
        return found

    see.reconcile(lambda attempt, found: judge(found))
    return credit


async def until(reached: Callable[[], bool]) -> None:
    while not reached():  # noqa: ASYNC110  # what is waited for may be a thread
        await asyncio.sleep(0.0005)


async def cancelled_once(ledger: SlowLedger, credit: Any, reached: Callable[[], bool], times: int = 1) -> None:
    """Run until that point, cancel, and see the cancellation come out."""
    task = asyncio.ensure_future(AsyncEffectRunner(ledger).run(credit, "r1"))
    await until(reached)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0.001)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert ledger._running == set()


POINTS = ["before the send", "after the send", "before the read", "after the read"]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("times", [1, 3])
async def test_A10_cancelled_in_a_hook(point: str, times: int) -> None:
    world, ledger = AsyncWorld(), SlowLedger()
    world.waits[point] = 60
    credit = async_credit(world)
    await cancelled_once(ledger, credit, lambda: point in world.at, times)
    left = stored(ledger)
    assert left.reason == Reason.INTERRUPTED, "recorded before the cancellation came out"
    assert left.latest.outcome is (Outcome.RESPONDED if "read" in point else Outcome.AMBIGUOUS)
    assert left.owner is None
    world.waits.clear()
    result = await AsyncEffectRunner(ledger).run(credit, "r1")
    assert result.disposition is (Disposition.RETRY if point == "before the send" else Disposition.COMPLETE)
    assert len(world.sent) == (0 if point == "before the send" else 1)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("count", [1, 2])
async def test_L7_cancelled_while_the_ledger_answers(count: int, times: int) -> None:
    """Command 1 reserves, command 2 records; a cancellation in either waits for its answer."""
    world, ledger = AsyncWorld(), SlowLedger()
    credit = async_credit(world)
    await cancelled_once(ledger, credit, lambda: len(ledger.commands) == count, times)
    left = stored(ledger)
    if count == 1:  # nothing more was begun, and it is known that nothing was sent
        assert (left.latest.outcome, left.reason) == (Outcome.NOT_SENT, Reason.INTERRUPTED)
        assert (world.sent, world.at) == ([], [])
    else:
        assert left.disposition is Disposition.COMPLETE
    result = await AsyncEffectRunner(ledger).observing_now().run(credit, "r1")
    if result.wait:
        await asyncio.sleep(result.wait.total_seconds())
        result = await AsyncEffectRunner(ledger).run(credit, "r1")
    assert result.disposition is Disposition.COMPLETE
    assert world.sent == ["r1"]


async def test_L7_cancelled_before_the_first_command_is_answered() -> None:
    world, ledger = AsyncWorld(), SlowLedger()
    task = asyncio.ensure_future(AsyncEffectRunner(ledger).run(async_credit(world), "r1"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stored(ledger).latest.outcome is Outcome.NOT_SENT
    assert world.sent == []


@pytest.mark.parametrize("point", POINTS)
async def test_L7_the_cancellation_of_a_scope_ends_at_that_scope(point: str) -> None:
    """anyio, and so Starlette and FastAPI, knows its own cancellation by the message; any other goes on upwards."""
    world, ledger = AsyncWorld(), SlowLedger()
    world.waits[point] = 60
    with anyio.CancelScope() as scope:
        asyncio.ensure_future(until(lambda: point in world.at)).add_done_callback(lambda _: scope.cancel())
        await AsyncEffectRunner(ledger).run(async_credit(world), "r1")
    assert scope.cancelled_caught
    assert stored(ledger).reason == Reason.INTERRUPTED
    assert ledger._running == set()


async def test_L7_a_cancellation_keeps_its_message() -> None:
    world, ledger = AsyncWorld(), SlowLedger()
    world.waits["before the send"] = 60
    task = asyncio.ensure_future(AsyncEffectRunner(ledger).run(async_credit(world), "r1"))
    await until(lambda: bool(world.at))
    task.cancel("the client has gone")
    with pytest.raises(asyncio.CancelledError, match="the client has gone"):
        await task


async def test_A10_a_time_out_stops_the_waiting_and_the_write_is_found() -> None:
    """The request has been accepted when the time-out fires; it lands while nobody waits."""
    world, ledger = AsyncWorld(), SlowLedger()
    world.waits["after the send"] = 60
    credit = async_credit(world)

    async def expire() -> None:
        await until(lambda: "after the send" in world.at)
        limit.reschedule(asyncio.get_running_loop().time())

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(60) as limit:
            await asyncio.gather(AsyncEffectRunner(ledger).run(credit, "r1"), expire())
    assert stored(ledger).latest.outcome is Outcome.AMBIGUOUS
    assert (await AsyncEffectRunner(ledger).run(credit, "r1")).disposition is Disposition.COMPLETE
    assert world.sent == ["r1"]


async def test_a_task_group_gets_its_own_error_back() -> None:
    world, ledger = AsyncWorld(), SlowLedger()
    world.waits["after the send"] = 60

    async def fail() -> None:
        await until(lambda: "after the send" in world.at)
        raise LookupError("sibling")

    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.TaskGroup() as group:
            group.create_task(AsyncEffectRunner(ledger).run(async_credit(world), "r1"))
            group.create_task(fail())
    assert caught.group_contains(LookupError)
    assert stored(ledger).reason == Reason.INTERRUPTED


def test_L7_a_loop_that_is_torn_down_gives_the_attempt_up() -> None:
    """No bookkeeping is possible any more: the coroutine is closed, not cancelled."""
    world, ledger = AsyncWorld(), SlowLedger()
    world.waits["after the send"] = 60
    running = AsyncEffectRunner(ledger).run(async_credit(world), "r1")
    loop = asyncio.new_event_loop()
    task = loop.create_task(running)
    try:
        while "after the send" not in world.at:
            loop.run_until_complete(asyncio.sleep(0.001))
        running.close()
    finally:
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        loop.close()
    assert ledger._running == set()
    left = stored(ledger)
    assert (left.reserved, left.owner) == (True, None)
    assert left.latest.abandoned is not None


# -- hooks in threads -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 3])
async def test_L7_a_hook_in_a_thread_is_waited_for(times: int) -> None:
    world, ledger, entered, go_on = World(), SlowLedger(), threading.Event(), threading.Event()

    def execute(attempt: Attempt, reference: str) -> int:
        entered.set()
        assert go_on.wait(10)
        return world.credit(reference)

    credit = Harness("thread").effect(world, execute=execute)
    task = asyncio.ensure_future(AsyncEffectRunner(ledger).run(credit, "r1"))
    await until(entered.is_set)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0.01)
    assert not task.done(), "a thread cannot be cancelled, and its attempt has an end worth knowing"
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    left = stored(ledger)
    assert (left.latest.outcome, left.latest.response, left.reason) == (Outcome.RESPONDED, 1, Reason.INTERRUPTED)
    assert world.reads == 0, "nothing else was begun"
    assert (await AsyncEffectRunner(ledger).run(credit, "r1")).disposition is Disposition.COMPLETE
    assert world.sent == ["r1"]


async def test_threads_leave_the_loop_free() -> None:
    world, ledger, release = World(), SlowLedger(), threading.Event()

    def execute(attempt: Attempt, reference: str) -> int:
        assert release.wait(10)
        return world.credit(reference)

    credit = Harness("thread").effect(world, execute=execute)
    task = asyncio.ensure_future(AsyncEffectRunner(ledger).run(credit, "r1"))
    await asyncio.sleep(0.02)
    release.set()
    assert (await task).disposition is Disposition.COMPLETE


# -- timeouts (L9) --------------------------------------------------------------------------------------------


async def test_L9_an_async_hook_is_cut_at_its_timeout() -> None:
    world, ledger = AsyncWorld(), SlowLedger()
    world.waits["after the send"] = 60
    credit = async_credit(world, execute_timeout=timedelta(milliseconds=300))
    began = time.monotonic()
    result = await AsyncEffectRunner(ledger).run(credit, "r1")
    assert time.monotonic() - began < 5
    made = result.attempts[0]
    assert made.failure is not None
    assert (made.outcome, made.failure.type) == (Outcome.AMBIGUOUS, "TimeoutError")
    assert result.disposition is Disposition.COMPLETE, "the pass goes on, and looks"
    assert world.sent == ["r1"]


async def test_L9_only_execute_is_cut() -> None:
    world, ledger = AsyncWorld(), SlowLedger()
    world.waits["before the read"] = 0.4
    credit = async_credit(world, execute_timeout=timedelta(milliseconds=300))
    assert (await AsyncEffectRunner(ledger).run(credit, "r1")).disposition is Disposition.COMPLETE


async def test_L9_a_hook_that_will_not_be_cut_settles_from_its_end() -> None:
    world, ledger = AsyncWorld(), SlowLedger()

    @effect(
        "world/credit",
        identity=lambda reference: reference,
        in_flight_window=timedelta(seconds=10),
        execute_timeout=timedelta(milliseconds=20),
    )
    async def stubborn(attempt: Attempt, reference: str) -> int:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.1)
        return 7

    see = stubborn.observe(lambda attempt, reference: world.find(reference))
    see.reconcile(lambda attempt, found: judge(found))
    result = await AsyncEffectRunner(ledger).run(stubborn, "r1")
    made = result.attempts[0]
    assert made.outcome is Outcome.RESPONDED
    assert made.ended is not None
    assert made.started is not None
    assert made.ended - made.started >= timedelta(milliseconds=100)
    assert result.retry_at == made.ended + timedelta(seconds=10, microseconds=1)


def test_L9_a_sync_hook_that_overran_settles_from_its_end(
    ledger: WatchedLedger, clock: Clock, world: World
) -> None:
    def execute(attempt: Attempt, reference: str) -> None:
        clock.pass_by(8)

    harness = Harness("sync")
    result = harness.run(ledger, harness.effect(world, execute=execute))
    assert result.wait == timedelta(seconds=10, microseconds=1), "from its end at 8 s, not from its start"


# -- several at once (A05) ------------------------------------------------------------------------------------


async def at_once(count: int, one: Callable[[], Awaitable[Any]]) -> list[Any]:
    return await asyncio.gather(*(one() for _ in range(count)))


@pytest.mark.parametrize("seed", range(3))
async def test_A05_five_calls_with_one_id_send_once(seed: int) -> None:
    world, ledger = AsyncWorld(), SlowLedger()
    world.waits["after the send"] = 0.02
    credit = async_credit(world)
    results = await at_once(5, lambda: AsyncEffectRunner(ledger).run(credit, "r1"))
    assert world.sent == ["r1"]
    assert sorted(result.reason for result in results) == ["EFFECT_CONFIRMED", *["IN_PROGRESS"] * 4]
    again = await at_once(5, lambda: AsyncEffectRunner(ledger).run(credit, "r1"))
    assert {result.evidence for result in again} == {Evidence.APPLIED}


def test_A05_ten_threads_with_one_id_send_once() -> None:
    world, ledger, barrier = World(), WatchedLedger(), threading.Barrier(10)
    credit, results = credit_effect(world), []

    def one() -> None:
        barrier.wait()
        results.append(EffectRunner(ledger).run(credit, "r1", 1))

    threads = [threading.Thread(target=one) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 10
    assert world.sent == ["r1"]


def test_without_the_ledger_the_same_interruption_sends_twice(world: World) -> None:
    """The twin: a loop that tries again, as people write it."""
    for _ in range(2):
        try:
            world.credit("r1")
            raise ConnectionResetError("by peer")
        except ConnectionResetError:
            continue
    assert world.sent == ["r1", "r1"]
