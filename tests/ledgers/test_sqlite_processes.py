"""Several processes on one SQLite ledger: races, kills, forks. All of them are real."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from corrobo_core.commands import Claim, Holder, Load, Loaded, Open
from corrobo_core.ledgers.sqlite import SqliteLedger
from corrobo_core.records import Outcome
from corrobo_core.testing._operations import recorded, reserving, unsent
from tests.support.processes import Child, child

WORKER = "tests.ledgers.sqlite_worker"


@contextmanager
def worker(action: str, path: Path, *args: object) -> Iterator[Child]:
    with child(WORKER, action, str(path), *map(str, args)) as process:
        yield process


def said(process: Child, marker: str) -> Any:
    return json.loads(process.wait_for(marker + " ").removeprefix(marker + " "))


def load(ledger: SqliteLedger, operation_id: str) -> Loaded:
    return ledger.perform(Load(unsent(operation_id).key))


# -- races ---------------------------------------------------------------------------------------------------


def raced(action: str, path: Path, start: Path) -> list[int]:
    with ExitStack() as stack:
        racers = [stack.enter_context(worker(action, path, 200, start)) for _ in range(2)]
        for racer in racers:
            racer.wait_for("ready")
        start.touch()
        return [n for racer in racers for n in said(racer, "mine")]


def test_of_two_processes_that_race_for_200_ids_one_gets_each(
    sqlite_ledger: SqliteLedger, sqlite_path: Path, tmp_path: Path
) -> None:
    """C1."""
    assert sorted(raced("race", sqlite_path, tmp_path / "go")) == list(range(200))


def test_the_naive_twin_of_that_race_gives_ids_to_both(tmp_path: Path) -> None:
    assert len(raced("race_naively", tmp_path / "naive.db", tmp_path / "go")) > 200


# -- kills ---------------------------------------------------------------------------------------------------


def test_a_killed_owner_is_gone_at_once_and_a_stopped_one_lives(
    sqlite_ledger: SqliteLedger, sqlite_path: Path
) -> None:
    """C4: no timer has to pass."""
    with worker("hold", sqlite_path, "held") as process:
        assert said(process, "reserved")[:2] == [True, "running"]
        assert load(sqlite_ledger, "held").holder is Holder.RUNNING
        process.pause()
        assert load(sqlite_ledger, "held").holder is Holder.RUNNING
        process.kill()
        found = load(sqlite_ledger, "held")
        assert found.holder is Holder.GONE
        assert found.operation is not None
        again = reserving(recorded(found.operation, Outcome.UNRECORDED))
        assert load(sqlite_ledger, "held").operation == found.operation
        assert type(sqlite_ledger.perform(Claim(again))).__name__ == "Written"


def test_the_files_of_dead_owners_are_removed(sqlite_ledger: SqliteLedger, sqlite_path: Path) -> None:
    folder = sqlite_path.with_name("effects.db-owners")
    with worker("hold", sqlite_path, "held") as process:
        said(process, "reserved")
        process.kill()
    (stale,) = folder.iterdir()
    sqlite_ledger.perform(Open(reserving(unsent())))
    assert stale not in folder.iterdir()
    assert len(list(folder.iterdir())) == 1
    assert load(sqlite_ledger, "held").holder is Holder.GONE


@pytest.mark.parametrize(
    ("when", "stored"), [("before", False), ("after", True)], ids=["unread-is-undone", "read-is-committed"]
)
def test_a_reservation_is_committed_when_its_reply_is_read_to_the_end(
    sqlite_ledger: SqliteLedger, sqlite_path: Path, when: str, stored: bool
) -> None:
    """L1."""
    with worker("die_reading", sqlite_path, when) as process:
        process.wait_for("dying")
        assert process.wait() == -signal.SIGKILL
    found = load(sqlite_ledger, "the one")
    assert (found.operation is not None) is stored
    assert found.holder is (Holder.GONE if stored else Holder.NOBODY)


# -- forks ---------------------------------------------------------------------------------------------------


def test_a_forked_child_has_its_own_owner_and_leaves_its_parents_lock(
    sqlite_ledger: SqliteLedger, sqlite_path: Path
) -> None:
    """C11."""
    with worker("fork", sqlite_path) as process:
        _, _, parents_key = said(process, "reserved")
        holder_in_child, mine, childs_key = said(process, "child")
        assert holder_in_child == "running"
        assert mine
        assert childs_key != parents_key
        assert said(process, "parent") == ["running", parents_key, "gone"]
        assert load(sqlite_ledger, "the parent's").holder is Holder.RUNNING
        process.kill()
        assert load(sqlite_ledger, "the parent's").holder is Holder.GONE


@pytest.mark.parametrize(("forgetful", "holder"), [("no", Holder.GONE), ("yes", Holder.RUNNING)])
def test_a_child_that_outlives_its_parent_does_not_hold_its_parents_lock(
    sqlite_ledger: SqliteLedger, sqlite_path: Path, forgetful: str, holder: Holder
) -> None:
    """C11: unless, as in the twin, it keeps the descriptor it inherited."""
    with worker("hold_with_child", sqlite_path, "held", forgetful) as process:
        process.wait_for("forked")
        os.kill(process.pid, signal.SIGKILL)
        process._process.wait()
        assert load(sqlite_ledger, "held").holder is holder


def test_a_child_that_inherited_connections_refuses_to_use_them(
    sqlite_ledger: SqliteLedger, sqlite_path: Path
) -> None:
    """C11: a fork that Python was not told about before."""
    with worker("fork_unprepared", sqlite_path) as process:
        assert "make a new one" in said(process, "refused")
        assert said(process, "parent") == "running"


def test_forks_among_writing_threads_lose_nothing(sqlite_ledger: SqliteLedger, sqlite_path: Path) -> None:
    """C11: SQLite's memory of its own locks is never inherited."""
    with worker("fork_among_writers", sqlite_path, 20) as process:
        written = said(process, "written")
        assert process.wait() == 0
    assert len(written) == len(set(written)) > 100
    for operation_id in written:
        found = load(sqlite_ledger, operation_id).operation
        assert found is not None
        assert found.version == 2
    connection = sqlite3.connect(sqlite_path)
    assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    assert connection.execute("select count(*) from corrobo_operation").fetchall() == [(len(written),)]
    connection.close()
