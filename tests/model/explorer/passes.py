"""Passes as data. A generator cannot be copied, so a pass is made again from its call and every reply it was told.

Two passes that were told the same ask the same next: the lifecycle has no other input. So do two that still know
the same (see `frames`), whatever they were told before; they are at one point.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from copy import copy
from dataclasses import fields
from typing import Any, NamedTuple

from corrobo_core.commands import Command, LedgerCommand
from corrobo_core.definition import Definition
from corrobo_core.errors import CorroboError
from corrobo_core.frozen import evolve
from corrobo_core.lifecycle import Program, observe, run
from corrobo_core.records import Operation
from corrobo_core.runner import _Pass
from tests.model.explorer.frames import memory
from tests.model.explorer.numbers import content
from tests.model.explorer.shelf import Shelf

_NAME = re.compile(r"(ep\d+-)?[a-z]+\d+\.\d+|ep\d+|-")
_VERSION = 1 + [each.name for each in fields(Operation)].index("version")


class Kind(NamedTuple):
    """What the passes of one kind of process have in common: their contract, and how they are called."""

    definition: Definition
    only_reads: bool
    observe_now: bool


class Seat(_Pass):
    """What a driver keeps of one pass: the driver's own class, under a nonce that the explorer gives."""

    def __init__(self, ledger: Shelf, kind: Kind, nonce: str) -> None:
        super().__init__(ledger, kind.definition, ("r1",), {}, {}, kind.observe_now)
        self.nonce, self.call = nonce, evolve(self.call, nonce=nonce)


class Point:
    """One point of one pass.

    Attributes:
        index: its number.
        kind: number of the kind of the pass.
        seat: what its driver keeps at this point.
        told: every reply so far.
        command: what it asks now; None once it has ended.
        error: what it raised, if it ended so.
        knows: everything that what it does next can depend on.
        names: the names of attempts, writes and episodes that it knows.
        version: the latest one of the row that it knows.
    """

    def __init__(self, index: int, kind: int, seat: Seat, told: tuple[Any, ...], program: Program) -> None:
        self.index, self.kind, self.seat, self.told = index, kind, seat, told
        self.command: Command[Any] | None = None
        self.error: CorroboError | None = None
        self.knows: Hashable = None
        self.names: frozenset[str] = frozenset()
        self.version = 0
        self._program: Program | None = program

    def go_on(self, reply: Any) -> None:
        """Give the program this reply, and keep what it asks next."""
        assert self._program is not None
        try:
            self.command = self._program.send(reply)
        except StopIteration:
            self.command = None
        except CorroboError as error:
            self.command, self.error = None, error
        if self.command is not None:
            self.knows = (memory(self._program), content(self.command))
            words = list(_words(self.knows))
            self.names = frozenset([word for word in words if isinstance(word, str)])
            self.version = max([word for word in words if isinstance(word, int)], default=0)

    def program(self) -> Program | None:
        """The program at this very point, once; afterwards it has gone on."""
        program, self._program = self._program, None
        return program


class Passes:
    """Every point reached so far.

    Args:
        ledger: what the passes' drivers hold.
        kinds: of passes.
    """

    def __init__(self, ledger: Shelf, kinds: tuple[Kind, ...]) -> None:
        self._ledger, self.kinds = ledger, kinds
        self.points: list[Point] = []
        self._starts: dict[tuple[int, str], Point] = {}
        self._after: dict[tuple[int, int], Point] = {}
        self._alike: dict[Hashable, Point] = {}

    def start(self, kind: int, nonce: str) -> Point:
        """A pass of this kind that was told nothing yet."""
        known = self._starts.get((kind, nonce))
        if known is None:
            seat = Seat(self._ledger, self.kinds[kind], nonce)
            known = self._reached(kind, seat, (), self._program(kind, seat))
            self._starts[kind, nonce] = known
        return known

    def after(self, point: Point, reply_number: int, reply: Any) -> Point:
        """Where a pass is once it has been told this, too."""
        known = self._after.get((point.index, reply_number))
        if known is None:
            seat = copy(point.seat)
            _keep_books(seat, point.command, reply)
            program = point.program() or self._again(point)
            known = self._reached(point.kind, seat, (*point.told, reply), program)
            self._after[point.index, reply_number] = known
        return known

    def _reached(self, kind: int, seat: Seat, told: tuple[Any, ...], program: Program) -> Point:
        """The point that the program reaches by its latest reply, which may be a known one."""
        point = Point(len(self.points), kind, seat, told, program)
        point.go_on(told[-1] if told else None)
        same = self._alike.setdefault((kind, seat.nonce, seat._reserved, point.knows), point)
        if same is point:
            self.points.append(point)
        return same

    def _program(self, kind: int, seat: Seat) -> Program:
        return (observe if self.kinds[kind].only_reads else run)(seat.call)

    def _again(self, point: Point) -> Program:
        program = self._program(point.kind, point.seat)
        for reply in (None, *point.told):
            program.send(reply)
        return program


def _words(known: Hashable) -> Iterator[str | int]:
    """The names that are known, and the versions of rows."""
    if isinstance(known, str) and _NAME.fullmatch(known):
        yield known
    elif isinstance(known, tuple):
        if known and known[0] is Operation:
            yield known[_VERSION]
        for part in known:
            yield from _words(part)


def _keep_books(seat: Seat, command: Command[Any] | None, reply: Any) -> None:
    if isinstance(command, LedgerCommand):
        seat.asking(command)
        seat.answered(command, reply)
