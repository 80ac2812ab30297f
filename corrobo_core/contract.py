"""What the application writes: effects, as decorated functions or as contract classes.

Source: semantics section 1 (contract), I1, I2, L8.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from functools import cached_property
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
    overload,
)

from corrobo_core.attempt import Attempt
from corrobo_core.binding import Parameters, adapter_for, check_identity, type_hints
from corrobo_core.canonical import MAX_INTENT_BYTES
from corrobo_core.declarations import checked_policy, checked_type
from corrobo_core.definition import Definition, Hook
from corrobo_core.errors import ContractError
from corrobo_core.policy import Backoff, RetryPolicy
from corrobo_core.records import Check, Observation, Verdict
from corrobo_core.values import ValueType

__all__ = [
    "AsyncEffect",
    "AsyncEffectContract",
    "BaseEffect",
    "Effect",
    "EffectContract",
    "EffectDecorator",
    "Observed",
    "SyncEffect",
    "effect",
]

P = ParamSpec("P")
D = TypeVar("D")
R = TypeVar("R")
Intent = TypeVar("Intent")
Data = TypeVar("Data")
EffectT = TypeVar("EffectT")

_ZERO = timedelta()
_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


class BaseEffect(Generic[P, R]):
    """An effect of either kind: what runners and adapters take."""

    is_async: ClassVar[bool]

    @property
    def effect_name(self) -> str:
        """What engines call it unless told otherwise: the function's name, or a contract's ``type``."""
        raise NotImplementedError

    @property
    def call_signature(self) -> inspect.Signature:
        """How it is called, without the attempt, and the effect's type; annotations resolved.

        Raises:
            ContractError: an annotation cannot be resolved. Not retryable.
        """
        raise NotImplementedError

    @property
    def definition(self) -> Definition:
        """The checked contract.

        Raises:
            ContractError: a hook is missing, or a type cannot be stored. Not retryable.
        """
        raise NotImplementedError


class SyncEffect(BaseEffect[P, R]):
    """An effect without coroutines: what `EffectRunner` takes."""


# -- functions -----------------------------------------------------------------------------------------------


class _FunctionEffect(BaseEffect[P, R]):
    """What `Effect` and `AsyncEffect` share: one function, and hooks added to it."""

    def __init__(self, fn: Callable[..., Any], options: _Options) -> None:
        parameters = _intent_parameters(options.type, fn)
        self.__name__, self.__qualname__ = fn.__name__, fn.__qualname__
        self.__module__, self.__doc__ = fn.__module__, fn.__doc__
        self.fn = fn
        self.type = options.type
        self._options = options
        self._hooks: dict[str, Hook] = {}
        self._parameters = Parameters(
            self.type,
            fn,
            parameters,
            volatile=options.volatile,
            limit=options.max_intent_bytes,
        )
        self._identity_names = check_identity(self.type, options.identity, self._parameters.names)
        self._add("execute", fn, "attempt", long=True)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.type!r}>"

    @property
    def signature(self) -> inspect.Signature:
        """The intent's parameters: those of the function after ``attempt``."""
        return self._parameters.signature

    @property
    def effect_name(self) -> str:
        """The function's name."""
        return self.__name__

    @property
    def call_signature(self) -> inspect.Signature:
        """How it is called (see `BaseEffect.call_signature`)."""
        hints = type_hints(self.type, self.fn)
        parameters = [
            parameter.replace(annotation=hints.get(parameter.name, Any))
            for parameter in self.signature.parameters.values()
        ]
        return inspect.Signature(parameters, return_annotation=hints.get("return", Any))

    @cached_property
    def definition(self) -> Definition:
        """The checked contract (see `BaseEffect.definition`)."""
        for needed in ("observe", "reconcile"):
            if needed not in self._hooks:
                raise ContractError(self.type, needed, f"is missing; add a function with @….{needed}")
        returned = type_hints(self.type, self.fn).get("return", Any)
        value_type = ValueType(adapter_for(self.type, "return type", returned))
        options = self._options
        return Definition(
            type=self.type,
            policy=checked_policy(
                self.type,
                options.declared,
                authorizes="authorize" in self._hooks,
                revalidates="revalidate" in self._hooks,
            ),
            parameters=self._parameters,
            identity=options.identity,
            identity_names=self._identity_names,
            hooks=dict(self._hooks),
            effect_type=value_type,
            response_type=value_type,
            is_async=self.is_async,
        )

    def _add(self, name: str, fn: Callable[..., Any], *first: str, long: bool = False) -> None:
        if name in self._hooks:
            raise ContractError(self.type, name, "is given twice")
        if inspect.iscoroutinefunction(fn) and (not self.is_async or name == "reconcile"):
            why = (
                "reconcile is pure: make it a plain function"
                if name == "reconcile"
                else ("an async hook on a sync effect; make the effect async, or the hook sync")
            )
            raise ContractError(self.type, name, why)
        self._hooks[name] = Hook.of(self.type, name, fn, first, self._parameters.names, long=long)
        self.__dict__.pop("definition", None)


class Observed(Generic[P, D, R]):
    """What ``observe`` returned, so that ``reconcile`` is tied to its data."""

    def __init__(self, add: Callable[[Callable[..., Any]], None], fn: Callable[..., Any]) -> None:
        self._add = add
        self.fn = fn

    def reconcile(
        self, fn: Callable[Concatenate[Attempt, D, P], Verdict[R]] | Callable[[Attempt, D], Verdict[R]], /
    ) -> None:
        """Add the pure function that compares what was seen with what was intended (O8).

        Raises:
            ContractError: it is async, takes the wrong parameters, or there is one already.
        """
        self._add(fn)


class Effect(_FunctionEffect[P, R], SyncEffect[P, R]):
    """A synchronous effect. Made by `effect`."""

    is_async = False

    def observe(
        self, fn: Callable[Concatenate[Attempt, P], Observation[D]] | Callable[[Attempt], Observation[D]], /
    ) -> Observed[P, D, R]:
        """Add the function that reads the authoritative system, and never writes (L4).

        Raises:
            ContractError: it is async, takes the wrong parameters, or there is one already.
        """
        self._add("observe", fn, "attempt")
        return Observed(lambda reconcile: self._add("reconcile", reconcile, "attempt", "data"), fn)

    def authorize(self, fn: Callable[Concatenate[Attempt, P], Check] | Callable[[Attempt], Check], /) -> None:
        """Add the function that says whether this may be attempted at all; asked until it has answered (L2)."""
        self._add("authorize", fn, "attempt")

    def revalidate(self, fn: Callable[Concatenate[Attempt, P], Check] | Callable[[Attempt], Check], /) -> None:
        """Add the function that says whether a new attempt is still right; gates new attempts only (L6)."""
        self._add("revalidate", fn, "attempt")


class AsyncEffect(_FunctionEffect[P, R]):
    """An asynchronous effect. Made by `effect`. Its other hooks may be plain functions: they run in threads."""

    is_async = True

    def observe(
        self,
        fn: Callable[Concatenate[Attempt, P], Coroutine[Any, Any, Observation[D]] | Observation[D]]
        | Callable[[Attempt], Coroutine[Any, Any, Observation[D]] | Observation[D]],
        /,
    ) -> Observed[P, D, R]:
        """Add the function that reads the authoritative system, and never writes (L4).

        Raises:
            ContractError: it takes the wrong parameters, or there is one already.
        """
        self._add("observe", fn, "attempt")
        return Observed(lambda reconcile: self._add("reconcile", reconcile, "attempt", "data"), fn)

    def authorize(
        self,
        fn: Callable[Concatenate[Attempt, P], Coroutine[Any, Any, Check] | Check]
        | Callable[[Attempt], Coroutine[Any, Any, Check] | Check],
        /,
    ) -> None:
        """Add the function that says whether this may be attempted at all; asked until it has answered (L2)."""
        self._add("authorize", fn, "attempt")

    def revalidate(
        self,
        fn: Callable[Concatenate[Attempt, P], Coroutine[Any, Any, Check] | Check]
        | Callable[[Attempt], Coroutine[Any, Any, Check] | Check],
        /,
    ) -> None:
        """Add the function that says whether a new attempt is still right; gates new attempts only (L6)."""
        self._add("revalidate", fn, "attempt")


class EffectDecorator(Protocol):
    """What `effect` returns: turns a function into an effect of its kind."""

    @overload
    def __call__(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
        self, fn: Callable[Concatenate[Attempt, P], Coroutine[Any, Any, R]], /
    ) -> AsyncEffect[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Attempt, P], R], /) -> Effect[P, R]: ...


class _Options:
    def __init__(
        self,
        type: str,
        identity: Callable[..., str],
        volatile: tuple[str, ...],
        max_intent_bytes: int,
        declared: dict[str, Any],
    ) -> None:
        self.type, self.identity, self.volatile = type, identity, volatile
        self.max_intent_bytes, self.declared = max_intent_bytes, declared


def effect(
    type: str,
    *,
    identity: Callable[..., str],
    in_flight_window: timedelta | None = None,
    execute_timeout: timedelta | None = None,
    observation_lag: timedelta = _ZERO,
    responds_after_effect: bool = False,
    key_retention: timedelta | None = None,
    max_attempts: int | None = None,
    retry: RetryPolicy | None = None,
    poll: Backoff | None = None,
    max_approval_age: timedelta | None = None,
    volatile: tuple[str, ...] = (),
    max_intent_bytes: int = MAX_INTENT_BYTES,
) -> EffectDecorator:
    """Make a function an effect: its first parameter is the attempt, the rest are the intent.

    Args:
        type: the operation type, such as ``payments/refund``; 1 to 200 characters. Never changed once used.
        identity: called with the intent by keyword; returns the operation id that was minted when the
            decision was made, 1 to 512 characters.
        in_flight_window: how long after an attempt starts its effect could still land (D2). None: nobody can
            say, and a lost response is never retried by itself. Zero: the provider deduplicates by key.
        execute_timeout: how long ``execute`` may take; half the window unless given (L9).
        observation_lag: how stale ``observe`` can be (O4).
        responds_after_effect: a returned value means that the effect is there; no later landing.
        key_retention: how long the provider remembers an idempotency key. Needed with a window of zero.
        max_attempts: how many times the write may be sent; 3 unless given.
        retry: the whole retry policy, instead of ``max_attempts``.
        poll: waits between looks that give no answer; 5 s doubling to 5 min unless given (O5).
        max_approval_age: an approval older than this counts no more (R5).
        volatile: parameters that may differ between calls of one operation (I3).
        max_intent_bytes: of canonical JSON (I4).

    Raises:
        ContractError: names the argument and what to do. Not retryable.

    Source: semantics I1, I2, L8, L9, D2.
    """
    declared = {
        "in_flight_window": in_flight_window,
        "execute_timeout": execute_timeout,
        "observation_lag": observation_lag,
        "responds_after_effect": responds_after_effect,
        "key_retention": key_retention,
        "max_attempts": max_attempts,
        "retry": retry,
        "poll": poll,
        "max_approval_age": max_approval_age,
    }
    checked_type(type)
    checked_policy(type, declared)
    options = _Options(type, identity, volatile, max_intent_bytes, declared)

    def decorate(fn: Callable[..., Any], /) -> Any:
        kind = AsyncEffect if inspect.iscoroutinefunction(fn) else Effect
        return kind(fn, options)

    return decorate


def _intent_parameters(effect: str, fn: Callable[..., Any]) -> list[inspect.Parameter]:
    if not inspect.isfunction(fn):
        raise ContractError(effect, "execute", "must be a plain function; for state, use EffectContract")
    parameters = list(inspect.signature(fn).parameters.values())
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or parameters[0].kind not in positional:
        raise ContractError(effect, "execute", "its first positional parameter must be the attempt")
    if not _may_be_attempt(parameters[0].annotation):
        raise ContractError(
            effect,
            "execute",
            f"its first parameter, {parameters[0].name!r}, must be the attempt: annotate it Attempt",
        )
    if parameters[0].name in ("self", "cls"):
        raise ContractError(effect, "execute", "is a method, so that self would be the attempt; use EffectContract")
    for parameter in parameters[1:]:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            raise ContractError(effect, f"parameter *{parameter.name}", "has no names to record; list them")
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            raise ContractError(effect, f"parameter **{parameter.name}", "has no fixed fields; list them")
    return parameters[1:]


def _may_be_attempt(annotation: object) -> bool:
    if isinstance(annotation, str):  # not resolved yet
        return any(word in annotation for word in ("Attempt", "Any", "object"))
    return annotation in (inspect.Parameter.empty, Any, object, Attempt)


# -- classes -------------------------------------------------------------------------------------------------


class _ContractClass(BaseEffect[[Intent], EffectT], Generic[Intent, Data, EffectT]):
    """What `EffectContract` and `AsyncEffectContract` share."""

    type: ClassVar[str]
    in_flight_window: ClassVar[timedelta | None] = None
    execute_timeout: ClassVar[timedelta | None] = None
    observation_lag: ClassVar[timedelta] = _ZERO
    responds_after_effect: ClassVar[bool] = False
    key_retention: ClassVar[timedelta | None] = None
    max_attempts: ClassVar[int | None] = None
    retry: ClassVar[RetryPolicy | None] = None
    poll: ClassVar[Backoff | None] = None
    max_approval_age: ClassVar[timedelta | None] = None
    volatile: ClassVar[tuple[str, ...]] = ()
    max_intent_bytes: ClassVar[int] = MAX_INTENT_BYTES

    @property
    def effect_name(self) -> str:
        """The operation type."""
        return checked_type(getattr(self, "type", None))

    @property
    def call_signature(self) -> inspect.Signature:
        """How it is called (see `BaseEffect.call_signature`)."""
        intent_type, effect_type = _type_arguments(type(self))
        parameter = inspect.Parameter("intent", _POSITIONAL, annotation=intent_type)
        return inspect.Signature([parameter], return_annotation=effect_type)

    def identity(self, intent: Intent) -> str:
        """The operation id: minted when the decision was made, the same for every retry of it (I1)."""
        raise NotImplementedError

    @cached_property
    def definition(self) -> Definition:
        """The checked contract (see `BaseEffect.definition`)."""
        cls = type(self)
        name = checked_type(getattr(cls, "type", None))
        intent_type, effect_type = _type_arguments(cls)
        parameter = inspect.Parameter("intent", _POSITIONAL)
        parameters = Parameters(
            name, None, [parameter], volatile=cls.volatile, model=intent_type, limit=cls.max_intent_bytes
        )
        hooks = {
            hook: Hook.of(name, hook, self._hook(name, hook), first, ("intent",), long=hook != "reconcile")
            for hook, first in _HOOKS.items()
            if hook not in _OPTIONAL or hasattr(self, hook)
        }
        reconcile = self._hook(name, "reconcile")
        hooks["reconcile"] = Hook(  # hooks are called with the data first, methods with the intent
            lambda attempt, data, intent: reconcile(attempt, intent, data), takes_intent=True, is_async=False
        )
        declared = {field: getattr(cls, field) for field in _DECLARED}
        return Definition(
            type=name,
            policy=checked_policy(
                name, declared, authorizes="authorize" in hooks, revalidates="revalidate" in hooks
            ),
            parameters=parameters,
            identity=self._hook(name, "identity"),
            identity_names=("intent",),
            hooks=hooks,
            effect_type=ValueType(adapter_for(name, "effect type", effect_type)),
            response_type=ValueType(adapter_for(name, "response type", Any)),
            is_async=self.is_async,
        )

    def _hook(self, name: str, hook: str) -> Callable[..., Any]:
        fn: Callable[..., Any] = getattr(self, hook)
        if getattr(fn, "__func__", None) in _UNWRITTEN:
            raise ContractError(name, hook, f"is missing; define the method {hook}")
        if inspect.iscoroutinefunction(fn) and (not self.is_async or hook in ("reconcile", "identity")):
            raise ContractError(name, hook, "must be a plain method; for async hooks use AsyncEffectContract")
        return fn


class EffectContract(_ContractClass[Intent, Data, EffectT], SyncEffect[[Intent], EffectT]):
    """An effect as a class, for clients to inject or many hooks; its intent is one value, such as a model.

    Set ``type`` and the declarations of `effect` as class attributes, and define the methods. ``authorize``
    and ``revalidate`` are optional methods ``(attempt, intent) -> Check``.

    Source: semantics section 1, L4, O8.
    """

    is_async = False

    def execute(self, attempt: Attempt, intent: Intent) -> Any:
        """Send the write, once. What it returns is kept as ``attempt.response``."""
        raise NotImplementedError

    def observe(self, attempt: Attempt, intent: Intent) -> Observation[Data]:
        """Read the authoritative system, and never write (L4)."""
        raise NotImplementedError

    def reconcile(self, attempt: Attempt, intent: Intent, data: Data) -> Verdict[EffectT]:
        """Compare what was seen with what was intended. Pure (O8)."""
        raise NotImplementedError


class AsyncEffectContract(_ContractClass[Intent, Data, EffectT]):
    """`EffectContract` with async ``execute`` and ``observe``; either may also be a plain method."""

    is_async = True

    def execute(self, attempt: Attempt, intent: Intent) -> Awaitable[Any] | Any:
        """Send the write, once. What it returns is kept as ``attempt.response``."""
        raise NotImplementedError

    def observe(
        self, attempt: Attempt, intent: Intent
    ) -> Coroutine[Any, Any, Observation[Data]] | Observation[Data]:
        """Read the authoritative system, and never write (L4)."""
        raise NotImplementedError

    def reconcile(self, attempt: Attempt, intent: Intent, data: Data) -> Verdict[EffectT]:
        """Compare what was seen with what was intended. Pure (O8)."""
        raise NotImplementedError


_OPTIONAL = frozenset({"authorize", "revalidate"})
_HOOKS = {
    "execute": ("attempt",),
    "observe": ("attempt",),
    "authorize": ("attempt",),
    "revalidate": ("attempt",),
}
_DECLARED = (
    "in_flight_window",
    "execute_timeout",
    "observation_lag",
    "responds_after_effect",
    "key_retention",
    "max_attempts",
    "retry",
    "poll",
    "max_approval_age",
)
_UNWRITTEN = {
    _ContractClass.identity,
    *(
        getattr(cls, hook)
        for cls in (EffectContract, AsyncEffectContract)
        for hook in ("execute", "observe", "reconcile")
    ),
}


def _type_arguments(cls: type) -> tuple[Any, Any]:
    """Intent and effect type, from ``class Refunds(EffectContract[Intent, Data, Effect])``."""
    for base in cls.__mro__:
        for original in base.__dict__.get("__orig_bases__", ()):
            origin = get_origin(original)
            if isinstance(origin, type) and issubclass(origin, _ContractClass) and len(get_args(original)) == 3:
                intent, _, found = get_args(original)
                if not isinstance(intent, TypeVar):
                    return intent, found
    raise ContractError(cls.__name__, "type arguments", "write class …(EffectContract[Intent, Data, Effect])")
