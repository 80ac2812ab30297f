"""What a hostile reader tried with people's decisions (semantics R2, R5, R8): lost, stale, or in vain."""

from __future__ import annotations

from datetime import timedelta

from corrobo_core import Attempt, Check, DecisionRefused, Disposition, NotSent, Observation, ReviewDesk
from corrobo_core.records import Reason
from tests.unit.harness import Clock, Harness
from tests.unit.world import WatchedLedger, World, failing

SYNC = Harness("sync")
SECOND = timedelta(seconds=1)


def blind(attempt: Attempt, reference: str) -> Observation[list[str]]:
    raise ConnectionError("the read is down")


def test_R8_an_attested_effect_is_not_forgotten_by_a_pass_that_only_looks(
    world: World, ledger: WatchedLedger, clock: Clock
) -> None:
    credit = SYNC.effect(world, execute=failing(TimeoutError()), observe=blind)
    asked = SYNC.run(ledger, credit)
    ReviewDesk(ledger).applied(credit, "r1", 7, token=asked.token, reviewer="ann")
    looked = SYNC.observe(ledger, credit, observe_now=True)
    assert looked.disposition is Disposition.COMPLETE
    done = SYNC.run(ledger, credit)
    assert (done.disposition, done.effect) == (Disposition.COMPLETE, 7)


def test_R8_a_rejection_is_not_forgotten_by_a_pass_that_only_looks(
    world: World, ledger: WatchedLedger, clock: Clock
) -> None:
    answers = [Check.proceed(), Check.requires_review("is it still wanted?"), Check.proceed()]
    credit = SYNC.effect(
        world, execute=failing(TimeoutError()), revalidate=lambda attempt, reference: answers.pop(0)
    )
    SYNC.run(ledger, credit)
    clock.pass_by(11)
    asked = SYNC.run(ledger, credit)
    assert asked.disposition is Disposition.REVIEW
    ReviewDesk(ledger).rejected("r1", token=asked.token, reviewer="ann")
    SYNC.observe(ledger, credit, observe_now=True)
    end = SYNC.run(ledger, credit)
    assert (end.disposition, end.reason) == (Disposition.REPLAN, Reason.REJECTED.value)
    assert len(end.attempts) == 1, "a rejection closes without ever executing again"


def test_R2_a_review_keeps_its_token_while_passes_look_again(
    world: World, ledger: WatchedLedger, clock: Clock
) -> None:
    answers = [Check.proceed()]
    credit = SYNC.effect(
        world,
        execute=failing(TimeoutError()),
        revalidate=lambda attempt, reference: answers.pop() if answers else Check.requires_review("again?"),
    )
    SYNC.run(ledger, credit)
    clock.pass_by(11)
    asked = SYNC.run(ledger, credit)
    clock.pass_by(1)
    again = SYNC.run(ledger, credit)
    assert again.disposition is Disposition.REVIEW
    assert again.token == asked.token
    SYNC.observe(ledger, credit, observe_now=True)
    ReviewDesk(ledger).approved("r1", token=asked.token, reviewer="ann")
    assert len(SYNC.run(ledger, credit).attempts) == 2


def test_R2_a_review_that_nobody_needs_any_more_cannot_be_rejected_while_the_attempt_runs(
    world: World, ledger: WatchedLedger, clock: Clock
) -> None:
    answers = [Check.requires_review("is it wanted?"), Check.proceed()]
    refused: list[str] = []

    def execute(attempt: Attempt, reference: str) -> int:
        try:
            ReviewDesk(ledger).rejected("r1", token=asked.token, reviewer="ann")
        except DecisionRefused as error:
            refused.append(str(error))
        SYNC.run(ledger, credit, observe_now=True)
        return world.credit(reference)

    credit = SYNC.effect(world, execute=execute, revalidate=lambda attempt, reference: answers.pop(0))
    asked = SYNC.run(ledger, credit)
    end = SYNC.run(ledger, credit)
    assert end.disposition is Disposition.COMPLETE
    assert "NOT_AWAITING_DECISION" in refused[0]


def test_R8_a_grant_counts_although_the_key_may_have_expired(
    world: World, ledger: WatchedLedger, clock: Clock
) -> None:
    fails = [True]

    def execute(attempt: Attempt, reference: str) -> int:
        if fails.pop() if fails else False:
            raise TimeoutError
        return world.credit(reference)

    credit = SYNC.effect(
        world,
        execute=execute,
        in_flight_window=timedelta(),
        key_retention=timedelta(hours=1),
        execute_timeout=SECOND,
        observe=lambda attempt, reference: blind(attempt, reference) if not sees else world.find(reference),
    )
    sees: list[bool] = []
    SYNC.run(ledger, credit)
    sees.append(True)
    clock.pass_by(7200)
    asked = SYNC.run(ledger, credit, observe_now=True)
    assert asked.reason == Reason.KEY_EXPIRED.value
    ReviewDesk(ledger).not_applied("r1", token=asked.token, reviewer="ann")
    end = SYNC.run(ledger, credit)
    assert world.sent == ["r1"], "the one attempt that the person granted"
    assert end.disposition is Disposition.COMPLETE


def test_R8_what_lands_after_the_person_has_looked_is_not_sent_again_by_a_pass_that_cannot_see_it(
    world: World, ledger: WatchedLedger, clock: Clock
) -> None:
    credit = SYNC.effect(world, execute=failing(TimeoutError()), observe=blind, in_flight_window=10 * SECOND)
    asked = SYNC.run(ledger, credit)
    clock.pass_by(1)
    ReviewDesk(ledger).not_applied("r1", token=asked.token, reviewer="ann")
    world.credit("r1")  # the first request lands, within its window
    assert SYNC.run(ledger, credit, observe_now=True).reason == Reason.SETTLING.value
    clock.pass_by(10)
    again = SYNC.run(ledger, credit)
    assert (again.disposition, again.reason) == (Disposition.INVESTIGATE, Reason.ATTESTED_TOO_EARLY.value)
    assert again.token != asked.token, "the person is asked again"
    assert len(again.attempts) == 1
    ReviewDesk(ledger).applied(credit, "r1", 1, token=again.token, reviewer="ann")
    assert SYNC.run(ledger, credit).disposition is Disposition.COMPLETE
    assert world.sent == ["r1"]


def test_R8_the_word_of_a_person_who_looked_late_enough_counts_without_a_read(
    world: World, ledger: WatchedLedger, clock: Clock
) -> None:
    ends: list[BaseException] = [TimeoutError()]

    def execute(attempt: Attempt, reference: str) -> int:
        if ends:
            raise ends.pop()
        return world.credit(reference)

    credit = SYNC.effect(world, execute=execute, observe=blind, in_flight_window=10 * SECOND)
    asked = SYNC.run(ledger, credit)
    clock.pass_by(11)
    ReviewDesk(ledger).not_applied("r1", token=asked.token, reviewer="ann")
    assert len(SYNC.run(ledger, credit).attempts) == 2
    assert world.sent == ["r1"]


def test_R8_an_attempt_that_was_not_sent_uses_up_no_grant(
    world: World, ledger: WatchedLedger, clock: Clock
) -> None:
    ends: list[BaseException | None] = [TimeoutError(), NotSent(ConnectionRefusedError()), None]

    def execute(attempt: Attempt, reference: str) -> int:
        error = ends.pop(0)
        if error:
            raise error
        return world.credit(reference)

    credit = SYNC.effect(world, execute=execute, in_flight_window=None)
    asked = SYNC.run(ledger, credit)
    assert asked.reason == Reason.IN_FLIGHT_NOT_RULED_OUT.value
    ReviewDesk(ledger).not_applied("r1", token=asked.token, reviewer="ann")
    refused = SYNC.run(ledger, credit)
    assert refused.disposition is Disposition.RETRY
    assert refused.retry_at > refused.now, "the provider could not be reached: not at once"
    clock.pass_by(5)
    assert SYNC.run(ledger, credit).disposition is Disposition.COMPLETE
    assert world.sent == ["r1"]


def test_R5_an_approval_of_tomorrow_ages_from_today(world: World, ledger: WatchedLedger, clock: Clock) -> None:
    credit = SYNC.effect(
        world,
        authorize=lambda attempt, reference: Check.requires_review("large"),
        max_approval_age=timedelta(hours=1),
    )
    asked = SYNC.run(ledger, credit)
    later = clock.now.replace(year=9999, month=12, day=31, hour=23, minute=59)
    ReviewDesk(ledger).approved("r1", token=asked.token, reviewer="ann", decided_at=later)
    clock.pass_by(3601)
    end = SYNC.run(ledger, credit)
    assert end.disposition is Disposition.REVIEW
    assert world.sent == []
