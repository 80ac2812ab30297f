"""The library as functions of what it is given: real passes, a real ledger, a real desk and real hooks.

The same question is asked in very many states; its answer depends on nothing but its arguments, and
is remembered.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from typing import Any, NamedTuple

from corrobo_core.commands import Command, Executed, HookCommand, LedgerCommand, Reading, Reconcile
from corrobo_core.errors import DecisionRefused, NotSent, Rejected
from corrobo_core.frozen import evolve
from corrobo_core.hooks import HookCall
from corrobo_core.records import Operation
from corrobo_core.reviews import ReviewDesk
from corrobo_core.runner import _call
from tests.model.explorer.contract import Clock, Ending, Script, at, credit_effect
from tests.model.explorer.numbers import Numbers
from tests.model.explorer.passes import Kind, Passes
from tests.model.explorer.shelf import Shelf, Stored, known_to, names_in
from tests.model.explorer.state import Configuration

_ERRORS: dict[str, Callable[[], BaseException]] = {
    "ambiguous": TimeoutError,
    "interrupted": KeyboardInterrupt,
    "not sent": lambda: NotSent(OSError("refused connection")),
    "read fails": lambda: OSError("no route"),
    "refused": lambda: Rejected(ValueError("busy"), retryable=True),
    "refused for good": lambda: Rejected(ValueError("no such account")),
}


class Answer(NamedTuple):
    """What the ledger holds after a command, and the number of its reply."""

    stored: int
    reply: int


class Library:
    """The library under one configuration. Used only while ``clock.in_force()``."""

    def __init__(self, configuration: Configuration) -> None:
        self.clock = Clock()
        self.script = Script(self.clock)
        self._shelf = Shelf(self.clock)
        self._letters = [process.name[0] for process in configuration.processes]
        self.effects = [
            credit_effect(
                self.script,
                {**configuration.declared, **process.declared},
                asks=configuration.asks,
                proves_absence=configuration.proves_absence,
            )
            for process in configuration.processes
        ]
        kinds = tuple(
            Kind(made.definition, process.only_reads, process.observe_now)
            for process, made in zip(configuration.processes, self.effects, strict=True)
        )
        self.passes = Passes(self._shelf, kinds)
        self._stored: Numbers[Stored] = Numbers()
        self._replies: Numbers[Any] = Numbers()
        self._known: dict[tuple[Any, ...], Any] = {}
        self.empty = self._stored.of(Stored(None))

    # -- what is stored --------------------------------------------------------------------------------------

    def stored(self, number: int) -> Stored:
        """What the ledger holds."""
        return self._stored.values[number]

    def row(self, number: int) -> Operation | None:
        """The row that the ledger holds."""
        return self._stored.values[number].row

    def rows(self) -> list[Operation]:
        """Every row met so far."""
        return [stored.row for stored in self._stored.values if stored.row is not None]

    def reply(self, number: int) -> Any:
        """One reply."""
        return self._replies.values[number]

    def known_to(self, stored: int, points: tuple[int, ...]) -> int:
        """The same, once only the passes at these points go on."""
        key = ("known to", stored, points)
        if key not in self._known:
            here = [self.passes.points[point] for point in points]
            names = frozenset().union(*(point.names for point in here))
            alive = frozenset([point.seat.nonce for point in here])
            version = max([point.version for point in here], default=0)
            self._known[key] = self._stored.of(known_to(self.stored(stored), alive, names, version))
        known: int = self._known[key]
        return known

    def holder(self, stored: int) -> str | None:
        """The nonce of the pass whose attempt is reserved."""
        row = self.row(stored)
        return row.latest.nonce.partition(".")[0] if row is not None and row.reserved else None

    def begun(self, kind: int, stored: int, points: tuple[int, ...]) -> int:
        """The point of a pass of this kind that begins, under a name that nobody knows."""
        key = ("begun", kind, stored, points)
        if key not in self._known:
            here = [self.passes.points[point] for point in points]
            known = [name for point in here for name in (f"{point.seat.nonce}.", *point.names)]
            text = " ".join([*names_in(self.stored(stored)), *known])
            named = map(f"{self._letters[kind]}{{}}".format, range(1, 99))
            nonce = next(name for name in named if f"{name}." not in text)
            self._known[key] = self.passes.start(kind, nonce).index
        known_: int = self._known[key]
        return known_

    def nonce(self, point: int) -> str:
        """Of the pass at this point."""
        return self.passes.points[point].seat.nonce

    # -- passes ----------------------------------------------------------------------------------------------

    def asks(self, point: int) -> Command[Any] | None:
        """What a pass asks at this point; None: it has ended."""
        return self.passes.points[point].command

    def told(self, point: int, reply: int) -> int:
        """The point that a pass reaches when it is told this; what is pure is answered at once."""
        key = ("told", point, reply)
        if key not in self._known:
            after = self.passes.after(self.passes.points[point], reply, self.reply(reply))
            while isinstance(after.command, Reconcile):
                judged = self._replies.of(_call(after.seat.hooks.prepare(after.command)))
                after = self.passes.after(after, judged, self.reply(judged))
            self._known[key] = after.index
        known: int = self._known[key]
        return known

    def left(self, stored: int, point: int, clock: int) -> int:
        """What the ledger holds after a pass has gone, by its end or an exception."""
        key = ("left", stored, point, clock)
        if key not in self._known:
            seat = copy(self.passes.points[point].seat)
            self._put(stored, clock, ())
            seat.__exit__()
            self._known[key] = self._stored.of(self._shelf.take())
        known: int = self._known[key]
        return known

    # -- the ledger ------------------------------------------------------------------------------------------

    def perform(self, stored: int, point: int, clock: int, now: int, sent: int, alive: tuple[str, ...]) -> Answer:
        """Answer a pass's ledger command.

        Args:
            stored: before.
            point: of the pass.
            clock: the ledger's.
            now: when the reply is read.
            sent: when the statement was sent.
            alive: the passes whose locks are held, as far as they matter.
        """
        key = (stored, point, clock, now, sent, alive)
        known: Answer | None = self._known.get(key)
        if known is None:
            command = self.asks(point)
            assert isinstance(command, LedgerCommand)
            self._put(stored, clock, alive)
            reply = self._shelf.perform(command)
            if reply is not None:
                reply = evolve(reply, reading=Reading(reply.reading.now, sent, now))
            after = self._stored.of(self._shelf.take())
            known = self._known[key] = Answer(after, self._replies.of(reply))
        return known

    def given_up(self, stored: int, point: int, clock: int, *, committed: int | None) -> int:
        """What the ledger holds after it did not answer and the pass has gone; ``committed``: what it did write."""
        key = ("given up", stored, point, clock, committed)
        if key not in self._known:
            here = self.passes.points[point]
            seat = copy(here.seat)
            assert isinstance(here.command, LedgerCommand)
            seat.asking(here.command)
            self._put(stored if committed is None else committed, clock, ())
            seat.__exit__()
            self._known[key] = self._stored.of(self._shelf.take())
        known: int = self._known[key]
        return known

    def decided(self, stored: int, clock: int, word: str, until: int | None = None) -> int:
        """What the ledger holds after the review desk has said this; the same if it was refused."""
        key = (stored, clock, word, until)
        if key not in self._known:
            self._put(stored, clock, ())
            with suppress(DecisionRefused):
                self._say(stored, word, until)
            self._known[key] = self._stored.of(self._shelf.take())
        known: int = self._known[key]
        return known

    def _say(self, stored: int, word: str, until: int | None) -> None:
        row, desk = self.row(stored), ReviewDesk(self._shelf)
        assert row is not None
        asked = row.review if word == "revoke" else row.episode
        assert asked is not None
        if word == "approved":
            expires = None if until is None else at(until)
            desk.approved("r1", token=asked.token, reviewer="ada", expires_at=expires)
        elif word == "applied":
            desk.applied(self.effects[0], "r1", "credited", token=asked.token, reviewer="ada")
        else:
            getattr(desk, word)("r1", token=asked.token, reviewer="ada")

    def _put(self, stored: int, clock: int, alive: tuple[str, ...]) -> None:
        self.clock.time = clock
        self._shelf.put(self.stored(stored), alive)

    # -- hooks -----------------------------------------------------------------------------------------------

    def too_late(self, point: int, now: int) -> int | None:
        """The number of the answer of a hook that is not called any more; None: it is called."""
        key = ("begins", point, now)
        if key not in self._known:
            self.clock.time = now
            prepared = self._prepared(point)
            self._known[key] = self._replies.of(prepared) if isinstance(prepared, Executed) else None
        known: int | None = self._known[key]
        return known

    def hook(self, point: int, began: int, ended: int, how: str, answer: Any = None) -> int:
        """The number of the answer of a hook that began and ended then, so."""
        key = ("ends", point, began, ended, how, answer)
        if key not in self._known:
            self.clock.time = began
            prepared = self._prepared(point)
            self.script.next = Ending(ended, answer, _ERRORS[how]() if how in _ERRORS else None)
            self._known[key] = self._replies.of(_call(prepared) if isinstance(prepared, HookCall) else prepared)
        known: int = self._known[key]
        return known

    def _prepared(self, point: int) -> Any:
        here = self.passes.points[point]
        assert isinstance(here.command, HookCommand)
        return here.seat.hooks.prepare(here.command)
