"""What DBOS stores for an effect: plain data, which belongs to one operation only."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from corrobo_core import (
    Attempt,
    Disposition,
    Effect,
    EffectResult,
    EffectValueError,
    Evidence,
    Observation,
    Verdict,
    effect,
)
from corrobo_core.definition import Definition
from corrobo_dbos import CheckpointError
from corrobo_dbos.checkpoint import checkpoint_of, result_from

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Receipt:
    """An effect's value."""

    number: int
    rate: float
    signed: bytes
    at: datetime


def definition_of(returned: Any) -> Definition:
    """An effect that returns this type."""

    def act(attempt: Attempt, reference: str) -> Any: ...

    act.__annotations__["return"] = returned
    made: Effect[[str], Any] = effect("tests/act", identity=lambda reference: reference)(act)

    @made.observe
    def seen(attempt: Attempt) -> Observation[None]:
        return Observation.of(None, source="nowhere", proves_absence=True)

    @seen.reconcile
    def judge(attempt: Attempt, data: None) -> Verdict[Any]:
        return Verdict.unknown("NO")

    return made.definition


def result(value: Any = None, **fields: Any) -> EffectResult[Any]:
    """A confirmed effect, unless told otherwise."""
    given = {"disposition": Disposition.COMPLETE, "evidence": Evidence.APPLIED, "retry_at": None, "token": None}
    return EffectResult(
        "tests/act", "rf_81", reason="WHY", explanation="so", now=NOW, effect=value, **{**given, **fields}
    )


def stored(checkpoint: Mapping[str, Any]) -> Any:
    """As it comes back from a serializer that knows JSON and nothing else."""
    return json.loads(json.dumps(checkpoint, allow_nan=False))


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (Receipt, Receipt(7, math.inf, b"\x00\xff", NOW)),
        (dict[str, float], {"nul \x00": 1.5, "lone \ud83d": -0.0}),
        (int | None, None),
        (None, None),
    ],
)
def test_a_value_comes_back_as_it_was(type_: Any, value: Any) -> None:
    definition = definition_of(type_)
    checkpoint = stored(checkpoint_of(result(value), definition))

    assert result_from(checkpoint, definition, "rf_81", "step").unwrap() == value


def test_nan_comes_back() -> None:
    definition = definition_of(float)
    checkpoint = stored(checkpoint_of(result(math.nan), definition))

    assert math.isnan(result_from(checkpoint, definition, "rf_81", "step").unwrap())


@pytest.mark.parametrize("disposition", [None, *Disposition])
def test_every_outcome_raises_the_same_after_a_restart(disposition: Disposition | None) -> None:
    definition = definition_of(str)
    before = result("done", disposition=disposition, evidence=None, retry_at=NOW, token="ep1")
    after = result_from(stored(checkpoint_of(before, definition)), definition, "rf_81", "step")

    if disposition is Disposition.COMPLETE:
        assert after.unwrap() == "done"
    else:
        assert type(after.error()) is type(before.error())
        assert after.error().args == before.error().args


def test_a_value_that_is_lost_or_no_longer_fits_its_type_is_a_confirmed_effect_without_its_value() -> None:
    number = definition_of(int)
    lost = checkpoint_of(result(None, value_lost=True), number)
    text = checkpoint_of(result("seven"), definition_of(str))

    for checkpoint in (lost, text):
        with pytest.raises(EffectValueError):
            result_from(stored(checkpoint), number, "rf_81", "step").unwrap()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": "rf_82"}, "holds the outcome of tests/act 'rf_82'; the workflow is not deterministic"),
        ({"type": "tests/other"}, "holds the outcome of tests/other 'rf_81'"),
        ({"corrobo": 2}, "has version 2; this release reads version 1"),
    ],
)
def test_a_checkpoint_of_anything_else_is_refused(change: dict[str, Any], problem: str) -> None:
    definition = definition_of(str)
    checkpoint = checkpoint_of(result("done"), definition) | change

    with pytest.raises(CheckpointError, match=f"step 'pay', operation 'rf_81': its checkpoint {problem}"):
        result_from(checkpoint, definition, "rf_81", "pay")


@pytest.mark.parametrize("checkpoint", [None, "done", {"id": "rf_81"}, ["corrobo"]])
def test_a_checkpoint_that_no_effect_step_made_is_refused(checkpoint: object) -> None:
    with pytest.raises(CheckpointError, match="was not made by an effect step"):
        result_from(checkpoint, definition_of(str), "rf_81", "pay")


def test_version_1_is_still_read() -> None:
    """Written by the first release; running workflows hold such data for months."""
    checkpoint = {
        "corrobo": 1,
        "type": "tests/act",
        "id": "rf_81",
        "disposition": "COMPLETE",
        "evidence": "APPLIED",
        "reason": "EFFECT_CONFIRMED",
        "explanation": "exactly one",
        "retry_at": None,
        "now": "2026-01-01T12:00:00+00:00",
        "token": None,
        "effect": "done",
        "value_lost": False,
    }

    assert result_from(checkpoint, definition_of(str), "rf_81", "pay").unwrap() == "done"
