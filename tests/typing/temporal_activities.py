"""Right and wrong uses of `corrobo_temporal`; each wrong one must be an error for every type checker."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, assert_type

from pydantic import BaseModel
from temporalio import activity, workflow

from corrobo_core import (
    AsyncEffect,
    AsyncEffectContract,
    Attempt,
    Effect,
    EffectContract,
    MemoryLedger,
    Observation,
    Verdict,
    effect,
)
from corrobo_temporal import (
    CorroboPlugin,
    WorkflowEffects,
    adopt_activity,
    disposition_of,
    effect_activity,
    observe_activity,
    stable_identity,
)


class Refund(BaseModel):
    id: str


ledger = MemoryLedger()


@effect("payments/refund", identity=lambda refund_id, **_: refund_id)
def refund(attempt: Attempt, refund_id: str, amount_cents: int = 100) -> Refund:
    return Refund(id=refund_id)


@effect("payments/refund-later", identity=lambda refund_id: refund_id)
async def refund_later(attempt: Attempt, refund_id: str) -> Refund:
    return Refund(id=refund_id)


class Refunds(EffectContract[Refund, list[Refund], str]):
    type = "payments/refunds"


class AsyncRefunds(AsyncEffectContract[Refund, list[Refund], str]):
    type = "payments/refunds-async"


@activity.defn
def charge(charge_id: str, amount_cents: int) -> Refund:
    return Refund(id=charge_id)


@activity.defn
async def charge_later(charge_id: str) -> Refund:
    return Refund(id=charge_id)


# -- activities ----------------------------------------------------------------------------------------------


def activities() -> None:
    made = effect_activity(refund, ledger)
    assert_type(made("rf_1", 5), Refund)
    assert_type(made("rf_1"), Refund)
    made(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    made()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    made("rf_1", 5, 6)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

    later = effect_activity(refund_later, ledger, look_again_for=timedelta(minutes=1), activity_name="later")
    print(assert_type(later("rf_1"), Coroutine[Any, Any, Refund]))
    print(later(5))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    assert_type(effect_activity(Refunds(), ledger), Callable[[Refund], str])
    assert_type(effect_activity(AsyncRefunds(), ledger), Callable[[Refund], Coroutine[Any, Any, str]])

    effect_activity(charge, ledger)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    effect_activity(refund, "ledger")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    observe_activity(refund, ledger)("rf_1")
    observe_activity(charge, ledger)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    CorroboPlugin(ledger, effects=[refund, refund_later, Refunds()])
    CorroboPlugin(ledger, effects=[charge])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


# -- existing activities -------------------------------------------------------------------------------------


def by_charge(charge_id: str, **_: object) -> str:
    return charge_id


charging = adopt_activity(charge, "payments/charge", identity=by_charge, in_flight_window=timedelta(seconds=1))
charging_later = adopt_activity(charge_later, "payments/charge-later", identity=by_charge)


def adopted() -> None:
    sync: Effect[[str, int], Refund] = charging
    later: AsyncEffect[[str], Refund] = charging_later
    swapped: Effect[[int, str], Refund] = charging  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    print(sync, later, swapped)
    adopt_activity(charge, "payments/charge", identity=by_charge, window=1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


@charging.observe
def charges(attempt: Attempt) -> Observation[list[Refund]]:
    return Observation.of([], source="charges", proves_absence=True)


@charges.reconcile
def judge(attempt: Attempt, found: list[Refund]) -> Verdict[Refund]:
    return Verdict.not_applied("NO_CHARGE")


@charges.reconcile  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
def judge_other(attempt: Attempt, found: list[str]) -> Verdict[Refund]:
    return Verdict.not_applied("NO_CHARGE")


@charging.observe  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
async def async_hook_on_a_sync_activity(attempt: Attempt) -> Observation[list[Refund]]:
    return Observation.of([], source="charges", proves_absence=True)


# -- workflows -----------------------------------------------------------------------------------------------


@workflow.defn
class Cancel:
    @workflow.init
    def __init__(self, order_id: str) -> None:
        self.effects = WorkflowEffects(schedule_to_close_timeout=timedelta(hours=1))

    @workflow.run
    async def run(self, order_id: str) -> Refund:
        assert_type(await self.effects.run(refund, stable_identity("refund"), 5_000), Refund)
        assert_type(await self.effects.run(refund, refund_id="rf_1", amount_cents=5_000), Refund)
        assert_type(await self.effects.run(refund_later, "rf_1"), Refund)
        assert_type(await self.effects.run(Refunds(), Refund(id="rf_1")), str)
        assert_type(await self.effects.run(charge_later, "ch_1"), Refund)  # a stub
        assert_type(await self.effects.run(charge, "ch_1", 5), Refund)
        assert_type(await self.effects.observe(refund, "rf_1"), Refund)
        await self.effects.run(refund, 5)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
        await self.effects.run(refund)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
        await self.effects.run(refund, "rf_1", amount=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        await self.effects.run("refund", "rf_1")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
        return await self.effects.run(refund, "rf_1")


def options() -> None:
    WorkflowEffects()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    WorkflowEffects(schedule_to_close_timeout=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    status = disposition_of(ValueError())
    if status is not None:
        assert_type(status.operation_id, str)
