"""A DBOS executor for both groups: ``dbos_worker.py SYSTEM_DATABASE EXECUTOR_ID``."""

from __future__ import annotations

import sys
import threading

from dbos import DBOS

from corrobo_dbos import effect_step
from examples.http_ledger import Credit
from tests.soak.effects import AMOUNT, client, credit_effect, effect_ledger, end_with_parent
from tests.support.dbos import dbos_config, running_dbos

QUEUE = "soak"
THREADS = 20


def main(system_database: str, executor_id: str) -> None:
    """Recover what this executor left when it was killed, and work until killed again."""
    end_with_parent()
    with effect_ledger() as ledger:
        credit = effect_step(ledger)(credit_effect())

        @DBOS.step(retries_allowed=True, interval_seconds=0.2, backoff_rate=1.0, max_attempts=100)
        def credit_naively(reference: str, amount_cents: int) -> Credit:
            return client().send(reference, amount_cents)

        @DBOS.workflow(name="effect")
        def as_effect(reference: str) -> str:
            return credit(reference, AMOUNT).id

        @DBOS.workflow(name="naive")
        def naively(reference: str) -> str:
            return credit_naively(reference, AMOUNT).id

        with running_dbos(dbos_config(system_database, executor_id=executor_id)):
            DBOS.register_queue(QUEUE, worker_concurrency=THREADS, polling_interval_sec=0.2)
            print("ready", flush=True)
            threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
