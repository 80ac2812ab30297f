"""Effect activities heartbeat by themselves, and lose no details."""

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity

from corrobo_core import Attempt, Backoff, MemoryLedger, NotSent, Observation, RetryPolicy, Verdict, effect
from corrobo_temporal import effect_activity
from tests.engines.temporal.conftest import Engine

Body = Callable[[], Any]  # a string, or its coroutine
RETRY_SOON = RetryPolicy(backoff=Backoff(timedelta(milliseconds=50), timedelta(milliseconds=50)))


def made(body: Body, *, is_async: bool, naive: bool = False, **declared: Any) -> Any:
    """An activity named "work" around a body: an effect, or the bare body."""
    if naive:
        return activity.defn(name="work")(_bare_async(body) if is_async else body)

    def shown(attempt: Attempt) -> Observation[str | None]:
        return Observation.of(attempt.response, source="test", proves_absence=True)

    def judge(attempt: Attempt, response: str | None) -> Verdict[str]:
        return Verdict.not_applied("NOT_THERE") if response is None else Verdict.applied("THERE", effect=response)

    declared = {"in_flight_window": timedelta(seconds=30), "retry": RETRY_SOON, **declared}
    decorate = effect("test/work", identity=lambda: "op_1", **declared)
    if is_async:

        @decorate
        async def work(attempt: Attempt) -> str:
            result: str = await body()
            return result

        work.observe(shown).reconcile(judge)
        return effect_activity(work, MemoryLedger())

    @decorate
    def work_sync(attempt: Attempt) -> str:
        result: str = body()
        return result

    work_sync.observe(shown).reconcile(judge)
    return effect_activity(work_sync, MemoryLedger(), activity_name="work")


def _bare_async(body: Any) -> Any:
    async def work() -> str:
        result: str = await body()
        return result

    return work


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("naive", [False, True], ids=["effect", "naive"])
async def test_a_slow_body_is_kept_alive(engine: Engine, is_async: bool, naive: bool) -> None:
    starts = 0

    def slow() -> Any:
        nonlocal starts
        starts += 1
        pause = 1.5 if starts == 1 else 0.0
        if is_async:
            return asyncio.sleep(pause, "done")
        time.sleep(pause)
        return "done"

    await engine.serve(made(slow, is_async=is_async, naive=naive))
    handle = await engine.start_call("work")
    assert await handle.result() == "done"
    history = await handle.fetch_history()
    attempts = [
        event.activity_task_started_event_attributes.attempt
        for event in history.events
        if event.HasField("activity_task_started_event_attributes")
    ]
    assert attempts == [2 if naive else 1]  # the bare body misses its heartbeats
    assert starts == attempts[0]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_the_bodys_own_details_are_repeated_and_reach_the_next_attempt(
    engine: Engine, is_async: bool
) -> None:
    seen: list[list[Any]] = []

    def begin() -> None:
        seen.append(list(activity.info().heartbeat_details))
        if len(seen) == 1:
            activity.heartbeat("page", 7)

    def end() -> str:
        if len(seen) < 3:
            raise NotSent("try again")
        return "done"

    def body() -> str:
        begin()
        time.sleep(0.5)  # a beat or two
        return end()

    async def body_async() -> str:
        begin()
        await asyncio.sleep(0.5)
        return end()

    await engine.serve(made(body_async if is_async else body, is_async=is_async))
    handle = await engine.start_call("work")
    assert await handle.result() == "done"
    # The second attempt set none of its own: what the first one said is still there for the third.
    assert seen == [[], ["page", 7], ["page", 7]]


async def test_a_hung_body_does_not_look_alive_past_its_deadline(engine: Engine) -> None:
    released = threading.Event()

    def hang() -> str:
        released.wait(10)
        return "done"

    await engine.serve(made(hang, is_async=False, execute_timeout=timedelta(milliseconds=300)))
    ended = await engine.end_of("work", maximum_attempts=1)
    released.set()
    assert ended.shape == ["ActivityError", "TimeoutError HEARTBEAT"]


async def test_without_a_heartbeat_timeout_there_is_no_thread(engine: Engine) -> None:
    names: list[str] = []

    def body() -> str:
        names.extend(thread.name for thread in threading.enumerate())
        return "done"

    await engine.serve(made(body, is_async=False))
    handle = await engine.start_call("work", heartbeat=None)
    await handle.result()
    assert "corrobo-heartbeat" not in names
