"""What hooks are given, and what a pass makes of it: once, for sync, async and sync in threads."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from corrobo_core import (
    Attempt,
    Check,
    Disposition,
    Effect,
    EffectRunner,
    MemoryLedger,
    Observation,
    Outcome,
    Reason,
    UsageError,
    Verdict,
    current_attempt,
    effect,
)
from tests.unit.harness import Clock, Harness
from tests.unit.world import WatchedLedger, World, credit_effect


def lost(world: World) -> Callable[[Attempt, str], Any]:
    """The write arrives, its response does not."""

    def execute(attempt: Attempt, reference: str) -> Any:
        world.credit(reference)
        raise ConnectionResetError("by peer")

    return execute


ZERO: dict[str, Any] = {"in_flight_window": timedelta(), "key_retention": timedelta.max}


# -- one pass, start to end -----------------------------------------------------------------------------------


def test_an_effect_happens_once_in_two_statements(harness: Harness, ledger: WatchedLedger, world: World) -> None:
    credit = harness.effect(world)
    result = harness.run(ledger, credit)
    assert (result.disposition, result.evidence, result.reason) == ("COMPLETE", "APPLIED", "EFFECT_CONFIRMED")
    assert (result.effect, result.unwrap()) == (1, 1)
    assert (result.operation_type, result.operation_id) == ("world/credit", "r1")
    assert (result.retry_at, result.wait) == (None, timedelta())
    assert ledger.asked == ["Open", "Record"]

    again = harness.run(ledger, credit)
    assert (again.disposition, again.effect) == ("COMPLETE", 1)
    assert ledger.asked == ["Open", "Record", "Open"]
    assert (world.sent, world.reads) == (["r1"], 1)
    assert harness.observe(ledger, credit).effect == 1


def test_a_lost_response_is_found(harness: Harness, ledger: WatchedLedger, world: World) -> None:
    result = harness.run(ledger, harness.effect(world, execute=lost(world)))
    assert result.disposition is Disposition.COMPLETE
    assert result.attempts[0].outcome is Outcome.AMBIGUOUS
    assert result.attempts[0].failure.type == "ConnectionResetError"
    assert world.sent == ["r1"]


def test_a_write_that_never_arrived_is_sent_again_after_its_window(
    harness: Harness, ledger: WatchedLedger, clock: Clock, world: World
) -> None:
    def execute(attempt: Attempt, reference: str) -> int:
        if attempt.number == 1:
            raise TimeoutError("no answer")
        return world.credit(reference)

    credit = harness.effect(world, execute=execute)
    first = harness.run(ledger, credit)
    assert (first.disposition, first.reason) == (Disposition.RETRY, Reason.SETTLING)
    assert timedelta(seconds=9) < first.wait <= timedelta(seconds=10, microseconds=1)
    early = harness.run(ledger, credit)
    assert (early.reason, world.sent) == (Reason.SETTLING, [])
    clock.pass_by(11)
    assert harness.run(ledger, credit).disposition is Disposition.COMPLETE
    assert world.sent == ["r1"]


def test_observing_never_sends(harness: Harness, ledger: WatchedLedger, clock: Clock, world: World) -> None:
    credit = harness.effect(world, execute=lambda attempt, reference: None)
    unknown = harness.observe(ledger, credit)
    assert (unknown.reason, unknown.disposition, unknown.attempts) == (Reason.NEVER_SENT, None, ())
    assert ledger.asked == ["Load"]
    harness.run(ledger, credit)
    for _ in range(3):
        clock.pass_by(100)
        assert harness.observe(ledger, credit).reason == Reason.SAFE_RETRY
    assert "Claim" not in ledger.asked


def test_O5_observing_now_reads_before_its_time(harness: Harness, ledger: WatchedLedger, world: World) -> None:
    credit = harness.effect(world, execute=lambda attempt, reference: None)
    harness.run(ledger, credit)
    world.credit("r1")  # it lands late
    assert harness.run(ledger, credit).reason == Reason.SETTLING
    assert harness.run(ledger, credit, observe_now=True).disposition is Disposition.COMPLETE
    assert world.sent == ["r1"]


def test_runners_are_made_from_runners(ledger: WatchedLedger) -> None:
    base = EffectRunner(ledger, context={"actor": "ann"})
    made = base.with_context(scope="all").observing_now()
    assert (made._context, made._observe_now) == ({"actor": "ann", "scope": "all"}, True)
    assert (base._context, base._observe_now) == ({"actor": "ann"}, False)


# -- what hooks are given -------------------------------------------------------------------------------------


def test_each_hook_is_given_its_attempt(
    harness: Harness, ledger: WatchedLedger, clock: Clock, world: World
) -> None:
    given: list[tuple[str, Attempt]] = []

    def execute(attempt: Attempt, reference: str) -> str:
        given.append(("execute", attempt))
        if attempt.number == 1:
            raise TimeoutError("no answer")
        world.credit(reference)
        return "receipt"

    def observe(attempt: Attempt, reference: str) -> Observation[list[str]]:
        given.append(("observe", attempt))
        return world.find(reference)

    def reconcile(attempt: Attempt, found: list[str]) -> Verdict[str]:
        given.append(("reconcile", attempt))
        return Verdict.applied("OK", effect="x") if found else Verdict.not_applied("NO")

    credit = harness.effect(world, execute=execute, observe=observe, reconcile=reconcile)
    harness.run(ledger, credit)
    clock.pass_by(11)
    harness.run(ledger, credit)

    assert [name for name, _ in given] == [
        *("execute", "observe", "reconcile"),
        *("observe", "reconcile", "execute", "observe", "reconcile"),
    ]
    assert [attempt.number for _, attempt in given] == [1, 1, 1, 1, 1, 2, 2, 2]
    assert [attempt.outcome for _, attempt in given] == [
        *(None, Outcome.AMBIGUOUS, Outcome.AMBIGUOUS),
        *(Outcome.AMBIGUOUS, Outcome.AMBIGUOUS, None, Outcome.RESPONDED, Outcome.RESPONDED),
    ]
    assert [attempt.response for _, attempt in given][-2:] == ["receipt", "receipt"]
    assert [len(attempt.attempts) for _, attempt in given] == [1, 1, 1, 1, 1, 2, 2, 2]
    assert [attempt.history.count for _, attempt in given] == [0, 0, 0, 1, 1, 2, 2, 2]
    failures = [attempt.failure.type if attempt.failure else None for _, attempt in given]
    assert failures == [None, *["TimeoutError"] * 4, None, None, None]
    for _, attempt in given:
        assert (attempt.operation_type, attempt.operation_id) == ("world/credit", "r1")
        assert attempt.namespace == "default"
        assert not attempt.context


def test_I5_the_key_is_the_same_for_every_attempt_and_no_other_operation(
    harness: Harness, clock: Clock, world: World
) -> None:
    keys: list[str] = []

    def execute(attempt: Attempt, reference: str) -> None:
        keys.append(attempt.idempotency_key)

    credit = harness.effect(world, execute=execute)
    here = MemoryLedger(clock=clock)
    harness.run(here, credit)
    clock.pass_by(11)
    harness.run(here, credit)
    harness.run(here, credit, "r2")
    harness.run(MemoryLedger(clock=clock), credit)
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    assert all(len(key) == 64 for key in keys)


def test_L9_execute_is_given_its_deadline(harness: Harness, ledger: WatchedLedger, world: World) -> None:
    given: list[Attempt] = []
    left: list[timedelta | None] = []

    def execute(attempt: Attempt, reference: str) -> int:
        given.append(attempt)
        left.append(attempt.time_left())
        return world.credit(reference)

    before = datetime.now(UTC)
    harness.run(ledger, harness.effect(world, execute=execute, execute_timeout=timedelta(seconds=3)))
    assert given[0].deadline is not None
    assert timedelta(seconds=3) <= given[0].deadline - before < timedelta(seconds=5)
    assert left[0] is not None
    assert timedelta(seconds=2) < left[0] <= timedelta(seconds=3)


def test_half_the_window_unless_declared(harness: Harness, ledger: WatchedLedger, world: World) -> None:
    left: list[timedelta | None] = []

    def execute(attempt: Attempt, reference: str) -> int:
        left.append(attempt.time_left())
        return world.credit(reference)

    harness.run(ledger, harness.effect(world, execute=execute))
    harness.run(ledger, harness.effect(world, execute=execute, in_flight_window=None), "r2")
    assert left[0] is not None
    assert timedelta(seconds=4) < left[0] <= timedelta(seconds=5)
    assert left[1] is None


def test_time_left_is_never_negative() -> None:
    assert Attempt("t", "x", "d", 1, "k", stops_at=0.0).time_left() == timedelta()


def test_current_attempt_in_every_hook(harness: Harness, ledger: WatchedLedger, world: World) -> None:
    same: dict[str, bool] = {}

    def note(name: str, attempt: Attempt) -> None:
        same[name] = current_attempt() is attempt

    def execute(attempt: Attempt, reference: str) -> int:
        note("execute", attempt)
        return world.credit(reference)

    def observe(attempt: Attempt, reference: str) -> Any:
        note("observe", attempt)
        return world.find(reference)

    def reconcile(attempt: Attempt, found: list[str]) -> Any:
        note("reconcile", attempt)
        return Verdict.applied("OK", effect=1)

    def check(name: str) -> Callable[[Attempt, str], Check]:
        def hook(attempt: Attempt, reference: str) -> Check:
            note(name, attempt)
            return Check.proceed()

        return hook

    credit = harness.effect(
        world,
        execute=execute,
        observe=observe,
        reconcile=reconcile,
        authorize=check("authorize"),
        revalidate=check("revalidate"),
    )
    harness.run(ledger, credit)
    assert same == dict.fromkeys(["authorize", "revalidate", "execute", "observe", "reconcile"], True)
    with pytest.raises(UsageError, match="no hook of an effect is running here"):
        current_attempt()


def test_an_effect_within_an_effect_gives_the_outer_attempt_back(ledger: WatchedLedger, world: World) -> None:
    seen: list[str] = []
    inner = credit_effect(world)

    def execute(attempt: Attempt, reference: str) -> int:
        EffectRunner(ledger).run(inner, "inner", 1)
        seen.append(current_attempt().operation_id)
        return world.credit(reference)

    Harness("sync").run(ledger, Harness("sync").effect(world, execute=execute), "outer")
    assert seen == ["outer"]
    assert world.sent == ["inner", "outer"]


def test_I6_context_reaches_the_checks_only_and_is_stored_nowhere(
    harness: Harness, ledger: WatchedLedger, world: World
) -> None:
    contexts: dict[str, Any] = {}

    def check(name: str) -> Callable[[Attempt, str], Check]:
        def hook(attempt: Attempt, reference: str) -> Check:
            contexts[name] = dict(attempt.context)
            return Check.proceed()

        return hook

    def execute(attempt: Attempt, reference: str) -> int:
        contexts["execute"] = dict(attempt.context)
        return world.credit(reference)

    def observe(attempt: Attempt, reference: str) -> Any:
        contexts["observe"] = dict(attempt.context)
        return world.find(reference)

    credit = harness.effect(
        world, execute=execute, observe=observe, authorize=check("authorize"), revalidate=check("revalidate")
    )
    harness.run(ledger, credit, context={"token": "hunter2"})
    assert contexts == {
        "authorize": {"token": "hunter2"},
        "revalidate": {"token": "hunter2"},
        "execute": {},
        "observe": {},
    }
    assert "hunter2" not in repr(ledger._rows)
    assert "hunter2" not in repr(ledger.commands)


def test_I2_later_passes_act_on_the_recorded_intent(ledger: WatchedLedger, clock: Clock, world: World) -> None:
    notes: list[str] = []

    @effect("t/x", identity=lambda ref, **_: ref, in_flight_window=timedelta(seconds=10), volatile=("note",))
    def noted(attempt: Attempt, ref: str, *, note: str) -> int:
        notes.append(note)
        return 1

    @noted.observe
    def see(attempt: Attempt, ref: str, *, note: str) -> Observation[str]:
        notes.append(note)
        return Observation.of(note, source="x", proves_absence=True)

    @see.reconcile
    def verdict(attempt: Attempt, data: str, ref: str, *, note: str) -> Verdict[int]:
        notes.append(note)
        return Verdict.not_applied("NO")

    runner = EffectRunner(ledger)
    runner.run(noted, "r1", note="first")
    clock.pass_by(11)
    runner.run(noted, "r1", note="second")
    runner.observe(noted, "r1", note="third")
    assert set(notes) == {"first"}
    assert len(notes) == 10


@pytest.mark.parametrize("annotation", [dict[str, str], Any])
def test_I2_what_a_hook_does_to_its_arguments_no_other_hook_sees(
    ledger: WatchedLedger, clock: Clock, annotation: Any
) -> None:
    """`order.pop("ref")` in a read, and the next request would have been sent without its reference."""
    seen: list[dict[str, str]] = []

    def use(order: dict[str, str]) -> dict[str, str]:
        seen.append(dict(order))
        order.clear()
        return seen[-1]

    def execute(attempt: Attempt, order: Any) -> None:
        use(order)
        raise TimeoutError

    def check(attempt: Attempt, order: Any) -> Check:
        use(order)
        return Check.proceed()

    execute.__annotations__["order"] = annotation
    made = effect("t/x", identity=lambda order: use(order)["ref"], in_flight_window=timedelta(seconds=10))(execute)
    made.revalidate(check)
    observed = made.observe(lambda attempt, order: Observation.of(use(order), source="x", proves_absence=True))
    observed.reconcile(lambda attempt, data, order: Verdict.not_applied(use(order)["ref"]))
    runner = EffectRunner(ledger)
    runner.run(made, {"ref": "r1"})
    clock.pass_by(11)
    assert len(runner.run(made, {"ref": "r1"}).attempts) == 2
    assert seen == [{"ref": "r1"}] * 12


def test_l5_an_intent_that_no_longer_loads_is_never_sent_and_says_so() -> None:
    """A release with other types meets an operation of an older one: its second attempt is NOT_SENT."""
    sent: list[object] = []

    def release(amount: type[Any]) -> Effect[..., None]:
        def execute(attempt: Attempt, reference: str, amount: Any) -> None:
            sent.append(amount)
            raise TimeoutError

        execute.__annotations__["amount"] = amount

        made = effect("tests/typed", identity=lambda reference, **_: reference, volatile=("amount",), **ZERO)(
            execute
        )

        @made.observe
        def seen(attempt: Attempt) -> Observation[None]:
            return Observation.of(None, source="world", proves_absence=True)

        @seen.reconcile
        def judge(attempt: Attempt, data: None) -> Verdict[None]:
            return Verdict.not_applied("NOTHING")

        return made

    runner = EffectRunner(MemoryLedger())
    runner.run(release(str), "r", "ten")
    result = runner.run(release(int), "r", 10)
    assert [attempt.outcome for attempt in result.attempts] == [Outcome.AMBIGUOUS, Outcome.NOT_SENT]
    assert sent == ["ten"]
