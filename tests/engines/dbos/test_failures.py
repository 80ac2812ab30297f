"""E04: every error comes back from DBOS's database as it went in."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, get_args, get_type_hints

import pytest
from dbos import DBOS, PortableWorkflowError, SetWorkflowID, WorkflowSerializationFormat

import corrobo_dbos.failures
from corrobo_core import errors
from tests.engines.dbos.conftest import Local

SAMPLES: dict[Any, Any] = {
    bool: True,
    datetime: datetime(2026, 1, 1, tzinfo=UTC),
    timedelta: timedelta(seconds=7),
    BaseException: ConnectionResetError(104, "reset by peer"),
}


def every_error() -> Iterator[errors.CorroboError]:
    """One of each class, with all arguments that its constructor takes."""
    for module in (errors, corrobo_dbos.failures):
        for name in module.__all__:
            kind = getattr(module, name)
            hints = {} if kind.__init__ is Exception.__init__ else get_type_hints(kind.__init__)
            hints.pop("return", None)
            yield kind(*(sample(parameter, hint) for parameter, hint in hints.items()))


def sample(parameter: str, hint: Any) -> Any:
    """A value of the first kind that a parameter takes; text says which parameter it is for."""
    first = (get_args(hint) or (hint,))[0]
    return SAMPLES[first] if first in SAMPLES else first(f"a {parameter}")


def same(left: Exception, right: Exception) -> bool:
    """Type, text and fields; causes are compared by their text, since exceptions have no equality."""
    fields = [{name: repr(value) for name, value in vars(error).items()} for error in (left, right)]
    return type(left) is type(right) and str(left) == str(right) and fields[0] == fields[1]


@pytest.mark.parametrize("error", list(every_error()), ids=lambda error: type(error).__name__)
def test_e04_pickle_keeps_an_error(error: errors.CorroboError) -> None:
    again = pickle.loads(pickle.dumps(error))

    assert same(again, error)
    assert again.retryable is error.retryable


def test_e04_dbos_keeps_every_error_in_both_of_its_formats(local: Local) -> None:
    all_errors = list(every_error())

    @DBOS.step()
    def failing_step(number: int) -> None:
        raise all_errors[number]

    @DBOS.workflow()
    def native(number: int) -> None:
        failing_step(number)

    @DBOS.workflow(serialization_type=WorkflowSerializationFormat.PORTABLE)
    def portable(number: int) -> None:
        failing_step(number)

    local.launch()
    for number, error in enumerate(all_errors):
        for workflow in (native, portable):
            with SetWorkflowID(f"{workflow.__name__}-{number}"), pytest.raises(type(error)):
                workflow(number)

        with pytest.raises(type(error)) as stored:
            DBOS.retrieve_workflow(f"native-{number}").get_result()
        assert same(stored.value, error)
        with pytest.raises(PortableWorkflowError) as in_words:
            DBOS.retrieve_workflow(f"portable-{number}").get_result()
        assert (in_words.value.name, in_words.value.message) == (type(error).__name__, str(error))
        (step,) = DBOS.list_workflow_steps(f"native-{number}")
        assert step["error"] is not None and same(step["error"], error)


@pytest.mark.parametrize("error", list(every_error()), ids=lambda error: type(error).__name__)
def test_e04_the_words_of_an_effect_error_name_the_operation_and_the_reason(error: errors.CorroboError) -> None:
    """The portable format keeps the type's name and the text, and nothing else."""
    if isinstance(error, errors.EffectError):
        assert str(error).startswith("a operation_type 'a operation_id': a reason: ")
    assert "None" not in str(error)
