"""Reviews and investigations on every ledger: semantics section 8, effects counted at the outside."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from corrobo_core import (
    AsyncReviewDesk,
    Attempt,
    Check,
    DecisionRefused,
    Disposition,
    Effect,
    EffectRunner,
    Evidence,
    IdentityError,
    IntentError,
    InvestigateError,
    MemoryLedger,
    Observation,
    PostgresLedger,
    ReplanError,
    ReviewDesk,
    ReviewError,
    SqliteLedger,
    Verdict,
    effect,
)
from corrobo_core.ledgers.ports import Ledger


class Clock:
    """The ledger's clock, moved by hand."""

    unit = timedelta(seconds=1)

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def units(self, count: float) -> timedelta:
        return count * self.unit

    def advance(self, count: float) -> None:
        self.now += self.units(count)


class RealClock(Clock):
    """This host's clock, and really waiting, with shorter units."""

    unit = timedelta(milliseconds=25)

    @property
    def now(self) -> datetime:  # type: ignore[override]
        return datetime.now(UTC)

    def __init__(self) -> None:
        pass

    def advance(self, count: float) -> None:
        time.sleep(self.units(count).total_seconds())


class World:
    """The outside system, and what goes wrong there."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.effects: list[str] = []
        self.lost = False
        self.reads_fail = False
        self.drops_requests = False


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def clock(kind: str) -> Clock:
    return Clock() if kind == "memory" else RealClock()


@pytest.fixture
def world(clock: Clock) -> World:
    return World(clock)


@pytest.fixture
def ledger(kind: str, clock: Clock, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Ledger]:
    if kind == "memory":
        yield MemoryLedger(clock=clock)
        return
    database: str = request.getfixturevalue("postgres_dsn") if kind == "postgres" else str(tmp_path / "effects.db")
    made = SqliteLedger(database) if kind == "sqlite" else PostgresLedger(database)
    with made as ledger:
        ledger.migrate()
        yield ledger


def refund_effect(
    world: World,
    *,
    authorize: Callable[[Attempt], Check] | None = None,
    revalidate: Callable[[Attempt], Check] | None = None,
    **declared: Any,
) -> Effect[..., str]:
    declared.setdefault("in_flight_window", world.clock.units(10))

    @effect("tests/refund", identity=lambda refund_id, **_: refund_id, **declared)
    def refund(attempt: Attempt, refund_id: str, amount: int = 5) -> str:
        if not world.drops_requests:
            world.effects.append(refund_id)
        if world.lost or world.drops_requests:
            raise TimeoutError
        return refund_id

    @refund.observe
    def seen(attempt: Attempt) -> Observation[list[str]]:
        if world.reads_fail:
            raise ConnectionError("the read side is down")
        found = [e for e in world.effects if e == attempt.operation_id]
        return Observation.of(found, source="world", proves_absence=True)

    @seen.reconcile
    def judge(attempt: Attempt, found: list[str]) -> Verdict[str]:
        return Verdict.applied("THERE", effect=found[0]) if found else Verdict.not_applied("NOTHING")

    if authorize is not None:
        refund.authorize(authorize)
    if revalidate is not None:
        refund.revalidate(revalidate)
    return refund


def needs_review(attempt: Attempt) -> Check:
    return Check.requires_review("above the limit")


def token_of(ledger: Ledger, operation_id: str = "rf_1") -> str:
    shown = ReviewDesk(ledger).show(operation_id)
    assert shown is not None
    assert shown.token is not None
    return shown.token


# -- reviews --------------------------------------------------------------------------------------------------


def test_r1_r2_nothing_is_sent_before_the_approval_and_once_after_it(ledger: Ledger, world: World) -> None:
    refund = refund_effect(world, authorize=needs_review)
    runner = EffectRunner(ledger)

    with pytest.raises(ReviewError) as waiting:
        runner.run(refund, "rf_1").unwrap()
    assert (waiting.value.token, world.effects) == (token_of(ledger), [])
    again = runner.run(refund, "rf_1")
    assert again.token == token_of(ledger), "an open episode keeps its token (R2)"

    ReviewDesk(ledger).approved("rf_1", token=token_of(ledger), reviewer="ann")
    assert runner.run(refund, "rf_1").unwrap() == "rf_1"
    assert runner.run(refund, "rf_1").unwrap() == "rf_1"
    assert world.effects == ["rf_1"]


def test_r5_the_approval_in_force_is_copied_onto_the_attempt(ledger: Ledger, world: World) -> None:
    refund = refund_effect(world, authorize=needs_review)
    token = EffectRunner(ledger).run(refund, "rf_1").token
    assert token is not None
    ReviewDesk(ledger).approved("rf_1", token=token, reviewer="ann")
    attempt = EffectRunner(ledger).run(refund, "rf_1").attempts[-1]
    assert isinstance(attempt.approval, dict)
    assert (attempt.approval["token"], attempt.approval["reviewer"]) == (token, "ann")


def test_r8_a_rejection_closes_without_ever_executing(ledger: Ledger, world: World) -> None:
    refund = refund_effect(world, authorize=needs_review)
    EffectRunner(ledger).run(refund, "rf_1")
    ReviewDesk(ledger).rejected("rf_1", token=token_of(ledger), reviewer="ann")
    for _ in range(3):
        with pytest.raises(ReplanError) as closed:
            EffectRunner(ledger).run(refund, "rf_1").unwrap()
        assert closed.value.reason == "REJECTED"
    assert world.effects == []


@pytest.mark.parametrize("limit", ["expires_at", "max_approval_age"])
def test_r5_a_lapsed_approval_goes_back_to_review(ledger: Ledger, world: World, clock: Clock, limit: str) -> None:
    declared: dict[str, Any] = {"max_approval_age": clock.units(20)} if limit == "max_approval_age" else {}
    refund = refund_effect(world, authorize=needs_review, **declared)
    EffectRunner(ledger).run(refund, "rf_1")
    first = token_of(ledger)
    expires = clock.now + clock.units(20) if limit == "expires_at" else None
    ReviewDesk(ledger).approved("rf_1", token=first, reviewer="ann", expires_at=expires)
    clock.advance(20)

    lapsed = EffectRunner(ledger).run(refund, "rf_1")
    assert (lapsed.disposition, lapsed.reason) == (Disposition.REVIEW, "APPROVAL_LAPSED")
    assert lapsed.token not in (None, first)
    assert world.effects == []

    ReviewDesk(ledger).approved("rf_1", token=str(lapsed.token), reviewer="ann")
    assert EffectRunner(ledger).run(refund, "rf_1").unwrap() == "rf_1"


def test_r5_nobody_decides_after_the_decision_is_recorded(ledger: Ledger, world: World, clock: Clock) -> None:
    refund = refund_effect(world, authorize=needs_review)
    EffectRunner(ledger).run(refund, "rf_1")
    tomorrow = clock.now + timedelta(days=1)
    desk = ReviewDesk(ledger)
    recorded = desk.approved("rf_1", token=token_of(ledger), reviewer="ann", decided_at=tomorrow)
    assert recorded.decision.decided_at < tomorrow - timedelta(hours=23), "or its age would count from tomorrow"


def test_r5_expiry_is_tested_at_the_reading_the_attempt_starts_with(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    def slow(attempt: Attempt) -> Check:
        clock.advance(25)  # the approval lapses while revalidate looks
        return Check.proceed()

    refund = refund_effect(world, authorize=needs_review, revalidate=slow)
    EffectRunner(ledger).run(refund, "rf_1")
    ReviewDesk(ledger).approved(
        "rf_1", token=token_of(ledger), reviewer="ann", expires_at=clock.now + clock.units(20)
    )
    result = EffectRunner(ledger).run(refund, "rf_1")
    assert (result.disposition, result.reason) == (Disposition.REVIEW, "APPROVAL_LAPSED")
    assert world.effects == []


def test_r6_after_an_approval_an_earlier_attempt_is_observed_before_anything_executes(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    asks: list[int] = []

    def second_needs_review(attempt: Attempt) -> Check:
        asks.append(attempt.number)
        return Check.requires_review("a second attempt") if attempt.attempts else Check.proceed()

    refund = refund_effect(world, revalidate=second_needs_review)
    world.drops_requests = True
    EffectRunner(ledger).run(refund, "rf_1")
    clock.advance(11)
    assert EffectRunner(ledger).run(refund, "rf_1").disposition is Disposition.REVIEW
    ReviewDesk(ledger).approved("rf_1", token=token_of(ledger), reviewer="ann")
    world.effects.append("rf_1")  # somebody else made it meanwhile, or it landed after all
    world.drops_requests = False
    assert EffectRunner(ledger).run(refund, "rf_1").unwrap() == "rf_1"
    assert world.effects == ["rf_1"]


def test_an_approval_answers_revalidate_only_for_the_question_it_was_asked(ledger: Ledger, world: World) -> None:
    question = ["the price rose"]
    refund = refund_effect(world, revalidate=lambda attempt: Check.requires_review(question[0]))
    EffectRunner(ledger).run(refund, "rf_1")
    ReviewDesk(ledger).approved("rf_1", token=token_of(ledger), reviewer="ann")
    question[0] = "the price rose again"
    assert EffectRunner(ledger).run(refund, "rf_1").disposition is Disposition.REVIEW
    assert world.effects == []
    ReviewDesk(ledger).approved("rf_1", token=token_of(ledger), reviewer="ann")
    assert EffectRunner(ledger).run(refund, "rf_1").unwrap() == "rf_1"


def test_an_approval_can_be_revoked_until_an_attempt_uses_it(ledger: Ledger, world: World) -> None:
    refund = refund_effect(world, authorize=needs_review)
    EffectRunner(ledger).run(refund, "rf_1")
    desk, token = ReviewDesk(ledger), token_of(ledger)
    desk.approved("rf_1", token=token, reviewer="ann")
    desk.revoke("rf_1", token=token, reviewer="bob")
    again = EffectRunner(ledger).run(refund, "rf_1")
    assert again.disposition is Disposition.REVIEW
    assert world.effects == []

    desk.approved("rf_1", token=str(again.token), reviewer="ann")
    EffectRunner(ledger).run(refund, "rf_1").unwrap()
    with pytest.raises(DecisionRefused) as used:
        desk.revoke("rf_1", token=str(again.token), reviewer="bob")
    assert used.value.code == "ALREADY_USED"


# -- investigations -------------------------------------------------------------------------------------------


def investigated(ledger: Ledger, world: World, clock: Clock, **declared: Any) -> Effect[..., str]:
    """An operation whose response was lost and whose reads fail."""
    refund = refund_effect(world, **declared)
    world.reads_fail = True
    with pytest.raises(InvestigateError):
        EffectRunner(ledger).run(refund, "rf_1").unwrap()
    return refund


def test_r8_an_attested_applied_completes_with_the_persons_value(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    world.lost = True
    refund = investigated(ledger, world, clock)
    ReviewDesk(ledger).applied(refund, "rf_1", "rf_1", token=token_of(ledger), reviewer="ann")
    result = EffectRunner(ledger).run(refund, "rf_1")
    assert (result.unwrap(), result.evidence) == ("rf_1", Evidence.APPLIED)
    assert result.history.last[-1].source == "person:ann"
    assert world.effects == ["rf_1"]


def test_r3_an_attested_value_must_be_what_the_effect_returns(ledger: Ledger, world: World, clock: Clock) -> None:
    refund = investigated(ledger, world, clock)
    with pytest.raises(IntentError):
        ReviewDesk(ledger).applied(refund, "rf_1", 5, token=token_of(ledger), reviewer="ann")  # type: ignore[misc]
    assert token_of(ledger), "still waiting"


def test_r3_a_value_of_another_effect_is_not_attested(ledger: Ledger, world: World, clock: Clock) -> None:
    """It would fit that effect, and complete this operation with a value that nobody can read."""

    @effect("tests/payout", identity=lambda payout_id: payout_id)
    def payout(attempt: Attempt, payout_id: str) -> int:
        raise NotImplementedError

    payout.observe(lambda attempt: Observation.of(0, source="world", proves_absence=True)).reconcile(
        lambda attempt, found: Verdict.not_applied("NOTHING")
    )
    world.lost = True
    refund = investigated(ledger, world, clock)
    token = token_of(ledger)
    with pytest.raises(IntentError, match="tests/payout, and the operation is tests/refund"):
        ReviewDesk(ledger).applied(payout, "rf_1", 7, token=token, reviewer="ann")
    with pytest.raises(IntentError, match="tests/payout, and the operation is tests/refund"):
        asyncio.run(AsyncReviewDesk(ledger).applied(payout, "rf_1", 7, token=token, reviewer="ann"))
    ReviewDesk(ledger).applied(refund, "rf_1", "rf_1", token=token, reviewer="ann")
    assert EffectRunner(ledger).run(refund, "rf_1").unwrap() == "rf_1"


@pytest.mark.parametrize("declared", [{"in_flight_window": None}, {"max_attempts": 1}])
def test_r8_an_attested_not_applied_allows_one_more_attempt_and_reads_first(
    ledger: Ledger, world: World, clock: Clock, declared: dict[str, Any]
) -> None:
    world.drops_requests = True
    refund = investigated(ledger, world, clock, **declared)
    ReviewDesk(ledger).not_applied("rf_1", token=token_of(ledger), reviewer="ann")
    world.drops_requests = world.reads_fail = False
    if "max_attempts" in declared:  # a declared window is waited out all the same
        assert EffectRunner(ledger).run(refund, "rf_1").reason == "SETTLING"
        assert world.effects == []
        clock.advance(11)
    assert EffectRunner(ledger).run(refund, "rf_1").unwrap() == "rf_1"
    assert world.effects == ["rf_1"]


def test_r8_the_read_before_the_granted_attempt_finds_what_the_person_missed(
    ledger: Ledger, world: World, clock: Clock
) -> None:
    world.lost = True
    refund = investigated(ledger, world, clock, in_flight_window=None)
    ReviewDesk(ledger).not_applied("rf_1", token=token_of(ledger), reviewer="ann")
    world.reads_fail = False
    assert EffectRunner(ledger).run(refund, "rf_1").unwrap() == "rf_1"
    assert world.effects == ["rf_1"]


def test_r8_a_grant_is_for_one_attempt(ledger: Ledger, world: World, clock: Clock) -> None:
    world.drops_requests = True
    refund = investigated(ledger, world, clock, in_flight_window=None)
    ReviewDesk(ledger).not_applied("rf_1", token=token_of(ledger), reviewer="ann")
    results = [EffectRunner(ledger).observing_now().run(refund, "rf_1") for _ in range(3)]
    assert [len(result.attempts) for result in results] == [2, 2, 2]
    assert results[-1].disposition is Disposition.INVESTIGATE
    assert results[-1].token is not None


# -- refusals (R4) --------------------------------------------------------------------------------------------


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(DecisionRefused) as error:
        call()
    return error.value.code


def test_r4_each_refusal_has_its_code_and_records_nothing(ledger: Ledger, world: World, clock: Clock) -> None:
    refund = refund_effect(world, authorize=needs_review)
    EffectRunner(ledger).run(refund, "rf_1")
    desk, token = ReviewDesk(ledger), token_of(ledger)
    past = clock.now - timedelta(hours=1)

    assert refused(lambda: desk.approved("rf_2", token=token, reviewer="ann")) == "NOT_AWAITING_DECISION"
    assert refused(lambda: desk.approved("rf_1", token="other", reviewer="ann")) == "STALE_TOKEN"
    assert refused(lambda: desk.not_applied("rf_1", token=token, reviewer="ann")) == "NOT_AWAITING_DECISION"
    assert (
        refused(lambda: desk.approved("rf_1", token=token, reviewer="ann", decided_at=past))
        == "DECIDED_BEFORE_OPENED"
    )
    assert (
        refused(lambda: desk.approved("rf_1", token=token, reviewer="ann", intent_fingerprint="v1:sha256:00"))
        == "INTENT_MISMATCH"
    )
    assert refused(lambda: desk.approved("rf_1", token=token, reviewer="ann", expires_at=past)) == "ALREADY_EXPIRED"
    assert refused(lambda: desk.revoke("rf_1", token=token, reviewer="ann")) == "NOT_AWAITING_DECISION"
    assert EffectRunner(ledger).run(refund, "rf_1").disposition is Disposition.REVIEW
    assert world.effects == []

    first = desk.approved("rf_1", token=token, reviewer="ann")
    again = desk.approved("rf_1", token=token, reviewer="ann")
    assert (first.again, again.again, again.decision) == (False, True, first.decision)
    assert refused(lambda: desk.rejected("rf_1", token=token, reviewer="ann")) == "ALREADY_DECIDED"
    assert refused(lambda: desk.approved("rf_1", token=token, reviewer="bob")) == "ALREADY_DECIDED"


def test_r3_bad_input_is_refused_by_name(ledger: Ledger, world: World) -> None:
    desk = ReviewDesk(ledger)
    with pytest.raises(IdentityError, match="reviewer"):
        desk.approved("rf_1", token="t", reviewer="")
    with pytest.raises(IntentError, match="expires_at"):
        desk.approved("rf_1", token="t", reviewer="ann", expires_at=datetime(2026, 1, 1))  # noqa: DTZ001


def test_the_asynchronous_desk_decides_alike(ledger: Ledger, world: World) -> None:
    refund = refund_effect(world, authorize=needs_review)
    EffectRunner(ledger).run(refund, "rf_1")

    async def decide() -> None:
        desk = AsyncReviewDesk(ledger)
        shown = await desk.show("rf_1")
        assert shown is not None
        await desk.approved(
            "rf_1", token=str(shown.token), reviewer="ann", intent_fingerprint=shown.intent_fingerprint
        )

    asyncio.run(decide())
    assert EffectRunner(ledger).run(refund, "rf_1").unwrap() == "rf_1"
