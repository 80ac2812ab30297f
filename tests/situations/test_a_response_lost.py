"""A: the write is done, its response is lost, and the caller tries again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import httpx
import pytest

from corrobo_core import Disposition, Outcome
from examples.http_ledger import Credit, Fault, HttpLedger, answer_lost, slow_answer
from tests.support.credits import ACCOUNT, CreditEffect, HttpxCredits, Kind, retry_blindly, seconds
from tests.support.ledgers import AnyLedger


@dataclass(frozen=True)
class Loss:
    """How the response is lost, and what the caller gets instead."""

    fault: Fault
    raises: type[Exception]
    client: Callable[[HttpLedger], Callable[[str, int], Credit]]


def _with_httpx(http: HttpLedger) -> Callable[[str, int], Credit]:
    return HttpxCredits(http, timeout=0.15).send


def _with_urllib(http: HttpLedger) -> Callable[[str, int], Credit]:
    return lambda reference, cents: replace(http, timeout=0.15).credit(ACCOUNT, reference, cents)


LOSSES = {
    "connection reset": Loss(answer_lost(reset=True), httpx.ReadError, _with_httpx),
    "TimeoutError": Loss(slow_answer(0.6), TimeoutError, _with_urllib),
    "httpx.ReadTimeout": Loss(slow_answer(0.6), httpx.ReadTimeout, _with_httpx),
}


@pytest.fixture(params=list(LOSSES))
def loss(request: pytest.FixtureRequest) -> Loss:
    return LOSSES[request.param]


def test_naive_retries_write_twice(loss: Loss, http_ledger: HttpLedger, reference: str) -> None:
    http_ledger.fail_next(loss.fault)
    send = loss.client(http_ledger)
    with pytest.raises(loss.raises):
        send(reference, 5_000)
    retry_blindly(lambda: send(reference, 5_000))
    assert http_ledger.count(reference) == 2


def test_an_effect_writes_once(loss: Loss, http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str) -> None:
    http_ledger.fail_next(loss.fault)
    client = HttpxCredits(http_ledger)
    credit = CreditEffect(client, send=loss.client(http_ledger), in_flight_window=seconds(5))
    first = credit.run(any_ledger, reference)
    again = credit.run(any_ledger, reference)
    for result in (first, again):
        assert result.disposition is Disposition.COMPLETE
        assert result.effect == client.find(reference)[0]
        assert [(a.outcome, a.failure and a.failure.type) for a in result.attempts] == [
            (Outcome.AMBIGUOUS, loss.raises.__name__)
        ]
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 1)


@pytest.mark.parametrize("fault", [answer_lost(reset=True), slow_answer(0.6)], ids=["reset", "timeout"])
def test_an_async_effect_writes_once(
    fault: Fault, http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str
) -> None:
    http_ledger.fail_next(fault)
    kind: Kind = "async"
    credit = CreditEffect(HttpxCredits(http_ledger, timeout=0.15), kind, in_flight_window=seconds(5))
    for _ in range(2):
        result = credit.run(any_ledger, reference)
        assert result.disposition is Disposition.COMPLETE
        assert [a.outcome for a in result.attempts] == [Outcome.AMBIGUOUS]
    assert http_ledger.counts(reference).write_requests == http_ledger.count(reference) == 1
