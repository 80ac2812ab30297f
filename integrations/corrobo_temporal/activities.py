"""Effects as activities: called by the same ``execute_activity`` as before, and never sent twice."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar, overload

from temporalio import activity

from corrobo_core import (
    AsyncEffect,
    AsyncEffectContract,
    AsyncEffectRunner,
    Attempt,
    BaseEffect,
    ContractError,
    CorroboError,
    Disposition,
    Effect,
    EffectContract,
    EffectResult,
    EffectRunner,
    LedgerError,
    Reason,
    UsageError,
)
from corrobo_core.definition import Definition
from corrobo_core.ledgers.ports import Ledger
from corrobo_temporal._pulse import beating, beating_async, working_on
from corrobo_temporal.failures import EffectNotYetError, EffectStatus, error_for, refusal_for
from corrobo_temporal.workflow import OBSERVE_SUFFIX

__all__ = ["LOOK_AGAIN_FOR", "effect_activity", "observe_activity"]

P = ParamSpec("P")
R = TypeVar("R")
IntentT = TypeVar("IntentT")

LOOK_AGAIN_FOR = timedelta(minutes=10)

_LOOKING_MAY_HELP = frozenset(
    {
        Reason.NOT_ESTABLISHED,
        Reason.ABSENCE_NOT_PROVEN,
        Reason.RECONCILE_FAILED,
        Reason.STILL_RUNNING,
        Reason.IN_FLIGHT_NOT_RULED_OUT,
    }
)

Context = Callable[[], Mapping[str, Any]]
Answer = Callable[[EffectResult[Any]], Any]


# -- activities ----------------------------------------------------------------------------------------------


@overload
def effect_activity(
    effect: AsyncEffect[P, R],
    ledger: Ledger,
    *,
    activity_name: str | None = None,
    look_again_for: timedelta = LOOK_AGAIN_FOR,
    context: Context | None = None,
) -> Callable[P, Coroutine[Any, Any, R]]: ...
@overload
def effect_activity(
    effect: Effect[P, R],
    ledger: Ledger,
    *,
    activity_name: str | None = None,
    look_again_for: timedelta = LOOK_AGAIN_FOR,
    context: Context | None = None,
) -> Callable[P, R]: ...
@overload
def effect_activity(
    effect: AsyncEffectContract[IntentT, Any, R],
    ledger: Ledger,
    *,
    activity_name: str | None = None,
    look_again_for: timedelta = LOOK_AGAIN_FOR,
    context: Context | None = None,
) -> Callable[[IntentT], Coroutine[Any, Any, R]]: ...
@overload
def effect_activity(
    effect: EffectContract[IntentT, Any, R],
    ledger: Ledger,
    *,
    activity_name: str | None = None,
    look_again_for: timedelta = LOOK_AGAIN_FOR,
    context: Context | None = None,
) -> Callable[[IntentT], R]: ...
def effect_activity(
    effect: BaseEffect[Any, Any],
    ledger: Ledger,
    *,
    activity_name: str | None = None,
    look_again_for: timedelta = LOOK_AGAIN_FOR,
    context: Context | None = None,
) -> Callable[..., Any]:
    """Make an effect an activity, with the effect's name, parameters and return value.

    Register it like any other. Give calls of it a ``schedule_to_close_timeout`` and no ``maximum_attempts``: the
    server makes pass after pass until the effect is confirmed, and with one attempt the first "come back later"
    is the end. It heartbeats by itself where a call has a ``heartbeat_timeout``.

    Args:
        effect: sync for a sync activity (the worker needs a thread pool), async for an async one.
        ledger: where operations are recorded.
        activity_name: the name to register; the function's name, or a contract's ``type``, unless given.
        look_again_for: how long to keep looking when evidence cannot tell, before a person is asked.
        context: called in the activity before each pass; for ``authorize`` and ``revalidate`` only (I6).

    Returns:
        an ``@activity.defn`` function. Called, it returns the effect, or raises

        * `EffectNotYetError`: come back later. The server retries it when the next pass is useful.
        * `EffectReplanError`, `EffectReviewError`, `EffectInvestigateError`, `EffectValueLostError`: final.
        * ``ApplicationError`` with the core error's name as type: refused; retried only for a LedgerNotReadyError.
        * UsageError: outside an activity.

    Raises:
        ContractError: the effect is incomplete, or has a keyword-only parameter. Not retryable.

    Source: semantics L2, section 5, O5.
    """
    if not isinstance(look_again_for, timedelta) or look_again_for < timedelta():
        raise UsageError("effect_activity", "look_again_for: pass a timedelta that is not negative")
    name = activity_name or _effect(effect, "effect_activity").effect_name
    return _activity(effect, ledger, name, "run", lambda result: _answer(result, look_again_for), context)


def observe_activity(
    effect: BaseEffect[P, R],
    ledger: Ledger,
    *,
    activity_name: str | None = None,
) -> Callable[P, Any]:
    """The reading half of `effect_activity`: looks once, and never writes.

    `WorkflowEffects` asks it when the activity itself has run out of time. `CorroboPlugin` registers it; who
    registers by hand adds it beside the effect's activity.

    Args:
        effect: as given to `effect_activity`.
        ledger: likewise.
        activity_name: of the effect's activity; this one is called the same, with ``.observe`` after it.

    Returns:
        an ``@activity.defn`` function. Called, it returns the effect if it is confirmed; every error is final.

    Raises:
        ContractError: as `effect_activity`.

    Source: semantics L4, O5.
    """
    name = activity_name or _effect(effect, "observe_activity").effect_name
    return _activity(effect, ledger, name + OBSERVE_SUFFIX, "observe", _answer_finally, None)


def _effect(effect: BaseEffect[P, R], what: str) -> BaseEffect[P, R]:
    if not isinstance(effect, BaseEffect):
        raise UsageError(what, f"takes an effect, not a {type(effect).__name__}; see adopt_activity")
    return effect


def _activity(
    effect: BaseEffect[Any, Any], ledger: Ledger, name: str, program: str, answer: Answer, context: Context | None
) -> Callable[..., Any]:
    watched = _Watched(effect)

    def prepare() -> Mapping[str, Any]:
        if not activity.in_activity():
            raise UsageError(name, "is an activity: call it by workflow.execute_activity, or run the effect itself")
        return context() if context else {}

    def run(*args: Any, **kwargs: Any) -> Any:
        runner = EffectRunner(ledger, context=prepare(), observe_now=program == "observe")
        with beating(), _refusals():
            result = getattr(runner, program)(watched, *args, **kwargs)
        return answer(result)

    async def run_async(*args: Any, **kwargs: Any) -> Any:
        runner = AsyncEffectRunner(ledger, context=prepare(), observe_now=program == "observe")
        with beating_async(), _refusals():
            result = await getattr(runner, program)(watched, *args, **kwargs)
        return answer(result)

    fn = _with_signature_of(effect, run_async if effect.is_async else run)
    # A thread must not be interrupted between the write and its record; a body can ask activity.is_cancelled().
    return activity.defn(name=name, no_thread_cancel_exception=True)(fn)


def _with_signature_of(effect: BaseEffect[Any, Any], fn: Callable[..., Any]) -> Callable[..., Any]:
    """Temporal reads names, kinds and types from the function to decode what it is called with."""
    signature = effect.call_signature
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            raise ContractError(
                effect.definition.type, f"parameter {parameter.name}", "is keyword-only, which activities cannot be"
            )
    fn.__name__ = fn.__qualname__ = effect.effect_name
    fn.__module__, fn.__doc__ = type(effect).__module__, effect.__doc__
    if isinstance(effect, (Effect, AsyncEffect)):
        fn.__module__, fn.__qualname__ = effect.__module__, effect.__qualname__
    fn.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    fn.__annotations__["return"] = signature.return_annotation
    fn.__signature__ = signature  # type: ignore[attr-defined]  # inspect reads it
    return fn


class _Watched(BaseEffect[Any, Any]):
    """The same effect, whose attempts also end the heartbeats when their time is over."""

    def __init__(self, effect: BaseEffect[Any, Any]) -> None:
        whole = effect.definition
        execute = whole.hooks["execute"]
        hook = replace(execute, fn=_watched(execute.fn, is_async=execute.is_async))
        self._definition = replace(whole, hooks={**whole.hooks, "execute": hook})

    @property
    def definition(self) -> Definition:
        return self._definition


def _watched(fn: Callable[..., Any], *, is_async: bool) -> Callable[..., Any]:
    def execute(attempt: Attempt, *args: Any, **kwargs: Any) -> Any:
        with working_on(attempt):
            return fn(attempt, *args, **kwargs)

    async def execute_async(attempt: Attempt, *args: Any, **kwargs: Any) -> Any:
        with working_on(attempt):
            return await fn(attempt, *args, **kwargs)

    return execute_async if is_async else execute


# -- answers -------------------------------------------------------------------------------------------------


class _refusals(AbstractContextManager[None]):  # noqa: N801  # used like a function
    """Core errors leave as failures that hold no data in their message."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, CorroboError):
            # Only a ledger's error has a cause worth showing that cannot hold the application's data.
            raise refusal_for(error) from (error if isinstance(error, LedgerError) else None)


def _answer(result: EffectResult[R], look_again_for: timedelta) -> R:
    if result.disposition is Disposition.COMPLETE and not result.value_lost:
        return result.unwrap()
    status = EffectStatus.of(result)
    if _comes_again(result, look_again_for):
        raise EffectNotYetError(status, next_retry_delay=result.wait or None, final=False)
    raise error_for(status)


def _answer_finally(result: EffectResult[R]) -> R:
    if result.disposition is Disposition.COMPLETE and not result.value_lost:
        return result.unwrap()
    raise error_for(EffectStatus.of(result))


def _comes_again(result: EffectResult[Any], look_again_for: timedelta) -> bool:
    if result.disposition is None or result.disposition is Disposition.RETRY:
        return True
    if result.disposition is not Disposition.INVESTIGATE or result.reason not in _LOOKING_MAY_HELP:
        return False
    return result.looking_since is None or result.now < result.looking_since + look_again_for
