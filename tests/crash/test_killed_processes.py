"""Real processes that SIGKILL themselves around every ledger command; the test's own process goes on for them."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from corrobo_core import Disposition
from examples.http_ledger import HttpLedger
from tests.crash.worker import POINTS, open_ledger, reference, work
from tests.support.postgres import fresh_database
from tests.support.processes import child


@pytest.fixture(params=["sqlite", "postgres"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """Which ledger, and where."""
    where = str(tmp_path / "effects.db")
    if request.param == "postgres":
        where = request.getfixturevalue("empty_database")
    with open_ledger(request.param, where) as ledger:
        ledger.migrate()
    return request.param, where


@pytest.fixture
def empty_database(postgres_admin: str) -> Iterator[str]:
    with fresh_database(postgres_admin) as dsn:
        yield dsn


def test_workers_killed_around_every_ledger_command(storage: tuple[str, str], http_ledger: HttpLedger) -> None:
    kind, where = storage
    with child("tests.crash.worker", kind, where, http_ledger.url) as workers:
        assert workers.wait(60) == 0, workers.output
        ended = dict(json.loads(line) for line in workers.lines)
    assert ended == {reference(*point): signal.SIGKILL for point in POINTS}, workers.output

    with open_ledger(kind, where) as ledger:
        for point in POINTS:
            assert work(ledger, http_ledger, reference(*point)) is Disposition.COMPLETE
    assert {name: http_ledger.count(name) for name in ended} == dict.fromkeys(ended, 1)


def test_a_naive_worker_killed_after_its_write_writes_twice(tmp_path: Path, http_ledger: HttpLedger) -> None:
    for ends in (-signal.SIGKILL, 0, 0):
        with child("tests.crash.worker", "naive", str(tmp_path / "done"), http_ledger.url) as worker:
            assert worker.wait() == ends, worker.output
    assert http_ledger.count("naive") == 2
