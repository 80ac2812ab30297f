"""With a redactor set, what a provider says by mistake is nowhere: in no ledger's bytes, log, error or repr (T3).
The same search without one finds it, so that it can fail.
"""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from psycopg import sql

from corrobo_core import (
    Attempt,
    Check,
    CorroboError,
    Effect,
    EffectRunner,
    MemoryLedger,
    Observation,
    PostgresLedger,
    SqliteLedger,
    Verdict,
    effect,
)
from corrobo_core.commands import Load
from corrobo_core.http import classify
from corrobo_core.records import OperationKey

SECRET = "sk_live_51H8canary"


def redact(text: str) -> str:
    return text.replace(SECRET, "***")


def provider_error(status: int = 503) -> Exception:
    """An answer with the secret in its address, its headers and its body; and a chain and notes that quote it."""
    request = httpx.Request("POST", f"https://api.example/?key={SECRET}", headers={"Authorization": SECRET})
    answer = httpx.Response(status, request=request, text=f"no such key: {SECRET}", headers={"x-key": SECRET})
    error = httpx.HTTPStatusError(f"{status} for {request.url}: {answer.text}", request=request, response=answer)
    error.add_note(f"sent with {SECRET}")
    error.__cause__ = ConnectionError(f"proxy {SECRET}")
    return error


def raising(*_: Any) -> Any:
    raise provider_error()


def refused() -> None:
    raise classify(provider_error(401))


def leaky(number: int, hooks: dict[str, Callable[..., Any]]) -> Effect[[str], None]:
    """An effect that sends nothing, with some hooks that quote the secret."""

    @effect(f"tests/leaky-{number}", identity=lambda reference: reference)
    def send(attempt: Attempt, reference: str) -> None:
        hooks.get("execute", lambda: None)()

    @send.observe
    def seen(attempt: Attempt) -> Observation[None]:
        hooks.get("observe", lambda: None)()
        return Observation.of(None, source="books", proves_absence=True)

    @seen.reconcile
    def judge(attempt: Attempt, found: None) -> Verdict[None]:
        return hooks.get("reconcile", lambda: Verdict.pending("PENDING", "wait"))()  # type: ignore[no-any-return]

    if "authorize" in hooks:
        send.authorize(lambda attempt, reference: hooks["authorize"]())
    if "revalidate" in hooks:
        send.revalidate(lambda attempt, reference: hooks["revalidate"]())
    return send


HOOKS: list[dict[str, Callable[..., Any]]] = [
    *({name: raising} for name in ("execute", "observe", "reconcile", "authorize", "revalidate")),
    {"execute": refused},
    {"reconcile": lambda: Verdict.conflicted("SEEN", f"found {SECRET}")},
    {"authorize": lambda: Check.requires_review(f"may {SECRET} pay?")},
    {"revalidate": lambda: Check.reject(f"{SECRET} is blocked")},
]


def shown_by(ledger: MemoryLedger | SqliteLedger | PostgresLedger) -> list[str]:
    """All that a user of the library gets to see."""
    shown = [repr(ledger)]
    for number, hooks in enumerate(HOOKS):
        result = EffectRunner(ledger).run(leaky(number, hooks), f"rf_{number}")
        key = OperationKey("default", f"rf_{number}", f"tests/leaky-{number}")
        shown += [repr(result), str(result), repr(ledger.perform(Load(key)))]
        try:
            result.unwrap()
        except CorroboError as error:
            again = pickle.loads(pickle.dumps(error))
            shown += ["".join(traceback.format_exception(error)), repr(error), str(again), repr(again.args)]
    return shown


def everything_in_postgres(dsn: str) -> str:
    """Every row of every table of the ledger, as text."""
    rows: list[str] = []
    with psycopg.connect(dsn) as connection:
        tables = connection.execute("select tablename from pg_tables where schemaname = 'corrobo'").fetchall()
        assert len(tables) >= 4
        for (table,) in tables:
            query = sql.SQL("select t::text from {} t").format(sql.Identifier("corrobo", table))
            rows += [row for (row,) in connection.execute(query)]
    return "\n".join(rows)


@pytest.mark.parametrize(("redactor", "found"), [(redact, False), (None, True)], ids=["redacted", "naive"])
@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_T3_a_secret_is_nowhere_once_there_is_a_redactor(
    kind: str,
    redactor: Callable[[str], str] | None,
    found: bool,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    ledger: MemoryLedger | SqliteLedger | PostgresLedger
    match kind:
        case "memory":
            ledger = MemoryLedger()
            ledger.redact = redactor  # type: ignore[attr-defined]
        case "sqlite":
            ledger = SqliteLedger(tmp_path / "effects.db", redact=redactor)
        case _:
            ledger = PostgresLedger(request.getfixturevalue("postgres_dsn"), redact=redactor)
    with ledger:
        ledger.migrate()
        shown = shown_by(ledger)
        stored = [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
        if kind == "postgres":
            stored.append(everything_in_postgres(request.getfixturevalue("postgres_dsn")))
    assert any(SECRET in text for text in shown) is found
    assert any(SECRET in text for text in stored) is (found and kind != "memory")
    assert SECRET not in caplog.text  # the library logs nothing of a hook
