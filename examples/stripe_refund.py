"""A refund through Stripe's own client, its response lost: ``python -m examples.stripe_refund``.

Needs ``pip install stripe localstripe``; the second is a server that stands in for Stripe on this machine. Like
Stripe after 24 hours, it deduplicates nothing, so its own list tells how often a refund was made.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import stripe
from pydantic import BaseModel

from corrobo_core import Attempt, EffectContract, EffectRunner, Observation, Rejected, SqliteLedger, Verdict

REFERENCE = "refund_reference"  # the metadata field that carries our operation's key


class RefundOrder(BaseModel):
    """One decision to refund. ``refund_id`` was minted when it was made."""

    refund_id: str
    charge: str
    amount_cents: int


class StripeRefund(BaseModel):
    """What is kept of a refund."""

    id: str
    amount: int
    status: str


class RefundAtStripe(EffectContract[RefundOrder, list[StripeRefund], StripeRefund]):
    """Refunds a charge once, whatever happens to the response.

    Args:
        client: with ``max_network_retries=0``: the ledger decides what is sent again.
    """

    type = "stripe/refund"
    execute_timeout = timedelta(seconds=85)  # Stripe answers within 80 seconds
    in_flight_window = timedelta(seconds=120)  # so an attempt may begin within 35 seconds of its reservation (L9)
    max_attempts = 3

    def __init__(self, client: stripe.StripeClient) -> None:
        self.client = client

    def identity(self, intent: RefundOrder) -> str:
        """The id of the decision."""
        return intent.refund_id

    def execute(self, attempt: Attempt, intent: RefundOrder) -> str:
        """Send the refund, marked with this operation's key from the first time on."""
        key = attempt.idempotency_key
        try:
            refund = self.client.v1.refunds.create(
                {"charge": intent.charge, "amount": intent.amount_cents, "metadata": {REFERENCE: key}},
                {"idempotency_key": key},
            )
        except stripe.RateLimitError as error:
            raise Rejected(error, retryable=True) from error
        except (stripe.AuthenticationError, stripe.PermissionError, stripe.InvalidRequestError) as error:
            raise Rejected(error) from error
        return refund.id

    def observe(self, attempt: Attempt, intent: RefundOrder) -> Observation[list[StripeRefund]]:
        """All refunds of the charge that carry our key: every page of the list, which does not lag."""
        listed = self.client.v1.refunds.list({"charge": intent.charge, "limit": 100})
        ours = [
            StripeRefund(id=refund.id, amount=refund.amount, status=refund.status or "pending")
            for refund in listed.auto_paging_iter()
            if refund.metadata and refund.metadata.to_dict().get(REFERENCE) == attempt.idempotency_key
        ]
        return Observation.of(ours, source="stripe.refunds.list", proves_absence=True)

    def reconcile(self, attempt: Attempt, intent: RefundOrder, data: list[StripeRefund]) -> Verdict[StripeRefund]:
        """Exactly one, of the right amount, in a state that we know."""
        match data:
            case []:
                return Verdict.not_applied("NO_REFUND", "no refund of this charge carries our reference")
            case [StripeRefund(amount=intent.amount_cents, status="succeeded") as refund]:
                return Verdict.applied("REFUNDED", "exactly one refund carries our reference", effect=refund)
            case [StripeRefund(amount=intent.amount_cents, status="pending" | "requires_action") as refund]:
                return Verdict.pending("PENDING", f"Stripe is still working on {refund.id}")
            case [StripeRefund(amount=intent.amount_cents, status="failed" | "canceled") as refund]:
                return Verdict.conflicted("NOT_REFUNDED", f"{refund.id} has {refund.status}")
            case [StripeRefund(amount=intent.amount_cents) as refund]:
                return Verdict.unknown("NEW_STATE", f"{refund.id} is {refund.status}, which we do not know")
            case _:
                return Verdict.conflicted("OTHERS", f"{len(data)} refunds carry our reference, or another amount")


# -- a Stripe that answers badly -----------------------------------------------------------------------------


class FirstAnswerLost(stripe.RequestsClient):
    """Loses the answer to the first refund, once Stripe has made it."""

    lost = False

    def request(self, method: str, url: str, headers: Any, post_data: Any = None, **options: Any) -> Any:
        """Send, and lose the answer."""
        answer = super().request(method, url, headers, post_data, **options)
        if method == "post" and url.endswith("/refunds") and not self.lost:
            self.lost = True
            raise stripe.APIConnectionError("connection reset")  # type: ignore[no-untyped-call]
        return answer


def stripe_client(url: str) -> stripe.StripeClient:
    """A client that loses one answer."""
    return stripe.StripeClient(
        "sk_test_1234567", base_addresses={"api": url}, max_network_retries=0, http_client=FirstAnswerLost()
    )


@contextmanager
def local_stripe() -> Iterator[str]:
    """Start the local server on a free port, and stop it at the end; gives its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = Path(sys.executable).with_name("localstripe")
    command = [str(program), "--port", str(port), "--from-scratch"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _wait_until_it_listens(server, port)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def _wait_until_it_listens(server: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(600):
        with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return
        if server.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError("localstripe did not start")


def new_charge(client: stripe.StripeClient) -> str:
    """A charge of 100.00 to refund from."""
    paid = client.v1.payment_intents.create(
        {"amount": 10_000, "currency": "eur", "payment_method": "pm_card_visa", "confirm": True}
    )
    charge = paid.latest_charge
    assert charge is not None
    return charge if isinstance(charge, str) else charge.id


def refunds_of(client: stripe.StripeClient, charge: str) -> int:
    """How many refunds Stripe itself lists."""
    return len(list(client.v1.refunds.list({"charge": charge}).auto_paging_iter()))


def naive(client: stripe.StripeClient) -> int:
    """Try again after an error, with the same idempotency key; how many refunds that makes."""
    charge = new_charge(client)
    for _ in range(2):
        with suppress(stripe.APIConnectionError):
            client.v1.refunds.create({"charge": charge, "amount": 2_500}, {"idempotency_key": "refund-1001"})
            break
    return refunds_of(client, charge)


def with_corrobo(client: stripe.StripeClient) -> int:
    """The same through the ledger, called twice; how many refunds that makes."""
    order = RefundOrder(refund_id="rf_1001", charge=new_charge(client), amount_cents=2_500)
    with TemporaryDirectory() as folder, SqliteLedger(Path(folder) / "effects.db") as ledger:
        ledger.migrate()
        runner, refund = EffectRunner(ledger), RefundAtStripe(client)
        first, second = (runner.run(refund, order).unwrap() for _ in range(2))
        assert first == second
    return refunds_of(client, order.charge)


def main() -> int:
    """Print how many refunds Stripe lists; 1 if that is not as it should be."""
    with local_stripe() as url:
        counts = {"naive": naive(stripe_client(url)), "with corrobo": with_corrobo(stripe_client(url))}
    for name, count in counts.items():
        print(f"{name:>12}: {count} at Stripe, where one refund was wanted")
    return 0 if counts == {"naive": 2, "with corrobo": 1} else 1


if __name__ == "__main__":
    sys.exit(main())
