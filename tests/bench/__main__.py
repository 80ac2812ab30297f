"""Measure, print a table, write build/bench.json: ``python -m tests.bench [part ...]``."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

from tests.bench import core, dbos_gates, engines, gates, postgres
from tests.support.postgres import fresh_database, running_postgres

# key -> (what, comparison, bound); no bound: reported only.
TARGETS: dict[str, tuple[str, str, float]] = {
    "statements_per_effect": ("statements of a first attempt, counted by the server", "==", 2),
    "commits_per_effect": ("commits likewise", "==", 2),
    "held_connections": ("connections, transactions or locks held while hooks run", "==", 0),
    "vs_two_statements_32": ("op/s ÷ bare psycopg, 32 at once, pool of 16", ">=", 0.80),
    "vs_two_statements_300x200ms": ("the same, 300 at once, provider 200 ms", ">=", 0.90),
    "vs_nine_statements_300x200ms": ("op/s ÷ nine statements and a lock per operation", ">=", 10),
    "growth_1k_to_1m": ("p50 with 1,000,000 operations ÷ with 1,000", "<=", 1.2),
    "lifecycle_us": ("whole pass on MemoryLedger, empty hooks, µs", "<=", 100),
    "vs_two_statements_1": ("op/s ÷ bare psycopg, one at a time", ">=", 0.85),
    "temporal_ratio": ("wall time, effect activity ÷ plain one", "<=", 1.15),
    "dbos_ratio": ("wall time, effect step ÷ plain one, on PostgreSQL", "<=", 1.5),
    "rss_per_1000_in_flight_mb": ("memory of 1,000 effects in flight, MB", "", 0),
    "gate_claim_submit_ms": ("claim and submit of a stored gate, p50, ms", "", 0),
    "gate_race_ops": ("claims tried in a second, 32 routers on 1,000 requests", "", 0),
    "temporal_gate_roundtrip_ms": ("claim and submit of a workflow's gate by updates, p50, ms", "", 0),
    "dbos_gate_roundtrip_ms": ("claim and submit until the DBOS workflow goes on, p50, ms", "", 0),
}
MEETS: dict[str, Callable[[float, float], bool]] = {
    "==": lambda found, bound: found == bound,
    ">=": lambda found, bound: found >= bound,
    "<=": lambda found, bound: found <= bound,
    "": lambda found, bound: True,
}


def with_postgres(measure: Callable[[str], dict[str, float]]) -> dict[str, float]:
    """On a fresh database of a server of its own, fsync on."""
    with running_postgres(shared_buffers="256MB") as server, fresh_database(server.dsn()) as dsn:
        return measure(dsn)


def with_server(measure: Callable[[str], dict[str, float]]) -> dict[str, float]:
    """On a server of its own, fsync on."""
    with running_postgres(shared_buffers="256MB") as server:
        return measure(server.dsn())


PARTS: dict[str, Callable[[], dict[str, float]]] = {
    "lifecycle": core.lifecycle,
    "memory": core.memory,
    "counts": postgres.statements_and_commits,
    "held": lambda: with_postgres(lambda dsn: asyncio.run(postgres.held_while_hooks_run(dsn))),
    "speed": lambda: with_postgres(lambda dsn: asyncio.run(postgres.speed(dsn))),
    "growth": lambda: with_server(postgres.growth),
    "gates": lambda: with_postgres(gates.stored),
    "temporal-gates": gates.temporal,
    "dbos-gates": lambda: with_server(dbos_gates.roundtrip),
    "temporal": lambda: with_postgres(engines.temporal),
    "dbos": lambda: with_server(engines.dbos),
}


def main(*parts: str) -> None:
    """Run the parts named, or all, one after the other."""
    found: dict[str, float] = {}
    for name in parts or PARTS:
        print(f"  measuring: {name}", file=sys.stderr, flush=True)
        found |= PARTS[name]()
    for key, value in found.items():
        what, comparison, bound = TARGETS[key]
        met = "" if MEETS[comparison](value, bound) else "   NOT MET"
        wanted = f"{comparison} {bound:g}" if comparison else "reported"
        print(f"{key:<32}{value:>10.2f}   {wanted:<12}{what}{met}")
    target = Path("build/bench.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
