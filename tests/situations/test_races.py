"""Two processes race for the same operations, and the holder of one is killed."""

from __future__ import annotations

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from corrobo_core import Disposition, Reason
from examples.http_ledger import HttpLedger, slow_answer
from tests.situations.racer import COUNT, Executions
from tests.support.credits import CreditEffect, HttpxCredits, seconds
from tests.support.ledgers import ledger_at
from tests.support.processes import child


def race(what: str, address: str, folder: Path) -> list[str]:
    """Two processes race to the end; what each has printed."""
    with ExitStack() as stack:
        racers = [
            stack.enter_context(child("tests.situations.racer", what, address, str(folder), me)) for me in "01"
        ]
        for racer in racers:
            assert racer.wait(60) == 0, racer.output
        return [racer.output for racer in racers]


def test_naive_racers_execute_twice(tmp_path: Path) -> None:
    race("naive", "", tmp_path)
    assert max(Counter(Executions(tmp_path).all()).values()) == 2


def test_each_of_200_operations_is_executed_once(ledger_address: str, tmp_path: Path) -> None:
    reports: list[dict[str, Any]] = [json.loads(output) for output in race("effect", ledger_address, tmp_path)]
    assert Counter(Executions(tmp_path).all()) == Counter({f"op-{number}": 1 for number in range(COUNT)})
    for report in reports:
        assert (report["complete"], report["attempts"]) == (COUNT, COUNT)
    # Not one after the other: the loser has met the winner's attempt while it was made.
    assert sum(report["lost"] for report in reports) > COUNT / 10


def test_a_killed_holder_is_succeeded_within_a_second(
    http_ledger: HttpLedger, ledger_address: str, reference: str
) -> None:
    http_ledger.fail_next(slow_answer(30))
    declared = json.dumps({"in_flight_window": 60})
    with (
        child("tests.situations.worker", "effect", ledger_address, http_ledger.url, reference, declared) as holder,
        ledger_at(ledger_address) as ledger,
        ThreadPoolExecutor(1) as thread,
    ):
        http_ledger.wait_for_count(1, reference)
        credit = CreditEffect(HttpxCredits(http_ledger), in_flight_window=seconds(60))
        assert credit.run(ledger, reference).reason == Reason.IN_PROGRESS
        waiting = thread.submit(credit.settle, ledger, reference)  # comes back when it is told to
        time.sleep(0.5)
        assert not waiting.done()
        killed = time.monotonic()
        holder.kill()
        end = waiting.result()
        took = time.monotonic() - killed
    assert end.disposition is Disposition.COMPLETE
    assert [attempt.outcome for attempt in end.attempts] == ["UNRECORDED"]
    assert took < 1.0
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 1)
