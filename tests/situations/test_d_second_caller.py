"""D: a worker is slow, and a second caller comes with the same operation."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from corrobo_core import Disposition, EffectResult, Reason
from examples.http_ledger import Credit, HttpLedger, slow_answer, slow_commit
from tests.support.credits import CreditEffect, HttpxCredits, seconds
from tests.support.ledgers import AnyLedger, ledger_at
from tests.support.processes import child

SLOW = 0.8
EARLY = {
    5.0: {Reason.IN_PROGRESS},
    0.2: {Reason.IN_PROGRESS, Reason.STILL_RUNNING},  # over long before the slow worker has written
}


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def wait_for_request(http: HttpLedger, reference: str) -> None:
    while not http.counts(reference).write_requests:
        time.sleep(0.01)


def test_naive_callers_write_one_each(http_ledger: HttpLedger, reference: str, threads: ThreadPoolExecutor) -> None:
    http_ledger.fail_next(slow_commit(SLOW))
    client = HttpxCredits(http_ledger)

    def look_and_send() -> None:
        if not client.find(reference):
            client.send(reference, 5_000)

    slow = threads.submit(look_and_send)
    wait_for_request(http_ledger, reference)
    look_and_send()
    slow.result()
    assert http_ledger.count(reference) == 2


@pytest.mark.parametrize("window", EARLY)
def test_threads_of_one_process_write_once(
    window: float, http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str, threads: ThreadPoolExecutor
) -> None:
    http_ledger.fail_next(slow_commit(SLOW))
    credit = CreditEffect(HttpxCredits(http_ledger), in_flight_window=seconds(window))
    slow: Future[EffectResult[Credit]] = threads.submit(credit.settle, any_ledger, reference)
    wait_for_request(http_ledger, reference)
    early = credit.run(any_ledger, reference)
    assert early.reason in EARLY[window]
    assert early.retry_at is not None
    others = [threads.submit(credit.settle, any_ledger, reference) for _ in range(4)]
    for caller in (slow, *others):
        assert caller.result().disposition is Disposition.COMPLETE
        assert caller.result().effect == HttpxCredits(http_ledger).find(reference)[0]
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 1)


async def test_tasks_of_one_event_loop_write_once(
    http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str
) -> None:
    http_ledger.fail_next(slow_answer(0.2))
    credit = CreditEffect(HttpxCredits(http_ledger), "async", in_flight_window=seconds(2))
    async with any_ledger:
        results = await asyncio.gather(*(credit.run_async(any_ledger, reference) for _ in range(5)))
    assert [result.disposition for result in results].count(Disposition.COMPLETE) == 1
    assert [result.reason for result in results].count(Reason.IN_PROGRESS) == 4
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 1)


@pytest.mark.parametrize("window", EARLY)
def test_processes_write_once(window: float, http_ledger: HttpLedger, ledger_address: str, reference: str) -> None:
    http_ledger.fail_next(slow_commit(SLOW))
    declared = json.dumps({"in_flight_window": window})
    with (
        child("tests.situations.worker", "effect", ledger_address, http_ledger.url, reference, declared) as slow,
        ledger_at(ledger_address) as ledger,
    ):
        wait_for_request(http_ledger, reference)
        credit = CreditEffect(HttpxCredits(http_ledger), in_flight_window=seconds(window))
        assert credit.run(ledger, reference).reason in EARLY[window]
        assert credit.settle(ledger, reference).disposition is Disposition.COMPLETE
        assert slow.wait() == 0
        assert json.loads(slow.output)["disposition"] == "COMPLETE"
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 1)
