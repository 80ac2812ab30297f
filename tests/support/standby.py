"""A hot standby of a test's PostgreSQL server."""

from __future__ import annotations

import subprocess
from typing import Any

from tests.support.postgres import PostgresServer


class Standby(PostgresServer):
    """A streaming replica, made by ``pg_basebackup``; it can be told to lag behind.

    Args:
        primary: a running server.
    """

    def __init__(self, primary: PostgresServer) -> None:
        self._primary = primary
        super().__init__(hot_standby="on")

    def _initdb(self) -> None:
        options = ["--wal-method=stream", "--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
        command = [
            str(self._binaries / "pg_basebackup"),
            *options,
            "-D",
            str(self._data),
            "-d",
            self._primary.dsn(),
        ]
        identity: dict[str, Any] = {}
        if self._user:
            identity = {"user": self._user, "group": self.folder.stat().st_gid, "extra_groups": []}
        made = subprocess.run(command, check=False, capture_output=True, text=True, cwd=self.folder, **identity)
        if made.returncode:
            raise RuntimeError(f"pg_basebackup failed:\n{made.stderr}")
