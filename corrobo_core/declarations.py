"""Checks what a contract declares about time and retries, and says which argument is wrong.

Source: semantics D2, L9, L8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from corrobo_core.errors import ContractError
from corrobo_core.policy import LONGEST, Backoff, Policy, RetryPolicy

__all__ = ["checked_policy", "checked_type"]

_ZERO = timedelta()
_MAX_TYPE = 200


def checked_type(type_: object) -> str:
    """An operation type that every ledger stores.

    Raises:
        ContractError: it is not 1 to 200 printable characters.
    """
    if not isinstance(type_, str) or not 1 <= len(type_) <= _MAX_TYPE or not type_.isprintable():
        raise ContractError(
            str(type_)[:40] if isinstance(type_, str) else "?",
            "type",
            f"must be 1 to {_MAX_TYPE} printable characters, such as 'payments/refund'",
        )
    return type_


def checked_policy(
    effect: str, declared: Mapping[str, Any], *, authorizes: bool = False, revalidates: bool = False
) -> Policy:
    """The policy that a contract declares.

    Raises:
        ContractError: names the argument.
    """
    window = _duration(effect, "in_flight_window", declared["in_flight_window"])
    timeout = _duration(effect, "execute_timeout", declared["execute_timeout"], positive=True)
    lag = _duration(effect, "observation_lag", declared["observation_lag"]) or _ZERO
    retention = declared["key_retention"]
    if retention != timedelta.max:  # a provider that never forgets
        retention = _duration(effect, "key_retention", retention, positive=True)
    if window and timeout is not None and timeout >= window:
        raise ContractError(
            effect, "in_flight_window", "must exceed execute_timeout, or an attempt could never begin in time"
        )
    if window == _ZERO and retention is None:
        raise ContractError(
            effect,
            "key_retention",
            "a window of zero is honest only if the provider deduplicates by idempotency_key; say for how long",
        )
    if window and timeout is None:
        timeout = window / 2
    responds = declared["responds_after_effect"]
    if not isinstance(responds, bool):
        raise ContractError(effect, "responds_after_effect", "must be True or False")
    poll = declared["poll"]
    if poll is not None and not isinstance(poll, Backoff):
        raise ContractError(effect, "poll", f"is of kind {type(poll).__name__}; pass a Backoff")
    policy = Policy(
        window=window,
        execute_timeout=timeout,
        observation_lag=lag,
        responds_after_effect=responds,
        key_retention=retention,
        retry=_retry(effect, declared["max_attempts"], declared["retry"]),
        authorizes=authorizes,
        revalidates=revalidates,
        max_approval_age=_duration(effect, "max_approval_age", declared.get("max_approval_age"), positive=True),
    )
    return policy if poll is None else replace(policy, poll=poll)


def _retry(effect: str, max_attempts: object, retry: object) -> RetryPolicy:
    if retry is not None and max_attempts is not None:
        raise ContractError(effect, "max_attempts", "is part of retry; give one of the two")
    if retry is None:
        retry = RetryPolicy() if max_attempts is None else RetryPolicy(max_attempts=max_attempts)  # type: ignore[arg-type]  # checked below
    if not isinstance(retry, RetryPolicy):
        raise ContractError(effect, "retry", f"is of kind {type(retry).__name__}; pass a RetryPolicy")
    count: object = retry.max_attempts
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ContractError(effect, "max_attempts", "must be a whole number, 1 or more")
    if not isinstance(retry.retryable, bool):
        raise ContractError(effect, "retry", "its retryable must be True or False")
    if not isinstance(retry.backoff, Backoff):
        raise ContractError(
            effect, "retry", f"its backoff is of kind {type(retry.backoff).__name__}; pass a Backoff"
        )
    return retry


def _duration(effect: str, field: str, value: object, *, positive: bool = False) -> timedelta | None:
    if value is None:
        return None
    if not isinstance(value, timedelta):
        raise ContractError(effect, field, f"is of kind {type(value).__name__}; pass a timedelta")
    if value < _ZERO or (positive and value == _ZERO):
        raise ContractError(effect, field, "must be positive" if positive else "must not be negative")
    if value > LONGEST:
        raise ContractError(effect, field, f"is longer than {LONGEST.days} days; is the unit right?")
    return value
