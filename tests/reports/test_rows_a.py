"""Reports of things run twice, as far as no engine takes part."""

from __future__ import annotations

import asyncio
import json

import pytest

from corrobo_core import AsyncEffectRunner, Disposition, EffectRunner, Evidence, Outcome, Reason
from examples.http_ledger import HttpLedger, client_killed, refused, slow_commit
from tests.support.credits import CreditEffect, HttpxCredits, seconds
from tests.support.ledgers import AnyLedger, ledger_at
from tests.support.processes import child


async def test_a10_a_naive_timeout_only_stops_the_waiting(http_ledger: HttpLedger, reference: str) -> None:
    http_ledger.fail_next(slow_commit(0.7))
    client = HttpxCredits(http_ledger)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.send_async(reference, 5_000), 0.3)
    await client.send_async(reference, 5_000)  # "it timed out": marked unsent, and sent by hand
    await asyncio.to_thread(http_ledger.wait_for_count, 2, reference)


async def test_a10_a_timeout_around_an_effect_is_in_doubt_and_the_retry_completes(
    http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str
) -> None:
    http_ledger.fail_next(slow_commit(0.7))
    credit = CreditEffect(HttpxCredits(http_ledger), "async", in_flight_window=seconds(1.8))
    async with any_ledger:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(credit.run_async(any_ledger, reference), 0.3)
        retried = await credit.run_async(any_ledger, reference)
        assert [attempt.outcome for attempt in retried.attempts] == [Outcome.AMBIGUOUS]
        assert retried.attempts[0].failure is not None
        assert retried.attempts[0].failure.type == "CancelledError"
    end = await asyncio.to_thread(credit.settle, any_ledger, reference)
    assert end.disposition is Disposition.COMPLETE
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 1)


async def test_a10_a_thread_is_waited_for(http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str) -> None:
    http_ledger.fail_next(slow_commit(0.3))
    credit = CreditEffect(HttpxCredits(http_ledger), in_flight_window=seconds(5))
    async with any_ledger:
        runner = AsyncEffectRunner(any_ledger)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(runner.run(credit.sync, reference, 5_000), 0.1)
        retried = await runner.run(credit.sync, reference, 5_000)
    assert retried.disposition is Disposition.COMPLETE
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 1)


def test_a12_after_a_single_attempt_reading_tells_what_happened(
    http_ledger: HttpLedger, ledger_address: str, reference: str
) -> None:
    http_ledger.fail_next(client_killed("after_commit"))
    declared = json.dumps({"max_attempts": 1})
    with child("tests.situations.worker", "effect", ledger_address, http_ledger.url, reference, declared) as worker:
        assert worker.wait() == -9
    credit = CreditEffect(HttpxCredits(http_ledger), max_attempts=1)
    with ledger_at(ledger_address) as ledger:
        result = EffectRunner(ledger).observe(credit.sync, reference, 5_000)
    assert (result.disposition, result.evidence) == (Disposition.COMPLETE, Evidence.APPLIED)
    assert result.effect == HttpxCredits(http_ledger).find(reference)[0]
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 1)


def test_a12_a_single_attempt_that_never_landed_is_not_repeated(
    http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str
) -> None:
    http_ledger.fail_next(refused(503))
    credit = CreditEffect(HttpxCredits(http_ledger), max_attempts=1, in_flight_window=seconds(0.2))
    result = credit.settle(any_ledger, reference, within=0.6)
    assert (result.disposition, result.reason) == (Disposition.INVESTIGATE, Reason.ATTEMPTS_EXHAUSTED)
    assert result.evidence is Evidence.NOT_APPLIED
    assert EffectRunner(any_ledger).observe(credit.sync, "never asked for", 5_000).reason == Reason.NEVER_SENT
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (0, 1)
