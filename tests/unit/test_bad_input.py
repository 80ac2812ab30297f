"""Bad input gets a named error with the field's path, and nothing is written or sent (L8, I1, I4)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from corrobo_core import (
    AsyncEffectContract,
    AsyncEffectRunner,
    Attempt,
    Backoff,
    ContractError,
    Effect,
    EffectContract,
    EffectRunner,
    IdentityError,
    IdentityReused,
    IntentError,
    Observation,
    RetryPolicy,
    UsageError,
    Verdict,
    effect,
)
from tests.unit.world import WatchedLedger, World, credit_effect, judge

MINUTE = timedelta(minutes=1)
Run = Callable[..., Any]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def ledger() -> WatchedLedger:
    return WatchedLedger()


def by_sync(ledger: WatchedLedger) -> Run:
    return EffectRunner(ledger).run


def by_sync_observe(ledger: WatchedLedger) -> Run:
    return EffectRunner(ledger).observe


def by_async(ledger: WatchedLedger) -> Run:
    return lambda *args, **kwargs: asyncio.run(AsyncEffectRunner(ledger).run(*args, **kwargs))


def by_async_observe(ledger: WatchedLedger) -> Run:
    return lambda *args, **kwargs: asyncio.run(AsyncEffectRunner(ledger).observe(*args, **kwargs))


@pytest.fixture(params=[by_sync, by_sync_observe, by_async, by_async_observe])
def run(request: pytest.FixtureRequest, ledger: WatchedLedger, world: World) -> Iterator[Run]:
    """Any way to run an effect; afterwards nothing may have been written or sent."""
    yield request.param(ledger)
    assert ledger.commands == []
    assert world.sent == []
    assert world.reads == 0


# -- intents (I4) ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "kwargs", "path", "problem"),
    [
        (("r1",), {}, "arguments", "missing a required argument: 'amount'"),
        (("r1", 1, 2), {}, "arguments", "too many positional"),
        (("r1", 1), {"amonut": 2}, "arguments", "'amonut'"),
        (("r1", "many"), {}, "intent.amount", "integer"),
        (("r1", 1.5), {}, "intent.amount", "integer"),
        (("r1", None), {}, "intent.amount", "integer"),
        (("r1", 2**53), {}, "intent.amount", "beyond"),
        (("r1", math.nan), {}, "intent.amount", "NaN"),
        (("r1", math.inf), {}, "intent.amount", "infinity"),
        (("r\x00", 1), {}, "intent.reference", "NUL"),
        (("\ud83d", 1), {}, "intent.reference", "surrogate"),
        ((b"r1", 1), {}, "intent.reference", "bytes"),
        (({"r1"}, 1), {}, "intent.reference", "set"),
        (({1: 2}, 1), {}, "intent.reference", "key of kind int"),
        ((datetime(2026, 1, 1), 1), {}, "intent.reference", "naive"),  # noqa: DTZ001
        (("x" * 2**20, 1), {}, "intent", "at most 1048576"),
    ],
)
def test_I4_an_intent_that_cannot_be_stored_exactly(
    run: Run, world: World, args: Any, kwargs: Any, path: str, problem: str
) -> None:
    with pytest.raises(IntentError) as caught:
        run(credit_effect(world), *args, **kwargs)
    assert caught.value.path == path
    assert problem in caught.value.problem


def test_I4_the_limit_can_be_set(run: Run, world: World) -> None:
    with pytest.raises(IntentError, match="at most 30"):
        run(credit_effect(world, max_intent_bytes=30), "x" * 30, 1)


# -- identity (I1) --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "identity",
    [lambda **_: "", lambda **_: 7, lambda **_: None, lambda **_: "x" * 513, lambda **_: " x", lambda **_: 1 / 0],
)
def test_I1_an_operation_id_that_cannot_be_used(run: Run, world: World, identity: Any) -> None:
    with pytest.raises(IdentityError) as caught:
        run(credit_effect(world, identity=identity), "r1", 1)
    assert caught.value.effect == "world/credit"
    assert caught.value.field == "identity"


async def _async_identity(**_: Any) -> str:
    return "x"


def test_I1_an_async_identity(run: Run, world: World) -> None:
    made: list[Any] = []

    def identity(**_: Any) -> Any:
        made.append(_async_identity())
        return made[-1]

    with pytest.raises(IdentityError, match="kind coroutine"):
        run(credit_effect(world, identity=identity), "r1", 1)
    made[-1].close()


@pytest.mark.parametrize("way", [by_sync, by_async])
def test_I1_an_id_that_is_used_for_another_intent(
    ledger: WatchedLedger, world: World, way: Callable[[WatchedLedger], Run]
) -> None:
    credit, run = credit_effect(world), way(ledger)
    run(credit, "r1", 1)
    stored = dict(ledger._rows)
    with pytest.raises(IdentityReused) as caught:
        run(credit, "r1", 2)
    assert (caught.value.operation_id, caught.value.field) == ("r1", "intent")
    assert caught.value.recorded.startswith("v1:sha256:")
    assert ledger._rows == stored, "nothing was written"
    assert world.sent == ["r1"]


def test_I1_an_id_that_is_used_for_another_type(ledger: WatchedLedger, world: World) -> None:
    EffectRunner(ledger).run(credit_effect(world), "r1", 1)
    other = credit_effect(world)
    other.type = "world/debit"
    for runner in (EffectRunner(ledger).run, EffectRunner(ledger).observe):
        with pytest.raises(IdentityReused) as caught:
            runner(other, "r1", 1)
        assert caught.value.field == "operation type"
    assert world.sent == ["r1"]


# -- declarations ---------------------------------------------------------------------------------------------

DECLARATIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"in_flight_window": -MINUTE}, "in_flight_window", "negative"),
    ({"in_flight_window": math.nan}, "in_flight_window", "kind float"),
    ({"in_flight_window": 60}, "in_flight_window", "kind int"),
    ({"in_flight_window": timedelta(days=4000)}, "in_flight_window", "is the unit right"),
    ({"in_flight_window": MINUTE, "execute_timeout": MINUTE}, "in_flight_window", "exceed execute_timeout"),
    ({"in_flight_window": MINUTE, "execute_timeout": 2 * MINUTE}, "in_flight_window", "exceed execute_timeout"),
    ({"in_flight_window": timedelta()}, "key_retention", "deduplicates"),
    ({"execute_timeout": timedelta()}, "execute_timeout", "positive"),
    ({"execute_timeout": -MINUTE}, "execute_timeout", "positive"),
    ({"execute_timeout": 5}, "execute_timeout", "kind int"),
    ({"observation_lag": -MINUTE}, "observation_lag", "negative"),
    ({"observation_lag": 5}, "observation_lag", "kind int"),
    ({"key_retention": timedelta()}, "key_retention", "positive"),
    ({"key_retention": "1 day"}, "key_retention", "kind str"),
    ({"max_attempts": 0}, "max_attempts", "1 or more"),
    ({"max_attempts": -1}, "max_attempts", "1 or more"),
    ({"max_attempts": 1.5}, "max_attempts", "whole number"),
    ({"max_attempts": True}, "max_attempts", "whole number"),
    ({"max_attempts": "3"}, "max_attempts", "whole number"),
    ({"max_attempts": 2, "retry": RetryPolicy()}, "max_attempts", "one of the two"),
    ({"retry": RetryPolicy(max_attempts=0)}, "max_attempts", "1 or more"),
    ({"retry": 3}, "retry", "kind int"),
    ({"retry": RetryPolicy(retryable=1)}, "retry", "True or False"),  # type: ignore[arg-type]
    ({"retry": RetryPolicy(backoff=5)}, "retry", "kind int"),  # type: ignore[arg-type]
    ({"poll": 5}, "poll", "kind int"),
    ({"responds_after_effect": "yes"}, "responds_after_effect", "True or False"),
    ({"max_approval_age": timedelta()}, "max_approval_age", "positive"),
    ({"max_intent_bytes": 0}, "max_intent_bytes", "1 or more"),
    ({"volatile": ("note",)}, "volatile", "no field 'note'"),
    ({"identity": lambda ref: ref}, "identity", "'ref'"),
    ({"identity": None}, "identity", "function"),
]


@pytest.mark.parametrize(("declared", "field", "problem"), DECLARATIONS, ids=range(len(DECLARATIONS)))
def test_a_declaration_that_cannot_hold_is_refused_when_decorating(
    world: World, declared: dict[str, Any], field: str, problem: str
) -> None:
    with pytest.raises(ContractError) as caught:
        credit_effect(world, **declared)
    assert (caught.value.effect, caught.value.field) == ("world/credit", field)
    assert problem in caught.value.problem


def test_a_window_of_nan_days_is_refused_by_timedelta_itself() -> None:
    with pytest.raises(ValueError, match="NaN"):
        timedelta(days=math.nan)


@pytest.mark.parametrize("type_", ["", "x" * 201, "a\nb", "a\x00b", None, 7])
def test_an_operation_type_that_cannot_be_stored(type_: Any) -> None:
    with pytest.raises(ContractError) as caught:
        effect(type_, identity=lambda x: x)
    assert caught.value.field == "type"


@pytest.mark.parametrize(
    "values",
    [
        {"initial": timedelta(), "maximum": MINUTE},
        {"initial": -MINUTE, "maximum": MINUTE},
        {"initial": 2 * MINUTE, "maximum": MINUTE},
        {"initial": MINUTE, "maximum": MINUTE, "factor": 0.5},
        {"initial": MINUTE, "maximum": MINUTE, "factor": math.nan},
        {"initial": MINUTE, "maximum": MINUTE, "factor": math.inf},
    ],
)
def test_a_backoff_that_cannot_hold(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must hold"):
        Backoff(**values)


def test_a_backoff_beyond_the_calendars_end() -> None:
    """Found when a wait is over that no ledger can record: after the write."""
    with pytest.raises(ValueError, match="unit"):
        Backoff(MINUTE, timedelta(days=3651))
    assert Backoff(MINUTE, timedelta(days=3650)).maximum.days == 3650


# -- functions that cannot be effects -------------------------------------------------------------------------


class Account:
    def credit(self, attempt: Attempt, x: str) -> None: ...
    @classmethod
    def debit(cls, attempt: Attempt, x: str) -> None: ...


def star_args(attempt: Attempt, *xs: str) -> None: ...
def star_kwargs(attempt: Attempt, **xs: str) -> None: ...
def keyword_only(*, attempt: Attempt, x: str) -> None: ...
def nothing() -> None: ...
def generates(attempt: Attempt, x: str) -> Iterator[str]:
    yield x


async def generates_async(attempt: Attempt, x: str) -> Any:
    yield x


@pytest.mark.parametrize(
    ("fn", "field", "problem"),
    [
        (Account.credit, "execute", "is a method"),
        (Account().credit, "execute", "EffectContract"),
        (Account.debit, "execute", "EffectContract"),
        (Account, "execute", "EffectContract"),
        (star_args, "parameter *xs", "list them"),
        (star_kwargs, "parameter **xs", "list them"),
        (keyword_only, "execute", "first positional parameter"),
        (nothing, "execute", "first positional parameter"),
        (generates, "execute", "generator"),
        (generates_async, "execute", "generator"),
        (7, "execute", "plain function"),
        (print, "execute", "plain function"),
    ],
)
def test_what_cannot_be_an_effect_is_refused_when_decorating(fn: Any, field: str, problem: str) -> None:
    with pytest.raises(ContractError) as caught:
        effect("t/x", identity=lambda **_: "x")(fn)
    assert caught.value.field == field
    assert problem in caught.value.problem


# -- hooks ----------------------------------------------------------------------------------------------------


def bare() -> Effect[[str, int], int]:
    @effect("t/x", identity=lambda reference, **_: reference)
    def bare(attempt: Attempt, reference: str, amount: int) -> int:
        return 1

    return bare


async def async_hook(attempt: Attempt) -> Any: ...
def takes_nothing() -> Any: ...
def takes_too_little(attempt: Attempt, reference: str) -> Any: ...
def takes_too_much(attempt: Attempt, reference: str, amount: int, more: int) -> Any: ...


@pytest.mark.parametrize("hook", ["observe", "authorize", "revalidate"])
@pytest.mark.parametrize(
    ("fn", "problem"),
    [
        (async_hook, "async hook on a sync effect"),
        (takes_nothing, "must take (attempt) or (attempt, reference, amount)"),
        (takes_too_little, "must take (attempt) or (attempt, reference, amount)"),
        (takes_too_much, "must take (attempt) or (attempt, reference, amount)"),
        (7, "must be a function"),
        (generates, "generator"),
        (generates_async, "generator"),
    ],
)
def test_a_hook_that_cannot_be_called_is_refused_when_decorating(hook: str, fn: Any, problem: str) -> None:
    made = bare()
    with pytest.raises(ContractError) as caught:
        getattr(made, hook)(fn)
    assert (caught.value.effect, caught.value.field) == ("t/x", hook)
    assert problem in caught.value.problem


def test_a_reconcile_that_cannot_be_called_is_refused_when_decorating() -> None:
    seen = bare().observe(lambda attempt: Observation.of(1, source="x", proves_absence=True))
    for fn, problem in (
        (async_hook, "reconcile is pure"),
        (takes_nothing, "must take (attempt, data)"),
        (7, "function"),
    ):
        with pytest.raises(ContractError) as caught:
            seen.reconcile(fn)  # type: ignore[arg-type]
        assert caught.value.field == "reconcile"
        assert problem in caught.value.problem


@pytest.mark.parametrize("hook", ["observe", "authorize", "revalidate"])
def test_a_hook_given_twice_is_refused(hook: str) -> None:
    made = bare()
    getattr(made, hook)(lambda attempt: None)
    with pytest.raises(ContractError, match="is given twice"):
        getattr(made, hook)(lambda attempt: None)


def test_a_contract_without_observe(run: Run) -> None:
    with pytest.raises(ContractError) as caught:
        run(bare(), "r1", 1)
    assert caught.value.field == "observe"


def test_a_contract_without_reconcile(run: Run, world: World) -> None:
    made = bare()
    made.observe(lambda attempt, reference, amount: world.find(reference))
    with pytest.raises(ContractError) as caught:
        run(made, "r1", 1)
    assert caught.value.field == "reconcile"


class Client: ...


def test_an_effect_whose_value_cannot_be_stored(run: Run, world: World) -> None:
    @effect("t/x", identity=lambda reference: reference)
    def opens(attempt: Attempt, reference: str) -> Client:
        world.credit(reference)
        return Client()

    see = opens.observe(lambda attempt: world.find("x"))
    see.reconcile(lambda attempt, found: Verdict.not_applied("X"))
    with pytest.raises(ContractError) as caught:
        run(opens, "r1")
    assert caught.value.field == "return type"


# -- contract classes -----------------------------------------------------------------------------------------


class Credit(EffectContract[str, list[str], int]):
    type = "world/credit"
    in_flight_window = timedelta(seconds=10)

    def __init__(self, world: World) -> None:
        self.world = world

    def identity(self, intent: str) -> str:
        return intent

    def execute(self, attempt: Attempt, intent: str) -> int:
        return self.world.credit(intent)

    def observe(self, attempt: Attempt, intent: str) -> Observation[list[str]]:
        return self.world.find(intent)

    def reconcile(self, attempt: Attempt, intent: str, data: list[str]) -> Verdict[int]:
        return judge(data)


def without(*names: str) -> type[Credit]:
    """The class as if these methods had not been written."""
    return type("Credit", (Credit,), {name: getattr(EffectContract, name) for name in names})


@pytest.mark.parametrize("method", ["identity", "execute", "observe", "reconcile"])
def test_a_class_without_one_of_its_methods(run: Run, world: World, method: str) -> None:
    with pytest.raises(ContractError) as caught:
        run(without(method)(world), "r1")
    assert (caught.value.effect, caught.value.field) == ("world/credit", method)


@pytest.mark.parametrize(("declared", "field", "problem"), DECLARATIONS[:25], ids=range(25))
def test_a_class_whose_declarations_cannot_hold(
    ledger: WatchedLedger, world: World, declared: dict[str, Any], field: str, problem: str
) -> None:
    with pytest.raises(ContractError) as caught:
        EffectRunner(ledger).run(type("Credit", (Credit,), declared)(world), "r1")
    assert caught.value.field == field
    assert problem in caught.value.problem
    assert (ledger.commands, world.sent) == ([], [])


async def _async_method(self: Any, attempt: Attempt, intent: str) -> Any: ...


@pytest.mark.parametrize("method", ["execute", "observe", "authorize", "revalidate", "reconcile"])
def test_a_sync_class_with_an_async_method(run: Run, world: World, method: str) -> None:
    with pytest.raises(ContractError) as caught:
        run(type("Credit", (Credit,), {method: _async_method})(world), "r1")
    assert caught.value.field == method


@pytest.mark.parametrize("method", ["execute", "observe", "authorize", "revalidate"])
@pytest.mark.parametrize("fn", [generates, generates_async])
def test_a_class_with_a_method_that_only_makes_a_generator(run: Run, world: World, method: str, fn: Any) -> None:
    """Called, it has not begun; its write would be made by whatever looks at its response."""
    with pytest.raises(ContractError, match="generator") as caught:
        run(type("Credit", (Credit,), {method: staticmethod(fn)})(world), "r1")
    assert caught.value.field == method


@pytest.mark.parametrize("type_", [None, "", "x" * 201])
def test_a_class_without_a_type(run: Run, world: World, type_: Any) -> None:
    with pytest.raises(ContractError) as caught:
        run(type("Credit", (Credit,), {"type": type_})(world), "r1")
    assert caught.value.field == "type"


def test_a_class_without_type_arguments(run: Run) -> None:
    class Untyped(EffectContract):  # type: ignore[type-arg]
        type = "t/x"

    with pytest.raises(ContractError) as caught:
        run(Untyped(), "r1")
    assert caught.value.field == "type arguments"


# -- runners --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [None, "refund", lambda attempt: None, Credit])
def test_what_is_no_effect_is_refused(run: Run, given: Any) -> None:
    with pytest.raises(UsageError, match="takes an effect"):
        run(given, "r1", 1)


def test_an_async_effect_on_the_sync_runner(ledger: WatchedLedger, world: World) -> None:
    @effect("t/x", identity=lambda reference: reference)
    async def credit(attempt: Attempt, reference: str) -> int:
        return world.credit(reference)

    see = credit.observe(lambda attempt, reference: world.find(reference))
    see.reconcile(lambda attempt, found: judge(found))
    for call in (EffectRunner(ledger).run, EffectRunner(ledger).observe):
        with pytest.raises(ContractError, match="AsyncEffectRunner"):
            call(credit, "r1")  # type: ignore[arg-type]
    assert (ledger.commands, world.sent) == ([], [])


def test_an_async_class_on_the_sync_runner(ledger: WatchedLedger, world: World) -> None:
    class Async(AsyncEffectContract[str, list[str], int]):
        type = "t/x"
        identity = Credit.identity
        execute = Credit.execute
        observe = Credit.observe
        reconcile = Credit.reconcile

    with pytest.raises(ContractError, match="AsyncEffectRunner"):
        EffectRunner(ledger).run(Async(), "r1")  # type: ignore[arg-type]
    assert (ledger.commands, world.sent) == ([], [])


# -- what hooks say -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        {"source": "", "proves_absence": True},
        {"source": None, "proves_absence": True},
        {"source": "x", "proves_absence": "yes"},
        {"source": "x", "proves_absence": True, "observed_at": datetime(2026, 1, 1)},  # noqa: DTZ001
    ],
)
def test_an_observation_that_says_too_little(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Observation"):
        Observation.of([], **values)
