"""Transcripts: the reply to a look, and what the step does next."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from corrobo_core import Disposition, EffectResult, Evidence, LedgerUnavailable, Reason
from corrobo_dbos.engine import _parts
from corrobo_dbos.patience import Look, Pause, Program, until_decided

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TEN_MINUTES = timedelta(minutes=10)
GONE = LedgerUnavailable("sqlite", "database is locked")


def result(disposition: Disposition | None, reason: Reason, **fields: Any) -> EffectResult[str]:
    """What one pass ended with, at noon unless told otherwise."""
    made: EffectResult[str] = EffectResult(
        "tests/credit", "rf_81", disposition, Evidence.UNKNOWN, reason.value, "", retry_at=None, now=NOON
    )
    return replace(made, **fields)


def unclear(after: float, *, next_look: float, since: float = 0.0) -> EffectResult[str]:
    """Evidence that nobody understands; times in seconds after noon."""
    at = [NOON + timedelta(seconds=seconds) for seconds in (after, after + next_look, since)]
    return result(Disposition.INVESTIGATE, Reason.NOT_ESTABLISHED, now=at[0], retry_at=at[1], looking_since=at[2])


def started(look_again_for: timedelta = TEN_MINUTES) -> Program:
    """A program that has asked for its first pass."""
    program = until_decided(look_again_for)
    assert next(program) == Look()
    return program


def returned(program: Program, reply: EffectResult[Any] | LedgerUnavailable) -> EffectResult[Any]:
    """What the program ends with after this reply."""
    with pytest.raises(StopIteration) as end:
        program.send(reply)
    found: EffectResult[Any] = end.value.value
    return found


def paused(program: Program, reply: EffectResult[Any] | LedgerUnavailable) -> float:
    """For how many seconds it waits after this reply."""
    pause = program.send(reply)
    assert isinstance(pause, Pause)
    return pause.seconds


@pytest.mark.parametrize("disposition", [Disposition.COMPLETE, Disposition.REPLAN, Disposition.REVIEW])
def test_a_decision_ends_it(disposition: Disposition) -> None:
    end = result(disposition, Reason.EFFECT_CONFIRMED)

    assert returned(started(), end) is end


@pytest.mark.parametrize("reason", [Reason.NOT_RETRYABLE, Reason.ATTEMPTS_EXHAUSTED, Reason.KEY_EXPIRED])
def test_where_looking_does_not_help_a_person_is_called_at_once(reason: Reason) -> None:
    end = result(Disposition.INVESTIGATE, reason, retry_at=NOON + timedelta(seconds=5), looking_since=NOON)

    assert returned(started(), end) is end


@pytest.mark.parametrize(
    ("disposition", "reason"),
    [
        (None, Reason.CONVERGING),
        (None, Reason.IN_PROGRESS),
        (None, Reason.AUTHORIZATION_FAILED),
        (None, Reason.REVALIDATION_FAILED),
        (Disposition.RETRY, Reason.SETTLING),
        (Disposition.RETRY, Reason.SAFE_RETRY),
        (Disposition.INVESTIGATE, Reason.NOT_ESTABLISHED),
        (Disposition.INVESTIGATE, Reason.ABSENCE_NOT_PROVEN),
        (Disposition.INVESTIGATE, Reason.RECONCILE_FAILED),
        (Disposition.INVESTIGATE, Reason.STILL_RUNNING),
        (Disposition.INVESTIGATE, Reason.IN_FLIGHT_NOT_RULED_OUT),
    ],
)
def test_what_time_may_settle_is_waited_for(disposition: Disposition | None, reason: Reason) -> None:
    later = NOON + timedelta(seconds=7)
    program = started()

    assert paused(program, result(disposition, reason, retry_at=later, looking_since=NOON)) == 7
    assert next(program) == Look()


@pytest.mark.parametrize("reason", [Reason.INTERRUPTED, Reason.PAUSED])
def test_again_now_is_not_asked_in_a_tight_loop(reason: Reason) -> None:
    assert paused(started(), result(None, reason)) == 0.05


def test_pending_is_waited_for_without_end() -> None:
    program = started()
    for day in range(100):
        now = NOON + timedelta(days=day)
        reply = result(None, Reason.CONVERGING, now=now, retry_at=now + timedelta(minutes=5), looking_since=NOON)
        assert paused(program, reply) == 300
        assert next(program) == Look()


def test_before_a_person_is_called_there_is_a_last_look() -> None:
    program = started()

    assert paused(program, unclear(0, next_look=400)) == 400
    assert next(program) == Look()
    assert paused(program, unclear(400, next_look=300)) == 200  # ten minutes are over before the next look is due
    assert next(program) == Look(now=True)
    end = unclear(600, next_look=300)
    assert returned(program, end) is end


def test_what_was_left_unclear_long_ago_is_looked_at_once() -> None:
    stale, program = unclear(86_400, next_look=100), started()

    assert paused(program, stale) == 0.05
    assert next(program) == Look(now=True)
    assert returned(program, stale) is stale


def test_with_no_patience_there_is_one_pass() -> None:
    end = unclear(0, next_look=5)

    assert returned(started(timedelta(0)), end) is end


def test_a_ledger_that_does_not_answer_is_waited_for_ever_more_rarely() -> None:
    program = started()
    waits = []
    for _ in range(7):
        waits.append(paused(program, GONE))
        assert next(program) == Look()

    assert waits == [1, 2, 4, 8, 16, 30, 30]
    assert paused(program, unclear(0, next_look=5)) == 5
    assert next(program) == Look()
    assert paused(program, GONE) == 1


def test_the_last_look_is_made_also_if_the_ledger_is_away_at_that_moment() -> None:
    program = started()
    paused(program, unclear(0, next_look=1_000))
    assert next(program) == Look(now=True)

    paused(program, GONE)
    assert next(program) == Look(now=True)


@pytest.mark.parametrize(
    ("wait", "parts"),
    [(0.05, [0.05]), (1.0, [1.0]), (5.5, [1.0] * 5 + [0.5]), (60.0, [6.0] * 10), (300.0, [10.0] * 30)],
)
def test_a_wait_is_cut_where_the_workflows_status_is_looked_up(wait: float, parts: list[float]) -> None:
    assert _parts(wait) == parts
