"""A process that uses an SQLite ledger, for the tests that race, kill and fork it.

``python -m tests.ledgers.sqlite_worker ACTION PATH ...``; it prints one marked line for each step.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from corrobo_core.commands import Load, Open, Record, Written
from corrobo_core.errors import UsageError
from corrobo_core.ledgers.sqlite import SqliteLedger
from corrobo_core.records import evolve
from corrobo_core.testing._operations import new_nonce, pass_of, recorded, reserving, unsent


def say(marker: str, value: object = None) -> None:
    """One line for the test."""
    print(marker, json.dumps(value), flush=True)


def race(path: str, count: str, start: str) -> None:
    """Open ``count`` ids from the moment that the file ``start`` is there; say which are mine."""
    with SqliteLedger(path) as ledger:
        _wait_for(start)
        mine = [n for n in range(int(count)) if ledger.perform(Open(reserving(unsent(f"raced {n}")))).mine]
    say("mine", mine)


def race_naively(path: str, count: str, start: str) -> None:
    """The same without the ledger's statement: look first, then insert."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=5)
    connection.execute("create table if not exists naive (id text)")
    _wait_for(start)
    mine = []
    for n in range(int(count)):
        if not connection.execute("select 1 from naive where id = ?", (str(n),)).fetchall():
            time.sleep(0.002)  # a hook, a context switch
            connection.execute("insert into naive values (?)", (str(n),))
            mine.append(n)
    connection.close()
    say("mine", mine)


def hold(path: str, operation_id: str) -> None:
    """Reserve an attempt, and run until killed."""
    ledger = SqliteLedger(path)
    _reserve(ledger, operation_id)
    signal.pause()


def hold_with_child(path: str, operation_id: str, forgetful: str) -> None:
    """Reserve an attempt, and fork a child that outlives this process; ``forgetful``: it keeps what it inherits."""
    ledger = SqliteLedger(path)
    _reserve(ledger, operation_id)
    if forgetful == "yes":
        ledger._owner.after_fork_in_child = lambda: None  # type: ignore[method-assign]
    if os.fork() == 0:
        say("forked")
    signal.pause()


def fork(path: str) -> None:
    """A child that uses the ledger, closes it and exits leaves its parent's attempt and lock as they were."""
    ledger = SqliteLedger(path)
    _reserve(ledger, "the parent's")

    def in_child() -> None:
        parents = ledger.perform(Load(unsent("the parent's").key))
        own = ledger.perform(Open(reserving(unsent("the child's"))))
        say("child", [parents.holder.value, own.mine, own.operation.owner])
        ledger.close()

    _in_fork(in_child)
    again = ledger.perform(Load(unsent("the parent's").key))
    child = ledger.perform(Load(unsent("the child's").key))
    assert again.operation is not None
    say("parent", [again.holder.value, again.operation.owner, child.holder.value])
    signal.pause()


def fork_unprepared(path: str) -> None:
    """A child that inherited open connections refuses to work, and its parent works on."""
    ledger = SqliteLedger(path)
    _reserve(ledger, "the parent's")
    ledger.before_fork = lambda: None  # type: ignore[method-assign]

    def in_child() -> None:
        try:
            ledger.perform(Load(unsent("the parent's").key))
        except UsageError as error:
            say("refused", str(error))

    _in_fork(in_child)
    say("parent", ledger.perform(Load(unsent("the parent's").key)).holder.value)


def fork_among_writers(path: str, rounds: str) -> None:
    """Fork again and again while threads write; parents and children write on."""
    ledger = SqliteLedger(path)
    stop = threading.Event()
    written: list[str] = []

    def write(name: str) -> None:
        for n in range(100_000):
            if stop.is_set():
                return
            _whole_effect(ledger, f"{name} {n}")
            written.append(f"{name} {n}")

    threads = [threading.Thread(target=write, args=(f"thread {n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    for n in range(int(rounds)):
        names = [f"child {n} {m}" for m in range(5)]
        _in_fork(partial(_whole_effects, ledger, names))
        written.extend(names)
    stop.set()
    for thread in threads:
        thread.join()
    ledger.close()
    say("written", written)


def die_reading(path: str, when: str) -> None:
    """Reserve an attempt and die by SIGKILL ``before`` or ``after`` the statement's reply is read to its end."""

    class Dying(sqlite3.Cursor):
        inserting = False

        def execute(self, sql: str, *values: Any) -> Dying:
            self.inserting = sql.startswith("insert into corrobo_operation")
            super().execute(sql, *values)
            return self

        def fetchall(self) -> list[Any]:
            if self.inserting and when == "before":
                _die()
            rows = super().fetchall()
            if self.inserting:
                _die()
            return rows

    class Connection(sqlite3.Connection):
        def cursor(self, factory: Any = Dying) -> Any:
            return super().cursor(factory)

        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            return self.cursor().execute(sql, *values)  # type: ignore[no-any-return]

    connect = sqlite3.connect
    sqlite3.connect = lambda *args, **options: connect(*args, factory=Connection, **options)  # type: ignore[assignment]
    SqliteLedger(path).perform(Open(reserving(unsent("the one"))))
    say("survived")


def _die() -> None:
    say("dying")
    os.kill(os.getpid(), signal.SIGKILL)


def _reserve(ledger: SqliteLedger, operation_id: str) -> None:
    operation = reserving(unsent(operation_id))
    ledger.pass_started(pass_of(operation))
    opened = ledger.perform(Open(operation))
    say("reserved", [opened.mine, opened.holder.value, opened.operation.owner])


def _whole_effect(ledger: SqliteLedger, operation_id: str) -> None:
    opened = ledger.perform(Open(reserving(unsent(operation_id))))
    assert opened.mine
    done = ledger.perform(Record(evolve(recorded(opened.operation), nonce=new_nonce())))
    assert isinstance(done, Written)


def _whole_effects(ledger: SqliteLedger, operation_ids: list[str]) -> None:
    for operation_id in operation_ids:
        _whole_effect(ledger, operation_id)


def _in_fork(action: Callable[[], object]) -> None:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            action()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0


def _wait_for(path: str) -> None:
    say("ready")
    while not Path(path).exists():
        time.sleep(0.0005)


ACTIONS: list[Callable[..., None]] = [
    race,
    race_naively,
    hold,
    hold_with_child,
    fork,
    fork_unprepared,
    fork_among_writers,
    die_reading,
]

if __name__ == "__main__":
    {action.__name__: action for action in ACTIONS}[sys.argv[1]](*sys.argv[2:])
