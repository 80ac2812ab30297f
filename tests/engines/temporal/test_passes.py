"""What one pass of an effect activity returns or raises."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.testing import ActivityEnvironment

from corrobo_core import (
    Check,
    ContractError,
    Disposition,
    Evidence,
    LedgerUnavailable,
    MemoryLedger,
    Rejected,
    UsageError,
    effect,
)
from corrobo_temporal import (
    EffectInvestigateError,
    EffectNotYetError,
    EffectReplanError,
    EffectReviewError,
    EffectValueLostError,
    TemporalEffectError,
    effect_activity,
    observe_activity,
)
from tests.engines.temporal.effects import credit
from tests.engines.temporal.scripted import (
    APPLIED,
    CONFLICTED,
    NOT_APPLIED,
    PENDING,
    UNKNOWN,
    Scripted,
    scripted,
)


class about:  # noqa: N801  # reads like a function
    """Equals what is within a second of so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, timedelta) and abs(other.total_seconds() - self.seconds) < 1

    def __hash__(self) -> int:
        return hash(self.seconds)


def one_pass(case: Scripted, reference: str = "rf_81", **options: Any) -> Any:
    """What one pass returns, or the error that it raises."""
    activity = effect_activity(case.effect, case.ledger, **options)
    try:
        return ActivityEnvironment().run(activity, reference)
    except ApplicationError as error:
        return error


def test_a_confirmed_effect_is_returned() -> None:
    assert one_pass(scripted(APPLIED)) == "receipt"


# -- come back later -----------------------------------------------------------------------------------------


def test_what_settles_comes_back_when_the_window_is_over() -> None:
    error = one_pass(scripted(NOT_APPLIED, raises=TimeoutError("lost")))
    assert isinstance(error, EffectNotYetError)
    assert error.status.disposition is Disposition.RETRY
    assert error.status.evidence is Evidence.NOT_APPLIED
    assert about(60) == error.next_retry_delay
    assert not error.non_retryable


def test_what_is_on_its_way_comes_back_at_the_contracts_pace() -> None:
    error = one_pass(scripted(PENDING))
    assert isinstance(error, EffectNotYetError)
    assert error.status.disposition is None
    assert about(5) == error.next_retry_delay


def test_with_nothing_to_wait_for_the_retry_policy_says_when() -> None:
    error = one_pass(scripted(NOT_APPLIED, raises=Rejected("busy", retryable=True, retry_after=timedelta())))
    assert isinstance(error, EffectNotYetError)
    assert error.status.reason == "SAFE_RETRY"
    assert error.next_retry_delay is None


# -- a person, or a new plan ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "kind", "reason"),
    [
        (scripted(CONFLICTED), EffectReplanError, "WORLD_CHANGED"),
        (scripted(NOT_APPLIED, raises=Rejected("no")), EffectReplanError, "PROVIDER_REFUSED"),
        (scripted(APPLIED, authorize=lambda a: Check.reject("no")), EffectReplanError, "REJECTED"),
        (scripted(APPLIED, authorize=lambda a: Check.requires_review("big")), EffectReviewError, "REVIEW_REQUIRED"),
        (
            scripted(NOT_APPLIED, raises=Rejected("busy", retryable=True, retry_after=timedelta()), max_attempts=1),
            EffectInvestigateError,
            "ATTEMPTS_EXHAUSTED",
        ),
    ],
)
def test_what_needs_a_decision_ends_the_activity(
    case: Scripted, kind: type[TemporalEffectError], reason: str
) -> None:
    error = one_pass(case)
    assert type(error) is kind
    assert error.status.reason == reason
    assert error.non_retryable
    assert error.next_retry_delay is None


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (scripted(UNKNOWN), "NOT_ESTABLISHED"),
        (scripted(OSError("down")), "NOT_ESTABLISHED"),
        (scripted(NOT_APPLIED, proves_absence=False), "ABSENCE_NOT_PROVEN"),
        (scripted(NOT_APPLIED, in_flight_window=None, raises=OSError()), "IN_FLIGHT_NOT_RULED_OUT"),
    ],
)
def test_evidence_that_cannot_tell_is_looked_for_again_before_a_person_is_asked(
    case: Scripted, reason: str
) -> None:
    first = one_pass(case)
    assert isinstance(first, EffectNotYetError)
    assert (first.status.disposition, first.status.reason) == (Disposition.INVESTIGATE, reason)
    assert about(5) == first.next_retry_delay

    case.clock.forward(minutes=9, seconds=50)
    assert isinstance(one_pass(case), EffectNotYetError)
    case.clock.forward(seconds=10)
    last = one_pass(case)
    assert isinstance(last, EffectInvestigateError)
    assert last.non_retryable
    assert len(case.provider.writes) == 1


def test_looking_again_can_find_the_effect() -> None:
    case = scripted(UNKNOWN, APPLIED)
    assert isinstance(one_pass(case), EffectNotYetError)
    case.clock.forward(seconds=5)
    assert one_pass(case) == "receipt"
    assert len(case.provider.writes) == 1


def test_an_application_may_ask_a_person_at_once() -> None:
    assert isinstance(one_pass(scripted(UNKNOWN), look_again_for=timedelta()), EffectInvestigateError)


def test_a_value_that_is_gone_is_said_and_nothing_is_repeated() -> None:
    lost = APPLIED.__class__.applied("THERE", effect="x" * 5_000_000)
    case = scripted(lost)
    one_pass(case)
    error = one_pass(case)
    assert isinstance(error, EffectValueLostError)
    assert error.status.disposition is Disposition.COMPLETE
    assert error.non_retryable
    assert len(case.provider.writes) == 1


# -- refusals ------------------------------------------------------------------------------------------------


def test_a_used_id_is_refused_for_good_and_the_message_holds_no_data() -> None:
    case, other = scripted(APPLIED), scripted(APPLIED, type="test/other")
    one_pass(case)
    other.ledger = case.ledger
    error = one_pass(other)
    assert error.type == "IdentityReused"
    assert error.non_retryable
    assert error.__cause__ is None
    assert "rf_81" not in error.message
    assert "rf_81" in error.details[0]["explanation"]


def test_an_intent_that_cannot_be_stored_is_refused_for_good() -> None:
    error = one_pass(scripted(APPLIED), "nul \x00")
    assert (error.type, error.non_retryable) == ("IntentError", True)


def test_a_ledger_that_does_not_answer_is_asked_again() -> None:
    class Silent(MemoryLedger):
        def perform(self, command: Any, /) -> Any:
            raise LedgerUnavailable("postgresql://db/app", "no answer in 10 s")

    case = scripted(APPLIED)
    case.ledger = Silent()
    error = one_pass(case)
    assert (error.type, error.non_retryable) == ("LedgerUnavailable", False)
    assert isinstance(error.__cause__, LedgerUnavailable)


def test_outside_temporal_it_says_where_it_belongs() -> None:
    with pytest.raises(UsageError, match="is an activity"):
        effect_activity(credit, MemoryLedger())("rf_81")


async def test_outside_temporal_an_async_one_says_so_too() -> None:
    case = scripted(APPLIED)
    with pytest.raises(UsageError, match="is an activity"):
        observe_activity(case.effect, case.ledger)("rf_81")


def test_an_incomplete_effect_is_refused_when_the_activity_is_made() -> None:
    @effect("test/incomplete", identity=lambda reference: reference)
    def send(attempt: Any, reference: str) -> str:
        return reference

    with pytest.raises(ContractError, match="observe"):
        effect_activity(send, MemoryLedger())


def test_what_is_no_effect_is_refused() -> None:
    with pytest.raises(UsageError, match="takes an effect"):
        effect_activity(print, MemoryLedger())  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="look_again_for"):
        effect_activity(credit, MemoryLedger(), look_again_for=timedelta(seconds=-1))


# -- errors --------------------------------------------------------------------------------------------------


def test_every_error_is_quiet_and_holds_data_in_its_details_only() -> None:
    error = one_pass(scripted(CONFLICTED))
    assert error.category is ApplicationErrorCategory.BENIGN
    assert "rf_81" not in str(error)
    assert error.details == (error.status.details(),)
    assert error.details[0] == {
        "version": 1,
        "operation_type": "test/scripted",
        "operation_id": "rf_81",
        "disposition": "REPLAN",
        "evidence": "CONFLICTED",
        "reason": "WORLD_CHANGED",
        "explanation": "SOMETHING_ELSE",
        "retry_at": None,
        "token": None,
    }


# -- looking only --------------------------------------------------------------------------------------------


def test_the_observing_activity_never_writes() -> None:
    case = scripted(APPLIED)
    look = observe_activity(case.effect, case.ledger)
    with pytest.raises(EffectNotYetError) as caught:
        ActivityEnvironment().run(look, "rf_81")
    assert caught.value.status.reason == "NEVER_SENT"
    assert caught.value.non_retryable
    assert case.provider.writes == []


def test_the_observing_activity_reads_also_before_its_time() -> None:
    case = scripted(PENDING, APPLIED)
    assert isinstance(one_pass(case), EffectNotYetError)
    assert ActivityEnvironment().run(observe_activity(case.effect, case.ledger), "rf_81") == "receipt"
    assert len(case.provider.writes) == 1


def test_the_context_reaches_authorize() -> None:
    seen: list[Any] = []

    def authorize(attempt: Any) -> Check:
        seen.append(dict(attempt.context))
        return Check.proceed()

    case = scripted(APPLIED, authorize=authorize)
    one_pass(case, context=lambda: {"actor": "alice"})
    assert seen == [{"actor": "alice"}]
