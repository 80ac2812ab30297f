"""Calling effects from workflow code.

For the sandbox: no driver, no environment, no file, and nothing that differs at replay.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ParamSpec, TypeVar, get_type_hints, overload

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, RetryState, is_cancelled_exception

from corrobo_core import BaseEffect, UsageError
from corrobo_temporal._sdk import activity_name
from corrobo_temporal._sizes import MAX_ARGUMENT_BYTES, Sizes
from corrobo_temporal.failures import disposition_of, error_for
from corrobo_temporal.gates import CallbackGates
from corrobo_temporal.people import People

__all__ = ["OBSERVE_SUFFIX", "WorkflowEffects"]

P = ParamSpec("P")
R = TypeVar("R")

OBSERVE_SUFFIX = ".observe"

# Stated in full, so that no other default ever changes what a running workflow does.
_PASSES = RetryPolicy(
    initial_interval=timedelta(seconds=1), backoff_coefficient=2.0, maximum_interval=timedelta(minutes=1)
)
_LOOKS = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=2.0,
    maximum_interval=timedelta(seconds=10),
    non_retryable_error_types=["NotFoundError"],  # the worker has no such activity
)


@dataclass(frozen=True)
class _Target:
    name: str
    signature: inspect.Signature

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Positional, and all of them: Temporal decodes by type only where the number is right."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return list(bound.args)


class WorkflowEffects:
    """Runs effects from a workflow, and follows them through. Make one in ``@workflow.init``.

    It takes no retry policy: passes are repeated until the effect is confirmed or the time is over, and one that
    finds nothing to do comes back when the ledger says so.

    Args:
        schedule_to_close_timeout: how long the workflow waits for an effect, all passes together.
        start_to_close_timeout: bound of one pass; the same unless given.
        heartbeat_timeout: how soon a dead worker is noticed. Effect activities heartbeat by themselves.
        task_queue: where the activity workers listen; the workflow's own queue unless given.
        observe_timeout: how long to wait for the last look, once the time is over.
        cancellation_type: a cancelled workflow waits to hear what became of the effect, unless told otherwise.
        gates: where people are asked when the effect needs them; the times above do not count meanwhile.
        decisions_task_queue: of workers with `decision_activities`, in the reviewer's role. Both or neither.
        decisions_timeout: how long to wait for such a worker.
        look_every: how often to make another pass while a question is open; it notices decisions made elsewhere.
        answer_within: deadline of each question; after it `run` raises what waits. None: it waits for ever.
        max_argument_bytes: of one effect; what a server takes, unless it is set up otherwise or a codec compresses.
            Effects with more than twice as many in all are not started in one workflow task.

    Raises:
        UsageError: outside a workflow; gates without a queue for decisions, or the other way round. Not retryable.

    Source: semantics L2, L3, O5, A6.
    """

    def __init__(
        self,
        *,
        schedule_to_close_timeout: timedelta,
        start_to_close_timeout: timedelta | None = None,
        heartbeat_timeout: timedelta | None = timedelta(seconds=30),
        task_queue: str | None = None,
        observe_timeout: timedelta = timedelta(seconds=30),
        cancellation_type: workflow.ActivityCancellationType = (
            workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
        ),
        gates: CallbackGates | None = None,
        decisions_task_queue: str | None = None,
        decisions_timeout: timedelta = timedelta(minutes=1),
        look_every: timedelta = timedelta(minutes=5),
        answer_within: timedelta | None = None,
        max_argument_bytes: int = MAX_ARGUMENT_BYTES,
    ) -> None:
        self._people: People | None = None
        if gates is not None and decisions_task_queue is not None:
            self._people = People(gates, decisions_task_queue, decisions_timeout, look_every, answer_within)
        elif gates is not None or decisions_task_queue is not None:
            raise UsageError("WorkflowEffects", "pass gates and decisions_task_queue, or neither")
        if not workflow.in_workflow():
            raise UsageError("WorkflowEffects", "is for one workflow: make one in @workflow.init")
        self._schedule_to_close = schedule_to_close_timeout
        self._start_to_close = start_to_close_timeout
        self._heartbeat = heartbeat_timeout
        self._task_queue = task_queue
        self._observe_timeout = observe_timeout
        self._cancellation = cancellation_type
        self._sizes = Sizes(max_argument_bytes)

    @overload
    async def run(self, effect: BaseEffect[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    async def run(self, effect: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    async def run(self, effect: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    async def run(self, effect: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Make sure that the effect happens once.

        Args:
            effect: the effect, or an ``@activity.defn`` stub without a body that has its name and types.
            *args: its intent, as the function takes it after ``attempt``.
            **kwargs: likewise.

        Returns:
            the effect.

        Raises:
            EffectReplanError: make a new decision with a new id.
            EffectReviewError, EffectInvestigateError: a person must decide, and there are no gates, or nobody
                answered in time. Running again only looks.
            DecisionsUnavailableError: with gates: no worker records decisions.
            EffectNotYetError: the time is over, and nothing is decided. Running again goes on.
            EffectValueLostError: the effect happened, its value is gone.
            ActivityError: refused (its cause says why), cancelled, or no worker has said anything.
            ApplicationError: of type IntentError: the arguments are larger than Temporal takes.
        """
        target = _target(effect)
        arguments = target.arguments(args, kwargs)
        if self._people is None:
            return await self._follow(target, arguments)
        return await self._people.follow(lambda: self._follow(target, arguments))

    async def _follow(self, target: _Target, arguments: list[Any]) -> Any:
        deadline = workflow.now() + self._schedule_to_close
        try:
            return await self._execute(target, arguments)
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            failed, status = error, disposition_of(error)
        if failed.retry_state is not RetryState.NON_RETRYABLE_FAILURE:
            # The server gives up as soon as the next pass would be too late. Look once more at the end.
            await _sleep_until(deadline)
            try:
                return await self._execute_look(target, arguments)
            except ActivityError as error:
                if is_cancelled_exception(error):
                    raise
                status = disposition_of(error) or status
        if status is None:
            raise failed
        raise error_for(status, final=False) from failed

    @overload
    async def observe(self, effect: BaseEffect[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    async def observe(
        self, effect: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> R: ...
    @overload
    async def observe(self, effect: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    async def observe(self, effect: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Look at the world for this effect, and only look, whatever is found.

        Returns:
            the effect, if it is confirmed.

        Raises:
            TemporalEffectError: as `run`; EffectNotYetError also when nothing was ever sent.

        Source: semantics L4.
        """
        target = _target(effect)
        try:
            return await self._execute_look(target, target.arguments(args, kwargs))
        except ActivityError as error:
            status = None if is_cancelled_exception(error) else disposition_of(error)
            if status is None:
                raise
            raise error_for(status, final=False) from error

    # -- activities ------------------------------------------------------------------------------------------

    async def _execute(self, target: _Target, arguments: list[Any]) -> Any:
        await self._sizes.room_for(target.name, arguments)
        return await workflow.execute_activity(
            target.name,
            args=arguments,
            result_type=_result_type(target),
            task_queue=self._task_queue,
            schedule_to_close_timeout=self._schedule_to_close,
            start_to_close_timeout=self._start_to_close,
            heartbeat_timeout=self._heartbeat,
            retry_policy=_PASSES,
            cancellation_type=self._cancellation,
        )

    async def _execute_look(self, target: _Target, arguments: list[Any]) -> Any:
        await self._sizes.room_for(target.name, arguments)
        return await workflow.execute_activity(
            target.name + OBSERVE_SUFFIX,
            args=arguments,
            result_type=_result_type(target),
            task_queue=self._task_queue,
            schedule_to_close_timeout=self._observe_timeout,
            heartbeat_timeout=self._heartbeat,
            retry_policy=_LOOKS,
            cancellation_type=self._cancellation,
        )


async def _sleep_until(deadline: datetime) -> None:
    left = deadline - workflow.now()
    if left > timedelta():
        await workflow.sleep(left)


def _result_type(target: _Target) -> Any:
    returned = target.signature.return_annotation
    return None if returned in (Any, inspect.Signature.empty) else returned


def _target(effect: object) -> _Target:
    if isinstance(effect, BaseEffect):
        return _Target(effect.effect_name, effect.call_signature)
    name = activity_name(effect) if callable(effect) else None
    if name is None:
        raise UsageError(
            "WorkflowEffects",
            "takes an effect or an @activity.defn stub. If this is an effect, the sandbox has imported it "
            "again: import your effects under workflow.unsafe.imports_passed_through(), or use CorroboPlugin",
        )
    assert callable(effect)
    hints = get_type_hints(effect)
    signature = inspect.signature(effect).replace(return_annotation=hints.get("return", Any))
    return _Target(name, signature)
