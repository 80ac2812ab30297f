"""How hooks can end: exceptions, nonsense, odd values, secrets (section 3, O3, O8, R7, T3, T4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from corrobo_core import (
    Attempt,
    Check,
    Disposition,
    EffectValueError,
    Evidence,
    NotSent,
    Observation,
    Outcome,
    Reason,
    Rejected,
    Verdict,
)
from tests.unit.harness import Clock, Harness
from tests.unit.world import WatchedLedger, World, failing

# -- how hooks end --------------------------------------------------------------------------------------------


AMBIGUOUS = (Outcome.AMBIGUOUS, Reason.SETTLING)
REFUSED = (Outcome.REJECTED, Reason.PROVIDER_REFUSED)
FOR_NOW = (Outcome.REJECTED, Reason.SAFE_RETRY)


@pytest.mark.parametrize(
    ("error", "end", "failure"),
    [
        (Rejected(ValueError("card expired")), REFUSED, ("ValueError", "card expired")),
        (Rejected("no such account"), REFUSED, ("Refusal", "no such account")),
        (Rejected("slow down", retryable=True), FOR_NOW, ("Refusal", "slow down")),
        (NotSent(OSError("no route")), (Outcome.NOT_SENT, Reason.SAFE_RETRY), ("OSError", "no route")),
        (TimeoutError("read"), AMBIGUOUS, ("TimeoutError", "read")),
        (ConnectionRefusedError("T1"), AMBIGUOUS, ("ConnectionRefusedError", "T1")),
        (StopAsyncIteration("x"), AMBIGUOUS, ("StopAsyncIteration", "x")),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_section_3_each_end_of_execute(
    harness: Harness,
    ledger: WatchedLedger,
    world: World,
    error: BaseException,
    end: tuple[Outcome, Reason],
    failure: tuple[str, str],
) -> None:
    result = harness.run(ledger, harness.effect(world, execute=failing(error)))
    made = result.attempts[0]
    assert (made.outcome, result.reason) == end
    assert (made.failure.type, made.failure.message) == failure


@pytest.mark.parametrize("said", [{"retryable": True}, {}])
def test_a_refusal_for_now_names_its_time(
    harness: Harness, ledger: WatchedLedger, world: World, said: dict[str, bool]
) -> None:
    """Also where that is all it says: the operation is not closed for good."""
    later = Rejected("slow down", **said, retry_after=timedelta(minutes=3))
    result = harness.run(ledger, harness.effect(world, execute=failing(later)))
    assert timedelta(minutes=3) <= result.wait < timedelta(minutes=3, seconds=2)


@pytest.mark.parametrize("wait", [timedelta(days=-1), 5, "3 s", timedelta.max])
def test_a_time_that_cannot_be_used_breaks_nothing(
    harness: Harness, ledger: WatchedLedger, world: World, wait: Any
) -> None:
    result = harness.run(
        ledger, harness.effect(world, execute=failing(Rejected("x", retryable=True, retry_after=wait)))
    )
    assert result.reason == Reason.SAFE_RETRY
    assert result.wait <= timedelta(days=366)


@pytest.mark.parametrize("error", [ValueError("outage"), StopIteration("none"), KeyError("x"), Rejected("401")])
def test_O3_an_observe_that_raises_is_unknown(
    harness: Harness, ledger: WatchedLedger, world: World, error: Exception
) -> None:
    """`next(...)` on nothing raises StopIteration, which no future can hold."""
    result = harness.run(ledger, harness.effect(world, observe=failing(error)))
    assert (result.evidence, result.disposition) == (Evidence.UNKNOWN, Disposition.INVESTIGATE)
    assert result.reason == Reason.NOT_ESTABLISHED
    assert "observe raised" in result.explanation


@pytest.mark.parametrize("error", [ValueError("x"), StopIteration("x"), AssertionError("x")])
def test_O8_a_reconcile_that_raises_is_unknown(
    harness: Harness, ledger: WatchedLedger, world: World, error: Exception
) -> None:
    result = harness.run(ledger, harness.effect(world, reconcile=failing(error)))
    assert (result.evidence, result.reason) == (Evidence.UNKNOWN, Reason.RECONCILE_FAILED)


@pytest.mark.parametrize("error", [StopIteration("x"), StopAsyncIteration("x"), GeneratorExit("x")])
def test_an_execute_that_raises_what_python_uses_itself_is_ambiguous(
    harness: Harness, ledger: WatchedLedger, world: World, error: BaseException
) -> None:
    def execute(attempt: Attempt, reference: str) -> None:
        world.credit(reference)
        raise error

    credit = harness.effect(world, execute=execute)
    if isinstance(error, Exception):
        assert harness.run(ledger, credit).disposition is Disposition.COMPLETE
    else:
        with pytest.raises(GeneratorExit):
            harness.run(ledger, credit)
    assert harness.run(ledger, credit).disposition is Disposition.COMPLETE
    assert world.sent == ["r1"]


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no text")


NONSENSE: Verdict[int] = Verdict("APPLIED", "X", "")  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", [None, [], "x", Observation([], "x", 1)])  # type: ignore[arg-type]
def test_O3_an_observe_that_answers_nonsense_is_unknown(
    harness: Harness, ledger: WatchedLedger, world: World, answer: Any
) -> None:
    result = harness.run(ledger, harness.effect(world, observe=lambda *_: answer))
    assert (result.evidence, result.reason) == (Evidence.UNKNOWN, Reason.NOT_ESTABLISHED)
    assert "observe must return an Observation" in result.explanation


@pytest.mark.parametrize("answer", [None, True, Evidence.APPLIED, NONSENSE])
def test_O8_a_reconcile_that_answers_nonsense_is_unknown(
    harness: Harness, ledger: WatchedLedger, world: World, answer: Any
) -> None:
    result = harness.run(ledger, harness.effect(world, reconcile=lambda *_: answer))
    assert (result.evidence, result.reason) == (Evidence.UNKNOWN, Reason.RECONCILE_FAILED)


@pytest.mark.parametrize("hook", ["authorize", "revalidate"])
@pytest.mark.parametrize("answer", [None, True, "proceed", Check("maybe"), Check("review", Unspeakable())])  # type: ignore[arg-type]
def test_R7_a_check_that_answers_nonsense_sends_nothing(
    harness: Harness, ledger: WatchedLedger, world: World, hook: str, answer: Any
) -> None:
    hooks: Any = {hook: lambda *_: answer}
    result = harness.run(ledger, harness.effect(world, **hooks))
    assert result.reason in (Reason.AUTHORIZATION_FAILED, Reason.REVALIDATION_FAILED)
    assert result.disposition is None
    assert world.sent == []


@pytest.mark.parametrize("hook", ["authorize", "revalidate"])
def test_R7_a_check_that_fails_once_is_asked_again(
    harness: Harness, ledger: WatchedLedger, clock: Clock, world: World, hook: str
) -> None:
    answers: list[Any] = [ValueError("outage"), Check.proceed()]

    def check(attempt: Attempt, reference: str) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    hooks: Any = {hook: check}
    credit = harness.effect(world, **hooks)
    assert harness.run(ledger, credit).wait == timedelta(seconds=5)
    assert world.sent == []
    clock.pass_by(6)
    assert harness.run(ledger, credit).disposition is Disposition.COMPLETE
    assert world.sent == ["r1"]


# -- values (T4) ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["a\x00b", "\ud83d", float("inf"), 2**70, b"\xff", {"k\x00": [None]}])
def test_C09_to_C11_odd_values_are_returned_now_and_later(
    harness: Harness, ledger: WatchedLedger, world: World, value: Any
) -> None:
    credit = harness.effect(world, reconcile=lambda *_: Verdict.applied("OK", effect=value))
    assert harness.run(ledger, credit).unwrap() == value
    assert harness.run(ledger, credit).unwrap() == value


def test_T4_an_effect_whose_value_is_too_large_is_complete_all_the_same(
    harness: Harness, ledger: WatchedLedger, world: World
) -> None:
    credit = harness.effect(world, reconcile=lambda *_: Verdict.applied("OK", effect="x" * 2**21))
    first = harness.run(ledger, credit)
    assert (first.disposition, len(first.unwrap())) == (Disposition.COMPLETE, 2**21)
    again = harness.run(ledger, credit)
    assert (again.disposition, again.effect, again.value_lost) == (Disposition.COMPLETE, None, True)
    with pytest.raises(EffectValueError):
        again.unwrap()
    assert world.sent == ["r1"]


def test_T4_a_response_that_cannot_be_stored_loses_nothing_else(
    harness: Harness, ledger: WatchedLedger, world: World
) -> None:
    def execute(attempt: Attempt, reference: str) -> Any:
        world.credit(reference)
        return Unspeakable()

    result = harness.run(ledger, harness.effect(world, execute=execute))
    assert result.disposition is Disposition.COMPLETE
    assert result.attempts[0].outcome is Outcome.RESPONDED


# -- secrets (T3, E05) ----------------------------------------------------------------------------------------


def leaking() -> dict[str, Any]:
    return {
        "execute": failing(ValueError("password hunter2")),
        "observe": lambda attempt, reference: Observation.of(1, source="x", proves_absence=True),
        "reconcile": lambda attempt, data: Verdict.pending("hunter2", "still hunter2"),
    }


@pytest.mark.parametrize(
    "hooks",
    [
        leaking(),
        leaking() | {"execute": failing(Rejected("hunter2"))},
        leaking() | {"execute": failing(NotSent(OSError("hunter2")))},
        leaking() | {"observe": failing(ValueError("hunter2"))},
        leaking() | {"reconcile": failing(ValueError("hunter2"))},
        leaking() | {"authorize": failing(ValueError("hunter2"))},
        leaking() | {"revalidate": failing(ValueError("hunter2"))},
        leaking() | {"execute": failing(ValueError("." * 1995 + "hunter2"))},  # where it would be cut
        leaking() | {"authorize": lambda attempt, reference: Check.requires_review("said hunter2")},
        leaking() | {"revalidate": lambda attempt, reference: Check.reject("said hunter2")},
        leaking()
        | {"observe": lambda attempt, reference: Observation.of(1, source="hunter2", proves_absence=True)},
    ],
)
@pytest.mark.parametrize("works", [True, False])
def test_T3_the_ledgers_redaction_sees_every_text_first(
    harness: Harness, ledger: WatchedLedger, world: World, hooks: Any, works: bool
) -> None:
    def redact(text: str) -> str:
        if not works:
            raise RuntimeError("no redaction today")
        return text.replace("hunter2", "***")

    ledger.redact = redact  # type: ignore[attr-defined,unused-ignore]
    result = harness.run(ledger, harness.effect(world, **hooks))
    for shown in (repr(result), repr(ledger._rows)):
        assert "hunt" not in shown
    assert ("***" in repr(result)) is works
