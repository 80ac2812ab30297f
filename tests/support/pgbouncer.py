"""PgBouncer in transaction mode in front of a PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.support.processes import Server, temporary_folder, unprivileged_user

CONFIGURATION = """\
[databases]
* = host={host} port={port}

[pgbouncer]
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 1000
listen_addr =
listen_port = 6432
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users.txt
"""


@contextmanager
def running_pgbouncer(dsn: str, *, pool_size: int = 20) -> Iterator[str]:
    """A pooler in transaction mode; gives the URL of the same database through it.

    Args:
        dsn: the URL of a database.
        pool_size: how many server connections it opens at most.
    """
    target = conninfo_to_dict(dsn)
    user = unprivileged_user()
    folder = temporary_folder("bouncer", user)
    (folder / "pgbouncer.ini").write_text(
        CONFIGURATION.format(host=target["host"], port=target.get("port", 5432), pool_size=pool_size, folder=folder)
    )
    (folder / "users.txt").write_text(f'"{target["user"]}" "{target.get("password", "")}"\n')
    server = Server([_program(), folder / "pgbouncer.ini"], folder, user, signal.SIGINT)
    pooled = f"postgresql://{target['user']}@/{target['dbname']}?host={folder}&port=6432"
    try:
        _wait_until_ready(server, pooled)
        yield pooled
    finally:
        server.close()


def _program() -> str:
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])  # Debian puts it there
    program = shutil.which("pgbouncer", path=path)
    if program is None:
        raise RuntimeError("pgbouncer is missing: make test installs it on Debian, elsewhere install it by hand")
    return program


def _wait_until_ready(server: Server, dsn: str, timeout: float = 10.0) -> None:
    deadline = time.monotonic() + timeout
    while True:
        try:
            psycopg.connect(dsn, connect_timeout=5).close()
            return
        except psycopg.OperationalError as error:
            if not server.running or time.monotonic() > deadline:
                raise server.failed(f"PgBouncer did not start ({error})") from error
            time.sleep(0.01)
