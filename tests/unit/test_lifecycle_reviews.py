"""Transcripts of passes after people have decided (semantics R2, R5, R7)."""

from __future__ import annotations

from typing import Any

import pytest

from corrobo_core.commands import Authorize, Claim, Holder, Load, Loaded, Open, Opened, Refused, Revalidate
from corrobo_core.lifecycle import run
from corrobo_core.policy import Policy
from corrobo_core.records import (
    Check,
    Decision,
    DecisionKind,
    Disposition,
    Episode,
    Evidence,
    Operation,
    Outcome,
    Reason,
    evolve,
)
from tests.unit.facts import at, attempt, policy, reading
from tests.unit.transcript import Transcript, call, operation

AUTHORIZES = policy(10, authorizes=True)
REVALIDATES = policy(10, revalidates=True)
BOTH = policy(10, authorizes=True, revalidates=True)
QUESTION = "above the limit"
EPISODE = Episode("ep1-other.2", 1, Disposition.REVIEW, at(1), QUESTION, "authorize")
APPROVED = Decision(EPISODE.token, DecisionKind.APPROVED, "ada", at(2))


def waiting(**fields: Any) -> Operation:
    """Never sent, and waiting for the answer to the question of ``authorize``."""
    fields.setdefault("reason", Reason.REVIEW_REQUIRED.value)
    fields.setdefault("authorized", "review")
    fields.setdefault("episode", EPISODE)
    return operation(disposition=Disposition.REVIEW, explanation=QUESTION, review=EPISODE, episodes=1, **fields)


def opened(stored: Operation, now: float, *decisions: Decision, declared: Policy = AUTHORIZES) -> Transcript:
    pass_ = Transcript(run(call(declared)))
    pass_.reply(Opened(stored, False, Holder.NOBODY, reading(now), decisions))
    return pass_


def test_R5_the_attempt_is_claimed_under_its_approval_and_until_it_ends() -> None:
    pass_ = opened(waiting(), 5, evolve(APPROVED, expires_at=at(9)))
    asked = pass_.expect(Claim)
    assert asked.approved_until == at(9)
    approval = asked.operation.latest.approval
    assert isinstance(approval, dict)
    assert (approval["token"], approval["reviewer"]) == (EPISODE.token, "ada")
    assert asked.operation.episode is None


def test_R5_an_approval_that_does_not_end_is_copied_too() -> None:
    asked = opened(waiting(), 5, APPROVED).expect(Claim)
    assert asked.approved_until is None
    assert asked.operation.latest.approval is not None


def test_an_approval_that_nothing_asked_for_any_more_is_not_claimed_under() -> None:
    """``authorize`` would not ask today, and ``revalidate`` says go on."""
    pass_ = opened(waiting(authorized="proceed"), 5, evolve(APPROVED, expires_at=at(9)), declared=REVALIDATES)
    pass_.expect(Revalidate)
    pass_.reply(Check.proceed())
    asked = pass_.expect(Claim)
    assert (asked.approved_until, asked.operation.latest.approval) == (None, None)


def test_R5_an_approval_that_ends_while_the_claim_waits_is_asked_for_again() -> None:
    stored = waiting()
    pass_ = opened(stored, 5, evolve(APPROVED, expires_at=at(9)))
    pass_.expect(Claim)
    pass_.reply(Refused(reading(9)))
    pass_.expect(Load)
    pass_.reply(Loaded(stored, Holder.NOBODY, reading(10), (evolve(APPROVED, expires_at=at(9)),)))
    asked = pass_.recorded(now=11)
    assert (asked.disposition, asked.reason) == (Disposition.REVIEW, Reason.APPROVAL_LAPSED)
    assert (asked.explanation, asked.retry_at, asked.attempts) == (QUESTION, None, ())
    episode = asked.episode
    assert episode is not None
    assert episode == asked.review
    assert episode.token.startswith("ep2-me.")
    assert (episode.generation, episode.opened_at) == (2, at(10))
    assert (episode.reason, episode.asked_by) == (QUESTION, "authorize")
    end = pass_.end()
    assert (end.now, end.operation, pass_.sent) == (at(11), asked, 0)


def test_R5_an_approval_that_was_revoked_while_the_claim_waited_is_asked_for_again() -> None:
    """The decision moved the version (C2): whoever comes sees what is stored, and says so."""
    pass_ = opened(waiting(), 5, APPROVED)
    pass_.refused(Claim)
    moved = waiting(version=5)
    pass_.reply(Loaded(moved, Holder.NOBODY, reading(6), (APPROVED,)))
    end = pass_.end()
    assert (end.operation, end.now, pass_.sent) == (moved, at(6), 0)


def test_C3_a_refused_claim_that_nobody_had_to_approve_is_somebody_else_s() -> None:
    """Without a review there is nothing that can have ended."""
    pass_ = opened(operation(authorized="proceed"), 5)
    pass_.refused(Claim)
    theirs = operation(authorized="proceed")
    pass_.reply(Loaded(theirs, Holder.NOBODY, reading(6)))
    assert pass_.end().operation == theirs


def test_an_operation_that_vanished_while_its_claim_waited_is_reported_as_such() -> None:
    pass_ = opened(waiting(), 5, APPROVED)
    pass_.refused(Claim)
    pass_.reply(Loaded(None, Holder.NOBODY, reading(6)))
    end = pass_.end()
    assert (end.operation, end.now) == (None, at(6))


@pytest.mark.parametrize("now", [9, 12])
def test_R5_a_lapsed_approval_goes_back_to_review_with_the_same_question(now: float) -> None:
    pass_ = opened(waiting(episode=None), now, evolve(APPROVED, expires_at=at(9)))
    asked = pass_.recorded(now=now)
    assert asked.reason == Reason.APPROVAL_LAPSED.value
    assert asked.episode is not None
    assert (asked.episode.reason, asked.episode.asked_by) == (QUESTION, "authorize")
    assert asked.explanation == QUESTION


def test_R2_a_review_that_is_looked_at_again_keeps_its_question() -> None:
    asked = evolve(EPISODE, asked_by="revalidate")
    stored = evolve(waiting(authorized="proceed"), episode=asked, review=asked, attempts=(attempt(ended=1),))
    pass_ = opened(stored, 20, declared=REVALIDATES)
    pass_.saw(Evidence.NOT_APPLIED, began=20)
    pass_.reply(Check.requires_review(QUESTION))
    again = pass_.recorded(now=21)
    assert (again.disposition, again.reason) == (Disposition.REVIEW, Reason.REVIEW_REQUIRED)
    assert (again.episode, again.retry_at) == (asked, None)


def test_R2_a_review_after_something_else_says_that_it_is_required() -> None:
    """The same question was open while the operation was something else."""
    other = evolve(waiting(), disposition=None, reason=Reason.OVERTAKEN.value, retry_at=at(3))
    stored = opened(other, 20).recorded(now=21)
    assert (stored.disposition, stored.reason) == (Disposition.REVIEW, Reason.REVIEW_REQUIRED)
    assert (stored.episode, stored.retry_at) == (EPISODE, None)


def test_R2_another_question_of_revalidate_opens_another_episode() -> None:
    stored = waiting(authorized="proceed")
    pass_ = opened(stored, 5, declared=REVALIDATES)
    pass_.expect(Revalidate)
    pass_.reply(Check.requires_review("is it still wanted?"))
    asked = pass_.recorded(now=6)
    assert asked.episode is not None
    assert (asked.episode.reason, asked.episode.asked_by) == ("is it still wanted?", "revalidate")
    assert asked.reason == Reason.REVIEW_REQUIRED.value, "nobody had approved, so that nothing has lapsed"


def test_R7_a_check_that_failed_is_explained_and_closes_the_question() -> None:
    pass_ = opened(waiting(), 5, APPROVED, declared=BOTH)
    pass_.raised(Revalidate)
    stored = pass_.recorded(now=6)
    assert (stored.disposition, stored.reason) == (None, Reason.REVALIDATION_FAILED)
    assert (stored.explanation, stored.episode) == ("broken", None)
    assert stored.retry_at == at(5) + BOTH.poll.delay(0)
    end = pass_.end()
    assert (end.operation, end.now) == (stored, at(6))


def test_L7_a_check_that_is_interrupted_ends_with_what_is_stored() -> None:
    stored = waiting()
    pass_ = opened(stored, 5, APPROVED, declared=BOTH)
    pass_.raised(Revalidate, interrupted=True)
    end = pass_.end()
    assert (end.operation, end.now, end.interrupted) == (stored, at(5), True)


def test_L9_an_approved_attempt_that_was_paused_starts_over() -> None:
    pass_ = opened(waiting(), 5, APPROVED)
    pass_.claimed(now=6)
    pass_.executed(Outcome.NOT_SENT, ended=90)
    assert pass_.recorded(now=91).reason == Reason.PAUSED.value
    pass_.expect(Open)


def test_R5_an_approval_of_what_revalidate_asked_is_copied_onto_the_attempt() -> None:
    asked = evolve(EPISODE, asked_by="revalidate")
    stored = evolve(waiting(authorized="proceed"), episode=asked, review=asked)
    pass_ = opened(stored, 5, evolve(APPROVED, expires_at=at(9)), declared=REVALIDATES)
    pass_.reply(Check.requires_review(QUESTION))
    claim = pass_.expect(Claim)
    assert claim.approved_until == at(9)
    assert claim.operation.latest.approval is not None


def test_R5_the_question_that_lapsed_is_asked_again_and_not_what_was_seen_since() -> None:
    stored = evolve(waiting(episode=None), attempts=(attempt(ended=1),), explanation="nothing is there")
    pass_ = opened(stored, 20, evolve(APPROVED, expires_at=at(9)))
    pass_.saw(Evidence.NOT_APPLIED, began=20)
    again = pass_.recorded(now=21)
    assert again.explanation == QUESTION
    assert again.episode is not None
    assert again.episode.reason == QUESTION


def test_R7_an_authorize_that_failed_is_explained() -> None:
    pass_ = Transcript(run(call(AUTHORIZES)))
    pass_.opened_new()
    pass_.raised(Authorize)
    stored = pass_.recorded()
    assert (stored.reason, stored.explanation) == (Reason.AUTHORIZATION_FAILED.value, "broken")
