"""What our speed is compared with, on plain psycopg: our two statements, and nine with a lock per operation."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import resources
from typing import Any, TypeAlias

import psycopg
from psycopg_pool import AsyncConnectionPool

from corrobo_core.ledgers.document import to_document
from corrobo_core.records import AttemptRecord, Disposition, Evidence, Operation, OperationKey, Outcome, Reason
from tests.bench.effects import WINDOW

POOL = 16
Pool: TypeAlias = AsyncConnectionPool[psycopg.AsyncConnection[tuple[Any, ...]]]


def statement(name: str, schema: str) -> bytes:
    """One of the ledger's own statements, as it is sent."""
    text = (resources.files("corrobo_core.ledgers") / "sql" / "postgres" / f"{name}.sql").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    return " ".join(lines).replace("{schema}", f'"{schema}"').encode()


class TwoStatements:
    """The ledger's two statements for one effect, sent by psycopg and nothing around them."""

    def __init__(self, pool: Pool, owner: int, schema: str) -> None:
        self._pool, self._owner = pool, owner
        self._open, self._record = statement("open", schema), statement("record", schema)
        nonce = f"{secrets.token_hex(8)}.1"
        attempt = AttemptRecord(1, nonce, window=WINDOW, timeout=WINDOW / 2)
        first = Operation(
            OperationKey("two", "", "bench/waiting"),
            '{"reference":"op-12345678-123456"}',
            "v1:sha256:" + "0" * 64,
            attempts=(attempt,),
            reason=Reason.IN_PROGRESS.value,
        )
        done = replace(
            first,
            attempts=(replace(attempt, outcome=Outcome.RESPONDED),),
            disposition=Disposition.COMPLETE,
            reason=Reason.EFFECT_CONFIRMED.value,
            evidence=Evidence.APPLIED,
        )
        self._first, self._documents = first, (to_document(first), to_document(done))

    async def run(self, reference: str, provider_seconds: float) -> None:
        """Insert with the reservation, wait for the provider holding nothing, record."""
        first, nonce = self._first, secrets.token_hex(8)
        async with self._pool.connection() as connection:
            cursor = psycopg.AsyncRawCursor(connection)
            await cursor.execute(
                self._open,
                (
                    "two",
                    reference,
                    first.key.type,
                    first.fingerprint,
                    first.intent,
                    self._owner,
                    f"{nonce}.1",
                    self._documents[0],
                    True,
                    False,
                ),
            )
            await cursor.fetchall()
        if provider_seconds:
            await asyncio.sleep(provider_seconds)
        async with self._pool.connection() as connection:
            cursor = psycopg.AsyncRawCursor(connection)
            await cursor.execute(self._record, ("two", reference, 1, None, f"{nonce}.2", self._documents[1]))
            await cursor.fetchall()


@asynccontextmanager
async def two_statements(dsn: str, schema: str = "corrobo") -> AsyncIterator[TwoStatements]:
    """With a pool of 16 and an owner lock of its own, as the ledger has."""
    owner = secrets.randbits(62)
    async with (
        await psycopg.AsyncConnection.connect(dsn, autocommit=True) as lock,
        AsyncConnectionPool(dsn, min_size=POOL, max_size=POOL, kwargs=_plain(), open=False) as pool,
    ):
        await lock.execute("select pg_advisory_lock(%s)", (owner,))
        yield TwoStatements(pool, owner, schema)


NINE = """
create schema if not exists nine;
create table if not exists nine.operation (id text primary key, state text, doc jsonb, at timestamptz);
create table if not exists nine.attempt (
  id text, number int, state text, doc jsonb, at timestamptz, primary key (id, number));
"""


class NineStatements:
    """One connection and one advisory lock held for each operation while its provider is asked."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def run(self, reference: str, provider_seconds: float) -> None:
        """Lock, read, write, read, write, wait for the provider, three writes, unlock."""
        async with self._pool.connection() as connection:
            execute = connection.execute
            await execute("select pg_advisory_lock(hashtextextended(%s, 0))", (reference,))
            await execute("select state, doc from nine.operation where id = %s", (reference,))
            await execute("insert into nine.operation values (%s, 'open', '{}', now())", (reference,))
            await execute("select number, state from nine.attempt where id = %s", (reference,))
            await execute("insert into nine.attempt values (%s, 1, 'reserved', '{}', now())", (reference,))
            if provider_seconds:
                await asyncio.sleep(provider_seconds)
            await execute("update nine.attempt set state = 'responded', at = now() where id = %s", (reference,))
            await execute("update nine.attempt set doc = %s where id = %s", ('{"seen": true}', reference))
            await execute("update nine.operation set state = 'complete', at = now() where id = %s", (reference,))
            await execute("select pg_advisory_unlock(hashtextextended(%s, 0))", (reference,))


@asynccontextmanager
async def nine_statements(dsn: str) -> AsyncIterator[NineStatements]:
    """With the same pool of 16."""
    async with AsyncConnectionPool(dsn, min_size=POOL, max_size=POOL, kwargs=_plain(), open=False) as pool:
        async with pool.connection() as connection:
            await connection.execute(NINE)
        yield NineStatements(pool)


def _plain() -> dict[str, object]:
    return {"autocommit": True, "prepare_threshold": None}
