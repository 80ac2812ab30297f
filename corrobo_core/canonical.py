"""Canonical JSON: what an intent may hold, its bytes and its fingerprint; and the stored form of any value.

Source: semantics I2, I3, I4, T3, T4. RFC 8785 bytes come from the ``rfc8785`` library.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

import rfc8785
from pydantic import SecretBytes, SecretStr
from pydantic_core import to_jsonable_python

from corrobo_core.errors import IntentError
from corrobo_core.records import JSON, Failure, Unstorable

__all__ = [
    "MAX_INTENT_BYTES",
    "canonical_json",
    "check_intent",
    "decode_value",
    "encode_value",
    "fingerprint",
    "idempotency_key",
    "is_plain",
    "safe_text",
    "stored_failure",
]

MAX_INTENT_BYTES = 1 << 20
MAX_VALUE_BYTES = 1 << 20
MAX_TEXT = 2_000
_MAX_INT = (1 << 53) - 1
_TAG = "$corrobo"
_SCALARS = frozenset({str, int, float, bool})
_PLAIN = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
_STRICT = json.JSONEncoder(allow_nan=False)


# -- intents -------------------------------------------------------------------------------------------------


def check_intent(value: object, path: str = "intent") -> None:
    """Refuse what cannot be stored exactly, before anything else sees it.

    Args:
        value: Python values, before they become JSON: dicts, lists, and what pydantic dumps from.
        path: where ``value`` sits, for the error.

    Raises:
        IntentError: names the path and the kind of value. Not retryable.

    Source: semantics I4.
    """
    if not is_plain(value):
        _check(value, path, ())


def is_plain(value: object, depth: int = 20) -> bool:
    """Whether a value is only ASCII text, small integers, booleans and None, in lists and dicts: told quickly.

    It is the common case, and certainly storable. False says nothing.
    """
    kind = type(value)
    if kind is str:
        return value.isascii() and "\x00" not in value  # type: ignore[attr-defined, operator]
    if kind is int:
        return -_MAX_INT <= value <= _MAX_INT  # type: ignore[operator]
    if value is None or kind is bool:
        return True
    if depth == 0:
        return False
    if kind is dict:
        for key, item in value.items():  # type: ignore[attr-defined]
            if type(key) is not str or not is_plain(key) or not is_plain(item, depth - 1):
                return False
        return True
    return kind is list and all(is_plain(item, depth - 1) for item in value)  # type: ignore[attr-defined]


def _check(value: object, path: str, above: tuple[int, ...]) -> None:
    match value:
        case None | bool() | timedelta():
            return
        case Enum():
            _check(value.value, path, above)
        case str():
            _check_text(value, path)
        case int():
            if abs(value) > _MAX_INT:
                raise IntentError(path, "integer beyond ±(2^53-1); pass it as a string")
        case float() | Decimal():
            if not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
                raise IntentError(path, "NaN or infinity; pass a finite number")
        case datetime() | time():
            if value.tzinfo is None:
                raise IntentError(path, f"naive {type(value).__name__}; pass one with a time zone")
        case date():
            return
        case SecretStr() | SecretBytes():
            raise IntentError(path, "a secret, which is stored as stars; pass a reference to it")
        case bytes() | bytearray() | memoryview():
            raise IntentError(path, "bytes; pass text, such as base64")
        case set() | frozenset():
            raise IntentError(path, "a set has no order; pass a sorted list")
        case Mapping():
            _check_items(value, ((_field(path, key), key, item) for key, item in value.items()), path, above)
        case list() | tuple():
            _check_items(value, ((f"{path}[{i}]", "", v) for i, v in enumerate(value)), path, above)
        case _:
            return  # UUID, path, model: pydantic says how it becomes JSON


def _field(path: str, key: object) -> str:
    if not isinstance(key, str):
        raise IntentError(path, f"object key of kind {type(key).__name__}; keys must be strings")
    return f"{path}.{key}" if key.isidentifier() else f"{path}[{key!r}]"


def _check_items(
    container: object, items: Iterable[tuple[str, str, object]], path: str, above: tuple[int, ...]
) -> None:
    if id(container) in above:
        raise IntentError(path, "a cycle; pass a tree")
    if len(above) > 100:
        raise IntentError(path, "nested more than 100 deep; pass something flatter")
    for inner_path, key, item in items:
        _check_text(key, inner_path)
        _check(item, inner_path, (*above, id(container)))


def _check_text(text: str, path: str) -> None:
    if text.isascii():
        if "\x00" in text:
            raise IntentError(path, "text with NUL (U+0000); remove it")
        return
    if "\x00" in text:
        raise IntentError(path, "text with NUL (U+0000); remove it")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise IntentError(path, "text with a lone surrogate; pass valid Unicode")


def canonical_json(value: JSON, *, path: str = "intent", limit: int = MAX_INTENT_BYTES) -> str:
    """The RFC 8785 text of a JSON value.

    Args:
        value: a JSON value that `check_intent` accepts.
        path: what the value is called in the error.
        limit: bytes of UTF-8 that are accepted.

    Raises:
        IntentError: the value has no canonical form, or is larger than ``limit``. Not retryable.

    Source: semantics I2, I4.
    """
    text = plain_json(value)
    if text is not None and len(text) <= limit:
        return text
    try:
        data = rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError) as error:
        raise IntentError(path, f"has no canonical JSON form ({type(error).__name__})") from None
    if len(data) > limit:
        raise IntentError(path, f"{len(data)} bytes; at most {limit}. Store it elsewhere and pass a reference")
    return data.decode("utf-8")


def plain_json(value: object) -> str | None:
    """The RFC 8785 text of a value that `is_plain`: the standard library writes the same bytes, five times faster.

    Returns:
        None for any other value.
    """
    return _PLAIN.encode(value) if is_plain(value) else None


def fingerprint(canonical: str) -> str:
    """``v1:sha256:<hex>`` over canonical text (I3)."""
    return "v1:sha256:" + hashlib.sha256(canonical.encode("utf-8")).hexdigest()


def idempotency_key(ledger_id: str, namespace: str, operation_type: str, operation_id: str) -> str:
    """One stable key for one operation of one ledger, 64 hex digits (I5)."""
    whole = (
        f"{len(ledger_id)}:{ledger_id}{len(namespace)}:{namespace}"
        f"{len(operation_type)}:{operation_type}{len(operation_id)}:{operation_id}"
    )
    return hashlib.sha256(whole.encode("utf-8")).hexdigest()


# -- values that came back -----------------------------------------------------------------------------------


def encode_value(value: object) -> JSON:
    """A stored form for any value; what JSON or a database cannot hold is marked, and the outcome never lost.

    Text with NUL or lone surrogates, NaN, bytes, integers beyond ±(2^53-1) and objects with other keys than
    strings come back as they were; a value too large becomes its size and digest; anything else its type name.

    Source: semantics T4.
    """
    if value is None or isinstance(value, bool):
        return value
    try:
        encoded = _encode(value, 0)
        text = _STRICT.encode(encoded)
    except Exception:  # whatever a provider's object does when it is looked at
        return {_TAG: "unstorable", "type": safe_text(type(value).__name__)}
    if len(text) > MAX_VALUE_BYTES:
        return {_TAG: "too-large", "bytes": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    return encoded


def _encode(value: object, depth: int) -> JSON:
    if depth > 200:
        raise RecursionError
    match value:
        case None | bool():
            return value
        case Enum():
            return _encode(value.value, depth + 1)
        case str():
            return str(value) if _plain(value) else {_TAG: "text", "json": json.dumps(str(value))[1:-1]}
        case int():
            return int(value) if abs(value) <= _MAX_INT else {_TAG: "int", "value": str(int(value))}
        case float():
            return float(value) if math.isfinite(value) else {_TAG: "float", "value": repr(float(value))}
        case bytes() | bytearray():
            return {_TAG: "bytes", "base64": base64.b64encode(value).decode("ascii")}
        case list() | tuple():
            return [_encode(item, depth + 1) for item in value]
        case Mapping():
            if all(isinstance(key, str) and _plain(key) for key in value) and _TAG not in value:
                return {key: _encode(item, depth + 1) for key, item in value.items()}
            pairs = [[_encode(k, depth + 1), _encode(v, depth + 1)] for k, v in value.items()]
            return {_TAG: "object", "items": pairs}
        case _:  # dates, decimals, UUIDs, sets: as pydantic writes them; its types read them back
            return _encode(to_jsonable_python(value), depth + 1)


def _plain(text: str) -> bool:
    return "\x00" not in text and (text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text))


def decode_value(stored: JSON) -> Any:
    """The value that `encode_value` was given, or `Unstorable` in its place. Raises KeyError on a bad tag."""
    if stored is None or type(stored) in _SCALARS:
        return stored
    match stored:
        case Mapping() if _TAG in stored:
            return _decode_tagged(stored)
        case Mapping():
            return {key: decode_value(item) for key, item in stored.items()}
        case list() | tuple():
            return [decode_value(item) for item in stored]
        case _:
            return stored


def _decode_tagged(stored: Mapping[str, Any]) -> Any:
    match stored[_TAG]:
        case "text":
            return json.loads(f'"{stored["json"]}"')
        case "int":
            return int(stored["value"])
        case "float":
            return float(stored["value"])
        case "bytes":
            return base64.b64decode(stored["base64"])
        case "object":
            return {decode_value(key): decode_value(item) for key, item in stored["items"]}
        case "too-large":
            return Unstorable(stored["bytes"], stored["sha256"])
        case "unstorable":
            return Unstorable(0, "")
        case other:
            raise KeyError(f"unknown tag {other!r}")


# -- text that is only for people ----------------------------------------------------------------------------


def safe_text(text: str) -> str:
    """Text that every database stores: cut at 2,000 characters, NUL and lone surrogates escaped (T3)."""
    cut = text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
    if _plain(cut):
        return cut
    escaped = cut.encode("utf-8", "backslashreplace").decode("utf-8").replace("\x00", "\\x00")
    return escaped[:MAX_TEXT]


def stored_failure(error: BaseException, cleaned: Callable[[str], str] = safe_text) -> Failure:
    """An exception as it is stored: type name and message, never the object; ``cleaned`` sees it whole (T3)."""
    try:
        message = str(error)
    except Exception as inner:
        message = f"<its text raised {type(inner).__name__}>"
    return Failure(safe_text(type(error).__name__), cleaned(message))
