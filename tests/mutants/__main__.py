"""``python -m tests.mutants [NAME…] [--jobs 2]``: put each mutant into a copy, and see whether it is caught.

Only the explorer and the model are asked. Writes ``build/mutants.json``; the exit status is 1 if one is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import AnchorError, Judge, Mutant
from tests.mutants.workshop import JUDGES, ROOT, Outcome, Workshop, workshop

_REPORT = ROOT / "build" / "mutants.json"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="of mutants; all of them if none is given")
    parser.add_argument("--jobs", type=int, default=1, help="how many are judged at the same time")
    parser.add_argument("--by", choices=JUDGES, action="append", help="who is asked; all if it is not given")
    given = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if not given.names or mutant.name in given.names]
    if unknown := set(given.names) - {mutant.name for mutant in chosen}:
        parser.error(f"no such mutant: {', '.join(sorted(unknown))}")
    outcomes = {}
    for number, (mutant, outcome) in enumerate(_judged(chosen, given.jobs, tuple(given.by or JUDGES)), 1):
        outcomes[mutant] = outcome
        _tell(number, len(chosen), mutant, outcome)
    return _report(outcomes)


def _judged(mutants: Iterable[Mutant], jobs: int, judges: tuple[Judge, ...]) -> Iterator[tuple[Mutant, Outcome]]:
    with ExitStack() as stack:
        free: SimpleQueue[Workshop] = SimpleQueue()
        for _ in range(jobs):
            free.put(stack.enter_context(workshop(judges)))

        def judge(mutant: Mutant) -> tuple[Mutant, Outcome]:
            bench = free.get()
            try:
                return mutant, bench.judge(mutant)
            except AnchorError as error:
                return mutant, Outcome(None, str(error), 0.0)
            finally:
                free.put(bench)

        yield from stack.enter_context(ThreadPoolExecutor(jobs)).map(judge, mutants)


def _tell(number: int, count: int, mutant: Mutant, outcome: Outcome) -> None:
    end = f"caught by {outcome.caught_by}" if outcome.caught_by else "MISSED"
    print(f"{number:>3}/{count} {mutant.rule:<3} {mutant.name:<48} {end} in {outcome.seconds:.0f} s", flush=True)
    if outcome.caught_by is None and outcome.said:
        print(f"        {outcome.said}", flush=True)


def _report(outcomes: dict[Mutant, Outcome]) -> int:
    missed = [mutant.name for mutant, outcome in outcomes.items() if outcome.caught_by is None]
    report = {
        "caught": len(outcomes) - len(missed),
        "missed": missed,
        "mutants": {
            mutant.name: {
                "rule": mutant.rule,
                "caught_by": outcome.caught_by,
                "said": outcome.said,
                "seconds": round(outcome.seconds, 1),
            }
            for mutant, outcome in outcomes.items()
        },
    }
    _REPORT.parent.mkdir(exist_ok=True)
    _REPORT.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    print(f"{report['caught']} caught, {len(missed)} missed{': ' if missed else ''}{', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
