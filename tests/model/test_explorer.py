"""The short form of the explorer, what it covers, and the proof that it can find something.

``make explore`` runs the long form; ``make mutants`` asks the short one about each named bug.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corrobo_core.records import Reason
from tests.model.explorer.__main__ import main
from tests.model.explorer.configurations import FULL, QUICK
from tests.model.explorer.search import Search
from tests.model.explorer.state import FAULTS
from tests.mutants.catalogue import MUTANTS
from tests.mutants.workshop import Workshop

BY_NAME = {configuration.name: configuration for configuration in QUICK}

# Everything that can happen in the short form, but for "waits".
CRASHES = {"Open", "Claim", "Load", "Record", "Authorize", "Observe", "Revalidate", "Execute"}
STATEMENTS = {"Open", "Claim", "Load", "Record"}
SITUATIONS = {
    *(f"{command}: crash" for command in CRASHES),
    *(f"{command}: statement" for command in STATEMENTS),
    *(f"{command}: reply lost" for command in ("Open", "Claim", "Record")),
    *(f"{command}: owner lost" for command in ("Execute", "Observe", "Record")),
    *(f"{command}: unavailable (it was written)" for command in ("Open", "Claim", "Record")),
    *(f"{command}: unavailable (nothing was written)" for command in ("Open", "Claim", "Record")),
    "Execute: sends",
    "Execute: is paused",
    "Execute: too late to send",
    "Execute: hook ends (ok)",  # also before its effect is there
    "Execute: hook ends (ambiguous)",
    "Execute: hook ends (interrupted)",
    "Execute: hook ends (not sent)",
    "Execute: hook ends (refused)",
    "Execute: hook ends (refused for good)",
    "Execute: hook ends (sends late)",  # it overran its timeout
    "Observe: reads (0 there)",  # though it is there, where reads may be stale
    "Observe: reads (1 there)",
    "Observe: reads (0 there, one on its way)",
    "Observe: hook ends (read fails)",
    "Authorize: check (authorize)",
    "Revalidate: check (revalidate)",
    "the desk (approved)",
    "the desk (approved until 2 s)",
    "the desk (rejected)",
    "the desk (revoke)",
    "the desk (applied)",
    "the desk (not_applied)",
    "the ledger's clock goes back",
}
REASONS = {
    Reason.ABSENCE_NOT_PROVEN,
    Reason.APPROVAL_LAPSED,
    Reason.ATTEMPTS_EXHAUSTED,
    Reason.CONVERGING,
    Reason.EFFECT_CONFIRMED,
    Reason.IN_FLIGHT_NOT_RULED_OUT,
    Reason.OVERTAKEN,
    Reason.PAUSED,
    Reason.PROVIDER_REFUSED,
    Reason.REJECTED,
    Reason.REVIEW_REQUIRED,
    Reason.SAFE_RETRY,
    Reason.SETTLING,
    Reason.STILL_RUNNING,
}

# Bugs, and the one small world that shows each at once.
FOUND = {
    "a_dead_attempt_was_never_sent": "crashes",
    "a_deploy_shortens_the_window": "rolling deploy",
    "a_paused_worker_sends": "pauses",
    "a_running_attempt_is_overtaken": "overruns",
    "a_window_that_is_declared_later_frees": "declared since a deploy",
    "an_answer_ends_every_request": "answers",
    "an_answer_is_seen_at_once": "answers after the effect",
    "an_attestation_skips_the_window": "attested",
    "an_incomplete_read_proves_absence": "searching",
    "cancelled_means_not_sent": "lost replies",
    "memory_writes_whatever_the_version": "crashes",
    "nobody_waits_for_a_window": "crashes",
    "settled_in_the_last_moment": "crashes",
    "the_lag_is_forgotten": "stale reads",
    "the_read_is_dated_by_its_end": "crashes",
    "the_worker_s_clock_decides": "clock steps",
    "whoever_looks_too_early_has_the_last_word": "attested",
}


@pytest.mark.timeout(240)
def test_no_interleaving_breaks_a_rule_whatever_goes_wrong() -> None:
    moves, reasons = set[str](), set[str]()
    for configuration in QUICK:
        found = Search(configuration).run()
        assert found.broken is None, "\n".join([configuration.name, found.broken, *found.trace])
        assert found.attempts >= 2, f"{configuration.name}: no second attempt, so that nothing can come between two"
        moves |= found.moves
        reasons |= found.reasons
    assert SITUATIONS - moves == set()
    assert REASONS - reasons == set()


def test_the_long_form_knows_every_fault_and_has_all_that_the_short_one_has() -> None:
    long = {configuration.name: configuration for configuration in FULL}
    assert frozenset().union(*(configuration.faults for configuration in FULL)) == FAULTS
    assert set(BY_NAME) <= set(long)
    assert any(len(configuration.processes) > 1 and configuration.budget > 1 for configuration in FULL)


@pytest.mark.parametrize("name", FOUND)
def test_a_bug_is_found(name: str, tmp_path: Path) -> None:
    bug = next(mutant for mutant in MUTANTS if mutant.name == name)
    outcome = Workshop(tmp_path, ("explorer",), ("--only", FOUND[name])).judge(bug)
    assert outcome.caught_by == "explorer", outcome.said
    assert outcome.said.startswith("BROKEN: ")


@pytest.mark.parametrize(
    ("name", "lies"),
    [
        ("crashes", {"late": 2}),  # lands after the window
        ("attested", {"late": 2}),
        ("stale reads", {"lag": 2}),  # staler than declared
        ("searching", {"proves_absence": True, "lag": 9}),
    ],
)
def test_a_contract_that_is_not_true_sends_twice_and_the_way_there_is_told(name: str, lies: dict[str, Any]) -> None:
    found = Search(replace(BY_NAME[name], **lies)).run()
    assert found.broken is not None
    assert any(line.rstrip().endswith("can land") and "Execute: sends" in line for line in found.trace), found.trace


def test_a_broken_rule_is_printed_with_the_way_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.model.explorer.__main__.QUICK", [replace(BY_NAME["stale reads"], lag=2)])
    monkeypatch.setattr("sys.argv", ["explorer", "--quick"])
    assert main() == 1
    printed = capsys.readouterr().out
    assert "BROKEN: " in printed
    assert "Execute: sends" in printed
