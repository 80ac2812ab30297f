"""A refund above a limit waits for a person: ``python -m examples.approve_refund [--json]``.

The payment system first answers 503, which may still have been carried out, so its window is waited out. By then
the approval is too old to send anything, and is asked for again. The payment system counts one refund.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from dbos import DBOS, SetWorkflowID

from corrobo_core import Attempt, Check, Observation, ReviewDesk, SqliteLedger, Verdict, effect
from corrobo_dbos import DbosGateClient, DbosGates, effect_step
from examples.http_ledger import Credit, HttpLedger, refused
from examples.people_on_dbos import answer, launched, next_question, show

LIMIT_CENTS = 10_000
WINDOW, MAX_AGE = timedelta(seconds=6), timedelta(seconds=5)


def refund_workflow(ledger: SqliteLedger, payments: HttpLedger) -> Any:
    """The workflow that a worker registers."""

    @effect_step(ledger, gates=DbosGates(ledger))
    @effect(
        "payments/refund",
        identity=lambda refund_id, **_: refund_id,
        in_flight_window=WINDOW,
        max_approval_age=MAX_AGE,
    )
    def refund(attempt: Attempt, refund_id: str, amount_cents: int) -> Credit:
        return payments.credit("alice", refund_id, amount_cents)

    @refund.authorize
    def limit(attempt: Attempt, refund_id: str, amount_cents: int) -> Check:
        return Check.proceed() if amount_cents <= LIMIT_CENTS else Check.requires_review("above the limit")

    @refund.observe
    def seen(attempt: Attempt, refund_id: str, amount_cents: int) -> Observation[list[Credit]]:
        return Observation.of(payments.credits("alice", refund_id), source="payments", proves_absence=True)

    @seen.reconcile
    def judge(attempt: Attempt, found: list[Credit]) -> Verdict[Credit]:
        match found:
            case []:
                return Verdict.not_applied("NO_REFUND")
            case [one]:
                return Verdict.applied("REFUNDED", effect=one)
            case _:
                return Verdict.conflicted("DUPLICATES")

    @DBOS.workflow()
    def cancel_order(refund_id: str, amount_cents: int) -> int:
        return refund(refund_id, amount_cents).amount_cents

    return cancel_order


def run(folder: Path, payments: HttpLedger) -> dict[str, Any]:
    """Worker and reviewer, here in one process."""
    payments.fail_next(refused(503))
    with SqliteLedger(folder / "effects.db") as ledger:
        ledger.migrate()
        cancel_order = refund_workflow(ledger, payments)
        with launched(folder):
            with SetWorkflowID("cancel-1001"):
                handle = DBOS.start_workflow(cancel_order, "rf_81", 25_000)
            reviewer = DbosGateClient(ledger, "cancel-1001", desk=ReviewDesk(ledger))
            asked: set[str] = set()
            while len(asked) < 2:
                question = next_question(reviewer, asked)
                answer(reviewer, question, {"kind": "allow"}, "ada")
                asked.add(question.request_id)
            refunded = handle.get_result()
    counts = payments.counts("rf_81")
    return {
        "questions": len(asked),
        "refundedCents": refunded,
        "requestsSent": counts.write_requests,
        "refundsAtProvider": counts.credits,
    }


if __name__ == "__main__":
    show(
        run,
        "asked {questions} times: the first approval was too old when the retry was safe",
        "sent {requestsSent} times, the first one was refused",
        "refunds at the provider: {refundsAtProvider}",
    )
