"""A money ledger behind HTTP, in a process of its own: the outside system that examples and tests write to.

It commits what it is told to and deduplicates nothing, so its own count tells how often a write was made.
What goes wrong between it and its callers can be ordered request by request::

    with running_http_ledger() as ledger:
        ledger.fail_next(answer_lost())
        ledger.credit("alice", "rf_81", 5_000)      # committed, then the connection closes: raises
        ledger.count("rf_81")                       # 1

The requests: ``POST /accounts/{account}/credits`` with ``{"reference", "amount_cents"}`` and
``GET /accounts/{account}/credits?reference=``; behind the scenes ``POST /faults``, ``DELETE /faults`` and
``GET /counts?reference=``.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs, quote, urlencode, urlsplit
from urllib.request import Request, urlopen

PID_HEADER = "X-Client-Pid"


# -- what can go wrong ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """What goes wrong with the next requests that match. Times are in seconds.

    Args:
        on: writes (POST) or reads (GET).
        reference: only requests with this reference; None for all.
        times: how many requests; None for all from now on.
        refuse: answer with this status and commit nothing.
        retry_after: the Retry-After header of a refusal.
        kill: SIGKILL the process named in the request's X-Client-Pid header at this moment, and never answer.
        delay_commit: wait before committing; the client waits too.
        late_by: answer (or hang up) first, and commit this much later.
        delay_answer: wait between commit and answer.
        status: the status of the answer after a commit; 201 (or 200) by default.
        answer: "hang_up" closes the connection without a word, "reset" with a TCP reset.
        stale_by: a read sees only what was committed at least this long ago.
    """

    on: Literal["write", "read"] = "write"
    reference: str | None = None
    times: int | None = 1
    refuse: int | None = None
    retry_after: str | None = None
    kill: Literal["before_commit", "after_commit"] | None = None
    delay_commit: float = 0.0
    late_by: float | None = None
    delay_answer: float = 0.0
    status: int | None = None
    answer: Literal["normal", "hang_up", "reset"] = "normal"
    stale_by: float = 0.0


def answer_lost(*, reset: bool = False, reference: str | None = None, times: int | None = 1) -> Fault:
    """Commit, then close the connection without an answer."""
    return Fault(answer="reset" if reset else "hang_up", reference=reference, times=times)


def slow_answer(seconds: float, *, reference: str | None = None, times: int | None = 1) -> Fault:
    """Commit at once, answer after ``seconds``."""
    return Fault(delay_answer=seconds, reference=reference, times=times)


def slow_commit(seconds: float, *, reference: str | None = None, times: int | None = 1) -> Fault:
    """Commit after ``seconds``, then answer; a client that has given up by then has still written."""
    return Fault(delay_commit=seconds, reference=reference, times=times)


def lands_late(
    seconds: float, *, status: int | None = None, reference: str | None = None, times: int | None = 1
) -> Fault:
    """Hang up (or answer ``status``, such as 202) at once, and commit ``seconds`` later."""
    answer: Literal["normal", "hang_up"] = "hang_up" if status is None else "normal"
    return Fault(late_by=seconds, status=status, answer=answer, reference=reference, times=times)


def refused(
    status: int, *, retry_after: str | None = None, reference: str | None = None, times: int | None = 1
) -> Fault:
    """Answer with ``status`` and commit nothing."""
    return Fault(refuse=status, retry_after=retry_after, reference=reference, times=times)


def error_after_commit(status: int = 500, *, reference: str | None = None, times: int | None = 1) -> Fault:
    """Commit, then answer with an error status all the same."""
    return Fault(status=status, reference=reference, times=times)


def client_killed(
    when: Literal["before_commit", "after_commit"] = "after_commit",
    *,
    reference: str | None = None,
    times: int | None = 1,
) -> Fault:
    """SIGKILL the client right before or right after the commit, and before any answer."""
    return Fault(kill=when, reference=reference, times=times)


def reads_fail(status: int = 503, *, reference: str | None = None, times: int | None = 1) -> Fault:
    """Answer reads with an error status."""
    return Fault(on="read", refuse=status, reference=reference, times=times)


def reads_stale(seconds: float, *, reference: str | None = None, times: int | None = 1) -> Fault:
    """Show reads only what was committed at least ``seconds`` ago."""
    return Fault(on="read", stale_by=seconds, reference=reference, times=times)


# -- the client ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Credit:
    """One committed credit. ``id`` is the ledger's own: two credits are two ids, whatever their reference."""

    id: str
    account: str
    reference: str
    amount_cents: int


@dataclass(frozen=True)
class Counts:
    """What the ledger itself has counted: commits, and the requests it received, refused ones included."""

    credits: int
    write_requests: int
    read_requests: int


@dataclass(frozen=True)
class HttpLedger:
    """A client of the HTTP ledger, which also orders its faults and reads its counts.

    Args:
        url: where the ledger listens, such as ``http://127.0.0.1:8000``.
        timeout: seconds to wait for an answer.
    """

    url: str
    timeout: float = 10.0

    def credits_url(self, account: str) -> str:
        """Where the credits of one account are posted and listed."""
        return f"{self.url}/accounts/{quote(account, safe='')}/credits"

    def credit(self, account: str, reference: str, amount_cents: int) -> Credit:
        """Credit an account. Not idempotent.

        Raises:
            OSError: no answer, or an error status (urllib's HTTPError); the credit may have been made.
        """
        body = {"reference": reference, "amount_cents": amount_cents}
        return Credit(**self._call("POST", self.credits_url(account), body))

    def credits(self, account: str, reference: str | None = None) -> list[Credit]:
        """All credits of an account, or those with one reference. Never a part of them.

        Raises:
            OSError: no answer, or an error status. Trying again is safe.
        """
        query = "" if reference is None else "?" + urlencode({"reference": reference})
        found = self._call("GET", self.credits_url(account) + query)
        return [Credit(**credit) for credit in found["credits"]]

    def fail_next(self, *faults: Fault) -> None:
        """Order faults. Each request meets the first one that matches and is not used up."""
        self._call("POST", f"{self.url}/faults", [asdict(fault) for fault in faults])

    def heal(self) -> None:
        """Forget all faults that have not happened yet."""
        self._call("DELETE", f"{self.url}/faults")

    def counts(self, reference: str | None = None) -> Counts:
        """What the ledger has counted, for one reference or in all. Meets no faults."""
        query = "" if reference is None else "?" + urlencode({"reference": reference})
        return Counts(**self._call("GET", f"{self.url}/counts{query}"))

    def count(self, reference: str | None = None) -> int:
        """How many credits were committed, for one reference or in all. Meets no faults."""
        return self.counts(reference).credits

    def wait_for_count(self, expected: int, reference: str | None = None, *, timeout: float = 10.0) -> None:
        """Wait until at least ``expected`` credits are committed.

        Raises:
            TimeoutError: they were not within ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        while (found := self.count(reference)) < expected:
            if time.monotonic() > deadline:
                raise TimeoutError(f"expected {expected} credits, the ledger has {found}")
            time.sleep(0.01)

    def _call(self, method: str, url: str, body: object = None) -> Any:
        headers = {"Content-Type": "application/json", PID_HEADER: str(os.getpid())}
        data = None if body is None else json.dumps(body).encode()
        request = Request(url, data, headers, method=method)
        with urlopen(request, timeout=self.timeout) as answer:
            return json.load(answer)


@contextmanager
def running_http_ledger(*program: str) -> Iterator[HttpLedger]:
    """Start the ledger in its own process on a free port, and stop it at the end.

    Args:
        program: arguments for the interpreter, if not this file; it must `serve` likewise.
    """
    command = [sys.executable, *(program or (__file__,))]
    # The server ends when its standard input closes: it never outlives the process that started it.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        url = server.stdout.readline().strip()
        if not url:
            raise RuntimeError("the HTTP ledger did not start")
        try:
            yield HttpLedger(url)
        finally:
            server.stdin.close()


# -- the server ----------------------------------------------------------------------------------------------


class Book:
    """What the server knows: the credits, the faults to come, and how many requests there were."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._credits: list[tuple[float, Credit]] = []
        self._faults: list[tuple[Fault, list[None]]] = []
        self._requests: list[tuple[str, str | None]] = []

    def commit(self, account: str, reference: str, amount_cents: int) -> Credit:
        """Credit the account, whatever was credited before."""
        with self._lock:
            credit = Credit(f"cr_{len(self._credits) + 1}", account, reference, amount_cents)
            self._credits.append((time.monotonic(), credit))
            return credit

    def credits(self, account: str, reference: str | None, older_than: float) -> list[Credit]:
        """The credits of an account that were committed at least ``older_than`` seconds ago."""
        horizon = time.monotonic() - older_than
        with self._lock:
            return [
                credit
                for committed_at, credit in self._credits
                if credit.account == account and reference in (None, credit.reference) and committed_at <= horizon
            ]

    def counts(self, reference: str | None) -> Counts:
        """How many commits and requests there were."""
        with self._lock:
            requests = [kind for kind, about in self._requests if reference in (None, about)]
            return Counts(
                credits=sum(reference in (None, credit.reference) for _, credit in self._credits),
                write_requests=requests.count("write"),
                read_requests=requests.count("read"),
            )

    def plan(self, faults: list[Fault]) -> None:
        """Add faults to those to come."""
        with self._lock:
            self._faults += [(fault, []) for fault in faults]

    def heal(self) -> None:
        """Forget the faults to come."""
        with self._lock:
            self._faults.clear()

    def next_fault(self, kind: Literal["write", "read"], reference: str | None) -> Fault:
        """Note the request, and use up one occurrence of the first fault that matches it."""
        with self._lock:
            self._requests.append((kind, reference))
            for fault, used in self._faults:
                matches = fault.on == kind and fault.reference in (None, reference)
                if matches and (fault.times is None or len(used) < fault.times):
                    used.append(None)
                    return fault
        return Fault(on=kind)


class Handler(BaseHTTPRequestHandler):
    """One request. An answer leaves in one piece, or not at all."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    book: Book  # set on the class by serve()

    def do_POST(self) -> None:
        """Commit a credit, or take orders for faults."""
        path, _ = self._target()
        body = self._body()
        match path:
            case ["accounts", account, "credits"]:
                self._write(account, body)
            case ["faults"]:
                self.book.plan([Fault(**fault) for fault in body])
                self._answer(HTTPStatus.OK, {})
            case _:
                self._answer(HTTPStatus.NOT_FOUND, {"error": "no such thing"})

    def do_GET(self) -> None:
        """List credits, or tell the counts."""
        path, reference = self._target()
        match path:
            case ["accounts", account, "credits"]:
                self._read(account, reference)
            case ["counts"]:
                self._answer(HTTPStatus.OK, asdict(self.book.counts(reference)))
            case _:
                self._answer(HTTPStatus.NOT_FOUND, {"error": "no such thing"})

    def do_DELETE(self) -> None:
        """Forget the faults."""
        self.book.heal()
        self._answer(HTTPStatus.OK, {})

    def _write(self, account: str, body: dict[str, Any]) -> None:
        reference, amount_cents = str(body["reference"]), int(body["amount_cents"])
        fault = self.book.next_fault("write", reference)
        if fault.refuse is not None:
            return self._answer(fault.refuse, {"error": "refused"}, fault.retry_after)
        if fault.kill == "before_commit":
            return self._kill_client()
        time.sleep(fault.delay_commit)
        answer: dict[str, Any] = {"accepted": True}
        if fault.late_by is None:
            answer = asdict(self.book.commit(account, reference, amount_cents))
        else:
            threading.Timer(fault.late_by, self.book.commit, (account, reference, amount_cents)).start()
        if fault.kill == "after_commit":
            return self._kill_client()
        time.sleep(fault.delay_answer)
        if fault.answer != "normal":
            return self._hang_up(reset=fault.answer == "reset")
        return self._answer(fault.status or HTTPStatus.CREATED, answer)

    def _read(self, account: str, reference: str | None) -> None:
        fault = self.book.next_fault("read", reference)
        if fault.refuse is not None:
            return self._answer(fault.refuse, {"error": "cannot read now"}, fault.retry_after)
        time.sleep(fault.delay_answer)
        if fault.answer != "normal":
            return self._hang_up(reset=fault.answer == "reset")
        found = self.book.credits(account, reference, fault.stale_by)
        return self._answer(HTTPStatus.OK, {"credits": [asdict(credit) for credit in found]})

    def _kill_client(self) -> None:
        os.kill(int(self.headers[PID_HEADER]), signal.SIGKILL)
        self._hang_up()

    def _hang_up(self, *, reset: bool = False) -> None:
        self.close_connection = True
        if reset:  # closing with a linger time of zero sends RST
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self.connection.detach())

    def _answer(self, status: int, body: object, retry_after: str | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if retry_after is not None:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(data)

    def _target(self) -> tuple[list[str], str | None]:
        parts = urlsplit(self.path)
        return parts.path.strip("/").split("/"), parse_qs(parts.query).get("reference", [None])[0]

    def _body(self) -> Any:
        length = int(self.headers["Content-Length"])
        data = self.rfile.read(length)
        if len(data) < length:
            raise ConnectionResetError("the client is gone")
        return json.loads(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the counts tell all."""


class Server(ThreadingHTTPServer):
    """A server that hundreds of clients may call at once, and that does not mind when they die."""

    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed in mid-request is what this server is for."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def serve(handler: type[Handler], book: Book) -> None:
    """Serve on a free port, print the URL, stop when standard input closes."""
    handler.book = book
    with Server(("127.0.0.1", 0), handler) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdin.read()


if __name__ == "__main__":
    serve(Handler, Book())
