"""Rule T1: which errors of httpx and requests prove that a request never left, or was refused."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
import requests
import tenacity
import urllib3
from requests.adapters import HTTPAdapter

from corrobo_core import NotSent, Outcome, Rejected, UsageError
from corrobo_core.http import classified, classify
from tests.transport.faults import FAULTS, NOT_SENT, TLS, Fault, Target, post, post_async, post_with_requests
from tests.transport.sockets import answering, first, refusing, reset, serving, serving_once


def meaning(error: BaseException) -> Outcome:
    match classify(error):
        case NotSent():
            return Outcome.NOT_SENT
        case Rejected():
            return Outcome.REJECTED
        case same:
            assert same is error
            return Outcome.AMBIGUOUS


def raised_by(library: str, target: Target) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # whichever it is
        match library:
            case "httpx":
                post(target)
            case "httpx async":
                asyncio.run(post_async(target))
            case _:
                post_with_requests(target)
    assert isinstance(caught.value, httpx.HTTPError | requests.RequestException)
    return caught.value


@pytest.mark.parametrize("library", ["httpx", "httpx async", "requests"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_an_error_says_what_it_proves_and_no_more(fault: Fault, library: str) -> None:
    with fault.setup() as setup:
        error = raised_by(library, setup.target)
        expected = (library == "requests" and fault.with_requests) or fault.proves
        assert meaning(error) is expected, repr(error)
        if fault.proves is NOT_SENT:  # what the servers saw decides, not what the error is called
            assert not setup.request_arrived


def test_by_its_type_alone_a_connect_error_may_follow_a_write() -> None:
    after_redirect = next(fault for fault in FAULTS if fault.name == "refused connection after 307")
    with after_redirect.setup() as setup:
        error = raised_by("httpx", setup.target)
        assert isinstance(error, httpx.ConnectError)  # which a classifier by type takes for "not sent"
        assert setup.request_arrived
        assert meaning(error) is Outcome.AMBIGUOUS


# -- clients that send twice ---------------------------------------------------------------------------------


class Retrying(httpx.BaseTransport):
    """A transport that sends again after any failure, to the next address."""

    def __init__(self) -> None:
        self.inner = httpx.HTTPTransport(verify=TLS)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        try:
            return self.inner.handle_request(request)
        except httpx.TransportError:
            return self.inner.handle_request(request)


def test_a_transport_that_retries_stays_ambiguous() -> None:
    with (
        serving_once(reset) as server,
        httpx.Client(transport=Retrying(), trust_env=False) as client,
        pytest.raises(httpx.ConnectError) as caught,
    ):
        client.post(server.url, content=b"{}")
    assert b"POST /" in server.received
    assert meaning(caught.value) is Outcome.AMBIGUOUS


def test_an_adapter_that_retries_stays_ambiguous() -> None:
    retry = urllib3.Retry(3, allowed_methods=None, status_forcelist=[503], backoff_factor=0)
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", HTTPAdapter(max_retries=retry))
        with serving_once(reset) as server, pytest.raises(requests.ConnectionError) as caught:
            session.post(server.url, data=b"{}")
        assert b"POST /" in server.received
        assert meaning(caught.value) is Outcome.AMBIGUOUS
        with serving(first(answering(503), then=answering(422))) as server:
            response = session.post(server.url, data=b"{}")
        with pytest.raises(requests.HTTPError) as refused:
            response.raise_for_status()
        assert server.received.count(b"POST /") == 2
        assert meaning(refused.value) is Outcome.AMBIGUOUS


def test_retries_inside_stay_ambiguous_and_around_it_each_request_speaks_for_itself() -> None:
    @tenacity.retry(stop=tenacity.stop_after_attempt(2), reraise=True)
    def send(url: str) -> None:
        post(Target(url))

    @tenacity.retry(stop=tenacity.stop_after_attempt(2), reraise=True)
    @classified()
    def send_classified(url: str) -> None:
        post(Target(url))

    for then in (answering(422), None):
        with serving_once(reset) if then is None else serving(first(reset, then=then)) as server:
            with pytest.raises(httpx.HTTPError) as caught:
                send(server.url)
            assert meaning(caught.value) is Outcome.AMBIGUOUS
    with serving(answering(422)) as server, pytest.raises(Rejected):
        send_classified(server.url)


def test_a_login_challenge_before_the_refusal_is_a_refusal_too() -> None:
    challenge = answering(401, 'WWW-Authenticate: Digest realm="r", nonce="n", qop="auth"')
    with (
        serving(first(challenge, then=answering(422))) as server,
        httpx.Client(verify=TLS, trust_env=False, auth=httpx.DigestAuth("u", "p")) as client,
        pytest.raises(httpx.HTTPStatusError) as caught,
    ):
        client.post(server.url).raise_for_status()
    assert server.received.count(b"POST /") == 2
    assert meaning(caught.value) is Outcome.REJECTED


# -- Retry-After ---------------------------------------------------------------------------------------------

NOW = datetime(2031, 5, 4, 3, 2, 1, tzinfo=UTC)  # the server's clock; ours is years behind


def http_date(after: timedelta) -> str:
    return format_datetime(NOW + after, usegmt=True)


@pytest.mark.parametrize("library", ["httpx", "requests"])
@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ([], None),
        (["Retry-After: 7"], timedelta(seconds=7)),
        (["Retry-After: 0"], timedelta()),
        (["Retry-After: 99999999999999999999"], timedelta(days=366)),
        (["Retry-After: -7"], None),
        (["Retry-After: soon"], None),
        (
            [f"Retry-After: {http_date(timedelta(seconds=90))}", f"Date: {http_date(timedelta())}"],
            timedelta(seconds=90),
        ),
        ([f"Retry-After: {http_date(timedelta(seconds=-90))}", f"Date: {http_date(timedelta())}"], timedelta()),
        (["Retry-After: Sat, 99 Foo 2031 00:00:00 GMT"], None),
        (["Retry-After: 7", "Date: nonsense"], timedelta(seconds=7)),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date_by_the_servers_clock(
    headers: list[str], wait: timedelta | None, library: str
) -> None:
    with serving(answering(429, *headers)) as server:
        refusal = classify(raised_by(library, Target(server.url)))
    assert isinstance(refusal, Rejected)
    assert refusal.refused_for_now
    assert refusal.retry_after == wait


def test_a_date_without_the_servers_clock_is_compared_with_ours() -> None:
    in_an_hour = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    with serving(answering(429, f"Retry-After: {in_an_hour}")) as server:
        refusal = classify(raised_by("httpx", Target(server.url)))
    assert isinstance(refusal, Rejected)
    assert refusal.retry_after is not None
    assert timedelta(minutes=59) < refusal.retry_after <= timedelta(hours=1)


# -- how it is offered ---------------------------------------------------------------------------------------


def test_it_is_a_context_manager_and_a_decorator_of_both_kinds() -> None:
    @classified()
    def plain(url: str) -> None:
        """Sends."""
        post(Target(url))

    @classified()
    async def coroutine(url: str) -> None:
        await post_async(Target(url))

    async def in_async_with(url: str) -> None:
        async with classified():
            await post_async(Target(url))

    def in_with(url: str) -> None:
        with classified():
            post(Target(url))

    assert (plain.__name__, plain.__doc__) == ("plain", "Sends.")
    assert asyncio.iscoroutinefunction(coroutine)
    with refusing() as server:
        calls: list[Callable[[], None]] = [
            lambda: plain(server.url),
            lambda: in_with(server.url),
            lambda: asyncio.run(coroutine(server.url)),
            lambda: asyncio.run(in_async_with(server.url)),
        ]
        for call in calls:
            with pytest.raises(NotSent) as caught:
                call()
            assert isinstance(caught.value.cause, httpx.ConnectError)
            assert caught.value.__cause__ is caught.value.cause


def test_whatever_proves_nothing_passes_unchanged() -> None:
    for error in (ValueError("a"), TimeoutError(), KeyboardInterrupt(), asyncio.CancelledError(), NotSent("mine")):
        with pytest.raises(type(error)) as caught, classified():
            raise error
        assert caught.value is error
    assert classify(httpx.ConnectError("told, not seen")).args == ("told, not seen",)


def test_a_generator_is_refused() -> None:
    def page_by_page() -> Iterator[int]:
        yield 1

    with pytest.raises(UsageError, match="generator"):
        classified()(page_by_page)


def test_it_imports_neither_library() -> None:
    code = (
        "import sys; from corrobo_core.http import classify; e = ValueError(); assert classify(e) is e;"
        "assert not {'httpx', 'requests', 'urllib3'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
