"""Every ledger by one address, so that a test and its child processes mean the same one."""

from __future__ import annotations

from typing import Any, TypeAlias

from corrobo_core import MemoryLedger
from corrobo_core.ledgers.postgres import PostgresLedger
from corrobo_core.ledgers.sqlite import SqliteLedger

AnyLedger: TypeAlias = MemoryLedger | SqliteLedger | PostgresLedger


def ledger_at(address: str, **options: Any) -> AnyLedger:
    """The ledger at "memory:", "sqlite:///path" or "postgresql://…", each with "#namespace" if you like.

    Not opened, not migrated.
    """
    address, _, namespace = address.partition("#")
    if namespace:
        options["namespace"] = namespace
    scheme, _, rest = address.partition(":")
    match scheme:
        case "memory":
            return MemoryLedger(**options)
        case "sqlite":
            return SqliteLedger(rest.removeprefix("//"), **options)
        case _:
            return PostgresLedger(address, **options)
