"""The soak's own judgement: it sees what it is there to see."""

from collections import Counter
from dataclasses import replace

import pytest

from examples.http_ledger import Credit
from tests.soak.engines import Ended
from tests.soak.killer import KINDS
from tests.soak.outside import HTTP_FAULTS, Commit
from tests.soak.report import Report, Tally, tally


def commit(reference: str, number: int = 1, at: float = 10.0) -> Commit:
    return Commit(at, Credit(f"cr_{reference}_{number}", "alice", reference, 5_000))


def complete(reference: str, number: int = 1, at: float = 11.0) -> Ended:
    return Ended(reference, submitted_at=9.0, ended_at=at, credit_id=f"cr_{reference}_{number}")


def test_one_effect_each_is_all_well() -> None:
    counted = tally(["a", "b"], [commit("a"), commit("b")], [complete("a"), complete("b", at=13.0)])
    assert counted == Tally(2, 2, 0, 0, 0, 0, p50=3.0, p99=3.98)


def test_a_second_effect_is_a_duplicate_even_if_nobody_reports_it() -> None:
    assert tally(["a"], [commit("a"), commit("a", 2)], [complete("a")]).duplicates == 1


def test_an_effect_that_was_reported_and_is_not_there_is_lost_and_a_wrong_complete() -> None:
    counted = tally(["a"], [], [complete("a")])
    assert (counted.lost, counted.wrong_completes, counted.unfinished) == (1, 1, 0)


def test_a_complete_before_the_effect_or_for_another_one_is_wrong() -> None:
    assert tally(["a"], [commit("a", at=11.5)], [complete("a", at=11.0)]).wrong_completes == 1
    assert tally(["a"], [commit("a", 1)], [complete("a", 2)]).wrong_completes == 1


def test_what_failed_or_never_ended_is_unfinished() -> None:
    failed = Ended("a", 9.0, 11.0, error="gave up")
    counted = tally(["a", "b"], [commit("a"), commit("b")], [failed])
    assert (counted.unfinished, counted.lost, counted.p50) == (2, 0, None)


def test_effects_of_another_group_do_not_count() -> None:
    assert tally(["a"], [commit("a"), commit("b"), commit("b", 2)], [complete("a"), complete("b")]).found == 1


WELL = Tally(5, 5, 0, 0, 0, 0, 1.0, 2.0)
NAIVE = replace(WELL, duplicates=2)
REPORT = Report(
    seed="7",
    seconds=20,
    wall_seconds=25,
    effects=WELL,
    naive=NAIVE,
    by_engine={"dbos": {"effect": WELL, "naive": NAIVE}},
    kills=3,
    faults=Counter([*HTTP_FAULTS, *KINDS]),
    submitted_again=0,
)


def test_a_soak_without_problems() -> None:
    assert REPORT.problems() == []
    assert REPORT.as_json()["problems"] == []


@pytest.mark.parametrize("what", ["duplicates", "lost", "wrong_completes", "unfinished"])
def test_each_kind_of_failure_fails_the_soak(what: str) -> None:
    assert replace(REPORT, effects=replace(WELL, **{what: 1})).problems() == [
        f"effects: 1 {what.replace('_', ' ')}"
    ]


def test_a_soak_that_proves_nothing_fails() -> None:
    tame = replace(REPORT, by_engine={"dbos": {"effect": WELL, "naive": WELL}})
    assert len(tame.problems()) == 1


@pytest.mark.parametrize("kind", [*HTTP_FAULTS, *KINDS])
def test_a_soak_without_one_kind_of_fault_fails(kind: str) -> None:
    calm = replace(REPORT, faults=Counter({k: n for k, n in REPORT.faults.items() if k != kind}))
    assert calm.problems() == [f"no fault of kind {kind} was injected"]
