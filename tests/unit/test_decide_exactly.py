"""The decision table at its edges: what a person's word changes, what today's reads change, what was never sent."""

from __future__ import annotations

import pytest

from corrobo_core.decide import Decision, Facts, decide
from corrobo_core.policy import Policy, RetryPolicy
from corrobo_core.records import AttemptRecord, Disposition, Evidence, Outcome, Reason
from tests.unit.facts import TICK, at, attempt, policy, seconds

RETRY = Disposition.RETRY


def decided(
    evidence: Evidence, made: AttemptRecord, began: float, declared: Policy, *, granted: bool = False
) -> Decision:
    return decide(Facts(evidence, Reason.NOT_ESTABLISHED, (made,), False, at(began), 0, declared, granted))


@pytest.mark.parametrize("evidence", [Evidence.UNKNOWN, Evidence.NOT_APPLIED])
def test_R8_a_grant_allows_one_more_where_evidence_and_policy_do_not(evidence: Evidence) -> None:
    once = policy(max_attempts=1)
    assert decided(evidence, attempt(), 100, once).disposition is Disposition.INVESTIGATE
    assert decided(evidence, attempt(), 100, once, granted=True) == Decision(RETRY, Reason.ATTESTED_NOT_APPLIED)


@pytest.mark.parametrize("evidence", [Evidence.UNKNOWN, Evidence.NOT_APPLIED])
def test_R8_a_grant_waits_for_a_window_that_is_known(evidence: Evidence) -> None:
    waits = Decision(RETRY, Reason.SETTLING, at(10 + TICK))
    assert decided(evidence, attempt(), 10, policy(), granted=True) == waits


@pytest.mark.parametrize("evidence", [Evidence.APPLIED, Evidence.CONFLICTED, Evidence.PENDING])
def test_R8_a_grant_says_nothing_against_what_is_seen(evidence: Evidence) -> None:
    seen = decided(evidence, attempt(), 100, policy())
    assert decided(evidence, attempt(), 100, policy(), granted=True) == seen


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
