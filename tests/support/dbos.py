"""DBOS configurations for tests and their child processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dbos import DBOS, DBOSConfig


def dbos_config(database: str | Path, *, executor_id: str = "local", application_version: str = "1") -> DBOSConfig:
    """A quiet configuration with a pinned version, so that a fresh process recovers a killed one's workflows.

    Args:
        database: the path of a SQLite file, or the URL of a PostgreSQL database.
        executor_id: the same in two live processes makes them fight for their workflows.
        application_version: recovery takes workflows of this version only.
    """
    url = f"sqlite:///{database}" if isinstance(database, Path) else database
    return {
        "name": "corrobo-tests",
        "system_database_url": url,
        "executor_id": executor_id,
        "application_version": application_version,
        "log_level": "WARNING",
        "notification_listener_polling_interval_sec": 0.01,
        "scheduler_polling_interval_sec": 1.0,
    }


@contextmanager
def running_dbos(config: DBOSConfig) -> Iterator[None]:
    """DBOS launched in this process; ended, with its registry kept, afterwards."""
    DBOS(config=config)
    DBOS.launch()
    try:
        yield
    finally:
        DBOS.destroy()
