"""The engines, as the soak sees them: who works, how work is handed in, and what has ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from tests.soak.jobs import Jobs, jobs_at
from tests.soak.processes import Program

Group: TypeAlias = Literal["effect", "naive"]
GROUPS: tuple[Group, Group] = ("effect", "naive")
WORKERS = 2  # for each engine


@dataclass(frozen=True)
class Ended:
    """One credit, as its engine saw it end. Times are in seconds since the epoch.

    Attributes:
        credit_id: the outside system's id of it, if it is reported as made.
        error: how it failed, if it did.
    """

    reference: str
    submitted_at: float
    ended_at: float
    credit_id: str | None = None
    error: str | None = None


class Engine(Protocol):
    """One way to run the effect and its naive twin."""

    name: str

    def programs(self, env: dict[str, str]) -> list[Program]:
        """Its workers, which run both groups."""
        ...

    def submit(self, group: Group, reference: str) -> None:
        """Have one credit made. Once submitted, again does nothing, unless it has failed."""
        ...

    def ended(self) -> list[Ended]:
        """Everything that has ended."""
        ...


class JobQueue:
    """No engine: plain workers and a table."""

    name = "jobs"

    def __init__(self, dsn: str, jobs: Jobs) -> None:
        self._dsn, self._jobs = dsn, jobs

    def programs(self, env: dict[str, str]) -> list[Program]:
        """See `Engine`."""
        return [
            Program(f"{self.name}-{number}", "tests.soak.jobs_worker", (self._dsn,), env)
            for number in range(WORKERS)
        ]

    def submit(self, group: Group, reference: str) -> None:
        """See `Engine`."""
        self._jobs.add(group, reference)

    def ended(self) -> list[Ended]:
        """See `Engine`."""
        return [Ended(*row) for row in self._jobs.ended()]


@contextmanager
def job_queue(dsn: str) -> Iterator[JobQueue]:
    """The job queue in an empty database."""
    with jobs_at(dsn) as jobs:
        jobs.create()
        yield JobQueue(dsn, jobs)
