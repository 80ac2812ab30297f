"""What people reported about waiting for people, tried on DBOS. A test's name begins with its row."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

from dbos import DBOS, SetWorkflowID

from corrobo_core.gates import ClaimOk, ClaimRefused, GateStatus, StoredGateClient, SubmitRefused
from corrobo_dbos import DbosGateClient, DbosGates, Delivered, GateExpiredError, NoWorkflow, effect_step
from corrobo_dbos.asking import topic_of
from tests.engines.dbos.app import ACCOUNT, credit_effect
from tests.engines.dbos.conftest import Here, Local, wait_until
from tests.engines.dbos.questions import (
    NO,
    OFTEN,
    REQUEST,
    SELDOM,
    YES,
    answered,
    question,
    waiting,
    waits_for_message,
    wake,
)


def two_questions(here: Here, look_every: Any = SELDOM, **options: Any) -> Any:
    gates = DbosGates(here.ledger, look_every=look_every)

    @DBOS.workflow()
    def both() -> list[Any]:
        return [gates.ask(question(revision), **options).response for revision in ("one", "two")]

    here.launch()
    with SetWorkflowID("wf"):
        return DBOS.start_workflow(both)


def test_a_lost_wake_up_delays_and_loses_nothing(here: Here) -> None:
    """The reviewer's process died between the record and the message."""
    handle = two_questions(here, OFTEN)
    reviewer, silent = DbosGateClient(here.ledger, "wf"), StoredGateClient(here.ledger, "wf")
    for response in (YES, NO):
        asked = waiting(reviewer)
        claim = silent.claim(asked.request_id, "router")
        assert claim.ok
        assert silent.submit(asked.request_id, claim.claim_token, "router", asked.request.digest, response).ok
    assert handle.get_result() == [YES, NO]


def test_doubled_and_foreign_wake_ups_and_those_for_another_question_decide_nothing(here: Here) -> None:
    handle = two_questions(here)
    reviewer = DbosGateClient(here.ledger, "wf")
    first = waiting(reviewer)
    waits_for_message("wf")
    DBOS.send("wf", {"approved": False})
    wake("wf", first)
    wait_until(lambda: len(here.steps("wf")) >= 5)
    assert reviewer.list_pending() == (first,)
    assert isinstance(answered(reviewer, first), Delivered)
    for _ in range(3):
        wake("wf", first)
    second = waiting(reviewer)
    assert second.request.input == {"revision": "two"}
    waits_for_message("wf")
    assert isinstance(answered(reviewer, second, NO), Delivered)
    assert handle.get_result() == [YES, NO]


def test_d07_five_questions_in_turn_have_one_deadline_together(here: Here) -> None:
    gates, until = DbosGates(here.ledger, look_every=SELDOM), datetime.now(UTC) + timedelta(seconds=3)

    @DBOS.workflow()
    def release(until: datetime) -> list[Any]:
        def asked(revision: int) -> Any:
            try:
                return gates.ask(question(str(revision)), deadline=until).response
            except GateExpiredError:
                return "expired"

        return [asked(revision) for revision in range(5)]

    here.launch()
    with SetWorkflowID("wf"):
        handle = DBOS.start_workflow(release, until)
    reviewer = DbosGateClient(here.ledger, "wf")
    for response in (YES, NO):
        answered(reviewer, waiting(reviewer), response)
    third = waiting(reviewer)
    assert handle.get_result() == [YES, NO, "expired", "expired", "expired"]
    ended = datetime.now(UTC)
    assert third.deadline == until
    assert until < ended < until + timedelta(seconds=2)
    asked = [event for event in reviewer.history() if event.kind == "callback-requested"]
    assert len(asked) == 3  # what could not be answered in time is not asked


def test_d07_the_naive_twin_waits_five_times_as_long(local: Local) -> None:
    """Timeouts of receives add up, where one moment was meant."""

    @DBOS.workflow()
    def release() -> list[Any]:
        return [DBOS.recv("approval", 0.3) for _ in range(5)]

    local.launch()
    started = time.monotonic()
    assert release() == [None] * 5
    assert time.monotonic() - started > 5 * 0.3


def test_d09_the_same_question_in_two_workflows_and_a_fork_is_three(here: Here) -> None:
    gates = DbosGates(here.ledger, look_every=SELDOM)

    @DBOS.workflow()
    def release() -> Any:
        return gates.ask(question()).response

    here.launch()
    handles = {}
    for name in ("one", "two"):
        with SetWorkflowID(name):
            handles[name] = DBOS.start_workflow(release)
        waiting(DbosGateClient(here.ledger, name))
        waits_for_message(name)
    with SetWorkflowID("fork"):
        handles["fork"] = DBOS.fork_workflow("one", 2)  # its history says that the question was asked
    reviewers = {name: DbosGateClient(here.ledger, name) for name in handles}
    DBOS.send("fork", "look", topic_of(REQUEST.request_id))
    given = {"one": YES, "two": NO, "fork": NO}
    for name, reviewer in reviewers.items():
        asked = waiting(reviewer)
        assert asked.request_id == REQUEST.request_id
        assert isinstance(answered(reviewer, asked, given[name]), Delivered)
    assert {name: handle.get_result() for name, handle in handles.items()} == given


def test_d09_a_fork_asks_anew_with_the_deadline_that_its_history_has(local: Local) -> None:
    gates = DbosGates(local.ledger, look_every=SELDOM)

    @DBOS.workflow()
    def release() -> Any:
        return gates.ask(question(), deadline=timedelta(minutes=1)).response

    local.launch()
    with SetWorkflowID("wf"):
        handle = DBOS.start_workflow(release)
    original, forked = DbosGateClient(local.ledger, "wf"), DbosGateClient(local.ledger, "fork")
    asked = waiting(original)
    waits_for_message("wf")
    with SetWorkflowID("fork"):
        fork = DBOS.fork_workflow("wf", 2)
    wake("fork", asked)
    again = waiting(forked)
    assert asked.deadline is not None
    assert (again.request_id, again.deadline) == (asked.request_id, asked.deadline)
    answered(original, asked)
    answered(forked, again, NO)
    assert (handle.get_result(), fork.get_result()) == (YES, NO)


def test_d10_a_duplicate_of_the_first_decision_never_answers_the_second_question(here: Here) -> None:
    handle = two_questions(here)
    reviewer = DbosGateClient(here.ledger, "wf")
    first = waiting(reviewer)
    answered(reviewer, first)
    second = waiting(reviewer)
    claim = reviewer.claim(second.request_id, "router", claim_token="token")
    assert isinstance(claim, ClaimOk)
    again = reviewer.submit(first.request_id, "token", "router", first.request.digest, YES)
    assert isinstance(again, Delivered) and again.again
    stale = reviewer.submit(second.request_id, "token", "router", first.request.digest, YES)
    assert isinstance(stale, SubmitRefused) and stale.kind == "stale"
    assert reviewer.submit(second.request_id, "token", "router", second.request.digest, NO).ok
    assert handle.get_result() == [YES, NO]


def test_d10_the_naive_twin_answers_the_second_question_with_the_first_click(here: Here) -> None:
    """Messages as the truth: a double click on the first question approves the second one, unseen."""

    @DBOS.workflow()
    def both() -> list[Any]:
        return [DBOS.recv("approval", 20) for _ in ("one", "two")]

    here.launch()
    with SetWorkflowID("naive"):
        handle = DBOS.start_workflow(both)
    for _ in range(2):
        DBOS.send("naive", YES, "approval")
    assert handle.get_result() == [YES, YES]


def test_d11_two_clicks_at_once_are_one_decision_and_two_reviewers_have_one_winner(here: Here) -> None:
    handle = two_questions(here)
    reviewers = [DbosGateClient(here.ledger, "wf") for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        asked = waiting(reviewers[0])
        claims = list(
            pool.map(lambda n: reviewers[n].claim(asked.request_id, f"r{n}", claim_token=f"t{n}"), (0, 1))
        )
        (winner,) = [number for number, claim in enumerate(claims) if isinstance(claim, ClaimOk)]
        (lost,) = [claim for claim in claims if not isinstance(claim, ClaimOk)]
        assert lost == ClaimRefused("claimed", f"r{winner}")

        def click(reviewer: DbosGateClient) -> Any:
            return reviewer.submit(asked.request_id, f"t{winner}", f"r{winner}", asked.request.digest, YES)

        clicks = list(pool.map(click, reviewers))
    assert sorted(one.again for one in clicks) == [False, True]
    assert clicks[0].answer == clicks[1].answer
    other = reviewers[0].submit(asked.request_id, f"t{winner}", f"r{winner}", asked.request.digest, NO)
    assert isinstance(other, SubmitRefused) and (other.kind, other.same) == ("not-claimed", False)
    answered(reviewers[0], waiting(reviewers[0]))
    assert handle.get_result() == [YES, YES]


def test_d13_an_answer_after_the_deadline_is_kept_and_a_new_question_has_a_new_id(here: Here) -> None:
    gates = DbosGates(here.ledger, look_every=SELDOM)

    @DBOS.workflow()
    def release() -> Any:
        try:
            return gates.ask(question("one"), deadline=timedelta(seconds=1.5)).response
        except GateExpiredError:
            return gates.ask(question("one, asked again")).response

    here.launch()
    with SetWorkflowID("wf"):
        handle = DBOS.start_workflow(release)
    reviewer = DbosGateClient(here.ledger, "wf")
    first = waiting(reviewer)
    assert first.deadline is not None
    claim = reviewer.claim(first.request_id, "router", claim_token="token")
    assert isinstance(claim, ClaimOk)
    second = waiting(reviewer)
    assert second.request_id != first.request_id
    late = reviewer.submit(first.request_id, "token", "router", first.request.digest, YES)
    assert isinstance(late, SubmitRefused) and (late.kind, late.late) == ("expired", True)
    left = reviewer.show(first.request_id)
    assert left is not None and (left.status, [one.response for one in left.late]) == (GateStatus.EXPIRED, [YES])
    answered(reviewer, second, NO)
    assert handle.get_result() == NO


def test_d17_run_again_from_its_start_with_one_of_two_decisions_an_effect_before_them_is_not_sent_again(
    here: Here,
) -> None:
    """A plain step before the questions is the naive twin: it is sent again."""
    gates = DbosGates(here.ledger, look_every=SELDOM)
    credit = effect_step(here.ledger)(credit_effect(here.http))

    @DBOS.step()
    def naive_credit(reference: str) -> None:
        here.http.credit(ACCOUNT, reference, 7)

    @DBOS.workflow()
    def order() -> list[Any]:
        naive_credit("plain")
        return [credit("rf_81", 7).id, *(gates.ask(question(revision)).response for revision in ("one", "two"))]

    here.launch()
    with SetWorkflowID("wf"):
        handle = DBOS.start_workflow(order)
    original = DbosGateClient(here.ledger, "wf")
    answered(original, waiting(original))
    second = waiting(original)
    with SetWorkflowID("fork"):
        fork = DBOS.fork_workflow("wf", 1)
    forked = DbosGateClient(here.ledger, "fork")
    for response in (NO, YES):
        answered(forked, waiting(forked), response)
    answered(original, second, NO)
    (paid, *decided), (also_paid, *also_decided) = handle.get_result(), fork.get_result()
    assert (decided, also_decided) == ([YES, NO], [NO, YES])
    assert paid == also_paid
    assert (here.http.count("rf_81"), here.http.count("plain")) == (1, 2)


def test_workflows_that_are_unknown_or_finished_are_told_apart_and_nothing_is_recorded(here: Here) -> None:
    handle = two_questions(here)
    reviewer, unknown = DbosGateClient(here.ledger, "wf"), DbosGateClient(here.ledger, "nobody")
    asked = waiting(reviewer)
    for response in (YES, YES):
        answered(reviewer, waiting(reviewer), response)
    handle.get_result()
    finished = NoWorkflow("finished", "wf", "SUCCESS")
    assert reviewer.claim(asked.request_id, "late") == finished
    assert reviewer.submit(asked.request_id, "token", "router", asked.request.digest, YES) == finished
    assert unknown.claim(asked.request_id, "late") == NoWorkflow("unknown", "nobody", None)
    assert unknown.progress(asked.request_id) is None
    assert unknown.history() == ()


def test_a_cancelled_workflow_takes_the_answer_when_it_is_resumed(here: Here) -> None:
    handle = two_questions(here)
    reviewer = DbosGateClient(here.ledger, "wf")
    first = waiting(reviewer)
    waits_for_message("wf")
    DBOS.cancel_workflow("wf")
    assert isinstance(answered(reviewer, first), Delivered)
    time.sleep(0.1)
    resumed = DBOS.resume_workflow("wf")
    answered(reviewer, waiting(reviewer), NO)
    assert resumed.get_result() == [YES, NO]
    assert handle.workflow_id == resumed.workflow_id
