"""Gates in a ledger: statements, races, lost replies, failed writes, damaged rows. Rules: semantics G5; row F12."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from corrobo_core.errors import LedgerUnavailable
from corrobo_core.gates import (
    ClaimRefused,
    GateArgumentError,
    GateHistoryError,
    Gates,
    GateStatus,
    StoredGateClient,
    SubmitRefused,
    create_gate,
    replay,
)
from corrobo_core.ledgers.gate_port import AppendGate, GateRows, ReadGates
from corrobo_core.ledgers.ports import Ledger
from corrobo_core.ledgers.sqlite import SqliteLedger
from tests.gates.support import DEFINITION, MINUTE, NO, OTHER, REQUEST, YES, Turned, claimed, kinds, state_of

RID, DIGEST = REQUEST.request_id, REQUEST.digest


@pytest.fixture
def client(ledger: Turned, stream: str) -> Gates:
    return at(ledger, stream)


def at(ledger: Turned, stream: str) -> StoredGateClient:
    """A client without memory: another process's."""
    return StoredGateClient(cast("Ledger", ledger), stream)


def what_the_log_says(ledger: Turned, stream: str) -> str:
    ledger.fail = lambda number: None
    return replay(at(ledger, stream).history()).state.to_json()


# -- statements ----------------------------------------------------------------------------------------------


def test_G5_a_claim_is_two_statements_a_read_and_an_append(ledger: Turned, stream: str, client: Gates) -> None:
    client.post(REQUEST)
    for router in (client, at(ledger, stream)):  # one that knows the log, one that does not
        ledger.commands.clear()
        token = claimed(router)
        assert [type(command) for command in ledger.commands] == [ReadGates, AppendGate]
        ledger.commands.clear()
        assert not client.claim(RID, "router-b").ok
        assert [type(command) for command in ledger.commands] == [ReadGates]
        assert router.release(RID, token).ok


def test_G5_what_is_known_is_not_read_again(ledger: Turned, stream: str, client: Gates) -> None:
    client.post(REQUEST)
    for _ in range(5):
        client.release(RID, claimed(client))
    ledger.commands.clear()
    claimed(client)
    read = ledger.commands[0]  # the last event that is known, to see that it is still there, and what follows
    assert isinstance(read, ReadGates) and read.after == 10
    assert [row.revision for row in cast("GateRows", ledger.perform(read)).rows] == [11, 12]


def test_G3_a_new_client_of_the_stream_rebuilds_every_state(ledger: Turned, stream: str, client: Gates) -> None:
    client.post(REQUEST, deadline=MINUTE)
    client.submit(RID, claimed(client), "router-a", DIGEST, YES)
    client.post(OTHER)
    claimed(client, request_id=OTHER.request_id, lease=MINUTE)
    elsewhere = create_gate(replace(DEFINITION, gate_id="another"))
    client.post(elsewhere)
    again = at(ledger, stream)
    assert state_of(again).to_json() == state_of(client).to_json() == replay(client.history()).state.to_json()
    assert [view.request_id for view in again.list_pending()] == [elsewhere.request_id]


def test_C8_streams_and_namespaces_never_meet(ledger: Turned, stream: str, client: Gates) -> None:
    client.post(REQUEST)
    other = at(ledger, stream + "-other")
    assert (other.claim(RID, "router-a"), other.history()) == (ClaimRefused("missing"), ())
    for bad in ("", "x" * 201, "\x00"):
        with pytest.raises(GateArgumentError):
            at(ledger, bad)


# -- races ---------------------------------------------------------------------------------------------------


def interleaved(ledger: Turned, other: Callable[[], object]) -> None:
    """Let another client act once, between this one's next read and its append."""

    def once() -> None:
        ledger.after_read = lambda: None
        other()

    ledger.after_read = once


def test_G5_a_claim_that_came_second_is_decided_anew(ledger: Turned, stream: str, client: Gates) -> None:
    client.post(REQUEST)
    interleaved(ledger, lambda: claimed(at(ledger, stream), "router-b"))
    assert client.claim(RID, "router-a") == ClaimRefused("claimed", "router-b")
    assert kinds(client) == ["requested", "claimed"]


def test_G5_an_answer_that_races_a_newer_question_is_stale(ledger: Turned, stream: str, client: Gates) -> None:
    client.post(REQUEST)
    token = claimed(client)
    interleaved(ledger, lambda: at(ledger, stream).post(OTHER))
    refused = client.submit(RID, token, "router-a", DIGEST, YES)
    assert isinstance(refused, SubmitRefused) and refused.kind == "stale"


def test_G7_a_process_that_slept_past_the_deadline_records_no_answer(
    ledger: Turned, stream: str, client: Gates
) -> None:
    """It read before the deadline, and would append after it; nobody has recorded the expiry."""
    client.post(REQUEST, deadline=10 * MINUTE)
    token = claimed(client)
    interleaved(ledger, lambda: ledger.turn(11 * MINUTE))
    refused = client.submit(RID, token, "router-a", DIGEST, YES)
    assert isinstance(refused, SubmitRefused) and (refused.kind, refused.late) == ("expired", True)
    assert kinds(client) == ["requested", "deadline-set", "claimed", "expired", "submitted"]


def test_G5_gates_of_one_stream_do_not_wait_for_each_other(ledger: Turned, stream: str, client: Gates) -> None:
    elsewhere = create_gate(replace(DEFINITION, gate_id="another"))
    client.post(REQUEST)
    client.post(elsewhere)
    interleaved(ledger, lambda: claimed(at(ledger, stream), "router-b", elsewhere.request_id))
    ledger.commands.clear()
    claimed(client)
    assert ledger.appends == 2


# -- failures ------------------------------------------------------------------------------------------------


def a_days_work(client: Gates, ledger: Turned) -> None:
    """Every kind of append, twelve of them. What fails is tried once more, as a caller would."""

    def again(act: Callable[[], Any]) -> Any:
        try:
            return act()
        except LedgerUnavailable:
            return act()

    again(lambda: client.post(REQUEST, deadline=60 * MINUTE))
    again(lambda: client.claim(RID, "router-a", claim_token="a", lease=MINUTE))
    again(lambda: client.submit(RID, "a", "router-a", DIGEST, {"approved": "?"}))
    ledger.turn(2 * MINUTE)
    again(lambda: client.claim(RID, "router-b", claim_token="b"))
    again(lambda: client.release(RID, "b"))
    again(lambda: client.claim(RID, "router-c", claim_token="c"))
    again(lambda: client.release_claim(RID, operator="ada", reason="gone"))
    again(lambda: client.claim(RID, "router-d", claim_token="d"))
    again(lambda: client.submit(RID, "d", "router-d", DIGEST, YES))
    again(lambda: client.post(OTHER, deadline=MINUTE))
    ledger.turn(2 * MINUTE)
    again(client.expire)
    again(lambda: client.post(OTHER, reopen=True))


@pytest.mark.parametrize("how", ["before", "after"])
def test_G5_a_failure_at_any_write_leaves_what_the_log_says(ledger: Turned, stream: str, how: str) -> None:
    for failing in range(1, 13):
        each = f"{stream}-{failing}"
        client = at(ledger, each)
        ledger.commands.clear()
        ledger.fail = lambda number, failing=failing: how if number == failing else None  # type: ignore[misc]
        a_days_work(client, ledger)
        assert ledger.appends >= 12
        assert state_of(client).to_json() == what_the_log_says(ledger, each)
        shown = client.show(RID)
        assert shown is not None and shown.answer is not None
        assert (shown.answer.response, shown.answer.router_id) == (YES, "router-d")
        assert kinds(client, RID).count("submitted") == 1


@pytest.mark.parametrize("how", ["before", "after"])
def test_G5_an_answer_is_there_or_it_is_not(ledger: Turned, stream: str, client: Gates, how: str) -> None:
    client.post(REQUEST)
    token = claimed(client)
    ledger.commands.clear()
    ledger.fail = lambda number: how
    with pytest.raises(LedgerUnavailable):
        client.submit(RID, token, "router-a", DIGEST, YES)
    ledger.fail = lambda number: None
    shown = client.show(RID)
    assert shown is not None
    assert shown.status is (GateStatus.CLAIMED if how == "before" else GateStatus.ANSWERED)
    again = client.submit(RID, token, "router-a", DIGEST, YES)
    assert again.ok if how == "before" else isinstance(again, SubmitRefused) and again.same


class Resending:
    """A ledger that sends each append twice: the first reply was lost inside it, as on a broken connection (C9)."""

    def __init__(self, ledger: Turned) -> None:
        self._ledger = ledger
        self.namespace = ledger.namespace

    def perform(self, command: Any, /) -> Any:
        if isinstance(command, AppendGate):
            self._ledger.perform(command)
        return self._ledger.perform(command)


def test_C2_a_write_whose_reply_was_lost_recognises_its_own_row(ledger: Turned, stream: str) -> None:
    client = StoredGateClient(cast("Ledger", Resending(ledger)), stream)
    assert client.post(REQUEST).ok
    token = claimed(client)
    assert client.submit(RID, token, "router-a", DIGEST, YES).ok
    assert kinds(client) == ["requested", "claimed", "submitted"]


# -- damage --------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Iterator[tuple[Path, StoredGateClient]]:
    """A log of five events in a file of its own, beside one of another gate."""
    path = tmp_path / "gates.db"
    with SqliteLedger(path) as ledger:
        ledger.migrate()
        client = StoredGateClient(ledger, "run")
        client.post(REQUEST)
        client.release(RID, claimed(client))
        client.submit(RID, claimed(client, "router-b"), "router-b", DIGEST, YES)
        client.post(create_gate(replace(DEFINITION, gate_id="sound")))
        yield path, StoredGateClient(ledger, "run")


def spoil(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    assert connection.execute(statement).rowcount == 1
    connection.close()


_OF = "where gate = 'release-approval' and revision"
_COPY = (
    "insert into corrobo_gate_event (ns, stream, gate, revision, nonce, recorded, event, beside, chain)"
    " select ns, stream, gate, 6, nonce, recorded, event, beside, chain from corrobo_gate_event"
)


@pytest.mark.parametrize(
    ("statement", "position"),
    [
        (f"delete from corrobo_gate_event {_OF} = 3", 3),
        (f"delete from corrobo_gate_event {_OF} = 1", 1),
        (f"update corrobo_gate_event set event = replace(event, 'true', 'false') {_OF} = 5", 5),
        (f"update corrobo_gate_event set event = substr(event, 2) {_OF} = 2", 2),
        (f"update corrobo_gate_event set beside = '{{}}' {_OF} = 5", 5),
        (f"update corrobo_gate_event set chain = upper(chain) || '0' {_OF} = 2", 2),
        (f"{_COPY} {_OF} = 5", 6),
    ],
)
def test_F12_damage_is_found_and_stays_with_its_gate(
    file: tuple[Path, StoredGateClient], statement: str, position: int
) -> None:
    path, client = file
    spoil(path, statement)
    for act in (
        lambda: client.claim(RID, "router-a"),
        lambda: client.show(RID),
        lambda: client.history(RID),
        client.list_pending,
        client.history,
    ):
        with pytest.raises(GateHistoryError) as damage:
            act()
        assert (damage.value.position, "release-approval" in damage.value.where) == (position, True)
    found: list[GateHistoryError] = []
    sound = client.list_pending(on_damage=found.append)
    assert [view.request.gate_id for view in sound] == ["sound"]
    assert len(found) == 1
    assert client.claim(sound[0].request_id, "router-a").ok


def test_F12_a_cut_end_is_an_earlier_state_and_nothing_worse(file: tuple[Path, StoredGateClient]) -> None:
    path, client = file
    spoil(path, f"delete from corrobo_gate_event {_OF} = 5")
    shown = client.show(RID)
    assert shown is not None and shown.status is GateStatus.CLAIMED


def test_G5_a_client_that_knows_more_than_a_restored_backup_starts_over(
    file: tuple[Path, StoredGateClient],
) -> None:
    path, client = file
    shown = client.show(RID)
    assert shown is not None and shown.status is GateStatus.ANSWERED
    spoil(path, f"delete from corrobo_gate_event {_OF} = 5")
    spoil(path, f"delete from corrobo_gate_event {_OF} = 4")
    assert client.claim(RID, "router-c", claim_token="c").ok
    assert client.submit(RID, "c", "router-c", DIGEST, NO).ok
    assert kinds(client, RID) == ["requested", "claimed", "released", "claimed", "submitted"]


def test_G5_a_client_notices_that_what_it_knows_was_replaced(file: tuple[Path, StoredGateClient]) -> None:
    """A backup was restored, and others have gone on from it, as far as this client knew, or farther."""
    path, client = file
    shown = client.show(RID)
    assert shown is not None and shown.answer is not None and shown.answer.response == YES
    spoil(path, f"delete from corrobo_gate_event {_OF} = 5")
    spoil(path, f"delete from corrobo_gate_event {_OF} = 4")
    with SqliteLedger(path) as ledger:
        other = StoredGateClient(ledger, "run")
        assert other.submit(RID, claimed(other, "router-c"), "router-c", DIGEST, NO).ok
    shown = client.show(RID)
    assert shown is not None and shown.answer is not None
    assert (shown.answer.response, shown.router_id) == (NO, "router-c")
