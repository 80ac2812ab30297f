"""Effects as DBOS steps: called like functions, from workflow code or from anywhere else.

Source: semantics L2, O5, C9; design "Decorate a DBOS step".
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, cast, overload

from dbos import StepReservation

from corrobo_core import (
    AsyncEffect,
    AsyncEffectContract,
    AsyncEffectRunner,
    Attempt,
    BaseEffect,
    Check,
    Effect,
    EffectContract,
    EffectResult,
    EffectRunner,
    LedgerNotReadyError,
    Observation,
    UsageError,
)
from corrobo_core.contract import Observed
from corrobo_core.ledgers.ports import Ledger
from corrobo_dbos import engine
from corrobo_dbos.alone import Turn
from corrobo_dbos.checkpoint import checkpoint_of, result_from
from corrobo_dbos.engine import Place
from corrobo_dbos.gates import DbosGates
from corrobo_dbos.patience import Look, Reply, until_decided
from corrobo_dbos.people import Pass, People

__all__ = [
    "AsyncEffectStep",
    "AsyncFunctionStep",
    "EffectStep",
    "EffectStepDecorator",
    "FunctionStep",
    "effect_step",
]

P = ParamSpec("P")
D = TypeVar("D")
R = TypeVar("R")
Intent = TypeVar("Intent")

_ZERO = timedelta()


class _Step(Generic[P, R]):
    """What sync and async steps share: an effect, its ledger, and how patient to be."""

    def __init__(
        self,
        effect: BaseEffect[P, R],
        ledger: Ledger,
        name: str | None,
        look_again_for: timedelta,
        gates: DbosGates | None = None,
    ) -> None:
        self._effect, self._ledger, self._gates = effect, ledger, gates
        self._name, self._look_again_for = name, look_again_for
        self._context: dict[str, Any] = {}
        self.__name__ = effect.effect_name
        self.__qualname__ = getattr(effect, "__qualname__", type(effect).__qualname__)
        self.__module__, self.__doc__ = effect.__module__, effect.__doc__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._effect!r}>"

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith(engine.MARK):  # a DBOS decorator marks what it is put on
            raise self._refusal(
                "is a step already, and evidence decides what is retried; take DBOS's decorator off it"
            )
        super().__setattr__(name, value)

    @property
    def effect(self) -> BaseEffect[P, R]:
        """The effect itself, for runners and review desks."""
        return self._effect

    @property
    def name(self) -> str:
        """The step's name in DBOS's history: compatibility data, as the operation type is that it is taken from.

        Raises:
            ContractError: the effect has no hooks yet. Not retryable.
        """
        return self._name or self._effect.definition.type

    @property
    def __signature__(self) -> inspect.Signature:
        return self._effect.call_signature

    def with_context(self, **context: Any) -> Self:
        """The same step, called by somebody: goes to ``authorize`` and ``revalidate`` only, never stored (I6)."""
        other = copy.copy(self)
        other._context = {**self._context, **context}
        return other

    def _operation_id(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return self._effect.definition.bind(args, kwargs)[0]

    def _checkpoint(self, result: EffectResult[R]) -> dict[str, Any]:
        return checkpoint_of(result, self._effect.definition)

    def _result(self, checkpoint: object, operation_id: str) -> EffectResult[R]:
        return result_from(checkpoint, self._effect.definition, operation_id, self.name)

    def _place(self) -> Place:
        where = engine.place()
        if where is Place.STEP:
            raise self._refusal(
                "was called inside a DBOS step; an effect is a step itself: call it from workflow code"
            )
        return where

    def _people(self, operation_id: str) -> People | None:
        gates = self._gates
        return None if gates is None else People(gates, engine.workflow_id(), operation_id)

    def _refusal(self, problem: str) -> UsageError:
        return UsageError(self._who, problem)

    @property
    def _who(self) -> str:
        return f"effect_step {self.__name__!r}"


class EffectStep(_Step[P, R]):
    """A synchronous effect as a DBOS step. Made by `effect_step`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Make sure that the effect happens once, and return it.

        In workflow code this is one step, which goes on until evidence decides. Outside any workflow it is one
        pass.

        Raises:
            ReplanError, ReviewError, InvestigateError, EffectValueError: what is known and what to do.
            NotYetError: outside a workflow only; call again at ``retry_at``. Retryable.
            IntentError, IdentityError, IdentityReused, ContractError: refused, nothing sent. Not retryable.
            LedgerError: the ledger cannot be used. In a workflow, one that does not answer is waited for.
            CheckpointError: the workflow is not deterministic; nothing sent. Not retryable.
            UsageError: called inside a step or on an event loop; nothing sent. Not retryable.
        """
        where, runner = self._place(), EffectRunner(self._ledger, context=self._context)
        effect = cast("Effect[P, R]", self._effect)
        if where is Place.OUTSIDE:
            return runner.run(effect, *args, **kwargs).unwrap()
        if engine.on_event_loop():
            raise self._refusal(
                "is a sync effect in an async workflow, whose event loop it would block; make the effect async"
            )
        reserved = engine.reserve()
        operation_id = self._operation_id(args, kwargs)

        def look(now: bool) -> Reply:
            try:
                return (runner.observing_now() if now else runner).run(effect, *args, **kwargs)
            except LedgerNotReadyError as error:
                return error

        def step(reserved: StepReservation, after: Pass) -> EffectResult[R]:
            def work() -> dict[str, Any]:
                result = _drive(self._look_again_for, look)
                if people is not None:
                    people.take_back(after, result)
                return self._checkpoint(result)

            return self._result(engine.run(reserved, self.name, work), operation_id)

        people = self._people(operation_id)
        if people is None:
            return step(reserved, Pass()).unwrap()
        return people.waited_for(reserved, step).unwrap()


class AsyncEffectStep(_Step[P, R]):
    """An asynchronous effect as a DBOS step. Made by `effect_step`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[None, None, R]:
        """`EffectStep.__call__` for async workflows; several may run at once, as in `asyncio.gather`."""
        if self._place() is Place.OUTSIDE:
            return self._once(*args, **kwargs)
        if not engine.on_event_loop():
            raise self._refusal(
                "is an async effect in a sync workflow, which cannot await it; make the workflow async"
            )
        # Here, and not when it is first awaited: step ids follow the order of the calls.
        reserved = engine.reserve()
        turn = None if self._gates is None else Turn(self._who, engine.workflow_id(), reserved.step_id)
        return self._as_step(reserved, turn, *args, **kwargs)

    async def _once(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return (await self._runner().run(self._effect, *args, **kwargs)).unwrap()

    async def _as_step(self, reserved: StepReservation, turn: Turn | None, *args: P.args, **kwargs: P.kwargs) -> R:
        operation_id, runner = self._operation_id(args, kwargs), self._runner()

        async def look(now: bool) -> Reply:
            try:
                return await (runner.observing_now() if now else runner).run(self._effect, *args, **kwargs)
            except LedgerNotReadyError as error:
                return error

        async def step(reserved: StepReservation, after: Pass) -> EffectResult[R]:
            async def work() -> dict[str, Any]:
                result = await _drive_async(self._look_again_for, look)
                if people is not None:
                    await people.take_back_async(after, result)
                return self._checkpoint(result)

            return self._result(await engine.run_async(reserved, self.name, work), operation_id)

        people = self._people(operation_id)
        if people is None or turn is None:
            return (await step(reserved, Pass())).unwrap()
        with turn:
            return (await people.waited_for_async(reserved, step)).unwrap()

    def _runner(self) -> AsyncEffectRunner:
        return AsyncEffectRunner(self._ledger, context=self._context)


# -- one step's passes -----------------------------------------------------------------------------------------


def _drive(look_again_for: timedelta, look: Callable[[bool], Reply]) -> EffectResult[Any]:
    program = until_decided(look_again_for)
    try:
        ask = next(program)
        while True:
            if isinstance(ask, Look):
                ask = program.send(look(ask.now))
            else:
                engine.sleep(ask.seconds)
                ask = next(program)
    except StopIteration as decided:
        result: EffectResult[Any] = decided.value
        return result


async def _drive_async(
    look_again_for: timedelta, look: Callable[[bool], Coroutine[Any, Any, Reply]]
) -> EffectResult[Any]:
    program = until_decided(look_again_for)
    reply: Reply | None = None
    while True:
        try:  # around the send alone: StopIteration cannot pass through a coroutine
            ask = program.send(reply)
        except StopIteration as decided:
            result: EffectResult[Any] = decided.value
            return result
        if isinstance(ask, Look):
            reply = await look(ask.now)
        else:
            await engine.sleep_async(ask.seconds)
            reply = None


# -- over @effect: hooks are added through the step ----------------------------------------------------------


class FunctionStep(EffectStep[P, R]):
    """An `Effect` as a step; takes the hooks that the effect takes."""

    def observe(
        self, fn: Callable[Concatenate[Attempt, P], Observation[D]] | Callable[[Attempt], Observation[D]], /
    ) -> Observed[P, D, R]:
        """`Effect.observe`."""
        return cast("Effect[P, R]", self._effect).observe(fn)

    def authorize(self, fn: Callable[Concatenate[Attempt, P], Check] | Callable[[Attempt], Check], /) -> None:
        """`Effect.authorize`."""
        cast("Effect[P, R]", self._effect).authorize(fn)

    def revalidate(self, fn: Callable[Concatenate[Attempt, P], Check] | Callable[[Attempt], Check], /) -> None:
        """`Effect.revalidate`."""
        cast("Effect[P, R]", self._effect).revalidate(fn)


class AsyncFunctionStep(AsyncEffectStep[P, R]):
    """An `AsyncEffect` as a step; takes the hooks that the effect takes."""

    def observe(
        self,
        fn: Callable[Concatenate[Attempt, P], Coroutine[Any, Any, Observation[D]] | Observation[D]]
        | Callable[[Attempt], Coroutine[Any, Any, Observation[D]] | Observation[D]],
        /,
    ) -> Observed[P, D, R]:
        """`AsyncEffect.observe`."""
        return cast("AsyncEffect[P, R]", self._effect).observe(fn)

    def authorize(
        self,
        fn: Callable[Concatenate[Attempt, P], Coroutine[Any, Any, Check] | Check]
        | Callable[[Attempt], Coroutine[Any, Any, Check] | Check],
        /,
    ) -> None:
        """`AsyncEffect.authorize`."""
        cast("AsyncEffect[P, R]", self._effect).authorize(fn)

    def revalidate(
        self,
        fn: Callable[Concatenate[Attempt, P], Coroutine[Any, Any, Check] | Check]
        | Callable[[Attempt], Coroutine[Any, Any, Check] | Check],
        /,
    ) -> None:
        """`AsyncEffect.revalidate`."""
        cast("AsyncEffect[P, R]", self._effect).revalidate(fn)


# -- the decorator -------------------------------------------------------------------------------------------


class EffectStepDecorator(Protocol):
    """What `effect_step` returns: makes a step of an effect of its kind."""

    @overload
    def __call__(self, effect: AsyncEffect[P, R], /) -> AsyncFunctionStep[P, R]: ...
    @overload
    def __call__(self, effect: Effect[P, R], /) -> FunctionStep[P, R]: ...
    @overload
    def __call__(self, effect: AsyncEffectContract[Intent, Any, R], /) -> AsyncEffectStep[[Intent], R]: ...
    @overload
    def __call__(self, effect: EffectContract[Intent, Any, R], /) -> EffectStep[[Intent], R]: ...


def effect_step(
    ledger: Ledger,
    *,
    name: str | None = None,
    look_again_for: timedelta = timedelta(minutes=10),
    gates: DbosGates | None = None,
) -> EffectStepDecorator:
    """Make an effect a DBOS step: over ``@effect``, or as ``effect_step(ledger)(refund)``.

    Each call in a workflow is one step. It waits inside, for as long as the effect is under way, and DBOS
    checkpoints what was found out. A workflow's timeout or cancellation ends the waiting.

    With ``gates``, an effect that needs a person asks for one and waits: further steps follow the first, so that a
    workflow may wait in one such effect at a time, and starts a child workflow for each of several.

    Args:
        ledger: where operations are recorded.
        name: the step's name in DBOS's history; the operation type unless given. Never changed once used.
        look_again_for: how long evidence may stay unclear before a person is asked or
            `InvestigateError` is raised.
        gates: on the same ledger; without them `ReviewError` and `InvestigateError` say what waits.

    Raises:
        UsageError: an argument is not usable, or the effect is a DBOS step already. Not retryable.

    Source: semantics L2, O5, C9, A6.
    """
    if not isinstance(ledger, Ledger):
        raise UsageError("effect_step", "takes a ledger first: @effect_step(ledger), over @effect")
    if name is not None and not (isinstance(name, str) and name and name.isprintable()):
        raise UsageError("effect_step", "name: must be printable text")
    if not isinstance(look_again_for, timedelta) or look_again_for < _ZERO:
        raise UsageError("effect_step", "look_again_for: must be a timedelta, zero or more")

    if gates is not None and not (isinstance(gates, DbosGates) and gates.ledger is ledger):
        raise UsageError("effect_step", "gates: must be a DbosGates on the same ledger")

    def decorate(effect: Any, /) -> Any:
        _refuse_dbos_functions(effect)
        if not isinstance(effect, BaseEffect):
            raise UsageError("effect_step", f"takes an effect, not a {type(effect).__name__}; put it over @effect")
        return _kind_of(effect)(effect, ledger, name, look_again_for, gates)

    return decorate


def _kind_of(effect: BaseEffect[Any, Any]) -> type[_Step[Any, Any]]:
    if isinstance(effect, Effect):
        return FunctionStep
    if isinstance(effect, AsyncEffect):
        return AsyncFunctionStep
    return AsyncEffectStep if effect.is_async else EffectStep


def _refuse_dbos_functions(effect: object) -> None:
    if engine.is_dbos_function(effect) or engine.is_dbos_function(getattr(effect, "fn", None)):
        raise UsageError(
            "effect_step",
            "makes the step itself, and evidence decides what is retried; take @DBOS.step off the function",
        )
