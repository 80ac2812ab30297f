"""JSON text of gates: parsed strictly, written canonically. What is stored is what is digested is what is checked.

The profile is I-JSON with RFC 8785 bytes: no duplicate keys, no NaN, no integers beyond ±(2^53-1), also when they
are written as floats (from 1e21 on, numbers are written with an exponent and read back as they were), no lone
surrogates, no NUL. Unicode is never normalised. ``25.0`` is ``25``, and ``-0.0`` is ``0``.

Source: semantics G1, I4; RFC 8785; RFC 7493.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from datetime import UTC, datetime
from typing import Any

from corrobo_core.canonical import canonical_json, check_intent, is_plain
from corrobo_core.errors import IntentError
from corrobo_core.gates.errors import GateArgumentError, GateValueError

__all__ = [
    "MAX_BYTES",
    "aware",
    "canonical",
    "from_timestamp",
    "is_digest",
    "parse_json",
    "plain_text",
    "sha256",
    "timestamp",
]

MAX_BYTES = 1 << 20
_MAX_INT = (1 << 53) - 1
_EXPONENT_FROM = 1e21  # RFC 8785 writes smaller whole numbers with all their digits
_PLAIN = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
_MANY_DIGITS = re.compile(r"[0-9]{16}")
_HEX = frozenset("0123456789abcdef")


def canonical(value: object, what: str, limit: int = MAX_BYTES) -> str:
    """The RFC 8785 text of a Python value that is plain JSON.

    Args:
        value: dicts with text keys, lists, text, numbers, booleans, None.
        what: what it is called in the error, such as ``response``.
        limit: bytes of UTF-8 that are accepted.

    Raises:
        GateValueError: names the path and the kind of value. Not retryable.
    """
    if is_plain(value):  # ASCII text and small integers: the standard library writes the same bytes, far faster
        text = _PLAIN.encode(value)
        if len(text) > limit:
            raise GateValueError(what, f"{len(text)} bytes; at most {limit}. Store it elsewhere, pass a reference")
        return text
    try:
        check_intent(value, what)
        text = canonical_json(value, path=what, limit=limit)  # type: ignore[arg-type]
    except IntentError as error:
        raise GateValueError(error.path, error.problem) from None
    if _MANY_DIGITS.search(text):
        parse_json(text, what, limit)  # whole floats come back as integers: are they in range?
    return text


def parse_json(text: str | bytes, what: str = "body", limit: int = MAX_BYTES) -> Any:
    """The value of a JSON text from outside.

    Args:
        text: JSON; bytes are UTF-8.
        what: what it is called in the error.
        limit: bytes that are accepted.

    Raises:
        GateValueError: not JSON, a duplicate key at any depth, or outside the profile. Not retryable.
    """
    if len(text) > limit:
        raise GateValueError(what, f"more than {limit} bytes; store it elsewhere and pass a reference")
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8")
        value = json.loads(
            decoded,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_int=_integer,
            parse_float=_float,
        )
        check_intent(value, what)
    except _NotOurs as error:
        raise GateValueError(what, str(error)) from None
    except IntentError as error:
        raise GateValueError(error.path, error.problem) from None
    except UnicodeDecodeError:
        raise GateValueError(what, "not UTF-8") from None
    except json.JSONDecodeError as error:
        raise GateValueError(what, f"not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise GateValueError(what, "nested too deep; pass something flatter") from None
    return value


class _NotOurs(Exception):
    """JSON, but not of this profile."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _NotOurs(f"object with the key {twice!r} twice; readers disagree on which one counts")
    return found


def _constant(name: str) -> Any:
    raise _NotOurs(f"{name}; pass a finite number")


def _integer(digits: str) -> int:
    # A long run of digits would make int() slow, or refuse.
    if len(digits) > 17 or abs(int(digits)) > _MAX_INT:
        raise _NotOurs("integer beyond ±(2^53-1); pass it as a string")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _NotOurs("number too large for a double; pass it as a string")
    if value.is_integer() and _MAX_INT < abs(value) < _EXPONENT_FROM:
        raise _NotOurs("integer beyond ±(2^53-1); pass it as a string")
    return value


# -- small things that events are made of --------------------------------------------------------------------


def sha256(text: str) -> str:
    """64 lowercase hex digits over the UTF-8 bytes."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def is_digest(value: object) -> bool:
    """Whether it is 64 lowercase hex digits."""
    return isinstance(value, str) and len(value) == 64 and _HEX.issuperset(value)


def plain_text(value: object, argument: str, limit: int = 200) -> str:
    """A name as given by a caller: 1 to ``limit`` characters, storable everywhere.

    Raises:
        GateArgumentError: it is not. Not retryable.
    """
    if not isinstance(value, str) or not value.strip():
        raise GateArgumentError(argument, "pass text that is not empty")
    if len(value) > limit:
        raise GateArgumentError(argument, f"{len(value)} characters; at most {limit}")
    try:
        check_intent(value, argument)
    except IntentError as error:
        raise GateArgumentError(argument, error.problem) from None
    return str(value)


def aware(value: object, argument: str) -> datetime:
    """A datetime with a time zone, as UTC (D5).

    Raises:
        GateArgumentError: none, or naive. Not retryable.
    """
    if not isinstance(value, datetime):
        raise GateArgumentError(argument, f"a {type(value).__name__}; pass a datetime")
    if value.utcoffset() is None:
        raise GateArgumentError(argument, "naive datetime; pass one with a time zone")
    return value.astimezone(UTC)


def timestamp(time: datetime) -> str:
    """RFC 3339 in UTC with microseconds, such as ``2026-11-30T12:00:00.000000Z``: one text for one time."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def from_timestamp(text: object) -> datetime:
    """The time that `timestamp` wrote.

    Raises:
        ValueError: it is not exactly of that form.
    """
    if not isinstance(text, str) or not text.endswith("Z"):
        raise ValueError("not a time in UTC")
    time = datetime.fromisoformat(text.removesuffix("Z") + "+00:00")
    if timestamp(time) != text:
        raise ValueError("not a time in UTC with microseconds")
    return time
