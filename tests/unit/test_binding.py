"""From a call to a recorded intent and back: bound, validated, with defaults (I1 to I4; rows F03, B02, C11)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, SecretStr, field_serializer

from corrobo_core.binding import Bound, Parameters, check_identity, operation_id_from
from corrobo_core.errors import ContractError, IdentityError, IntentError


def parameters(fn: Callable[..., Any], **options: Any) -> Parameters:
    return Parameters("t/x", fn, list(inspect.signature(fn).parameters.values()), **options)


def bind(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Bound:
    return parameters(fn).bind(args, kwargs)


def refund(order: str, amount: int, note: str = "", *, urgent: bool = False) -> None: ...


# -- one call, many spellings (F03) ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bound",
    [
        bind(refund, "o1", 7),
        bind(refund, "o1", amount=7),
        bind(refund, amount=7, order="o1"),
        bind(refund, "o1", 7, ""),
        bind(refund, "o1", 7, urgent=False),
        bind(refund, "o1", "7"),
        bind(refund, "o1", 7.0),
    ],
)
def test_F03_positional_keyword_default_and_coerced_are_one_intent(bound: Bound) -> None:
    assert bound.intent == '{"amount":7,"note":"","order":"o1","urgent":false}'
    assert bound == bind(refund, "o1", 7)


def test_F03_a_changed_default_is_another_intent() -> None:
    def released(order: str, amount: int, note: str = "new", *, urgent: bool = False) -> None: ...

    assert bind(released, "o1", 7).fingerprint != bind(refund, "o1", 7).fingerprint


def test_I3_everything_is_bound_by_default() -> None:
    base = bind(refund, "o1", 7).fingerprint
    changed = [
        bind(refund, "o2", 7),
        bind(refund, "o1", 8),
        bind(refund, "o1", 7, "x"),
        bind(refund, "o1", 7, urgent=True),
    ]
    assert base not in {bound.fingerprint for bound in changed}
    assert base.startswith("v1:sha256:")


def test_B02_volatile_fields_are_stored_but_not_bound() -> None:
    kind = parameters(refund, volatile=("note",))
    one, other = kind.bind(("o1", 7, "at 10:00"), {}), kind.bind(("o1", 7, "at 10:05"), {})
    assert one.fingerprint == other.fingerprint
    assert one.intent != other.intent
    assert kind.bind(("o1", 8), {}).fingerprint != one.fingerprint


# -- what is stored is what is executed (I2) ------------------------------------------------------------------


class Size(StrEnum):
    SMALL = "s"


class Item(BaseModel):
    sku: str = Field(alias="SKU")
    price: Decimal
    when: datetime | None = None


@dataclass
class Address:
    street: str
    lines: tuple[str, ...] = ()


class Pair(NamedTuple):
    left: int
    right: str


class Drops(BaseModel):
    kept: int
    dropped: int = Field(default=1, exclude=True)


VALUES: list[tuple[Any, Any]] = [
    (int, 7),
    (float, 1e20),
    (float, 0.1),
    (bool, True),
    (str, "é 😀"),
    (str | None, None),
    (Size, Size.SMALL),
    (Literal["a", "b"], "a"),
    (Decimal, Decimal("1.10")),
    (UUID, UUID(int=3)),
    (date, date(2026, 2, 3)),
    (datetime, datetime(2026, 1, 1, 12, tzinfo=UTC)),
    (timedelta, timedelta(days=1, microseconds=1)),
    (Item, Item(SKU="x", price=Decimal("9.90"), when=datetime(2026, 1, 1, tzinfo=UTC))),
    (list[Item], [Item(SKU="x", price=Decimal(1))]),
    (dict[str, Address], {"home": Address("Main", ("a", "b"))}),
    (Pair, Pair(1, "x")),
    (tuple[int, str], (1, "x")),
    (Annotated[int, Field(gt=0)], 1),
    (Any, {"free": [1, None]}),
    (Drops, Drops(kept=1)),
    (Item | Pair, Pair(1, "x")),
]


def test_I2_without_an_annotation_hooks_get_what_json_makes_of_it() -> None:
    def effect(x): ...  # type: ignore[no-untyped-def]

    assert bind(effect, (1, UUID(int=3))).values["x"] == [1, str(UUID(int=3))]
    assert bind(effect, [Drops(kept=1), Size.SMALL]).values["x"] == [{"kept": 1}, "s"]


@pytest.mark.parametrize(("annotation", "value"), VALUES, ids=lambda value: getattr(value, "__name__", ""))
def test_I2_hooks_get_the_values_as_they_come_back_from_storage(annotation: Any, value: Any) -> None:
    def effect(x: Any) -> None: ...

    effect.__annotations__["x"] = annotation
    kind = parameters(effect)
    bound = kind.bind((value,), {})
    assert bound.values["x"] == value
    assert type(bound.values["x"]) is type(value)
    assert kind.load(bound.intent) == bound.values
    assert kind.as_arguments(bound.values) == ((value,), {})


def test_I2_what_changed_after_the_call_changes_nothing() -> None:
    lines = ["a"]

    def effect(lines: list[str]) -> None: ...

    bound = bind(effect, lines)
    lines.append("b")
    assert bound.values["lines"] == ["a"]


def test_keyword_only_parameters_come_back_as_such() -> None:
    kind = parameters(refund)
    values = kind.bind(("o1", 7), {"urgent": True}).values
    assert kind.as_arguments(values) == (("o1", 7, ""), {"urgent": True})


def later(item: Later) -> None: ...


LATER = parameters(later)


class Later(BaseModel):
    x: int


def test_annotations_may_name_what_is_defined_later() -> None:
    kind = LATER
    assert kind.bind(({"x": 1},), {}).values["item"] == Later(x=1)


def test_an_effect_without_parameters_has_an_empty_intent() -> None:
    def effect() -> None: ...

    assert bind(effect).intent == "{}"


# -- refused, with the path -----------------------------------------------------------------------------------


class Order(BaseModel):
    items: list[Item]
    secret: SecretStr | None = None
    tags: set[str] | None = None
    blob: bytes | None = None


class Node(BaseModel):
    next: Any = None


class Rewrites(BaseModel):
    text: str

    @field_serializer("text")
    def shout(self, text: str) -> str:
        return text + "!"


class Charge(BaseModel):
    cents: int


class ChargeWithFee(Charge):
    fee: int = 0


class Payout(BaseModel):
    cents: int


@dataclass
class Street(Address):
    number: int = 0


class Colour(Enum):
    SMALL = "s"


class Tint(Enum):
    SMALL = "s"


class Point(NamedTuple):
    left: int
    right: str


def order(order: Order) -> None: ...
def number(amount: float) -> None: ...
def moment(at: datetime) -> None: ...
def raw(data: bytes) -> None: ...
def drops(x: Drops) -> None: ...
def many_drops(x: list[dict[str, tuple[Drops, ...]]]) -> None: ...
def rewrites(x: Rewrites) -> None: ...
def node(x: Node) -> None: ...
def charge(x: Charge) -> None: ...
def charges(x: Sequence[dict[str, Charge]]) -> None: ...
def either(x: Charge | Payout) -> None: ...
def address(x: Address) -> None: ...
def choice(x: Colour | Tint) -> None: ...
def pairs(x: list[Pair | Point]) -> None: ...


LOOP = Node()
LOOP.next = LOOP

REFUSED: list[tuple[Callable[..., Any], Any, str, str]] = [
    (
        order,
        {"items": [{"SKU": "x", "price": 1}, {"SKU": 5, "price": 1}]},
        "intent.order.items[1].SKU",
        "valid string",
    ),
    (order, {"items": [{"SKU": "x", "price": "nan"}]}, "intent.order.items[0].price", "finite"),
    (order, {"items": [{"SKU": "a\x00", "price": 1}]}, "intent.order.items[0].SKU", "NUL"),
    (order, Order(items=[Item(SKU="\x00", price=Decimal(1))]), "intent.order.items[0].sku", "NUL"),
    (order, Order(items=[], secret=SecretStr("hunter2")), "intent.order.secret", "secret"),
    (order, Order(items=[], tags={"a"}), "intent.order.tags", "set"),
    (order, Order(items=[], blob=b"x"), "intent.order.blob", "bytes"),
    (order, {"items": [], "blob": "text becomes bytes"}, "intent.order.blob", "bytes"),
    (number, float("nan"), "intent.amount", "NaN"),
    (number, "nan", "intent.amount", "NaN"),
    (number, "-inf", "intent.amount", "infinity"),
    (moment, "2026-01-01T00:00:00", "intent.at", "naive datetime"),
    (moment, datetime(2026, 1, 1), "intent.at", "naive datetime"),  # noqa: DTZ001
    (raw, "text", "intent.data", "bytes"),
    (drops, Drops(kept=1, dropped=5), "intent", "does not come back"),
    (many_drops, [{"x": (Drops(kept=1), Drops(kept=1, dropped=5))}], "intent", "does not come back"),
    (rewrites, Rewrites(text="x"), "intent", "does not come back"),
    (charge, ChargeWithFee(cents=1, fee=5), "intent", "subclasses"),
    (charges, ({"x": ChargeWithFee(cents=1)},), "intent", "subclasses"),
    (either, Payout(cents=1), "intent", "unions"),
    (address, Street("Main", number=7), "intent", "subclasses"),
    (choice, Tint.SMALL, "intent", "unions"),
    (pairs, [Point(1, "x")], "intent", "unions"),
    (node, LOOP, "intent", "cannot be stored"),
]


@pytest.mark.parametrize(
    ("fn", "value", "path", "problem"), REFUSED, ids=[row[2] + " " + row[3] for row in REFUSED]
)
def test_I4_the_error_names_the_field(fn: Callable[..., Any], value: Any, path: str, problem: str) -> None:
    with pytest.raises(IntentError) as caught:
        bind(fn, value)
    assert caught.value.path == path
    assert problem in caught.value.problem


@pytest.mark.parametrize(
    ("args", "kwargs", "problem"),
    [
        ((), {}, "missing a required argument: 'order'"),
        (("o1",), {}, "missing a required argument: 'amount'"),
        (("o1", 7), {"amonut": 1}, "unexpected keyword argument 'amonut'"),
        (("o1", 7, "", True), {}, "too many positional arguments"),
        (("o1", 7), {"order": "o1"}, "multiple values for argument 'order'"),
    ],
)
def test_L8_missing_and_unknown_arguments_are_named(args: Any, kwargs: Any, problem: str) -> None:
    with pytest.raises(IntentError) as caught:
        bind(refund, *args, **kwargs)
    assert caught.value.path == "arguments"
    assert problem in caught.value.problem


def test_errors_never_hold_values() -> None:
    with pytest.raises(IntentError) as caught:
        bind(refund, "o1", "hunter2")
    assert caught.value.path == "intent.amount"
    assert "hunter2" not in str(caught.value)


def test_an_intent_recorded_by_another_release_that_does_not_fit_is_named() -> None:
    with pytest.raises(IntentError, match="amount: does not come back from storage"):
        parameters(refund).load('{"amount":"many","note":"","order":"o1","urgent":false}')
    with pytest.raises(IntentError, match=r"amount: does not come back from storage: Field required"):
        parameters(refund).load('{"note":"","order":"o1","urgent":false}')


# -- contracts that cannot work -------------------------------------------------------------------------------


class Client: ...


def with_client(client: Client) -> None: ...


def test_I2_a_volatile_parameter_that_came_later_has_its_default_in_intents_recorded_before() -> None:
    def before(order: str) -> None: ...
    def today(order: str, trace: str = "none", *, tags: tuple[str, ...] = ()) -> None: ...

    recorded = bind(before, "o1")
    kind = parameters(today, volatile=("trace", "tags"))
    assert kind.bind(("o1", "t-7"), {}).fingerprint == recorded.fingerprint
    values = kind.recorded(recorded.intent, recorded.fingerprint)
    assert kind.as_arguments(values) == (("o1", "none"), {"tags": ()})


def test_a_type_that_cannot_be_validated_is_named() -> None:
    with pytest.raises(ContractError) as caught:
        bind(with_client, Client())
    assert caught.value.field == "parameter client"


def test_an_annotation_that_cannot_be_resolved_is_named() -> None:
    def effect(item: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ContractError, match="annotations: name 'Missing' is not defined"):
        bind(effect, 1)


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "1"])
def test_a_limit_that_is_no_size_is_refused(limit: Any) -> None:
    with pytest.raises(ContractError) as caught:
        parameters(refund, limit=limit)
    assert caught.value.field == "max_intent_bytes"


@pytest.mark.parametrize("volatile", ["note", ("nope",), (1,), 5])
def test_volatile_names_that_the_intent_does_not_have_are_refused(volatile: Any) -> None:
    with pytest.raises(ContractError) as caught:
        parameters(refund, volatile=volatile)
    assert caught.value.field == "volatile"


def test_volatile_names_of_a_model_are_those_it_is_stored_under() -> None:
    parameter = [inspect.Parameter("intent", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    kind = Parameters("t/x", None, parameter, volatile=("SKU",), model=Item)
    one, other = (kind.bind(({"SKU": sku, "price": 1},), {}) for sku in "ab")
    assert one.fingerprint == other.fingerprint
    with pytest.raises(ContractError, match="no field 'sku'"):
        Parameters("t/x", None, parameter, volatile=("sku",), model=Item)
    text = Parameters("t/x", None, parameter, volatile=("sku",), model=str)
    with pytest.raises(ContractError, match="no fields to leave out"):
        text.bind(("x",), {})


# -- identity (I1) --------------------------------------------------------------------------------------------

NAMES = ("order", "amount", "note")


@pytest.mark.parametrize(
    ("identity", "wanted"),
    [
        (lambda order: order, ("order",)),
        (lambda amount, order: order, ("amount", "order")),
        (lambda *, order: order, ("order",)),
        (lambda order, **_: order, None),
        (lambda **all_: all_["order"], None),
        (lambda order, extra="x": order, ("order",)),
    ],
)
def test_identity_is_called_by_keyword_with_what_it_takes(identity: Any, wanted: Any) -> None:
    assert check_identity("t/x", identity, NAMES) == wanted


@pytest.mark.parametrize(
    ("identity", "problem"),
    [
        (lambda ordre: ordre, "takes 'ordre', which the effect does not have (it has: order, amount, note)"),
        (lambda order, /: order, "by keyword"),
        (lambda *args: args[0], "by keyword"),
        (None, "must be a function"),
        ("order", "must be a function"),
        (str, "wrap it in a lambda"),
    ],
)
def test_an_identity_that_cannot_be_called_is_refused_when_decorating(identity: Any, problem: str) -> None:
    with pytest.raises(ContractError) as caught:
        check_identity("t/x", identity, NAMES)
    assert caught.value.field == "identity"
    assert problem in caught.value.problem


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        (7, "kind int"),
        (None, "kind NoneType"),
        (b"x", "kind bytes"),
        ("", "0 characters"),
        ("x" * 513, "513 characters"),
        ("a\x00b", "NUL"),
        ("\ud800", "surrogate"),
        (" x", "white space"),
        ("x\n", "white space"),
    ],
)
def test_an_id_that_cannot_be_stored_is_refused(returned: Any, problem: str) -> None:
    with pytest.raises(IdentityError) as caught:
        operation_id_from("t/x", lambda **_: returned, {})
    assert caught.value.field == "identity"
    assert problem in caught.value.problem


@pytest.mark.parametrize("returned", ["x", "x" * 512, "a b", "é😀"])
def test_an_id_that_can_be_stored_is_kept_as_it_is(returned: str) -> None:
    assert operation_id_from("t/x", lambda **_: returned, {}) == returned


def test_an_identity_that_raises_is_named_and_its_message_is_not() -> None:
    def identity(**_: Any) -> str:
        raise ValueError("hunter2")

    with pytest.raises(IdentityError, match="identity: raised ValueError") as caught:
        operation_id_from("t/x", identity, {})
    assert "hunter2" not in str(caught.value)
