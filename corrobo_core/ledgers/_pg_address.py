"""Where the database is, and how a connection to it is opened.

Source: semantics C7, C9.
"""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from corrobo_core.errors import DsnError
from corrobo_core.ledgers._pg_errors import Lost, Place

__all__ = ["Address"]

# What the DSN does not say. A host that has vanished must be noticed in seconds (libpq ignores these for sockets).
_DEFAULTS: dict[str, str | int] = {
    "application_name": "corrobo",
    "connect_timeout": 10,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}


_HOST = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:[0-9]+)?")


class Address:
    """One DSN, kept to itself: it may hold a password.

    Args:
        dsn: a URL or a keyword string, as libpq takes it.
        schema: for error texts.
        argument: the name under which the application passed it.

    Raises:
        DsnError: libpq cannot read it, or would take part of a password for the host. Not retryable.
    """

    def __init__(self, dsn: str, schema: str, argument: str) -> None:
        try:
            given = conninfo_to_dict(dsn)
        except (psycopg.Error, TypeError, UnicodeError):  # their texts quote the DSN
            raise DsnError("PostgresLedger", f"{argument}: not a PostgreSQL URL or keyword string") from None
        if _is_ambiguous(dsn):
            raise DsnError("PostgresLedger", f"{argument}: in a name or password, write '@' as %40 and '/' as %2F")
        port = str(given.get("port") or "0").replace(",", "")
        if not port.isdecimal() or not _has_plain_ports(dsn):  # what follows the user, without an @
            raise DsnError("PostgresLedger", f"{argument}: the port is no number")
        missing = {name: value for name, value in _DEFAULTS.items() if name not in given}
        self._dsn = make_conninfo(dsn, client_encoding="UTF8", **missing)
        where = {name: str(given[name]) for name in ("host", "port", "dbname") if given.get(name)}
        shown = " ".join(f"{name}={value}" for name, value in where.items()) or "default address"
        secrets = [str(given[name]) for name in _secret_names() if given.get(name)]
        if _has_an_empty_password(dsn):
            shown = "an address with an empty password"
            secrets += [value for name, value in where.items() if name != "port"]
        self.place = Place(f"PostgreSQL ledger ({shown}, schema {schema})", schema, tuple(secrets))

    def connect(self) -> psycopg.Connection[Any]:
        """Open a session in autocommit.

        Raises:
            Lost: it did not come about.
        """
        try:
            return psycopg.Connection.connect(self._dsn, autocommit=True, prepare_threshold=None)
        except psycopg.Error as error:
            raise Lost(self.place.clean(error)) from None

    async def connect_async(self) -> psycopg.AsyncConnection[Any]:
        """`connect`, on this event loop."""
        try:
            return await psycopg.AsyncConnection.connect(self._dsn, autocommit=True, prepare_threshold=None)
        except psycopg.Error as error:
            raise Lost(self.place.clean(error)) from None


def _is_ambiguous(dsn: str) -> bool:
    """Whether a URL has an ``@`` too many: the rest of a password would be shown as a host, port or database."""
    _, url, rest = dsn.partition("://")
    authority, _, path = rest.partition("?")[0].partition("/")
    return bool(url) and (authority.count("@") > 1 or "@" in path)


def _has_an_empty_password(dsn: str) -> bool:
    """What follows it can be the rest of a password that begins with ``@``."""
    return ":@" in dsn.partition("://")[2].partition("?")[0]


def _has_plain_ports(dsn: str) -> bool:
    """Whether a URL's hosts have numbers for ports, or none: after an empty one part of a password can follow."""
    authority = dsn.partition("://")[2].partition("?")[0].partition("/")[0]
    return all(_HOST.fullmatch(host) for host in authority.rpartition("@")[2].split(","))


def _secret_names() -> list[str]:
    """The options that libpq says are to be hidden, such as the password."""
    return [option.keyword.decode() for option in pq.Conninfo.get_defaults() if option.dispchar == b"*"]
