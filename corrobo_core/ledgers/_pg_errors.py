"""What PostgreSQL's refusals mean: try again, or say which of the ledger's errors it is.

Source: semantics C8, C9, C12.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import timedelta

from corrobo_core.errors import (
    LedgerError,
    LedgerNotMigratedError,
    LedgerUnavailable,
    OwnerConnectionError,
    StandbyError,
)

__all__ = ["Again", "Lost", "OwnerLost", "Patience", "Place", "refusal"]


class Again(Exception):
    """The statement was not answered. Sending it again is safe: it names its version, or its own row."""


class Lost(Again):
    """The connection is gone with it; others to the same server probably are too."""


class OwnerLost(Again):
    """The statement did nothing, because this process's owner lock is not held any more."""


@dataclass(frozen=True, slots=True)
class Place:
    """Which ledger errors speak of, without credentials.

    Attributes:
        name: server, database and schema.
        schema: the schema alone.
        secrets: texts that must not appear in any error.
    """

    name: str
    schema: str
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Place({self.name!r})"

    def clean(self, error: BaseException | str) -> str:
        """An error's text in one line, without passwords."""
        text = " ".join(str(error).split())
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text

    def not_migrated(self, found: str) -> LedgerNotMigratedError:
        """The schema is missing, or older than this release needs."""
        return LedgerNotMigratedError(self.name, f"{found}; call PostgresLedger(...).migrate() once")

    def standby(self) -> StandbyError:
        """The server is a hot standby."""
        return StandbyError(
            self.name,
            "the server is a hot standby (or default_transaction_read_only is on): its reads lag and it takes no"
            " reservation; pass the primary's address",
        )


_READ_ONLY = "25006"
_NO_SCHEMA = frozenset({"42P01", "3F000", "42703"})  # table, schema, column
# Serialization failure, deadlock, lock timeout, statement cancelled by a timeout or by hand.
_CONFLICT = frozenset({"40001", "40P01", "55P03", "57014"})
# Connection, resources, operator intervention, system: over by itself, or soon over.
_PASSING = frozenset({"08", "53", "57", "58"})


def refusal(place: Place, sqlstate: str, message: str) -> Exception:
    """The exception for an error that the server answered with.

    Args:
        place: for the error text.
        sqlstate: five characters, or "" where libpq made the error up because the connection broke.
        message: the primary message alone; details can quote data.
    """
    text = f"{place.clean(message)} ({sqlstate or 'connection lost'})"
    if sqlstate in _CONFLICT:
        return Again(text)
    if not sqlstate or sqlstate[:2] in _PASSING:
        return Lost(text)
    if sqlstate in _NO_SCHEMA:
        return place.not_migrated(f"schema {place.schema!r} is missing or incomplete")
    if sqlstate == _READ_ONLY:
        return place.standby()
    return LedgerError(place.name, f"PostgreSQL refused: {text}")


# The server was reached and turns this login down: waiting does not help, though fixing the server may.
_LOGIN_REFUSED = re.compile(
    r"authentication failed|no pg_hba\.conf entry|(role|database|user) \"[^\"]*\" does not exist"
    r"|no password supplied|no such (user|database)",
    re.IGNORECASE,
)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.5
_OWNERS_LOST = 3


class Patience:
    """How long one command may go on trying (C9). Never covers more than the statement.

    Args:
        place: for the error text.
        bound: from now on.
        once: give up after the first failure, or the second if the first was a connection left from before.
    """

    def __init__(self, place: Place, bound: timedelta, *, once: bool = False) -> None:
        self._place, self._bound, self._once = place, bound.total_seconds(), once
        self._until = time.monotonic() + self._bound
        self._tries = 0
        self._owners_lost = 0

    @property
    def left(self) -> float:
        """Seconds left; a try gets at least a moment."""
        return max(self._until - time.monotonic(), 0.05)

    @property
    def for_a_reply(self) -> float:
        """Seconds to wait for one reply: a dead server must not use up all the patience at once."""
        return min(self.left, max(self._bound / 3, 1.0))

    def pause(self, failure: Again) -> float:
        """Seconds to wait before the next try.

        Raises:
            LedgerUnavailable: it has gone on long enough. Retryable.
            OwnerConnectionError: new owner locks keep being invisible to the statements. Not retryable.
        """
        text = self._place.clean(failure)
        if self._once and not (isinstance(failure, Lost) and self._tries == 0):
            raise LedgerUnavailable(self._place.name, text)
        if isinstance(failure, OwnerLost):
            self._owners_lost += 1
            if self._owners_lost > _OWNERS_LOST:
                raise OwnerConnectionError(
                    self._place.name, "dsn and owner_dsn lead to different databases; pass one database's addresses"
                )
            return 0.0
        if _LOGIN_REFUSED.search(text):
            raise LedgerUnavailable(self._place.name, f"the login is refused: {text}")
        pause = min(_FIRST_PAUSE * 2**self._tries, _LONGEST_PAUSE)
        self._tries = min(self._tries + 1, 20)
        if time.monotonic() + pause > self._until:
            raise LedgerUnavailable(
                self._place.name, f"no answer within {self._bound:g} s; the last failure: {text}"
            )
        # The first reconnection after a loss need not wait.
        return 0.0 if self._tries == 1 and isinstance(failure, Lost) else pause
