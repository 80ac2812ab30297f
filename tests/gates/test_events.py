"""The wire form of events, and what does not replay. Rule: semantics G3."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from corrobo_core.gates import (
    GateClient,
    GateEvent,
    GateHistoryError,
    GateStatus,
    condense,
    event_from_json,
    event_from_wire,
    event_to_json,
    event_to_wire,
    fold,
    from_lines,
    replay,
    to_lines,
)
from tests.gates.support import MINUTE, NO, OTHER, REQUEST, START, YES, Clock, claimed

RID, DIGEST = REQUEST.request_id, REQUEST.digest
REQUESTED: dict[str, Any] = {"kind": "callback-requested", "request": REQUEST.to_wire()}
CLAIMED: dict[str, Any] = {
    "kind": "callback-claimed",
    "requestId": RID,
    "routerId": "router-a",
    "claimToken": "3b241101-e2bb-4255-8caf-4136c566a962",
}
RELEASED: dict[str, Any] = {"kind": "callback-released", "requestId": RID, "routerId": "router-a"}
SUBMITTED: dict[str, Any] = {
    "kind": "callback-submitted",
    "requestId": RID,
    "requestDigest": DIGEST,
    "routerId": "router-a",
    "response": {"approved": True},
}
REJECTED: dict[str, Any] = {
    "kind": "callback-rejected",
    "requestId": RID,
    "routerId": "router-a",
    "reason": 'the response field "approved" must be boolean',
}
SUPERSEDED: dict[str, Any] = {"kind": "callback-superseded", "requestId": RID, "supersededBy": OTHER.request_id}
DEADLINE: dict[str, Any] = {
    "kind": "callback-deadline-set",
    "requestId": RID,
    "deadline": "2026-11-30T12:10:00.000000Z",
}
LEASED: dict[str, Any] = {
    "kind": "callback-claim-leased",
    "requestId": RID,
    "routerId": "router-a",
    "leaseUntil": "2026-11-30T12:05:00.000000Z",
}
EXPIRED: dict[str, Any] = {
    "kind": "callback-expired",
    "requestId": RID,
    "expiredAt": "2026-11-30T12:10:00.000001Z",
}
ALL = [REQUESTED, CLAIMED, RELEASED, SUBMITTED, REJECTED, SUPERSEDED, DEADLINE, LEASED, EXPIRED]


def lines(*wires: dict[str, Any]) -> str:
    return "".join(json.dumps(wire) + "\n" for wire in wires)


def test_G3_a_history_of_the_source_documents_system_replays() -> None:
    """As its JSON.stringify writes it: its own key order, its tokens, presentation always there."""
    text = lines(REQUESTED, CLAIMED, RELEASED, CLAIMED, REJECTED, SUBMITTED)
    client = replay(text)
    shown = client.show(RID)
    assert shown is not None and shown.status is GateStatus.ANSWERED
    assert shown.answer is not None and shown.answer.response == YES
    assert [event_to_wire(event) for event in client.history()] == [
        REQUESTED, CLAIMED, RELEASED, CLAIMED, REJECTED, SUBMITTED
    ]  # fmt: skip


def test_G3_a_superseded_request_that_was_asked_again_replays() -> None:
    other = {"kind": "callback-requested", "request": OTHER.to_wire()}
    client = replay(lines(REQUESTED, SUPERSEDED, other, REQUESTED))
    assert [view.request_id for view in client.list_pending()] == [RID, OTHER.request_id]


def test_G3_the_exact_names_and_fields_of_all_events() -> None:
    for wire in ALL:
        event = event_from_wire(wire)
        assert list(event_to_wire(event)) == list(wire)
        assert event_to_wire(event) == wire
        assert event_from_json(event_to_json(event)) == event
        assert event_to_json(event) == json.dumps(wire, sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize("wire", ALL, ids=lambda wire: wire["kind"])
def test_G3_a_missing_or_extra_or_misspelt_field_does_not_replay(wire: dict[str, Any]) -> None:
    for name in wire:
        with pytest.raises(ValueError, match=r"field|kind"):
            event_from_wire({key: value for key, value in wire.items() if key != name})
    with pytest.raises(ValueError, match="field"):
        event_from_wire({**wire, "more": 1})
    with pytest.raises(ValueError, match="field"):
        event_from_wire({**{k: v for k, v in wire.items() if k != list(wire)[-1]}, list(wire)[-1].upper(): 1})


@pytest.mark.parametrize(
    "wire",
    [
        {"kind": "callback-approved", "requestId": RID},
        {"kind": None},
        {"kind": ["callback-claimed"]},
        [],
        None,
        {**SUBMITTED, "requestDigest": DIGEST.upper()},
        {**SUBMITTED, "requestDigest": DIGEST[:-1]},
        {**SUBMITTED, "requestDigest": DIGEST + "0"},
        {**SUBMITTED, "requestDigest": "sha256:" + DIGEST},
        {**SUBMITTED, "requestDigest": 7},
        {**CLAIMED, "claimToken": ""},
        {**CLAIMED, "routerId": None},
        {**REJECTED, "reason": ""},
        {**DEADLINE, "deadline": "2026-11-30T12:10:00Z"},
        {**DEADLINE, "deadline": "2026-11-30T12:10:00.000000+00:00"},
        {**DEADLINE, "deadline": "soon"},
        {**DEADLINE, "deadline": 7},
        {**EXPIRED, "expiredAt": "2026-11-30 12:10:00.000000Z"},
        {**REQUESTED, "request": {**REQUEST.to_wire(), "decisionText": "Approve everything?"}},
        {**REQUESTED, "request": {**REQUEST.to_wire(), "requestId": "other"}},
        {**REQUESTED, "request": {**REQUEST.to_wire(), "gateVersion": "1"}},
        {**REQUESTED, "request": {**REQUEST.to_wire(), "presentation": None}},
        {**REQUESTED, "request": {k: v for k, v in REQUEST.to_wire().items() if k != "presentation"}},
        {**REQUESTED, "request": {**REQUEST.to_wire(), "deadline": None}},
    ],
)
def test_G3_malformed_events_do_not_replay(wire: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        event_from_wire(wire)
    with pytest.raises(GateHistoryError, match="event 1"):
        replay(json.dumps(wire) + "\n")


def test_F08_a_duplicate_key_does_not_replay() -> None:
    text = lines(REQUESTED, CLAIMED)
    twice = json.dumps(SUBMITTED)[:-1] + ', "response": {"approved": false}}'
    deep = json.dumps(SUBMITTED).replace('{"approved": true}', '{"approved": true, "approved": false}')
    for bad in (twice, deep):
        with pytest.raises(GateHistoryError, match=r"event 3.*twice"):
            replay(text + bad + "\n")


@pytest.mark.parametrize(
    "history",
    [
        [CLAIMED],
        [REQUESTED, REQUESTED],
        [REQUESTED, RELEASED],
        [REQUESTED, SUBMITTED],
        [REQUESTED, REJECTED],
        [REQUESTED, EXPIRED],
        [REQUESTED, LEASED],
        [REQUESTED, CLAIMED, CLAIMED],
        [REQUESTED, CLAIMED, REQUESTED],
        [REQUESTED, CLAIMED, {**RELEASED, "routerId": "router-b"}],
        [REQUESTED, CLAIMED, {**SUBMITTED, "routerId": "router-b"}],
        [REQUESTED, CLAIMED, {**SUBMITTED, "requestDigest": OTHER.digest}],
        [REQUESTED, CLAIMED, {**SUBMITTED, "response": {"approved": "yes"}}],
        [REQUESTED, CLAIMED, {**SUBMITTED, "response": {}}],
        [REQUESTED, CLAIMED, SUBMITTED, SUBMITTED],
        [REQUESTED, CLAIMED, SUBMITTED, SUPERSEDED],
        [REQUESTED, CLAIMED, SUBMITTED, RELEASED],
        [REQUESTED, CLAIMED, SUBMITTED, REQUESTED],
        [REQUESTED, CLAIMED, LEASED, LEASED],
        [REQUESTED, SUPERSEDED, SUPERSEDED],
        [REQUESTED, SUPERSEDED, CLAIMED],
        [REQUESTED, DEADLINE, DEADLINE],
        [REQUESTED, DEADLINE, {**EXPIRED, "expiredAt": "2026-11-30T12:09:59.999999Z"}],
        [REQUESTED, DEADLINE, EXPIRED, EXPIRED],
        [REQUESTED, DEADLINE, EXPIRED, SUBMITTED],
        [REQUESTED, DEADLINE, EXPIRED, CLAIMED],
        [REQUESTED, CLAIMED, SUBMITTED, DEADLINE],
    ],
)
def test_G3_an_event_that_does_not_fit_the_state_does_not_replay(history: list[dict[str, Any]]) -> None:
    with pytest.raises(GateHistoryError) as refused:
        replay(lines(*history))
    assert refused.value.position == len(history)
    assert CLAIMED["claimToken"] not in str(refused.value)


def every_situation() -> GateClient:
    """One stream with a request in every situation there is."""
    clock = Clock()
    client = GateClient(clock=clock)
    client.post(REQUEST, deadline=10 * MINUTE)
    token = claimed(client, lease=MINUTE)
    clock.turn(2 * MINUTE)
    claimed(client, "router-b")
    client.submit(RID, token, "router-a", DIGEST, YES)
    client.release_claim(RID, operator="ada", reason="gone")
    token = claimed(client, "router-c")
    client.submit(RID, token, "router-c", DIGEST, {"approved": 1})
    clock.turn(10 * MINUTE)
    client.submit(RID, token, "router-c", DIGEST, NO)
    client.post(OTHER)
    token = claimed(client, "router-d", OTHER.request_id)
    client.submit(OTHER.request_id, token, "router-d", OTHER.digest, YES)
    return client


def test_G3_lines_replay_to_the_same_bytes() -> None:
    client = every_situation()
    text = to_lines(client.history())
    again = replay(text)
    assert again.history() == client.history()
    assert again.state.to_json() == client.state.to_json()
    assert to_lines(again.history()) == text


def test_G3_a_fold_can_go_on_from_any_state() -> None:
    events = every_situation().history()
    for cut in range(len(events)):
        first = fold(events[:cut])
        before = first.to_json()
        assert fold(events[cut:], first).to_json() == fold(events).to_json()
        assert first.to_json() == before


def test_G3_a_condensed_history_folds_to_the_same_state_at_every_point() -> None:
    events = every_situation().history()
    for cut in range(len(events) + 1):
        state = fold(events[:cut])
        shorter = condense(state)
        assert fold(shorter).to_json() == state.to_json()
        assert len(shorter) <= cut
    superseded: tuple[GateEvent, ...] = from_lines(lines(REQUESTED, CLAIMED, SUPERSEDED))
    assert fold(condense(fold(superseded))).to_json() == fold(superseded).to_json()


def test_F12_a_torn_end_is_told_from_damage() -> None:
    text = lines(REQUESTED, CLAIMED, SUBMITTED)
    torn = text[:-20]
    with pytest.raises(GateHistoryError, match="event 3"):
        from_lines(torn)
    assert len(from_lines(torn, torn_end=True)) == 2
    assert len(from_lines(text[:-1], torn_end=True)) == 3  # only its line end was cut off
    assert len(from_lines(text, torn_end=True)) == 3
    with pytest.raises(GateHistoryError, match="event 2"):
        from_lines(lines(REQUESTED) + '{"kind":"callb\n' + lines(CLAIMED), torn_end=True)


def test_G7_a_history_needs_no_clock() -> None:
    client = replay(lines(REQUESTED, DEADLINE), clock=Clock(START + timedelta(days=365)))
    assert client.state.requests[RID].status is GateStatus.PENDING
    shown = client.show(RID)
    assert shown is not None and shown.status is GateStatus.EXPIRED
