"""The soak in short: twenty seconds of faults. ``make soak`` runs the long form."""

import pytest

from tests.soak.report import Report
from tests.soak.soak import Settings, soak


@pytest.fixture(scope="module")
def report() -> Report:
    """One soak for all tests of this module."""
    return soak(Settings(seconds=20, effects=60, seed="short"), say=print)


@pytest.mark.timeout(240)
def test_every_effect_happens_once_whatever_dies(report: Report) -> None:
    effects = report.effects
    assert (effects.duplicates, effects.lost, effects.wrong_completes, effects.unfinished) == (0, 0, 0, 0), report
    assert effects.found == effects.expected == 60


@pytest.mark.timeout(240)
def test_the_naive_twins_write_twice_under_the_same_faults(report: Report) -> None:
    assert all(groups["naive"].duplicates for groups in report.by_engine.values()), report


@pytest.mark.timeout(240)
def test_every_kind_of_fault_was_injected(report: Report) -> None:
    assert report.problems() == []
    assert report.kills >= 2
