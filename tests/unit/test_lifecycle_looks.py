"""Transcripts of single looks: what each leaves in the history, and in the operation (semantics O2, O3, O8, R3)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from corrobo_core.commands import Execute, Holder, Judged, Observe, Open, Opened, Reconcile, Saw
from corrobo_core.lifecycle import run
from corrobo_core.records import (
    Decision,
    DecisionKind,
    Disposition,
    Episode,
    Evidence,
    Observation,
    ObservationRecord,
    Operation,
    Reason,
    evolve,
)
from tests.unit.facts import at, attempt, policy, reading, seconds
from tests.unit.transcript import Transcript, call, operation

UNKNOWN, NOT_APPLIED = Evidence.UNKNOWN, Evidence.NOT_APPLIED
EPISODE = Episode("ep1-other.2", 1, Disposition.INVESTIGATE, at(1), Reason.NOT_ESTABLISHED.value)


def looking(stored: Operation, *decisions: Decision) -> Transcript:
    pass_ = Transcript(run(call()))
    pass_.reply(Opened(stored, False, Holder.NOBODY, reading(20), decisions))
    return pass_


def read_fails(pass_: Transcript) -> None:
    pass_.raised(Observe)


def reconcile_fails(pass_: Transcript) -> None:
    pass_.expect(Observe)
    pass_.reply(Saw(Observation.of("data", source="provider", proves_absence=True), 20))
    pass_.raised(Reconcile)


def nothing_in_a_read_that_can_miss_it(pass_: Transcript) -> None:
    pass_.saw(NOT_APPLIED, began=20, proves_absence=False)


def nobody_can_tell(pass_: Transcript) -> None:
    pass_.saw(UNKNOWN, began=20)


def a_code_without_words(pass_: Transcript) -> None:
    pass_.expect(Observe)
    pass_.reply(Saw(Observation.of("data", source="provider", proves_absence=True), 20))
    pass_.expect(Reconcile)
    pass_.reply(Judged(UNKNOWN, "CODE", ""))


def record(source: str, proof: bool, code: str, explanation: str) -> ObservationRecord:
    return ObservationRecord(at(20), 1, source, proof, UNKNOWN, code, explanation)


@pytest.mark.parametrize(
    ("look", "kept", "reason"),
    [
        (
            read_fails,
            record("observe", False, "NOT_ESTABLISHED", "observe raised ValueError: broken"),
            Reason.NOT_ESTABLISHED,
        ),
        (
            reconcile_fails,
            record("provider", True, "RECONCILE_FAILED", "reconcile raised ValueError: broken"),
            Reason.RECONCILE_FAILED,
        ),
        (
            nothing_in_a_read_that_can_miss_it,
            record("provider", False, "ABSENCE_NOT_PROVEN", "provider found nothing, and could have missed it"),
            Reason.ABSENCE_NOT_PROVEN,
        ),
        (nobody_can_tell, record("provider", True, "CODE", "what was seen"), Reason.NOT_ESTABLISHED),
        (a_code_without_words, record("provider", True, "CODE", "CODE"), Reason.NOT_ESTABLISHED),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_O3_a_look_that_cannot_tell_is_kept_with_its_reason(
    look: Callable[[Transcript], None], kept: ObservationRecord, reason: Reason
) -> None:
    pass_ = looking(operation(attempt(ended=1)))
    look(pass_)
    stored = pass_.recorded(now=21)
    assert stored.history.last[-1] == kept
    assert (stored.disposition, stored.reason, stored.explanation) == (
        Disposition.INVESTIGATE,
        reason.value,
        kept.explanation,
    )
    episode = stored.episode
    assert episode is not None
    assert (episode.kind, episode.reason, episode.asked_by) == (Disposition.INVESTIGATE, reason.value, "")
    end = pass_.end()
    assert (end.effect, end.saw_effect, end.operation) == (None, False, stored)


def test_O6_what_was_there_is_kept_though_it_is_not_seen_any_more() -> None:
    pass_ = looking(operation(attempt(ended=1), effect={"id": 1}))
    read_fails(pass_)
    assert pass_.recorded(now=21).effect == {"id": 1}


def test_a_question_that_the_world_has_answered_is_closed() -> None:
    waiting = operation(attempt(ended=1), disposition=Disposition.INVESTIGATE, episode=EPISODE, episodes=1)
    pass_ = looking(waiting)
    pass_.saw(Evidence.PENDING, began=20)
    stored = pass_.recorded(now=21)
    assert (stored.disposition, stored.episode) == (None, None)


def test_R3_what_a_person_attested_is_kept_with_the_look_that_allows_the_attempt() -> None:
    decided = Decision(EPISODE.token, DecisionKind.NOT_APPLIED, "ada", at(15), note="the bank says so", attempt=1)
    waiting = operation(attempt(ended=1), disposition=Disposition.INVESTIGATE, episode=EPISODE, episodes=1)
    pass_ = looking(waiting, decided)
    read_fails(pass_)
    pass_.claimed(now=21)
    claimed = pass_.commands[-2].operation  # type: ignore[attr-defined]
    looked, attested = claimed.history.last[-2:]
    assert looked.source == "observe"
    assert attested == ObservationRecord(
        at(15), 1, "person:ada", False, NOT_APPLIED, "ATTESTED", "the bank says so"
    )


def test_R2_a_review_that_the_evidence_has_left_behind_is_closed() -> None:
    """What was asked about another attempt is no question while the first one is on its way."""
    review = evolve(EPISODE, kind=Disposition.REVIEW, asked_by="revalidate")
    waiting = operation(attempt(ended=1), disposition=Disposition.REVIEW, episode=review, review=review, episodes=1)
    pass_ = looking(waiting)
    pass_.saw(Evidence.PENDING, began=20)
    assert pass_.recorded(now=21).episode is None


def test_a_new_operation_is_stored_as_going_on() -> None:
    opened = Transcript(run(call())).expect(Open)
    assert opened.operation.reason == Reason.IN_PROGRESS.value


def test_R8_what_a_person_said_of_the_first_attempt_does_not_prolong_the_key_of_the_third() -> None:
    declared = policy(0, execute_timeout=seconds(5), key_retention=seconds(100))
    first = attempt(ended=1, window=0)
    second = attempt(ended=31, number=2, started=30, window=0)
    said = Decision(EPISODE.token, DecisionKind.NOT_APPLIED, "ada", at(15), attempt=1)
    pass_ = Transcript(run(call(declared)))
    pass_.reply(Opened(operation(first, second), False, Holder.NOBODY, reading(40), (said,)))
    pass_.saw(NOT_APPLIED, began=40)
    pass_.claimed(now=41)
    assert pass_.expect(Execute).not_after == 100 - 5
