"""A DBOS application: one workflow whose one step sends the credit, naively or as an effect."""

import sys

from dbos import DBOS, SetWorkflowID

from corrobo_core import PostgresLedger
from corrobo_dbos import effect_step
from examples.http_ledger import Credit
from examples.killed_worker.effects import credit, credit_naively


def main(kind: str, engine_dsn: str, effects_dsn: str) -> None:
    """Launch, which recovers what a killed process left, then start the workflow or find it running."""
    with PostgresLedger(effects_dsn) as ledger:
        ledger.migrate()
        DBOS(
            config={
                "name": "killed-worker",
                "system_database_url": engine_dsn,
                "application_version": "1",  # recovery takes workflows of this version only
                "log_level": "ERROR",
            }
        )
        step = (
            effect_step(ledger)(credit) if kind == "corrobo" else DBOS.step(name="credit_naively")(credit_naively)
        )

        @DBOS.workflow()
        def one_credit() -> Credit:
            return step("cr_1", 5_000)

        DBOS.launch()
        try:
            with SetWorkflowID("one-credit"):
                DBOS.start_workflow(one_credit).get_result()
            print("done", flush=True)
        finally:
            DBOS.destroy()


if __name__ == "__main__":
    main(*sys.argv[1:])
