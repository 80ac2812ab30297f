"""``python -m tests.model.explorer``: every interleaving of every configuration, until the first broken rule.

It needs no server, and works from any copy of the source tree, whose ``corrobo_core`` it then tests. ``--quick``
takes smaller configurations and some twenty seconds. The exit status is 1 if a rule breaks, after the shortest way
there.
"""

from __future__ import annotations

import argparse
import sys

from tests.model.explorer.configurations import FULL, QUICK
from tests.model.explorer.search import Explored, Search

_HEADS = ("configuration", "states", "transitions", "attempts", "seconds")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.model.explorer", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller configurations")
    parser.add_argument("--only", metavar="NAME", help="one of the configurations")
    given = parser.parse_args()
    print(_row(*_HEADS), flush=True)
    for configuration in QUICK if given.quick else FULL:
        if given.only in (None, configuration.name):
            found = Search(configuration).run()
            print(_told(found), flush=True)
            if found.broken:
                return 1
    return 0


def _row(name: str, states: str, transitions: str, attempts: str, seconds: str) -> str:
    return f"{name:<40} {states:>9} {transitions:>11} {attempts:>8} {seconds:>8}"


def _told(found: Explored) -> str:
    counts = f"{found.states:,}", f"{found.transitions:,}", str(found.attempts), f"{found.seconds:.1f}"
    line = _row(found.configuration, *counts)
    return "\n".join([line, f"BROKEN: {found.broken}", *found.trace]) if found.broken else line


if __name__ == "__main__":
    sys.exit(main())
