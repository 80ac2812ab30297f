"""One of two processes that race: ``python -m tests.situations.racer {effect,naive} LEDGER FOLDER {0,1}``.

For each of 200 operations both wait until the other has come as far, then both begin at once. An execution
appends one line to a file, which is what counts. Prints one line of JSON at the end.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from corrobo_core import Attempt, Disposition, Effect, EffectRunner, Observation, Reason, Verdict, effect
from tests.support.credits import settle
from tests.support.ledgers import ledger_at

COUNT = 200


class Executions:
    """The outside system: a file with one line for each execution."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "executions"
        self._file = os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def add(self, operation_id: str) -> None:
        """Execute, unconditionally."""
        os.write(self._file, f"{operation_id}\n".encode())

    def all(self) -> list[str]:
        """What was executed, in order."""
        return self.path.read_text().split()


class Rendezvous:
    """Two processes that wait for each other, many times, within microseconds."""

    def __init__(self, folder: Path, me: int) -> None:
        path = folder / "rendezvous"
        file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        os.truncate(file, 16)
        self._memory, self._me = mmap.mmap(file, 16), me

    def reach(self, number: int) -> None:
        """Wait until the other one has reached ``number`` too."""
        struct.pack_into("q", self._memory, 8 * self._me, number)
        deadline = time.monotonic() + 30
        while struct.unpack_from("q", self._memory, 8 * (1 - self._me))[0] < number:
            if time.monotonic() > deadline:
                raise TimeoutError("the other process did not come")
            os.sched_yield()


def execute_once(executions: Executions) -> Effect[[str], str]:
    """An effect that takes a moment."""

    @effect("test/race", identity=lambda operation_id: operation_id, in_flight_window=timedelta(seconds=30))
    def execution(attempt: Attempt, operation_id: str) -> str:
        time.sleep(0.003)
        executions.add(operation_id)
        return operation_id

    @execution.observe
    def seen(attempt: Attempt, operation_id: str) -> Observation[int]:
        return Observation.of(executions.all().count(operation_id), source="file", proves_absence=True)

    @seen.reconcile
    def judge(attempt: Attempt, found: int, operation_id: str) -> Verdict[str]:
        return Verdict.applied("THERE", effect=operation_id) if found else Verdict.not_applied("NOT_THERE")

    return execution


def race(rendezvous: Rendezvous, one: Callable[[str], bool]) -> int:
    """Race for every operation; how many this process lost to an execution still going on."""
    lost = 0
    for number in range(COUNT):
        rendezvous.reach(number + 1)
        lost += one(f"op-{number}")
    return lost


def main(what: str, address: str, folder: str, me: str) -> None:
    """Race to the end."""
    executions, rendezvous = Executions(Path(folder)), Rendezvous(Path(folder), int(me))
    if what == "naive":

        def look_and_execute(operation_id: str) -> bool:
            if operation_id not in executions.all():
                time.sleep(0.003)
                executions.add(operation_id)
            return False

        race(rendezvous, look_and_execute)
        return

    execution = execute_once(executions)
    with ledger_at(address) as ledger:
        runner = EffectRunner(ledger)

        def run(operation_id: str) -> bool:
            return runner.run(execution, operation_id).reason == Reason.IN_PROGRESS

        lost = race(rendezvous, run)
        ends = [settle(lambda n=n: runner.run(execution, f"op-{n}")) for n in range(COUNT)]  # type: ignore[misc]
        complete = sum(end.disposition is Disposition.COMPLETE for end in ends)
        attempts = sum(len(end.attempts) for end in ends)
        print(json.dumps({"lost": lost, "complete": complete, "attempts": attempts}))


if __name__ == "__main__":
    main(*sys.argv[1:])
