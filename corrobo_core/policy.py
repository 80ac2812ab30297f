"""What a contract declares about time and retries, already checked. Pure data.

Source: semantics D2, D3, L9, O4, O5.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from corrobo_core.frozen import frozen

__all__ = ["Backoff", "Policy", "RetryPolicy"]

ZERO = timedelta()
LONGEST = timedelta(days=3650)  # no declared time leads beyond the end of the calendar
_KEY_USE_WITHOUT_TIMEOUT = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Backoff:
    """A geometric sequence of waits.

    Args:
        initial: the first wait, positive.
        maximum: no wait is longer; 3650 days at most.
        factor: each wait is this many times the one before, 1 or more.
    """

    initial: timedelta
    maximum: timedelta
    factor: float = 2.0

    def __post_init__(self) -> None:
        if not (ZERO < self.initial <= self.maximum and 1.0 <= self.factor < float("inf")):
            raise ValueError("Backoff: 0 < initial <= maximum and 1 <= factor must hold")
        if self.maximum > LONGEST:
            raise ValueError(f"Backoff: maximum is longer than {LONGEST.days} days; is the unit right?")

    def delay(self, step: int) -> timedelta:
        """The wait number ``step``, counted from 0."""
        # Past 64 steps the maximum is long reached.
        try:
            seconds = self.initial.total_seconds() * self.factor ** min(step, 64)
        except OverflowError:
            return self.maximum
        return min(timedelta(seconds=min(seconds, self.maximum.total_seconds())), self.maximum)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When another attempt is allowed, once it is known to be safe.

    Args:
        max_attempts: how many times the write may be sent, 1 or more; ``NOT_SENT`` uses up none.
        retryable: False forbids every attempt after the first.
        backoff: waits after an attempt that was refused for now or could not be sent, where the provider
            names no time.
    """

    max_attempts: int = 3
    retryable: bool = True
    backoff: Backoff = field(default=Backoff(timedelta(seconds=1), timedelta(minutes=1)))


@frozen
class Policy:
    """One contract's declarations, as the lifecycle reads them.

    Attributes:
        window: ``in_flight_window``: how long after an attempt starts its effect could still land; None if
            nobody can say.
        execute_timeout: bound of the hook; None if there is none.
        observation_lag: how stale a read can be (O4).
        responds_after_effect: a returned value means that the effect is there.
        key_retention: how long the provider remembers an idempotency key; None if it does not deduplicate.
        retry: when another attempt is allowed.
        poll: waits between looks that give no answer (O5).
        authorizes: the contract has an ``authorize`` hook.
        revalidates: the contract has a ``revalidate`` hook.
        max_approval_age: an approval older than this counts no more (R5); None: it never ages.
    """

    window: timedelta | None = None
    execute_timeout: timedelta | None = None
    observation_lag: timedelta = ZERO
    responds_after_effect: bool = False
    key_retention: timedelta | None = None
    retry: RetryPolicy = RetryPolicy()
    poll: Backoff = Backoff(timedelta(seconds=5), timedelta(minutes=5))
    authorizes: bool = False
    revalidates: bool = False
    max_approval_age: timedelta | None = None

    @property
    def settles_after(self) -> timedelta | None:
        """Window plus lag, as recorded with each attempt (D3)."""
        return None if self.window is None else self.window + self.observation_lag

    @property
    def start_allowance(self) -> timedelta | None:
        """How long after the reservation the send may begin; None if there is nothing to compare with (L9)."""
        if not self.window or self.execute_timeout is None:
            return None
        return self.window - self.execute_timeout

    @property
    def key_use(self) -> timedelta:
        """How long one attempt may use its key, for comparing with ``key_retention``."""
        return self.execute_timeout or _KEY_USE_WITHOUT_TIMEOUT
