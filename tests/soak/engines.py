"""The engines, as the soak sees them: who works, how work is handed in, and what has ended."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from dbos import DBOS, DBOSClient, EnqueueOptions, WorkflowStatus
from sqlalchemy.exc import SQLAlchemyError
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy

from tests.soak.dbos_worker import QUEUE
from tests.soak.jobs import Jobs, jobs_at, until_answered
from tests.soak.processes import Program
from tests.soak.temporal_worker import TASK_QUEUE, OneCredit
from tests.support.temporal import running_temporal

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


class Temporal:
    """A Temporal server, with one workflow for each credit."""

    name = "temporal"

    def __init__(self, address: str, loop: asyncio.AbstractEventLoop) -> None:
        self._address, self._loop = address, loop
        self._client = loop.run_until_complete(Client.connect(address))
        self._running: dict[str, WorkflowHandle[Any, str]] = {}
        self._ended: dict[str, Ended] = {}

    def programs(self, env: dict[str, str]) -> list[Program]:
        """See `Engine`."""
        return [
            Program(f"{self.name}-{number}", "tests.soak.temporal_worker", (self._address,), env)
            for number in range(WORKERS)
        ]

    def submit(self, group: Group, reference: str) -> None:
        """See `Engine`."""
        start = self._client.start_workflow(
            OneCredit.run,
            args=[group, reference],
            id=reference,
            task_queue=TASK_QUEUE,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )
        self._running[reference] = self._loop.run_until_complete(start)
        self._ended.pop(reference, None)

    def ended(self) -> list[Ended]:
        """See `Engine`."""

        async def look() -> list[Ended | None]:
            return await asyncio.gather(*(self._look(*running) for running in self._running.items()))

        for end in self._loop.run_until_complete(look()):
            if end is not None:
                self._ended[end.reference] = end
                del self._running[end.reference]
        return list(self._ended.values())

    @staticmethod
    async def _look(reference: str, handle: WorkflowHandle[Any, str]) -> Ended | None:
        found = await handle.describe()
        if found.close_time is None:
            return None
        times = found.start_time.timestamp(), found.close_time.timestamp()
        try:
            return Ended(reference, *times, credit_id=await handle.result())
        except WorkflowFailureError as error:
            return Ended(reference, *times, error=repr(error.cause))


class Dbos:
    """DBOS on PostgreSQL, with one workflow for each credit, on a queue that two executors share."""

    name = "dbos"

    def __init__(self, dsn: str, client: DBOSClient) -> None:
        self._dsn, self._client = dsn, client
        self._times: Counter[str] = Counter()  # how often each reference was submitted

    def programs(self, env: dict[str, str]) -> list[Program]:
        """See `Engine`."""
        names = [f"{self.name}-{number}" for number in range(WORKERS)]
        return [Program(name, "tests.soak.dbos_worker", (self._dsn, name), env) for name in names]

    def submit(self, group: Group, reference: str) -> None:
        """See `Engine`. A workflow that has failed stays so: another one calls the same effect."""
        self._times[reference] += 1
        options: EnqueueOptions = {
            "queue_name": QUEUE,
            "workflow_name": group,
            "workflow_id": f"{reference}:{self._times[reference]}",
            "app_version": "1",
        }
        until_answered(lambda: self._client.enqueue(options, reference), after=SQLAlchemyError)

    def ended(self) -> list[Ended]:
        """See `Engine`."""
        ends = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
        found = until_answered(lambda: self._client.list_workflows(status=ends), after=SQLAlchemyError)
        return [end for workflow in found if (end := self._end(workflow)) is not None]

    def _end(self, workflow: WorkflowStatus) -> Ended | None:
        reference, _, number = workflow.workflow_id.partition(":")
        if int(number) != self._times[reference]:  # failed, and was submitted again
            return None
        began, ended = (workflow.created_at or 0) / 1_000, (workflow.completed_at or 0) / 1_000
        if workflow.status == "SUCCESS":
            return Ended(reference, began, ended, credit_id=workflow.output)
        return Ended(reference, began, ended, error=repr(workflow.error or workflow.status))


# -- started -------------------------------------------------------------------------------------------------


@contextmanager
def job_queue(dsn: str) -> Iterator[JobQueue]:
    """The job queue in an empty database."""
    with jobs_at(dsn) as jobs:
        jobs.create()
        yield JobQueue(dsn, jobs)


@contextmanager
def temporal() -> Iterator[Temporal]:
    """A server of its own, which keeps its data in a file."""
    with running_temporal(on_file=True) as address, closing(asyncio.new_event_loop()) as loop:
        yield Temporal(address, loop)


@contextmanager
def dbos(dsn: str) -> Iterator[Dbos]:
    """DBOS in an empty database, migrated once and not by all executors at once."""
    DBOS.migrate(dsn)
    client = DBOSClient(system_database_url=dsn)
    try:
        yield Dbos(dsn, client)
    finally:
        client.destroy()
