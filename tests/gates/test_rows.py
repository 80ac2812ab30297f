"""What people reported elsewhere, tried on gates without an engine. A test's name begins with its row.

Rows whose whole case is a rule of its own are beside that rule: F06 and F07 in test_schemas, F08 in test_definition
and test_events, F12 in test_events and test_stored.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from corrobo_core.gates import (
    AsyncStoredGateClient,
    GateClient,
    GateDefinitionError,
    GateHistoryError,
    GateStatus,
    GateValueError,
    PostRefused,
    StoredGateClient,
    SubmitRefused,
    create_approval_gate,
    create_gate,
    parse_json,
    replay,
    to_lines,
)
from corrobo_core.ledgers.ports import Ledger
from tests.gates.conftest import Opened, Store
from tests.gates.support import DEFINITION, NO, OTHER, REQUEST, YES, Turned, claimed, kinds
from tests.gates.test_approvals import ADA, ALLOW, PLAN, SUBJECT
from tests.gates.test_approvals import DEFINITION as APPROVAL

RID, DIGEST = REQUEST.request_id, REQUEST.digest


# -- D: people -------------------------------------------------------------------------------------------------


def test_D09_the_same_request_in_two_runs_is_two_questions(ledger: Turned, stream: str) -> None:
    """A request id is unique in its stream; a fork is a stream of its own, and asks for itself."""
    runs = [StoredGateClient(cast("Ledger", ledger), f"{stream}-{name}") for name in ("run", "other", "fork")]
    for number, run in enumerate(runs):
        assert run.post(REQUEST).ok
        token = claimed(run, claim_token=f"token-{number}")
        assert run.submit(RID, token, "router-a", DIGEST, {"approved": number == 0}).ok
    answers = [run.show(RID).answer.response for run in runs]  # type: ignore[union-attr]
    assert answers == [YES, NO, NO]


def test_D10_a_late_retry_for_one_question_never_answers_the_next(store: Store) -> None:
    client = store.client()
    client.post(REQUEST)
    first = claimed(client)
    client.submit(RID, first, "router-a", DIGEST, YES)
    client.post(OTHER)
    claimed(client, request_id=OTHER.request_id)
    again = client.submit(RID, first, "router-a", DIGEST, YES)
    assert isinstance(again, SubmitRefused) and (again.kind, again.same) == ("not-claimed", True)
    crossed = client.submit(OTHER.request_id, first, "router-a", DIGEST, YES)
    assert isinstance(crossed, SubmitRefused) and crossed.kind == "not-owner"
    shown = client.show(OTHER.request_id)
    assert shown is not None and shown.status is GateStatus.CLAIMED


def test_D10_the_right_claim_with_the_digest_of_another_question_is_stale(store: Store) -> None:
    client = store.client()
    client.post(OTHER)
    token = claimed(client, request_id=OTHER.request_id)
    refused = client.submit(OTHER.request_id, token, "router-a", DIGEST, YES)
    assert isinstance(refused, SubmitRefused) and refused.kind == "stale"


def test_D10_a_right_that_was_taken_away_is_noticed_at_submit_and_at_use(store: Store) -> None:
    """What the plan admits is asked again both times; who the actor is, the application says (R9)."""
    client = store.client(plan=PLAN)
    request = create_approval_gate(APPROVAL, SUBJECT)
    client.post(request, SUBJECT)
    token = claimed(client, request_id=request.request_id)
    less = store.client(plan=replace(PLAN, admitted=[]))
    refused = less.submit(request.request_id, token, "router-a", request.digest, ALLOW, actor=ADA)
    assert isinstance(refused, SubmitRefused) and refused.kind == "invalid"
    full = store.client(plan=PLAN)
    assert full.submit(request.request_id, token, "router-a", request.digest, ALLOW, actor=ADA).ok
    assert full.resolve_approval(request, SUBJECT).kind == "allow"
    assert store.client(plan=replace(PLAN, admitted=[])).resolve_approval(request, SUBJECT).kind == "wait"


async def test_D11_two_clicks_in_two_processes_are_one_decision(opened: Opened, stream: str) -> None:
    """Both at once, by two clients that share nothing but the database."""
    ledger = opened.sync("sqlite")
    seed = StoredGateClient(ledger, stream)
    seed.post(REQUEST)
    token = claimed(seed)
    clicks = [AsyncStoredGateClient(ledger, stream) for _ in range(2)]
    both = await asyncio.gather(*(each.submit(RID, token, "router-a", DIGEST, YES) for each in clicks))
    won = [each for each in both if each.ok]
    lost = [each for each in both if isinstance(each, SubmitRefused)]
    assert (len(won), [each.same for each in lost]) == (1, [True])
    assert lost[0].answer == won[0].answer
    other = await clicks[0].submit(RID, token, "router-a", DIGEST, NO)
    assert isinstance(other, SubmitRefused) and other.same is False
    assert kinds(seed) == ["requested", "claimed", "submitted"]


def test_D12_after_a_restart_the_first_click_counts_and_every_click_is_answered(
    ledger: Turned, stream: str
) -> None:
    StoredGateClient(cast("Ledger", ledger), stream).post(REQUEST)
    restarted = StoredGateClient(cast("Ledger", ledger), stream)
    stranger = restarted.submit(RID, "guessed", "mallory", DIGEST, YES)
    assert isinstance(stranger, SubmitRefused) and stranger.kind == "not-claimed"
    token = claimed(restarted)
    stranger = restarted.submit(RID, "guessed", "mallory", DIGEST, YES)
    assert isinstance(stranger, SubmitRefused) and stranger.kind == "not-owner"
    assert restarted.submit(RID, token, "router-a", DIGEST, YES).ok


def test_D13_a_decision_after_the_deadline_is_kept_and_seen_and_decides_nothing(store: Store) -> None:
    client = store.client()
    client.post(REQUEST, deadline=timedelta(minutes=2, seconds=30))
    shown = client.show(RID)
    assert shown is not None and shown.deadline is not None  # a view can warn, and take its buttons away
    token = claimed(client)
    store.clock.turn(timedelta(minutes=2, seconds=57))
    late = client.submit(RID, token, "router-a", DIGEST, YES)
    assert isinstance(late, SubmitRefused) and (late.kind, late.late) == ("expired", True)
    shown = client.show(RID)
    assert shown is not None
    assert (shown.status, shown.answer, [each.response for each in shown.late]) == (GateStatus.EXPIRED, None, [YES])
    assert client.post(REQUEST) == PostRefused(RID, "expired")
    assert client.post(create_gate(replace(DEFINITION, gate_version=2))).ok  # a new question has a new id


def test_D15_what_was_approved_is_what_is_used_to_the_byte() -> None:
    client = GateClient(plan=PLAN)
    request = create_approval_gate(APPROVAL, SUBJECT)
    client.post(request, SUBJECT)
    token = claimed(client, request_id=request.request_id)
    client.submit(request.request_id, token, "router-a", request.digest, ALLOW, actor=ADA)
    # A default that was filled in after the post, and the same object written in another order.
    for rewritten in (b'{"amount":5000,"currency":"EUR"}', b'{ "amount": 5000 }'):
        now = replace(SUBJECT, proposed_output=rewritten)
        assert client.resolve_approval(request, now).kind == "wait"
        assert client.resolve_approval(create_approval_gate(APPROVAL, now), now).kind == "wait"
    assert client.resolve_approval(request, SUBJECT).kind == "allow"
    shown = client.show(request.request_id)
    assert shown is not None
    record: Any = shown.approval
    assert record["binding"]["requestDigest"] == request.digest  # what was seen is on record


def test_D16_a_quorum_is_one_gate_for_each_reviewer() -> None:
    """A gate has one answer. Two of three is asked as three gates; each reviewer counts once, the late one too."""
    client = GateClient()
    reviewers = ["ada", "bob", "cyd"]
    asked = {who: create_gate(replace(DEFINITION, gate_id=f"release-approval/{who}")) for who in reviewers}
    for request in asked.values():
        client.post(request)
    decided: list[bool] = []
    for who, approved in [("ada", True), ("ada", True), ("bob", True), ("cyd", False)]:
        request = asked[who]
        claim = client.claim(request.request_id, who)
        if claim.ok:
            client.submit(request.request_id, claim.claim_token, who, request.digest, {"approved": approved})
        shown = [client.show(each.request_id) for each in asked.values()]
        yes = [view.router_id for view in shown if view and view.answer and view.answer.response == YES]
        decided.append(len(set(yes)) >= 2)
    assert decided == [False, False, True, True]


# -- F: text and digests ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"),
        (1, "1"),
        (-0.0, "0"),
        (1e-7, "1e-7"),
        (10.0, "10"),
        (1e21, "1e+21"),
        (333333333.33333329, "333333333.3333333"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
    ],
)
def test_F01_numbers_are_written_as_ecmascript_writes_them(number: float, text: str) -> None:
    made = create_gate(replace(DEFINITION, input={"n": number}))
    assert made.input_json == f'{{"n":{text}}}'
    assert create_gate(replace(DEFINITION, input=json.loads(made.input_json))).digest == made.digest


@pytest.mark.parametrize("number", [2**53, 2**53 + 1, 2**60, -(2**53), 1e20, 2.0**53, 123456789012345680000.0])
def test_F01_integers_that_readers_round_are_refused(number: float) -> None:
    with pytest.raises(GateDefinitionError, match="2\\^53"):
        replace(DEFINITION, input={"n": number})


def test_F04_text_for_people_is_stored_and_not_bound() -> None:
    """What the caller rewrites at each try goes into the presentation; what matters goes into the input."""
    client = GateClient()
    client.post(create_gate(replace(DEFINITION, presentation={"summary": "first try"})))
    token = claimed(client)
    rewritten = create_gate(replace(DEFINITION, presentation={"summary": "second try", "timeout": 30}))
    assert rewritten.request_id == RID
    assert client.post(rewritten).ok
    assert client.submit(RID, token, "router-a", rewritten.digest, YES).ok


@pytest.mark.parametrize(
    ("one", "other"), [("\u00e9", "e\u0301"), ("a", "\u0430"), ("K", "\u212a"), ("\ufb01", "fi")]
)
def test_F10_look_alike_strings_are_different_questions(one: str, other: str) -> None:
    first, second = (create_gate(replace(DEFINITION, input={"name": each})) for each in (one, other))
    assert first.digest != second.digest
    assert first.input == {"name": one}


def test_F11_every_path_computes_the_same_digest(store: Store) -> None:
    """Made, posted, listed, shown, exported, replayed, approved: one function, over the stored bytes."""
    made = create_gate(DEFINITION)
    client = store.client()
    client.post(made)
    history = client.history()
    lines = to_lines(history)
    requested = json.loads(lines)["request"]
    replayed = replay(lines).list_pending()[0].request
    shown = client.show(RID)
    assert shown is not None
    digests = {made.digest, client.list_pending()[0].request.digest, shown.request.digest, requested["digest"]}
    assert digests == {replayed.digest}


def test_F11_an_approval_compares_the_digest_that_was_shown(store: Store) -> None:
    client = store.client()
    client.post(REQUEST)
    token = claimed(client)
    refused = client.submit(RID, token, "router-a", create_gate(replace(DEFINITION, gate_version=2)).digest, YES)
    assert isinstance(refused, SubmitRefused) and refused.kind == "stale"


def test_F12_a_gap_or_two_ends_in_an_exported_history_is_refused() -> None:
    client = GateClient()
    client.post(REQUEST)
    client.submit(RID, claimed(client), "router-a", DIGEST, YES)
    lines = to_lines(client.history()).splitlines(keepends=True)
    for broken, position in (
        ([lines[0], lines[2]], 2),  # the claim is missing
        ([*lines, lines[2]], 4),  # two terminal events
        ([lines[0].replace("abc123?", "abc124?"), *lines[1:]], 1),  # a changed byte in the question
    ):
        with pytest.raises(GateHistoryError) as refused:
            replay("".join(broken))
        assert refused.value.position == position
    assert replay("".join(lines[:2])).state.requests[RID].status is GateStatus.CLAIMED  # a cut end


def test_F08_a_body_with_a_repeated_key_never_reaches_the_gate() -> None:
    body = b'{"approved": true, "note": {"by": "ada", "by": "eve"}}'
    with pytest.raises(GateValueError, match="twice"):
        parse_json(body, "response")
