"""Contracts that are wrong in one way each, and the scenarios that say so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from corrobo_core import Attempt, NotSent
from corrobo_core.testing.example import FakePayments, Refund, RefundContract, RefundOrder

BAD: list[Bad] = []


@dataclass(frozen=True)
class Bad:
    """One way to be wrong.

    Attributes:
        contract: made for a target.
        target: makes one.
        scenarios: those that must fail; no other may.
    """

    contract: Callable[[Any], RefundContract]
    target: Callable[[], FakePayments]
    scenarios: frozenset[str]

    @property
    def name(self) -> str:
        return getattr(self.contract, "__name__", "?")


def bad(
    *scenarios: str, target: Callable[[], FakePayments] = FakePayments
) -> Callable[[type[RefundContract]], type[RefundContract]]:
    def add(contract: type[RefundContract]) -> type[RefundContract]:
        BAD.append(Bad(contract, target, frozenset(scenarios)))
        return contract

    return add


@bad("lands_before_window_ends", "lands_as_window_ends")
class TakesSilenceForNotSent(RefundContract):
    """As if a request that got no answer had never left."""

    def execute(self, attempt: Attempt, intent: RefundOrder) -> Refund:
        try:
            return super().execute(attempt, intent)
        except TimeoutError as error:
            raise NotSent(error) from error
