"""Values that somebody might send, store or return."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

from hypothesis import strategies as st
from pydantic import SecretStr

__all__ = ["Edit", "any_json", "any_text", "any_value", "edited", "edits", "few_json", "near_json", "refused_or"]


class Colour(Enum):
    RED = "red"


class Refusing:
    """It answers no question about itself."""

    def __repr__(self) -> str:
        return "Refusing()"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # as hypothesis asks, to show it
            raise AttributeError(name)
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    __hash__ = None  # type: ignore[assignment]


def nested(depth: int) -> Any:
    value: Any = None
    for level in range(depth):
        value = [value] if level % 2 else {"deeper": value}
    return value


def cyclic() -> list[Any]:
    value: list[Any] = [1]
    value.append({"again": value})
    return value


# Every character, lone surrogates and NUL included.
any_text = st.text(st.characters(exclude_categories=()), max_size=20)
_numbers = st.one_of(
    st.integers(),
    st.sampled_from([2**53 - 1, 2**53, -(2**53), 10**400, -0.0, 1e21, 1e-7, 5e-324, 1.7976931348623157e308]),
    st.floats(allow_nan=False, allow_infinity=False),
)
_plain = st.one_of(st.none(), st.booleans(), _numbers, any_text)


def _trees(leaves: st.SearchStrategy[Any], keys: st.SearchStrategy[Any], size: int) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=4)),
        max_leaves=size,
    )


any_json = _trees(_plain, any_text, 12)
# So few that two of them are often equal, or nearly.
few_json = _trees(
    st.sampled_from([None, True, False, 0, 1, -0.0, 1.0, 0.1, 1e21, 10**21, "", "0", "1", "null", "é", "e\u0301"]),
    st.sampled_from(["", "a", "A", "é", "e\u0301", "\U00010000", "\uffff"]),
    5,
)
near_json = few_json | any_json
any_value = st.one_of(
    _trees(
        st.one_of(
            _plain,
            st.floats(),
            st.binary(max_size=8),
            st.datetimes(timezones=st.none() | st.just(UTC)),
            st.decimals(),
            st.sampled_from(
                [
                    *(
                        Colour.RED,
                        Decimal("sNaN"),
                        timedelta(days=1),
                        {1, "a"},
                        frozenset(),
                        (1, (2,)),
                        object(),
                        Colour,
                    ),
                    *(
                        SecretStr("x"),
                        Refusing(),
                        b"\xff",
                        datetime.max.replace(tzinfo=UTC),
                        range(3),
                        {1: 2},
                        {"$corrobo": "int"},
                    ),
                ]
            ),
        ),
        any_text | st.sampled_from(["$corrobo", "type", "json"]),
        10,
    ),
    st.builds(nested, st.sampled_from([1, 99, 100, 101, 102, 250, 1_000, 20_000])),
    st.builds(cyclic),
)


# -- damage to what was stored ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Edit:
    """One change somewhere in a document: ``where`` numbers all its places, and wraps around."""

    how: str
    where: int
    new: Any = None


edits = st.lists(
    st.builds(Edit, st.sampled_from(["set", "remove", "nest"]), st.integers(0, 500), near_json), max_size=3
)


def edited(document: Any, changes: Sequence[Edit]) -> Any:
    """A copy of a JSON document with these changes."""
    copy = json.loads(json.dumps(document))
    for change in changes:
        places = list(_places(copy))
        if places:
            container, key = places[change.where % len(places)]
            _change(container, key, change)
    return copy


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    match value:
        case dict():
            keys: Sequence[Any] = list(value)
        case list():
            keys = range(len(value))
        case _:
            return
    for key in keys:
        yield value, key
        yield from _places(value[key])


def _change(container: Any, key: Any, change: Edit) -> None:
    match change.how:
        case "remove":
            del container[key]
        case "nest":
            container[key] = [container[key]]
        case _:
            container[key] = change.new


def refused_or(kind: type[Exception] | tuple[type[Exception], ...], call: Callable[[], Any]) -> Any:
    """What the call gives; None if it refuses with one of these. Anything else that it raises is a finding."""
    try:
        return call()
    except kind:
        return None
