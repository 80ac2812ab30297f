"""The table of faults: what goes wrong on the way, and what a client's error then proves."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import httpx
import requests

from corrobo_core import Outcome
from tests.transport.sockets import (
    Listener,
    answering,
    greet,
    hang_up_on_greeting,
    never_accepting,
    read_nothing,
    refusing,
    reset,
    reset_unread,
    saying,
    serving,
    swallow,
)

TLS = ssl.create_default_context()  # making one takes longer than most of these tests

NOT_SENT, REJECTED, AMBIGUOUS = Outcome.NOT_SENT, Outcome.REJECTED, Outcome.AMBIGUOUS


@dataclass
class Target:
    """Where to send a request, and how."""

    url: str
    timeout: float = 5.0
    follow_redirects: bool = False
    proxy: str | None = None
    large: bool = False

    @property
    def body(self) -> bytes:
        return b"x" * (64 * 1024 * 1024) if self.large else b'{"amount_cents": 5000}'


@dataclass
class Setup:
    """A target, and the servers in the way: what reached them tells whether the request left."""

    target: Target
    servers: list[Listener]

    @property
    def request_arrived(self) -> bool:
        return any(b"POST /" in server.received for server in self.servers)


@dataclass(frozen=True)
class Fault:
    """One line of the table.

    Attributes:
        name: what goes wrong.
        setup: makes it so.
        proves: what it proves with httpx.
        with_requests: what it proves with requests, where that says less.
    """

    name: str
    setup: Callable[[], AbstractContextManager[Setup]]
    proves: Outcome
    with_requests: Outcome | None = None


def _at(server: Callable[[], AbstractContextManager[Listener]], **how: Any) -> Callable[[], Any]:
    @contextmanager
    def setup() -> Iterator[Setup]:
        with server() as listener:
            yield Setup(Target(listener.url, **how), [listener])

    return setup


def _over_tls(server: Callable[[], AbstractContextManager[Listener]], **how: Any) -> Callable[[], Any]:
    @contextmanager
    def setup() -> Iterator[Setup]:
        with server() as listener:
            yield Setup(Target(listener.url.replace("http:", "https:"), **how), [listener])

    return setup


@contextmanager
def _unknown_name() -> Iterator[Setup]:
    yield Setup(Target("http://no-such-host.invalid/refunds"), [])


@contextmanager
def _proxy_refuses_connection() -> Iterator[Setup]:
    with refusing() as proxy, serving(answering(201)) as server:
        yield Setup(Target(server.url, proxy=f"http://127.0.0.1:{proxy.port}"), [proxy, server])


@contextmanager
def _proxy_opens_no_tunnel() -> Iterator[Setup]:
    with serving(answering(502)) as proxy:
        yield Setup(Target("https://127.0.0.1:9/refunds", proxy=f"http://127.0.0.1:{proxy.port}"), [proxy])


@contextmanager
def _proxy_reaches_nobody() -> Iterator[Setup]:
    """A plain proxy has the request, and answers for the provider."""
    with serving(answering(502)) as proxy:
        yield Setup(Target("http://no-such-host.invalid/x", proxy=f"http://127.0.0.1:{proxy.port}"), [proxy])


@contextmanager
def _redirected(status: int, there: Callable[[], AbstractContextManager[Listener]]) -> Iterator[Setup]:
    with there() as second, serving(answering(status, f"Location: {second.url}")) as first:
        yield Setup(Target(first.url, follow_redirects=True), [first, second])


def _answer(status: int, *headers: str) -> Callable[[], Any]:
    return _at(lambda: serving(answering(status, *headers)))


NEVER_LEFT = [
    Fault("connection refused", _at(refusing), NOT_SENT),
    Fault("name does not resolve", _unknown_name, NOT_SENT),
    Fault("connect timeout", _at(never_accepting, timeout=0.3), NOT_SENT),
    # requests tells a failed handshake from a later TLS failure by words only.
    Fault("TLS failure", _over_tls(lambda: serving(greet)), NOT_SENT, AMBIGUOUS),
    Fault("TLS handshake cut", _over_tls(lambda: serving(hang_up_on_greeting)), NOT_SENT, AMBIGUOUS),
    Fault("TLS handshake timeout", _over_tls(lambda: serving(swallow), timeout=0.3), NOT_SENT, AMBIGUOUS),
    Fault("proxy refuses connection", _proxy_refuses_connection, NOT_SENT),
    Fault("proxy opens no tunnel", _proxy_opens_no_tunnel, NOT_SENT, AMBIGUOUS),
]

REFUSED = [Fault(f"{status}", _answer(status), REJECTED) for status in (400, 401, 402, 403, 404, 410, 422, 451)] + [
    Fault("429", _answer(429), REJECTED),
    Fault("429 with Retry-After", _answer(429, "Retry-After: 7"), REJECTED),
]

UNCLEAR = [
    *(Fault(f"{s}", _answer(s), AMBIGUOUS) for s in (408, 409, 423, 425, 500, 501, 502, 503, 504)),
    Fault("503 with Retry-After", _answer(503, "Retry-After: 7"), AMBIGUOUS),
    Fault("redirect, not followed", _answer(307, "Location: /elsewhere"), AMBIGUOUS),
    Fault("timeout, nothing read yet", _at(lambda: serving(read_nothing), timeout=0.3, large=True), AMBIGUOUS),
    Fault("timeout before the answer", _at(lambda: serving(saying(b"", then_silent=True)), timeout=0.3), AMBIGUOUS),
    Fault(
        "timeout after its first byte",
        _at(lambda: serving(saying(b"HTTP/1.1 4", then_silent=True)), timeout=0.3),
        AMBIGUOUS,
    ),
    Fault("reset", _at(lambda: serving(reset)), AMBIGUOUS),
    Fault("reset, unread", _at(lambda: serving(reset_unread)), AMBIGUOUS),
    Fault("hung up", _at(lambda: serving(saying(b""))), AMBIGUOUS),
    Fault(
        "answer cut", _at(lambda: serving(saying(b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n"))), AMBIGUOUS
    ),
    Fault("no HTTP", _at(lambda: serving(saying(b"220 mail.example.org ESMTP\r\n"))), AMBIGUOUS),
    Fault("plain proxy reaches nobody", _proxy_reaches_nobody, AMBIGUOUS),
    Fault("refused connection after 307", lambda: _redirected(307, refusing), AMBIGUOUS),
    Fault("refused connection after 303", lambda: _redirected(303, refusing), AMBIGUOUS),
    Fault("404 after 307", lambda: _redirected(307, lambda: serving(answering(404))), AMBIGUOUS),
    Fault("404 after 303", lambda: _redirected(303, lambda: serving(answering(404))), AMBIGUOUS),
]

FAULTS = [*NEVER_LEFT, *REFUSED, *UNCLEAR]


# -- three clients -------------------------------------------------------------------------------------------

Library = Literal["httpx", "httpx async", "requests"]


def post(target: Target) -> None:
    """Send the request with httpx."""
    with httpx.Client(timeout=target.timeout, proxy=target.proxy, verify=TLS, trust_env=False) as client:
        client.post(target.url, content=target.body, follow_redirects=target.follow_redirects).raise_for_status()


async def post_async(target: Target) -> None:
    """Send the request with httpx on an event loop."""
    async with httpx.AsyncClient(timeout=target.timeout, proxy=target.proxy, verify=TLS, trust_env=False) as client:
        response = await client.post(target.url, content=target.body, follow_redirects=target.follow_redirects)
        response.raise_for_status()


def post_with_requests(target: Target) -> None:
    """Send the request with requests."""
    with requests.Session() as session:
        session.trust_env = False
        response = session.post(
            target.url,
            data=target.body,
            timeout=target.timeout,
            allow_redirects=target.follow_redirects,
            proxies={"http": target.proxy, "https": target.proxy} if target.proxy else None,
        )
        response.raise_for_status()
        if not response.ok or response.is_redirect:
            raise requests.HTTPError(f"status {response.status_code}", response=response)
