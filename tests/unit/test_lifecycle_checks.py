"""Transcripts of `authorize`, `revalidate` and interruptions (semantics L2, L6, L7, R7)."""

from __future__ import annotations

from typing import Any

import pytest

from corrobo_core.commands import (
    Authorize,
    Claim,
    Execute,
    Holder,
    Observe,
    Open,
    Raised,
    Reconcile,
    Revalidate,
    Saw,
)
from corrobo_core.lifecycle import observe, run
from corrobo_core.policy import Policy
from corrobo_core.records import Check, Disposition, Evidence, Observation, Operation, Outcome, Reason, evolve
from tests.unit.facts import at, attempt, policy
from tests.unit.transcript import BROKEN, Transcript, call, operation

APPLIED, NOT_APPLIED = Evidence.APPLIED, Evidence.NOT_APPLIED
AUTHORIZES = policy(10, authorizes=True)
REVALIDATES = policy(10, revalidates=True)
BOTH = policy(10, authorizes=True, revalidates=True)


def running(declared: Policy, **fields: Any) -> Transcript:
    return Transcript(run(call(declared, **fields)))


def asked(pass_: Transcript) -> list[str]:
    return [type(command).__name__ for command in pass_.commands]


# -- before the first attempt ---------------------------------------------------------------------------------


def test_L2_the_checks_come_before_the_reservation() -> None:
    pass_ = running(BOTH)
    opened = pass_.opened_new().operation
    assert not opened.attempts, "a record without an attempt means: never sent"
    pass_.expect(Authorize)
    pass_.reply(Check.proceed())
    pass_.expect(Revalidate)
    pass_.reply(Check.proceed())
    claim = pass_.claimed(now=1).operation
    assert claim.authorized == "proceed", "its answer is recorded with the reservation"
    pass_.executed(ended=2)
    pass_.saw(APPLIED, began=3)
    assert pass_.recorded().disposition is Disposition.COMPLETE
    assert asked(pass_) == [
        *("Open", "Authorize", "Revalidate", "Claim"),
        *("Execute", "Observe", "Reconcile", "Record"),
    ]


def test_L2_authorize_is_not_asked_again_once_its_answer_is_recorded() -> None:
    pass_ = running(BOTH)
    pass_.opened(operation(attempt(ended=1), authorized="proceed"), now=20)
    pass_.saw(NOT_APPLIED, began=20)
    pass_.expect(Revalidate)


def test_a_record_that_was_never_sent_is_begun_anew() -> None:
    """Another process opened it, and died while it asked `authorize`."""
    pass_ = running(AUTHORIZES)
    pass_.opened(operation(), now=20)
    pass_.expect(Authorize)
    pass_.reply(Check.proceed())
    pass_.claimed(now=21)
    pass_.expect(Execute)


@pytest.mark.parametrize("declared", [AUTHORIZES, REVALIDATES])
def test_a_rejection_closes_without_ever_sending(declared: Policy) -> None:
    pass_ = running(declared)
    pass_.opened_new()
    pass_.reply(Check.reject("the account is closed"))
    stored = pass_.recorded()
    assert (stored.disposition, stored.reason, stored.closed) == (Disposition.REPLAN, Reason.REJECTED, True)
    assert (stored.explanation, stored.attempts) == ("the account is closed", ())
    pass_.end()

    again = running(declared)
    again.opened(stored, now=50)
    assert asked(again) == ["Open"]


@pytest.mark.parametrize("declared", [AUTHORIZES, REVALIDATES])
def test_a_review_is_recorded_and_nothing_is_sent(declared: Policy) -> None:
    pass_ = running(declared)
    pass_.opened_new()
    pass_.reply(Check.requires_review("over the limit"))
    stored = pass_.recorded()
    assert (stored.disposition, stored.reason) == (Disposition.REVIEW, Reason.REVIEW_REQUIRED)
    assert (stored.explanation, stored.closed) == ("over the limit", False)
    assert pass_.sent == 0


def test_what_authorize_sent_to_review_stays_there() -> None:
    pass_ = running(AUTHORIZES)
    pass_.opened_new()
    pass_.reply(Check.requires_review("over the limit"))
    stored = pass_.recorded()

    again = running(AUTHORIZES)
    again.opened(stored, now=20)
    assert not any(isinstance(command, Authorize | Claim) for command in again.commands)
    assert again.sent == 0


FAILURES = [(AUTHORIZES, Reason.AUTHORIZATION_FAILED), (REVALIDATES, Reason.REVALIDATION_FAILED)]


@pytest.mark.parametrize(("declared", "reason"), FAILURES)
def test_R7_a_check_that_fails_sends_nothing_and_leaves_the_operation_open(
    declared: Policy, reason: Reason
) -> None:
    pass_ = running(declared)
    pass_.opened_new()
    pass_.reply(Raised(BROKEN))
    stored = pass_.recorded()
    assert (stored.disposition, stored.reason, stored.retry_at) == (None, reason, at(5))
    assert (stored.attempts, stored.closed) == ((), False)
    assert pass_.sent == 0


@pytest.mark.parametrize(("declared", "reason"), FAILURES)
def test_R7_a_check_that_failed_is_asked_again_and_may_then_proceed(declared: Policy, reason: Reason) -> None:
    stored = operation(reason=reason.value, retry_at=at(5), looks=1)
    pass_ = running(declared)
    pass_.opened(stored, now=20)
    pass_.reply(Check.proceed())
    pass_.claimed(now=21)
    pass_.expect(Execute)


@pytest.mark.parametrize(("declared", "reason"), FAILURES)
def test_R7_a_check_that_keeps_failing_is_asked_less_and_less_often(declared: Policy, reason: Reason) -> None:
    pass_ = running(declared)
    pass_.opened(operation(reason=reason.value, retry_at=at(5), looks=1), now=20)
    pass_.reply(Raised(BROKEN))
    stored = pass_.recorded()
    assert (stored.reason, stored.retry_at, stored.looks) == (reason, at(30), 2)


# -- before another attempt (L6) ------------------------------------------------------------------------------


def test_L6_revalidate_cannot_hide_what_an_earlier_attempt_did() -> None:
    pass_ = running(REVALIDATES)
    pass_.opened(operation(attempt(None)), now=20, holder=Holder.GONE)
    pass_.expect(Observe)
    pass_.saw(APPLIED, began=20)
    assert pass_.recorded().disposition is Disposition.COMPLETE
    assert asked(pass_) == ["Open", "Observe", "Reconcile", "Record"]


@pytest.mark.parametrize("evidence", [e for e in Evidence if e is not NOT_APPLIED])
def test_L6_revalidate_is_asked_only_if_an_attempt_would_follow(evidence: Evidence) -> None:
    pass_ = running(REVALIDATES)
    pass_.opened(operation(attempt(ended=1)), now=20)
    pass_.saw(evidence, began=20)
    pass_.recorded()
    assert "Revalidate" not in asked(pass_)


def test_L6_revalidate_is_asked_before_every_attempt() -> None:
    pass_ = running(REVALIDATES)
    pass_.opened(operation(attempt(ended=1)), now=20)
    pass_.saw(NOT_APPLIED, began=20)
    pass_.expect(Revalidate)
    pass_.reply(Check.proceed())
    pass_.claimed(now=21)
    pass_.expect(Execute)


@pytest.mark.parametrize(
    ("answer", "disposition", "reason"),
    [
        (Check.reject("no"), Disposition.REPLAN, Reason.REJECTED),
        (Check.requires_review("ask"), Disposition.REVIEW, Reason.REVIEW_REQUIRED),
        (Raised(BROKEN), None, Reason.REVALIDATION_FAILED),
    ],
)
def test_R7_each_answer_before_another_attempt(answer: object, disposition: Disposition, reason: Reason) -> None:
    pass_ = running(REVALIDATES)
    pass_.opened(operation(attempt(ended=1)), now=20)
    pass_.saw(NOT_APPLIED, began=20)
    pass_.expect(Revalidate)
    pass_.reply(answer)
    stored = pass_.recorded()
    assert (stored.disposition, stored.reason, stored.evidence) == (disposition, reason, NOT_APPLIED)
    assert stored.history.count == 1, "what was seen is kept"
    assert pass_.sent == 0


def test_R7_after_a_failed_revalidation_the_next_pass_looks_again() -> None:
    stored = operation(
        attempt(ended=1), reason=Reason.REVALIDATION_FAILED.value, evidence=NOT_APPLIED, retry_at=at(25), looks=1
    )
    early = running(REVALIDATES)
    early.opened(stored, now=24)
    assert asked(early) == ["Open"]

    pass_ = running(REVALIDATES)
    pass_.opened(stored, now=30)
    pass_.expect(Observe)
    pass_.saw(NOT_APPLIED, began=30)
    pass_.expect(Revalidate)
    pass_.reply(Check.proceed())
    pass_.claimed(now=31)
    pass_.expect(Execute)


def test_observing_asks_no_check() -> None:
    pass_ = Transcript(observe(call(BOTH)))
    pass_.loaded(operation(attempt(ended=1)), now=20)
    pass_.saw(NOT_APPLIED, began=20)
    pass_.recorded()
    assert asked(pass_) == ["Load", "Observe", "Reconcile", "Record"]


# -- interruptions (L7) ---------------------------------------------------------------------------------------


def test_L7_an_interrupted_attempt_is_ambiguous_and_recorded() -> None:
    pass_ = running(policy())
    pass_.opened_new()
    pass_.executed(Outcome.AMBIGUOUS, interrupted=True)
    stored = pass_.recorded()
    assert (stored.latest.outcome, stored.reason, stored.owner) == (Outcome.AMBIGUOUS, Reason.INTERRUPTED, None)
    assert (stored.disposition, stored.retry_at) == (None, None)
    assert pass_.end().interrupted
    assert asked(pass_) == ["Open", "Execute", "Record"], "nothing else is begun"


def test_L7_told_to_stop_before_the_send() -> None:
    pass_ = running(policy())
    pass_.opened_new()
    pass_.executed(Outcome.NOT_SENT, failure=BROKEN, interrupted=True)
    stored = pass_.recorded()
    assert (stored.latest.outcome, stored.reason) == (Outcome.NOT_SENT, Reason.INTERRUPTED)
    assert pass_.end().interrupted


def test_L7_told_to_stop_while_paused_does_not_start_over() -> None:
    pass_ = running(policy())
    pass_.opened_new()
    pass_.executed(Outcome.NOT_SENT, interrupted=True)
    assert pass_.recorded().reason == Reason.INTERRUPTED
    assert pass_.end().interrupted


def interrupt_look(pass_: Transcript, in_reconcile: bool) -> None:
    if in_reconcile:
        pass_.expect(Observe)
        pass_.reply(Saw(Observation.of("data", source="provider", proves_absence=True), 21))
    pass_.raised(Reconcile if in_reconcile else Observe, interrupted=True)


@pytest.mark.parametrize("in_reconcile", [False, True])
def test_L7_interrupted_while_looking_at_ones_own_attempt(in_reconcile: bool) -> None:
    pass_ = running(policy())
    pass_.opened_new()
    pass_.executed(response="ok")
    interrupt_look(pass_, in_reconcile)
    stored = pass_.recorded()
    assert (stored.latest.outcome, stored.latest.response) == (Outcome.RESPONDED, "ok"), "the outcome is kept"
    assert (stored.reason, stored.evidence, stored.owner) == (Reason.INTERRUPTED, None, None)
    assert pass_.end().interrupted


@pytest.mark.parametrize("in_reconcile", [False, True])
@pytest.mark.parametrize("stored", [operation(attempt(ended=1)), operation(attempt(None))])
def test_L7_interrupted_while_looking_at_an_earlier_attempt(stored: Operation, in_reconcile: bool) -> None:
    pass_ = running(policy())
    pass_.opened(stored, now=20)
    interrupt_look(pass_, in_reconcile)
    end = pass_.end()
    assert (end.interrupted, end.operation) == (True, stored), "nothing was learned, nothing is written"
    assert pass_.written == 0


@pytest.mark.parametrize("in_reconcile", [False, True])
def test_L7_interrupted_while_only_looking(in_reconcile: bool) -> None:
    pass_ = Transcript(observe(call()))
    pass_.loaded(operation(attempt(ended=1)), now=20)
    interrupt_look(pass_, in_reconcile)
    assert pass_.end().interrupted
    assert pass_.written == 0


@pytest.mark.parametrize("declared", [AUTHORIZES, REVALIDATES])
@pytest.mark.parametrize("stored", [None, operation(attempt(ended=1))])
def test_L7_interrupted_in_a_check(declared: Policy, stored: Operation | None) -> None:
    pass_ = running(declared)
    if stored is None:
        pass_.opened_new()
    else:
        pass_.opened(stored, now=20)
        pass_.saw(NOT_APPLIED, began=20)
    pass_.reply(Raised(BROKEN, interrupted=True))
    assert pass_.end().interrupted
    assert pass_.written == pass_.sent == 0


def test_L7_an_interruption_after_a_pause_ends_the_pass() -> None:
    """A stored PAUSED must not make an interrupted pass start over."""
    paused = operation(attempt(Outcome.NOT_SENT, ended=8), reason=Reason.PAUSED.value)
    pass_ = running(policy())
    pass_.opened(paused, now=20)
    pass_.raised(Observe, interrupted=True)
    assert pass_.end().interrupted
    assert asked(pass_) == ["Open", "Observe"]


def test_L7_the_next_pass_looks_at_what_an_interrupted_one_left() -> None:
    left = operation(attempt(Outcome.AMBIGUOUS, ended=1), reason=Reason.INTERRUPTED.value)
    pass_ = running(policy())
    pass_.opened(evolve(left, retry_at=None), now=2)
    pass_.saw(APPLIED, began=2)
    assert pass_.recorded().disposition is Disposition.COMPLETE
    assert not any(isinstance(command, Open) for command in pass_.commands[1:])
