"""Each fuzz target for a moment, and each of them finding what was planted for it. For longer: `make fuzz`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from corrobo_core import PostgresLedger, canonical
from corrobo_core.errors import DsnError
from corrobo_core.gates import answering, state
from corrobo_core.gates.events import CallbackClaimed
from corrobo_core.ledgers import _pg_address
from tests.fuzz.__main__ import main
from tests.fuzz.addresses import SECRET, no_part_of_a_password_is_shown
from tests.fuzz.fuzzing import Target, fuzz
from tests.fuzz.targets import TARGETS

BY_NAME = {target.name: target for target in TARGETS}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_nothing_hostile_gets_through(target: Target) -> None:
    result = fuzz(target, 2, first_seed=1)
    assert result.finding is None, result.finding
    assert result.examples >= 100


def unordered(patch: pytest.MonkeyPatch) -> None:
    """Keys are written in the order of the dict."""
    plain = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
    patch.setattr(canonical, "_PLAIN", plain)


def claimed_twice(patch: pytest.MonkeyPatch) -> None:
    """A claim of a request that another router holds is folded."""

    def claim(before: state.RequestState, event: CallbackClaimed) -> state.RequestState:
        return replace(before, status=state.GateStatus.CLAIMED, router_id=event.router_id, claim_token="t")

    patch.setattr(state, "_STEPS", {**state._STEPS, CallbackClaimed: claim})


def anything_goes(patch: pytest.MonkeyPatch) -> None:
    """No answer is checked against its schema."""
    patch.setattr(answering, "_problem", lambda known, response: None)


def quoted(patch: pytest.MonkeyPatch) -> None:
    """The ledger's name holds the address as given."""
    made = _pg_address.Address.__init__

    def init(self: Any, dsn: str, schema: str, argument: str) -> None:
        made(self, dsn, schema, argument)
        self.place = replace(self.place, name=f"PostgreSQL ledger at {dsn}")

    patch.setattr(_pg_address.Address, "__init__", init)


@pytest.mark.parametrize(
    ("name", "plant", "seen"),
    [
        ("canonical", unordered, "an_intent_is_refused_or_written_whole"),
        ("replay", claimed_twice, "two routers hold one claim"),
        ("decisions", anything_goes, "an_answer_counts_only_if_it_is_of_the_asked_form"),
        ("dsn", quoted, SECRET),
    ],
)
def test_what_was_planted_is_found_with_an_input_that_shows_it(
    name: str, plant: Callable[[pytest.MonkeyPatch], None], seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    result = fuzz(BY_NAME[name], 20, first_seed=1)
    assert result.finding is not None
    assert seen in result.finding
    assert "Failing test case" in result.finding or "Falsifying example" in result.finding


def test_the_command_prints_a_line_for_each_target_and_fails_with_the_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(0.1, 1, ["canonical", "dsn"]) == 0
    assert capsys.readouterr().out.count("findings: 0") == 2
    anything_goes(monkeypatch)
    assert main(20, 1, ["decisions"]) == 1
    assert "findings: 1" in capsys.readouterr().out
    assert main(0.1, 1, ["no such target"]) == 1


@pytest.mark.parametrize("rest", ["", "/db", "@127.0.0.1:1/db", "?sslmode=never"])
@pytest.mark.parametrize("before", ["app:@", "app:@/", "app:@:", ":@", "app:", "app:/", "app: /"])
def test_T3_a_password_that_libpq_takes_for_something_else_is_not_shown(before: str, rest: str) -> None:
    no_part_of_a_password_is_shown(f"postgresql://{before}{SECRET}{rest}")


@pytest.mark.parametrize("dsn", ["\ud800", f"postgresql://app:{SECRET}\ud800@127.0.0.1/db"])
def test_T3_an_address_that_is_no_text_is_refused_by_name(dsn: str) -> None:
    no_part_of_a_password_is_shown(dsn)
    with pytest.raises(DsnError):
        PostgresLedger(dsn)
