"""Transcripts of passes that only look (semantics L4, O6, C5, R8)."""

from __future__ import annotations

import pytest

from corrobo_core.commands import Holder, Load, Loaded, Observe
from corrobo_core.lifecycle import observe
from corrobo_core.policy import Policy
from corrobo_core.records import Decision, DecisionKind, Disposition, Episode, Evidence, Operation, Outcome, Reason
from tests.unit.facts import TICK, at, attempt, policy, reading
from tests.unit.transcript import Transcript, call, operation

APPLIED, NOT_APPLIED = Evidence.APPLIED, Evidence.NOT_APPLIED
EPISODE = Episode("ep1-other.2", 1, Disposition.INVESTIGATE, at(1), Reason.NOT_ESTABLISHED.value)


def looking(
    stored: Operation, now: float, holder: Holder, *decisions: Decision, declared: Policy | None = None
) -> Transcript:
    pass_ = Transcript(observe(call(declared)))
    pass_.expect(Load)
    pass_.reply(Loaded(stored, holder, reading(now), decisions))
    return pass_


def test_what_is_seen_is_handed_out_as_it_is() -> None:
    pass_ = looking(operation(attempt(ended=1)), 20, Holder.NOBODY)
    value = object()
    pass_.saw(APPLIED, began=20, effect=value, stored={"id": 1})
    stored = pass_.recorded(now=21)
    end = pass_.end()
    assert (end.effect, end.saw_effect, end.now) == (value, True, at(21))
    assert (stored.disposition, stored.effect) == (Disposition.COMPLETE, {"id": 1})


def test_L7_a_look_that_is_interrupted_ends_with_what_is_stored() -> None:
    stored = operation(attempt(ended=1))
    pass_ = looking(stored, 20, Holder.NOBODY)
    pass_.raised(Observe, interrupted=True)
    end = pass_.end()
    assert (end.operation, end.now, end.interrupted) == (stored, at(20), True)


def test_C5_a_running_attempt_is_left_alone_until_its_window_is_over_and_then_only_looked_at() -> None:
    stored = operation(attempt(None))
    assert looking(stored, 10, Holder.RUNNING).end().in_progress_until is not None
    pass_ = looking(stored, 10 + TICK, Holder.RUNNING)
    pass_.saw(NOT_APPLIED, began=10 + TICK)
    after = pass_.recorded(now=12)
    assert (after.disposition, after.reason) == (Disposition.INVESTIGATE, Reason.STILL_RUNNING)
    assert after.latest.outcome is None, "it is still its own"


def test_L5_an_attempt_whose_owner_died_is_looked_at_as_never_recorded() -> None:
    pass_ = looking(operation(attempt(None)), 20, Holder.GONE)
    asked = pass_.expect(Observe)
    assert asked.operation.latest.outcome is Outcome.UNRECORDED
    pass_.saw(NOT_APPLIED, began=20)
    after = pass_.recorded(now=21)
    assert (after.disposition, after.reason, after.owner) == (Disposition.RETRY, Reason.SAFE_RETRY, None)
    assert pass_.sent == 0, "whoever looks sends nothing"


def test_O6_what_is_closed_stays_closed_whatever_is_seen() -> None:
    closed = operation(attempt(ended=1), disposition=Disposition.COMPLETE, reason=Reason.EFFECT_CONFIRMED.value)
    pass_ = looking(closed, 20, Holder.NOBODY)
    pass_.saw(NOT_APPLIED, began=20)
    after = pass_.recorded(now=21)
    assert (after.disposition, after.reason) == (Disposition.COMPLETE, Reason.EFFECT_CONFIRMED)
    assert after.history.last[-1].evidence is NOT_APPLIED


@pytest.mark.parametrize(
    ("kind", "disposition"),
    [(DecisionKind.APPLIED, Disposition.COMPLETE), (DecisionKind.REJECTED, Disposition.REPLAN)],
)
def test_R8_a_person_s_word_closes_without_a_look(kind: DecisionKind, disposition: Disposition) -> None:
    waiting = operation(attempt(ended=1), disposition=Disposition.INVESTIGATE, episode=EPISODE, episodes=1)
    pass_ = looking(waiting, 20, Holder.NOBODY, Decision(EPISODE.token, kind, "ada", at(5), effect=7, attempt=1))
    after = pass_.recorded(now=21)
    assert (after.disposition, after.episode) == (disposition, None)
    assert pass_.end().now == at(21)


def test_R2_a_new_question_is_numbered_after_the_ones_before_and_is_no_review() -> None:
    decided = Decision(EPISODE.token, DecisionKind.NOT_APPLIED, "ada", at(5), attempt=1)
    waiting = operation(attempt(ended=1), disposition=Disposition.INVESTIGATE, episode=EPISODE, episodes=1)
    pass_ = looking(waiting, 20, Holder.NOBODY, decided)
    pass_.saw(Evidence.UNKNOWN, began=20)
    after = pass_.recorded(now=21)
    assert after.reason == Reason.ATTESTED_TOO_EARLY.value
    assert after.episode is not None
    assert (after.episode.generation, after.episodes, after.review) == (2, 2, None)


def test_R2_an_investigation_stays_the_same_though_its_reason_changes() -> None:
    waiting = operation(
        attempt(ended=1, window=None), disposition=Disposition.INVESTIGATE, episode=EPISODE, episodes=1
    )
    pass_ = looking(waiting, 20, Holder.NOBODY, declared=policy(None))
    pass_.saw(NOT_APPLIED, began=20)
    after = pass_.recorded(now=21)
    assert after.reason == Reason.IN_FLIGHT_NOT_RULED_OUT.value
    assert (after.episode, after.episodes) == (EPISODE, 1)
