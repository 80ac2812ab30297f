"""A worker is killed between its write and its checkpoint: ``python -m examples.killed_worker [--json]``.

For each engine, and for a plain script: a worker process sends a credit to the HTTP ledger. The moment the
ledger has committed, and before it answers, the worker gets SIGKILL. A fresh worker takes over. What is counted
is what the HTTP ledger itself has committed. The exit status is 1 if a count is not as expected.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from examples.http_ledger import HttpLedger, client_killed, running_http_ledger
from tests.support.postgres import fresh_database, running_postgres
from tests.support.processes import child, temporary_folder
from tests.support.temporal import running_temporal

EXPECTED = {"naive": 2, "corrobo": 1}
LABELS = {"temporal": "Temporal activity", "dbos": "DBOS step", "script": "plain script, restarted"}
PATIENCE = 60.0  # seconds; a run takes a few


def killed_once(ledger: HttpLedger, module: str, *args: str) -> int:
    """Run a worker that is killed after its write, then a fresh one to the end; what the ledger counts then."""
    ledger.fail_next(client_killed("after_commit"))
    environment = {"HTTP_LEDGER_URL": ledger.url}
    with child(module, *args, env=environment) as first:
        first.wait(PATIENCE)
        if first.returncode != -9:
            raise RuntimeError(f"the first worker was to be killed, and ended otherwise:\n{first.output}")
    with child(module, *args, env=environment) as second:
        second.wait(PATIENCE)
        if second.returncode != 0:
            raise RuntimeError(f"the second worker failed:\n{second.output}")
    return ledger.count()


@contextmanager
def _folder() -> Iterator[Path]:
    import shutil

    folder = temporary_folder("demo")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def on_temporal(kind: str, ledger: HttpLedger) -> int:
    """The engine is Temporal's own server; the effects are recorded on PostgreSQL."""
    with running_temporal() as address, running_postgres() as server, fresh_database(server.dsn()) as dsn:
        return killed_once(ledger, "examples.killed_worker.temporal_worker", kind, address, dsn)


def on_dbos(kind: str, ledger: HttpLedger) -> int:
    """The engine and the effects are on PostgreSQL, in two databases."""
    with (
        running_postgres() as server,
        fresh_database(server.dsn()) as engine,
        fresh_database(server.dsn()) as effects,
    ):
        return killed_once(ledger, "examples.killed_worker.dbos_worker", kind, engine, effects)


def on_nothing(kind: str, ledger: HttpLedger) -> int:
    """No engine; the effects are recorded in a SQLite file."""
    with _folder() as folder:
        return killed_once(ledger, "examples.killed_worker.script", kind, str(folder / "effects.db"))


RUNS: dict[str, Callable[[str, HttpLedger], int]] = {
    "temporal": on_temporal,
    "dbos": on_dbos,
    "script": on_nothing,
}


def measure(say: Callable[[str], None]) -> dict[str, dict[str, int]]:
    """Every run, with a fresh HTTP ledger for each."""
    counts: dict[str, dict[str, int]] = {}
    for name, run in RUNS.items():
        counts[name] = {}
        for kind in EXPECTED:
            say(f"{LABELS[name]}, {kind}: killing the worker after its write")
            with running_http_ledger() as ledger:
                counts[name][kind] = run(kind, ledger)
    return counts


def table(counts: dict[str, dict[str, int]]) -> str:
    """The counts as people read them."""
    lines = [f"{'':<26}{'naive':>6}{'corrobo':>10}"]
    lines += [f"{LABELS[name]:<26}{c['naive']:>6}{c['corrobo']:>10}" for name, c in counts.items()]
    return "\n".join(lines)


def main(*args: str) -> int:
    as_json = "--json" in args
    counts = measure(lambda text: print(f"  {text}", file=sys.stderr, flush=True))
    if as_json:
        print(json.dumps(counts))
    else:
        print("\ncredits that the HTTP ledger has committed, for one credit that was wanted:\n")
        print(table(counts))
    return 0 if all(found == EXPECTED for found in counts.values()) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
