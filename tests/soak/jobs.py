"""Without an engine: a job queue in PostgreSQL, as many have one. When a lease runs out, another takes over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg

R = TypeVar("R")

LEASE = 3.0  # seconds
TABLE = """
create table if not exists jobs (
    reference text primary key,
    kind text not null,
    queued_at timestamptz not null default clock_timestamp(),
    due_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    credit_id text,
    error text
)"""
ADD = """
insert into jobs (reference, kind) values (%s, %s)
on conflict (reference) do update set due_at = clock_timestamp(), ended_at = null, error = null
where jobs.error is not null"""
TAKE = """
update jobs set due_at = clock_timestamp() + make_interval(secs => %s)
where reference = (
    select reference from jobs where ended_at is null and due_at <= clock_timestamp()
    order by due_at limit 1 for update skip locked
)
returning reference, kind"""


@dataclass(frozen=True)
class Job:
    """One job, taken."""

    reference: str
    kind: str


class Jobs:
    """The queue, for one thread. Every call goes on until the database answers.

    Args:
        dsn: where it is.
        patience: seconds to wait for the database.
    """

    def __init__(self, dsn: str, patience: float = 60.0) -> None:
        self._dsn, self._patience = dsn, patience
        self._session: psycopg.Connection[Any] | None = None

    def create(self) -> None:
        """Make the table."""
        self._query(TABLE)

    def add(self, kind: str, reference: str) -> None:
        """Queue a job; again only if it has failed."""
        self._query(ADD, reference, kind)

    def take(self) -> Job | None:
        """The next job, for as long as its lease runs."""
        found = self._query(TAKE, LEASE)
        return Job(*found[0]) if found else None

    def come_back(self, reference: str, seconds: float) -> None:
        """Give a job back until later."""
        self._query("update jobs set due_at = clock_timestamp() + make_interval(secs => %s) where reference = %s",
                    seconds, reference)  # fmt: skip

    def end(self, reference: str, credit_id: str | None, error: str | None = None) -> None:
        """A job is done, or failed for good."""
        self._query(
            "update jobs set ended_at = clock_timestamp(), credit_id = %s, error = %s"
            " where reference = %s and ended_at is null",
            credit_id, error, reference,
        )  # fmt: skip

    def ended(self) -> list[tuple[str, float, float, str | None, str | None]]:
        """What has ended: its reference, when it was queued and ended (epoch), the credit's id, the error."""
        return self._query(
            "select reference, extract(epoch from queued_at)::float8, extract(epoch from ended_at)::float8,"
            " credit_id, error from jobs where ended_at is not null"
        )

    def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            self._session.close()

    def _query(self, statement: str, *values: object) -> list[Any]:
        return until_answered(lambda: self._once(statement, values), self._patience)

    def _once(self, statement: str, values: tuple[object, ...]) -> list[Any]:
        if self._session is None or self._session.closed:
            self._session = psycopg.connect(self._dsn, autocommit=True)
        try:
            cursor = self._session.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []
        except psycopg.OperationalError:
            self._session.close()
            raise


def until_answered(
    ask: Callable[[], R], patience: float = 60.0, after: type[Exception] = psycopg.OperationalError
) -> R:
    """Ask a database again until it answers.

    Args:
        ask: may be done twice.
        patience: seconds.
        after: the error to ask again after.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            return ask()
        except after:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


@contextmanager
def jobs_at(dsn: str) -> Iterator[Jobs]:
    """The queue, closed at the end."""
    jobs = Jobs(dsn)
    try:
        yield jobs
    finally:
        jobs.close()
