"""The stored form of what providers return, by the type that the effect declares.

Source: semantics T4.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from corrobo_core.canonical import decode_value, encode_value
from corrobo_core.records import JSON, Unstorable

__all__ = ["LOST", "ValueType"]

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
        return encode_value(form)

    def decode(self, stored: JSON) -> Any:
        """The value, or `LOST`."""
        value = self._read(stored)
        return LOST if isinstance(value, Unstorable) else value

    def fits(self, stored: JSON) -> bool:
        """Whether a stored value is of the type; one that could not be stored says nothing against it."""
        return self._read(stored) is not LOST

    def _read(self, stored: JSON) -> Any:
        """The value, or what stands for one that was never stored, or `LOST`."""
        try:
            value = decode_value(stored)
            return value if isinstance(value, Unstorable) else self._adapter.validate_python(value)
        except Exception:  # whatever the type's own validation raises
            return LOST
