"""The logins of a PostgreSQL ledger that was set up with roles (R1)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from psycopg import sql

from corrobo_core import PostgresLedger, Roles


@dataclass(frozen=True)
class Logins:
    """Addresses of one database, for each role."""

    owner: str
    runner: str
    reviewer: str
    roles: Roles


@contextmanager
def ledger_with_roles(dsn: str) -> Iterator[Logins]:
    """A ledger, migrated, with a login for each role; the roles are dropped at the end.

    Args:
        dsn: of an empty database, with the login of a superuser.
    """
    tag = uuid4().hex[:8]
    names = {part: f"{part}_{tag}" for part in ("owner", "runner", "reviewer")}
    with psycopg.connect(dsn, autocommit=True) as admin:
        for name in names.values():
            admin.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))
    allow_create(dsn, names["owner"])
    owner, runner, reviewer = (dsn.replace("postgres@", f"{name}@") for name in names.values())
    made = Logins(owner, runner, reviewer, Roles(runner=names["runner"], reviewer=names["reviewer"]))
    PostgresLedger(made.owner).migrate(roles=made.roles)
    yield made
    with psycopg.connect(dsn, autocommit=True) as admin:
        for name in names.values():
            admin.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(name)))
            admin.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


def allow_create(dsn: str, role: str) -> None:
    """Let a role make schemas in the database that a superuser's address names."""
    database = sql.Identifier(urlsplit(dsn).path.lstrip("/"))
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("grant create on database {} to {}").format(database, sql.Identifier(role)))


def decisions(logins: Logins) -> list[tuple[object, ...]]:
    """Every recorded decision: operation, token, kind, document, and the login that it came with."""
    query = "select id, token, kind, doc::text, login from corrobo.decision order by seq"
    with psycopg.connect(logins.reviewer) as connection:
        return connection.execute(query).fetchall()
