"""Grants what each role may do, and refuses a login that could do everything (R1)."""

from __future__ import annotations

import json
from typing import Any

import psycopg
from psycopg import sql

from corrobo_core.errors import LedgerError
from corrobo_core.ledgers._pg_address import Address
from corrobo_core.ledgers.roles import Roles

__all__ = ["check_login", "grant"]

_DECIDE = "decide(text, text, text, text, text, timestamptz, timestamptz, text, text, json)"
# No role may delete an operation: its decisions would have to go with it.
_RUNNER = {
    "ledger": "select",
    "operation": "select, insert, update",
    "late_evidence": "select, insert",
    "decision": "select",
    "gate_event": "select, insert",
}
_REVIEWER = {
    "ledger": "select",
    "operation": "select",
    "late_evidence": "select",
    "decision": "select",
    "gate_event": "select, insert",
}


def grant(session: psycopg.Connection[Any], address: Address, schema: str, roles: Roles) -> None:
    """Take everything from both roles and grant what they need; idempotent.

    Raises:
        LedgerError: a role is missing, or could take the owner's part. Not retryable.
    """
    for role in (roles.runner, roles.reviewer):
        _refuse_owner(session, address, role)
    name = sql.Identifier(schema)
    function = sql.SQL("{}.").format(name) + sql.SQL(_DECIDE)
    everything = sql.SQL("all tables in schema {}").format(name)
    session.execute(sql.SQL("revoke all on function {} from public").format(function))
    session.execute(sql.SQL("revoke all on {} from public").format(everything))
    for role, rights in ((roles.runner, _RUNNER), (roles.reviewer, _REVIEWER)):
        who = sql.Identifier(role)
        session.execute(sql.SQL("revoke all on {} from {}").format(everything, who))
        session.execute(sql.SQL("revoke all on schema {} from {}").format(name, who))
        session.execute(sql.SQL("revoke all on function {} from {}").format(function, who))
        session.execute(sql.SQL("grant usage on schema {} to {}").format(name, who))
        for table, right in rights.items():
            session.execute(
                sql.SQL("grant {} on {} to {}").format(sql.SQL(right), sql.Identifier(schema, table), who)
            )
    session.execute(sql.SQL("grant execute on function {} to {}").format(function, sql.Identifier(roles.reviewer)))
    session.execute(
        sql.SQL("update {} set roles = %s::json").format(sql.Identifier(schema, "ledger")),
        (json.dumps({"runner": roles.runner, "reviewer": roles.reviewer}),),
    )


def _refuse_owner(session: psycopg.Connection[Any], address: Address, role: str) -> None:
    row = session.execute(
        "select pg_has_role(oid, current_user, 'member') from pg_roles where rolname = %s", (role,)
    ).fetchone()
    if row is None:
        raise LedgerError(address.place.name, f"role {role!r} does not exist; create it first")
    if row[0]:
        raise LedgerError(
            address.place.name,
            f"role {role!r} is, or may become, the role that owns the tables; let another one call migrate()",
        )


def check_login(session: psycopg.Connection[Any], address: Address, schema: str) -> None:
    """Refuse a login that owns the tables, or could: where roles were set up it could forge decisions.

    Raises:
        LedgerError: log in as the runner or the reviewer. Not retryable.
        psycopg.Error: the server refused.
    """
    query = sql.SQL(
        "select l.roles is not null and pg_has_role(session_user, c.relowner, 'member')"
        " from {} l, pg_class c where c.oid = {}::regclass"
    ).format(sql.Identifier(schema, "ledger"), sql.Literal(sql.Identifier(schema, "decision").as_string(session)))
    row = session.execute(query).fetchone()
    if row is not None and row[0]:
        raise LedgerError(
            address.place.name,
            "roles were set up, and this login owns the tables or could become who does: it could forge decisions."
            " Log in as the runner's or the reviewer's role",
        )
