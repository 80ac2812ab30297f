"""Canonical JSON: RFC 8785 bytes, fingerprints, what an intent may hold (I2 to I5; rows F01, F02, F10, C11)."""

from __future__ import annotations

import json
import math
import re
import uuid
from collections import deque
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretBytes, SecretStr

from corrobo_core.canonical import (
    MAX_INTENT_BYTES,
    canonical_json,
    check_intent,
    fingerprint,
    idempotency_key,
    is_plain,
    safe_text,
    stored_failure,
)
from corrobo_core.errors import IntentError
from corrobo_core.records import JSON

# -- RFC 8785 -------------------------------------------------------------------------------------------------

# Section 3.2.2 and 3.2.3 of the RFC, and rows of its appendix B that are in the range of an intent.
OBJECT: JSON = {
    "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": '€$\u000f\u000aA\'B"\\\\"/',
    "literals": [None, True, False],
}
OBJECT_TEXT = (
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
    '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
)
KEYS = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\x80": 6, "\xf6": 7}
# By UTF-16 code units, not by code points.
KEYS_IN_ORDER = [
    "\r",
    "1",
    "\x80",
    "\xf6",
    "\u20ac",
    "\U0001f600",
    "\ufb33",
]  # by UTF-16 code units, not by code points
NUMBERS: list[tuple[float, str]] = [
    (0.0, "0"),
    (-0.0, "0"),
    (1.0, "1"),
    (10.0, "10"),
    (5e-324, "5e-324"),
    (-5e-324, "-5e-324"),
    (1.7976931348623157e308, "1.7976931348623157e+308"),
    (9007199254740992.0, "9007199254740992"),
    (295147905179352830000.0, "295147905179352830000"),
    (9.999999999999997e22, "9.999999999999997e+22"),
    (1e23, "1e+23"),
    (1e-7, "1e-7"),
    (1e20, "100000000000000000000"),
    (1e21, "1e+21"),
    (0.000001, "0.000001"),
    (333333333.33333329, "333333333.3333333"),
    (1.010, "1.01"),
]


def test_F01_the_example_of_the_rfc() -> None:
    assert canonical_json(OBJECT) == OBJECT_TEXT


def test_F01_keys_are_ordered_by_utf16_code_units() -> None:
    assert list(json.loads(canonical_json(KEYS))) == KEYS_IN_ORDER
    assert sorted(KEYS_IN_ORDER) != KEYS_IN_ORDER, "code points would order them in another way"


@pytest.mark.parametrize(("number", "text"), NUMBERS)
def test_F01_numbers_are_written_as_javascript_writes_them(number: float, text: str) -> None:
    assert canonical_json(number) == text


def test_F02_mixed_lengths_nesting_and_order_make_no_difference() -> None:
    one: JSON = {"aa": 1, "b": {"y": [1, 2], "x": 1.010}, "c": None}
    other: JSON = {"c": None, "b": {"x": 1.01, "y": [1, 2]}, "aa": 1}
    assert canonical_json(one) == canonical_json(other) == '{"aa":1,"b":{"x":1.01,"y":[1,2]},"c":null}'


def test_F02_the_fingerprint_is_of_the_bytes_that_are_stored() -> None:
    text = canonical_json({"b": "é", "a": 1})
    assert text == '{"a":1,"b":"é"}'
    assert fingerprint(text) == "v1:sha256:09ad9fd2fb648cb2f62141215828ea00a62c299db05d20aa9ade2f527a301cc6"


def test_F10_unicode_is_never_normalised() -> None:
    composed, decomposed, lookalike = "\u00e9", "e\u0301", "\u0435\u0301"
    texts = {canonical_json({"name": name}) for name in (composed, decomposed, lookalike)}
    assert len({fingerprint(text) for text in texts}) == 3
    assert json.loads(canonical_json(decomposed)) == decomposed


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(JSON_VALUES)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_canonical_text_is_a_fixed_point(value: Any) -> None:
    text = canonical_json(value)

    def number(digits: str) -> int | float:  # a float such as 1e20 is written as an integer, as in JavaScript
        return int(digits) if abs(int(digits)) < 2**53 else float(digits)

    assert canonical_json(json.loads(text, parse_int=number)) == text


@given(JSON_VALUES)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_quick_look_never_lets_pass_what_the_thorough_one_refuses(value: Any) -> None:
    if is_plain(value):
        check_intent([value, Decimal(1)])  # the second item sends it the long way


# -- what an intent may hold (I4) -----------------------------------------------------------------------------


class Colour(Enum):
    RED = b"red"


class Size(IntEnum):
    HUGE = 2**60


class Name(StrEnum):
    BAD = "a\x00b"


CYCLE: list[Any] = [1]
CYCLE.append({"again": CYCLE})
DEEP: Any = None
for _ in range(200):
    DEEP = [DEEP]

REFUSED: list[tuple[Any, str, str]] = [
    (math.nan, "intent", "NaN"),
    (math.inf, "intent", "infinity"),
    (-math.inf, "intent", "infinity"),
    (Decimal("NaN"), "intent", "NaN"),
    (Decimal("-Infinity"), "intent", "infinity"),
    (2**53, "intent", "integer beyond"),
    (-(2**53), "intent", "integer beyond"),
    (Size.HUGE, "intent", "integer beyond"),
    (b"x", "intent", "bytes"),
    (bytearray(b"x"), "intent", "bytes"),
    (memoryview(b"x"), "intent", "bytes"),
    (Colour.RED, "intent", "bytes"),
    ({1, 2}, "intent", "set"),
    (frozenset("ab"), "intent", "set"),
    ("a\x00b", "intent", "NUL"),
    ("é\x00", "intent", "NUL"),
    (Name.BAD, "intent", "NUL"),
    ("\ud800", "intent", "surrogate"),
    ("ok \udfff", "intent", "surrogate"),
    (datetime(2026, 1, 1), "intent", "naive datetime"),  # noqa: DTZ001
    (time(12), "intent", "naive time"),
    (Decimal("sNaN"), "intent", "NaN"),
    (SecretStr("hunter2"), "intent", "secret"),
    (SecretBytes(b"hunter2"), "intent", "secret"),
    (CYCLE, "intent[1].again", "cycle"),
    (DEEP, "intent" + "[0]" * 101, "nested"),
    ({1: "x"}, "intent", "key of kind int"),
    ({None: "x"}, "intent", "key of kind NoneType"),
    ({("a",): "x"}, "intent", "key of kind tuple"),
    ({"a\x00": 1}, r"intent['a\x00']", "NUL"),
    ({"\ud800": 1}, r"intent['\ud800']", "surrogate"),
    ({"order": {"items": [{"price": 1}, {"price": math.nan}]}}, "intent.order.items[1].price", "NaN"),
    ({"order-id": [b""]}, "intent['order-id'][0]", "bytes"),
    ((1, (2, {3})), "intent[1][1]", "set"),
]


@pytest.mark.parametrize(("value", "path", "problem"), REFUSED, ids=[p for _, _, p in REFUSED])
def test_I4_what_cannot_be_stored_exactly_is_refused_with_its_path(value: Any, path: str, problem: str) -> None:
    with pytest.raises(IntentError) as caught:
        check_intent(value)
    assert caught.value.path == path
    assert problem in caught.value.problem
    assert "hunter2" not in str(caught.value), "and never the value"


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        2**53 - 1,
        -(2**53) + 1,
        1.5,
        -0.0,
        Decimal("1.10"),
        "",
        "text with é and 😀",
        datetime(2026, 1, 1, tzinfo=UTC),
        time(12, tzinfo=UTC),
        date(2026, 1, 1),
        timedelta(days=1),
        uuid.UUID(int=1),
        [],
        {},
        (1, [2, {"a": (3,)}]),
        deque([1]),
    ],
)
def test_I4_what_can_be_stored_exactly_is_accepted(value: Any) -> None:
    check_intent(value)


def test_the_same_list_twice_is_no_cycle() -> None:
    shared = [1]
    check_intent({"a": shared, "b": [shared, shared], "d": Decimal(1)})


def test_C11_no_token_that_is_not_json_is_ever_written() -> None:
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(IntentError, match="no canonical JSON form"):
            canonical_json(value)


def test_I4_an_intent_of_exactly_the_limit_is_accepted_and_one_byte_more_is_not() -> None:
    assert MAX_INTENT_BYTES == 2**20
    canonical_json("x" * (MAX_INTENT_BYTES - 2))
    with pytest.raises(IntentError, match="1048577 bytes; at most 1048576"):
        canonical_json("x" * (MAX_INTENT_BYTES - 1))
    with pytest.raises(IntentError, match="at most 10"):
        canonical_json("é" * 5, limit=10)


# -- keys for providers (I5) ----------------------------------------------------------------------------------


def test_I5_a_key_is_stable_and_differs_in_every_part() -> None:
    key = idempotency_key("ledger", "default", "payments/refund", "rf_81")
    assert re.fullmatch("[0-9a-f]{64}", key)
    assert key == idempotency_key("ledger", "default", "payments/refund", "rf_81")
    others = {
        idempotency_key("ledger2", "default", "payments/refund", "rf_81"),
        idempotency_key("ledger", "other", "payments/refund", "rf_81"),
        idempotency_key("ledger", "default", "payments/charge", "rf_81"),
        idempotency_key("ledger", "default", "payments/refund", "rf_82"),
        idempotency_key("ledger", "default", "payments/refundr", "f_81"),
        idempotency_key("ledger", 'default","payments/refund', "rf_81", ""),
    }
    assert len(others) == 6
    assert key not in others


# -- text for people (T3) -------------------------------------------------------------------------------------


def test_T3_messages_are_cut_at_2000_characters() -> None:
    assert safe_text("x" * 2_000) == "x" * 2_000
    assert safe_text("x" * 2_001) == "x" * 1_999 + "…"
    assert len(safe_text("\x00" * 5_000)) <= 2_000


def test_T3_messages_hold_nothing_that_a_database_refuses() -> None:
    assert safe_text("a\x00b\ud800c") == r"a\x00b\ud800c"


def test_T3_an_exception_is_kept_as_its_type_and_message() -> None:
    class Bad(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    assert stored_failure(ValueError("no")).message == "no"
    assert stored_failure(ValueError("no")).type == "ValueError"
    assert stored_failure(Bad()).message == "<its text raised RuntimeError>"
    assert stored_failure(ValueError("x" * 9_999)).message.endswith("…")
