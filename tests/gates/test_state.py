"""The fold of events at its edges: what exactly is refused, what the state is written as, what is carried over."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from corrobo_core.gates import GateEvent, GateHistoryError, create_gate
from corrobo_core.gates.events import (
    CallbackClaimed,
    CallbackClaimLeased,
    CallbackDeadlineSet,
    CallbackExpired,
    CallbackRejected,
    CallbackReleased,
    CallbackRequested,
    CallbackSubmitted,
    CallbackSuperseded,
)
from corrobo_core.gates.state import Answer, GateState, GateStatus, GateView, RequestState, condense, fold
from tests.gates.support import DEFINITION, MINUTE, OTHER, REQUEST, START

ID, DIGEST = REQUEST.request_id, REQUEST.digest
YES = '{"approved":true}'
ASKED = CallbackRequested(REQUEST)
CLAIMED = CallbackClaimed(ID, "ada", "token-1")
LEASED = CallbackClaimLeased(ID, "ada", START + MINUTE)
UNTIL = CallbackDeadlineSet(ID, START + 2 * MINUTE)
ANSWERED = CallbackSubmitted(ID, DIGEST, "ada", YES)
PUSHED_OUT = CallbackSuperseded(ID, OTHER.request_id)


def expired(at: datetime = START + 2 * MINUTE) -> CallbackExpired:
    return CallbackExpired(ID, at)


REFUSED: list[tuple[Sequence[GateEvent], str]] = [
    ([CLAIMED], "callback-claimed names a request that was never asked"),
    ([ASKED, ASKED], "callback-requested repeats a request that is open or answered"),
    ([ASKED, CLAIMED, ASKED], "callback-requested repeats a request that is open or answered"),
    ([ASKED, CLAIMED, ANSWERED, ASKED], "callback-requested repeats a request that is open or answered"),
    ([ASKED, CLAIMED, CLAIMED], "callback-claimed claims a request that is not pending"),
    ([ASKED, LEASED], "callback-claim-leased is of a router that does not hold the claim"),
    ([ASKED, CLAIMED, LEASED, LEASED], "callback-claim-leased gives a claim a second lease"),
    (
        [ASKED, CLAIMED, CallbackReleased(ID, "bob")],
        "callback-released is of a router that does not hold the claim",
    ),
    (
        [ASKED, CLAIMED, CallbackRejected(ID, "bob", "no")],
        "callback-rejected is of a router that does not hold the claim",
    ),
    (
        [ASKED, CLAIMED, CallbackSubmitted(ID, DIGEST, "bob", YES)],
        "callback-submitted is of a router that does not hold the claim",
    ),
    ([ASKED, ANSWERED], "callback-submitted is of a router that does not hold the claim"),
    (
        [ASKED, CLAIMED, CallbackSubmitted(ID, OTHER.digest, "ada", YES)],
        "callback-submitted names another digest than the request has",
    ),
    (
        [ASKED, CLAIMED, CallbackSubmitted(ID, DIGEST, "ada", "{}")],
        "callback-submitted holds no answer of the requested form",
    ),
    (
        [ASKED, UNTIL, CLAIMED, expired(), CallbackSubmitted(ID, DIGEST, "ada", YES, "{}")],
        "callback-submitted records an approval after the expiry",
    ),
    (
        [ASKED, CLAIMED, CallbackSubmitted(ID, DIGEST, "ada", YES, "{}")],
        "callback-submitted records an approval without a subject",
    ),
    ([ASKED, PUSHED_OUT, PUSHED_OUT], "callback-superseded supersedes a request that is not open"),
    ([ASKED, PUSHED_OUT, UNTIL], "callback-deadline-set is for a request that is not open"),
    ([ASKED, UNTIL, UNTIL], "callback-deadline-set changes a deadline"),
    ([ASKED, UNTIL, PUSHED_OUT, expired()], "callback-expired is for a request that is not open"),
    ([ASKED, expired()], "callback-expired comes before the deadline"),
    ([ASKED, UNTIL, expired(START + MINUTE)], "callback-expired comes before the deadline"),
]


@pytest.mark.parametrize(("events", "problem"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_G3_what_does_not_fit_is_refused_and_named(events: Sequence[GateEvent], problem: str) -> None:
    with pytest.raises(GateHistoryError) as refused:
        fold(events, where="a log")
    assert str(refused.value).startswith(f"a log: event {len(events)}: {problem}")


# -- written down --------------------------------------------------------------------------------------------

HISTORIES: dict[str, tuple[Sequence[GateEvent], dict[str, Any]]] = {
    "pending": ([ASKED], {"status": "pending"}),
    "claimed": (
        [ASKED, UNTIL, CLAIMED, LEASED],
        {
            "status": "claimed",
            "routerId": "ada",
            "claimToken": "token-1",
            "leaseUntil": "2026-11-30T12:01:00.000000Z",
            "deadline": "2026-11-30T12:02:00.000000Z",
        },
    ),
    "answered": (
        [
            CallbackRequested(REQUEST, '{"a":1}'),
            CLAIMED,
            LEASED,
            CallbackSubmitted(ID, DIGEST, "ada", YES, '{"b":2}'),
        ],
        {
            "status": "answered",
            "routerId": "ada",
            "claimToken": "token-1",
            "answer": {"routerId": "ada", "response": {"approved": True}},
            "subject": '{"a":1}',
            "approval": '{"b":2}',
        },
    ),
    "superseded": ([ASKED, CLAIMED, PUSHED_OUT], {"status": "superseded", "supersededBy": OTHER.request_id}),
    "expired": (
        [ASKED, UNTIL, CLAIMED, LEASED, expired(), ANSWERED],
        {
            "status": "expired",
            "routerId": "ada",
            "claimToken": "token-1",
            "deadline": "2026-11-30T12:02:00.000000Z",
            "expiredAt": "2026-11-30T12:02:00.000000Z",
            "late": [{"routerId": "ada", "response": {"approved": True}}],
        },
    ),
}
EMPTY: dict[str, Any] = {
    "routerId": None,
    "claimToken": None,
    "leaseUntil": None,
    "deadline": None,
    "answer": None,
    "late": [],
    "supersededBy": None,
    "expiredAt": None,
    "subject": None,
    "approval": None,
}


@pytest.mark.parametrize(("events", "written"), HISTORIES.values(), ids=HISTORIES)
def test_G3_the_state_is_written_whole(events: Sequence[GateEvent], written: dict[str, Any]) -> None:
    assert json.loads(fold(events).to_json()) == [{"request": REQUEST.to_wire(), **EMPTY, **written}]


@pytest.mark.parametrize("events", [events for events, _ in HISTORIES.values()], ids=HISTORIES)
def test_G3_what_is_carried_over_folds_to_the_same_state(events: Sequence[GateEvent]) -> None:
    state = fold(events)
    carried = condense(state)
    assert fold(carried).to_json() == state.to_json()
    assert len(carried) <= len(events)


def test_G3_a_state_of_any_size_is_written() -> None:
    """Each request may be of the largest size; there is no limit for all of them together."""
    many = [create_gate(replace(DEFINITION, input={"note": "x" * 500_000, "number": n})) for n in range(3)]
    state = fold([CallbackRequested(request) for request in many])
    assert len(state.to_json()) > 1 << 20
    assert GateState().to_json() == "[]"


# -- one request, as its state says ---------------------------------------------------------------------------

TICK = timedelta(microseconds=1)
LATER = START + MINUTE


def of(status: GateStatus, **fields: Any) -> RequestState:
    return RequestState(REQUEST, status, **fields)


def test_G7_a_live_request_is_due_from_its_deadline_on() -> None:
    for status in (GateStatus.PENDING, GateStatus.CLAIMED):
        state = of(status, deadline=LATER)
        assert [state.due(LATER - TICK), state.due(LATER), state.due(LATER + TICK)] == [False, True, True]
        assert not of(status).due(LATER)
    assert not of(GateStatus.ANSWERED, deadline=LATER).due(LATER)


def test_G11_a_claim_can_be_taken_over_from_the_end_of_its_lease_on() -> None:
    claimed = of(GateStatus.CLAIMED, router_id="ada", lease_until=LATER)
    assert [claimed.claimable(LATER - TICK), claimed.claimable(LATER)] == [False, True]
    assert not of(GateStatus.CLAIMED, router_id="ada").claimable(LATER), "without a lease, by a release alone"
    assert not of(GateStatus.ANSWERED, router_id="ada", lease_until=LATER).claimable(LATER)
    assert of(GateStatus.PENDING).claimable(LATER)
    assert not of(GateStatus.PENDING, deadline=LATER).claimable(LATER)
    assert not of(GateStatus.CLAIMED, lease_until=LATER, deadline=LATER).claimable(LATER)


def test_G10_a_claim_is_its_router_s_by_name_and_token() -> None:
    claimed = of(GateStatus.CLAIMED, router_id="ada", claim_token="token-1")
    assert claimed.owned_by("ada", "token-1")
    assert not claimed.owned_by("ada", "token-2")
    assert not claimed.owned_by("bob", "token-1")
    assert not of(GateStatus.PENDING).owned_by("ada", "token-1")


def test_G12_a_view_shows_everything_but_the_token() -> None:
    answer, late = Answer("ada", YES), (Answer("bob", YES),)
    state = of(
        GateStatus.CLAIMED,
        router_id="ada",
        claim_token="token-1",
        lease_until=START,
        deadline=LATER,
        answer=answer,
        late=late,
        superseded_by=OTHER.request_id,
        approval_json='{"kind":"allow"}',
    )
    shown = GateView(
        REQUEST, GateStatus.CLAIMED, "ada", START, LATER, answer, late, OTHER.request_id, {"kind": "allow"}
    )
    assert GateView.of(state, LATER - TICK) == shown
    assert GateView.of(state, LATER) == replace(shown, status=GateStatus.EXPIRED)
    assert GateView.of(of(GateStatus.PENDING), START).approval is None
    assert "token-1" not in repr(GateView.of(state, LATER))


def test_G4_the_live_requests_of_a_gate_are_those_of_that_gate() -> None:
    another = create_gate(replace(DEFINITION, gate_id="another"))
    state = fold([ASKED, CallbackRequested(another), CallbackRequested(OTHER), CLAIMED])
    assert [one.request for one in state.live_of("another")] == [another]
    assert {one.request.request_id for one in state.live_of(REQUEST.gate_id)} == {ID, OTHER.request_id}
