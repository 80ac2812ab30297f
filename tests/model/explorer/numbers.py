"""Numbers for values: equal values get the same one, so that states are small and quickly compared.

The history of observations decides nothing (O7), but for what a person attested: the rest of it is left out.
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Generic, TypeVar

from corrobo_core.records import History

T = TypeVar("T")

_PLAIN = (str, int, float, datetime, timedelta, Enum, type(None))


class Numbers(Generic[T]):
    """The values met so far."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._known: dict[Hashable, int] = {}

    def of(self, value: T) -> int:
        """The number of this value."""
        plain = content(value)
        number = self._known.get(plain)
        if number is None:
            number = self._known[plain] = len(self.values)
            self.values.append(value)
        return number


def content(value: Any) -> Hashable:
    """A value as plain tuples, equal for equal values."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, tuple | list):
        return tuple([content(one) for one in value])
    if isinstance(value, History):
        return tuple([content(record) for record in value.last if record.source.startswith("person:")])
    if isinstance(value, dict):
        return tuple([(key, content(one)) for key, one in sorted(value.items())])
    if not hasattr(value, "__dict__"):
        return value  # type: ignore[no-any-return]  # a frozen dataclass with slots
    return (type(value), *[content(one) for one in value.__dict__.values()])
