"""Cancelled in mid-write: the outcome is recorded all the same (L7)."""

import asyncio
import threading
import time
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ActivityError, CancelledError

from corrobo_core import MemoryLedger
from corrobo_core.commands import Record
from corrobo_temporal import effect_activity
from examples.http_ledger import Credit, HttpLedger, slow_answer
from tests.engines.temporal.conftest import Engine
from tests.engines.temporal.effects import credit, credit_async


class SlowToRecord(MemoryLedger):
    """Takes a while to record an outcome, so that a cancellation arrives meanwhile."""

    def __init__(self, pause: float = 0.0) -> None:
        super().__init__()
        self.pause, self.recorded = pause, 0
        self.recording = threading.Event()

    def perform(self, command: Any, /) -> Any:
        if isinstance(command, Record):
            self.recording.set()
            until = time.monotonic() + self.pause
            while time.monotonic() < until:  # an injected exception arrives between two bytecodes
                time.sleep(0.01)
        reply = super().perform(command)
        self.recorded += isinstance(command, Record)
        return reply

    async def perform_async(self, command: Any, /) -> Any:
        if isinstance(command, Record):
            self.recording.set()
            await asyncio.sleep(self.pause)
            self.recorded += 1
        return super().perform(command)

    async def until_recording(self) -> None:
        await asyncio.to_thread(self.recording.wait, 10)


async def test_cancelled_in_mid_write_the_attempt_is_ambiguous_and_the_next_call_observes(
    engine: Engine, http_ledger: HttpLedger
) -> None:
    http_ledger.fail_next(slow_answer(8.0))
    ledger = SlowToRecord()
    await engine.serve(effect_activity(credit_async, ledger))
    handle = await engine.start_call("credit_async", "rf_1")
    await asyncio.to_thread(http_ledger.wait_for_count, 1, "rf_1")
    await handle.cancel()
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, CancelledError | ActivityError)
    assert ledger.recorded == 1  # not left reserved for others to wait on

    again = await engine.start_call("credit_async", "rf_1")
    result = await again.result()
    assert result["reference"] == "rf_1"
    assert http_ledger.count("rf_1") == 1


async def test_cancelled_while_an_async_pass_records_it_finishes_recording(
    engine: Engine, http_ledger: HttpLedger
) -> None:
    ledger = SlowToRecord(pause=4.0)
    await engine.serve(effect_activity(credit_async, ledger))
    handle = await engine.start_call("credit_async", "rf_1")
    await ledger.until_recording()
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert ledger.recorded == 1
    assert http_ledger.count("rf_1") == 1


@pytest.mark.parametrize("protected", [True, False], ids=["effect", "naive"])
async def test_cancelled_while_a_sync_pass_records_it_finishes_recording(
    engine: Engine, http_ledger: HttpLedger, protected: bool
) -> None:
    ledger = SlowToRecord(pause=4.0)

    made = effect_activity(credit, ledger)

    @activity.defn(name="credit")
    def unprotected(reference: str) -> Credit:
        """The same pass, where Temporal may inject its cancellation anywhere."""
        return made(reference)

    await engine.serve(made if protected else unprotected)
    handle = await engine.start_call("credit", "rf_1")
    await ledger.until_recording()
    await handle.cancel()
    outcome = await asyncio.gather(handle.result(), return_exceptions=True)
    assert ledger.recorded == (1 if protected else 0), outcome
    assert http_ledger.count("rf_1") == 1
