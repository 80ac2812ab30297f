"""C: the caller has given up, and the request lands afterwards."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import httpx
import pytest

from corrobo_core import Disposition, Outcome, Reason
from examples.http_ledger import HttpLedger, lands_late, refused, slow_commit
from tests.support.credits import CreditEffect, HttpxCredits, Kind, check_then_send, retry_blindly, seconds
from tests.support.ledgers import AnyLedger

LATE = 0.6
WINDOW = 1.2

HOW = {
    "connection lost": lands_late(LATE),
    "timeout": slow_commit(LATE),
    "accepted, 202": lands_late(LATE, status=202),
    "unavailable, 503": lands_late(LATE, status=503),
}


def client_of(http: HttpLedger) -> HttpxCredits:
    return HttpxCredits(http, timeout=0.1)


@pytest.mark.parametrize("careful", [False, True], ids=["retry", "look, then retry"])
def test_naive_retries_write_twice(careful: bool, http_ledger: HttpLedger, reference: str) -> None:
    http_ledger.fail_next(replace(lands_late(LATE), reference=reference))
    client = client_of(http_ledger)

    def send() -> None:
        client.send(reference, 5_000)

    if careful:
        with suppress(httpx.HTTPError):
            send()
        check_then_send(lambda: client.find(reference), send)
    else:
        retry_blindly(send)
    http_ledger.wait_for_count(2, reference)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_an_effect_waits_for_its_window_and_writes_once(
    kind: Kind, http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str
) -> None:
    client = client_of(http_ledger)
    credit = CreditEffect(client, kind, in_flight_window=seconds(WINDOW))
    references = {how: f"{reference} {how}" for how in HOW}
    http_ledger.fail_next(*(replace(HOW[how], reference=about) for how, about in references.items()))

    for about in references.values():
        first = credit.run(any_ledger, about)
        assert (first.disposition, first.reason) == (Disposition.RETRY, Reason.SETTLING)
        assert first.retry_at is not None
        assert first.attempts[0].started is not None
        assert first.retry_at - first.attempts[0].started > seconds(WINDOW)

        hurried = credit.run(any_ledger, about)  # long before it was told to
        assert (hurried.disposition, hurried.retry_at) == (first.disposition, first.retry_at)

    for about in references.values():
        end = credit.settle(any_ledger, about)
        assert end.disposition is Disposition.COMPLETE
        assert end.effect == client.find(about)[0]
        counts = http_ledger.counts(about)
        assert (counts.credits, counts.write_requests) == (1, 1)


def test_what_never_landed_is_sent_again_after_the_window(
    http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str
) -> None:
    http_ledger.fail_next(refused(503))
    end = CreditEffect(client_of(http_ledger), in_flight_window=seconds(0.3)).settle(any_ledger, reference)
    assert end.disposition is Disposition.COMPLETE
    assert [attempt.outcome for attempt in end.attempts] == [Outcome.AMBIGUOUS, Outcome.RESPONDED]
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 2)
