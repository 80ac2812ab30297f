"""Errors survive pickle and Temporal's failure converter, and `disposition_of` reads them anywhere."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.api.failure.v1 import Failure
from temporalio.client import WorkflowFailureError
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import (
    DataConverter,
    DefaultFailureConverter,
    DefaultFailureConverterWithEncodedAttributes,
)
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError, RetryState, TimeoutError

from corrobo_core import Disposition, Evidence, IdentityReused, LedgerUnavailable
from corrobo_temporal import (
    EffectInvestigateError,
    EffectNotYetError,
    EffectReplanError,
    EffectReviewError,
    EffectStatus,
    EffectValueLostError,
    TemporalEffectError,
    disposition_of,
)
from corrobo_temporal.failures import error_for, refusal_for

STATUS = EffectStatus(
    "payments/refund",
    "rf_81",
    Disposition.INVESTIGATE,
    Evidence.UNKNOWN,
    "NOT_ESTABLISHED",
    "observe raised OSError: down",
    datetime(2026, 11, 30, 12, tzinfo=UTC),
    "token",
)
KINDS = [
    EffectInvestigateError,
    EffectNotYetError,
    EffectReplanError,
    EffectReviewError,
    EffectValueLostError,
]


@pytest.mark.parametrize("kind", KINDS)
def test_errors_survive_pickle(kind: type[TemporalEffectError]) -> None:
    error = kind(STATUS, next_retry_delay=timedelta(seconds=3), final=False)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (again.status, again.next_retry_delay, again.non_retryable) == (STATUS, timedelta(seconds=3), False)
    assert (str(again), again.details, again.type) == (str(error), error.details, error.type)


def test_every_error_is_tested_here() -> None:
    assert set(KINDS) == set(TemporalEffectError.__subclasses__())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", [DataConverter.default, pydantic_data_converter], ids=["json", "pydantic"])
@pytest.mark.parametrize("failures", [DefaultFailureConverter, DefaultFailureConverterWithEncodedAttributes])
def test_errors_survive_the_failure_converter(
    kind: type[TemporalEffectError], data: DataConverter, failures: type[DefaultFailureConverter]
) -> None:
    error = kind(STATUS, next_retry_delay=timedelta(seconds=3), final=False)
    again = _converted(error, data, failures())
    assert isinstance(again, ApplicationError)
    assert (again.type, again.non_retryable, again.category) == (error.type, False, error.category)
    assert again.next_retry_delay == timedelta(seconds=3)
    assert disposition_of(again) == STATUS
    assert disposition_of(pickle.loads(pickle.dumps(again))) == STATUS


def _converted(error: BaseException, data: DataConverter, failures: DefaultFailureConverter) -> BaseException:
    wire = Failure()
    failures.to_failure(error, data.payload_converter, wire)
    sent = Failure.FromString(wire.SerializeToString())
    return failures.from_failure(sent, data.payload_converter)


def test_types_are_part_of_histories_and_never_change() -> None:
    assert {kind.code for kind in KINDS} == {
        "corrobo.NotYet",
        "corrobo.Replan",
        "corrobo.Review",
        "corrobo.Investigate",
        "corrobo.ValueLost",
    }


@pytest.mark.parametrize(
    ("disposition", "kind"),
    [
        (None, EffectNotYetError),
        (Disposition.RETRY, EffectNotYetError),
        (Disposition.REPLAN, EffectReplanError),
        (Disposition.REVIEW, EffectReviewError),
        (Disposition.INVESTIGATE, EffectInvestigateError),
        (Disposition.COMPLETE, EffectValueLostError),
    ],
)
def test_each_disposition_has_its_error(disposition: Disposition | None, kind: type[Exception]) -> None:
    status = EffectStatus("t", "id", disposition, None, "R", "why")
    assert type(error_for(status)) is kind
    assert EffectStatus.from_details(status.details()) == status


# -- chains --------------------------------------------------------------------------------------------------


def _activity_error(cause: BaseException) -> ActivityError:
    error = ActivityError(
        "Activity task failed",
        scheduled_event_id=5,
        started_event_id=6,
        identity="",
        activity_type="refund",
        activity_id="1",
        retry_state=RetryState.TIMEOUT,
    )
    error.__cause__ = cause
    return error


def _timed_out(cause: BaseException) -> TimeoutError:
    error = TimeoutError("activity ScheduleToClose timeout", type=None, last_heartbeat_details=[])
    error.__cause__ = cause
    return error


def _child(cause: BaseException) -> ChildWorkflowError:
    error = ChildWorkflowError(
        "Child workflow failed",
        namespace="default",
        workflow_id="w",
        run_id="r",
        workflow_type="T",
        initiated_event_id=1,
        started_event_id=2,
        retry_state=None,
    )
    error.__cause__ = cause
    return error


def _wrapped(cause: BaseException) -> ApplicationError:
    error = ApplicationError("somebody else's", {"version": 1})
    error.__cause__ = cause
    return error


ERROR = EffectNotYetError(STATUS)


@pytest.mark.parametrize(
    "error",
    [
        ERROR,
        _activity_error(ERROR),
        _activity_error(_timed_out(ERROR)),
        WorkflowFailureError(cause=ERROR),
        WorkflowFailureError(cause=_child(_activity_error(ERROR))),
        _wrapped(ERROR),
    ],
)
def test_the_whole_chain_is_read(error: BaseException) -> None:
    assert disposition_of(error) == STATUS


@pytest.mark.parametrize(
    "details",
    [
        (),
        ("text",),
        ({"version": 2, **{k: v for k, v in STATUS.details().items() if k != "version"}},),
        ({**STATUS.details(), "disposition": "A_LATER_WORD"},),
        ({**STATUS.details(), "retry_at": 7},),
        ({"version": 1},),
    ],
)
def test_what_it_does_not_know_it_does_not_guess(details: tuple[Any, ...]) -> None:
    assert disposition_of(ApplicationError("something", *details)) is None


def test_a_circle_of_causes_ends() -> None:
    one, other = ValueError(), KeyError()
    one.__cause__, other.__cause__ = other, one
    assert disposition_of(one) is None
    assert disposition_of(None) is None


def test_a_refusal_keeps_its_name_and_hides_its_data() -> None:
    refusal = refusal_for(IdentityReused("rf_81", "intent", "v1:sha256:aa", "v1:sha256:bb"))
    assert (refusal.type, refusal.non_retryable) == ("IdentityReused", True)
    assert "rf_81" not in refusal.message
    assert "rf_81" in refusal.details[0]["explanation"]
    assert disposition_of(refusal) is None
    assert not refusal_for(LedgerUnavailable("postgresql://db", "gone")).non_retryable
