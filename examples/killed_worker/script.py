"""No engine: a plain script, which somebody or something starts again after it died."""

import sys
import time

from corrobo_core import EffectRunner, NotYetError, SqliteLedger
from examples.killed_worker.effects import credit, credit_naively


def main(kind: str, database: str) -> None:
    if kind == "naive":
        credit_naively("cr_1", 5_000)
    else:
        with SqliteLedger(database) as ledger:
            ledger.migrate()
            credit_once(EffectRunner(ledger))
    print("done", flush=True)


def credit_once(runner: EffectRunner) -> None:
    """Pass after pass, until one says how it ended."""
    while True:
        result = runner.run(credit, "cr_1", 5_000)
        try:
            result.unwrap()
            return
        except NotYetError:  # settling, or another process is at it
            time.sleep(result.wait.total_seconds())


if __name__ == "__main__":
    main(*sys.argv[1:])
