"""What Temporal sees of an effect activity: name, parameters, types; and existing activities as bodies."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, get_type_hints

import pytest
from pydantic import BaseModel
from temporalio import activity
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from corrobo_core import (
    AsyncEffect,
    AsyncEffectContract,
    Attempt,
    ContractError,
    Effect,
    EffectContract,
    MemoryLedger,
    Observation,
    UsageError,
    Verdict,
    current_attempt,
    effect,
)
from corrobo_temporal import CorroboPlugin, adopt_activity, effect_activity, observe_activity
from corrobo_temporal._sdk import activity_name
from examples.http_ledger import Credit, HttpLedger, answer_lost
from tests.engines.temporal.conftest import Engine
from tests.engines.temporal.effects import credit, credit_async


class Refund(BaseModel):
    """An intent."""

    reference: str
    amount_cents: int = 5_000


class Refunds(EffectContract[Refund, list[Credit], Credit]):
    """Refunds, by a client that is injected."""

    type = "test/refunds"
    in_flight_window = timedelta(seconds=1)

    def __init__(self, ledger: HttpLedger) -> None:
        self._ledger = ledger

    def identity(self, intent: Refund) -> str:
        return intent.reference

    def execute(self, attempt: Attempt, intent: Refund) -> Credit:
        return self._ledger.credit("alice", intent.reference, intent.amount_cents)

    def observe(self, attempt: Attempt, intent: Refund) -> Observation[list[Credit]]:
        found = self._ledger.credits("alice", intent.reference)
        return Observation.of(found, source="ledger.credits", proves_absence=True)

    def reconcile(self, attempt: Attempt, intent: Refund, data: list[Credit]) -> Verdict[Credit]:
        return Verdict.applied("CREDITED", effect=data[0]) if data else Verdict.not_applied("NO_CREDIT")


class AsyncRefunds(AsyncEffectContract[Refund, list[Credit], Credit]):
    """The same, asynchronously."""

    type = "test/refunds-async"
    in_flight_window = timedelta(seconds=1)

    def __init__(self, ledger: HttpLedger) -> None:
        self._ledger = ledger

    def identity(self, intent: Refund) -> str:
        return intent.reference

    async def execute(self, attempt: Attempt, intent: Refund) -> Credit:
        return await asyncio.to_thread(self._ledger.credit, "alice", intent.reference, intent.amount_cents)

    def observe(self, attempt: Attempt, intent: Refund) -> Observation[list[Credit]]:
        found = self._ledger.credits("alice", intent.reference)
        return Observation.of(found, source="ledger.credits", proves_absence=True)

    def reconcile(self, attempt: Attempt, intent: Refund, data: list[Credit]) -> Verdict[Credit]:
        return Verdict.applied("CREDITED", effect=data[0]) if data else Verdict.not_applied("NO_CREDIT")


# -- shapes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("effect", "is_async"), [(credit, False), (credit_async, True)])
def test_it_has_the_functions_name_kind_parameters_and_types(effect: Any, is_async: bool) -> None:
    made: Any = effect_activity(effect, MemoryLedger())
    assert activity_name(made) == made.__name__ == effect.__name__
    assert inspect.iscoroutinefunction(made) is is_async
    assert get_type_hints(made) == {"reference": str, "amount_cents": int, "return": Credit}
    assert [(p.name, p.default) for p in inspect.signature(made).parameters.values()] == [
        ("reference", inspect.Parameter.empty),
        ("amount_cents", 5_000),
    ]


def test_it_may_have_another_name_and_the_reading_one_follows() -> None:
    ledger = MemoryLedger()
    assert activity_name(effect_activity(credit, ledger, activity_name="pay")) == "pay"
    assert activity_name(observe_activity(credit, ledger, activity_name="pay")) == "pay.observe"
    assert activity_name(observe_activity(credit, ledger)) == "credit.observe"


def test_a_contract_is_named_by_its_type_and_takes_its_intent() -> None:
    made: Any = effect_activity(Refunds(HttpLedger("")), MemoryLedger())
    assert activity_name(made) == "test/refunds"
    assert get_type_hints(made) == {"intent": Refund, "return": Credit}


def test_a_keyword_only_parameter_is_refused_by_name() -> None:
    @effect("test/keyword", identity=lambda reference: reference)
    def send(attempt: Attempt, *, reference: str) -> str:
        return reference

    @send.observe
    def seen(attempt: Attempt) -> Observation[None]:
        return Observation.of(None, source="test", proves_absence=True)

    @seen.reconcile
    def judge(attempt: Attempt, data: None) -> Verdict[str]:
        return Verdict.applied("THERE", effect="")

    with pytest.raises(ContractError, match=r"reference.*keyword-only"):
        effect_activity(send, MemoryLedger())


@dataclass
class Item:
    """Arrives as a dictionary where fewer arguments are sent than the function has."""

    sku: str


async def test_arguments_are_decoded_by_type_also_where_defaults_are_left_out(engine: Engine) -> None:
    seen: list[Any] = []

    @effect("test/items", identity=lambda item, **_: item.sku)
    async def send(attempt: Attempt, item: Item, count: int = 1) -> Item:
        seen.append((item, count))
        return item

    @send.observe
    def look(attempt: Attempt) -> Observation[Any]:
        return Observation.of(attempt.response, source="test", proves_absence=True)

    @look.reconcile
    def judge(attempt: Attempt, data: Any) -> Verdict[Item]:
        return Verdict.applied("THERE", effect=data)

    await engine.serve(effect_activity(send, MemoryLedger()))
    for arguments in ([Item("a")], [Item("b"), 2]):
        handle = await engine.start_call("send", *arguments)
        assert await handle.result() == {"sku": arguments[0].sku}  # type: ignore[attr-defined]
    assert seen == [(Item("a"), 1), (Item("b"), 2)]


@pytest.mark.parametrize("contract", [Refunds, AsyncRefunds])
async def test_a_contract_runs_as_an_activity(
    engine: Engine, temporal_address: str, http_ledger: HttpLedger, contract: Any
) -> None:
    engine.client = await Client.connect(temporal_address, plugins=[CorroboPlugin()])  # for the model
    http_ledger.fail_next(answer_lost())
    refunds = contract(http_ledger)
    await engine.serve(effect_activity(refunds, MemoryLedger()))
    handle = await engine.start_call(refunds.type, {"reference": "rf_1"})
    assert (await handle.result())["amount_cents"] == 5_000
    assert http_ledger.count("rf_1") == 1


# -- existing activities -------------------------------------------------------------------------------------


class Payments:
    """Activities as they are often written."""

    def __init__(self, ledger: HttpLedger) -> None:
        self._ledger = ledger
        self.keys: list[str] = []

    @activity.defn(name="pay")
    def pay(self, reference: str, refund: Refund | None = None) -> Credit:
        """Pay."""
        self.keys.append(current_attempt().idempotency_key)
        return self._ledger.credit("alice", reference, 1)

    @activity.defn
    async def pay_async(self, reference: str) -> Credit:
        self.keys.append(current_attempt().idempotency_key)
        return await asyncio.to_thread(self._ledger.credit, "alice", reference, 1)


def adopted(payments: Payments, ledger: HttpLedger, *, is_async: bool) -> Any:
    body: Any = payments.pay_async if is_async else payments.pay
    paying: Any = adopt_activity(
        body, "test/pay", identity=lambda reference, **_: reference, in_flight_window=timedelta(seconds=1)
    )

    @paying.observe  # type: ignore[untyped-decorator]  # paying is Any here
    def seen(attempt: Attempt) -> Observation[list[Credit]]:
        found = ledger.credits("alice", attempt.operation_id)
        return Observation.of(found, source="ledger.credits", proves_absence=True)

    @seen.reconcile  # type: ignore[untyped-decorator]  # paying is Any here
    def judge(attempt: Attempt, found: list[Credit]) -> Verdict[Credit]:
        return Verdict.applied("PAID", effect=found[0]) if found else Verdict.not_applied("NOT_PAID")

    return paying


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_an_existing_activity_is_the_body_and_reaches_its_attempt(
    engine: Engine, http_ledger: HttpLedger, is_async: bool
) -> None:
    http_ledger.fail_next(answer_lost())
    payments = Payments(http_ledger)
    paying = adopted(payments, http_ledger, is_async=is_async)
    assert isinstance(paying, AsyncEffect if is_async else Effect)
    name = "pay_async" if is_async else "pay"
    await engine.serve(effect_activity(paying, MemoryLedger()))
    handle = await engine.start_call(name, "rf_1")
    assert (await handle.result())["reference"] == "rf_1"
    assert http_ledger.count("rf_1") == 1
    assert [len(key) for key in payments.keys] == [64]


def test_its_shape_stays_and_so_does_the_original() -> None:
    payments = Payments(HttpLedger(""))
    made: Any = effect_activity(adopted(payments, HttpLedger(""), is_async=False), MemoryLedger())
    assert activity_name(made) == activity_name(payments.pay) == "pay"
    assert get_type_hints(made) == {"reference": str, "refund": Refund | None, "return": Credit}
    assert made.__doc__ == "Pay."


def test_what_is_no_activity_is_refused() -> None:
    def plain(reference: str) -> str:
        return reference

    with pytest.raises(UsageError, match="adopt_activity"):
        adopt_activity(plain, "test/plain", identity=lambda reference: reference)


def test_the_sdk_still_has_what_heartbeats_are_hung_on() -> None:
    """`corrobo_temporal._sdk` uses two private names; this fails when a release renames them."""
    beats: list[Any] = []

    def body() -> None:
        from corrobo_temporal._sdk import replace_heartbeat

        replace_heartbeat(lambda send: lambda *details: send("wrapped", *details))
        activity.heartbeat(1)

    environment = ActivityEnvironment()
    environment.on_heartbeat = lambda *details: beats.append(details)
    environment.run(body)
    assert beats == [("wrapped", 1)]
