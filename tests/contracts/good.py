"""Contracts that hold, each with the scenarios that do not apply to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from corrobo_core import AsyncEffectContract, Attempt, Check, Effect, Observation, Verdict, effect
from corrobo_core.testing import FaultKind
from corrobo_core.testing.example import AsyncRefundContract, FakePayments, Refund, RefundContract, RefundOrder

DAY = timedelta(days=1)
_DECLARED = (
    *("type", "in_flight_window", "execute_timeout", "observation_lag", "responds_after_effect", "key_retention"),
    *("max_attempts", "volatile"),
)
LAG = timedelta(seconds=3)


def deduplicating() -> FakePayments:
    return FakePayments(keeps_keys=DAY)


def lagging() -> FakePayments:
    return FakePayments(reads_lag=LAG)


def answering_last() -> FakePayments:
    """A provider whose answer means that the effect is there."""
    payments = FakePayments()
    payments.supports = frozenset(FaultKind) - {FaultKind.ANSWERS_FIRST}
    return payments


class Deduplicated(RefundContract):
    """Sent again at once: the provider keeps our key for a day."""

    in_flight_window = timedelta(0)
    key_retention = DAY
    max_attempts = 5


class ReviewedRefund(RefundContract):
    """A person must approve."""

    def authorize(self, attempt: Attempt, intent: RefundOrder) -> Check:
        return Check.requires_review("refunds are approved")


class Lagging(RefundContract):
    observation_lag = LAG


class WithoutWindow(RefundContract):
    """Nobody knows how late an effect can land: never sent twice by itself."""

    in_flight_window = None  # type: ignore[assignment]  # the declaration may be None; the one above is not


class AnswersMeanDone(RefundContract):
    responds_after_effect = True


def refund_function(payments: FakePayments) -> Effect[[str, str, int], Refund]:
    """The same as a function; its intent is three values."""
    contract = RefundContract(payments)

    @effect(
        "payments/refund",
        identity=lambda refund_id, **_: refund_id,
        in_flight_window=contract.in_flight_window,
        execute_timeout=contract.execute_timeout,
    )
    def refund(attempt: Attempt, refund_id: str, order_id: str, amount_cents: int) -> Refund:
        return contract.execute(attempt, _order(refund_id, order_id, amount_cents))

    @refund.observe
    def seen(attempt: Attempt, refund_id: str, order_id: str, amount_cents: int) -> Observation[list[Refund]]:
        return contract.observe(attempt, _order(refund_id, order_id, amount_cents))

    @seen.reconcile
    def judge(
        attempt: Attempt, found: list[Refund], refund_id: str, order_id: str, amount_cents: int
    ) -> Verdict[Refund]:
        return contract.reconcile(attempt, _order(refund_id, order_id, amount_cents), found)

    return refund


def _order(refund_id: str, order_id: str, amount_cents: int) -> RefundOrder:
    return RefundOrder(refund_id=refund_id, order_id=order_id, amount_cents=amount_cents)


class CalledWithValues(FakePayments):
    """For `refund_function`."""

    def intent(self, number: int, /) -> Any:
        (order,) = super().intent(number)
        return order.refund_id, order.order_id, order.amount_cents

    def changed_intent(self) -> Any:
        (order,) = super().changed_intent()
        return order.refund_id, order.order_id, order.amount_cents


def async_twin(contract: type[RefundContract]) -> type[AsyncEffectContract[RefundOrder, list[Refund], Refund]]:
    """The same contract with coroutines as hooks, and its checks as plain functions."""

    class Twin(AsyncEffectContract[RefundOrder, list[Refund], Refund]):
        def __init__(self, payments: FakePayments) -> None:
            self.inner = contract(payments)

        def identity(self, intent: RefundOrder) -> str:
            return self.inner.identity(intent)

        async def execute(self, attempt: Attempt, intent: RefundOrder) -> Refund:
            await asyncio.sleep(0)
            return self.inner.execute(attempt, intent)

        async def observe(self, attempt: Attempt, intent: RefundOrder) -> Observation[list[Refund]]:
            await asyncio.sleep(0)
            return self.inner.observe(attempt, intent)

        def reconcile(self, attempt: Attempt, intent: RefundOrder, data: list[Refund]) -> Verdict[Refund]:
            return self.inner.reconcile(attempt, intent, data)

    for name in _DECLARED:
        setattr(Twin, name, getattr(contract, name))
    for name in ("authorize", "revalidate"):
        if hasattr(contract, name):
            setattr(Twin, name, _check(name))
    return Twin


def _check(name: str) -> Callable[..., Check]:
    def check(self: Any, attempt: Attempt, intent: RefundOrder) -> Check:
        answer: Check = getattr(self.inner, name)(attempt, intent)
        return answer

    return check


@dataclass(frozen=True)
class Good:
    """A contract that holds.

    Attributes:
        contract: made for a target.
        target: makes one.
        not_applicable: the scenarios that it cannot be played in.
    """

    contract: Callable[[Any], Any]
    target: Callable[[], FakePayments]
    not_applicable: frozenset[str]


_LAGS = {"reads_lag_as_declared", "reads_lag_at_worst"}
_OTHERS = {"key_retention_over", "review_expires"}


def good(contract: Callable[[Any], Any], target: Callable[[], FakePayments], *without: str) -> Good:
    return Good(contract, target, frozenset(without))


GOOD = [
    good(RefundContract, FakePayments, *_LAGS, *_OTHERS),
    good(AsyncRefundContract, FakePayments, *_LAGS, *_OTHERS),
    good(refund_function, CalledWithValues, *_LAGS, *_OTHERS),
    good(Lagging, lagging, *_OTHERS),
    good(Deduplicated, deduplicating, *_LAGS, "review_expires", "paused_before_send"),
    good(ReviewedRefund, FakePayments, *_LAGS, "key_retention_over"),
    good(async_twin(ReviewedRefund), FakePayments, *_LAGS, "key_retention_over"),
    good(WithoutWindow, FakePayments, *_LAGS, *_OTHERS, "paused_before_send"),
    good(AnswersMeanDone, answering_last, *_LAGS, *_OTHERS, "answers_before_effect"),
]
