"""What providers return is stored without loss, or marked; an outcome is never lost (T4; rows C09, C10, C11)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from corrobo_core.canonical import MAX_VALUE_BYTES, decode_value, encode_value
from corrobo_core.records import Unstorable
from corrobo_core.values import LOST, ValueType


def stored_and_back(value: object) -> Any:
    """Through what a database keeps: strict JSON without what jsonb refuses."""
    kept = json.loads(json.dumps(encode_value(value), ensure_ascii=True, allow_nan=False))
    for text in texts(kept):
        assert "\x00" not in text, "jsonb refuses it"
        text.encode("utf-8")  # and lone surrogates
    return decode_value(kept)


def texts(kept: Any) -> Iterator[str]:
    match kept:
        case str():
            yield kept
        case list():
            for item in kept:
                yield from texts(item)
        case dict():
            for key, item in kept.items():
                yield key
                yield from texts(item)


LOSSLESS: list[Any] = [
    None,
    True,
    0,
    -1.5,
    "",
    "plain",
    "é 😀",
    [],
    {},
    [1, [2, {"a": None}]],
    # C09: NUL in a value and in a key
    "before\x00after",
    {"a\x00b": 1},
    {"outer": [{"inner": "\x00"}]},
    # C10: lone surrogates, in values and keys, and pairs in the wrong order
    "\ud83d",
    "\ude00\ud83d",
    {"\udfff": "x"},
    "\\x00 is not NUL, \\ud83d no surrogate",
    # C11: what JSON has no number for
    math.inf,
    -math.inf,
    [1.0, math.inf],
    2**53,
    -(2**200),
    # other kinds
    b"",
    b"\x00\xff",
    {1: "one", None: 2},
    {True: 1},
    # values that look like our own marks
    {"$corrobo": "text", "json": "x"},
    {"$corrobo": "unheard of"},
    {"a": {"$corrobo": 1}},
]


@pytest.mark.parametrize("value", LOSSLESS, ids=ascii)
def test_T4_values_come_back_as_they_were(value: Any) -> None:
    again = stored_and_back(value)
    assert again == value
    assert type(again) is type(value)


def test_C11_nan_comes_back_as_nan() -> None:
    again = stored_and_back({"x": [math.nan]})
    assert math.isnan(again["x"][0])


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(categories=None))  # surrogates and NUL included
    | st.binary(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4) | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(ANYTHING)
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_T4_whatever_it_is_it_comes_back(value: Any) -> None:
    assert stored_and_back(value) == value


# -- what cannot be stored is marked --------------------------------------------------------------------------


def test_T4_a_value_too_large_becomes_its_size_and_digest() -> None:
    kept = stored_and_back("x" * (MAX_VALUE_BYTES - 2))
    assert kept == "x" * (MAX_VALUE_BYTES - 2)
    mark = stored_and_back("x" * (MAX_VALUE_BYTES - 1))
    assert isinstance(mark, Unstorable)
    assert mark.size_bytes == MAX_VALUE_BYTES + 1
    assert len(mark.sha256) == 64


class Fails:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class FailingMapping(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        raise RuntimeError("no items")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("no keys")

    def __len__(self) -> int:
        return 1


class FailingText(str):
    def __str__(self) -> str:
        raise KeyError("no text")


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
DEEP: Any = None
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "value",
    [
        object(),
        Fails(),
        FailingMapping(),
        FailingText("\x00"),
        CYCLE,
        DEEP,
        lambda: 1,
        {1j: object()},
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("declared", [Any, dict[str, int], str])
def test_T4_a_value_that_cannot_be_stored_loses_nothing_else(value: Any, declared: Any) -> None:
    assert isinstance(stored_and_back(value), Unstorable)
    kind = ValueType(TypeAdapter(declared))
    assert kind.decode(json.loads(json.dumps(kind.encode(value)))) is LOST


# -- by declared type -----------------------------------------------------------------------------------------


class Status(Enum):
    OPEN = "open"


class Refund(BaseModel):
    id: int
    amount: Decimal
    note: str = Field(alias="n")
    raw: bytes = b""
    rate: float = 0.0


@dataclass
class Point:
    x: float
    at: datetime


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    id: UUID
    amount: Decimal
    at: datetime
    status: Status
    lines: tuple[int, ...]


TYPED: list[tuple[Any, Any]] = [
    (
        Strict,
        Strict(
            id=UUID(int=1),
            amount=Decimal("1.10"),
            at=datetime(2026, 1, 1, tzinfo=UTC),
            status=Status.OPEN,
            lines=(1, 2),
        ),
    ),
    (Refund, Refund(id=2**60, amount=Decimal("1.10"), n="a\x00\ud800", raw=b"\x00\xff", rate=math.inf)),
    (Point, Point(-0.5, datetime(2026, 1, 1, tzinfo=UTC))),
    (Status, Status.OPEN),
    (Refund | None, None),
    (list[Refund], [Refund(id=1, amount=Decimal(1), n="")]),
    (dict[int, str], {1: "x"}),
    (set[int], {1, 2}),
    (tuple[int, str], (1, "x")),
    (date, date(2026, 1, 1)),
    (timedelta, timedelta(microseconds=1)),
    (UUID, UUID(int=5)),
    (bytes, b"\x00"),
    (float, math.inf),
    (int, 2**80),
]


@pytest.mark.parametrize(("declared", "value"), TYPED, ids=lambda value: getattr(value, "__name__", ""))
def test_T4_a_declared_type_comes_back_as_that_type(declared: Any, value: Any) -> None:
    kind = ValueType(TypeAdapter(declared))
    again = kind.decode(json.loads(json.dumps(kind.encode(value), allow_nan=False)))
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize("stored", [{"$corrobo": "text"}, {"$corrobo": "new kind"}, "x", ["x"], {"id": "x"}])
def test_a_stored_form_that_does_not_fit_is_lost_and_raises_nothing(stored: Any) -> None:
    """A damaged row, or one written by a newer release: the outcome stays, its value does not."""
    assert ValueType(TypeAdapter(Refund)).decode(stored) is LOST


def test_a_value_of_another_type_than_declared_is_kept_as_it_is() -> None:
    kind = ValueType(TypeAdapter(Refund))
    stored = kind.encode({"unexpected": "\x00"})
    assert decode_value(json.loads(json.dumps(stored))) == {"unexpected": "\x00"}
    assert kind.decode(stored) is LOST


class Captured(BaseModel):
    id: str


class Declined(BaseModel):
    id: str


class Late(Captured):
    reason: str = "weekend"


class Answer(BaseModel):
    result: Captured | Declined


class Colour(Enum):
    OPEN = "open"


AMBIGUOUS: list[tuple[Any, Any]] = [
    (Captured | Declined, Declined(id="x")),
    (list[Captured | Declined], [Captured(id="x"), Declined(id="x")]),
    (dict[str, Captured | Declined], {"one": Declined(id="x")}),
    (Answer, Answer(result=Declined(id="x"))),
    (Colour | Status, Status.OPEN),
]


@pytest.mark.parametrize(("declared", "value"), AMBIGUOUS, ids=lambda value: getattr(value, "__name__", ""))
def test_T4_a_value_that_would_come_back_as_another_class_is_lost_and_kept_in_its_row(
    declared: Any, value: Any
) -> None:
    """The payment was declined; after a restart it must not read as captured."""
    kind = ValueType(TypeAdapter(declared))
    stored = json.loads(json.dumps(kind.encode(value)))
    assert kind.decode(stored) is LOST
    assert not kind.fits(stored)
    assert stored["value"] == TypeAdapter(declared).dump_python(value, mode="json")


def test_T4_a_subclass_comes_back_as_what_was_declared() -> None:
    kind = ValueType(TypeAdapter(Captured))
    assert kind.decode(kind.encode(Late(id="x"))) == Captured(id="x")
