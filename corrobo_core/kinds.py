"""Classes that data alone does not tell apart: a value can come back from storage as one that it never was.

Source: semantics I2, T4.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from enum import Enum

from pydantic import BaseModel

__all__ = ["has_fields", "is_of_another_class"]


def has_fields(value: object) -> bool:
    """Whether a value is of a class that gives its data a meaning: a model, a dataclass, a named tuple, an enum."""
    named = isinstance(value, tuple) and hasattr(value, "_fields")
    return named or isinstance(value, (BaseModel, Enum)) or is_dataclass(value)


def is_of_another_class(value: object, again: object) -> bool:
    """Whether what came back has a class that the value had not: ``Debit(5)`` is not ``Credit(5)``.

    A class that became plain data is none: an annotation that says nothing gives that.
    """
    return type(value) is not type(again) and has_fields(value) and has_fields(again)
