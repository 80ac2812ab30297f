"""Drivers: they perform the lifecycle's commands on a ledger and a contract. One is synchronous, one not.

Source: semantics L2, L7, L9, C6.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import Any, ParamSpec, Self, TypeVar

from corrobo_core.attempt import running_attempt
from corrobo_core.commands import (
    Claim,
    Command,
    Execute,
    Executed,
    HookCommand,
    LedgerCommand,
    Open,
    Raised,
    Record,
    Written,
)
from corrobo_core.contract import BaseEffect, SyncEffect
from corrobo_core.definition import Definition
from corrobo_core.errors import ContractError, UsageError
from corrobo_core.hooks import HookCall, Hooks
from corrobo_core.ledgers.ports import Ledger
from corrobo_core.lifecycle import Call, Conclusion, Program, observe, run
from corrobo_core.records import Disposition, EffectResult, Operation, OperationKey, Outcome, Reason
from corrobo_core.values import LOST

__all__ = ["AsyncEffectRunner", "EffectRunner"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class _Pass:
    """What both drivers keep while one pass runs."""

    def __init__(
        self,
        ledger: Ledger,
        definition: Definition,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        context: Mapping[str, Any],
        observe_now: bool,
    ) -> None:
        operation_id, bound = definition.bind(args, kwargs)
        self.ledger, self.definition = ledger, definition
        self.key = OperationKey(ledger.namespace, operation_id, definition.type)
        self.nonce = os.urandom(8).hex()
        self.call = Call(self.nonce, self.key, bound.intent, bound.fingerprint, definition.policy, observe_now)
        redact: Callable[[str], str] | None = getattr(ledger, "redact", None)
        self.hooks = Hooks(definition, bound, lambda: ledger.idempotency_key(self.key), context, redact)
        self._reserved: str | None = None

    def __enter__(self) -> Self:
        self.ledger.pass_started(self.nonce)
        return self

    def __exit__(self, *_: object) -> None:
        self.ledger.pass_ended(self.nonce)
        if self._reserved is not None:  # L7: nobody makes this attempt any more, and no record says so
            self.ledger.abandon(self.key, self._reserved)

    def asking(self, command: LedgerCommand[Any]) -> None:
        """Before a ledger command: from here on the attempt may be reserved."""
        if isinstance(command, Claim) or (isinstance(command, Open) and command.operation.reserved):
            self._reserved = command.operation.nonce

    def answered(self, command: LedgerCommand[Any], reply: Any) -> None:
        """After its reply: is an attempt of this pass still without a record?"""
        if isinstance(command, Open):
            stored = reply.operation
            # With its reply lost, this pass's reservation can be found under a later write's nonce.
            if not reply.mine and not (stored.reserved and stored.latest.nonce == self._reserved):
                self._reserved = None
        elif isinstance(command, Record) and command.operation.owner is None and isinstance(reply, Written):
            self._reserved = None

    def result(self, end: Conclusion) -> EffectResult[Any]:
        """The public form of a conclusion."""
        operation = end.operation
        if operation is None:
            return EffectResult(
                self.key.type,
                self.key.operation_id,
                disposition=None,
                evidence=None,
                reason=Reason.NEVER_SENT.value,
                explanation="no attempt was ever recorded",
                retry_at=None,
                now=end.now,
            )
        effect, lost = self._effect(end, operation)
        disposition, reason, explanation = operation.disposition, operation.reason, operation.explanation
        retry_at = operation.retry_at
        if end.in_progress_until is not None:
            disposition, reason, retry_at = None, Reason.IN_PROGRESS.value, end.in_progress_until
            explanation = "another pass is making an attempt"
        return EffectResult(
            operation.key.type,
            operation.key.operation_id,
            disposition=disposition,
            evidence=operation.evidence,
            reason=reason,
            explanation=explanation,
            retry_at=retry_at,
            now=end.now,
            effect=effect,
            value_lost=lost,
            looking_since=operation.looking_since,
            token=operation.episode.token if operation.episode else None,
            attempts=operation.attempts,
            history=operation.history,
        )

    def _effect(self, end: Conclusion, operation: Operation) -> tuple[Any, bool]:
        """The confirmed effect, and whether its value is lost (T4)."""
        if end.saw_effect:
            return (None, True) if end.effect is LOST else (end.effect, False)
        if operation.disposition is not Disposition.COMPLETE:
            return None, False
        effect = self.definition.effect_type.decode(operation.effect)
        return (None, True) if effect is LOST else (effect, False)


class _Runner:
    """What both runners share: a ledger and per-call options."""

    def __init__(
        self, ledger: Ledger, *, context: Mapping[str, Any] | None = None, observe_now: bool = False
    ) -> None:
        if not hasattr(ledger, "perform_async"):
            raise UsageError(
                type(self).__name__, f"takes a ledger, such as SqliteLedger(...), not a {type(ledger).__name__}"
            )
        self.ledger = ledger
        self._context = dict(context or {})
        self._observe_now = observe_now

    def with_context(self, **context: Any) -> Self:
        """A runner whose calls carry this, to ``authorize`` and ``revalidate`` only; never stored (I6)."""
        merged = {**self._context, **context}
        return type(self)(self.ledger, context=merged, observe_now=self._observe_now)

    def observing_now(self) -> Self:
        """A runner whose passes read the world also before ``retry_at`` (O5)."""
        return type(self)(self.ledger, context=self._context, observe_now=True)

    def _pass(self, effect: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Pass:
        if not isinstance(effect, BaseEffect):
            raise UsageError(type(self).__name__, f"takes an effect, not a {type(effect).__name__}")
        return _Pass(self.ledger, effect.definition, args, kwargs, self._context, self._observe_now)


class EffectRunner(_Runner):
    """Runs synchronous effects. One call is one pass: it never sleeps and never schedules (L2).

    Args:
        ledger: where operations are recorded.
        context: see `with_context`.
        observe_now: see `observing_now`.
    """

    def run(self, effect: SyncEffect[P, R], /, *args: P.args, **kwargs: P.kwargs) -> EffectResult[R]:
        """Make sure that the effect happens once, as far as this pass can; at most one attempt is made.

        Args:
            effect: a synchronous effect.
            *args: its intent, as the function takes it after ``attempt``.
            **kwargs: likewise.

        Returns:
            what is known and what is safe to do next; ``unwrap()`` it for the effect.

        Raises:
            IntentError, IdentityError, IdentityReused, ContractError: refused, nothing sent. Not retryable.
            LedgerUnavailable: the database did not answer. Retryable; the next pass observes first.

        Source: semantics L2, L3.
        """
        return self._drive(effect, args, kwargs, run)

    def observe(self, effect: SyncEffect[P, R], /, *args: P.args, **kwargs: P.kwargs) -> EffectResult[R]:
        """Look at the world for this operation, and only look, whatever is found.

        Raises:
            CorroboError: as `run`.

        Source: semantics L4, O5.
        """
        return self._drive(effect, args, kwargs, observe)

    def _drive(
        self,
        effect: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        program: Callable[[Call], Program],
    ) -> EffectResult[Any]:
        this = self._pass(effect, args, kwargs)
        if this.definition.is_async:
            raise ContractError(this.definition.type, "effect", "is async; run it with AsyncEffectRunner")
        with this:
            end = _drive(program(this.call), partial(self._perform, this))
        if end.interrupted and this.hooks.seen_error is not None:
            raise this.hooks.seen_error
        return this.result(end)

    def _perform(self, this: _Pass, command: Command[Any]) -> Any:
        if isinstance(command, HookCommand):
            call = this.hooks.prepare(command)
            return _call(call) if isinstance(call, HookCall) else call
        assert isinstance(command, LedgerCommand)
        this.asking(command)
        reply = self.ledger.perform(command)
        this.answered(command, reply)
        return reply


class AsyncEffectRunner(_Runner):
    """Runs effects of both kinds on an event loop; synchronous hooks run in threads.

    Args:
        ledger: where operations are recorded.
        context: see `with_context`.
        observe_now: see `observing_now`.
    """

    async def run(self, effect: BaseEffect[P, R], /, *args: P.args, **kwargs: P.kwargs) -> EffectResult[R]:
        """`EffectRunner.run`. Cancelled, it finishes its bookkeeping first (L7); a hook in a thread is
        waited for, since a thread cannot be cancelled.
        """
        return await self._drive(effect, args, kwargs, run)

    async def observe(self, effect: BaseEffect[P, R], /, *args: P.args, **kwargs: P.kwargs) -> EffectResult[R]:
        """`EffectRunner.observe`."""
        return await self._drive(effect, args, kwargs, observe)

    async def _drive(
        self,
        effect: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        program: Callable[[Call], Program],
    ) -> EffectResult[Any]:
        this = self._pass(effect, args, kwargs)
        with this:
            shield = _Shield()
            end = await shield.run(
                _drive_async(program(this.call), lambda command: self._perform(this, command, shield))
            )
        if shield.cancelled is not None:  # with its message, by which some recognise a cancellation of theirs
            raise asyncio.CancelledError(*shield.cancelled.args)
        if end.interrupted and this.hooks.seen_error is not None:
            raise this.hooks.seen_error
        return this.result(end)

    async def _perform(self, this: _Pass, command: Command[Any], shield: _Shield) -> Any:
        if isinstance(command, LedgerCommand):
            this.asking(command)
            reply = await self.ledger.perform_async(command)
            this.answered(command, reply)
            return reply
        assert isinstance(command, HookCommand)
        call = this.hooks.prepare(command)
        if not isinstance(call, HookCall):
            return call
        if shield.cancelled is not None:  # told to stop while the ledger answered: nothing more is begun
            return _not_begun(command, call)
        return await _call_async(call, shield)


# -- driving -------------------------------------------------------------------------------------------------


def _drive(program: Program, perform: Callable[[Command[Any]], Any]) -> Conclusion:
    try:
        command = next(program)
        while True:
            command = program.send(perform(command))
    except StopIteration as stop:
        end: Conclusion = stop.value
        return end
    finally:
        program.close()


async def _drive_async(program: Program, perform: Callable[[Command[Any]], Coroutine[Any, Any, Any]]) -> Conclusion:
    # StopIteration cannot pass through a coroutine, so the sends are caught one by one.
    try:
        reply: Any = None
        while True:
            try:
                command = program.send(reply)
            except StopIteration as stop:
                end: Conclusion = stop.value
                return end
            reply = await perform(command)
    finally:
        program.close()


def _call(call: HookCall) -> Any:
    try:
        token = running_attempt.set(call.attempt)
        try:
            value = call.call()
        finally:
            running_attempt.reset(token)
        return call.answer(value)
    except BaseException as error:
        return call.failed(error)


async def _call_async(call: HookCall, shield: _Shield) -> Any:
    try:
        token = running_attempt.set(call.attempt)
        try:
            if call.is_async:
                timeout = None if call.timeout is None else call.timeout.total_seconds()
                async with asyncio.timeout(timeout):
                    value = await shield.cancellable(call.call())
            elif call.name == "reconcile":  # pure
                value = call.call()
            else:
                value = await _in_thread(call.call, shield)
        finally:
            running_attempt.reset(token)
        return call.answer(value)
    except GeneratorExit:  # the loop is gone: nothing can be awaited any more, and the attempt is given up
        raise
    except BaseException as error:
        return call.failed(error)


async def _in_thread(fn: Callable[[], T], shield: _Shield) -> T:
    context = copy_context()

    def call() -> T:
        try:
            return context.run(fn)
        except StopIteration as error:  # no future can hold one: whoever waits would wait for ever
            raise RuntimeError("the hook raised StopIteration") from error

    future = asyncio.get_running_loop().run_in_executor(None, call)
    while not future.done():
        try:
            await asyncio.wait((future,))
        except asyncio.CancelledError as error:  # a loop that ends cancels this very task; the thread goes on
            shield.cancelled = error
    return future.result()


def _not_begun(command: HookCommand[Any], call: HookCall) -> Any:
    if isinstance(command, Execute):
        failed: Executed = call.failed(asyncio.CancelledError())
        return replace(failed, outcome=Outcome.NOT_SENT)
    raised: Raised = call.failed(asyncio.CancelledError())
    return raised


class _Shield:
    """Runs a pass in a task of its own: a cancellation reaches its async hooks, and never its bookkeeping (L7)."""

    def __init__(self) -> None:
        self.cancelled: asyncio.CancelledError | None = None
        self._in_hook = False

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for the pass to its end, however often this is cancelled meanwhile."""
        task = asyncio.ensure_future(work)
        while not task.done():
            try:
                await asyncio.wait((task,))
            except asyncio.CancelledError as error:
                self.cancelled = error
                if self._in_hook:
                    task.cancel()
        return task.result()

    async def cancellable(self, hook: Awaitable[T]) -> T:
        """Wait for a hook, which a cancellation reaches."""
        self._in_hook = True
        try:
            return await hook
        finally:
            self._in_hook = False
