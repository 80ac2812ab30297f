"""What a person's answer costs until the DBOS workflow that waits for it has gone on."""

from __future__ import annotations

import statistics
import time
from queue import SimpleQueue

from dbos import DBOS, SetWorkflowID

from corrobo_core import PostgresLedger
from corrobo_dbos import DbosGateClient, DbosGates
from tests.engines.dbos.questions import SELDOM, answered, question, waiting, waits_for_message
from tests.support.dbos import dbos_config, running_dbos
from tests.support.postgres import fresh_database


def roundtrip(admin_dsn: str) -> dict[str, float]:
    """Claim, submit, wake-up and look, one workflow after the other."""
    with (
        fresh_database(admin_dsn) as engine,
        fresh_database(admin_dsn) as effects,
        PostgresLedger(effects) as ledger,
    ):
        ledger.migrate()
        gates, went_on = DbosGates(ledger, look_every=SELDOM), SimpleQueue[float]()

        @DBOS.workflow()
        def asks() -> None:
            gates.ask(question())
            went_on.put(time.perf_counter())

        times = []
        with running_dbos(dbos_config(engine)):
            for number in range(100):
                name = f"wf-{number}"
                with SetWorkflowID(name):
                    handle = DBOS.start_workflow(asks)
                client = DbosGateClient(ledger, name)
                asked = waiting(client)
                waits_for_message(name)
                start = time.perf_counter()
                assert answered(client, asked).ok
                times.append((went_on.get(timeout=60) - start) * 1e3)
                handle.get_result()
    return {"dbos_gate_roundtrip_ms": statistics.median(times)}
