"""A worker is killed between its write and its checkpoint: ``python -m examples.killed_worker [--json]``.

For each engine, and for a plain script: a worker process sends a credit to the HTTP ledger. The moment the
ledger has committed, and before it answers, the worker gets SIGKILL. A fresh worker takes over. What is counted
is what the HTTP ledger itself has committed. The exit status is 1 if a count is not as expected.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from tempfile import TemporaryDirectory

from examples.http_ledger import HttpLedger, client_killed, running_http_ledger
from tests.support.postgres import fresh_database, running_postgres
from tests.support.processes import child
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
        if first.returncode != -signal.SIGKILL:
            raise RuntimeError(f"the first worker was to be killed, and ended otherwise:\n{first.output}")
    with child(module, *args, env=environment) as second:
        second.wait_for("done", PATIENCE)
    return ledger.count()


class Servers:
    """Started once, for all runs: Temporal's development server, and PostgreSQL."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._postgres = stack.enter_context(running_postgres()).dsn()
        self.temporal = stack.enter_context(running_temporal())

    def database(self) -> str:
        """The address of a new, empty PostgreSQL database."""
        return self._stack.enter_context(fresh_database(self._postgres))

    def file(self, name: str) -> str:
        """The path of a new file."""
        return f"{self._stack.enter_context(TemporaryDirectory())}/{name}"


# What a worker is given, besides "naive" or "corrobo".
RUNS: dict[str, tuple[str, Callable[[Servers], tuple[str, ...]]]] = {
    "temporal": ("temporal_worker", lambda servers: (servers.temporal, servers.database())),
    "dbos": ("dbos_worker", lambda servers: (servers.database(), servers.database())),
    "script": ("script", lambda servers: (servers.file("effects.db"),)),
}


def measure(say: Callable[[str], None]) -> dict[str, dict[str, int]]:
    """Every run, with a fresh HTTP ledger for each."""
    counts: dict[str, dict[str, int]] = {}
    with ExitStack() as stack:
        say("starting PostgreSQL and Temporal")
        servers = Servers(stack)
        for name, (module, arguments) in RUNS.items():
            counts[name] = {}
            for kind in EXPECTED:
                say(f"{LABELS[name]}, {kind}: killing the worker after its write")
                with running_http_ledger() as ledger:
                    module_name = f"examples.killed_worker.{module}"
                    counts[name][kind] = killed_once(ledger, module_name, kind, *arguments(servers))
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
