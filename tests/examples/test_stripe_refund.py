"""The refund through Stripe's own client."""

from __future__ import annotations

import pytest
import stripe

from corrobo_core import Attempt, Evidence
from examples.stripe_refund import RefundAtStripe, RefundOrder, StripeRefund
from tests.support.processes import child

ORDER = RefundOrder(refund_id="rf_1", charge="ch_1", amount_cents=2_500)


def test_the_example_makes_two_refunds_without_the_ledger_and_one_with_it() -> None:
    with child("examples.stripe_refund") as example:
        assert example.wait(60) == 0, example.output
    assert example.lines == [
        "       naive: 2 at Stripe, where one refund was wanted",
        "with corrobo: 1 at Stripe, where one refund was wanted",
    ]


@pytest.mark.parametrize(
    ("found", "evidence"),
    [
        ([], Evidence.NOT_APPLIED),
        ([(2_500, "succeeded")], Evidence.APPLIED),
        ([(2_500, "pending")], Evidence.PENDING),
        ([(2_500, "requires_action")], Evidence.PENDING),
        ([(2_500, "failed")], Evidence.CONFLICTED),
        ([(2_500, "canceled")], Evidence.CONFLICTED),
        ([(2_500, "a state of 2031")], Evidence.UNKNOWN),
        ([(2_499, "succeeded")], Evidence.CONFLICTED),
        ([(2_500, "succeeded"), (2_500, "failed")], Evidence.CONFLICTED),
    ],
)
def test_every_state_of_a_refund_means_something(found: list[tuple[int, str]], evidence: Evidence) -> None:
    contract = RefundAtStripe(stripe.StripeClient("sk_test_unused"))
    attempt = Attempt("stripe/refund", "rf_1", "default", 1, "key")
    refunds = [StripeRefund(id=f"re_{n}", amount=amount, status=status) for n, (amount, status) in enumerate(found)]
    assert contract.reconcile(attempt, ORDER, refunds).evidence is evidence
