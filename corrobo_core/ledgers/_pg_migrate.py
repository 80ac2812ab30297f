"""Brings a PostgreSQL schema to this release (C12)."""

from __future__ import annotations

import secrets
import time
import zlib
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import sql

from corrobo_core.errors import LedgerError, LedgerTooNewError
from corrobo_core.ledgers._pg_address import Address
from corrobo_core.ledgers._pg_errors import Again, Patience, refusal
from corrobo_core.ledgers._pg_roles import grant
from corrobo_core.ledgers._shared import Migration, migrations
from corrobo_core.ledgers.roles import Roles

__all__ = ["migrate"]

_CLASS = 0x636F7262  # of the advisory lock that migrations take; owners use the other, 64-bit key space
# Somebody else made the same thing at the same moment, with other means than ours.
_ALREADY_THERE = frozenset({"23505", "42P06", "42P07", "42710"})


def migrate(address: Address, schema: str, bound: timedelta, roles: Roles | None = None) -> None:
    """Apply the missing steps, all in one transaction.

    Args:
        address: of a role that may create tables; poolers are fine.
        schema: is made where it is missing.
        bound: how long other migrations and an unreachable server are waited for.
        roles: what they may do is granted in the same transaction.

    Raises:
        LedgerUnavailable: no answer in time. Retryable.
        LedgerTooNewError: the schema is ahead of this release. Not retryable.
        StandbyError, LedgerError: refused. Not retryable.
    """
    patience = Patience(address.place, bound)
    while True:
        try:
            return _connected(address, schema, bound, roles)
        except Again as failure:
            pause = patience.pause(failure)
        time.sleep(pause)


def _connected(address: Address, schema: str, bound: timedelta, roles: Roles | None) -> None:
    session = address.connect()
    try:
        if session.execute("select pg_is_in_recovery()").fetchone() == (True,):
            raise address.place.standby()
        # The lock is waited for in the transaction's first statement: later ones must see what the winner made.
        session.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        session.read_only = False
        with session.transaction():
            _migrate(session, address, schema, bound)
            if roles is not None:
                grant(session, address, schema, roles)
    except psycopg.Error as error:
        raise _named(error, address, schema) from None
    finally:
        session.close()


def _migrate(session: psycopg.Connection[Any], address: Address, schema: str, bound: timedelta) -> None:
    session.execute("select set_config('lock_timeout', %s, true)", (f"{bound.total_seconds() * 1000:.0f}ms",))
    session.execute(
        "select pg_advisory_xact_lock(%s::int, %s::int)", (_CLASS, zlib.crc32(schema.encode()) - (1 << 31))
    )
    version = _version(session, schema)
    steps = migrations("postgres")
    if version > len(steps):
        found = (
            f"schema {schema!r} is at version {version}, and this release knows {len(steps)}; upgrade corrobo-core"
        )
        raise LedgerTooNewError(address.place.name, found)
    if version < len(steps):
        _refuse_other_encodings(session, address)
        _apply(session, schema, steps[version:])


def _version(session: psycopg.Connection[Any], schema: str) -> int:
    """0 where nothing was made yet."""
    table = sql.Identifier(schema, "ledger")
    found = session.execute("select to_regclass(%s)", (table.as_string(session),)).fetchone()
    if found is None or found[0] is None:
        return 0
    row = session.execute(sql.SQL("select version from {}").format(table)).fetchone()
    return row[0] if row else 0


def _apply(session: psycopg.Connection[Any], schema: str, steps: tuple[Migration, ...]) -> None:
    quoted = sql.Identifier(schema).as_string(session)
    there = session.execute("select to_regnamespace(%s)", (quoted,)).fetchone()
    if there is None or there[0] is None:  # "if not exists" would ask for the right to create one all the same
        session.execute(sql.SQL("create schema {}").format(sql.Identifier(schema)))
    for step in steps:
        session.execute(step.sql.replace("{schema}", quoted).encode())
    session.execute(
        sql.SQL(
            "insert into {} as l (version, id, migrated) values (%s, %s, clock_timestamp())"
            " on conflict (one) do update set version = excluded.version, migrated = excluded.migrated"
        ).format(sql.Identifier(schema, "ledger")),
        (steps[-1].number, secrets.token_hex(16)),
    )


def _refuse_other_encodings(session: psycopg.Connection[Any], address: Address) -> None:
    row = session.execute("select current_setting('server_encoding')").fetchone()
    if row is None or row[0] != "UTF8":
        raise LedgerError(
            address.place.name,
            f"the database's encoding is {row and row[0]}, which cannot hold every intent; use a UTF8 database",
        )


def _named(error: psycopg.Error, address: Address, schema: str) -> Exception:
    sqlstate, message = error.sqlstate or "", error.diag.message_primary or str(error)
    if sqlstate in _ALREADY_THERE:
        return Again(address.place.clean(message))
    if sqlstate == "42501":
        return LedgerError(
            address.place.name,
            f"this role may not make what is missing ({address.place.clean(message)}); let the database's owner"
            f" run migrate(), or create schema {schema!r} and grant this role USAGE and CREATE on it",
        )
    return refusal(address.place, sqlstate, message)
