"""The ledger as a function: what is stored and a command in; the reply and what is stored then out.

It is the memory ledger, whose row is put in before each command and taken out after it. What decides nothing (the
history of observations, O7, and the count of looks, since the contract's backoff is constant) is left out of what
is stored, so that equal rows are recognised as equal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from corrobo_core import MemoryLedger
from corrobo_core.frozen import evolve
from corrobo_core.records import JSON, Decision, Episode, History, Operation

PLACE = ("default", "r1")


class Stored(NamedTuple):
    """What the ledger holds."""

    row: Operation | None
    decisions: tuple[Decision, ...] = ()


class Shelf(MemoryLedger):
    """A memory ledger with one place, and one owner for each pass."""

    def __init__(self, clock: Any) -> None:
        super().__init__(clock=clock)
        self._id, self._owner = "model", 7

    def put(self, stored: Stored, alive: Iterable[str]) -> None:
        """Hold exactly this; these passes are alive, as far as their locks say."""
        self._rows = {} if stored.row is None else {PLACE: stored.row}
        self._decisions = {PLACE: stored.decisions}
        self._running = set(alive)
        self.late.clear()

    def take(self) -> Stored:
        """What is held now."""
        row = self._rows.get(PLACE)
        return Stored(None if row is None else _lean(row), self._decisions.get(PLACE, ()))


def _lean(row: Operation) -> Operation:
    attested = tuple(record for record in row.history.last if record.source.startswith("person:"))
    return evolve(row, history=History(None, attested, 0), looks=0, looking_since=None)


def known_to(stored: Stored, alive: frozenset[str], names: frozenset[str], version: int) -> Stored:
    """The same, with shorter names for what nobody who goes on knows by its name, and the lowest version for it.

    A version and a name say only whether they are equal to one that somebody knows.

    Args:
        stored: before.
        alive: the nonces of the passes that go on.
        names: the names that they know, of attempts, writes and episodes.
        version: the latest one that they know.
    """
    row, decisions = stored
    if row is None:
        return stored

    def name(long: str, short: str) -> str:
        known = long in names or long.rpartition("-")[2].partition(".")[0] in alive
        return long if known else short

    def token(long: str) -> str:
        return name(long, long.partition("-")[0])

    def episode(one: Episode | None) -> Episode | None:
        return None if one is None else evolve(one, token=token(one.token))

    def approval(one: JSON) -> JSON:
        return {**one, "token": token(str(one["token"]))} if isinstance(one, dict) else one

    attempts = tuple(
        evolve(a, nonce=name(a.nonce, f"a{a.number}.1"), approval=approval(a.approval)) for a in row.attempts
    )
    plain = evolve(
        row,
        nonce=name(row.nonce, "-"),
        version=min(row.version, version + 1),
        attempts=attempts,
        episode=episode(row.episode),
        review=episode(row.review),
        explanation="" if row.evidence else row.explanation,
    )
    return Stored(plain, tuple(evolve(decision, token=token(decision.token)) for decision in decisions))


def names_in(stored: Stored) -> list[str]:
    """Every name that the ledger holds."""
    row = stored.row
    if row is None:
        return []
    tokens = [episode.token for episode in (row.episode, row.review) if episode is not None]
    tokens += [decision.token for decision in stored.decisions]
    return [row.nonce, *(attempt.nonce for attempt in row.attempts), *tokens]
