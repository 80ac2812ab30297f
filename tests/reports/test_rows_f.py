"""Reports about damaged histories, as far as a ledger's own record is concerned (F12)."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest

from corrobo_core import (
    Attempt,
    Disposition,
    Effect,
    EffectRunner,
    Observation,
    Outcome,
    Verdict,
    binding,
    effect,
)
from corrobo_core.errors import LedgerCorruptError
from corrobo_core.ledgers import document
from corrobo_core.records import Operation
from tests.reports.provider import Provider, effect_at
from tests.support.credits import seconds
from tests.support.ledgers import ledger_at

Attempts = list[dict[str, Any]]


def edit(address: str, operation_id: str, column: str, change: Callable[[Any], str]) -> None:
    """Change a column of an operation's row, as nobody should."""
    place, _, namespace = address.partition("#")
    where = "where ns = {0} and id = {0}"
    if place.startswith("sqlite:"):
        table, where, key = "corrobo_operation", where.format("?"), ("default", operation_id)
        with closing(sqlite3.connect(place.removeprefix("sqlite://"))) as file, file:
            (found,) = file.execute(f"select {column} from {table} {where}", key).fetchone()
            file.execute(f"update {table} set {column} = ? {where}", (change(found), *key))
        return
    table, where, key = "corrobo.operation", where.format("%s"), (namespace, operation_id)
    with psycopg.connect(place) as connection:
        (found,) = connection.execute(f"select {column}::text from {table} {where}", key).fetchone() or ("",)
        connection.execute(f"update {table} set {column} = %s {where}", (change(found), *key))


def attempts_to(change: Callable[[Attempts], Attempts]) -> Callable[[str], str]:
    def changed(stored: str) -> str:
        record = json.loads(stored)
        return json.dumps({**record, "attempts": change(record["attempts"])})

    return changed


DAMAGE: dict[str, Callable[[Attempts], Attempts]] = {
    "none are left": lambda attempts: [],
    "the last is gone": lambda attempts: attempts[:-1],
    "the last stands twice": lambda attempts: [*attempts, attempts[-1]],
    "in another order": lambda attempts: attempts[::-1],
}


def lost_twice(provider: Provider, address: str) -> Effect[[str], object]:
    """Two attempts whose requests were lost."""
    do = effect_at(provider, in_flight_window=seconds(0.4))
    with ledger_at(address) as ledger:
        for _ in range(2):
            provider.fail(TimeoutError(), loses_request=True)
            waiting = EffectRunner(ledger).run(do, "refund")
            time.sleep(waiting.wait.total_seconds())
    return do


@pytest.mark.parametrize("damage", DAMAGE)
def test_f12_attempts_that_are_missing_stop_their_operation_and_no_other(damage: str, ledger_address: str) -> None:
    provider = Provider()
    do = lost_twice(provider, ledger_address)
    assert provider.sends == 2
    edit(ledger_address, "refund", "doc", attempts_to(DAMAGE[damage]))
    with ledger_at(ledger_address) as ledger:
        for _ in range(2):
            with pytest.raises(LedgerCorruptError, match="'refund'"):
                EffectRunner(ledger).run(do, "refund")
        assert provider.sends == 2
        assert EffectRunner(ledger).run(do, "another").disposition is Disposition.COMPLETE


def test_f12_a_ledger_that_believes_what_is_left_sends_again(
    ledger_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def believing(operation: Operation, started: object) -> Operation:
        return operation

    provider = Provider()
    do = lost_twice(provider, ledger_address)
    monkeypatch.setattr(document, "_with_started", believing)
    edit(ledger_address, "refund", "doc", attempts_to(DAMAGE["none are left"]))
    with ledger_at(ledger_address) as ledger:
        EffectRunner(ledger).run(do, "refund")
    assert provider.sends == 3


def paying(sent: list[int], volatile: tuple[str, ...]) -> Effect[[str, int, str], None]:
    """A payment whose requests get lost."""

    @effect(
        "reports/pay",
        identity=lambda reference, **_: reference,
        volatile=volatile,
        in_flight_window=seconds(0.4),
        execute_timeout=seconds(0.05),
    )
    def pay(attempt: Attempt, reference: str, cents: int, note: str) -> None:
        sent.append(cents)
        raise TimeoutError

    @pay.observe
    def seen(attempt: Attempt) -> Observation[None]:
        return Observation.of(None, source="bank", proves_absence=True)

    @seen.reconcile
    def judge(attempt: Attempt, found: None) -> Verdict[None]:
        return Verdict.not_applied("NOTHING")

    return pay


@pytest.mark.parametrize("volatile", [(), ("note",)])
@pytest.mark.parametrize("believing", [False, True], ids=["checked", "twin"])
def test_f12_an_intent_that_was_changed_in_the_ledger_is_not_sent(
    ledger_address: str, volatile: tuple[str, ...], believing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if believing:
        monkeypatch.setattr(binding.Parameters, "recorded", lambda self, intent, bound: self.load(intent))
    sent: list[int] = []
    pay = paying(sent, volatile)
    with ledger_at(ledger_address) as ledger:
        runner = EffectRunner(ledger)
        waiting = runner.run(pay, "rf_1", 500, "first")
        edit(ledger_address, "rf_1", "intent", lambda stored: stored.replace("500", "50000"))
        time.sleep(waiting.wait.total_seconds())
        again = runner.run(pay, "rf_1", 500, "first")
    assert sent == ([500, 50_000] if believing else [500])
    assert [attempt.outcome for attempt in again.attempts[1:]] == [
        Outcome.AMBIGUOUS if believing else Outcome.NOT_SENT
    ]


def test_f12_a_volatile_value_that_differs_is_still_the_recorded_one(ledger_address: str) -> None:
    sent: list[int] = []
    pay = paying(sent, ("cents",))
    with ledger_at(ledger_address) as ledger:
        runner = EffectRunner(ledger)
        waiting = runner.run(pay, "rf_1", 500, "first")
        time.sleep(waiting.wait.total_seconds())
        runner.run(pay, "rf_1", 700, "first")
    assert sent == [500, 500]
