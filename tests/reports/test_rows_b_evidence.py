"""Reports of duplicates at providers: what refusals, time, states and errors prove (B13 to B19)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from corrobo_core import (
    Attempt,
    ContractError,
    Disposition,
    EffectRunner,
    Evidence,
    MemoryLedger,
    Observation,
    Outcome,
    Reason,
    Rejected,
    Verdict,
    effect,
)
from corrobo_core.decide import Facts, decide
from corrobo_core.http import classified
from corrobo_core.policy import Policy, RetryPolicy
from corrobo_core.records import AttemptRecord
from examples.http_ledger import HttpLedger, client_killed, reads_fail, refused, slow_answer, slow_commit
from tests.reports.provider import Clock, Provider, effect_at, judge
from tests.support.credits import CreditEffect, HttpxCredits, seconds, settle, time_to_begin
from tests.support.ledgers import AnyLedger, ledger_at
from tests.support.processes import child
from tests.transport.faults import NEVER_LEFT, REFUSED, UNCLEAR, Fault, post

# -- B13: the second request was refused, so the first cannot have happened ----------------------------------


@pytest.mark.parametrize("status", [400, 401, 402])
def test_b13_no_second_request_asks_what_became_of_the_first(
    status: int, http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str
) -> None:
    client = HttpxCredits(http_ledger, timeout=0.15)
    credit = CreditEffect(client, in_flight_window=seconds(0.4))
    http_ledger.fail_next(slow_answer(0.5), refused(status, times=None), reads_fail(times=2))
    passes = [credit.run(any_ledger, reference)]
    assert (passes[0].evidence, passes[0].disposition) == (Evidence.UNKNOWN, Disposition.INVESTIGATE)

    def one_pass() -> Any:
        passes.append(credit.run(any_ledger, reference))
        return passes[-1]

    assert settle(one_pass).disposition is Disposition.COMPLETE
    assert Disposition.REPLAN not in [result.disposition for result in passes]
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 1)


START = datetime(2031, 1, 1, tzinfo=UTC)


def _attempt(number: int, outcome: Outcome, window: timedelta | None) -> AttemptRecord:
    started = START + number * seconds(1)
    return AttemptRecord(number, f"n.{number}", window, started=started, ended=started, outcome=outcome)


@pytest.mark.parametrize(
    ("first", "window", "disposition", "reason"),
    [
        (Outcome.AMBIGUOUS, seconds(60), Disposition.RETRY, Reason.SETTLING),
        (Outcome.UNRECORDED, seconds(60), Disposition.RETRY, Reason.SETTLING),
        (Outcome.AMBIGUOUS, None, Disposition.INVESTIGATE, Reason.IN_FLIGHT_NOT_RULED_OUT),
        (Outcome.AMBIGUOUS, seconds(1), Disposition.REPLAN, Reason.PROVIDER_REFUSED),
        (Outcome.REJECTED, None, Disposition.REPLAN, Reason.PROVIDER_REFUSED),
    ],
)
def test_b13_a_refusal_speaks_for_its_own_request_only(
    first: Outcome, window: timedelta | None, disposition: Disposition, reason: Reason
) -> None:
    attempts = (_attempt(1, first, window), _attempt(2, Outcome.REJECTED, seconds(60)))
    began = START + seconds(10)
    facts = Facts(Evidence.NOT_APPLIED, Reason.NOT_ESTABLISHED, attempts, False, began, 0, Policy(window=window))
    decision = decide(facts)
    assert (decision.disposition, decision.reason) == (disposition, reason)


# -- B14: pending for a day, so it has failed ----------------------------------------------------------------


@pytest.mark.parametrize("readable", [True, False], ids=["nothing found", "no reads"])
def test_b14_time_alone_proves_nothing(readable: bool) -> None:
    clock, provider = Clock(), Provider()
    do = effect_at(provider)  # nobody knows how long a refund can take
    runner = EffectRunner(MemoryLedger(clock=clock))
    provider.fail(TimeoutError())
    provider.unreadable, provider.says = not readable, []
    for _ in range(40):
        result = runner.run(do, "refund")
        assert result.disposition is Disposition.INVESTIGATE
        expected = Reason.IN_FLIGHT_NOT_RULED_OUT if readable else Reason.NOT_ESTABLISHED
        assert result.reason == expected
        clock.move(timedelta(days=1))
    assert provider.sends == 1
    provider.unreadable, provider.says = False, None
    assert runner.run(do, "refund").disposition is Disposition.COMPLETE
    assert (provider.sends, len(provider.done)) == (1, 1)


# -- B15: a state that the provider adds ---------------------------------------------------------------------

STATES: dict[str, Verdict[object]] = {
    "succeeded": Verdict.applied("SUCCEEDED", effect="succeeded"),
    "pending": Verdict.pending("PENDING"),
    "requires_action": Verdict.pending("REQUIRES_ACTION"),
    "failed": Verdict.conflicted("FAILED"),
    "canceled": Verdict.conflicted("CANCELED"),
}


@pytest.mark.parametrize(
    ("state", "evidence", "disposition"),
    [
        ("succeeded", Evidence.APPLIED, Disposition.COMPLETE),
        ("pending", Evidence.PENDING, None),
        ("requires_action", Evidence.PENDING, None),
        ("failed", Evidence.CONFLICTED, Disposition.REPLAN),
        ("canceled", Evidence.CONFLICTED, Disposition.REPLAN),
        ("disputed_by_bank", Evidence.UNKNOWN, Disposition.INVESTIGATE),
    ],
)
def test_b15_every_state_means_something_and_a_new_one_is_unknown(
    state: str, evidence: Evidence, disposition: Disposition | None, any_ledger: AnyLedger
) -> None:
    provider = Provider(state)
    do = effect_at(provider, reconcile=lambda found: STATES[str(found[0])], in_flight_window=seconds(0.3))
    result = EffectRunner(any_ledger).run(do, "refund")
    assert (result.evidence, result.disposition) == (evidence, disposition)
    if evidence is Evidence.UNKNOWN:
        assert result.reason == Reason.RECONCILE_FAILED
    if disposition in (None, Disposition.INVESTIGATE):  # looked at again, and never sent again
        provider.done[0] = "succeeded"
        assert settle(lambda: EffectRunner(any_ledger).run(do, "refund")).disposition is Disposition.COMPLETE
    assert provider.sends == 1


# -- B17: nobody can see whether the mail went out -----------------------------------------------------------


def test_b17_what_cannot_be_observed_is_never_sent_again_by_itself(
    http_ledger: HttpLedger, ledger_address: str, reference: str
) -> None:
    declared = {"in_flight_window": 0.3}
    http_ledger.fail_next(client_killed("after_commit"))
    module = "tests.situations.worker"
    with child(module, "effect", ledger_address, http_ledger.url, reference, json.dumps(declared)) as worker:
        assert worker.wait() == -9
    client = HttpxCredits(http_ledger)
    client.find = lambda reference: []  # type: ignore[method-assign]  # mail leaves no trace
    unobservable = CreditEffect(client, proves_absence=False, in_flight_window=seconds(0.3))
    with ledger_at(ledger_address) as ledger:
        result = unobservable.settle(ledger, reference, within=1)
    assert (result.disposition, result.reason) == (Disposition.INVESTIGATE, Reason.ABSENCE_NOT_PROVEN)
    assert result.attempts[0].outcome is Outcome.UNRECORDED
    assert result.attempts[0].started is not None  # what a person needs to ask around
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 1)


# -- B18: the window is not the worker's deadline ------------------------------------------------------------


def test_b18_after_the_deadline_of_the_function_the_request_may_still_land(
    http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str
) -> None:
    http_ledger.fail_next(slow_commit(0.7))
    credit = CreditEffect(
        HttpxCredits(http_ledger), "async", execute_timeout=seconds(0.15), in_flight_window=seconds(1.3)
    )
    cut = credit.run(any_ledger, reference)
    assert cut.attempts[0].failure is not None
    assert cut.attempts[0].failure.type == "TimeoutError"
    assert (cut.disposition, cut.reason) == (Disposition.RETRY, Reason.SETTLING)
    assert cut.attempts[0].started is not None
    assert cut.retry_at is not None
    assert cut.retry_at > cut.attempts[0].started + seconds(1.3)  # blocked until then, and not for ever
    assert credit.settle(any_ledger, reference).disposition is Disposition.COMPLETE
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 1)


def test_b18_zero_is_not_unset() -> None:
    with pytest.raises(ContractError, match="key_retention"):  # a window of zero needs what makes it honest
        _ = effect_at(Provider(), in_flight_window=timedelta()).definition
    with pytest.raises(ContractError, match="execute_timeout"):
        _ = effect_at(Provider(), in_flight_window=seconds(1), execute_timeout=timedelta()).definition
    assert effect_at(Provider()).definition.policy.window is None

    clock, provider = Clock(), Provider()
    runner = EffectRunner(MemoryLedger(clock=clock))
    provider.fail(Rejected("429", retryable=True, retry_after=timedelta()), loses_request=True)
    do = effect_at(provider, in_flight_window=seconds(60))
    assert runner.run(do, "now").wait < seconds(0.5)  # and not the policy's backoff
    clock.move(seconds(0.5))
    assert runner.run(do, "now").disposition is Disposition.COMPLETE


# -- B19: which failures prove that nothing was sent ---------------------------------------------------------


@pytest.mark.parametrize("fault", [*NEVER_LEFT, *REFUSED, *UNCLEAR], ids=lambda fault: fault.name)
def test_b19_only_what_provably_never_left_or_was_refused_is_taken_for_that(fault: Fault) -> None:
    with fault.setup() as setup:

        @effect(
            "test/post",
            identity=lambda: "only one",
            **time_to_begin({"in_flight_window": seconds(60)}),
        )
        @classified()
        def sent(attempt: Attempt) -> str:
            post(setup.target)
            return "sent"

        @sent.observe
        def seen(attempt: Attempt) -> Observation[list[str]]:
            return Observation.of([], source="nothing", proves_absence=True)

        @seen.reconcile
        def judged(attempt: Attempt, found: list[str]) -> Verdict[str]:
            return judge(found)

        result = EffectRunner(MemoryLedger()).run(sent)
        assert result.attempts[0].outcome is fault.proves  # the caller sees which of them it was
        assert result.attempts[0].failure is not None
        settled = (result.disposition, result.reason)
        if fault.proves is Outcome.NOT_SENT:
            assert not setup.request_arrived
            assert settled == (Disposition.RETRY, Reason.SAFE_RETRY)
            assert timedelta() < result.wait <= RetryPolicy().backoff.initial
        elif "429" in fault.name:
            assert settled == (Disposition.RETRY, Reason.SAFE_RETRY)
            expected = seconds(7) if "Retry-After" in fault.name else RetryPolicy().backoff.initial
            assert expected - seconds(5) < result.wait <= expected
        elif fault.proves is Outcome.REJECTED:
            assert settled == (Disposition.REPLAN, Reason.PROVIDER_REFUSED)
        else:
            assert settled == (Disposition.RETRY, Reason.SETTLING)
            assert result.wait > seconds(50)
