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

from corrobo_core import Disposition, Effect, EffectRunner
from corrobo_core.errors import LedgerCorruptError
from corrobo_core.ledgers import document
from corrobo_core.records import Operation
from tests.reports.provider import Provider, effect_at
from tests.support.credits import seconds
from tests.support.ledgers import ledger_at

Attempts = list[dict[str, Any]]


def edit(address: str, operation_id: str, change: Callable[[Attempts], Attempts]) -> None:
    """Change the attempts in an operation's record, as nobody should."""
    place, _, namespace = address.partition("#")
    if place.startswith("sqlite:"):
        with closing(sqlite3.connect(place.removeprefix("sqlite://"))) as file, file:
            (found,) = file.execute("select doc from corrobo_operation where id = ?", [operation_id]).fetchone()
            file.execute(
                "update corrobo_operation set doc = ? where id = ?",
                [changed(json.loads(found), change), operation_id],
            )
        return
    with psycopg.connect(place) as connection:
        key = (namespace, operation_id)
        row = connection.execute("select doc from corrobo.operation where ns = %s and id = %s", key).fetchone()
        assert row is not None
        connection.execute(
            "update corrobo.operation set doc = %s where ns = %s and id = %s", (changed(row[0], change), *key)
        )


def changed(record: dict[str, Any], change: Callable[[Attempts], Attempts]) -> str:
    return json.dumps({**record, "attempts": change(record["attempts"])})


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
    edit(ledger_address, "refund", DAMAGE[damage])
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
    edit(ledger_address, "refund", DAMAGE["none are left"])
    with ledger_at(ledger_address) as ledger:
        EffectRunner(ledger).run(do, "refund")
    assert provider.sends == 3
