"""A ready-made answer to one question about httpx and requests errors: did the request leave, was it refused?

Offered, never applied by itself. Put it around the one request that writes::

    @effect("payments/refund", identity=..., in_flight_window=timedelta(seconds=30))
    @classified()
    def refund(attempt: Attempt, refund_id: str) -> Refund:
        return Refund(**client.post("/refunds", json={...}).raise_for_status().json())

Neither library is imported here: an error of theirs exists only where they already are.

Source: semantics T1.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import wraps
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import Any, Literal, Self, TypeVar, cast

from corrobo_core.errors import NotSent, Rejected, UsageError

__all__ = ["classified", "classify"]

F = TypeVar("F", bound=Callable[..., Any])

_TOO_MANY_REQUESTS = 429
# Timeout, already exists or in progress, locked, too early: each can follow a request that was carried out.
_UNCLEAR_REFUSALS = frozenset({408, 409, 423, 425})
_LONGEST_WAIT_SECONDS = 366 * 24 * 3600
_RETRYING_LIBRARIES = frozenset({"backoff", "retrying", "stamina", "tenacity"})


def classify(error: BaseException) -> BaseException:
    """Say what an error of httpx or requests proves about the one request that raised it.

    Connect failures are `NotSent`. Answers of 400 to 499 are `Rejected`, but for 408, 409, 423 and 425; 429 is
    refused for now, until its ``Retry-After``. Everything else is ambiguous. So is what follows a redirect, and
    what comes out of a retrying client, as far as it shows: put this inside the retries, around each request.

    Args:
        error: as caught, with its traceback.

    Returns:
        a `NotSent` or `Rejected` to raise instead, or ``error`` itself where it proves nothing.

    Source: semantics T1.
    """
    response = _refusal(error)
    if response is not None:
        retryable = response.status_code == _TOO_MANY_REQUESTS
        return Rejected(error, retryable, _retry_after(response.headers) if retryable else None)
    if _httpx_never_connected(error) or _requests_never_connected(error):
        return NotSent(error)
    return error


class classified:  # noqa: N801  # used like a function: ``with classified():``
    """Raise `NotSent` or `Rejected` in place of what `classify` recognises; let everything else pass.

    A context manager, also for ``async with``, and a decorator of plain and ``async`` functions. There must be
    one request inside: an error of the second says nothing about the first.

    Raises:
        NotSent: the request provably never left.
        Rejected: the provider answered and refused it.

    Source: semantics T1.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        if error is not None:
            meaning = classify(error)
            if meaning is not error:
                raise meaning from error
        return False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        return self.__exit__(kind, error, trace)

    def __call__(self, fn: F) -> F:
        """Decorate a function whose body makes the request.

        Raises:
            UsageError: a generator function, whose body runs after the call. Not retryable.
        """
        if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
            raise UsageError("classified()", "decorates a function that returns; inside a generator, use `with`")

        @wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return fn(*args, **kwargs)

        @wraps(fn)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            with self:
                return await fn(*args, **kwargs)

        return cast("F", call_async if inspect.iscoroutinefunction(fn) else call)


# -- answers -------------------------------------------------------------------------------------------------


def _refusal(error: BaseException) -> Any:
    """The response in which a provider definitely refused, or None."""
    if not (_is(error, "httpx", "HTTPStatusError") or _is(error, "requests", "HTTPError")):
        return None
    response: Any = getattr(error, "response", None)
    if response is None or not _refuses(response.status_code):
        return None
    retries = getattr(getattr(response, "raw", None), "retries", None)  # urllib3's, beneath requests
    once = not getattr(retries, "history", ()) and not _retried(_frames(error))
    return response if once and _all_refused(response.history) else None


def _refuses(status: int) -> bool:
    return 400 <= status < 500 and status not in _UNCLEAR_REFUSALS


def _all_refused(earlier: Iterable[Any]) -> bool:
    """Nothing was sent before, or all of it was refused, such as a login challenge. A redirect is no refusal."""
    return all(_refuses(response.status_code) for response in earlier)


def _retry_after(headers: Any) -> timedelta | None:
    """Seconds, or an HTTP date, which the server's own clock is compared with where it gives one."""
    text = str(headers.get("Retry-After", "")).strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text[:12]), _LONGEST_WAIT_SECONDS))
    until = _http_date(text)
    if until is None:
        return None
    now = _http_date(str(headers.get("Date", ""))) or datetime.now(UTC)
    return max(until - now, timedelta())


def _http_date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


# -- connections that never came about -----------------------------------------------------------------------
#
# The error's type alone proves nothing: the connection that failed may have been the second one, after a
# redirect or a retry. The traceback shows which calls the request went through, so there must be one.


def _httpx_never_connected(error: BaseException) -> bool:
    if not any(_is(error, "httpx", name) for name in ("ConnectError", "ConnectTimeout", "ProxyError")):
        return False
    frames = _frames(error)
    sends = [f for f in frames if _called(f) == ("httpx._client", "_send_handling_redirects")]
    if len(sends) != 1 or not _handed_over(frames, "httpx._client", "httpx._transports"):
        return False
    earlier = sends[0].f_locals.get("history")
    return isinstance(earlier, list) and _all_refused(earlier)


def _requests_never_connected(error: BaseException) -> bool:
    if not _is(error, "requests", "ConnectionError"):  # ConnectTimeout and ProxyError are of this kind
        return False
    gave_up = error.args[0] if error.args else None
    if not isinstance(gave_up, Exception) or not _is(gave_up, "urllib3.exceptions", "MaxRetryError"):
        return False
    reason = getattr(gave_up, "reason", None)
    if _is(reason, "urllib3.exceptions", "ProxyError"):
        reason = getattr(reason, "original_error", None)
    # NewConnectionError includes names that do not resolve, and is a ConnectTimeoutError only in urllib3 1 and 2.
    if not any(_is(reason, "urllib3.exceptions", n) for n in ("NewConnectionError", "ConnectTimeoutError")):
        return False
    frames = _frames(error)
    sends = [f for f in frames if _called(f) == ("requests.sessions", "send")]  # a redirect sends again
    tries = [f for f in _frames(gave_up) if _called(f) == ("urllib3.connectionpool", "urlopen")]  # so does a retry
    return len(sends) == len(tries) == 1 and _handed_over(frames, "requests.sessions", "requests.adapters")


def _frames(error: BaseException) -> list[FrameType]:
    return [frame for frame, _ in walk_tb(error.__traceback__)]


def _called(frame: FrameType) -> tuple[str, str]:
    return str(frame.f_globals.get("__name__")), frame.f_code.co_name


def _handed_over(frames: list[FrameType], client: str, transport: str) -> bool:
    """The client called the library's own transport, with nothing in between or around it that sends twice."""
    modules = [_called(frame)[0] for frame in frames]
    after = len(modules) - modules[::-1].index(client) if client in modules else len(modules)
    return after < len(modules) and modules[after].startswith(transport) and not _retried(frames)


def _retried(frames: list[FrameType]) -> bool:
    return any(_called(frame)[0].partition(".")[0] in _RETRYING_LIBRARIES for frame in frames)


def _is(error: object, module: str, name: str) -> bool:
    """Of a class in a module that may not be imported."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(error, kind)
