"""The outside system: the HTTP ledger in a process of its own, where requests meet faults drawn from a seed.

What a request meets depends on the seed and on the number in its reference, so that the effects and their naive
twins meet the same. ``POST /faults/{on,off}`` begins and ends the faults, ``POST /kills/{on,off}`` those that kill
the client; ``GET /book`` tells what was committed, when, and which faults there were.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http import HTTPStatus
from random import Random
from typing import Any, Literal
from urllib.request import Request, urlopen

from examples.http_ledger import (
    Book,
    Credit,
    Fault,
    Handler,
    HttpLedger,
    answer_lost,
    client_killed,
    error_after_commit,
    lands_late,
    reads_fail,
    refused,
    running_http_ledger,
    serve,
)

LATEST_LANDING = 1.0  # seconds after the request; the effects declare a window that is longer
AGAIN = 0.25  # share of later writes that meet a fault too
READS_AGAIN = 0.1
KILLS = frozenset({"client_killed_before_commit", "client_killed_after_commit"})

WRITE_FAULTS: dict[str, Callable[[Random], Fault]] = {
    "response_lost": lambda _: answer_lost(),
    "response_reset": lambda _: answer_lost(reset=True),
    "request_lost": lambda _: Fault(),  # see `FaultyBook.next_fault`
    "lands_late": lambda draw: lands_late(draw.uniform(0.2, LATEST_LANDING)),
    "error_after_commit": lambda _: error_after_commit(500),
    "error_before_commit": lambda _: refused(503),
    "client_killed_before_commit": lambda _: client_killed("before_commit"),
    "client_killed_after_commit": lambda _: client_killed("after_commit"),
}
READ_FAULTS: dict[str, Callable[[Random], Fault]] = {
    "read_refused": lambda _: reads_fail(503),
    "read_lost": lambda _: Fault(on="read", answer="hang_up"),
}
HTTP_FAULTS = [*WRITE_FAULTS, *READ_FAULTS]

# What the first write of each effect meets, in turns: no kind is left to chance.
FIRST_WRITES = [
    *["", "response_lost", "lands_late", "error_after_commit"] * 3,
    *["", "response_reset", "request_lost"] * 2,
    "client_killed_after_commit",
    "client_killed_before_commit",
    "error_before_commit",
]


def number_of(reference: str) -> int:
    """The number that a reference ends with."""
    return int(reference.rpartition("-")[2])


class FaultyBook(Book):
    """A book whose requests meet faults.

    Args:
        seed: decides which.
    """

    def __init__(self, seed: str) -> None:
        super().__init__()
        self._seed = seed
        self._first_writes = Random(seed).sample(FIRST_WRITES, len(FIRST_WRITES))
        self._seen: Counter[tuple[str, str | None]] = Counter()
        self._put_off: list[str] = []
        self.injected: Counter[str] = Counter()
        self.faults, self.kills = False, True

    def next_fault(self, kind: Literal["write", "read"], reference: str | None) -> Fault:
        """What this request meets.

        Raises:
            ConnectionAbortedError: the request is lost: nothing is committed, and the connection closes.
        """
        healthy = super().next_fault(kind, reference)
        if not self.faults or reference is None:
            return healthy
        with self._lock:
            turn = self._seen[kind, reference]
            self._seen[kind, reference] += 1
            draw = Random(f"{self._seed} {kind} {number_of(reference)} {turn}")
            name = self._first_write(reference) if (kind, turn) == ("write", 0) else self._later(draw, kind, turn)
            name = self._kills_in_their_time(name) if kind == "write" else name
            if not name:
                return healthy
            self.injected[name] += 1
        if name == "request_lost":
            raise ConnectionAbortedError(name)
        return {**WRITE_FAULTS, **READ_FAULTS}[name](draw)

    def _first_write(self, reference: str) -> str:
        return self._first_writes[number_of(reference) % len(self._first_writes)]

    def _kills_in_their_time(self, name: str) -> str:
        """Put a kill off while there may be none; it comes with the next write after."""
        if name in KILLS and not self.kills:
            self._put_off.append(name)
            return "response_lost"
        return self._put_off.pop() if self._put_off and self.kills else name

    @staticmethod
    def _later(draw: Random, kind: str, turn: int) -> str:
        if kind == "write":
            return (
                draw.choice([name for name in WRITE_FAULTS if name not in KILLS]) if draw.random() < AGAIN else ""
            )
        share = 0.5 if turn == 0 else READS_AGAIN
        return draw.choice(list(READ_FAULTS)) if draw.random() < share else ""

    def all(self) -> dict[str, Any]:
        """Every commit with its time, and how often each fault was injected."""
        ahead = time.time() - time.monotonic()
        with self._lock:
            return {
                "credits": [[at + ahead, asdict(credit)] for at, credit in self._credits],
                "injected": dict(self.injected),
            }


class FaultyHandler(Handler):
    """The same requests, and those of the soak."""

    book: FaultyBook

    def do_POST(self) -> None:
        """Begin or end faults, or commit a credit."""
        path, _ = self._target()
        match path:
            case [("faults" | "kills") as what, ("on" | "off") as state]:
                setattr(self.book, what, state == "on")
                self._answer(HTTPStatus.OK, {})
            case _:
                super().do_POST()

    def do_GET(self) -> None:
        """Show the book, or what else there is."""
        path, _ = self._target()
        if path == ["book"]:
            return self._answer(HTTPStatus.OK, self.book.all())
        return super().do_GET()


# -- the client ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Commit:
    """One committed credit, and when, in seconds since the epoch."""

    at: float
    credit: Credit


@dataclass(frozen=True)
class Outside:
    """What the soak itself asks of the outside system; it meets no faults.

    Args:
        http: where it listens, for the workers.
    """

    http: HttpLedger

    def faults(self, on: bool) -> None:
        """Begin or end all faults."""
        self._call(f"faults/{'on' if on else 'off'}", b"")

    def kills(self, on: bool) -> None:
        """Begin or end the faults that kill the client."""
        self._call(f"kills/{'on' if on else 'off'}", b"")

    def book(self) -> tuple[list[Commit], Counter[str]]:
        """Every commit, and how often each fault was injected."""
        found = self._call("book")
        return [Commit(at, Credit(**credit)) for at, credit in found["credits"]], Counter(found["injected"])

    def _call(self, path: str, body: bytes | None = None) -> Any:
        with urlopen(Request(f"{self.http.url}/{path}", body), timeout=self.http.timeout) as answer:
            return json.load(answer)


@contextmanager
def running_outside(seed: str) -> Iterator[Outside]:
    """The outside system, with its faults off, until the end."""
    with running_http_ledger("-m", "tests.soak.outside", seed) as http:
        yield Outside(http)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ends with the soak, whose terminal it shares
    serve(FaultyHandler, FaultyBook(*sys.argv[1:]))
