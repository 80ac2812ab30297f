"""Whatever hooks, ledgers and crashes do: `execute` only from "never sent", or right after a settled absence.

The property restates L3, D1 and D4 in its own words, apart from the table. Mutants of the table and of the
readings show that it can fail.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corrobo_core import decide
from corrobo_core.commands import (
    Authorize,
    Claim,
    Execute,
    Executed,
    Holder,
    Judged,
    KeepLate,
    Load,
    Loaded,
    Observe,
    Open,
    Opened,
    Raised,
    Reading,
    Reconcile,
    Record,
    Refused,
    Revalidate,
    Saw,
    Written,
)
from corrobo_core.decide import TABLE, Row
from corrobo_core.lifecycle import observe, run
from corrobo_core.policy import Policy, RetryPolicy
from corrobo_core.records import (
    AttemptRecord,
    Check,
    Disposition,
    Evidence,
    Observation,
    Operation,
    Outcome,
    Reason,
)
from tests.unit.facts import FINGERPRINT, INTENT, KEY, TIMEOUT, at, reading, seconds
from tests.unit.transcript import BROKEN, OWNER, call, started


class Broken(AssertionError):
    """The property does not hold."""


# -- the property, in its own words ---------------------------------------------------------------------------


def cannot_land_any_more(attempt: AttemptRecord, began: datetime) -> bool:
    """D4: an attempt that had settled when a read began."""
    assert attempt.started is not None
    if attempt.outcome in (Outcome.REJECTED, Outcome.NOT_SENT):
        return True
    end = attempt.ended or attempt.abandoned or attempt.started
    if attempt.outcome is Outcome.RESPONDED and attempt.finished_by_response:
        return began > end + attempt.lag or not attempt.lag
    if attempt.window is None:
        return False
    overran = attempt.timeout is not None and end > attempt.started + attempt.timeout
    return not attempt.window or began > (end if overran else attempt.started) + attempt.window


class Judge:
    """Watches one pass."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.opened: Opened | None = None
        self.absent_since: datetime | None = None  # when the read began that showed nothing, in this start
        self.reserved = False
        self.proves = False
        self.began: datetime | None = None

    def saw(self, asked: Any, reply: Any) -> None:
        self.reserved = False
        match asked, reply:
            case Open(), Opened(operation, mine):
                self.opened, self.absent_since = reply, None
                self.reserved = mine and operation.reserved
            case Observe(), Saw(observation, began):
                # The ledger's clock and the stopwatch show the same seconds here, whatever a reading says.
                self.proves, self.began, self.absent_since = observation.proves_absence, at(began), None
            case Reconcile(), Judged(evidence):
                absent = evidence is Evidence.NOT_APPLIED and self.proves
                self.absent_since = self.began if absent else None
            case ((Observe() | Reconcile()), Raised()):
                self.absent_since = None
            case Claim(), Written():
                self.reserved = True
            case Load(), Loaded(operation) if operation is not None:
                self.reserved = operation.reserved and operation.nonce.startswith("me.")

    def check(self, execute: Execute) -> None:
        def insist(holds: bool, why: str) -> None:
            if not holds:
                raise Broken(why)

        insist(self.reserved, "sent without a reservation that the ledger has just confirmed")
        before = execute.operation.attempts[:-1]
        if not before:
            return  # never sent
        insist(self.absent_since is not None, "sent, and this very pass has not seen that nothing is there")
        assert self.absent_since is not None
        assert self.opened is not None
        for attempt in before:
            insist(
                cannot_land_any_more(attempt, self.absent_since), f"sent while attempt {attempt.number} may land"
            )
        stored = self.opened.operation
        running = stored.reserved and self.opened.holder is Holder.RUNNING
        insist(not running, "sent while the owner of an attempt lives")
        latest, retry = before[-1], self.policy.retry
        insist(latest.outcome is not Outcome.REJECTED or latest.retryable, "sent after a refusal for good")
        sent = sum(attempt.outcome is not Outcome.NOT_SENT for attempt in before)
        insist(retry.retryable or not sent, "sent although policy forbids it")
        insist(sent < retry.max_attempts, "sent more often than allowed")
        insist(not stored.closed, "sent for an operation that was closed")


# -- everything that can come -----------------------------------------------------------------------------------


def some_seconds(rng: Random) -> float:
    return float(rng.choice([0, 0, 0, 1, 2, 3, 5, 8, 12]))


def rarely(rng: Random, one_in: int = 8) -> bool:
    return rng.randrange(one_in) == 0


def any_policy(rng: Random) -> Policy:
    window = rng.choice([None, 0, 4, 10])
    return Policy(
        window=None if window is None else seconds(window),
        execute_timeout=seconds(window / 2) if window else None,
        observation_lag=seconds(rng.choice([0, 3])),
        responds_after_effect=rarely(rng, 2),
        key_retention=timedelta.max if window == 0 else None,
        retry=RetryPolicy(max_attempts=rng.choice([1, 3, 4]), retryable=not rarely(rng, 5)),
        authorizes=rarely(rng, 4),
        revalidates=rarely(rng, 4),
    )


def any_attempt(rng: Random, number: int, begins: float, *, last: bool) -> AttemptRecord:
    outcome = rng.choice([*Outcome, Outcome.AMBIGUOUS, *([None] * 3 if last else [])])
    recorded = outcome not in (None, Outcome.UNRECORDED)
    window = rng.choice([None, 0.0, 4.0, 10.0, 10.0, 60.0])
    return AttemptRecord(
        number=number,
        nonce=f"other{number}.1",
        window=None if window is None else seconds(window),
        lag=seconds(rng.choice([0, 3])),
        timeout=rng.choice([None, seconds(2)]),
        finished_by_response=rarely(rng, 2),
        started=at(begins),
        ended=at(begins + some_seconds(rng)) if recorded else None,
        outcome=outcome,
        retryable=rarely(rng, 2),
        failure=TIMEOUT if outcome is Outcome.AMBIGUOUS else None,
        abandoned=at(begins + some_seconds(rng)) if not recorded and rarely(rng, 4) else None,
    )


def any_operation(rng: Random) -> Operation:
    """Anything that other passes, of any release, may have left."""
    count = rng.choice([0, 1, 1, 1, 2, 3])
    made = tuple(any_attempt(rng, n + 1, 10.0 * n, last=n == count - 1) for n in range(count))
    owned = bool(made) and made[-1].outcome is None and made[-1].abandoned is None
    return Operation(
        KEY,
        INTENT,
        FINGERPRINT,
        version=rng.randint(1, 9),
        nonce="other.9",
        owner=OWNER if owned else None,
        attempts=made,
        disposition=rng.choice([*Disposition, *[None] * 4, *[Disposition.RETRY] * 6]),
        reason=rng.choice(list(Reason)).value,
        retry_at=rng.choice([None, None, at(0), at(20), at(500)]),
        evidence=rng.choice([None, *Evidence]),
        authorized=rng.choice([None, "proceed"]),
    )


class Adversary:
    """Answers everything as it likes, but for what a ledger must keep: one writer wins, and time goes on."""

    def __init__(self, rng: Random, stored: Operation | None) -> None:
        self.rng, self.stored = rng, stored
        # Most that can go wrong goes wrong around the end of a window.
        ends = [_seconds(a.started) + a.window.total_seconds() for a in _attempts(stored) if a.started and a.window]
        around = [max(end - rng.choice([0, 0, 1, 2, 5, 8]), 0.0) for end in ends]
        self.time = rng.choice([0.0, 25.0, 40.0, 100.0, *around, *around, *around])

    def reading(self) -> Reading:
        sent = self.time
        self.time += some_seconds(self.rng)  # the statement's own duration; the clock is read somewhere in it
        now = sent + (self.time - sent) * self.rng.choice([0.0, 0.5, 1.0])
        return reading(now, sent, self.time)

    def holder(self, operation: Operation | None) -> Holder:
        if operation is None or operation.owner is None:
            return Holder.NOBODY
        return self.rng.choice([Holder.GONE, Holder.RUNNING])

    def answer(self, asked: Any) -> Any:
        self.time += some_seconds(self.rng)
        match asked:
            case Open(operation):
                read = self.reading()
                if self.stored is None:
                    self.stored = started(operation, _seconds(read.now))
                    return Opened(self.stored, True, Holder.RUNNING, read)
                return Opened(self.stored, False, self.holder(self.stored), read)
            case Load():
                return Loaded(self.stored, self.holder(self.stored), self.reading())
            case Claim() | Record():
                return self.write(asked)
            case KeepLate():
                return None
            case Execute():
                late = asked.not_after is not None and self.time > asked.not_after
                return Executed(Outcome.NOT_SENT, self.time) if late else self.executed()
            case Observe():
                return self.looked()
            case Reconcile():
                evidence = self.rng.choice([*Evidence, *[Evidence.NOT_APPLIED] * 10])
                return self.maybe_raised() or Judged(evidence, "CODE", "")
            case Authorize() | Revalidate():
                kind = self.rng.choice(["proceed"] * 5 + ["review", "reject"])
                return self.maybe_raised() or Check(kind, "")
            case _:
                raise TypeError(asked)

    def write(self, asked: Claim | Record) -> Written | Refused:
        read = self.reading()
        end = self.rng.choice(["written"] * 6 + ["refused", "reply lost"])
        if end == "refused":  # somebody else was first; what is stored now may be anything
            self.stored = any_operation(self.rng)
            return Refused(read)
        written = started(asked.operation, _seconds(read.now)) if isinstance(asked, Claim) else asked.operation
        self.stored = written
        return Refused(read) if end == "reply lost" else Written(written, read)

    def executed(self) -> Executed:
        return Executed(
            self.rng.choice([Outcome.RESPONDED, Outcome.REJECTED, Outcome.NOT_SENT, Outcome.AMBIGUOUS]),
            self.time,
            failure=self.rng.choice([None, BROKEN]),
            retryable=rarely(self.rng, 2),
            interrupted=rarely(self.rng),
        )

    def looked(self) -> Saw | Raised:
        began = self.time
        self.time += some_seconds(self.rng)
        proof = not rarely(self.rng, 10)
        return self.maybe_raised() or Saw(Observation.of("data", source="world", proves_absence=proof), began)

    def maybe_raised(self) -> Raised | None:
        return Raised(BROKEN, interrupted=rarely(self.rng)) if rarely(self.rng, 20) else None


def _attempts(operation: Operation | None) -> tuple[AttemptRecord, ...]:
    return operation.attempts if operation else ()


def _seconds(now: datetime) -> float:
    return (now - at(0)).total_seconds()


def one_pass(rng: Random) -> list[Execute]:
    """One pass against the adversary, up to a crash; what it sent. Raises `Broken`."""
    policy = any_policy(rng)
    adversary = Adversary(rng, None if rarely(rng, 3) else any_operation(rng))
    only_looks, crash_at = rarely(rng, 6), rng.choice([60, 60, 60, *range(1, 12)])
    given = call(policy, observe_now=rarely(rng, 2))
    program, judge = (observe if only_looks else run)(given), Judge(policy)
    sent: list[Execute] = []
    try:
        asked = next(program)
        for _ in range(crash_at):
            if isinstance(asked, Execute):
                if only_looks:
                    raise Broken("sent by a pass that only looks")
                judge.check(asked)
                sent.append(asked)
            reply = adversary.answer(asked)
            judge.saw(asked, reply)
            asked = program.send(reply)
        program.close()
        if crash_at == 60:
            raise Broken("a pass of 60 commands")
    except StopIteration:
        pass
    if len(sent) > 3:
        raise Broken("a pass may start over three times at most")
    return sent


@given(st.randoms(use_true_random=False))
@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=150)
def test_L3_only_a_settled_absence_seen_in_this_very_pass_leads_to_another_attempt(rng: Random) -> None:
    one_pass(rng)


PASSES = 4_000


def broken(passes: int = 10 * PASSES) -> str | None:
    """How the property breaks in many random passes, always the same ones; None if it holds in so many."""
    for seed in range(passes):
        try:
            one_pass(Random(seed))
        except Broken as error:
            return str(error)
    return None


def test_it_holds_for_many_passes_and_they_do_send() -> None:
    sent = [execute for seed in range(PASSES) for execute in one_pass(Random(seed))]
    first = sum(len(execute.operation.attempts) == 1 for execute in sent)
    assert first > 500
    assert len(sent) - first > 100, "else it would hold because nothing ever happens"


# -- mutants ----------------------------------------------------------------------------------------------------


def without(reason: Reason) -> tuple[Row, ...]:
    return tuple(row for row in TABLE if row.reason is not reason)


def retrying(evidence: Evidence) -> tuple[Row, ...]:
    return (Row(evidence, lambda _: True, Disposition.RETRY, Reason.SAFE_RETRY), *TABLE)


NOT_SEEN = "sent, and this very pass has not seen that nothing is there"
MUTANTS: list[tuple[str, tuple[Row, ...], str]] = [
    ("without STILL_RUNNING", without(Reason.STILL_RUNNING), "sent while the owner of an attempt lives"),
    ("without a window", without(Reason.IN_FLIGHT_NOT_RULED_OUT), "may land"),
    ("without PROVIDER_REFUSED", without(Reason.PROVIDER_REFUSED), "sent after a refusal for good"),
    ("without NOT_RETRYABLE", without(Reason.NOT_RETRYABLE), "sent although policy forbids it"),
    ("without ATTEMPTS_EXHAUSTED", without(Reason.ATTEMPTS_EXHAUSTED), "sent more often than allowed"),
    *((f"retry on {evidence}", retrying(evidence), NOT_SEEN) for evidence in Evidence if evidence != "NOT_APPLIED"),
    ("retry on any absence", retrying(Evidence.NOT_APPLIED), "sent"),
]


@pytest.mark.parametrize(("table", "how"), [row[1:] for row in MUTANTS], ids=[row[0] for row in MUTANTS])
def test_a_table_with_one_row_changed_is_found_out(
    table: tuple[Row, ...], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decide, "TABLE", table)
    assert how in (broken() or "")


def test_without_the_row_for_settling_the_next_row_still_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that is not over is one that is not ruled out: less helpful, and as safe."""
    monkeypatch.setattr(decide, "TABLE", without(Reason.SETTLING))
    assert broken(PASSES) is None


def test_D4a_a_read_dated_later_than_it_was_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted from before the statement was sent, not from its reply."""
    monkeypatch.setattr(Reading, "at_least", Reading.at_most)
    assert "may land" in (broken() or "")


def test_D4_settled_at_its_window_instead_of_after_it_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = decide.settlement

    def early(attempt: AttemptRecord) -> datetime | None:
        settles = right(attempt)
        return settles if settles in (None, decide.ALWAYS) else settles - timedelta(microseconds=1)

    monkeypatch.setattr(decide, "settlement", early)
    assert "may land" in (broken() or "")
