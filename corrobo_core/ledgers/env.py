"""Which ledger to use, from an environment variable."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from corrobo_core.errors import DsnError

if TYPE_CHECKING:
    from corrobo_core.ledgers.postgres import PostgresLedger
    from corrobo_core.ledgers.sqlite import SqliteLedger

__all__ = ["from_env"]

_FORMS = "sqlite:///relative/path, sqlite:////absolute/path or postgresql://user@host/database"


def from_env(name: str = "CORROBO_DSN", *, namespace: str = "default") -> SqliteLedger | PostgresLedger:
    """The ledger that an environment variable names. Does no I/O; the driver is imported now.

    Args:
        name: of the variable, which holds ``sqlite:///relative/path``, ``sqlite:////absolute/path`` or
            ``postgresql://user@host/database``. Relative paths are relative to the working directory.
        namespace: operations of two namespaces never meet.

    Raises:
        DsnError: the variable is not set, names no ledger, or its driver is not installed. The text never
            holds any part of the address but its scheme. Not retryable.
    """
    dsn = os.environ.get(name, "").strip()
    if not dsn:
        raise DsnError(name, f"not set. Set it to {_FORMS}")
    try:
        parts = urlsplit(dsn)
    except ValueError:
        raise DsnError(name, f"not an address. Set it to {_FORMS}") from None
    make = _MAKERS.get(parts.scheme)
    if make is None:
        scheme = f"the scheme {parts.scheme!r} names no ledger" if "://" in dsn else "it has no scheme"
        raise DsnError(name, f"{scheme}. Set it to {_FORMS}")
    return make(name, dsn, parts, namespace)


def _sqlite(name: str, dsn: str, parts: SplitResult, namespace: str) -> SqliteLedger:
    from corrobo_core.ledgers.sqlite import SqliteLedger

    if parts.netloc:
        raise DsnError(name, "an SQLite address has no host: three slashes, then the path (four if absolute)")
    if parts.query or parts.fragment:
        raise DsnError(name, "an SQLite address takes no parameters; pass them to SqliteLedger")
    path = unquote(parts.path.removeprefix("/"))
    if not path or path == ":memory:":
        raise DsnError(name, "an SQLite address names a file; a ledger in memory survives no crash")
    return SqliteLedger(path, namespace=namespace)


def _postgres(name: str, dsn: str, parts: SplitResult, namespace: str) -> PostgresLedger:
    try:
        from corrobo_core.ledgers.postgres import PostgresLedger
    except ImportError:
        raise DsnError(name, "PostgreSQL needs its driver: pip install 'corrobo-core[postgres]'") from None
    return PostgresLedger(dsn, namespace=namespace)


_MAKERS: dict[str, Callable[[str, str, SplitResult, str], SqliteLedger | PostgresLedger]] = {
    "sqlite": _sqlite,
    "postgresql": _postgres,
    "postgres": _postgres,
}
