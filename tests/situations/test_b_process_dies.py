"""B: the process dies after the write, before it could note anything; another one starts over."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from examples.http_ledger import HttpLedger, client_killed
from tests.support.processes import Child, child

WINDOW = 0.8


@contextmanager
def working(what: str, address: str, http: HttpLedger, reference: str) -> Iterator[Child]:
    declared = json.dumps({"in_flight_window": WINDOW})
    with child("tests.situations.worker", what, address, http.url, reference, declared) as worker:
        yield worker


def run_until_killed(what: str, address: str, http: HttpLedger, reference: str) -> None:
    with working(what, address, http, reference) as worker:
        assert worker.wait() == -9, worker.output


def run_to_the_end(address: str, http: HttpLedger, reference: str) -> dict[str, Any]:
    with working("effect", address, http, reference) as worker:
        assert worker.wait() == 0, worker.output
        report: dict[str, Any] = json.loads(worker.output)
        return report


def test_a_naive_restart_writes_twice(http_ledger: HttpLedger, reference: str) -> None:
    http_ledger.fail_next(client_killed("after_commit"))
    run_until_killed("naive", "", http_ledger, reference)
    with working("naive", "", http_ledger, reference) as worker:
        assert worker.wait() == 0
    assert http_ledger.count(reference) == 2


@pytest.mark.parametrize("pause", [0.0, WINDOW], ids=["at once", "after the window"])
def test_an_effect_taken_over_writes_once(
    pause: float, http_ledger: HttpLedger, ledger_address: str, reference: str
) -> None:
    http_ledger.fail_next(client_killed("after_commit"))
    run_until_killed("effect", ledger_address, http_ledger, reference)
    time.sleep(pause)
    report = run_to_the_end(ledger_address, http_ledger, reference)
    assert report == {"disposition": "COMPLETE", "reason": "EFFECT_CONFIRMED", "outcomes": ["UNRECORDED"]}
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 1)


def test_killed_before_the_write_it_is_made_by_the_next_process_after_the_window(
    http_ledger: HttpLedger, ledger_address: str, reference: str
) -> None:
    http_ledger.fail_next(client_killed("before_commit"))
    run_until_killed("effect", ledger_address, http_ledger, reference)
    report = run_to_the_end(ledger_address, http_ledger, reference)
    assert report["disposition"] == "COMPLETE"
    assert report["outcomes"] == ["UNRECORDED", "RESPONDED"]
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 2)
