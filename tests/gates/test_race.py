"""Two processes, one request: one winner, every time. Rule: semantics G5."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from typing import Any, cast

from corrobo_core.gates import GateHistoryError, StoredGateClient, create_gate
from corrobo_core.ledgers.gate_port import AppendGate, GateRow, GateRows, ReadGates
from corrobo_core.ledgers.ports import Ledger
from tests.gates.racer import race
from tests.gates.support import DEFINITION, REQUEST, START, kinds
from tests.support.fixtures import ledger_address
from tests.support.ledgers import ledger_at

__all__ = ["ledger_address"]

ROUNDS = 200
spawn = multiprocessing.get_context("spawn")


def test_G5_two_processes_race_for_200_claims_and_each_has_one_winner(ledger_address: str) -> None:
    requests = [create_gate(replace(DEFINITION, gate_id=f"gate-{number}")) for number in range(ROUNDS)]
    ids = [request.request_id for request in requests]
    with ledger_at(ledger_address) as ledger:
        client = StoredGateClient(ledger, "race")
        for request in requests:
            client.post(request)
        start = spawn.Barrier(2)
        racers, ends = [], []
        for router in ("router-a", "router-b"):
            here, there = spawn.Pipe(duplex=False)
            racers.append(spawn.Process(target=race, args=(ledger_address, "race", router, ids, start, there)))
            ends.append(here)
        for racer in racers:
            racer.start()
        try:
            assert all(end.poll(60) for end in ends)
            won = [end.recv() for end in ends]
        finally:
            for racer in racers:
                racer.join(10)
                racer.kill()
                racer.join()
        assert [a + b for a, b in zip(*won, strict=True)] == [1] * ROUNDS
        assert [kinds(client, each) for each in ids] == [["requested", "claimed"]] * ROUNDS
        assert client.list_pending() == ()


class Unchecked:
    """A naive store: it appends whatever it is given, whatever has happened since the read."""

    namespace = "naive"

    def __init__(self) -> None:
        self.rows: list[GateRow] = []

    def perform(self, command: Any, /) -> Any:
        if isinstance(command, ReadGates):
            return GateRows(tuple(row for row in self.rows if row.revision > command.after), START)
        assert isinstance(command, AppendGate)
        for number, new in enumerate(command.rows, command.revision + 1):
            self.rows.append(GateRow(command.gate, number, command.nonce, *new))
        return type("Appended", (), {"written": True, "now": START})()


def test_G5_naive_twin_without_the_revision_check_has_two_winners() -> None:
    """What the check is for: the same two claims, in the same order, both won."""
    store = Unchecked()
    first, second = (StoredGateClient(cast("Ledger", store), "race") for _ in range(2))
    first.post(REQUEST)
    reading = store.perform

    def second_claims_meanwhile(command: Any) -> Any:
        reply = reading(command)
        store.perform = reading  # type: ignore[method-assign]
        winners.append(second.claim(REQUEST.request_id, "router-b").ok)
        return reply

    winners: list[bool] = []
    store.perform = second_claims_meanwhile  # type: ignore[method-assign]
    winners.append(first.claim(REQUEST.request_id, "router-a").ok)
    assert winners == [True, True]
    try:
        kinds(first)
    except GateHistoryError:
        return  # and the history cannot even be read any more
    raise AssertionError("two claims at one revision must not read back")
