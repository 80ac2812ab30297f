"""Canonical JSON at its edges: exact sentences, exact limits, and what the quick look lets pass."""

from __future__ import annotations

import json
import math
from datetime import datetime, time
from enum import Enum
from typing import Any

import pytest
from pydantic import SecretStr

from corrobo_core.canonical import canonical_json, check_intent, is_plain, plain_json, safe_text
from corrobo_core.errors import IntentError
from corrobo_core.records import JSON

LOOP: dict[str, Any] = {"é": 1}
LOOP["inner"] = LOOP
DEEP: Any = "é"
for _ in range(120):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    [
        (2**53, "intent", "integer beyond ±(2^53-1); pass it as a string"),
        (math.nan, "intent", "NaN or infinity; pass a finite number"),
        (datetime(2026, 1, 1), "intent", "naive datetime; pass one with a time zone"),  # noqa: DTZ001
        (time(12), "intent", "naive time; pass one with a time zone"),
        (SecretStr("x"), "intent", "a secret, which is stored as stars; pass a reference to it"),
        (b"x", "intent", "bytes; pass text, such as base64"),
        ({1}, "intent", "a set has no order; pass a sorted list"),
        ({1: 2}, "intent", "object key of kind int; keys must be strings"),
        (LOOP, "intent.inner", "a cycle; pass a tree"),
        (DEEP, "intent" + "[0]" * 101, "nested more than 100 deep; pass something flatter"),
        ("\0", "intent", "text with NUL (U+0000); remove it"),
        ("é\0", "intent", "text with NUL (U+0000); remove it"),
        ("\ud800", "intent", "text with a lone surrogate; pass valid Unicode"),
    ],
)
def test_I4_a_refusal_says_where_and_what_to_do(value: Any, path: str, problem: str) -> None:
    with pytest.raises(IntentError) as caught:
        check_intent(value)
    assert (caught.value.path, caught.value.problem) == (path, problem)


def test_I4_what_has_no_canonical_form_is_named_as_it_was_called() -> None:
    with pytest.raises(IntentError) as caught:
        canonical_json(math.nan, path="response")
    assert caught.value.path == "response"
    assert caught.value.problem == "has no canonical JSON form (FloatDomainError)"


@pytest.mark.parametrize("letters", ["abcd", "éé"], ids=["plain", "not plain"])
def test_I4_the_limit_is_in_bytes_and_itself_allowed(letters: str) -> None:
    assert canonical_json(letters, limit=6) == f'"{letters}"'
    with pytest.raises(IntentError) as caught:
        canonical_json(letters, limit=5)
    assert caught.value.problem == "6 bytes; at most 5. Store it elsewhere and pass a reference"


class Choice(Enum):
    LIST = ("é", 1)
    BAD = (b"x",)


def test_I4_an_enum_is_what_it_stands_for_at_any_depth() -> None:
    check_intent({"one": [Choice.LIST]})
    with pytest.raises(IntentError, match="bytes"):
        check_intent([Choice.BAD])


# -- the quick look: nothing is refused by it, and all that is common goes by it ------------------------------


def _nested(depth: int) -> Any:
    value: Any = 1
    for number in range(depth):
        value = [value] if number % 2 else {"a": value}
    return value


PLAIN: list[JSON] = [
    None,
    True,
    False,
    0,
    2**53 - 1,
    -(2**53) + 1,
    "",
    "text",
    [],
    {},
    {"b": [1, {"a": None}], "a": "x"},
    ["x", ["y", 1]],
    _nested(20),
]
NOT_PLAIN: list[Any] = [
    2**53,
    -(2**53),
    1.0,
    "é",
    "\0",
    (1,),
    {"é": 1},
    {"a\0": 1},
    {1: 1},
    {"a": 1.0},
    [1, 1.0],
    _nested(21),
    Choice.LIST,
]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_what_is_common_is_plain_and_written_as_RFC_8785_says(value: JSON) -> None:
    assert is_plain(value)
    text = plain_json(value)
    assert text is not None
    assert json.loads(text) == value
    assert text == canonical_json(value)


@pytest.mark.parametrize("value", NOT_PLAIN, ids=repr)
def test_all_else_is_left_to_the_thorough_look(value: Any) -> None:
    assert not is_plain(value)
    assert plain_json(value) is None


def test_T3_what_is_cut_is_exactly_as_long_as_allowed() -> None:
    assert safe_text("x" * 2_000) == "x" * 2_000
    assert safe_text("x" * 2_001) == "x" * 1_999 + "…"
    assert safe_text("\0" * 2_000) == ("\\x00" * 500)
