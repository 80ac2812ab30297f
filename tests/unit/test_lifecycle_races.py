"""Transcripts of passes that others disturb: races, refused writes, lost replies (semantics C1 to C5, I1)."""

from __future__ import annotations

import pytest

from corrobo_core.commands import Claim, Execute, Holder, KeepLate, Observe, Open, Record, Refused
from corrobo_core.errors import IdentityReused
from corrobo_core.lifecycle import observe, run
from corrobo_core.policy import Policy
from corrobo_core.records import Disposition, Evidence, Operation, OperationKey, Outcome, Reason, evolve
from tests.unit.facts import FINGERPRINT, KEY, at, attempt, policy, reading, seconds
from tests.unit.transcript import BROKEN, Transcript, call, operation, started

APPLIED, NOT_APPLIED = Evidence.APPLIED, Evidence.NOT_APPLIED
AMBIGUOUS = Outcome.AMBIGUOUS
DAY = 24 * 3600


def running(declared: Policy | None = None) -> Transcript:
    return Transcript(run(call(declared)))


def asked(pass_: Transcript) -> list[str]:
    return [type(command).__name__ for command in pass_.commands]


def attempting(evidence: Evidence = APPLIED) -> tuple[Transcript, Operation]:
    """A pass whose first attempt was sent, and whose read found it; the operation as reserved."""
    pass_ = running()
    opened = pass_.opened_new()
    pass_.executed(response="ok")
    pass_.saw(evidence, effect="refund", stored={"id": 1})
    return pass_, started(opened.operation, 0)


# -- one at a time (C1) ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("age", "wait"), [(0, 0.25), (0.1, 0.25), (1, 0.5), (9.9, 4.95)])
def test_C1_the_loser_of_a_race_waits_for_nobody(age: float, wait: float) -> None:
    pass_ = running()
    pass_.opened(operation(attempt(None)), now=age, holder=Holder.RUNNING)
    end = pass_.end()
    assert asked(pass_) == ["Open"]
    assert end.in_progress_until == at(age + wait), "soon while the attempt is young"


def test_C1_a_slow_attempt_is_asked_after_rarely_and_at_least_every_ten_seconds() -> None:
    pass_ = running(policy(DAY))
    pass_.opened(operation(attempt(None, window=DAY)), now=3600, holder=Holder.RUNNING)
    assert pass_.end().in_progress_until == at(3610)


@pytest.mark.parametrize(
    ("made", "until"),
    [
        (attempt(None, window=13, lag=3), 13),
        (attempt(None, window=None, timeout=None), 600),
        (attempt(None, window=0, timeout=20), 20),
        (attempt(None, window=0, timeout=None), 600),
    ],
    ids=["window and lag", "no window", "window zero, timeout", "window zero, no timeout"],
)
def test_C5_a_live_owner_is_left_alone_until_its_window_is_over(made: object, until: float) -> None:
    stored = operation(made)  # type: ignore[arg-type]
    pass_ = running()
    pass_.opened(stored, now=until, holder=Holder.RUNNING)
    assert pass_.end().in_progress_until is not None

    pass_ = running()
    pass_.opened(stored, now=until + 0.001, holder=Holder.RUNNING)
    pass_.expect(Observe)


def test_C5_an_attempt_whose_owner_lives_is_observed_and_never_superseded() -> None:
    pass_ = running()
    pass_.opened(operation(attempt(None)), now=DAY, holder=Holder.RUNNING)
    assert pass_.expect(Observe).operation.latest.outcome is None
    pass_.saw(NOT_APPLIED, began=DAY)
    stored = pass_.recorded()
    assert (stored.disposition, stored.reason) == (Disposition.INVESTIGATE, Reason.STILL_RUNNING)
    assert (stored.owner, stored.latest.outcome) == (operation(attempt(None)).owner, None), "its owner keeps it"
    assert pass_.sent == 0


def test_C5_what_a_live_owner_did_may_be_seen_before_it_says_so() -> None:
    pass_ = running()
    pass_.opened(operation(attempt(None)), now=20, holder=Holder.RUNNING)
    pass_.saw(APPLIED, began=20, effect="refund")
    stored = pass_.recorded()
    assert (stored.disposition, stored.owner, stored.reserved) == (Disposition.COMPLETE, None, False)
    assert pass_.end().effect == "refund"


# -- claiming another attempt (C3) ----------------------------------------------------------------------------


def claiming() -> Transcript:
    pass_ = running()
    pass_.opened(operation(attempt(AMBIGUOUS, ended=1)), now=20)
    pass_.saw(NOT_APPLIED, began=20)
    pass_.expect(Claim)
    return pass_


def test_C3_the_loser_of_a_claim_sends_nothing() -> None:
    pass_ = claiming()
    pass_.refused(Claim, now=21)
    theirs = attempt(None, number=2, started=20.5, nonce="third.1")
    pass_.loaded(operation(attempt(AMBIGUOUS, ended=1), theirs, version=5), now=21.5, holder=Holder.RUNNING)
    end = pass_.end()
    assert end.in_progress_until == at(22)
    assert pass_.sent == 0


def test_C3_the_loser_of_a_claim_reports_what_is_stored() -> None:
    pass_ = claiming()
    pass_.refused(Claim, now=21)
    complete = operation(attempt(ended=1), version=6, disposition=Disposition.COMPLETE)
    pass_.loaded(complete, now=21)
    end = pass_.end()
    assert (end.operation, end.in_progress_until) == (complete, None)
    assert pass_.sent == 0


def test_C2_a_claim_whose_reply_was_lost_recognises_its_own_row() -> None:
    """The ledger sent it at 20.9 s, it was stored at 21 s, and found refused when it was sent again."""
    pass_ = claiming()
    claim = pass_.expect(Claim)
    pass_.reply(Refused(reading(25, sent=20.9)))
    pass_.loaded(started(claim.operation, 21), now=26, holder=Holder.RUNNING)
    execute = pass_.expect(Execute)
    assert execute.operation.latest.number == 2
    assert execute.not_after == 25.9, "the stopwatch counts from the first sending"
    pass_.executed(ended=27)
    pass_.saw(APPLIED, began=27)
    assert pass_.recorded().history.last[-1].began == at(27)


def test_a_claim_by_another_pass_with_the_same_number_is_not_ones_own() -> None:
    pass_ = claiming()
    mine = pass_.refused(Claim, now=21)
    pass_.loaded(evolve(started(mine, 20), nonce="third.2"), now=21, holder=Holder.RUNNING)
    pass_.end()
    assert pass_.sent == 0


# -- a refused record (C2) ------------------------------------------------------------------------------------


def test_C2_a_pass_whose_write_is_refused_keeps_what_it_learned_as_late_evidence() -> None:
    pass_, _ = attempting()
    pass_.refused(Record)
    theirs = operation(attempt(Outcome.UNRECORDED, nonce="me.1"), attempt(None, number=2, started=15), version=9)
    pass_.loaded(theirs, now=16, holder=Holder.RUNNING)
    late = pass_.expect(KeepLate)
    assert (late.attempt, late.nonce) == (1, "me.1")
    assert late.evidence == {
        "outcome": "RESPONDED",
        "ended": at(1).isoformat(),
        "failure": None,
        "response": "ok",
        "evidence": "APPLIED",
        "explanation": "what was seen",
    }
    pass_.reply(None)
    pass_.loaded(theirs, now=16, holder=Holder.RUNNING)
    end = pass_.end()
    assert end.operation == theirs
    assert end.in_progress_until is not None
    assert not end.saw_effect, "what it saw decides nothing"
    assert pass_.sent == 1


def test_C2_what_an_interrupted_attempt_learned_is_kept_too() -> None:
    pass_ = running()
    pass_.opened_new()
    pass_.executed(AMBIGUOUS, interrupted=True)
    pass_.refused(Record)
    pass_.loaded(operation(attempt(Outcome.UNRECORDED, nonce="me.1"), version=9), now=16)
    late = pass_.expect(KeepLate).evidence
    assert isinstance(late, dict)
    assert (late["outcome"], late["failure"]) == ("AMBIGUOUS", {"type": "ValueError", "message": "broken"})
    pass_.reply(None)
    pass_.loaded(operation(attempt(Outcome.UNRECORDED, nonce="me.1"), version=9), now=16)
    assert pass_.end().interrupted


def test_C2_a_pass_that_only_looked_keeps_nothing() -> None:
    pass_ = running()
    pass_.opened(operation(attempt(AMBIGUOUS, ended=1)), now=5)
    pass_.saw(NOT_APPLIED, began=5)
    pass_.refused(Record)
    complete = operation(attempt(ended=1), version=6, disposition=Disposition.COMPLETE)
    pass_.loaded(complete, now=6)
    assert pass_.end().operation == complete
    assert asked(pass_) == ["Open", "Observe", "Reconcile", "Record", "Load"]


@pytest.mark.parametrize("evidence", [APPLIED, Evidence.NOT_APPLIED, Evidence.CONFLICTED, Evidence.UNKNOWN])
def test_C2_an_attempt_that_somebody_looked_at_meanwhile_gets_its_outcome(evidence: Evidence) -> None:
    """A reader found it STILL_RUNNING and wrote so; nobody superseded it."""
    pass_, reserved = attempting(evidence)
    pass_.refused(Record)
    looked = evolve(
        reserved,
        version=2,
        nonce="other.3",
        disposition=Disposition.INVESTIGATE,
        reason=Reason.STILL_RUNNING.value,
        retry_at=at(300),
    )
    pass_.loaded(looked, now=12, holder=Holder.RUNNING)
    merged = pass_.recorded(now=13)
    assert (merged.latest.outcome, merged.latest.response, merged.owner) == (Outcome.RESPONDED, "ok", None)
    if evidence is APPLIED:  # O6: forgotten, a later reversal could look like a reason to send again
        assert (merged.disposition, merged.evidence) == (Disposition.COMPLETE, APPLIED)
        assert (merged.effect, merged.history.last[-1].evidence) == ({"id": 1}, APPLIED)
    else:
        assert (merged.disposition, merged.reason) == (None, Reason.OVERTAKEN.value)
    assert merged.retry_at is None, "the next pass looks at once, and decides"
    assert merged.version == 3
    pass_.end()
    assert pass_.sent == 1


def test_C2_a_merge_that_is_refused_too_is_tried_again_on_what_is_stored_then() -> None:
    """Somebody looked, and the desk decided: two writes between the attempt's send and its outcome (L9, R8)."""
    pass_, reserved = attempting(Evidence.UNKNOWN)
    pass_.refused(Record)
    looked = evolve(reserved, version=2, nonce="other.3")
    pass_.loaded(looked, now=12, holder=Holder.RUNNING)
    pass_.refused(Record)
    pass_.loaded(evolve(looked, version=3, nonce="desk.1"), now=12, holder=Holder.RUNNING)
    merged = pass_.recorded(now=13)
    assert (merged.latest.outcome, merged.latest.ended, merged.version) == (Outcome.RESPONDED, at(1), 4)
    end = pass_.end()
    assert (end.operation, end.now) == (merged, at(13))


def test_C2_a_merge_whose_reply_was_lost_recognises_its_own_row() -> None:
    pass_, reserved = attempting(Evidence.UNKNOWN)
    pass_.refused(Record)
    pass_.loaded(evolve(reserved, version=2, nonce="other.3"), now=12, holder=Holder.RUNNING)
    merged = evolve(pass_.refused(Record), version=3)
    pass_.loaded(merged, now=13)
    assert pass_.end().operation == merged


def test_C2_a_merge_into_an_attempt_that_was_superseded_leaves_late_evidence() -> None:
    pass_, reserved = attempting()
    pass_.refused(Record)
    pass_.loaded(evolve(reserved, version=2, nonce="other.3"), now=12, holder=Holder.RUNNING)
    pass_.refused(Record)
    complete = operation(attempt(Outcome.UNRECORDED, nonce="me.1"), version=4, disposition=Disposition.COMPLETE)
    pass_.loaded(complete, now=12)
    pass_.expect(KeepLate)
    pass_.reply(None)
    pass_.loaded(complete, now=13)
    assert pass_.end().operation == complete


def test_C2_a_record_whose_reply_was_lost_recognises_its_own_row() -> None:
    pass_, _ = attempting()
    mine = pass_.refused(Record)
    pass_.loaded(evolve(mine, version=2), now=9)
    end = pass_.end()
    assert end.operation is not None
    assert end.operation.disposition is Disposition.COMPLETE
    assert (end.effect, end.saw_effect, end.now) == ("refund", True, at(9))


def test_an_operation_that_has_vanished_is_reported_as_such() -> None:
    pass_, _ = attempting()
    pass_.refused(Record)
    pass_.loaded(None, now=9)
    assert pass_.end().operation is None
    assert pass_.sent == 1


# -- identity (I1) --------------------------------------------------------------------------------------------

OTHER_INTENT = evolve(operation(attempt(ended=1)), fingerprint="v1:sha256:" + "f" * 64)
OTHER_TYPE = evolve(OTHER_INTENT, key=OperationKey("default", "rf_81", "payments/charge"))


@pytest.mark.parametrize(("stored", "field"), [(OTHER_INTENT, "intent"), (OTHER_TYPE, "operation type")])
@pytest.mark.parametrize("holder", list(Holder))
def test_I1_the_same_id_for_something_else_is_refused_before_anything_happens(
    stored: Operation, field: str, holder: Holder
) -> None:
    pass_ = running()
    with pytest.raises(IdentityReused) as caught:
        pass_.opened(stored, now=20, holder=holder)
    was, now = (stored.fingerprint, FINGERPRINT) if field == "intent" else (stored.key.type, KEY.type)
    assert caught.value.args == (KEY.operation_id, field, was, now)
    assert asked(pass_) == ["Open"]


@pytest.mark.parametrize("stored", [OTHER_INTENT, OTHER_TYPE])
def test_I1_also_by_a_pass_that_only_looks(stored: Operation) -> None:
    pass_ = Transcript(observe(call()))
    with pytest.raises(IdentityReused):
        pass_.loaded(stored, now=20)
    assert asked(pass_) == ["Load"]


@pytest.mark.parametrize("disposition", [Disposition.COMPLETE, Disposition.REPLAN])
def test_I1_also_when_the_operation_is_closed(disposition: Disposition) -> None:
    pass_ = running()
    with pytest.raises(IdentityReused):
        pass_.opened(evolve(OTHER_INTENT, disposition=disposition), now=20)


def test_I1_also_by_the_pass_that_lost_a_race() -> None:
    """Both insert at once; the other intent was first, and its attempt is still being made."""
    winner = evolve(OTHER_INTENT, attempts=(attempt(None),), owner=9)
    pass_ = running()
    with pytest.raises(IdentityReused):
        pass_.opened(winner, now=0, holder=Holder.RUNNING)
    assert pass_.sent == pass_.written == 0


# -- paused between the reservation and the send (L9) ---------------------------------------------------------


def pause(pass_: Transcript, at_: float) -> Operation:
    """The driver found that it was too late to send."""
    pass_.executed(Outcome.NOT_SENT, ended=at_)
    return pass_.recorded(now=at_)


def test_L9_an_attempt_that_came_too_late_is_not_sent_and_the_pass_starts_over() -> None:
    pass_ = running()
    pass_.opened_new()
    stored = pause(pass_, 60)
    assert (stored.reason, stored.latest.outcome, stored.owner) == (Reason.PAUSED, Outcome.NOT_SENT, None)
    pass_.expect(Open)
    pass_.opened(stored, now=61)
    pass_.saw(NOT_APPLIED, began=61)
    claim = pass_.claimed(now=62).operation
    assert [a.number for a in claim.attempts] == [1, 2]
    execute = pass_.executed(ended=63)
    assert execute.not_after == 67
    pass_.saw(APPLIED, began=64)
    assert pass_.recorded().disposition is Disposition.COMPLETE


def test_L9_a_pass_starts_over_three_times_at_most() -> None:
    pass_ = running(policy(10, max_attempts=1))
    pass_.opened_new()
    stored = pause(pass_, 60)
    for n in (1, 2):
        pass_.opened(stored, now=100 * n)
        pass_.saw(NOT_APPLIED, began=100 * n)
        pass_.claimed(now=100 * n)
        stored = pause(pass_, 100 * n + 60)
    end = pass_.end()
    assert end.operation is not None
    assert (end.operation.reason, end.operation.retry_at) == (Reason.PAUSED, None)
    assert [a.outcome for a in end.operation.attempts] == [Outcome.NOT_SENT] * 3, "and uses up no attempt"


def test_L9_what_could_not_be_sent_is_no_pause() -> None:
    pass_ = running()
    pass_.opened_new()
    pass_.executed(Outcome.NOT_SENT, failure=BROKEN)
    pass_.saw(NOT_APPLIED, began=2)
    stored = pass_.recorded()
    assert (stored.reason, stored.retry_at) == (Reason.SAFE_RETRY, at(2)), "backoff from its end at 1 s"
    pass_.end()


def test_L9_somebody_else_went_on_meanwhile() -> None:
    pass_ = running()
    pass_.opened_new()
    pass_.executed(Outcome.NOT_SENT, ended=60)
    pass_.refused(Record)
    theirs = operation(attempt(Outcome.UNRECORDED, nonce="me.1"), version=9, disposition=Disposition.COMPLETE)
    pass_.loaded(theirs, now=60)
    pass_.expect(KeepLate)
    pass_.reply(None)
    pass_.loaded(theirs, now=60)
    assert pass_.end().operation == theirs
    assert pass_.sent == 1, "asked once, and answered that it was too late"


def test_L9_a_paused_attempt_that_somebody_looked_at_starts_over_too() -> None:
    pass_ = running()
    opened = pass_.opened_new()
    pass_.executed(Outcome.NOT_SENT, ended=60)
    pass_.refused(Record)
    looked = evolve(started(opened.operation, 0), version=2, nonce="other.3")
    pass_.loaded(looked, now=61, holder=Holder.RUNNING)
    merged = pass_.recorded(now=61)
    assert (merged.reason, merged.latest.outcome) == (Reason.PAUSED, Outcome.NOT_SENT)
    pass_.expect(Open)


def test_L9_a_send_in_time_counts_from_before_the_reservation_was_asked_for() -> None:
    pass_ = running(policy(10, execute_timeout=seconds(9)))
    pass_.opened_new(now=0)
    assert pass_.expect(Execute).not_after == 1
