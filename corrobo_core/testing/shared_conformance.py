"""The part of the suite that is about ledgers shared by several processes.

Source: semantics section 6.
"""

from __future__ import annotations

import pytest

from corrobo_core.commands import Claim, Holder, Open, Written
from corrobo_core.frozen import evolve
from corrobo_core.records import Outcome
from corrobo_core.testing._drivers import AnotherLedger, Driver
from corrobo_core.testing._operations import filled, new_nonce, pass_of, recorded, reserving, unsent
from corrobo_core.testing._suite import Asking
from corrobo_core.testing.conformance import LedgerConformance

__all__ = ["SharedLedgerConformance"]


class SharedLedgerConformance(LedgerConformance):
    """What also holds for a ledger that several processes share. Override the fixtures ``ledger`` and ``another``.

    Two ledger objects on one store stand for two processes: each has its own owner, and closing one ends its
    owner as the end of its process would.
    """

    @pytest.fixture
    def another(self) -> AnotherLedger:
        """To be overridden: makes more ledgers on the same store."""
        raise NotImplementedError("override the fixture `another`")

    @pytest.fixture
    def other(self, driver: Driver, asking: Asking, another: AnotherLedger) -> Asking:
        """A second ledger on the same store, open."""
        ledger = another()
        driver.enter(ledger)
        return Asking(driver, ledger)

    def test_what_one_writes_the_other_reads(self, asking: Asking, other: Asking) -> None:
        """L1: at once, since it is committed when the reply is there."""
        opened = asking.open(reserving(unsent()))
        assert other.stored(opened.operation) == opened.operation
        done = other.written(other.record(filled(opened.operation)))
        assert asking.stored(done) == done

    def test_both_make_the_same_idempotency_key(self, asking: Asking, other: Asking) -> None:
        """I5."""
        key = unsent().key
        asking.load(key)
        other.load(key)
        assert asking.ledger.idempotency_key(key) == other.ledger.idempotency_key(key)

    def test_of_opens_that_race_one_is_mine(self, driver: Driver, asking: Asking, other: Asking) -> None:
        """C1."""
        for _ in range(20):
            operation = unsent()
            racing = [
                (asker.ledger, Open(reserving(evolve(operation)))) for asker in (asking, other) for _ in range(2)
            ]
            replies = driver.ask_at_once(racing)
            assert [reply.mine for reply in replies].count(True) == 1
            assert len({reply.operation.nonce for reply in replies}) == 1

    def test_of_claims_that_race_one_is_written(self, driver: Driver, asking: Asking, other: Asking) -> None:
        """C3."""
        for _ in range(20):
            opened = asking.open(unsent())
            racing = [(a.ledger, Claim(reserving(opened.operation))) for a in (asking, other) for _ in range(2)]
            (written,) = [r for r in driver.ask_at_once(racing) if isinstance(r, Written)]
            assert other.stored(opened.operation) == written.operation

    def test_an_attempt_of_a_living_owner_is_running(self, asking: Asking, other: Asking) -> None:
        """C4: which of its passes run, only its own process knows."""
        opened = asking.open(reserving(unsent()))
        assert other.load(opened.operation).holder is Holder.RUNNING
        assert other.open(evolve(opened.operation, nonce=new_nonce())).holder is Holder.RUNNING

    def test_an_attempt_of_an_ended_owner_is_gone_at_once(
        self, driver: Driver, asking: Asking, other: Asking
    ) -> None:
        """C4."""
        opened = other.open(reserving(unsent()))
        driver.leave(other.ledger)
        loaded = asking.load_when_gone(opened.operation)
        assert loaded.holder is Holder.GONE
        assert loaded.operation == opened.operation
        assert asking.open(evolve(opened.operation, nonce=new_nonce())).holder is Holder.GONE

    def test_taking_over_makes_the_new_owner_the_holder(
        self, driver: Driver, asking: Asking, other: Asking
    ) -> None:
        """C3, C4."""
        opened = other.open(reserving(unsent()))
        driver.leave(other.ledger)
        again = reserving(recorded(opened.operation, Outcome.UNRECORDED))
        asking.ledger.pass_started(pass_of(again))
        claimed = asking.written(asking.claim(again))
        assert claimed.owner not in (None, opened.operation.owner)
        assert asking.load(claimed).holder is Holder.RUNNING

    def test_an_abandoned_attempt_is_free_for_others(self, asking: Asking, other: Asking) -> None:
        """L7: while its owner lives on."""
        opened = asking.open(reserving(unsent()))
        asking.ledger.abandon(opened.operation.key, opened.operation.nonce)
        asking.load(unsent())
        assert other.load(opened.operation).holder is Holder.NOBODY

    def test_closing_marks_what_was_abandoned(self, driver: Driver, asking: Asking, other: Asking) -> None:
        """L7."""
        opened = other.open(reserving(unsent()))
        other.ledger.abandon(opened.operation.key, opened.operation.nonce)
        driver.leave(other.ledger)
        loaded = asking.load(opened.operation)
        assert loaded.holder is Holder.NOBODY
        assert loaded.operation is not None
        assert loaded.operation.latest.abandoned is not None

    def test_nobody_abandons_the_attempt_of_another_owner(self, asking: Asking, other: Asking) -> None:
        """L7, C4."""
        opened = asking.open(reserving(unsent()))
        other.ledger.abandon(opened.operation.key, opened.operation.nonce)
        other.load(opened.operation)
        assert other.stored(opened.operation) == opened.operation
        assert other.load(opened.operation).holder is Holder.RUNNING

    def test_a_closed_ledger_opens_again_as_another_owner(
        self, driver: Driver, asking: Asking, other: Asking
    ) -> None:
        """C11."""
        opened = other.open(reserving(unsent()))
        driver.leave(other.ledger)
        driver.enter(other.ledger)
        assert other.load_when_gone(opened.operation).holder is Holder.GONE
        later = other.open(reserving(unsent()))
        assert later.operation.owner not in (None, opened.operation.owner)
        assert asking.load(later.operation).holder is Holder.RUNNING

    def test_another_namespace_is_another_ledger(
        self, driver: Driver, asking: Asking, another: AnotherLedger
    ) -> None:
        """C8."""
        elsewhere = another("elsewhere")
        assert elsewhere.namespace == "elsewhere"
        driver.enter(elsewhere)
        here = asking.open(reserving(unsent("1")))
        there = Asking(driver, elsewhere).open(reserving(unsent("1", namespace="elsewhere")))
        assert here.mine
        assert there.mine
        assert here.operation.nonce != there.operation.nonce

    def test_an_entered_ledger_can_still_be_migrated(
        self, driver: Driver, asking: Asking, another: AnotherLedger
    ) -> None:
        """C12."""
        driver.enter(ledger := another())
        ledger.migrate()
        assert Asking(driver, ledger).open(unsent()).mine
