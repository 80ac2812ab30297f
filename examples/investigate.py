"""Nobody can tell what happened, until a person attests it: ``python -m examples.investigate [--json]``.

The answer to a refund is lost, and the payment system's read side is down: evidence cannot decide, so nothing is
sent again. A person looks at the bank statement and says that the refund is there. The workflow completes.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from dbos import DBOS, SetWorkflowID

from corrobo_core import Attempt, Observation, ReviewDesk, SqliteLedger, Verdict, effect
from corrobo_core.records import JSON
from corrobo_dbos import DbosGateClient, DbosGates, effect_step
from examples.http_ledger import Credit, HttpLedger, answer_lost, reads_fail
from examples.people_on_dbos import answer, launched, next_question, show

STATEMENT: dict[str, JSON] = {"id": "cr_1", "account": "alice", "reference": "rf_81", "amount_cents": 5_000}


def run(folder: Path, payments: HttpLedger) -> dict[str, Any]:
    """Worker and reviewer, here in one process."""
    payments.fail_next(answer_lost(), reads_fail(times=None))
    with SqliteLedger(folder / "effects.db") as ledger:
        ledger.migrate()

        @effect_step(ledger, look_again_for=timedelta(seconds=1), gates=DbosGates(ledger))
        @effect(
            "payments/refund", identity=lambda refund_id, **_: refund_id, in_flight_window=timedelta(seconds=10)
        )
        def refund(attempt: Attempt, refund_id: str, amount_cents: int) -> Credit:
            return payments.credit("alice", refund_id, amount_cents)

        @refund.observe
        def seen(attempt: Attempt, refund_id: str, amount_cents: int) -> Observation[list[Credit]]:
            return Observation.of(payments.credits("alice", refund_id), source="payments", proves_absence=True)

        @seen.reconcile
        def judge(attempt: Attempt, found: list[Credit]) -> Verdict[Credit]:
            return Verdict.applied("REFUNDED", effect=found[0]) if found else Verdict.not_applied("NO_REFUND")

        @DBOS.workflow()
        def cancel_order(refund_id: str, amount_cents: int) -> str:
            return refund(refund_id, amount_cents).id

        with launched(folder):
            with SetWorkflowID("cancel-1001"):
                handle = DBOS.start_workflow(cancel_order, "rf_81", 5_000)
            reviewer = DbosGateClient(ledger, "cancel-1001", desk=ReviewDesk(ledger), effects=[refund])
            asked = next_question(reviewer)
            attested: JSON = {"kind": "applied", "value": STATEMENT, "note": "on the bank statement"}
            delivered = answer(reviewer, asked, attested, "ada")
            refund_id = handle.get_result()
    counts = payments.counts("rf_81")
    return {
        "question": asked.request.decision_text,
        "attestedBy": delivered.decision.decision.reviewer if delivered.decision else None,
        "refund": refund_id,
        "requestsSent": counts.write_requests,
        "refundsAtProvider": counts.credits,
    }


if __name__ == "__main__":
    show(
        run,
        "asked: {question}",
        "attested by {attestedBy}: {refund}",
        "refunds at the provider: {refundsAtProvider}, after {requestsSent} request",
    )
