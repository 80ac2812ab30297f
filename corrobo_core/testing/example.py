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

_PAGE = 10


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
        super().__init__(clock, lands_within=lands_within, page_size=_PAGE, **options)

    # -- what its clients call -------------------------------------------------------------------------------

    def create_refund(self, order_id: str, amount_cents: int, reference: str, *, key: str | None = None) -> Refund:
        """Refund an amount; the refund carries the reference, which lists show. ``key``: an idempotency key."""
        asked = Refund(order_id=order_id, amount_cents=amount_cents, reference=reference)
        return self.write(asked, key=key)

    def refunds(self, order_id: str, start: int = 0) -> RefundPage:
        """A page of the refunds of one order, oldest first."""
        listing = self.read()
        found = [
            entry.record.model_copy(update={"state": entry.state})
            for entry in listing.entries
            if entry.record.order_id == order_id
        ]
        end = start + _PAGE
        return RefundPage(found[start:end], end if end < len(found) else None, partial=not listing.complete)

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
    execute_timeout = timedelta(seconds=15)  # our client gives up after 5, and the provider may work for 10 more
    in_flight_window = timedelta(seconds=30)  # and a process that was paused for longer than the rest sends nothing
    max_attempts = 3

    def __init__(self, payments: FakePayments) -> None:
        self.payments = payments

    def identity(self, intent: RefundOrder) -> str:
        """The id of the decision."""
        return intent.refund_id

    def execute(self, attempt: Attempt, intent: RefundOrder) -> Refund:
        """Send the refund, marked with this operation's key."""
        key = attempt.idempotency_key
        try:
            return self.payments.create_refund(intent.order_id, intent.amount_cents, reference=key, key=key)
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
    execute_timeout = timedelta(seconds=15)
    in_flight_window = timedelta(seconds=30)
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
