"""Right and wrong uses of `corrobo_core`; each wrong one must be an error for every type checker."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, assert_type

from pydantic import BaseModel

from corrobo_core import (
    AsyncEffect,
    AsyncEffectContract,
    AsyncEffectRunner,
    Attempt,
    Backoff,
    BaseEffect,
    Check,
    Disposition,
    Effect,
    EffectContract,
    EffectResult,
    EffectRunner,
    Evidence,
    MemoryLedger,
    Observation,
    RetryPolicy,
    Verdict,
    current_attempt,
    effect,
)


class Order(BaseModel):
    id: str
    amount_cents: int


@dataclass
class Refund:
    id: str


SECOND = timedelta(seconds=1)
ledger = MemoryLedger()
sync_runner = EffectRunner(ledger)
async_runner = AsyncEffectRunner(ledger)


# -- functions -------------------------------------------------------------------------------------------------


@effect("payments/refund", identity=lambda refund_id, **_: refund_id, in_flight_window=SECOND, max_attempts=3)
def refund(attempt: Attempt, refund_id: str, amount_cents: int = 100, *, urgent: bool = False) -> Refund:
    return Refund(attempt.idempotency_key)


@refund.observe
def seen(attempt: Attempt) -> Observation[list[Refund]]:
    return Observation.of([Refund("x")], source="refunds", proves_absence=True)


@seen.reconcile
def judge(attempt: Attempt, found: list[Refund]) -> Verdict[Refund]:
    match found:
        case []:
            return Verdict.not_applied("NO_REFUND")
        case [one]:
            return Verdict.applied("REFUNDED", "exactly one", effect=one)
        case _:
            return Verdict.conflicted("DUPLICATES")


@refund.authorize
def may(attempt: Attempt) -> Check:
    return Check.requires_review("large") if attempt.context.get("actor") else Check.proceed()


@refund.revalidate
def still(attempt: Attempt, refund_id: str, amount_cents: int = 100, *, urgent: bool = False) -> Check:
    return Check.reject("closed")


@effect("payments/refund-later", identity=lambda refund_id: refund_id, retry=RetryPolicy(retryable=False))
async def refund_later(attempt: Attempt, refund_id: str) -> Refund | None:
    return None


@refund_later.observe
async def seen_later(attempt: Attempt, refund_id: str) -> Observation[Refund | None]:
    return Observation.of(None, source="refunds", proves_absence=True, observed_at=datetime.now().astimezone())


@seen_later.reconcile
def judge_later(attempt: Attempt, found: Refund | None, refund_id: str) -> Verdict[Refund | None]:
    return Verdict.applied("REFUNDED", effect=found)


@refund_later.authorize
def plain_hook_on_an_async_effect(attempt: Attempt) -> Check:
    return Check.proceed()


def effects() -> None:
    assert_type(seen.fn, Callable[..., Any])
    as_base: BaseEffect[[str], Refund | None] = refund_later
    as_async: AsyncEffect[[str], Refund | None] = refund_later
    as_sync: Effect[[str], Refund | None] = refund_later  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    other: BaseEffect[[int], Refund | None] = refund_later  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    print(as_base, as_async, as_sync, other)


def decorating() -> None:
    def no_attempt(refund_id: str) -> Refund:
        return Refund(refund_id)

    def fine(attempt: Attempt, refund_id: str) -> Refund:
        return Refund(refund_id)

    made: Effect[[str], Refund] = effect("t/x", identity=lambda refund_id: refund_id)(fine)
    print(made, no_attempt)
    effect("t/x", identity=lambda refund_id: refund_id)(no_attempt)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    effect("t/x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    effect("t/x", identity="refund_id")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    effect("t/x", identity=lambda x: x, in_flight_window=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    effect("t/x", identity=lambda x: x, max_attempts="3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    effect("t/x", identity=lambda x: x, window=SECOND)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    effect("t/x", identity=lambda x: x, poll=SECOND)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    effect("t/x", identity=lambda x: x, poll=Backoff(SECOND, 2 * SECOND), retry=RetryPolicy(3, backoff=SECOND))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# -- hooks -----------------------------------------------------------------------------------------------------


def hooks() -> None:
    @refund.observe  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    async def async_observe(attempt: Attempt) -> Observation[list[Refund]]:
        return Observation.of([], source="refunds", proves_absence=True)

    @refund.authorize  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    async def async_authorize(attempt: Attempt) -> Check:
        return Check.proceed()

    @refund.revalidate  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    async def async_revalidate(attempt: Attempt) -> Check:
        return Check.proceed()

    @refund.observe  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    def no_observation(attempt: Attempt) -> list[Refund]:
        return []

    @refund.observe  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    def other_parameters(attempt: Attempt, order_id: int) -> Observation[list[Refund]]:
        return Observation.of([], source="refunds", proves_absence=True)

    @refund.authorize  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    def answers_a_bool(attempt: Attempt) -> bool:
        return True

    @seen.reconcile  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    def other_data(attempt: Attempt, found: list[str]) -> Verdict[Refund]:
        return Verdict.not_applied("NO_REFUND")

    @seen.reconcile  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    def other_effect(attempt: Attempt, found: list[Refund]) -> Verdict[str]:
        return Verdict.applied("REFUNDED", effect="rf_81")

    @seen.reconcile  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    async def async_reconcile(attempt: Attempt, found: list[Refund]) -> Verdict[Refund]:
        return Verdict.not_applied("NO_REFUND")

    @seen_later.reconcile  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    async def async_reconcile_of_an_async_effect(attempt: Attempt, found: Refund | None) -> Verdict[Refund | None]:
        return Verdict.not_applied("NO_REFUND")

    @seen_later.reconcile  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    def coroutine_of_the_data(attempt: Attempt, found: int) -> Verdict[Refund | None]:
        return Verdict.not_applied("NO_REFUND")


def what_hooks_say() -> None:
    def wrong_value(attempt: Attempt, found: list[Refund]) -> Verdict[Refund]:
        return Verdict.applied("REFUNDED", effect="rf_81")  # type: ignore[arg-type]  # pyright: ignore[reportReturnType]

    def wrong_data(attempt: Attempt) -> Observation[list[Refund]]:
        return Observation.of("rf_81", source="refunds", proves_absence=True)  # type: ignore[arg-type]  # pyright: ignore[reportReturnType]

    print(wrong_value, wrong_data)
    assert_type(Verdict.applied("OK", effect=1), Verdict[int])
    assert_type(Observation.of([1], source="x", proves_absence=False), Observation[list[int]])
    assert_type(current_attempt().time_left(), timedelta | None)
    Verdict.applied("OK")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Verdict.not_applied("OK", effect=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Observation.of([1], source="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Observation.of([1], "x", True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Check.reject()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


# -- runners ---------------------------------------------------------------------------------------------------


def sync_runs() -> None:
    result = sync_runner.run(refund, "rf_81", 5_000)
    assert_type(result, EffectResult[Refund])
    assert_type(result.effect, Refund | None)
    assert_type(result.unwrap(), Refund)
    assert_type(result.disposition, Disposition | None)
    assert_type(result.evidence, Evidence | None)
    assert_type(result.wait, timedelta)
    assert_type(sync_runner.run(refund, refund_id="rf_81", urgent=True), EffectResult[Refund])
    assert_type(sync_runner.observe(refund, "rf_81"), EffectResult[Refund])
    assert_type(sync_runner.with_context(actor="ann").observing_now().run(refund, "rf_81"), EffectResult[Refund])

    sync_runner.run(refund)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    sync_runner.run(refund, 81)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    sync_runner.run(refund, "rf_81", "5000")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    sync_runner.run(refund, "rf_81", 5_000, True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    sync_runner.run(refund, "rf_81", amount=5_000)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    sync_runner.observe(refund, 81)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    sync_runner.run(refund_later, "rf_81")  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    sync_runner.observe(refund_later, "rf_81")  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    sync_runner.run(judge, "rf_81")  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    wrong: EffectResult[str] = result  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    print(wrong, result.effect.id)  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
    EffectRunner("effects.db")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def async_runs() -> None:
    assert_type(await async_runner.run(refund_later, "rf_81"), EffectResult[Refund | None])
    assert_type(await async_runner.run(refund, "rf_81", 5), EffectResult[Refund])
    assert_type((await async_runner.observe(refund_later, refund_id="rf_81")).effect, Refund | None)
    assert_type(await async_runner.with_context(actor="ann").run(refund, "rf_81"), EffectResult[Refund])

    await async_runner.run(refund_later)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await async_runner.run(refund_later, 81)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await async_runner.run(refund_later, "rf_81", 5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await async_runner.observe(refund, "rf_81", amount="5")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    print((await async_runner.run(refund, "rf_81")).unwrap().amount)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    async_runner.run(refund, "rf_81").unwrap()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


# -- classes ---------------------------------------------------------------------------------------------------


class Refunds(EffectContract[Order, list[Refund], Refund]):
    type = "payments/refund"
    in_flight_window = SECOND
    max_attempts = 3

    def __init__(self, client: object) -> None:
        self.client = client

    def identity(self, intent: Order) -> str:
        return intent.id

    def execute(self, attempt: Attempt, intent: Order) -> str:
        return intent.id

    def observe(self, attempt: Attempt, intent: Order) -> Observation[list[Refund]]:
        return Observation.of([], source="refunds", proves_absence=True)

    def reconcile(self, attempt: Attempt, intent: Order, data: list[Refund]) -> Verdict[Refund]:
        return Verdict.not_applied("NO_REFUND")


class AsyncRefunds(AsyncEffectContract[Order, list[Refund], Refund]):
    type = "payments/refund"

    def identity(self, intent: Order) -> str:
        return intent.id

    async def execute(self, attempt: Attempt, intent: Order) -> str:
        return intent.id

    async def observe(self, attempt: Attempt, intent: Order) -> Observation[list[Refund]]:
        return Observation.of([], source="refunds", proves_absence=True)

    def reconcile(self, attempt: Attempt, intent: Order, data: list[Refund]) -> Verdict[Refund]:
        return Verdict.not_applied("NO_REFUND")


class WrongRefunds(EffectContract[Order, list[Refund], Refund]):
    type = "payments/refund"
    in_flight_window = 5  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]

    def identity(self, intent: Order) -> int:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return 7

    def execute(self, attempt: Attempt, intent: str) -> str:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return intent

    async def observe(self, attempt: Attempt, intent: Order) -> Observation[list[Refund]]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return Observation.of([], source="refunds", proves_absence=True)

    def reconcile(self, attempt: Attempt, intent: Order, data: list[str]) -> Verdict[Refund]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return Verdict.not_applied("NO_REFUND")


class AlsoWrong(AsyncEffectContract[Order, list[Refund], Refund]):
    type = "payments/refund"

    async def observe(self, attempt: Attempt, intent: Order) -> Observation[str]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return Observation.of("", source="refunds", proves_absence=True)

    async def reconcile(self, attempt: Attempt, intent: Order, data: list[Refund]) -> Verdict[Refund]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return Verdict.not_applied("NO_REFUND")


def sync_classes(order: Order) -> None:
    assert_type(sync_runner.run(Refunds(None), order), EffectResult[Refund])
    assert_type(sync_runner.observe(Refunds(None), order).effect, Refund | None)

    sync_runner.run(Refunds(None))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    sync_runner.run(Refunds(None), "rf_81")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    sync_runner.run(Refunds(None), order, 5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    sync_runner.run(AsyncRefunds(), order)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    sync_runner.observe(AsyncRefunds(), order)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    Refunds()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def async_classes(order: Order) -> None:
    assert_type(await async_runner.run(AsyncRefunds(), order), EffectResult[Refund])
    assert_type(await async_runner.run(Refunds(None), order), EffectResult[Refund])
    waiting: Coroutine[Any, Any, EffectResult[Refund]] = async_runner.observe(AsyncRefunds(), order)
    print(await waiting)

    await async_runner.run(AsyncRefunds())  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await async_runner.run(AsyncRefunds(), "rf_81")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await async_runner.run(AsyncRefunds(), order, 5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
