"""Two copies of one activity at once: timeouts that the body does not notice, and resets."""

import asyncio
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetActivityRequest, ResetWorkflowExecutionRequest
from temporalio.client import WorkflowHandle

from corrobo_core import Attempt, MemoryLedger, effect
from corrobo_core.commands import Open
from corrobo_temporal import effect_activity
from examples.http_ledger import Credit, HttpLedger, lands_late, slow_answer, slow_commit
from tests.engines.temporal.conftest import Engine
from tests.engines.temporal.effects import POLL, credit, credit_async, naive, naive_async, soon, with_hooks

# -- start-to-close passes, the first body goes on -----------------------------------------------------------


@pytest.mark.parametrize(("name", "writes"), [("credit", 1), ("credit_async", 1), ("naive", 2), ("naive_async", 2)])
async def test_the_first_body_goes_on_beside_its_retry(
    engine: Engine, http_ledger: HttpLedger, name: str, writes: int
) -> None:
    http_ledger.fail_next(slow_commit(0.6))
    ledger = MemoryLedger()
    await engine.serve(naive, naive_async, effect_activity(credit, ledger), effect_activity(credit_async, ledger))
    handle = await engine.start_call(name, "rf_1", start_to_close=0.2, heartbeat=None)
    result = await handle.result()
    await asyncio.sleep(0.7)  # the first body has ended by now
    assert http_ledger.count("rf_1") == writes
    assert result["reference"] == "rf_1"


async def test_a02_a_late_end_is_kept_as_evidence_and_overwrites_nothing(
    engine: Engine, http_ledger: HttpLedger
) -> None:
    ledger, ended = MemoryLedger(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def send(attempt: Attempt, reference: str) -> Credit:
        try:
            return http_ledger.credit("alice", reference, 1)
        finally:
            loop.call_soon_threadsafe(ended.set)

    decorate = effect(
        "test/slow",
        identity=lambda reference: reference,
        in_flight_window=timedelta(milliseconds=400),
        execute_timeout=timedelta(milliseconds=200),
        poll=POLL,
    )
    http_ledger.fail_next(slow_answer(1.2))
    await engine.serve(effect_activity(with_hooks(decorate(send)), ledger))
    handle = await engine.start_call("send", "rf_1", start_to_close=0.2, heartbeat=None)
    result = await handle.result()
    assert not ended.is_set()  # the retry has looked and completed while the first body still runs
    await ended.wait()
    await asyncio.sleep(0.1)
    assert http_ledger.count("rf_1") == 1
    assert [late.attempt for late in ledger.late] == [1]
    again = await engine.start_call("send", "rf_1")
    assert await again.result() == result


# -- no heartbeat --------------------------------------------------------------------------------------------

POST = """
import sys, time
from examples.http_ledger import HttpLedger
time.sleep(float(sys.argv[2]))
HttpLedger(sys.argv[1]).credit("alice", "rf_1", 1)
"""


class CountedPasses(MemoryLedger):
    """Counts how often a pass has begun."""

    passes = 0

    def perform(self, command: Any, /) -> Any:
        self.passes += isinstance(command, Open)
        return super().perform(command)


@pytest.mark.parametrize("writes", [1, 2], ids=["effect", "naive"])
async def test_a01_a_body_in_a_subprocess_that_misses_its_heartbeats(
    engine: Engine, http_ledger: HttpLedger, writes: int
) -> None:
    delays = iter(["2.5", "0", "0"])
    ledger = CountedPasses()

    def post() -> None:
        subprocess.run([sys.executable, "-c", POST, http_ledger.url, next(delays)], check=True)

    @activity.defn(name="send")
    def naively(reference: str) -> None:
        post()

    @effect(
        "test/subprocess",
        identity=lambda reference: reference,
        in_flight_window=timedelta(seconds=20),
        execute_timeout=timedelta(milliseconds=200),  # after it, no heartbeats: it does not look alive
        poll=POLL,
    )
    def send(attempt: Attempt, reference: str) -> Credit:
        post()
        return http_ledger.credits("alice", reference)[0]

    made: Any = effect_activity(with_hooks(send), ledger) if writes == 1 else naively
    await engine.serve(made)
    handle = await engine.start_call("send", "rf_1")
    await handle.result()
    await asyncio.to_thread(http_ledger.wait_for_count, writes, "rf_1")
    assert http_ledger.count("rf_1") == writes
    assert writes == 2 or ledger.passes > 1


# -- resets --------------------------------------------------------------------------------------------------


async def _reset_activity(engine: Engine, handle: WorkflowHandle[Any, Any]) -> None:
    await engine.client.workflow_service.reset_activity(
        ResetActivityRequest(
            namespace=engine.client.namespace,
            execution=WorkflowExecution(workflow_id=handle.id),
            type=_type_of((await handle.describe()).raw_description.pending_activities),
        )
    )


def _type_of(pending: Any) -> str:
    name: str = pending[0].activity_type.name
    return name


async def _until_retry_is_pending(handle: WorkflowHandle[Any, Any]) -> None:
    while True:
        pending = (await handle.describe()).raw_description.pending_activities
        if pending and pending[0].HasField("last_failure"):
            return
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("writes", [1, 2], ids=["effect", "naive"])
async def test_activity_reset(engine: Engine, http_ledger: HttpLedger, writes: int) -> None:
    http_ledger.fail_next(lands_late(1.0))  # the reset must come before, also on a busy machine
    attempts: list[int] = []

    @activity.defn(name="credit")
    def sends_on_attempt_one_only(reference: str) -> str:
        """After a reset, attempt 1 is not the first."""
        attempts.append(activity.info().attempt)
        if attempts[-1] == 1:
            http_ledger.credit("alice", reference, 1)
        if not http_ledger.credits("alice", reference):
            raise RuntimeError("not there yet")
        return reference

    made: Any = effect_activity(soon, MemoryLedger(), activity_name="credit")
    await engine.serve(made if writes == 1 else sends_on_attempt_one_only)
    handle = await engine.start_call("credit", "rf_1")
    await _until_retry_is_pending(handle)
    await _reset_activity(engine, handle)
    await handle.result()
    await asyncio.sleep(1.1)
    assert http_ledger.count("rf_1") == writes


@pytest.mark.parametrize(("name", "writes"), [("credit", 1), ("credit_async", 1), ("naive", 2)])
async def test_workflow_reset_with_the_activity_in_flight(
    engine: Engine, http_ledger: HttpLedger, name: str, writes: int
) -> None:
    http_ledger.fail_next(slow_answer(0.6))
    ledger = MemoryLedger()
    await engine.serve(naive, effect_activity(credit, ledger), effect_activity(credit_async, ledger))
    handle = await engine.start_call(name, "rf_1", heartbeat=None)
    await asyncio.to_thread(http_ledger.wait_for_count, 1, "rf_1")
    reset = await engine.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=engine.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=handle.id, run_id=handle.first_execution_run_id or ""),
            reason="test",
            workflow_task_finish_event_id=4,  # started, scheduled, started, completed
            request_id=handle.id,
        )
    )
    again = engine.client.get_workflow_handle(handle.id, run_id=reset.run_id)
    result = await again.result()
    await asyncio.sleep(0.7)
    assert http_ledger.count("rf_1") == writes
    assert result["reference"] == "rf_1"
