"""``python -m tests.model.machine --quick``: both machines on memory and SQLite, until the first failure.

Needs no server, takes less than 25 seconds, and draws the same examples each time. It works from any copy of the
source tree, whose ``corrobo_core`` it then tests::

    cd copy && python -m tests.model.machine --quick [--examples 250] [--only operations|gates] [--shrink]

Without ``--quick`` PostgreSQL takes part. The exit status is 0 if nothing was found, 1 if the machine says that
something is wrong, and 2 for everything else: what raises before it can be judged was not found by the oracle.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings

from tests.model.machine import gates, operations
from tests.model.machine.runs import run
from tests.model.machine.stores import Store, stores
from tests.model.machine.times import Time
from tests.support.postgres import postgres_admin_dsn

MACHINES: dict[str, Callable[[list[Store], Time], Any]] = {"operations": operations.machine, "gates": gates.machine}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.model.machine", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="memory and SQLite alone, without a server")
    parser.add_argument("--only", choices=sorted(MACHINES), help="one of the machines")
    parser.add_argument("--examples", type=int, default=300, help="of operations; of gates a fifth")
    parser.add_argument("--shrink", action="store_true", help="look for the smallest example that fails")
    given = parser.parse_args()
    chosen = settings(
        max_examples=given.examples,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink] if given.shrink else [Phase.generate],
        suppress_health_check=list(HealthCheck),
        stateful_step_count=12,
    )
    with ExitStack() as stack:
        server = None if given.quick else stack.enter_context(postgres_admin_dsn())
        time = Time()
        opened = stack.enter_context(stores(time, server))
        try:
            for name in [given.only] if given.only else MACHINES:
                count = given.examples // (5 if name == "gates" else 1)
                made = MACHINES[name](opened, time)
                run(made, settings(chosen, max_examples=count))
        except Exception as error:
            traceback.print_exc()
            return 1 if _was_found(error) else 2
    return 0


def _was_found(error: BaseException) -> bool:
    """An assertion failed, and it is one of the machine's own."""
    if not isinstance(error, AssertionError):
        return False
    last = [frame.filename for frame in traceback.extract_tb(error.__traceback__)][-1]
    return Path(last).parent == Path(__file__).parent


if __name__ == "__main__":
    sys.exit(main())
