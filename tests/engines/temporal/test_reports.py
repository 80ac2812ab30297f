"""What people have reported about writes on Temporal, each as its right outcome."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity

from corrobo_core import MemoryLedger, current_attempt
from corrobo_temporal import adopt_activity, effect_activity
from examples.http_ledger import Credit, HttpLedger, answer_lost, client_killed, slow_answer, slow_commit
from tests.engines.temporal.conftest import Engine
from tests.engines.temporal.effects import credit_async, naive_async, with_async_hooks


@pytest.mark.parametrize(("name", "writes"), [("credit_async", 1), ("naive_async", 2)])
async def test_a03_whatever_the_failure_an_outer_loop_does_not_publish_again(
    engine: Engine, http_ledger: HttpLedger, name: str, writes: int
) -> None:
    http_ledger.fail_next(answer_lost(reset=True))
    await engine.serve(naive_async, effect_activity(credit_async, MemoryLedger()))
    handle = await engine.start_call(name, "rf_1", maximum_attempts=1, times=5)
    await handle.result()
    assert http_ledger.count("rf_1") == writes


@pytest.mark.parametrize(("name", "writes"), [("credit_async", 1), ("naive_async", 2)])
async def test_a03_killed_after_accept_an_outer_loop_does_not_publish_again(
    engine: Engine, http_ledger: HttpLedger, name: str, writes: int
) -> None:
    http_ledger.fail_next(client_killed("after_commit"))
    await engine.start_workers(2)
    handle = await engine.start_call(name, "rf_1", maximum_attempts=1, times=5)
    await handle.result()
    assert http_ledger.count("rf_1") == writes


@pytest.mark.parametrize(("name", "writes"), [("credit_async", 1), ("naive_async", 2)])
async def test_a03_cancelled_after_accept_an_outer_loop_does_not_publish_again(
    engine: Engine, http_ledger: HttpLedger, name: str, writes: int
) -> None:
    http_ledger.fail_next(slow_answer(3.0))
    await engine.serve(naive_async, effect_activity(credit_async, MemoryLedger()))
    # Its own timeout cancels the body in mid-write, as soon as a heartbeat tells the worker.
    handle = await engine.start_call(name, "rf_1", start_to_close=0.3, maximum_attempts=1, times=9, pause=0.5)
    await handle.result()
    assert http_ledger.count("rf_1") == writes


@pytest.mark.parametrize("writes", [1, 2], ids=["effect", "naive"])
async def test_a10_a_local_timeout_only_stops_the_waiting(
    engine: Engine, http_ledger: HttpLedger, writes: int
) -> None:
    http_ledger.fail_next(slow_commit(1.0))

    @activity.defn
    async def publish(reference: str) -> Credit:
        sending = asyncio.to_thread(http_ledger.credit, "alice", reference, 1)
        return await asyncio.wait_for(sending, 0.2)

    @activity.defn(name="publish")
    async def publish_with_key(reference: str) -> Credit:
        assert current_attempt().operation_id == reference
        sending = asyncio.to_thread(http_ledger.credit, "alice", reference, 1)
        return await asyncio.wait_for(sending, 0.2)

    publishing = with_async_hooks(
        adopt_activity(
            publish_with_key,
            "test/publish",
            identity=lambda reference: reference,
            in_flight_window=timedelta(seconds=2),
        )
    )
    made: Any = effect_activity(publishing, MemoryLedger()) if writes == 1 else publish
    await engine.serve(made)
    handle = await engine.start_call("publish", "rf_1")
    result = await handle.result()
    assert result["reference"] == "rf_1"
    await asyncio.sleep(1.0)
    assert http_ledger.count("rf_1") == writes
