"""Frozen dataclasses that are cheap to make.

A pass makes some forty small records. The ``__init__`` of an ordinary frozen dataclass goes through
``object.__setattr__`` field by field, and ``dataclasses.replace`` through it again: together they took more than
half of a pass. These are the same dataclasses, with an ``__init__`` that fills ``__dict__``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, TypeVar

from typing_extensions import dataclass_transform

__all__ = ["evolve", "frozen"]

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field, Field))
def frozen(cls: type[T]) -> type[T]:
    """A class decorator: ``dataclass(frozen=True)``, without slots and without ``__post_init__``."""
    made = dataclass(frozen=True)(cls)
    made.__init__ = _init_of(made)  # type: ignore[method-assign]
    return made


def _init_of(cls: type[Any]) -> Callable[..., None]:
    known: dict[str, Any] = {"MISSING": MISSING}
    parameters, body = ["self"], ["__dict__ = self.__dict__"]
    for f in fields(cls):
        value = f.name
        if f.default is not MISSING:
            known[f"default_{f.name}"] = f.default
            parameters.append(f"{f.name}=default_{f.name}")
        elif f.default_factory is not MISSING:
            known[f"make_{f.name}"] = f.default_factory
            parameters.append(f"{f.name}=MISSING")
            value = f"make_{f.name}() if {f.name} is MISSING else {f.name}"
        else:
            parameters.append(f.name)
        body.append(f"__dict__[{f.name!r}] = {value}")
    lines = "\n    ".join(body)
    exec(f"def __init__({', '.join(parameters)}):\n    {lines}", known)  # as dataclasses does
    made: Callable[..., None] = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def evolve(record: T, **changes: Any) -> T:
    """A `frozen` record with some fields changed: ``dataclasses.replace``, ten times faster.

    Raises:
        TypeError: it has no such field.
    """
    new = _new(record.__class__)
    before, after = record.__dict__, new.__dict__
    after |= before
    after |= changes
    if len(after) != len(before):
        raise TypeError(f"{type(record).__name__} has no field {sorted(changes.keys() - before.keys())}")
    return new


_new = object.__new__
