"""Every error of the library: one tree, pickles whole, says whether trying again helps, and shows no secrets."""

from __future__ import annotations

import copy
import importlib
import inspect
import itertools
import pickle
import pkgutil
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import pytest

import corrobo_core
from corrobo_core.errors import (
    CorroboError,
    EffectError,
    IdentityReused,
    LedgerError,
    NotSent,
    NotYetError,
    Rejected,
)
from corrobo_core.records import Disposition, EffectResult

WHEN = datetime(2026, 1, 1, 12, tzinfo=UTC)


def load(package: types.ModuleType) -> None:
    """Import every module, so that every error exists."""
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def subclasses(of: type[CorroboError]) -> Iterator[type[CorroboError]]:
    for kind in of.__subclasses__():
        yield kind
        yield from subclasses(kind)


load(corrobo_core)
FOUND: set[type[CorroboError]] = {CorroboError, *subclasses(CorroboError)}
ALL: list[type[CorroboError]] = sorted(
    {kind for kind in FOUND if kind.__module__.startswith("corrobo_core")},
    key=lambda kind: kind.__name__,
)


def sample(annotation: Any, name: str) -> Any:
    """A value of a constructor's parameter that is unlike its default."""
    options = typing.get_args(annotation) if _is_union(annotation) else (annotation,)
    kind = next(option for option in options if option is not type(None))
    kind = typing.get_origin(kind) or kind
    if kind in (Mapping, dict):
        return {"a": 1}
    if kind in (Sequence, list, tuple):
        return ("a",)
    if isinstance(kind, type) and issubclass(kind, BaseException):
        return ValueError("the provider's words")
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    values = {str: f"some {name}", bool: True, int: 3, datetime: WHEN, timedelta: timedelta(seconds=5), object: "x"}
    return values.get(kind, f"some {name}")


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (typing.Union, types.UnionType)


def arguments(kind: type[CorroboError]) -> dict[str, Any]:
    if kind.__init__ is CorroboError.__init__:  # a base that is never raised itself
        return {}
    hints = typing.get_type_hints(kind.__init__)
    names = [name for name in inspect.signature(kind).parameters if name in hints]
    return {name: sample(hints[name], name) for name in names}


def same(one: object, other: object) -> bool:
    if isinstance(one, BaseException) and isinstance(other, BaseException):
        return type(one) is type(other) and same(one.args, other.args) and same(vars(one), vars(other))
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other


def test_the_tree_was_found() -> None:
    assert len(ALL) >= 24
    assert {"IntentError", "LedgerUnavailable", "ReplanError"} <= {kind.__name__ for kind in ALL}


def test_every_error_of_the_library_is_in_the_tree() -> None:
    for module in pkgutil.walk_packages(corrobo_core.__path__, "corrobo_core."):
        if module.name.endswith("__main__") or module.name == "corrobo_core.testing.example":  # a provider's own
            continue
        loaded = importlib.import_module(module.name)
        for name, kind in vars(loaded).items():
            if isinstance(kind, type) and issubclass(kind, Exception) and kind.__module__ == module.name:
                private = name.startswith("_") or module.name.rpartition(".")[2].startswith("_")
                assert private or issubclass(kind, CorroboError), f"{module.name}.{name} is outside the tree"


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_comes_back_whole_from_pickle(kind: type[CorroboError], protocol: int) -> None:
    error = kind(**arguments(kind))
    again = pickle.loads(pickle.dumps(error, protocol))
    assert same(again, error)
    assert str(again) == str(error)


@pytest.mark.parametrize("kind", ALL)
def test_an_error_comes_back_whole_from_its_arguments(kind: type[CorroboError]) -> None:
    """What serializers do that keep type and args, such as DBOS's portable one."""
    error = kind(**arguments(kind))
    assert same(kind(*error.args), error)
    assert same(copy.copy(error), error)
    assert same(copy.deepcopy(error), error)


@pytest.mark.parametrize("kind", ALL)
def test_an_error_keeps_its_notes(kind: type[CorroboError]) -> None:
    error = kind(**arguments(kind))
    error.add_note("seen by worker 7")
    again = pickle.loads(pickle.dumps(error))
    assert again.__notes__ == ["seen by worker 7"]


@pytest.mark.parametrize("kind", ALL)
def test_an_error_reads_as_one_sentence_with_what_it_was_given(kind: type[CorroboError]) -> None:
    given = arguments(kind)
    text = str(kind(**given))
    assert "object at 0x" not in text
    if not given:
        return
    assert text
    assert "\n" not in text
    for name in ("effect", "field", "path", "problem", "operation_id", "reason", "explanation", "ledger", "what"):
        if name in given:
            assert str(given[name]) in text, f"{name} is missing in {text!r}"


RETRYABLE = {"LedgerUnavailable", "NotYetError"}


@pytest.mark.parametrize("kind", ALL)
def test_an_error_says_whether_trying_again_helps(kind: type[CorroboError]) -> None:
    assert kind.retryable is (kind.__name__ in RETRYABLE)
    assert kind(**arguments(kind)).retryable is kind.retryable, "an instance says what its class says"
    documented = inspect.cleandoc(kind.__doc__ or "")
    assert documented


# -- particular ones ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in ALL if issubclass(kind, EffectError)])
def test_a_missing_effect_says_what_to_do_and_when_and_shows_no_token(kind: type[EffectError]) -> None:
    error = kind("payments/refund", "rf_81", "SETTLING", "not yet", "NOT_APPLIED", WHEN, "ep1-secret")
    assert "rf_81" in str(error)
    assert "ep1-secret" not in str(error)
    if kind is not EffectError:
        assert kind.advice in str(error)
        assert kind.advice
    assert WHEN.isoformat() in str(error)
    assert "come back" not in str(kind("payments/refund", "rf_81", "SETTLING", "not yet"))


def test_a_reused_identity_shows_fingerprints_and_never_the_intent() -> None:
    error = IdentityReused("rf_81", "intent", "v1:sha256:aa", "v1:sha256:bb")
    assert str(error) == (
        "operation 'rf_81' is recorded with another intent (v1:sha256:aa, now v1:sha256:bb); "
        "a new decision needs a new operation id"
    )


def test_what_a_hook_raises_keeps_its_cause() -> None:
    cause = TimeoutError("connect")
    assert (NotSent(cause).cause, str(NotSent(cause))) == (cause, "not sent: TimeoutError: connect")
    for_now = Rejected(cause, retryable=True, retry_after=timedelta(seconds=3))
    assert (for_now.refused_for_now, for_now.retry_after) == (True, timedelta(seconds=3))
    assert for_now.retryable is False, "the class attribute speaks about calling again, not about the provider"
    assert str(Rejected("card expired")) == "rejected: card expired"


def test_ledger_errors_are_one_family() -> None:
    for kind in ALL:
        if kind.__name__.startswith("Ledger") or kind.__name__ in ("StandbyError", "DurabilityError", "DsnError"):
            assert issubclass(kind, LedgerError)


# -- what unwrap raises ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("disposition", "value_lost", "raised"),
    [
        (None, False, "NotYetError"),
        (Disposition.RETRY, False, "NotYetError"),
        (Disposition.REPLAN, False, "ReplanError"),
        (Disposition.REVIEW, False, "ReviewError"),
        (Disposition.INVESTIGATE, False, "InvestigateError"),
        (Disposition.COMPLETE, True, "EffectValueError"),
    ],
)
def test_unwrap_raises_what_says_what_to_do(disposition: Any, value_lost: bool, raised: str) -> None:
    result: EffectResult[int] = EffectResult(
        "payments/refund",
        "rf_81",
        disposition,
        None,
        "SETTLING",
        "why",
        WHEN,
        WHEN,
        value_lost=value_lost,
        token="ep1",
    )
    with pytest.raises(EffectError) as caught:
        result.unwrap()
    error = caught.value
    assert type(error).__name__ == raised
    assert (error.operation_id, error.reason, error.explanation) == ("rf_81", "SETTLING", "why")
    assert (error.retry_at, error.token) == (WHEN, "ep1")
    assert pickle.loads(pickle.dumps(error)).args == error.args


@pytest.mark.parametrize("effect", [7, None, ""])
def test_unwrap_returns_a_confirmed_effect_also_if_it_is_empty(effect: Any) -> None:
    result: EffectResult[Any] = EffectResult("t/x", "x", Disposition.COMPLETE, None, "R", "", None, WHEN, effect)
    assert result.unwrap() == effect


def test_every_disposition_has_its_error() -> None:
    for disposition, lost in itertools.product((None, *Disposition), (True, False)):
        result: EffectResult[int] = EffectResult(
            "t/x", "x", disposition, None, "R", "", None, WHEN, value_lost=lost
        )
        assert isinstance(result.error(), EffectError)
        assert result.wait == timedelta()
    assert issubclass(NotYetError, EffectError)
