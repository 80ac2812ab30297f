"""Contracts that hold, each with the scenarios that do not apply to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from corrobo_core import Attempt, Check
from corrobo_core.testing import FaultKind
from corrobo_core.testing.example import AsyncRefundContract, FakePayments, RefundContract, RefundOrder

DAY = timedelta(days=1)
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
    good(Lagging, lagging, *_OTHERS),
    good(Deduplicated, deduplicating, *_LAGS, "review_expires", "paused_before_send"),
    good(ReviewedRefund, FakePayments, *_LAGS, "key_retention_over"),
    good(WithoutWindow, FakePayments, *_LAGS, *_OTHERS, "paused_before_send"),
    good(AnswersMeanDone, answering_last, *_LAGS, *_OTHERS, "answers_before_effect"),
]
