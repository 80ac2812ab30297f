"""The effect under test, as several deploys declared it, with and without hooks that ask first.

Its hooks do what the running pass was told (see `stage`); nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from corrobo_core import Attempt, Backoff, Check, Effect, Observation, RetryPolicy, Verdict, effect

TYPE = "model/credit"
CONTEXT = {"caller": "whoever-it-was"}  # of every call; no part of any record (I6)
RETENTION = 60.0  # seconds that a provider that deduplicates remembers a key


@dataclass(frozen=True)
class Declared:
    """One deploy's declarations, in seconds."""

    window: float | None = 10
    timeout: float | None = 4
    lag: float = 0
    answers_after_effect: bool = False
    deduplicates: bool = False
    retryable: bool = True
    max_attempts: int = 2

    @property
    def settles_after(self) -> float | None:
        return None if self.window is None else self.window + self.lag


DECLARED = (
    Declared(),
    Declared(lag=6),
    Declared(window=6, timeout=3),
    Declared(window=None, timeout=None),
    Declared(answers_after_effect=True, lag=2),
    Declared(retryable=False),
    Declared(window=0, deduplicates=True, max_attempts=3),
)
SEEN_LATER = 4  # index of the one whose answer means that the effect is there
ONLY_WITH_KEYS = 6  # index of the one that is honest only where the provider deduplicates
POLL = Backoff(timedelta(seconds=2), timedelta(seconds=8))
RETRY = Backoff(timedelta(seconds=1), timedelta(seconds=4))


class Hooks(Protocol):
    """What the running pass does in its hooks."""

    def execute(self, attempt: Attempt, amount: int, note: str) -> int: ...
    def observe(self, attempt: Attempt, amount: int, note: str) -> Any: ...
    def reconcile(self, attempt: Attempt, data: Any) -> Verdict[int]: ...
    def authorize(self, attempt: Attempt) -> Check: ...
    def revalidate(self, attempt: Attempt) -> Check: ...


_running: list[Hooks] = []


@contextmanager
def running(hooks: Hooks) -> Iterator[None]:
    """Until the end, hooks belong to this pass; another one may run inside."""
    _running.append(hooks)
    try:
        yield
    finally:
        _running.pop()


def _seconds(value: float | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)


def _made(
    operation_type: str, declared: Declared, authorizes: bool, revalidates: bool, max_age: int | None
) -> Effect[[str, int, str], int]:
    @effect(
        operation_type,
        identity=lambda reference, **_: reference,
        in_flight_window=_seconds(declared.window),
        execute_timeout=_seconds(declared.timeout),
        observation_lag=timedelta(seconds=declared.lag),
        responds_after_effect=declared.answers_after_effect,
        key_retention=timedelta(seconds=RETENTION) if declared.deduplicates else None,
        retry=RetryPolicy(declared.max_attempts, declared.retryable, RETRY),
        poll=POLL,
        max_approval_age=_seconds(max_age),
        volatile=("note",),
    )
    def credit(attempt: Attempt, reference: str, amount: int, note: str) -> int:
        return _running[-1].execute(attempt, amount, note)

    @credit.observe
    def see(attempt: Attempt, reference: str, amount: int, note: str) -> Observation[Any]:
        found: Observation[Any] = _running[-1].observe(attempt, amount, note)
        return found

    @see.reconcile
    def judge(attempt: Attempt, data: Any) -> Verdict[int]:
        return _running[-1].reconcile(attempt, data)

    if authorizes:

        @credit.authorize
        def may(attempt: Attempt) -> Check:
            return _running[-1].authorize(attempt)

    if revalidates:

        @credit.revalidate
        def still(attempt: Attempt) -> Check:
            return _running[-1].revalidate(attempt)

    return credit


_cache: dict[Any, Effect[[str, int, str], int]] = {}


def contract(index: int, authorizes: bool, revalidates: bool, max_age: int | None) -> Effect[[str, int, str], int]:
    """The effect of one deploy, made once."""
    key = index, authorizes, revalidates, max_age
    if key not in _cache:
        _cache[key] = _made(TYPE, DECLARED[index], authorizes, revalidates, max_age)
    return _cache[key]


ANOTHER_TYPE = _made("model/debit", Declared(), False, False, None)
