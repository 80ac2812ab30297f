"""The soak in short: twenty seconds of faults. ``make soak`` runs the long form."""

import pytest

from tests.soak.soak import Settings, soak

EFFECTS = 60


@pytest.mark.timeout(240)
def test_every_effect_happens_once_whatever_dies_and_the_naive_twins_do_not() -> None:
    report = soak(Settings(seconds=20, effects=EFFECTS, seed="short"), say=print)
    effects = report.effects
    assert (effects.duplicates, effects.lost, effects.wrong_completes, effects.unfinished) == (0, 0, 0, 0), report
    assert effects.found == effects.expected == EFFECTS
    assert all(groups["naive"].duplicates for groups in report.by_engine.values()), report
    assert report.problems() == []  # every kind of fault was injected, too
    assert report.kills >= 2
