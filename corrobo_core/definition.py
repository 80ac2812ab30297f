"""A checked contract, in the one shape that runners read, whichever way it was written."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from corrobo_core.binding import Bound, Parameters, operation_id_from
from corrobo_core.errors import ContractError
from corrobo_core.policy import Policy
from corrobo_core.values import ValueType

__all__ = ["Definition", "Hook"]


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook: its function, and whether it takes the intent after its first parameters."""

    fn: Callable[..., Any]
    takes_intent: bool
    is_async: bool

    @classmethod
    def of(
        cls,
        effect: str,
        name: str,
        fn: Callable[..., Any],
        first: tuple[str, ...],
        intent: tuple[str, ...],
        *,
        long: bool = False,
    ) -> Hook:
        """Check a hook's parameters: ``(*first)`` or ``(*first, *intent)``; only the latter if ``long``.

        Raises:
            ContractError: it takes something else.
        """
        if not callable(fn):
            raise ContractError(effect, name, "must be a function")
        if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
            raise ContractError(effect, name, "is a generator function; return instead of yield")
        signature = inspect.signature(fn)
        is_async = inspect.iscoroutinefunction(fn)
        for count, takes_intent in ((len(first) + len(intent), True), (len(first), False)):
            if (takes_intent or not long) and _accepts(signature, count, intent if takes_intent else ()):
                if takes_intent:
                    _refuse_other_names(effect, name, signature, len(first), intent)
                return cls(fn, takes_intent and bool(intent), is_async)
        wanted = ", ".join(first)
        also = ", ".join((*first, *intent))
        raise ContractError(effect, name, f"must take ({wanted}) or ({also}), not {signature}")


def _refuse_other_names(
    effect: str, hook: str, signature: inspect.Signature, skip: int, intent: tuple[str, ...]
) -> None:
    """The intent comes by position: two names exchanged would look up the wrong thing and find nothing there."""
    named = [p.name for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_POSITIONAL]
    found, wanted = named[skip : skip + len(intent)], list(intent)
    if len(found) == len(wanted) and [name.lstrip("_") for name in found] != [n.lstrip("_") for n in wanted]:
        raise ContractError(
            effect,
            hook,
            f"takes ({', '.join(found)}) where the effect takes ({', '.join(wanted)});"
            " give its parameters the same names in the same order",
        )


def _accepts(signature: inspect.Signature, count: int, intent: tuple[str, ...]) -> bool:
    """Callable with so many values, the intent's by keyword as far as they are keyword-only."""
    by_keyword = [n for n in intent if _keyword_only(signature, n)]
    try:
        signature.bind(*range(count - len(by_keyword)), **dict.fromkeys(by_keyword))
    except TypeError:
        return False
    return True


def _keyword_only(signature: inspect.Signature, name: str) -> bool:
    parameter = signature.parameters.get(name)
    return parameter is not None and parameter.kind is inspect.Parameter.KEYWORD_ONLY


@dataclass(frozen=True, slots=True)
class Definition:
    """One effect, checked.

    Attributes:
        type: the operation type.
        policy: what it declares about time and retries.
        parameters: its intent.
        hooks: ``execute``, ``observe``, ``reconcile``, and the optional ones that exist.
        effect_type: how the confirmed effect is stored.
        response_type: how what ``execute`` returns is stored.
        is_async: its hooks may be coroutines; only `AsyncEffectRunner` runs it.
    """

    type: str
    policy: Policy
    parameters: Parameters
    identity: Callable[..., str]
    identity_names: tuple[str, ...] | None
    hooks: Mapping[str, Hook]
    effect_type: ValueType
    response_type: ValueType
    is_async: bool

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[str, Bound]:
        """Operation id and intent of one call; refuses before anything is written or sent (L8).

        Raises:
            IntentError, IdentityError: with the field's path. Not retryable.
        """
        bound = self.parameters.bind(args, kwargs)
        names = self.parameters.names if self.identity_names is None else self.identity_names
        values = {name: bound.values[name] for name in names}
        return operation_id_from(self.type, self.identity, values), bound
