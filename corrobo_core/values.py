"""The stored form of what providers return, by the type that the effect declares.

Source: semantics T4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter

from corrobo_core.canonical import decode_value, encode_value, is_plain
from corrobo_core.kinds import is_of_another_class
from corrobo_core.records import JSON, Unstorable

__all__ = ["LOST", "ValueType"]

_TAG = "$corrobo"
LOST = object()
"""Stands for a value that could not be stored, or does not fit its type any more."""


class ValueType:
    """One declared type: how its values are stored and read back. Never raises: an outcome is never lost."""

    def __init__(self, adapter: TypeAdapter[Any]) -> None:
        self._adapter = adapter

    def encode(self, value: object) -> JSON:
        """The stored form, marked where it had to be changed."""
        if value is None:
            return None
        try:
            # Not pydantic's JSON mode: it makes NaN null and bytes text.
            form = self._adapter.dump_python(value, by_alias=True, round_trip=True, warnings=False)
        except Exception:  # whatever a provider's object does when it is looked at
            form = value
        stored = encode_value(form)
        if not is_plain(value) and self._becomes_another(value, stored):
            return {_TAG: "another-class", "value": stored}  # no reader knows this tag: it reads as `LOST`
        return stored

    def decode(self, stored: JSON) -> Any:
        """The value, or `LOST`."""
        value = self._read(stored)
        return LOST if isinstance(value, Unstorable) else value

    def fits(self, stored: JSON) -> bool:
        """Whether a stored value is of the type; one that could not be stored says nothing against it."""
        return self._read(stored) is not LOST

    def _becomes_another(self, value: object, stored: JSON) -> bool:
        """Whether a reader would take it for what it is not, such as the first of two models with equal fields."""
        try:
            return _became_another(value, self._read(stored))
        except Exception:  # whatever a provider's object does when it is looked at
            return False

    def _read(self, stored: JSON) -> Any:
        """The value, or what stands for one that was never stored, or `LOST`."""
        try:
            value = decode_value(stored)
            # Not strict, whatever the type says: in its stored form a date is text, and a tuple a list.
            return value if isinstance(value, Unstorable) else self._adapter.validate_python(value, strict=False)
        except Exception:  # whatever the type's own validation raises
            return LOST


def _became_another(value: object, again: object) -> bool:
    """Whether a value, or one inside of it, came back as a class that it was not."""
    if is_of_another_class(value, again):
        return not isinstance(value, type(again))  # a subclass comes back as what was declared
    if isinstance(value, Mapping) and isinstance(again, Mapping):
        return any(_became_another(item, again.get(key)) for key, item in value.items())
    if isinstance(value, (list, tuple)) and isinstance(again, (list, tuple)):
        return any(map(_became_another, value, again))
    if isinstance(value, BaseModel) and isinstance(again, BaseModel):
        return _became_another(vars(value), vars(again))
    return False
