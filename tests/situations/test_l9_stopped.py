"""L9: a process that was stopped between its reservation and its send, for longer than its window."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from corrobo_core import Disposition, Reason
from examples.http_ledger import HttpLedger
from tests.support.credits import CreditEffect, HttpxCredits, seconds
from tests.support.ledgers import ledger_at
from tests.support.processes import Child, child

WINDOW = 0.6


@contextmanager
def stopped_beyond_its_window(
    http: HttpLedger, address: str, reference: str, check: str = "kept"
) -> Iterator[Child]:
    """A worker that has reserved its attempt, sent nothing, and sleeps since its window ended."""
    module = "tests.situations.stopped_worker"
    with child(module, check, address, http.url, reference, str(WINDOW)) as worker:
        os.waitid(os.P_PID, worker.pid, os.WSTOPPED | os.WNOWAIT)
        time.sleep(WINDOW * 1.1)
        assert http.counts(reference).write_requests == 0
        yield worker


def awaken(worker: Child) -> tuple[list[str], dict[str, Any]]:
    """Let it go on to its end: what it sent, and what it reports."""
    worker.resume()
    assert worker.wait() == 0, worker.output
    *sent, report = worker.lines[1:]
    return sent, json.loads(report)


def credit_of(http: HttpLedger) -> CreditEffect:
    return CreditEffect(HttpxCredits(http), in_flight_window=seconds(WINDOW))


def test_it_sends_nothing_with_that_attempt_and_completes_once(
    http_ledger: HttpLedger, ledger_address: str, reference: str
) -> None:
    with stopped_beyond_its_window(http_ledger, ledger_address, reference) as worker:
        sent, report = awaken(worker)
    assert sent == ["attempt 2 sends"]
    assert report == {
        "disposition": "COMPLETE",
        "reason": "EFFECT_CONFIRMED",
        "outcomes": ["NOT_SENT", "RESPONDED"],
    }
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 1)


def test_another_process_that_looks_meanwhile_sends_nothing_either(
    http_ledger: HttpLedger, ledger_address: str, reference: str
) -> None:
    with (
        stopped_beyond_its_window(http_ledger, ledger_address, reference) as worker,
        ledger_at(ledger_address) as ledger,
    ):
        credit = credit_of(http_ledger)
        for _ in range(2):
            looked = credit.run(ledger, reference)
            assert (looked.disposition, looked.reason) == (Disposition.INVESTIGATE, Reason.STILL_RUNNING)
        assert http_ledger.counts(reference).write_requests == 0
        sent, report = awaken(worker)
        assert sent == ["attempt 2 sends"]
        assert report["outcomes"] == ["NOT_SENT", "RESPONDED"]
        assert credit.settle(ledger, reference).disposition is Disposition.COMPLETE
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 1)


def test_without_the_check_it_sends_long_after_its_window(
    http_ledger: HttpLedger, ledger_address: str, reference: str
) -> None:
    with stopped_beyond_its_window(http_ledger, ledger_address, reference, check="removed") as worker:
        sent, _ = awaken(worker)
    assert sent == ["attempt 1 sends"]


def taken_over(http: HttpLedger, address: str, reference: str, check: str) -> int:
    """Its owner session was cut while it was stopped, so another process took it for dead; then it awakes."""
    dsn, _, _ = address.partition("#")
    with stopped_beyond_its_window(http, address, reference, check) as worker:
        with psycopg.connect(dsn, autocommit=True) as admin:
            cut = admin.execute(
                "select pg_terminate_backend(pid, 5000) from pg_locks where locktype = 'advisory' and granted"
                " and database = (select oid from pg_database where datname = current_database())"
            ).fetchall()
        assert cut == [(True,)]
        with ledger_at(address) as ledger:
            taken = credit_of(http).settle(ledger, reference)
        assert taken.disposition is Disposition.COMPLETE
        assert [attempt.outcome for attempt in taken.attempts] == ["UNRECORDED", "RESPONDED"]
        _, report = awaken(worker)
        assert report["disposition"] == "COMPLETE"
    return http.count(reference)


def test_taken_for_dead_and_replaced_it_still_sends_nothing(
    http_ledger: HttpLedger, postgres_address: str, reference: str
) -> None:
    assert taken_over(http_ledger, postgres_address, reference, "kept") == 1


def test_taken_for_dead_and_replaced_without_the_check_it_writes_a_second_time(
    http_ledger: HttpLedger, postgres_address: str, reference: str
) -> None:
    assert taken_over(http_ledger, postgres_address, reference, "removed") == 2
