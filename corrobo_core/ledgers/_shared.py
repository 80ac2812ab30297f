"""What the SQL ledgers share: reading rows, the registry of running passes, abandoned attempts, migrations.

Source: semantics C2, C4, C12, L7.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, TypeVar

from corrobo_core.commands import Holder, LedgerCommand, Load, Open
from corrobo_core.errors import UsageError
from corrobo_core.frozen import evolve
from corrobo_core.ledgers.document import from_row
from corrobo_core.records import Operation, OperationKey

__all__ = [
    "Abandoned",
    "LedgerBase",
    "Migration",
    "Passes",
    "Row",
    "holder",
    "in_own_thread",
    "migrations",
    "new_owner_key",
    "nonce_of_pass",
    "read_row",
    "with_reservation",
]

T = TypeVar("T")

MAX_NAMESPACE = 200


# -- rows -----------------------------------------------------------------------------


class Row(NamedTuple):
    """The columns of one operation, in the order in which every statement returns them."""

    type: str
    fp: str
    intent: str
    version: int
    owner: int | None
    nonce: str
    started: datetime | None
    doc: str | Mapping[str, Any]


def read_row(ledger: str, namespace: str, operation_id: str, row: Row) -> Operation:
    """The operation that a row holds.

    Args:
        ledger: for the error text.
        namespace: of the row.
        operation_id: of the row.
        row: ``started`` aware.

    Raises:
        LedgerCorruptError: the document does not read back. Not retryable.
    """
    return from_row(
        ledger=ledger,
        namespace=namespace,
        operation_id=operation_id,
        operation_type=row.type,
        intent=row.intent,
        fingerprint=row.fp,
        version=row.version,
        owner=row.owner,
        nonce=row.nonce,
        started=row.started,
        document=row.doc,
    )


def with_reservation(operation: Operation, version: int, owner: int, started: datetime) -> Operation:
    """What is stored after the latest attempt was reserved, without reading it back."""
    latest = evolve(operation.attempts[-1], started=started)
    return evolve(operation, version=version, owner=owner, attempts=(*operation.attempts[:-1], latest))


# -- owners and passes -----------------------------------------------------------------------------


def new_owner_key() -> int:
    """64 random bits, as the signed integer that databases keep (C11)."""
    return secrets.randbits(64) - (1 << 63)


def nonce_of_pass(attempt_nonce: str) -> str:
    """The nonce of the pass that reserved an attempt: what stands before the dot."""
    return attempt_nonce.partition(".")[0]


class Passes:
    """The passes that run in this process (C4). Safe to use from every thread."""

    def __init__(self) -> None:
        self._running: set[str] = set()  # one add or discard is atomic

    def started(self, nonce: str) -> None:
        """A pass begins."""
        self._running.add(nonce)

    def ended(self, nonce: str) -> None:
        """A pass is over, however it ended."""
        self._running.discard(nonce)

    def running(self, attempt_nonce: str) -> bool:
        """Whether the pass that reserved this attempt still goes on here."""
        return nonce_of_pass(attempt_nonce) in self._running

    def clear(self) -> None:
        """Forget all of them: a forked child runs none of its parent's passes."""
        self._running.clear()


def holder(operation: Operation, own: int | None, passes: Passes, lives: Callable[[int], bool]) -> Holder:
    """Who makes the reserved attempt.

    Args:
        operation: as stored.
        own: this process's owner key, or None if it has none now.
        passes: what runs in this process.
        lives: whether another owner's lock is held; asked for no other key.

    Source: semantics C4.
    """
    owner = operation.owner
    if owner is None or not operation.attempts:
        return Holder.NOBODY
    alive = passes.running(operation.attempts[-1].nonce) if owner == own else lives(owner)
    return Holder.RUNNING if alive else Holder.GONE


class Abandoned:
    """Attempts given up without a record, still to be marked (L7). Safe from every thread."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[OperationKey, str]] = deque()  # append and popleft are atomic

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, key: OperationKey, nonce: str) -> None:
        """Remember one; no I/O."""
        self._waiting.append((key, nonce))

    def take(self) -> tuple[OperationKey, str] | None:
        """The oldest one, or None. Whoever cannot mark it puts it back with `add`."""
        try:
            return self._waiting.popleft()
        except IndexError:
            return None

    def clear(self) -> None:
        """Forget all of them: they belong to the parent of a forked child."""
        self._waiting.clear()


async def in_own_thread(fn: Callable[[], T]) -> T:
    """Run ``fn`` in a thread of its own: the loop's can all be in use, or shut down by ``DBOS.destroy()``."""
    with ThreadPoolExecutor(1, "corrobo-ledger") as thread:
        return await asyncio.get_running_loop().run_in_executor(thread, fn)


class LedgerBase:
    """The part of a ledger that does no I/O.

    Args:
        namespace: 1 to 200 characters without NUL or lone surrogates (C8).
        redact: sees every text of an exception before it is stored (T3).

    Raises:
        UsageError: the namespace cannot be stored. Not retryable.
    """

    def __init__(self, namespace: str, redact: Callable[[str], str] | None = None) -> None:
        self.redact = redact
        self._namespace = _checked_namespace(type(self).__name__, namespace)
        self._passes = Passes()
        self._abandoned = Abandoned()

    @property
    def namespace(self) -> str:
        """Operations of two namespaces never meet, and may have equal ids (C8)."""
        return self._namespace

    def pass_started(self, nonce: str, /) -> None:
        """Put a pass into the registry of running passes (C4)."""
        self._passes.started(nonce)

    def pass_ended(self, nonce: str, /) -> None:
        """Take it out again."""
        self._passes.ended(nonce)

    def abandon(self, key: OperationKey, nonce: str, /) -> None:
        """Remember that the attempt reserved under ``nonce`` is no longer made. Does no I/O (L7)."""
        self._abandoned.add(key, nonce)

    def _marks_before(self, command: LedgerCommand[Any]) -> bool:
        """Abandoned attempts are marked when a pass begins, before it reads: a mark is a write, and would cost a
        pass of this process the version that it has read.
        """
        return bool(self._abandoned) and isinstance(command, Open | Load)


def _checked_namespace(ledger: str, namespace: object) -> str:
    if not isinstance(namespace, str) or not 1 <= len(namespace) <= MAX_NAMESPACE:
        raise UsageError(ledger, f"namespace: pass text of 1 to {MAX_NAMESPACE} characters")
    if "\x00" in namespace or any("\ud800" <= char <= "\udfff" for char in namespace):
        raise UsageError(ledger, "namespace: text with NUL or a lone surrogate; remove it")
    return namespace


# -- schema -----------------------------------------------------------------------------


class Migration(NamedTuple):
    """One numbered step: ``schema/<dialect>/0001_name.sql``."""

    number: int
    sql: str


@cache
def migrations(dialect: str) -> tuple[Migration, ...]:
    """All steps of a dialect (``sqlite``, ``postgres``), in order, without gaps from 1."""
    folder = resources.files("corrobo_core.ledgers") / "schema" / dialect
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda e: e.name)
    steps = tuple(Migration(int(file.name.partition("_")[0]), file.read_text("utf-8")) for file in files)
    assert [step.number for step in steps] == list(range(1, len(steps) + 1)), "migrations have gaps"
    return steps
