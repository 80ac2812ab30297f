"""Right and wrong uses of `effect_step`; each wrong one must be an error for every type checker."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import assert_type

from corrobo_core import (
    AsyncEffectContract,
    Attempt,
    Check,
    EffectContract,
    MemoryLedger,
    Observation,
    Verdict,
    effect,
)
from corrobo_dbos import effect_step


@dataclass
class Refund:
    id: str


ledger = MemoryLedger()


@effect_step(ledger)
@effect("payments/refund", identity=lambda refund_id, **_: refund_id)
def refund(attempt: Attempt, refund_id: str, amount_cents: int = 100) -> Refund:
    return Refund(refund_id)


@refund.observe
def seen(attempt: Attempt) -> Observation[list[Refund]]:
    return Observation.of([], source="refunds", proves_absence=True)


@seen.reconcile
def judge(attempt: Attempt, found: list[Refund]) -> Verdict[Refund]:
    return Verdict.applied("REFUNDED", effect=found[0])


@refund.revalidate
def still_open(attempt: Attempt) -> Check:
    return Check.proceed()


@effect_step(ledger, name="refund later")
@effect("payments/refund-later", identity=lambda refund_id: refund_id)
async def refund_later(attempt: Attempt, refund_id: str) -> Refund:
    return Refund(refund_id)


@refund_later.observe
async def seen_later(attempt: Attempt, refund_id: str) -> Observation[None]:
    return Observation.of(None, source="refunds", proves_absence=True)


@seen_later.reconcile
def judge_later(attempt: Attempt, found: None, refund_id: str) -> Verdict[Refund]:
    return Verdict.not_applied("NO_REFUND")


class Refunds(EffectContract[Refund, list[Refund], Refund]):
    type = "payments/refunds"


class AsyncRefunds(AsyncEffectContract[Refund, list[Refund], Refund]):
    type = "payments/async-refunds"


def calls() -> None:
    assert_type(refund("rf_81"), Refund)
    assert_type(refund("rf_81", amount_cents=5), Refund)
    assert_type(refund.with_context(actor="bob")("rf_81"), Refund)
    assert_type(effect_step(ledger)(Refunds())(Refund("rf_81")), Refund)

    refund()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    refund(81)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    refund("rf_81", 5, 6)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    refund("rf_81", cents=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    effect_step(ledger)(Refunds())("rf_81")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def async_calls() -> None:
    assert_type(await refund_later("rf_81"), Refund)
    assert_type(await effect_step(ledger)(AsyncRefunds())(Refund("rf_81")), Refund)
    one, _ = await asyncio.gather(refund_later("rf_81"), refund_later("rf_82"))
    assert_type(one, Refund)
    assert_type(await asyncio.create_task(refund_later("rf_83")), Refund)

    str(refund_later("rf_81").id)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    await refund_later(81)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def hooks() -> None:
    @refund.observe  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    async def async_hook(attempt: Attempt) -> Observation[None]:
        return Observation.of(None, source="refunds", proves_absence=True)

    @refund.authorize  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    def other_parameters(attempt: Attempt, order_id: int) -> Check:
        return Check.proceed()


def decorators() -> None:
    def no_effect(refund_id: str) -> Refund:
        return Refund(refund_id)

    effect_step(ledger)(no_effect)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    effect_step(no_effect)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
