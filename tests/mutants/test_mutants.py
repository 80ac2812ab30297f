"""The mutants fit the source, break every rule that explorer and model can judge, and are told from plain crashes.

``make mutants`` puts all of them in, one at a time.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.docs.test_reference import rules
from tests.mutants import judge
from tests.mutants.catalogue import ELSEWHERE, MUTANTS
from tests.mutants.mutant import AnchorError, Mutant
from tests.mutants.workshop import ROOT, Workshop

FEW = ("--examples", "60")
BY_NAME = {mutant.name: mutant for mutant in MUTANTS}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_fits_the_source_and_is_python(mutant: Mutant) -> None:
    source = (ROOT / mutant.file).read_text("utf-8")
    bug = mutant.of(source)
    assert bug != source
    compile(bug, mutant.file, "exec")
    assert mutant.cost.endswith(".")


def test_there_are_many_and_each_has_its_name() -> None:
    assert len(MUTANTS) >= 60
    assert len(BY_NAME) == len(MUTANTS)
    assert len({(mutant.file, mutant.before, mutant.after) for mutant in MUTANTS}) == len(MUTANTS)


def test_every_rule_is_broken_by_one_or_tried_elsewhere() -> None:
    broken = {mutant.rule for mutant in MUTANTS}
    assert broken | set(ELSEWHERE) == set(rules())
    assert not broken & set(ELSEWHERE)
    for where in ELSEWHERE.values():
        cited = [text.strip(",") for text in where.split() if text.startswith("tests/")]
        assert all((ROOT / path).is_file() for path in cited), where


def test_an_anchor_that_vanished_or_stands_twice_is_an_error() -> None:
    mutant = MUTANTS[0]
    for source in ("", mutant.before * 2):
        with pytest.raises(AnchorError):
            mutant.of(source)


@pytest.mark.timeout(240)
def test_a_mutant_is_caught_in_its_copy_and_the_source_as_it_is_passes(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, ("operations",), FEW)
    caught = shop.judge(BY_NAME["nobody_waits_for_a_window"])
    assert caught.caught_by == "operations"
    assert caught.said.startswith("AssertionError")
    passes = shop.judge_as_it_is()
    assert (passes.caught_by, passes.said) == (None, "")


def test_what_breaks_before_it_is_judged_is_not_caught(tmp_path: Path) -> None:
    crash = replace(MUTANTS[0], file="corrobo_core/policy.py", before="ZERO = timedelta()", after="ZERO = 1 / 0")
    outcome = Workshop(tmp_path, ("operations",), FEW).judge(crash)
    assert outcome.caught_by is None
    assert "ZeroDivisionError" in outcome.said


def test_a_judge_that_does_not_see_the_copy_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert judge.main("machine", "--quick") == judge.NOT_THE_COPY
