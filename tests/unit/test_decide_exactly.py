"""The decision table at its edges: what a person's word changes, what today's reads change, what was never sent."""

from __future__ import annotations

import pytest

from corrobo_core.decide import Decision, Facts, decide
from corrobo_core.policy import Policy, RetryPolicy
from corrobo_core.records import AttemptRecord, Disposition, Evidence, Outcome, Reason
from tests.unit.facts import TICK, at, attempt, policy, seconds

RETRY = Disposition.RETRY


def decided(
    evidence: Evidence, made: AttemptRecord, began: float, declared: Policy, *, granted: float | None = None
) -> Decision:
    granted_at = None if granted is None else at(granted)
    return decide(Facts(evidence, Reason.NOT_ESTABLISHED, (made,), False, at(began), 0, declared, granted_at))


@pytest.mark.parametrize("evidence", [Evidence.UNKNOWN, Evidence.NOT_APPLIED])
def test_R8_a_grant_allows_one_more_where_evidence_and_policy_do_not(evidence: Evidence) -> None:
    once = policy(max_attempts=1)
    assert decided(evidence, attempt(), 100, once).disposition is Disposition.INVESTIGATE
    assert decided(evidence, attempt(), 100, once, granted=99) == Decision(RETRY, Reason.ATTESTED_NOT_APPLIED)


@pytest.mark.parametrize("evidence", [Evidence.UNKNOWN, Evidence.NOT_APPLIED])
def test_R8_a_grant_waits_for_a_window_that_is_known(evidence: Evidence) -> None:
    waits = Decision(RETRY, Reason.SETTLING, at(10 + TICK))
    assert decided(evidence, attempt(), 10, policy(), granted=5) == waits


@pytest.mark.parametrize("evidence", [Evidence.APPLIED, Evidence.CONFLICTED, Evidence.PENDING])
def test_R8_a_grant_says_nothing_against_what_is_seen(evidence: Evidence) -> None:
    seen = decided(evidence, attempt(), 100, policy())
    assert decided(evidence, attempt(), 100, policy(), granted=99) == seen


def test_R8_whoever_looks_before_the_window_is_over_needs_a_read_after_it() -> None:
    """It could still land when the person looked: where the read cannot tell, the person is asked again."""
    again = Decision(Disposition.INVESTIGATE, Reason.ATTESTED_TOO_EARLY, at(100) + policy().poll.delay(0))
    once_more = Decision(RETRY, Reason.ATTESTED_NOT_APPLIED)
    assert decided(Evidence.UNKNOWN, attempt(), 100, policy(), granted=10) == again
    assert decided(Evidence.UNKNOWN, attempt(), 100, policy(), granted=10 + TICK) == once_more
    assert decided(Evidence.NOT_APPLIED, attempt(), 100, policy(), granted=1) == once_more
    assert decided(Evidence.UNKNOWN, attempt(window=None), 100, policy(None), granted=1) == once_more


@pytest.mark.parametrize("window", [None, 10], ids=["no window", "a window"])
def test_D3_an_answered_attempt_waits_for_the_reads_of_today(window: float | None) -> None:
    """It was sent when reads were fresh; a read can be 3 s old now."""
    made = attempt(Outcome.RESPONDED, ended=1, window=window, finished_by_response=True)
    declared = policy(window, observation_lag=seconds(3), responds_after_effect=True)
    assert decided(Evidence.NOT_APPLIED, made, 4, declared) == Decision(RETRY, Reason.SETTLING, at(4 + TICK))
    assert decided(Evidence.NOT_APPLIED, made, 4 + TICK, declared) == Decision(RETRY, Reason.SAFE_RETRY)


def test_L9_what_never_left_is_no_attempt_that_a_policy_forbids_to_repeat() -> None:
    once = Policy(window=seconds(10), retry=RetryPolicy(retryable=False))
    never_left = attempt(Outcome.NOT_SENT, ended=1)
    assert decided(Evidence.NOT_APPLIED, never_left, 100, once) == Decision(RETRY, Reason.SAFE_RETRY)
    sent = decided(Evidence.NOT_APPLIED, attempt(), 100, once)
    assert (sent.disposition, sent.reason) == (Disposition.INVESTIGATE, Reason.NOT_RETRYABLE)
