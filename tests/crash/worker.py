"""Workers that kill themselves with SIGKILL before or after their n-th ledger command, each a process of its own.

Arguments: ledger ("sqlite" or "postgres"), its path or DSN, the HTTP ledger's URL. Prints one line for each worker:
its reference and the signal that ended it. With "naive" as the ledger: one worker that remembers by itself.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

from corrobo_core import Attempt, Backoff, Disposition, EffectRunner, Observation, Verdict, effect
from corrobo_core.ledgers.ports import Ledger
from corrobo_core.ledgers.postgres import PostgresLedger
from corrobo_core.ledgers.sqlite import SqliteLedger
from examples.http_ledger import Credit, HttpLedger, answer_lost
from tests.crash.process import Process, Side

WINDOW = timedelta(seconds=1)
SHORT = Backoff(timedelta(milliseconds=50), timedelta(milliseconds=50))
# What goes wrong with the first write, and the ledger commands that it takes until the effect is confirmed.
FAULTS = {"lost": ["Open", "Record"], "never": ["Open", "Record", "Open", "Claim", "Record"]}
SIDES: tuple[Side, Side] = ("before", "after")
POINTS = [
    (fault, at, side) for fault, commands in FAULTS.items() for at in range(1, len(commands) + 1) for side in SIDES
]


def reference(fault: str, at: int, side: str) -> str:
    return f"{fault} {side} {at}"


def open_ledger(kind: str, where: str) -> SqliteLedger | PostgresLedger:
    return SqliteLedger(where) if kind == "sqlite" else PostgresLedger(where)


def work(ledger: Ledger, world: HttpLedger, reference: str) -> Disposition:
    """Passes, each when it is due, until there is nothing more to do."""

    @effect(
        "crash/credit",
        identity=lambda reference: reference,
        in_flight_window=WINDOW,
        execute_timeout=WINDOW / 4,
        poll=SHORT,
    )
    def credit(attempt: Attempt, reference: str) -> Credit:
        if attempt.number == 1 and reference.startswith("never"):
            raise TimeoutError("it never arrives")
        return world.credit("alice", reference, 5_000)

    @credit.observe
    def see(attempt: Attempt, reference: str) -> Observation[list[Credit]]:
        return Observation.of(world.credits("alice", reference), source="GET credits", proves_absence=True)

    @see.reconcile
    def judge(attempt: Attempt, found: list[Credit]) -> Verdict[Credit]:
        match found:
            case []:
                return Verdict.not_applied("NOTHING")
            case [one]:
                return Verdict.applied("THERE", effect=one)
            case _:
                return Verdict.conflicted("DUPLICATES")

    runner = EffectRunner(ledger)
    while True:
        result = runner.run(credit, reference)
        if result.disposition in (Disposition.COMPLETE, Disposition.REPLAN):
            return result.disposition
        time.sleep(max(result.wait.total_seconds(), 0.01))


def naive_work(done: Path, world: HttpLedger) -> None:
    """What scripts do: remember on disk that it is done, once it is done. Killed in between the first time."""
    if done.exists():
        return
    begun = done.with_suffix(".begun")
    world.credit("alice", "naive", 5_000)
    if not begun.exists():
        begun.touch()
        end()
    done.touch()


def end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def one_worker(kind: str, where: str, world: HttpLedger, fault: str, at: int, side: Side) -> None:
    with open_ledger(kind, where) as ledger:
        process = Process(ledger, at, side, what=end)
        work(process.ledger, world, reference(fault, at, side))


def main(kind: str, where: str, url: str) -> None:
    """Start all workers at once, each a fork of this process, and say how each ended."""
    world = HttpLedger(url)
    if kind == "naive":
        naive_work(Path(where), world)
        return
    world.fail_next(*(answer_lost(reference=reference(*point)) for point in POINTS if point[0] == "lost"))
    running: dict[int, str] = {}
    for point in POINTS:
        pid = os.fork()
        if pid == 0:
            one_worker(kind, where, world, *point)
            os._exit(0)
        running[pid] = reference(*point)
    for pid, name in running.items():
        _, status = os.waitpid(pid, 0)
        print(json.dumps([name, os.WTERMSIG(status)]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
