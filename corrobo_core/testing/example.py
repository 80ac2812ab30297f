"""A fake provider and two contracts that hold on it: what to copy from.

``FakePayments`` is what one writes for a test of one's own contract; ``RefundContract`` and ``AsyncRefundContract``
are refunds by it. `verify_contract` passes them in every scenario.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from corrobo_core.attempt import Attempt
from corrobo_core.contract import AsyncEffectContract, EffectContract
from corrobo_core.errors import Rejected
from corrobo_core.records import Observation, Verdict
from corrobo_core.testing.clock import VirtualClock
from corrobo_core.testing.fake import EntryState, FakeProvider

__all__ = ["AsyncRefundContract", "FakePayments", "PaymentRefused", "Refund", "RefundContract", "RefundOrder"]

PAGE = 10  # entries on one page of a list


class PaymentRefused(Exception):
    """The payment provider refused a request for good."""


class RefundOrder(BaseModel):
    """One decision to refund. ``refund_id`` was minted when it was made."""

    refund_id: str
    order_id: str
    amount_cents: int


class Refund(BaseModel):
    """One refund, as the provider lists it."""

    order_id: str
    amount_cents: int
    reference: str
    state: EntryState = EntryState.SETTLED


@dataclass(frozen=True)
class RefundPage:
    """One page. ``next``: where the next one begins; None on the last. ``partial``: some may be missing."""

    refunds: list[Refund]
    next: int | None
    partial: bool


class FakePayments(FakeProvider[Refund]):
    """A payment provider that refunds what it is told to, and deduplicates nothing unless told how long.

    Args:
        clock: of the provider.
        lands_within: the longest time after a request was sent that its refund may still appear.
        **options: see `FakeProvider`.
    """

    def __init__(
        self,
        clock: VirtualClock | None = None,
        *,
        lands_within: timedelta | None = timedelta(seconds=10),
        **options: Any,
    ) -> None:
        super().__init__(clock, lands_within=lands_within, **options)

    # -- what its clients call -------------------------------------------------------------------------------

    def create_refund(self, order_id: str, amount_cents: int, reference: str) -> Refund:
        """Refund an amount; the reference is kept, and is the idempotency key where there is one."""
        asked = Refund(order_id=order_id, amount_cents=amount_cents, reference=reference)
        return self.write(asked, key=reference)

    def refunds(self, order_id: str, start: int = 0) -> RefundPage:
        """A page of the refunds of one order, oldest first."""
        listing = self.read()
        found = [
            entry.record.model_copy(update={"state": entry.state})
            for entry in listing.entries
            if entry.record.order_id == order_id
        ]
        more = start + PAGE if len(found) > start + PAGE else None
        return RefundPage(found[start : start + PAGE], more, partial=not listing.complete)

    def refusal(self) -> Exception:
        """As its client sees a refusal."""
        return PaymentRefused("the order is closed")

    # -- what the suite asks ---------------------------------------------------------------------------------

    def intent(self, number: int, /) -> tuple[RefundOrder]:
        """One decision of many on the same order, of the same amount."""
        return (RefundOrder(refund_id=f"rf_{number}", order_id="1001", amount_cents=5_000),)

    def changed_intent(self) -> tuple[RefundOrder]:
        """The first decision with another amount."""
        return (RefundOrder(refund_id="rf_1", order_id="1001", amount_cents=4_900),)


def judge(order: RefundOrder, found: list[Refund]) -> Verdict[Refund]:
    """Exactly one refund, of the right amount, that is not rejected."""
    match found:
        case []:
            return Verdict.not_applied("NO_REFUND", "no refund of the order carries our reference")
        case [Refund(amount_cents=order.amount_cents, state=EntryState.SETTLED) as refund]:
            return Verdict.applied("REFUNDED", "exactly one refund carries our reference", effect=refund)
        case [Refund(amount_cents=order.amount_cents, state=EntryState.PENDING)]:
            return Verdict.pending("PENDING", "the provider is still working on the refund")
        case _:
            return Verdict.conflicted("OTHERS", f"{len(found)} refunds carry our reference, not one as intended")


class RefundContract(EffectContract[RefundOrder, list[Refund], Refund]):
    """Refunds an order once, whatever happens to the response.

    Args:
        payments: the provider's client.
    """

    type = "payments/refund"
    in_flight_window = timedelta(seconds=15)  # our hook may take 5 seconds, and the provider 10 more
    execute_timeout = timedelta(seconds=5)
    max_attempts = 3

    def __init__(self, payments: FakePayments) -> None:
        self.payments = payments

    def identity(self, intent: RefundOrder) -> str:
        """The id of the decision."""
        return intent.refund_id

    def execute(self, attempt: Attempt, intent: RefundOrder) -> Refund:
        """Send the refund, marked with this operation's key."""
        try:
            return self.payments.create_refund(intent.order_id, intent.amount_cents, attempt.idempotency_key)
        except PaymentRefused as error:
            raise Rejected(error) from error

    def observe(self, attempt: Attempt, intent: RefundOrder) -> Observation[list[Refund]]:
        """All refunds of the order that carry our key, from every page."""
        ours: list[Refund] = []
        start: int | None = 0
        complete = True
        while start is not None:
            page = self.payments.refunds(intent.order_id, start)
            ours += [refund for refund in page.refunds if refund.reference == attempt.idempotency_key]
            complete, start = complete and not page.partial, page.next
        return Observation.of(ours, source="payments.refunds", proves_absence=complete)

    def reconcile(self, attempt: Attempt, intent: RefundOrder, data: list[Refund]) -> Verdict[Refund]:
        """Compare what was found with what was intended."""
        return judge(intent, data)


class AsyncRefundContract(AsyncEffectContract[RefundOrder, list[Refund], Refund]):
    """`RefundContract` for an event loop."""

    type = "payments/refund"
    in_flight_window = timedelta(seconds=15)
    execute_timeout = timedelta(seconds=5)
    max_attempts = 3

    def __init__(self, payments: FakePayments) -> None:
        self._refund = RefundContract(payments)

    def identity(self, intent: RefundOrder) -> str:
        """The id of the decision."""
        return intent.refund_id

    async def execute(self, attempt: Attempt, intent: RefundOrder) -> Refund:
        """Send the refund."""
        return self._refund.execute(attempt, intent)

    async def observe(self, attempt: Attempt, intent: RefundOrder) -> Observation[list[Refund]]:
        """Look for it."""
        return self._refund.observe(attempt, intent)

    def reconcile(self, attempt: Attempt, intent: RefundOrder, data: list[Refund]) -> Verdict[Refund]:
        """Compare what was found with what was intended."""
        return judge(intent, data)
