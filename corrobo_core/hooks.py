"""How a hook command becomes a call of the contract, and a call's end an answer. Shared by both drivers.

Source: semantics section 3, L7, O3, O8, T1, T3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from inspect import isawaitable, iscoroutine
from typing import Any

from corrobo_core.attempt import Attempt
from corrobo_core.binding import Bound
from corrobo_core.canonical import safe_text, stored_failure
from corrobo_core.clocks import stopwatch
from corrobo_core.commands import (
    Authorize,
    Execute,
    Executed,
    HookCommand,
    Judged,
    Observe,
    Raised,
    Reconcile,
    Saw,
)
from corrobo_core.definition import Definition
from corrobo_core.errors import IntentError, NotSent, Rejected
from corrobo_core.frozen import evolve, frozen
from corrobo_core.records import Check, Evidence, Failure, Observation, Operation, Outcome, Verdict
from corrobo_core.values import LOST

__all__ = ["HookCall", "Hooks", "is_interruption"]

_LONGEST_WAIT = timedelta(days=365)


class _TooLate(Exception):
    """The hook would begin after its attempt may (L9)."""


def is_interruption(error: BaseException) -> bool:
    """Cancellation, Ctrl-C, a thread told to stop: the pass must end after its bookkeeping (L7)."""
    return not isinstance(error, Exception)


@frozen
class HookCall:
    """One hook to be called.

    Attributes:
        name: which hook.
        call: no arguments; raises what the hook raises, and may return a coroutine.
        is_async: it returns a coroutine.
        attempt: what the hook was given.
        timeout: an async hook is cut after so long; None: never.
        answer: the reply for what it returned.
        failed: the reply for what it raised.
    """

    name: str
    call: Callable[[], Any]
    is_async: bool
    attempt: Attempt
    timeout: timedelta | None
    answer: Callable[[Any], Any]
    failed: Callable[[BaseException], Any]


class Hooks:
    """One pass's calls of its contract.

    Args:
        definition: the contract.
        bound: this call's intent.
        idempotency_key: asked only once the ledger has answered.
        context: for ``authorize`` and ``revalidate`` only (I6).
        redact: sees every message before it is stored (T3).
    """

    def __init__(
        self,
        definition: Definition,
        bound: Bound,
        idempotency_key: Callable[[], str],
        context: Mapping[str, Any],
        redact: Callable[[str], str] | None,
    ) -> None:
        self._definition, self._bound = definition, bound
        self._context, self._redact = context, redact
        self._ask_for_key = idempotency_key
        self._idempotency_key: str | None = None
        self._observed: tuple[Operation, Attempt] | None = None
        self.seen_error: BaseException | None = None

    def prepare(self, command: HookCommand[Any]) -> HookCall | Any:
        """The call that answers a command, or at once the answer, where there is nothing to call."""
        began = stopwatch()
        operation = command.operation
        if isinstance(command, Execute):
            if command.not_after is not None and began > command.not_after:
                return Executed(Outcome.NOT_SENT, began)  # paused since the reservation (L9)
            answers = self._executed, self._execute_failed
            return self._call("execute", operation, (), *answers, command.timeout, command.not_after)
        if isinstance(command, Observe):
            return self._call("observe", operation, (), lambda saw: self._saw(saw, began), self._raised)
        if isinstance(command, Reconcile):
            data = (command.observation.data,)
            return self._call("reconcile", operation, data, self._judged, self._raised)
        name = "authorize" if isinstance(command, Authorize) else "revalidate"
        return self._call(name, operation, (), self._checked, self._raised)

    def _call(
        self,
        name: str,
        operation: Operation,
        data: tuple[Any, ...],
        answer: Callable[[Any], Any],
        failed: Callable[[BaseException], Any],
        timeout: timedelta | None = None,
        not_after: float | None = None,
    ) -> HookCall:
        hook = self._definition.hooks[name]
        attempt = self._attempt(operation, timeout, with_context=name in ("authorize", "revalidate"))

        def call() -> Any:
            args: tuple[Any, ...] = ()
            kwargs: dict[str, Any] = {}
            if hook.takes_intent:
                try:
                    args, kwargs = self._intent(operation)
                except IntentError as error:  # recorded by a release with other types, or changed by hand
                    raise NotSent(error) if name == "execute" else error from None
            if not_after is not None and stopwatch() > not_after:  # maybe in a thread that was long in coming
                raise _TooLate
            return hook.fn(attempt, *data, *args, **kwargs)

        return HookCall(name, call, hook.is_async, attempt, timeout, answer, failed)

    def _intent(self, operation: Operation) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The recorded intent, which is what is executed (I2)."""
        kind, today = self._definition.parameters, self._bound
        same = operation.intent == today.intent
        values = kind.anew(today) if same else kind.recorded(operation.intent, operation.fingerprint)
        return kind.as_arguments(values)

    def _attempt(self, operation: Operation, timeout: timedelta | None, *, with_context: bool) -> Attempt:
        if self._observed is not None and self._observed[0] is operation:  # observe's is reconcile's
            return self._observed[1]
        attempt = self._new_attempt(operation, timeout, with_context=with_context)
        if timeout is None and not with_context:
            self._observed = operation, attempt
        return attempt

    def _new_attempt(self, operation: Operation, timeout: timedelta | None, *, with_context: bool) -> Attempt:
        latest = operation.latest if operation.attempts else None
        response = latest.response if latest else None
        decoded = None if response is None else self._definition.response_type.decode(response)
        key = operation.key
        if self._idempotency_key is None:
            self._idempotency_key = self._ask_for_key()
        return Attempt(
            key.type,
            key.operation_id,
            key.namespace,
            (latest.number if latest else 0) + (with_context or not latest),  # a check is of the next one
            self._idempotency_key,
            deadline=None if timeout is None else datetime.now(UTC) + timeout,
            stops_at=None if timeout is None else stopwatch() + timeout.total_seconds(),
            outcome=latest.outcome if latest else None,
            response=None if decoded is LOST else decoded,
            failure=latest.failure if latest else None,
            attempts=operation.attempts,
            history=operation.history,
            context=self._context if with_context else {},
        )

    # -- answers ---------------------------------------------------------------------------------------------

    def _executed(self, value: Any) -> Executed:
        ended = stopwatch()
        if value is not None and isawaitable(value):  # nobody waits for it, and nobody knows what it has begun
            if iscoroutine(value):
                value.close()
            failure = Failure("TypeError", "execute returned an awaitable; declare it with async def")
            return Executed(Outcome.AMBIGUOUS, ended, failure=failure)
        return Executed(Outcome.RESPONDED, ended, response=self._definition.response_type.encode(value))

    def _execute_failed(self, error: BaseException) -> Executed:
        """T1: every exception is ambiguous unless the contract says otherwise."""
        ended = stopwatch()
        match error:
            case _TooLate():
                return Executed(Outcome.NOT_SENT, ended)
            case Rejected():
                cause, wait = self._failure(error.cause), _bounded(error.retry_after)
                return Executed(
                    Outcome.REJECTED,
                    ended,
                    failure=cause,
                    retryable=error.refused_for_now,
                    retry_after=wait if error.refused_for_now else None,
                )
            case NotSent():
                return Executed(Outcome.NOT_SENT, ended, failure=self._failure(error.cause))
            case _:
                stop = is_interruption(error)
                if stop:
                    self.seen_error = error
                return Executed(Outcome.AMBIGUOUS, ended, failure=self._failure(error), interrupted=stop)

    def _raised(self, error: BaseException) -> Raised:
        if is_interruption(error):
            self.seen_error = error
        return Raised(self._failure(error), interrupted=is_interruption(error))

    def _failure(self, error: BaseException | str) -> Failure:
        if isinstance(error, str):
            return Failure("Refusal", self._text(error))
        return stored_failure(error, self._text)

    def _text(self, text: object) -> str:
        """Any text of a hook as it is stored: redacted whole, and cut only then, lest half a secret stays."""
        given = text if isinstance(text, str) else repr(type(text).__name__)
        if self._redact is None:
            return safe_text(given)
        try:
            return safe_text(self._redact(given))
        except Exception:  # better no message than a secret
            return "<redaction failed>"

    def _saw(self, observation: Any, began: float) -> Saw | Raised:
        if not isinstance(observation, Observation) or not isinstance(observation.proves_absence, bool):
            return _nonsense("observe", observation, "an Observation")
        source: object = observation.source
        if not isinstance(source, str) or not source:
            return _nonsense("observe", source, "an Observation whose source is a name")
        safe = self._text(source)
        return Saw(observation if safe == source else evolve(observation, source=safe), began)

    def _checked(self, check: Any) -> Check | Raised:
        if not isinstance(check, Check) or check.kind not in ("proceed", "review", "reject"):
            return _nonsense("the check", check, "a Check")
        return Check(check.kind, self._text(str(check.explanation)))

    def _judged(self, verdict: Any) -> Judged | Raised:
        if not isinstance(verdict, Verdict) or not isinstance(verdict.evidence, Evidence):
            return _nonsense("reconcile", verdict, "a Verdict")
        code, explanation = self._text(verdict.code), self._text(verdict.explanation)
        if verdict.evidence is not Evidence.APPLIED:
            return Judged(verdict.evidence, code, explanation)
        kind, effect = self._definition.effect_type, verdict.effect
        stored = kind.encode(effect)
        if not kind.fits(stored):  # not what the effect returns: said now, and not by a later pass alone
            effect = LOST
        return Judged(verdict.evidence, code, explanation, effect, stored)


def _nonsense(hook: str, value: object, wanted: str) -> Raised:
    return Raised(Failure("TypeError", f"{hook} must return {wanted}, not a {type(value).__name__}"))


def _bounded(wait: timedelta | None) -> timedelta | None:
    if not isinstance(wait, timedelta):
        return None
    return min(max(wait, timedelta()), _LONGEST_WAIT)
