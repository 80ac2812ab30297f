"""Activities that exist already, as effects: the body stays as it is and keeps its decorator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, ParamSpec, TypedDict, TypeVar, Unpack, get_type_hints, overload

from corrobo_core import AsyncEffect, Attempt, Backoff, Effect, RetryPolicy, UsageError
from corrobo_core import effect as make_effect
from corrobo_temporal._sdk import activity_name

__all__ = ["Declarations", "adopt_activity"]

P = ParamSpec("P")
R = TypeVar("R")


class Declarations(TypedDict, total=False):
    """What `corrobo_core.effect` takes beside type and identity."""

    in_flight_window: timedelta | None
    execute_timeout: timedelta | None
    observation_lag: timedelta
    responds_after_effect: bool
    key_retention: timedelta | None
    max_attempts: int | None
    retry: RetryPolicy | None
    poll: Backoff | None
    volatile: tuple[str, ...]
    max_intent_bytes: int


@overload
def adopt_activity(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload]
    fn: Callable[P, Coroutine[Any, Any, R]],
    type: str,
    *,
    identity: Callable[..., str],
    **declarations: Unpack[Declarations],
) -> AsyncEffect[P, R]: ...
@overload
def adopt_activity(
    fn: Callable[P, R], type: str, *, identity: Callable[..., str], **declarations: Unpack[Declarations]
) -> Effect[P, R]: ...
def adopt_activity(
    fn: Callable[..., Any], type: str, *, identity: Callable[..., str], **declarations: Unpack[Declarations]
) -> Effect[Any, Any] | AsyncEffect[Any, Any]:
    """Make an existing activity the body of an effect of the same name.

    Add ``@….observe`` and ``@….reconcile`` to what this returns, and register ``effect_activity(…, ledger)`` of it
    in place of the activity; workflows call it as before. The body keeps its parameters, and reaches its attempt,
    with the key for the provider, by `corrobo_core.current_attempt`.

    Args:
        fn: an ``@activity.defn`` function, or a method of an instance.
        type: the operation type, such as ``payments/charge``. Never changed once used.
        identity: called with the parameters by keyword; returns the operation id.
        **declarations: as `corrobo_core.effect` takes them.

    Raises:
        UsageError: it is no activity, or a dynamic one. Not retryable.
        ContractError: as `corrobo_core.effect`.

    Source: semantics section 1, I1.
    """
    name = activity_name(fn)
    if name is None:
        raise UsageError("adopt_activity", "takes an @activity.defn function with a name; for others use @effect")
    adopted: Effect[Any, Any] | AsyncEffect[Any, Any]
    adopted = make_effect(type, identity=identity, **declarations)(_body(fn, name))
    return adopted


def _body(fn: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function with the attempt before its parameters, and its annotations resolved."""
    if inspect.iscoroutinefunction(fn):

        async def call_async(attempt: Attempt, /, *args: Any, **kwargs: Any) -> Any:
            return await fn(*args, **kwargs)

        body: Callable[..., Any] = call_async
    else:

        def call(attempt: Attempt, /, *args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

        body = call
    first = inspect.Parameter("attempt", inspect.Parameter.POSITIONAL_ONLY)
    body.__signature__ = inspect.Signature([first, *inspect.signature(fn).parameters.values()])  # type: ignore[attr-defined]  # inspect reads it
    body.__annotations__ = get_type_hints(fn, include_extras=True)
    body.__name__ = body.__qualname__ = name
    body.__module__, body.__doc__ = fn.__module__, fn.__doc__
    return body
