"""Canonical JSON: refused, or written so that nothing is lost and no two values share a text (I2 to I4, T4, G1)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import rfc8785
from hypothesis import strategies as st

from corrobo_core.canonical import canonical_json, check_intent, decode_value, encode_value
from corrobo_core.errors import IntentError
from corrobo_core.gates.errors import GateValueError
from corrobo_core.gates.jsontext import canonical, parse_json
from corrobo_core.records import Unstorable
from tests.fuzz.fuzzing import Target
from tests.fuzz.hostile import any_json, any_text, any_value, few_json, near_json, refused_or

__all__ = ["CANONICAL", "meaning"]


def meaning(value: Any) -> Any:
    """What a JSON value means, told without any encoder: equal for two values that are the same JSON."""
    match value:
        case None | bool():
            return ("literal", value)
        case int() | float():
            return ("number", float(value))
        case str():
            return ("text", value)
        case Mapping():
            return ("object", frozenset((key, meaning(item)) for key, item in value.items()))
        case list() | tuple():
            return ("list", tuple(meaning(item) for item in value))
        case _:
            raise AssertionError(f"{value!r} is no JSON")


def written(value: Any) -> str | None:
    """The intent's text as the library makes it, or None where it refuses."""

    def write() -> str:
        check_intent(value)
        return canonical_json(value)

    text = refused_or(IntentError, write)
    assert text is None or isinstance(text, str)
    return text


def an_intent_is_refused_or_written_whole(value: Any) -> None:
    text = written(value)
    if text is not None:
        assert text.encode() == rfc8785.dumps(value)
        read = json.loads(text)
        assert meaning(read) == meaning(value)
        assert written(read) == text or _has_long_digits(read)


def _has_long_digits(value: Any) -> bool:
    """RFC 8785 writes whole floats below 1e21 with all digits, which read back as integers that are too large."""
    match value:
        case int():
            return abs(value) >= 2**53
        case dict():
            return any(map(_has_long_digits, value.values()))
        case list():
            return any(map(_has_long_digits, value))
        case _:
            return False


def two_values_share_a_text_only_if_they_are_the_same(pair: tuple[Any, Any]) -> None:
    one, other = map(written, pair)
    if one is not None and other is not None:
        assert (one == other) == (meaning(pair[0]) == meaning(pair[1]))


def a_gates_value_is_refused_or_a_fixed_point(value: Any) -> None:
    text = refused_or(GateValueError, lambda: canonical(value, "input"))
    if text is not None:
        read = parse_json(text)
        assert meaning(read) == meaning(value)
        assert canonical(read, "input") == text


def a_gates_text_is_refused_or_read_as_any_reader_does(text: str | bytes) -> None:
    value = refused_or(GateValueError, lambda: parse_json(text))
    if value is not None:
        assert meaning(value) == meaning(json.loads(text))
        again = canonical(value, "input")
        assert canonical(parse_json(again), "input") == again


def a_returned_value_is_stored_whatever_it_is(value: Any) -> None:
    stored = encode_value(value)
    assert all(32 <= ord(char) < 127 for char in json.dumps(stored, allow_nan=False))
    back = decode_value(json.loads(json.dumps(stored)))
    if not isinstance(back, Unstorable) and _is_json(value):
        assert _same(back, value)


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    return (
        all(map(_is_json, value)) if isinstance(value, list) else type(value) in (type(None), bool, int, float, str)
    )


def _same(one: Any, other: Any) -> bool:
    """Equal as Python values; NaN is NaN, and a list stands for a tuple."""
    if isinstance(other, float) and math.isnan(other):
        return isinstance(one, float) and math.isnan(one)
    if isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in other)
    return type(one) is type(other) and bool(one == other)


def _texts() -> st.SearchStrategy[str | bytes]:
    digits = st.from_regex(r"-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?", fullmatch=True)
    scraps = st.sampled_from(
        [*'[]{}:,"\\ \n', '"a"', '"\\ud800"', "NaN", "-Infinity", "null", "1e999", '{"a":1,"a":1}']
    )
    deep = st.builds(
        lambda n, mark: mark * n, st.sampled_from([50, 99, 200, 3_000, 100_000]), st.sampled_from('[{"')
    )
    return st.one_of(
        any_json.map(json.dumps),
        any_text,
        digits,
        st.lists(scraps | digits | any_text, max_size=8).map("".join),
        deep | deep.map(lambda text: text + text.replace("[", "]")),
        st.binary(max_size=30),
    )


CANONICAL = Target(
    "canonical",
    {
        an_intent_is_refused_or_written_whole: any_value | any_json,
        two_values_share_a_text_only_if_they_are_the_same: st.tuples(few_json, few_json)
        | st.tuples(near_json, near_json),
        a_gates_value_is_refused_or_a_fixed_point: any_json | any_value,
        a_gates_text_is_refused_or_read_as_any_reader_does: _texts(),
        a_returned_value_is_stored_whatever_it_is: any_value | any_json,
    },
)
