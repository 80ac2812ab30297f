"""A refund above a limit waits for a person: ``python -m examples.approve_refund [--json]``.

The payment system first answers 503, which may still have been carried out, so its window is waited out. By then
the approval is too old to send anything, and is asked for again. The payment system counts one refund.
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dbos import DBOS, SetWorkflowID

from corrobo_core import Attempt, Check, Observation, ReviewDesk, SqliteLedger, Verdict, effect
from corrobo_core.gates import ClaimOk
from corrobo_dbos import DbosGateClient, DbosGates, effect_step
from examples.http_ledger import Credit, HttpLedger, refused, running_http_ledger
from examples.waiting import next_question

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


def approve(reviewer: DbosGateClient, asked_before: set[str]) -> str:
    """What the reviewer's process does: show the question, claim it, allow it."""
    asked = next_question(reviewer, asked_before)
    claim = reviewer.claim(asked.request_id, "console")
    assert isinstance(claim, ClaimOk)
    delivered = reviewer.submit(
        asked.request_id,
        claim.claim_token,
        "console",
        asked.request.digest,
        {"kind": "allow"},
        actor={"name": "ada"},
    )
    assert delivered.ok
    return asked.request_id


def run(folder: Path, payments: HttpLedger) -> dict[str, Any]:
    """Worker and reviewer, here in one process."""
    payments.fail_next(refused(503))
    with SqliteLedger(folder / "effects.db") as ledger:
        ledger.migrate()
        cancel_order = refund_workflow(ledger, payments)
        DBOS(
            config={
                "name": "refunds",
                "application_version": "1",
                "system_database_url": f"sqlite:///{folder / 'dbos.db'}",
                "log_level": "ERROR",
            }
        )
        DBOS.launch()
        try:
            with SetWorkflowID("cancel-1001"):
                handle = DBOS.start_workflow(cancel_order, "rf_81", 25_000)
            reviewer = DbosGateClient(ledger, "cancel-1001", desk=ReviewDesk(ledger))
            asked: set[str] = set()
            while len(asked) < 2:
                asked.add(approve(reviewer, asked))
            refunded = handle.get_result()
        finally:
            DBOS.destroy()
    counts = payments.counts("rf_81")
    return {
        "questions": len(asked),
        "refundedCents": refunded,
        "requestsSent": counts.write_requests,
        "refundsAtProvider": counts.credits,
    }


def main() -> None:
    with TemporaryDirectory() as folder, running_http_ledger() as payments:
        facts = run(Path(folder), payments)
    if "--json" in sys.argv[1:]:
        print(json.dumps(facts, indent=2))
        return
    print(f"asked {facts['questions']} times: the first approval was too old when the retry was safe")
    print(f"sent {facts['requestsSent']} times, the first one was refused")
    print(f"refunds at the provider: {facts['refundsAtProvider']}")


if __name__ == "__main__":
    main()
