"""A refund whose response is lost, made once and only once: ``python -m examples.quickstart``; no server needed."""

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from corrobo_core import Attempt, EffectRunner, Observation, SqliteLedger, Verdict, effect

PROVIDER: list[dict[str, object]] = []  # the payment provider's own books


@effect("payments/refund", identity=lambda refund_id, **_: refund_id, in_flight_window=timedelta(seconds=1))
def refund(attempt: Attempt, refund_id: str, amount_cents: int) -> dict[str, object]:
    PROVIDER.append({"reference": attempt.operation_id, "amount_cents": amount_cents})
    raise TimeoutError("the connection dropped after the provider had committed")


@refund.observe
def seen(attempt: Attempt) -> Observation[list[dict[str, object]]]:
    found = [entry for entry in PROVIDER if entry["reference"] == attempt.operation_id]
    return Observation.of(found, source="provider.refunds", proves_absence=True)


@seen.reconcile
def judge(attempt: Attempt, found: list[dict[str, object]]) -> Verdict[dict[str, object]]:
    if len(found) > 1:
        return Verdict.conflicted("REFUNDED_TWICE", "the provider lists more than one")
    if found:
        return Verdict.applied("REFUNDED", "the provider lists this refund", effect=found[0])
    return Verdict.not_applied("NO_REFUND", "the provider lists no such refund")


if __name__ == "__main__":
    with TemporaryDirectory() as folder, SqliteLedger(Path(folder) / "effects.db") as ledger:
        ledger.migrate()
        runner = EffectRunner(ledger)
        print(runner.run(refund, "rf_81", 5_000).unwrap())  # the response was lost; the refund was not
        print(runner.run(refund, "rf_81", 5_000).unwrap())  # a retry: answered from the ledger
        print("refunds at the provider:", len(PROVIDER))
