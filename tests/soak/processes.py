"""The worker processes: started, killed, stopped, and started again whenever one has ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from tests.soak.effects import PARENT
from tests.support.processes import Child, child


@dataclass(frozen=True)
class Program:
    """How to start one worker.

    Attributes:
        name: of the worker, such as "dbos-2".
        module: the Python module to run.
        args: its arguments.
        env: added to the environment.
    """

    name: str
    module: str
    args: tuple[str, ...]
    env: dict[str, str]


@dataclass
class Worker:
    """One worker, whichever process is it now."""

    program: Program
    process: Child
    stack: ExitStack = field(repr=False)
    paused: bool = False

    @property
    def name(self) -> str:
        return self.program.name


class Fleet:
    """All workers.

    Attributes:
        killed: how many processes ended by SIGKILL, whoever sent it.
        failed: the last output of processes that ended in any other way.
    """

    def __init__(self) -> None:
        self.workers: list[Worker] = []
        self.killed = 0
        self.failed: list[str] = []

    def start(self, programs: list[Program], timeout: float = 60.0) -> None:
        """Start a worker for each, and wait until all have said that they work."""
        for program in programs:
            self.workers.append(_started(program))
        for worker in self.workers:
            worker.process.wait_for("ready", timeout)

    def restart_ended(self) -> None:
        """Start a process for each worker that has none."""
        for worker in self.workers:
            code = worker.process.returncode
            if code is None:
                continue
            if code == -signal.SIGKILL:
                self.killed += 1
            else:
                self.failed.append(f"{worker.name} ended with {code}: ...{worker.process.output[-2_000:]}")
            worker.stack.close()
            fresh = _started(worker.program)
            worker.process, worker.stack, worker.paused = fresh.process, fresh.stack, False

    def close(self) -> None:
        """Kill and reap all processes."""
        for worker in self.workers:
            worker.stack.close()


def _started(program: Program) -> Worker:
    stack = ExitStack()
    environment = {**program.env, PARENT: str(os.getpid())}
    process = stack.enter_context(child(program.module, *program.args, env=environment))
    return Worker(program, process, stack)


@contextmanager
def running_fleet(programs: list[Program]) -> Iterator[Fleet]:
    """All workers, until the end."""
    fleet = Fleet()
    try:
        fleet.start(programs)
        yield fleet
    finally:
        fleet.close()
