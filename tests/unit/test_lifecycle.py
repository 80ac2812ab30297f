"""Transcripts of passes that nobody disturbs: what is asked, in which order, and what is recorded."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from corrobo_core.commands import Claim, Execute, Holder, Observe, Open, Opened, Raised, Reconcile, Record, Saw
from corrobo_core.lifecycle import observe, run
from corrobo_core.policy import Policy
from corrobo_core.records import Disposition, Evidence, History, Observation, Operation, Outcome, Reason, evolve
from tests.unit.facts import KEY, TICK, TIMEOUT, at, attempt, policy, reading, seconds
from tests.unit.transcript import BROKEN, Transcript, call, operation, started

APPLIED, NOT_APPLIED = Evidence.APPLIED, Evidence.NOT_APPLIED
AMBIGUOUS = Outcome.AMBIGUOUS


def running(declared: Policy | None = None, **fields: Any) -> Transcript:
    return Transcript(run(call(declared, **fields)))


def looking(declared: Policy | None = None) -> Transcript:
    return Transcript(observe(call(declared)))


def asked(pass_: Transcript) -> list[str]:
    return [type(command).__name__ for command in pass_.commands]


# -- the first attempt ----------------------------------------------------------------------------------------


def test_L2_a_first_attempt_takes_two_statements() -> None:
    pass_ = running()
    reserved = pass_.opened_new().operation
    assert [a.number for a in reserved.attempts] == [1]
    assert reserved.reserved
    assert reserved.disposition is None
    pass_.executed(response="ok")
    pass_.saw(APPLIED, effect="refund", stored={"id": 1})
    stored = pass_.recorded()

    assert asked(pass_) == ["Open", "Execute", "Observe", "Reconcile", "Record"]
    assert (stored.disposition, stored.reason, stored.evidence) == (
        Disposition.COMPLETE,
        Reason.EFFECT_CONFIRMED,
        APPLIED,
    )
    assert (stored.effect, stored.latest.response, stored.latest.outcome) == ({"id": 1}, "ok", Outcome.RESPONDED)
    assert (stored.owner, stored.retry_at, stored.closed) == (None, None, True)
    end = pass_.end()
    assert (end.effect, end.saw_effect, end.interrupted) == ("refund", True, False)


def test_L1_nothing_is_asked_of_the_contract_before_the_reservation_is_answered() -> None:
    pass_ = running()
    assert asked(pass_) == ["Open"]
    pass_.opened_new()
    assert asked(pass_) == ["Open", "Execute"]


def test_a_confirmed_effect_may_be_none() -> None:
    pass_ = running()
    pass_.opened_new()
    pass_.executed()
    pass_.saw(APPLIED, effect=None)
    pass_.recorded()
    assert pass_.end().saw_effect


def test_D3_the_attempt_records_what_it_was_sent_under() -> None:
    declared = policy(10, observation_lag=seconds(3), responds_after_effect=True)
    reserved = running(declared).expect(Open).operation.latest
    assert (reserved.window, reserved.lag, reserved.timeout) == (seconds(13), seconds(3), seconds(5))
    assert reserved.finished_by_response


def test_C2_every_write_has_its_own_nonce_and_names_the_version_it_read() -> None:
    pass_ = running()
    pass_.opened_new()
    pass_.executed()
    pass_.saw(APPLIED)
    record = pass_.expect(Record).operation
    nonces = [pass_.commands[0].operation.nonce, record.nonce]  # type: ignore[attr-defined]
    assert len(set(nonces)) == 2
    assert all(nonce.startswith("me.") for nonce in nonces)
    assert record.version == 1
    assert record.latest.nonce == nonces[0], "the attempt keeps the nonce of the write that reserved it"


def test_a_lost_response_is_settling_until_its_window_is_over() -> None:
    pass_ = running()
    pass_.opened_new()
    pass_.executed(AMBIGUOUS)
    pass_.saw(NOT_APPLIED)
    stored = pass_.recorded()
    assert (stored.disposition, stored.reason) == (Disposition.RETRY, Reason.SETTLING)
    assert stored.retry_at == at(10 + TICK)
    assert stored.latest.failure == BROKEN
    assert pass_.sent == 1


def test_a_pass_makes_at_most_one_attempt() -> None:
    """Refused for now, nothing there, retry allowed at once: the next pass retries, not this one."""
    pass_ = running()
    pass_.opened_new()
    pass_.executed(Outcome.REJECTED, retryable=True, retry_after=seconds(0), failure=TIMEOUT)
    pass_.saw(NOT_APPLIED)
    stored = pass_.recorded()
    assert (stored.reason, stored.retry_at) == (Reason.SAFE_RETRY, at(2))
    pass_.end()


def test_a_refusal_for_good_is_closed_once_nothing_is_there() -> None:
    pass_ = running()
    pass_.opened_new()
    pass_.executed(Outcome.REJECTED, failure=TIMEOUT)
    pass_.saw(NOT_APPLIED)
    stored = pass_.recorded()
    assert (stored.disposition, stored.reason, stored.closed) == (
        Disposition.REPLAN,
        Reason.PROVIDER_REFUSED,
        True,
    )


def test_a_refusal_is_observed_all_the_same() -> None:
    """A client that retries by itself: its second request was refused because the first one had worked."""
    pass_ = running()
    pass_.opened_new()
    pass_.executed(Outcome.REJECTED, failure=TIMEOUT)
    pass_.saw(APPLIED)
    assert pass_.recorded().disposition is Disposition.COMPLETE


def test_the_providers_time_counts_from_the_end_of_the_attempt() -> None:
    pass_ = running()
    pass_.opened_new()
    pass_.executed(Outcome.REJECTED, ended=1.5, retryable=True, retry_after=timedelta(seconds=30), failure=TIMEOUT)
    pass_.saw(NOT_APPLIED)
    stored = pass_.recorded()
    assert stored.latest.retry_after == stored.retry_at == at(31.5)


# -- time (D4a, L9) -------------------------------------------------------------------------------------------


def test_L9_the_send_must_begin_in_the_part_of_the_window_that_the_hook_leaves() -> None:
    pass_ = running(policy(10, execute_timeout=seconds(3)))
    opened = pass_.expect(Open)
    # The statement took 4 s; the stopwatch counts from before it was sent.
    pass_.reply(Opened(started(opened.operation, 2), True, Holder.RUNNING, reading(2, sent=100, received=104)))
    execute = pass_.expect(Execute)
    assert execute.not_after == 107
    assert execute.timeout == seconds(3)


@pytest.mark.parametrize("declared", [policy(None), policy(0, key_retention=timedelta.max)])
def test_L9_without_a_window_there_is_nothing_to_compare_with(declared: Policy) -> None:
    pass_ = running(declared)
    pass_.opened_new()
    assert pass_.expect(Execute).not_after is None


def test_D2_another_attempt_must_end_before_the_key_is_forgotten() -> None:
    declared = policy(0, key_retention=seconds(100), execute_timeout=seconds(6))
    pass_ = running(declared)
    pass_.opened(operation(attempt(started=0, ended=1, window=0)), now=20)
    pass_.saw(NOT_APPLIED, began=21)
    pass_.claimed(now=90)
    assert pass_.expect(Execute).not_after == 94, "100 s after the first attempt, less 6 s for this one"


def test_D4a_an_observation_begins_no_later_than_the_ledger_can_vouch_for() -> None:
    """The opening statement took 4 s: the ledger's clock was read at some time in them."""
    pass_ = running()
    pass_.expect(Open)
    stored = operation(attempt(AMBIGUOUS, ended=1))
    pass_.reply(Opened(stored, False, Holder.NOBODY, reading(8, sent=100, received=104)))
    pass_.saw(NOT_APPLIED, began=106)
    settled = pass_.recorded(now=50)
    assert settled.history.last[-1].began == at(10), "8 s plus the 2 s since its reply, not plus 6"
    assert settled.reason == Reason.SETTLING, "strictly after 10 s, and no clock read after the observation counts"


def test_D4a_an_attempt_ends_no_earlier_than_the_ledger_can_vouch_for() -> None:
    pass_ = running()
    opened = pass_.expect(Open)
    pass_.reply(Opened(started(opened.operation, 8), True, Holder.RUNNING, reading(8, sent=100, received=104)))
    pass_.executed(ended=106)
    pass_.saw(APPLIED, began=106)
    assert pass_.recorded().latest.ended == at(14)


def test_L9_a_hook_that_overran_is_waited_for_from_its_end() -> None:
    pass_ = running()
    pass_.opened_new()
    pass_.executed(AMBIGUOUS, ended=9)
    pass_.saw(NOT_APPLIED, began=9)
    assert pass_.recorded().retry_at == at(19 + TICK)


# -- another attempt ------------------------------------------------------------------------------------------


def settled_attempt() -> Operation:
    return operation(
        attempt(AMBIGUOUS, ended=1),
        disposition=Disposition.RETRY,
        reason=Reason.SETTLING.value,
        retry_at=at(10 + TICK),
        evidence=NOT_APPLIED,
    )


def test_L3_a_settled_retry_reads_first_then_claims_then_sends() -> None:
    pass_ = running()
    pass_.opened(settled_attempt(), now=20)
    pass_.saw(NOT_APPLIED, began=21)
    claim = pass_.claimed(now=22).operation
    assert [(a.number, a.outcome) for a in claim.attempts] == [(1, AMBIGUOUS), (2, None)]
    assert (claim.version, claim.reason, claim.disposition) == (4, Reason.IN_PROGRESS, None)
    assert claim.history.count == 1, "what allowed it is stored with it"
    assert claim.latest.started is None, "the ledger sets it, after any lock wait"
    pass_.executed(ended=23)
    pass_.saw(APPLIED, began=24)
    stored = pass_.recorded()
    assert stored.disposition is Disposition.COMPLETE
    assert asked(pass_) == [
        *("Open", "Observe", "Reconcile", "Claim"),
        *("Execute", "Observe", "Reconcile", "Record"),
    ]


def test_D4_a_late_landing_shows_up_as_applied() -> None:
    pass_ = running()
    pass_.opened(settled_attempt(), now=20)
    pass_.saw(APPLIED, began=21)
    assert pass_.recorded().disposition is Disposition.COMPLETE
    assert pass_.sent == 0


@pytest.mark.parametrize("reason", [Reason.SAFE_RETRY, Reason.SETTLING, Reason.ATTEMPTS_EXHAUSTED])
@pytest.mark.parametrize("evidence", [e for e in Evidence if e is not NOT_APPLIED])
def test_L3_a_stored_verdict_is_never_enough(reason: Reason, evidence: Evidence) -> None:
    stored = evolve(settled_attempt(), reason=reason.value, retry_at=at(5))
    pass_ = running()
    pass_.opened(stored, now=20)
    pass_.saw(evidence, began=21)
    pass_.recorded()
    pass_.end()
    assert pass_.sent == 0


def test_an_investigation_may_find_a_safe_retry_later() -> None:
    """O5: one failed read during an outage does not close the operation for ever."""
    stored = operation(
        attempt(AMBIGUOUS, ended=1),
        disposition=Disposition.INVESTIGATE,
        reason=Reason.NOT_ESTABLISHED.value,
        evidence=Evidence.UNKNOWN,
        retry_at=at(15),
        looks=3,
        looking_since=at(2),
    )
    pass_ = running()
    pass_.opened(stored, now=20)
    pass_.saw(NOT_APPLIED, began=21)
    claim = pass_.claimed(now=22).operation
    assert (claim.looks, claim.looking_since) == (0, None)
    pass_.expect(Execute)


def test_attempts_that_never_left_do_not_grow_the_record() -> None:
    made = [attempt(Outcome.NOT_SENT, number=n, ended=1, failure=TIMEOUT) for n in range(1, 31)]
    sent = attempt(AMBIGUOUS, number=31, ended=1)
    pass_ = running()
    pass_.opened(operation(*made, sent), now=200)
    pass_.saw(NOT_APPLIED, began=200)
    numbers = [a.number for a in pass_.claimed(now=201).operation.attempts]
    assert numbers == [*range(23, 31), 31, 32], "numbers are never used twice; what was sent is kept"


# -- what an earlier process left (L5) ------------------------------------------------------------------------


@pytest.mark.parametrize("holder", [Holder.GONE, Holder.NOBODY])
def test_L5_an_unrecorded_attempt_is_observed_as_never_recorded(holder: Holder) -> None:
    pass_ = running()
    pass_.opened(operation(attempt(None)), now=3, holder=holder)
    assert pass_.expect(Observe).operation.latest.outcome is Outcome.UNRECORDED, "its hooks are told so"
    pass_.saw(NOT_APPLIED, began=3)
    stored = pass_.recorded()
    assert (stored.reason, stored.retry_at) == (Reason.SETTLING, at(10 + TICK))
    assert (stored.latest.outcome, stored.owner) == (Outcome.UNRECORDED, None)
    assert pass_.sent == 0


def test_L5_an_unrecorded_attempt_is_found_applied() -> None:
    pass_ = running()
    pass_.opened(operation(attempt(None)), now=3)
    pass_.saw(APPLIED, began=3, effect="refund")
    stored = pass_.recorded()
    assert (stored.disposition, stored.latest.outcome) == (Disposition.COMPLETE, Outcome.UNRECORDED)
    assert pass_.end().effect == "refund"


def test_L5_an_unrecorded_attempt_is_superseded_only_once_it_has_settled() -> None:
    pass_ = running()
    pass_.opened(operation(attempt(None)), now=20)
    pass_.saw(NOT_APPLIED, began=20)
    claim = pass_.claimed(now=21).operation
    assert [a.outcome for a in claim.attempts] == [Outcome.UNRECORDED, None]


def test_L5_without_a_window_an_unrecorded_attempt_is_never_repeated() -> None:
    pass_ = running(policy(None))
    pass_.opened(operation(attempt(None, window=None, timeout=None)), now=10**7)
    pass_.saw(NOT_APPLIED, began=10**7)
    assert pass_.recorded().reason == Reason.IN_FLIGHT_NOT_RULED_OUT
    assert pass_.sent == 0


def test_L7_an_abandoned_attempt_is_looked_at_before_its_window_is_over() -> None:
    pass_ = running()
    given_up = evolve(operation(attempt(None, abandoned=at(2))), owner=None, retry_at=at(9))
    pass_.opened(given_up, now=3, holder=Holder.NOBODY)
    pass_.saw(APPLIED, began=3)
    assert pass_.recorded().disposition is Disposition.COMPLETE


# -- when a pass looks ----------------------------------------------------------------------------------------


def test_O5_a_pass_before_its_time_reads_nothing() -> None:
    pass_ = running()
    pass_.opened(settled_attempt(), now=10)
    end = pass_.end()
    assert asked(pass_) == ["Open"]
    assert end.operation == settled_attempt()
    assert end.now == at(10)


def test_O5_a_pass_at_its_time_reads() -> None:
    pass_ = running()
    pass_.opened(settled_attempt(), now=10 + TICK)
    pass_.expect(Observe)


def test_O5_unless_asked_to_observe_now() -> None:
    pass_ = running(observe_now=True)
    pass_.opened(settled_attempt(), now=5)
    pass_.saw(NOT_APPLIED, began=5)
    assert pass_.recorded().reason == Reason.SETTLING, "which shortens no window"
    assert pass_.sent == 0


def test_O5_whoever_was_waited_for_is_gone_meanwhile() -> None:
    """STILL_RUNNING said when to come back; its owner has died before that."""
    stored = operation(
        attempt(None), disposition=Disposition.INVESTIGATE, reason=Reason.STILL_RUNNING.value, retry_at=at(300)
    )
    pass_ = running()
    pass_.opened(stored, now=20, holder=Holder.GONE)
    pass_.saw(APPLIED, began=20)
    assert pass_.recorded().disposition is Disposition.COMPLETE


@pytest.mark.parametrize("evidence", [Evidence.PENDING, Evidence.UNKNOWN])
def test_O5_looking_is_counted_and_dated_until_it_gives_an_answer(evidence: Evidence) -> None:
    stored = operation(attempt(AMBIGUOUS, ended=1), retry_at=at(30), looks=2, looking_since=at(4))
    pass_ = running()
    pass_.opened(stored, now=30)
    pass_.saw(evidence, began=31)
    recorded = pass_.recorded()
    # While it converges nobody need be called, however long that takes: a failed read then begins a new count.
    since = at(4) if evidence is Evidence.UNKNOWN else None
    assert (recorded.looks, recorded.looking_since, recorded.retry_at) == (3, since, at(31 + 20))

    pass_ = running()
    pass_.opened(recorded, now=60)
    pass_.saw(APPLIED, began=60)
    answered = pass_.recorded()
    assert (answered.looks, answered.looking_since) == (0, None)


@pytest.mark.parametrize("disposition", [Disposition.COMPLETE, Disposition.REPLAN])
@pytest.mark.parametrize("observe_now", [True, False])
def test_a_closed_operation_is_returned_as_it_is(disposition: Disposition, observe_now: bool) -> None:
    closed = operation(attempt(ended=1), disposition=disposition, reason="ANY", retry_at=None)
    pass_ = running(observe_now=observe_now)
    pass_.opened(closed, now=10**6)
    assert asked(pass_) == ["Open"]
    assert pass_.end().operation == closed


# -- observations ---------------------------------------------------------------------------------------------


def test_O2_absence_that_the_read_could_have_missed_is_unknown() -> None:
    pass_ = running()
    pass_.opened(settled_attempt(), now=20)
    pass_.saw(NOT_APPLIED, began=21, proves_absence=False)
    stored = pass_.recorded()
    assert (stored.evidence, stored.disposition) == (Evidence.UNKNOWN, Disposition.INVESTIGATE)
    assert stored.reason == Reason.ABSENCE_NOT_PROVEN
    assert stored.history.last[-1].evidence is Evidence.UNKNOWN
    assert pass_.sent == 0


def test_O2_presence_needs_no_proof_of_absence() -> None:
    pass_ = running()
    pass_.opened(settled_attempt(), now=20)
    pass_.saw(APPLIED, began=21, proves_absence=False)
    assert pass_.recorded().disposition is Disposition.COMPLETE


def test_O3_an_observe_that_raises_is_unknown() -> None:
    pass_ = running()
    pass_.opened(settled_attempt(), now=20)
    pass_.raised(Observe)
    stored = pass_.recorded()
    assert (stored.evidence, stored.disposition) == (Evidence.UNKNOWN, Disposition.INVESTIGATE)
    assert stored.reason == Reason.NOT_ESTABLISHED
    assert stored.explanation == "observe raised ValueError: broken"
    assert pass_.sent == 0


def test_O8_a_reconcile_that_raises_is_unknown() -> None:
    pass_ = running()
    pass_.opened(settled_attempt(), now=20)
    pass_.expect(Observe)
    pass_.reply(Saw(Observation.of("data", source="provider", proves_absence=True), 21))
    pass_.expect(Reconcile)
    pass_.reply(Raised(BROKEN))
    stored = pass_.recorded()
    assert (stored.evidence, stored.reason) == (Evidence.UNKNOWN, Reason.RECONCILE_FAILED)
    assert pass_.sent == 0


def test_O8_reconcile_is_given_the_history() -> None:
    seen = settled_attempt()
    for _ in range(2):
        pass_ = running()
        pass_.opened(seen, now=20)
        pass_.expect(Observe)
        pass_.reply(Saw(Observation.of("data", source="provider", proves_absence=True), 21))
        assert pass_.expect(Reconcile).operation.history == seen.history
        pass_.reply(Raised(BROKEN))
        seen = evolve(pass_.recorded(), retry_at=None)
    assert seen.history.count == 2


def test_O7_the_history_is_bounded() -> None:
    stored = operation(attempt(ended=1))
    for n in range(50):
        pass_ = running()
        pass_.opened(evolve(stored, retry_at=None), now=n)
        pass_.saw(Evidence.PENDING, began=n)
        stored = pass_.recorded()
    assert stored.history.count == 50
    assert stored.history.first is not None
    assert stored.history.first.began == at(0)
    assert [record.began for record in stored.history.last] == [at(n) for n in range(30, 50)]
    assert len(stored.history.last) == History.KEPT == 20


# -- the program that only reads ------------------------------------------------------------------------------


def test_observing_an_operation_that_was_never_recorded() -> None:
    pass_ = looking()
    assert pass_.loaded(None, now=5).key == KEY
    assert pass_.end().operation is None


def test_observing_an_operation_that_was_never_sent() -> None:
    pass_ = looking()
    pass_.loaded(operation(), now=5)
    assert asked(pass_) == ["Load"]
    assert pass_.end().operation == operation()


def test_observing_an_attempt_that_is_being_made() -> None:
    pass_ = looking()
    pass_.loaded(operation(attempt(None)), now=5, holder=Holder.RUNNING)
    assert pass_.end().in_progress_until == at(7.5)
    assert asked(pass_) == ["Load"]


@pytest.mark.parametrize("evidence", list(Evidence))
@pytest.mark.parametrize(
    ("stored", "holder"),
    [
        (settled_attempt(), Holder.NOBODY),
        (operation(attempt(None)), Holder.GONE),
        (operation(attempt(None)), Holder.RUNNING),
        (operation(attempt(Outcome.NOT_SENT, ended=1)), Holder.NOBODY),
        (operation(attempt(Outcome.REJECTED, ended=1, retryable=True)), Holder.NOBODY),
        (operation(attempt(ended=1), disposition=Disposition.INVESTIGATE), Holder.NOBODY),
        (operation(attempt(ended=1), disposition=Disposition.REVIEW), Holder.NOBODY),
        (operation(attempt(ended=1), disposition=Disposition.COMPLETE), Holder.NOBODY),
        (operation(attempt(ended=1), disposition=Disposition.REPLAN), Holder.NOBODY),
    ],
    ids=["settled", "unrecorded", "running", "not sent", "refused", "investigate", "review", "complete", "replan"],
)
def test_observing_only_reads_whatever_it_finds(stored: Operation, holder: Holder, evidence: Evidence) -> None:
    pass_ = looking()
    pass_.loaded(stored, now=20, holder=holder)
    pass_.saw(evidence, began=21, effect="found" if evidence is APPLIED else None)
    recorded = pass_.recorded()
    pass_.end()
    assert asked(pass_) == ["Load", "Observe", "Reconcile", "Record"]
    assert recorded.history.count == 1
    if stored.closed:
        assert recorded.disposition is stored.disposition, "O6: new evidence, never a reason to reopen"
    elif evidence is APPLIED:
        assert recorded.disposition is Disposition.COMPLETE


def test_observing_reads_also_before_its_time() -> None:
    pass_ = looking()
    pass_.loaded(settled_attempt(), now=5)
    pass_.expect(Observe)


@pytest.mark.parametrize("evidence", list(Evidence))
def test_O6_what_was_applied_stays_applied(evidence: Evidence) -> None:
    complete = operation(
        attempt(ended=1),
        disposition=Disposition.COMPLETE,
        reason=Reason.EFFECT_CONFIRMED.value,
        evidence=APPLIED,
        effect={"id": 1},
    )
    pass_ = looking()
    pass_.loaded(complete, now=20)
    pass_.saw(evidence, began=21, stored={"id": 2})
    recorded = pass_.recorded()
    kept = (recorded.disposition, recorded.reason, recorded.evidence, recorded.effect)
    assert kept == (Disposition.COMPLETE, Reason.EFFECT_CONFIRMED, APPLIED, {"id": 1})
    assert recorded.history.last[-1].evidence is evidence, "the new evidence is kept beside it"

    again = running()
    again.opened(recorded, now=30)
    assert asked(again) == ["Open"]


def test_no_claim_in_any_observing_pass() -> None:
    pass_ = looking()
    pass_.loaded(settled_attempt(), now=20)
    pass_.saw(NOT_APPLIED, began=21)
    stored = pass_.recorded()
    assert (stored.disposition, stored.reason, stored.retry_at) == (
        Disposition.RETRY,
        Reason.SAFE_RETRY,
        at(21),
    )
    assert not any(isinstance(command, Claim | Execute) for command in pass_.commands)
