"""How long a mark of an abandoned attempt is tried (L7, L9)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from corrobo_core.errors import LedgerUnavailable
from corrobo_core.ledgers._pg_errors import Again, Lost, Patience, Place

PLACE = Place("somewhere", "corrobo")


def test_a_mark_survives_a_connection_that_was_left_from_before_a_restart() -> None:
    """Without the mark the end of a hook that overran its timeout is unknown to whoever looks next."""
    patience = Patience(PLACE, timedelta(seconds=1), once=True)
    assert patience.pause(Lost("terminated")) == 0.0
    with pytest.raises(LedgerUnavailable):
        patience.pause(Lost("terminated"))


def test_a_mark_does_not_wait_for_a_locked_row() -> None:
    with pytest.raises(LedgerUnavailable):
        Patience(PLACE, timedelta(seconds=1), once=True).pause(Again("lock timeout"))
