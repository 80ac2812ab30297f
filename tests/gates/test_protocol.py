"""Posting, claiming, answering, giving back: each behaviour once, on every store, sync and async.

Rules: semantics section 9.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from corrobo_core.gates import (
    ClaimOk,
    ClaimRefused,
    GateArgumentError,
    GateClient,
    Gates,
    GateStatus,
    PostOk,
    PostRefused,
    ReleaseOk,
    ReleaseRefused,
    SubmitOk,
    SubmitRefused,
    SupersedeOk,
    SupersedeRefused,
    create_gate,
)
from tests.gates.conftest import Store
from tests.gates.support import DEFINITION, MINUTE, NO, OTHER, REQUEST, START, YES, claimed, kinds

RID, DIGEST = REQUEST.request_id, REQUEST.digest


# -- one claim, one answer -----------------------------------------------------------------------------------


def test_G2_a_posted_request_is_claimed_by_one_router_and_answered(client: Gates) -> None:
    assert client.post(REQUEST) == PostOk(RID, True, GateStatus.PENDING)
    assert [view.request for view in client.list_pending()] == [REQUEST]
    token = claimed(client)
    assert client.list_pending() == ()
    assert client.claim(RID, "router-b") == ClaimRefused("claimed", "router-a")
    submitted = client.submit(RID, token, "router-a", DIGEST, YES)
    assert isinstance(submitted, SubmitOk) and submitted.answer.response == YES
    assert client.claim(RID, "router-b") == ClaimRefused("answered", "router-a")
    assert kinds(client) == ["requested", "claimed", "submitted"]


def test_G2_a_released_request_can_be_claimed_again(client: Gates) -> None:
    client.post(REQUEST)
    token = claimed(client)
    assert client.release(RID, "not-the-token") == ReleaseRefused("not-owner")
    assert client.release(RID, token) == ReleaseOk()
    assert client.release(RID, token) == ReleaseRefused("not-owner")
    again = claimed(client, "router-b")
    assert again != token
    assert client.submit(RID, token, "router-a", DIGEST, YES) == SubmitRefused(
        "not-owner", "the claim is not this router's"
    )
    assert kinds(client) == ["requested", "claimed", "released", "claimed"]


@pytest.mark.parametrize("request_id", [RID, "no-such", "", "a#1#b", "a#b", "#1#2"])
def test_G2_an_unknown_request_is_missing_everywhere(client: Gates, request_id: str) -> None:
    assert client.claim(request_id, "router-a") == ClaimRefused("missing")
    submitted = client.submit(request_id, "token", "router-a", DIGEST, YES)
    assert isinstance(submitted, SubmitRefused) and submitted.kind == "missing"
    assert client.release(request_id, "token") == ReleaseRefused("missing")
    assert client.release_claim(request_id, operator="ops", reason="why") == ReleaseRefused("missing")
    assert client.supersede(request_id, OTHER.request_id) == SupersedeRefused("missing")
    assert client.show(request_id) is None
    assert client.history() == ()


def test_G2_a_submission_is_refused_by_claim_then_owner_then_digest_then_form(client: Gates) -> None:
    client.post(REQUEST)

    def kind(token: str, router: str = "router-a", digest: str = DIGEST, response: object = YES) -> str:
        submitted = client.submit(RID, token, router, digest, response)  # type: ignore[arg-type]
        assert isinstance(submitted, SubmitRefused)
        return submitted.kind

    assert kind("token") == "not-claimed"
    token = claimed(client)
    assert kind("foreign") == "not-owner"
    assert kind(token, "router-b") == "not-owner"
    assert kind(token, digest=OTHER.digest) == "stale"
    assert kind(token, response={"approved": "yes"}) == "invalid"
    assert kind(token, response={}) == "invalid"
    assert kinds(client) == ["requested", "claimed", "rejected", "rejected"]
    assert client.submit(RID, token, "router-a", DIGEST, YES).ok


def test_G8_an_answer_after_the_answer_is_told_whether_it_is_the_same(client: Gates) -> None:
    client.post(REQUEST)
    token = claimed(client)
    client.submit(RID, token, "router-a", DIGEST, YES)
    events = len(client.history())
    double = client.submit(RID, token, "router-a", DIGEST, YES)
    other = client.submit(RID, "any", "router-b", DIGEST, NO)
    assert isinstance(double, SubmitRefused) and isinstance(other, SubmitRefused)
    assert (double.kind, double.same) == (other.kind, not other.same) == ("not-claimed", True)
    for refused in (double, other):
        assert refused.answer is not None and refused.answer.response == YES
        assert refused.answer.router_id == "router-a"
    assert len(client.history()) == events


# -- newer questions -----------------------------------------------------------------------------------------


def test_G4_a_newer_request_of_the_gate_supersedes_the_open_ones(client: Gates) -> None:
    client.post(REQUEST)
    token = claimed(client)
    assert client.post(OTHER) == PostOk(OTHER.request_id, True, GateStatus.PENDING, (RID,))
    assert client.claim(RID, "router-b") == ClaimRefused("superseded")
    submitted = client.submit(RID, token, "router-a", DIGEST, YES)
    assert isinstance(submitted, SubmitRefused) and submitted.kind == "stale"
    assert client.release(RID, token) == ReleaseRefused("not-owner")
    shown = client.show(RID)
    assert shown is not None and shown.superseded_by == OTHER.request_id
    assert [view.request_id for view in client.list_pending()] == [OTHER.request_id]


def test_G4_other_gates_are_left_alone(client: Gates) -> None:
    client.post(REQUEST)
    elsewhere = create_gate(replace(DEFINITION, gate_id="another-gate"))
    client.post(elsewhere)
    assert [view.request_id for view in client.list_pending()] == [RID, elsewhere.request_id]


def test_G4_posting_again_changes_nothing_whoever_holds_it(client: Gates) -> None:
    client.post(REQUEST, deadline=10 * MINUTE)
    first = client.show(RID)
    assert client.post(REQUEST, deadline=20 * MINUTE) == PostOk(RID, False, GateStatus.PENDING)
    assert client.show(RID) == first
    token = claimed(client)
    assert client.post(REQUEST) == PostOk(RID, False, GateStatus.CLAIMED)
    client.submit(RID, token, "router-a", DIGEST, YES)
    assert client.post(REQUEST) == PostOk(RID, False, GateStatus.ANSWERED)
    assert kinds(client) == ["requested", "deadline-set", "claimed", "submitted"]


def test_G4_a_stale_worker_cannot_push_out_the_live_question(client: Gates) -> None:
    client.post(REQUEST)
    client.post(OTHER)
    assert client.post(REQUEST) == PostRefused(RID, "superseded")
    assert [view.request_id for view in client.list_pending()] == [OTHER.request_id]
    assert client.post(REQUEST, reopen=True) == PostOk(RID, True, GateStatus.PENDING, (OTHER.request_id,))
    assert [view.request_id for view in client.list_pending()] == [RID]
    assert kinds(client, RID) == ["requested", "superseded", "requested"]


def test_G4_an_answered_question_posted_again_leaves_the_newer_one_open(client: Gates) -> None:
    client.post(REQUEST)
    client.submit(RID, claimed(client), "router-a", DIGEST, YES)
    client.post(OTHER)
    assert client.post(REQUEST) == PostOk(RID, False, GateStatus.ANSWERED)
    assert [view.request_id for view in client.list_pending()] == [OTHER.request_id]


def test_G2_supersede_ends_an_open_request_only(client: Gates) -> None:
    client.post(REQUEST)
    assert client.supersede(RID, "something-newer") == SupersedeOk()
    assert client.supersede(RID, "something-newer") == SupersedeRefused("superseded")
    client.post(OTHER)
    client.submit(OTHER.request_id, claimed(client, request_id=OTHER.request_id), "router-a", OTHER.digest, YES)
    assert client.supersede(OTHER.request_id, "x") == SupersedeRefused("answered")


# -- deadlines -----------------------------------------------------------------------------------------------


def test_G7_after_the_deadline_nothing_can_be_claimed_and_it_is_recorded_once(store: Store) -> None:
    client = store.client()
    client.post(REQUEST, deadline=10 * MINUTE)
    store.clock.turn(9 * MINUTE)
    assert len(client.list_pending()) == 1
    store.clock.turn(MINUTE)
    assert client.list_pending() == ()
    shown = client.show(RID)
    assert shown is not None and shown.status is GateStatus.EXPIRED
    assert kinds(client) == ["requested", "deadline-set"]  # looking records nothing
    assert client.claim(RID, "router-a") == ClaimRefused("expired")
    assert client.claim(RID, "router-a") == ClaimRefused("expired")
    assert client.supersede(RID, "x") == SupersedeRefused("expired")
    assert kinds(client) == ["requested", "deadline-set", "expired"]


def test_G7_a_restart_never_extends_the_deadline(store: Store) -> None:
    store.client().post(REQUEST, deadline=10 * MINUTE)
    store.clock.turn(9 * MINUTE)
    again = store.client()
    assert again.post(REQUEST, deadline=10 * MINUTE) == PostOk(RID, False, GateStatus.PENDING)
    store.clock.turn(MINUTE)
    assert again.claim(RID, "router-a") == ClaimRefused("expired")


def test_G7_a_late_answer_of_the_holder_is_kept_and_decides_nothing(store: Store) -> None:
    client = store.client()
    client.post(REQUEST, deadline=10 * MINUTE)
    token = claimed(client)
    store.clock.turn(11 * MINUTE)
    for _ in range(2):  # the second one is the same, and is kept once
        late = client.submit(RID, token, "router-a", DIGEST, YES)
        assert isinstance(late, SubmitRefused) and (late.kind, late.late) == ("expired", True)
    stranger = client.submit(RID, "foreign", "router-b", DIGEST, NO)
    wrong = client.submit(RID, token, "router-a", DIGEST, {"approved": "yes"})
    for refused in (stranger, wrong):
        assert isinstance(refused, SubmitRefused) and (refused.kind, refused.late) == ("expired", False)
    shown = client.show(RID)
    assert shown is not None
    assert (shown.status, shown.answer) == (GateStatus.EXPIRED, None)
    assert [answer.response for answer in shown.late] == [YES]
    assert kinds(client) == ["requested", "deadline-set", "claimed", "expired", "submitted"]


def test_G7_an_expired_request_is_asked_again_only_when_told_to(store: Store) -> None:
    client = store.client()
    client.post(REQUEST, deadline=10 * MINUTE)
    store.clock.turn(11 * MINUTE)
    assert client.post(REQUEST) == PostRefused(RID, "expired")
    assert client.post(REQUEST, reopen=True, deadline=5 * MINUTE) == PostOk(RID, True, GateStatus.PENDING)
    claimed(client)
    assert kinds(client) == ["requested", "deadline-set", "expired", "requested", "deadline-set", "claimed"]


def test_G7_posting_a_newer_request_records_an_expiry_as_what_it_is(store: Store) -> None:
    client = store.client()
    client.post(REQUEST, deadline=10 * MINUTE)
    store.clock.turn(11 * MINUTE)
    assert client.post(OTHER) == PostOk(OTHER.request_id, True, GateStatus.PENDING)
    assert kinds(client, RID) == ["requested", "deadline-set", "expired"]


def test_G7_a_holder_can_give_back_after_the_deadline(store: Store) -> None:
    client = store.client()
    client.post(REQUEST, deadline=10 * MINUTE)
    token = claimed(client)
    store.clock.turn(11 * MINUTE)
    assert client.release(RID, token) == ReleaseOk()
    assert client.release(RID, token) == ReleaseRefused("not-owner")
    assert kinds(client) == ["requested", "deadline-set", "claimed", "released", "expired"]


def test_G7_expire_records_every_expiry_that_is_due(store: Store) -> None:
    client = store.client()
    gates = [create_gate(replace(DEFINITION, gate_id=f"gate-{number}")) for number in range(3)]
    for number, gate in enumerate(gates):
        client.post(gate, deadline=(number + 1) * 10 * MINUTE)
    store.clock.turn(25 * MINUTE)
    assert client.expire().request_ids == (gates[0].request_id, gates[1].request_id)
    assert client.expire().request_ids == ()
    assert [view.request_id for view in client.list_pending()] == [gates[2].request_id]


@pytest.mark.parametrize(
    "deadline",
    [timedelta(), -MINUTE, datetime(2026, 11, 30), datetime(2020, 1, 1, tzinfo=START.tzinfo), "tomorrow"],  # noqa: DTZ001
)
def test_L8_a_deadline_that_is_naive_or_past_is_refused_and_nothing_is_recorded(
    deadline: timedelta,
) -> None:
    client = GateClient()
    with pytest.raises(GateArgumentError, match="deadline"):
        client.post(REQUEST, deadline=deadline)
    assert client.history() == ()


# -- tokens and leases ---------------------------------------------------------------------------------------


def test_G10_the_same_claim_again_succeeds_and_changes_nothing(client: Gates) -> None:
    client.post(REQUEST)
    assert claimed(client, claim_token="mine") == claimed(client, claim_token="mine") == "mine"
    assert client.claim(RID, "router-b", claim_token="mine") == ClaimRefused("claimed", "router-a")
    assert kinds(client) == ["requested", "claimed"]


def test_G11_a_lapsed_lease_lets_another_router_in_and_the_release_is_recorded_first(store: Store) -> None:
    client = store.client()
    client.post(REQUEST)
    token = claimed(client, lease=5 * MINUTE)
    store.clock.turn(4 * MINUTE)
    assert client.claim(RID, "router-b") == ClaimRefused("claimed", "router-a")
    store.clock.turn(MINUTE)
    assert [view.router_id for view in client.list_pending()] == ["router-a"]
    taken = client.claim(RID, "router-b")
    assert isinstance(taken, ClaimOk) and taken.lease_until is None
    refused = client.submit(RID, token, "router-a", DIGEST, YES)
    assert isinstance(refused, SubmitRefused) and refused.kind == "not-owner"
    assert client.submit(RID, taken.claim_token, "router-b", DIGEST, NO).ok
    assert kinds(client) == ["requested", "claimed", "claim-leased", "released", "claimed", "submitted"]


def test_G11_a_lapsed_lease_that_nobody_took_is_still_the_owners(store: Store) -> None:
    client = store.client()
    client.post(REQUEST)
    token = claimed(client, lease=5 * MINUTE)
    store.clock.turn(6 * MINUTE)
    assert client.submit(RID, token, "router-a", DIGEST, YES).ok


def test_G11_an_operator_releases_any_claim_with_name_and_reason(client: Gates) -> None:
    client.post(REQUEST)
    token = claimed(client)
    assert client.release_claim(RID, operator="ada", reason="the router is gone") == ReleaseOk()
    assert client.release_claim(RID, operator="ada", reason="again") == ReleaseRefused("not-owner")
    assert client.release(RID, token) == ReleaseRefused("not-owner")
    told = client.history()[2]
    assert getattr(told, "reason", None) == "released by operator ada: the router is gone"
    assert kinds(client) == ["requested", "claimed", "rejected", "released"]
    claimed(client, "router-b")


@pytest.mark.parametrize("bad", ["", "   ", "x" * 201, "\ud800", "a\x00b", None])
def test_L8_empty_and_unstorable_names_are_refused_and_nothing_is_recorded(bad: str) -> None:
    client = GateClient()
    client.post(REQUEST)
    with pytest.raises(GateArgumentError):
        client.claim(RID, bad)
    with pytest.raises(GateArgumentError):
        client.release_claim(RID, operator=bad, reason="why")
    if bad is not None:
        with pytest.raises(GateArgumentError):
            client.claim(RID, "router-a", claim_token=bad)
    with pytest.raises(GateArgumentError):
        client.claim(RID, "router-a", lease=timedelta())
    assert kinds(client) == ["requested"]


def test_G12_no_view_and_no_text_shows_a_token(client: Gates) -> None:
    client.post(REQUEST, deadline=MINUTE)
    claim = client.claim(RID, "router-a", claim_token="s3cret-token", lease=MINUTE)
    assert "s3cret" not in repr(claim) + repr(client.show(RID)) + repr(client.list_pending())
    assert "s3cret" not in repr(client.history())
    assert not any("token" in name for name in vars(client.show(RID)))


# -- answers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "response",
    [
        {"approved": True, "n": float("nan")},
        {"approved": True, "n": 2**53},
        {"approved": True, "n": 2.0**53},
        {"approved": True, "t": "\ud800"},
        {"approved": True, "t": b"bytes"},
        {"approved": True, 1: 2},
        {"approved": True, "t": "x" * (1 << 20)},
        {"approved": True, "t": {1, 2}},
    ],
)
def test_L8_an_answer_without_an_exact_form_is_invalid_and_nothing_is_recorded(
    response: dict[str, bool],
) -> None:
    client = GateClient()
    client.post(REQUEST)
    token = claimed(client)
    submitted = client.submit(RID, token, "router-a", DIGEST, response)
    assert isinstance(submitted, SubmitRefused) and submitted.kind == "invalid"
    assert kinds(client) == ["requested", "claimed"]
    assert client.submit(RID, token, "router-a", DIGEST, YES).ok


def test_L8_the_size_of_an_answer_can_be_limited(store: Store) -> None:
    client = store.client(response_limit=40)
    client.post(REQUEST)
    token = claimed(client)
    refused = client.submit(RID, token, "router-a", DIGEST, {"approved": True, "note": "x" * 40})
    assert isinstance(refused, SubmitRefused) and (refused.kind, "40" in refused.reason) == ("invalid", True)
    assert client.submit(RID, token, "router-a", DIGEST, YES).ok


def test_E05_a_refusal_never_quotes_the_answer(client: Gates) -> None:
    client.post(REQUEST)
    refused = client.submit(RID, claimed(client), "router-a", DIGEST, {"approved": "s3cret"})
    assert isinstance(refused, SubmitRefused) and "approved" in refused.reason
    assert "s3cret" not in refused.reason + repr(client.history())
