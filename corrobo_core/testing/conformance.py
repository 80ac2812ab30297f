"""The suite that every ledger passes. It needs pytest and nothing else.

A ledger of your own is checked like this::

    class TestMyLedger(SharedLedgerConformance):
        @pytest.fixture
        def another(self, tmp_path):
            return lambda namespace="default": MyLedger(tmp_path / "store", namespace=namespace)

        @pytest.fixture
        def ledger(self, another):
            ledger = another()
            ledger.migrate()
            return ledger

Every test runs twice: through ``perform``, and through ``perform_async`` on one event loop. The suite enters and
leaves the ledgers itself. `LedgerConformance` alone is for a ledger that one process keeps for itself.

Source: semantics section 6.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from corrobo_core.clocks import stopwatch
from corrobo_core.commands import Claim, Holder, KeepLate, Load, Open, Record, Refused, Written
from corrobo_core.frozen import evolve
from corrobo_core.records import OperationKey, Outcome
from corrobo_core.testing._drivers import Driver
from corrobo_core.testing._operations import filled, new_nonce, pass_of, recorded, reserving, unsent
from corrobo_core.testing._suite import Asking, Suite

__all__ = ["LedgerConformance"]

_RACERS = 8


class LedgerConformance(Suite):
    """What holds for every ledger. Override the fixture ``ledger``."""

    # -- open -------------------------------------------------------------------------------------------------

    def test_open_inserts_a_reserved_attempt_started_by_the_ledgers_clock(self, asking: Asking) -> None:
        """L1, C4."""
        operation = reserving(unsent())
        before = asking.load(operation).reading.now
        asking.ledger.pass_started(pass_of(operation))
        opened = asking.open(operation)
        after = asking.load(operation).reading.now

        assert opened.mine
        assert opened.holder is Holder.RUNNING
        assert opened.operation.version == 1
        assert opened.operation.owner is not None
        started = opened.operation.latest.started
        assert started is not None
        assert before <= started <= opened.reading.now <= after
        as_asked = evolve(operation.latest, started=started)
        assert opened.operation == evolve(operation, version=1, owner=opened.operation.owner, attempts=(as_asked,))

    def test_open_without_an_attempt_reserves_nothing(self, asking: Asking) -> None:
        """L1: a record without an attempt means never sent."""
        opened = asking.open(operation := unsent())
        assert opened.mine
        assert opened.holder is Holder.NOBODY
        assert opened.operation == evolve(operation, version=1)

    def test_open_returns_what_is_there_and_changes_nothing(self, asking: Asking) -> None:
        """C1."""
        first = asking.open(operation := reserving(unsent()))
        other = evolve(operation, nonce=new_nonce(), attempts=())
        second = asking.open(other)
        assert not second.mine
        assert second.operation == first.operation
        assert asking.stored(operation) == first.operation

    def test_open_again_after_a_lost_reply_finds_its_own_row(self, asking: Asking) -> None:
        """C2."""
        first = asking.open(operation := reserving(unsent()))
        again = asking.open(operation)
        assert again.mine
        assert again.operation == first.operation

    def test_open_shows_another_operation_type_under_the_same_id(self, asking: Asking) -> None:
        """I1: the caller refuses it."""
        asking.open(operation := unsent(type="payments/refund"))
        other = asking.open(unsent(operation.key.operation_id, type="payments/charge"))
        assert not other.mine
        assert other.operation.key == operation.key

    def test_open_shows_another_intent_under_the_same_id(self, asking: Asking) -> None:
        """I1: the caller refuses it."""
        asking.open(operation := unsent())
        other = asking.open(evolve(operation, intent='{"b":2}', fingerprint="v1:sha256:0", nonce=new_nonce()))
        assert not other.mine
        assert (other.operation.intent, other.operation.fingerprint) == (operation.intent, operation.fingerprint)

    def test_of_racing_opens_one_is_mine(self, driver: Driver, asking: Asking) -> None:
        """C1."""
        operation = unsent()
        racing = [Open(reserving(evolve(operation))) for _ in range(_RACERS)]
        replies = driver.ask_at_once([(asking.ledger, command) for command in racing])
        winner = [c.operation.nonce for c, reply in zip(racing, replies, strict=True) if reply.mine]
        assert len(winner) == 1
        assert {reply.operation.nonce for reply in replies} == set(winner)

    # -- identity ---------------------------------------------------------------------------------------------

    def test_namespaces_never_meet(self, asking: Asking) -> None:
        """C8."""
        here = asking.open(unsent("the same id"))
        there = asking.open(unsent("the same id", namespace="elsewhere"))
        assert here.mine
        assert there.mine
        asking.written(asking.record(reserving(there.operation)))
        assert asking.stored(here.operation) == here.operation

    @pytest.mark.parametrize(
        "operation_id",
        [
            "x" * 512,
            "Ω" * 512,
            "order/1?a=b#c",
            " spaces ",
            "per%cent %s",
            "o'quote\"",
            "new\nline",
            "🧾 e\u0301 é",
        ],
        ids=["long", "long-unicode", "url", "spaces", "percent", "quotes", "newline", "unicode"],
    )
    def test_ids_are_kept_exactly(self, asking: Asking, operation_id: str) -> None:
        """I4: Unicode is never normalised."""
        assert asking.open(operation := unsent(operation_id)).mine
        assert asking.stored(operation).key == operation.key

    def test_ids_that_only_look_alike_are_different(self, asking: Asking) -> None:
        """I1."""
        ids = ["A", "a", "a ", " a", "é", "e\u0301", "1", "01", "1.0"]
        assert all(asking.open(unsent(operation_id)).mine for operation_id in ids)

    def test_the_idempotency_key_is_one_for_each_operation(self, asking: Asking) -> None:
        """I5."""
        keys = [
            OperationKey(namespace, operation_id, type)
            for namespace in ("default", "other")
            for operation_id in ("1", "2")
            for type in ("refund", "charge")
        ]
        asking.load(keys[0])
        made = [asking.ledger.idempotency_key(key) for key in keys]
        assert len(set(made)) == len(keys)
        assert made == [asking.ledger.idempotency_key(key) for key in keys]
        assert all(re.fullmatch("[0-9a-f]{64}", key) for key in made)

    # -- load -------------------------------------------------------------------------------------------------

    def test_load_of_an_unknown_operation_finds_nothing_and_makes_nothing(self, asking: Asking) -> None:
        """L8."""
        operation = unsent()
        for _ in range(2):
            loaded = asking.load(operation)
            assert loaded.operation is None
            assert loaded.holder is Holder.NOBODY

    def test_everything_stored_reads_back_equal(self, asking: Asking) -> None:
        """T4, O7."""
        opened = asking.open(reserving(unsent()))
        written = asking.written(asking.record(filled(opened.operation)))
        assert written == evolve(filled(opened.operation), version=2, nonce=written.nonce)
        assert asking.stored(written) == written
        assert asking.stored(written) == written  # reading writes nothing

    def test_a_large_record_reads_back_equal(self, asking: Asking) -> None:
        """I4, T4: an intent and an effect of about 1 MiB each."""
        intent = '{"text":"' + "ü" * 500_000 + '"}'
        opened = asking.open(operation := evolve(unsent(), intent=intent))
        effect = {"text": "\u2603\\" * 150_000}
        written = asking.written(asking.record(evolve(opened.operation, nonce=new_nonce(), effect=effect)))
        assert asking.stored(written) == evolve(operation, nonce=written.nonce, version=2, effect=effect)

    # -- record -----------------------------------------------------------------------------------------------

    def test_record_stores_and_counts_the_version(self, asking: Asking) -> None:
        """C2."""
        opened = asking.open(reserving(unsent()))
        done = recorded(opened.operation)
        reply = asking.record(done)
        assert asking.written(reply) == evolve(done, version=2)
        assert reply.reading.now >= opened.reading.now
        assert asking.load(done).holder is Holder.NOBODY
        assert asking.stored(done) == evolve(done, version=2)

    def test_record_of_another_version_is_refused_and_changes_nothing(self, asking: Asking) -> None:
        """C2."""
        opened = asking.open(reserving(unsent()))
        current = asking.written(asking.record(recorded(opened.operation)))
        for version in (0, 1, 3):
            reply = asking.record(evolve(current, version=version, nonce=new_nonce(), explanation="overwritten"))
            assert isinstance(reply, Refused)
            assert reply.reading.now >= opened.reading.now
        assert asking.stored(current) == current

    def test_record_again_after_a_lost_reply_is_refused_and_its_nonce_tells(self, asking: Asking) -> None:
        """C2."""
        opened = asking.open(reserving(unsent()))
        done = recorded(opened.operation)
        asking.written(asking.record(done))
        assert isinstance(asking.record(done), Refused)
        assert asking.stored(done).nonce == done.nonce

    def test_record_of_an_unknown_operation_is_refused(self, asking: Asking) -> None:
        """C2."""
        assert isinstance(asking.record(evolve(unsent(), version=1)), Refused)
        assert isinstance(asking.claim(evolve(reserving(unsent()), version=1)), Refused)

    def test_record_leaves_the_start_of_the_attempt_as_it_was(self, asking: Asking) -> None:
        """D5."""
        opened = asking.open(reserving(unsent()))
        asking.written(asking.record(evolve(opened.operation, nonce=new_nonce(), looks=1)))
        assert asking.stored(opened.operation).latest == opened.operation.latest

    def test_record_can_keep_the_attempt_reserved_for_its_owner(self, asking: Asking) -> None:
        """C5: a look at an attempt that still runs leaves it with its owner."""
        asking.ledger.pass_started(pass_of(operation := reserving(unsent())))
        opened = asking.open(operation)
        seen = asking.written(asking.record(evolve(opened.operation, nonce=new_nonce(), looks=1)))
        assert seen.owner == opened.operation.owner
        assert asking.load(operation).holder is Holder.RUNNING

    def test_of_racing_records_one_is_written(self, driver: Driver, asking: Asking) -> None:
        """C2."""
        opened = asking.open(unsent())
        racing = [Record(evolve(opened.operation, nonce=new_nonce(), explanation=str(n))) for n in range(_RACERS)]
        replies = driver.ask_at_once([(asking.ledger, command) for command in racing])
        (written,) = [reply for reply in replies if isinstance(reply, Written)]
        assert asking.stored(opened.operation) == written.operation

    # -- claim ------------------------------------------------------------------------------------------------

    def test_claim_reserves_one_more_attempt(self, asking: Asking) -> None:
        """C3."""
        opened = asking.open(reserving(unsent()))
        first = asking.written(asking.record(recorded(opened.operation)))
        again = reserving(first)
        asking.ledger.pass_started(pass_of(again))
        before = asking.load(first).reading.now
        reply = asking.claim(again)
        claimed = asking.written(reply)

        assert claimed.version == 3
        assert claimed.owner == opened.operation.owner
        assert claimed.nonce == again.nonce
        assert claimed.attempts[0] == first.attempts[0]
        started = claimed.latest.started
        assert started is not None
        assert before <= started <= reply.reading.now
        assert asking.stored(claimed) == claimed
        assert asking.load(claimed).holder is Holder.RUNNING

    def test_claim_of_a_first_attempt(self, asking: Asking) -> None:
        """C3: an operation that asked its hooks before."""
        opened = asking.open(unsent())
        claimed = asking.written(asking.claim(reserving(opened.operation)))
        assert claimed.latest.started is not None
        assert asking.stored(claimed) == claimed

    def test_claim_of_another_version_is_refused_and_changes_nothing(self, asking: Asking) -> None:
        """C2, C3."""
        opened = asking.open(unsent())
        current = asking.written(asking.record(evolve(opened.operation, nonce=new_nonce())))
        assert isinstance(asking.claim(reserving(opened.operation)), Refused)
        assert asking.stored(current) == current

    def test_of_racing_claims_one_is_written(self, driver: Driver, asking: Asking) -> None:
        """C1, C3."""
        opened = asking.open(unsent())
        racing = [Claim(reserving(opened.operation)) for _ in range(_RACERS)]
        replies = driver.ask_at_once([(asking.ledger, command) for command in racing])
        (written,) = [reply for reply in replies if isinstance(reply, Written)]
        assert asking.stored(opened.operation) == written.operation

    # -- late evidence ----------------------------------------------------------------------------------------

    def test_late_evidence_decides_nothing(self, driver: Driver, asking: Asking) -> None:
        """C2."""
        opened = asking.open(reserving(unsent()))
        late = KeepLate(opened.operation.key, 1, opened.operation.nonce, {"outcome": "RESPONDED", "text": "ü\\"})
        assert driver.ask(asking.ledger, late) is None
        assert asking.stored(opened.operation) == opened.operation

    # -- owners, inside one process ---------------------------------------------------------------------------

    def test_an_attempt_whose_pass_has_ended_is_gone(self, asking: Asking) -> None:
        """C4."""
        operation = reserving(unsent())
        asking.ledger.pass_started(pass_of(operation))
        asking.open(operation)
        assert asking.load(operation).holder is Holder.RUNNING
        asking.ledger.pass_ended(pass_of(operation))
        assert asking.load(operation).holder is Holder.GONE
        assert asking.open(evolve(operation, nonce=new_nonce())).holder is Holder.GONE

    def test_another_pass_of_the_process_does_not_hold_it(self, asking: Asking) -> None:
        """C4: also not one whose name begins alike."""
        operation = reserving(unsent(), "abc.1")
        for other in ("ab", "abcd", "abc.1", ""):
            asking.ledger.pass_started(other)
        asking.open(operation)
        assert asking.load(operation).holder is Holder.GONE

    # -- abandoned attempts -----------------------------------------------------------------------------------

    def test_an_abandoned_attempt_is_held_by_nobody(self, asking: Asking) -> None:
        """L7: marked at the latest by the command after the next one."""
        asking.ledger.pass_started(pass_of(operation := reserving(unsent())))
        opened = asking.open(operation)
        asking.ledger.abandon(operation.key, operation.nonce)
        asking.load(operation)
        loaded = asking.load(operation)
        assert loaded.operation is not None
        assert loaded.holder is Holder.NOBODY
        assert loaded.operation.version == 2
        given_up = loaded.operation.latest.abandoned
        assert given_up is not None
        assert opened.reading.now <= given_up <= loaded.reading.now
        assert evolve(loaded.operation.latest, abandoned=None) == opened.operation.latest

    def test_an_abandoned_attempt_can_be_superseded_and_not_recorded_unseen(self, asking: Asking) -> None:
        """L7, C2: whoever still comes with a record of it meets the fence."""
        opened = asking.open(reserving(unsent()))
        asking.ledger.abandon(opened.operation.key, opened.operation.nonce)
        asking.load(opened.operation)
        assert isinstance(asking.record(recorded(opened.operation)), Refused)
        asking.written(asking.claim(reserving(asking.stored(opened.operation))))

    def test_abandoning_marks_no_attempt_that_has_an_outcome(self, asking: Asking) -> None:
        """L7."""
        opened = asking.open(reserving(unsent()))
        for owner in (opened.operation.owner, None):
            made = evolve(recorded(asking.stored(opened.operation), Outcome.RESPONDED), owner=owner)
            done = asking.written(asking.record(made))
            asking.ledger.abandon(done.key, opened.operation.nonce)
            asking.load(done)
            assert asking.stored(done) == done

    def test_abandoning_marks_no_later_attempt(self, asking: Asking) -> None:
        """L7."""
        opened = asking.open(reserving(unsent()))
        first = asking.written(asking.record(recorded(opened.operation)))
        second = asking.written(asking.claim(reserving(first)))
        asking.ledger.abandon(second.key, opened.operation.nonce)
        asking.load(second)
        assert asking.stored(second) == second

    def test_abandoning_what_was_never_reserved_does_no_harm(self, asking: Asking) -> None:
        """L7: the reservation itself may not have happened."""
        asking.ledger.abandon((operation := unsent()).key, new_nonce())
        asking.load(operation)
        assert asking.load(operation).operation is None

    # -- readings ---------------------------------------------------------------------------------------------

    def test_every_reply_carries_a_reading_tied_to_the_stopwatch(self, driver: Driver, asking: Asking) -> None:
        """D4a, D5."""
        operation = reserving(unsent())
        opened = asking.open(operation).operation
        commands: list[Any] = [
            Open(reserving(unsent())),
            Open(operation),
            Load(operation.key),
            Load(unsent().key),
            Record(evolve(opened, nonce=new_nonce())),
            Record(opened),
            Claim(reserving(evolve(opened, version=2))),
            Claim(opened),
        ]
        for command in commands:
            before = stopwatch()
            reading = driver.ask(asking.ledger, command).reading
            assert before <= reading.sent <= reading.received <= stopwatch()
            assert reading.now.utcoffset() == timedelta()

    # -- the store --------------------------------------------------------------------------------------------

    def test_migrating_again_keeps_everything(self, asking: Asking) -> None:
        """C12."""
        opened = asking.open(reserving(unsent()))
        key = asking.ledger.idempotency_key(opened.operation.key)
        asking.ledger.migrate()
        assert asking.stored(opened.operation) == opened.operation
        assert asking.ledger.idempotency_key(opened.operation.key) == key

    def test_the_namespace_is_the_one_given(self, asking: Asking) -> None:
        """C8."""
        assert asking.ledger.namespace == "default"
