"""The decision table of semantics section 5: every row, its boundaries, and that the first match wins."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from corrobo_core import decide as module
from corrobo_core.decide import ALWAYS, TABLE, Decision, Facts, Row, decide, key_expires, settlement
from corrobo_core.policy import Backoff, Policy, RetryPolicy
from corrobo_core.records import AttemptRecord, Disposition, Evidence, Outcome, Reason
from tests.unit.facts import TICK, TIMEOUT, at, attempt, policy, seconds

FOREVER = timedelta.max
INVESTIGATE, RETRY = Disposition.INVESTIGATE, Disposition.RETRY
REFUSED = attempt(Outcome.REJECTED, ended=1, failure=TIMEOUT)


def facts(
    evidence: Evidence = Evidence.NOT_APPLIED,
    *attempts: AttemptRecord,
    began: float = 100,
    declared: Policy | None = None,
    **fields: Any,
) -> Facts:
    fields.setdefault("reason", Reason.NOT_ESTABLISHED)
    fields.setdefault("running", False)
    fields.setdefault("looks", 0)
    return Facts(
        evidence=evidence,
        attempts=attempts or (attempt(),),
        began=at(began),
        policy=declared or policy(),
        **fields,
    )


def decided(*attempts: AttemptRecord, **fields: Any) -> Decision:
    """What is decided when a read that proves absence shows nothing."""
    return decide(facts(Evidence.NOT_APPLIED, *attempts, **fields))


# -- one case for each row ------------------------------------------------------------------------------------

ROWS: list[tuple[str, Facts, Decision]] = [
    ("applied", facts(Evidence.APPLIED), Decision(Disposition.COMPLETE, Reason.EFFECT_CONFIRMED)),
    ("conflicted", facts(Evidence.CONFLICTED), Decision(Disposition.REPLAN, Reason.WORLD_CHANGED)),
    ("pending", facts(Evidence.PENDING), Decision(None, Reason.CONVERGING, at(105))),
    ("unknown", facts(Evidence.UNKNOWN), Decision(INVESTIGATE, Reason.NOT_ESTABLISHED, at(105))),
    (
        "unknown, the read proves nothing",
        facts(Evidence.UNKNOWN, reason=Reason.ABSENCE_NOT_PROVEN),
        Decision(INVESTIGATE, Reason.ABSENCE_NOT_PROVEN, at(105)),
    ),
    (
        "unknown, reconcile failed",
        facts(Evidence.UNKNOWN, reason=Reason.RECONCILE_FAILED),
        Decision(INVESTIGATE, Reason.RECONCILE_FAILED, at(105)),
    ),
    (
        "its owner lives",
        facts(Evidence.NOT_APPLIED, attempt(None), running=True),
        Decision(INVESTIGATE, Reason.STILL_RUNNING, at(105)),
    ),
    ("not settled", facts(began=5), Decision(RETRY, Reason.SETTLING, at(10 + TICK))),
    (
        "no window recorded",
        facts(Evidence.NOT_APPLIED, attempt(window=None)),
        Decision(INVESTIGATE, Reason.IN_FLIGHT_NOT_RULED_OUT, at(105)),
    ),
    (
        "refused for good",
        facts(Evidence.NOT_APPLIED, REFUSED),
        Decision(Disposition.REPLAN, Reason.PROVIDER_REFUSED),
    ),
    (
        "policy forbids retry",
        facts(declared=policy(retry=RetryPolicy(retryable=False))),
        Decision(INVESTIGATE, Reason.NOT_RETRYABLE, at(105)),
    ),
    (
        "attempts used up",
        facts(declared=policy(max_attempts=1)),
        Decision(INVESTIGATE, Reason.ATTEMPTS_EXHAUSTED, at(105)),
    ),
    (
        "the key may be forgotten",
        facts(declared=policy(key_retention=seconds(100))),
        Decision(INVESTIGATE, Reason.KEY_EXPIRED, at(105)),
    ),
    ("everything settled", facts(), Decision(RETRY, Reason.SAFE_RETRY)),
]


@pytest.mark.parametrize(("given", "wanted"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_each_row_decides_its_case(given: Facts, wanted: Decision) -> None:
    assert decide(given) == wanted


def test_every_row_of_the_table_has_a_case() -> None:
    def first_match(given: Facts) -> Row:
        return next(row for row in TABLE if row.evidence is given.evidence and row.condition(given))

    assert {id(first_match(given)) for _, given, _ in ROWS} == {id(row) for row in TABLE}


def test_the_table_is_the_one_of_the_semantics() -> None:
    assert [(row.evidence.value, row.disposition, row.reason) for row in TABLE] == [
        ("APPLIED", Disposition.COMPLETE, Reason.EFFECT_CONFIRMED),
        ("CONFLICTED", Disposition.REPLAN, Reason.WORLD_CHANGED),
        ("PENDING", None, Reason.CONVERGING),
        ("UNKNOWN", INVESTIGATE, None),
        ("NOT_APPLIED", INVESTIGATE, Reason.STILL_RUNNING),
        ("NOT_APPLIED", RETRY, Reason.SETTLING),
        ("NOT_APPLIED", INVESTIGATE, Reason.IN_FLIGHT_NOT_RULED_OUT),
        ("NOT_APPLIED", Disposition.REPLAN, Reason.PROVIDER_REFUSED),
        ("NOT_APPLIED", INVESTIGATE, Reason.NOT_RETRYABLE),
        ("NOT_APPLIED", INVESTIGATE, Reason.ATTEMPTS_EXHAUSTED),
        ("NOT_APPLIED", INVESTIGATE, Reason.KEY_EXPIRED),
        ("NOT_APPLIED", RETRY, Reason.SAFE_RETRY),
    ]


# -- the first match wins -------------------------------------------------------------------------------------

# Facts that make a condition hold, in the order of the table; together they make all of them hold.
CONDITIONS: list[tuple[Reason, dict[str, Any]]] = [
    (Reason.STILL_RUNNING, {"running": True}),
    (Reason.SETTLING, {"settling": True}),
    (Reason.IN_FLIGHT_NOT_RULED_OUT, {"no_window": True}),
    (Reason.PROVIDER_REFUSED, {"refused": True}),
    (Reason.NOT_RETRYABLE, {"retryable": False}),
    (Reason.ATTEMPTS_EXHAUSTED, {"max_attempts": 1}),
    (Reason.KEY_EXPIRED, {"key_retention": seconds(1)}),
]


def combined(
    *,
    running: bool = False,
    settling: bool = False,
    no_window: bool = False,
    refused: bool = False,
    retryable: bool = True,
    max_attempts: int = 9,
    key_retention: timedelta | None = None,
) -> Facts:
    attempts = [attempt(window=200)] if settling else []
    attempts += [attempt(window=None)] if no_window else []
    attempts += [REFUSED if refused else attempt(None if running else Outcome.AMBIGUOUS, started=1)]
    retry = RetryPolicy(max_attempts=max_attempts, retryable=retryable)
    declared = policy(retry=retry, key_retention=key_retention)
    return facts(Evidence.NOT_APPLIED, *attempts, running=running, declared=declared)


def choices() -> Iterator[tuple[tuple[Reason, dict[str, Any]], ...]]:
    for size in range(1, len(CONDITIONS) + 1):
        yield from itertools.combinations(CONDITIONS, size)


@pytest.mark.parametrize("chosen", list(choices()), ids=lambda chosen: "+".join(reason for reason, _ in chosen))
def test_of_several_conditions_that_hold_the_first_row_decides(
    chosen: tuple[tuple[Reason, dict[str, Any]], ...],
) -> None:
    merged: dict[str, Any] = {}
    for _, holds in chosen:
        merged |= holds
    assert decide(combined(**merged)).reason is chosen[0][0]


@pytest.mark.parametrize("evidence", [e for e in Evidence if e is not Evidence.NOT_APPLIED])
@pytest.mark.parametrize("began", [0.0, 5.0, 100.0])
def test_D1_no_setting_turns_other_evidence_into_a_retry(evidence: Evidence, began: float) -> None:
    for retryable, count, window in itertools.product((True, False), (1, 99), (None, 0, 10)):
        retry = RetryPolicy(max_attempts=count, retryable=retryable)
        declared = policy(window, retry=retry, key_retention=FOREVER, responds_after_effect=True)
        for outcome in Outcome:
            made = attempt(outcome, ended=1, window=window, finished_by_response=True, retryable=True)
            assert decide(facts(evidence, made, began=began, declared=declared)).disposition is not RETRY


def test_D7_the_same_facts_decide_the_same() -> None:
    for _, given, wanted in ROWS:
        assert {decide(given) for _ in range(3)} == {wanted}


# -- settlement (D4) ------------------------------------------------------------------------------------------


def test_D4_an_attempt_settles_strictly_after_its_window() -> None:
    assert decided(began=10).reason is Reason.SETTLING
    assert decided(began=10 + TICK).reason is Reason.SAFE_RETRY
    assert decided(began=10 - TICK).retry_at == at(10 + TICK), "coming back at retry_at finds it settled"


def test_D4_settlement_looks_at_every_attempt() -> None:
    late = attempt(window=60)
    assert decided(late, attempt(number=2, started=20), began=50) == Decision(RETRY, Reason.SETTLING, at(60 + TICK))


@pytest.mark.parametrize(
    ("made", "settles"),
    [
        (attempt(Outcome.REJECTED, ended=1), ALWAYS),
        (attempt(Outcome.NOT_SENT, ended=1), ALWAYS),
        (attempt(Outcome.REJECTED, ended=1, window=None), ALWAYS),
        (attempt(Outcome.NOT_SENT, ended=1, window=None), ALWAYS),
        (attempt(Outcome.AMBIGUOUS, ended=1), at(10)),
        (attempt(Outcome.UNRECORDED), at(10)),
        (attempt(None), at(10)),
        (attempt(Outcome.RESPONDED, ended=1), at(10)),
        (attempt(Outcome.RESPONDED, ended=1, window=None), None),
        (attempt(Outcome.RESPONDED, ended=1, finished_by_response=True), ALWAYS),
        (attempt(Outcome.RESPONDED, ended=1, window=None, finished_by_response=True), ALWAYS),
        (attempt(Outcome.RESPONDED, ended=2, window=13, lag=3, finished_by_response=True), at(5)),
        (attempt(Outcome.AMBIGUOUS, ended=2, window=13, lag=3, finished_by_response=True), at(13)),
        (attempt(Outcome.AMBIGUOUS, window=None), None),
        (attempt(Outcome.UNRECORDED, window=None), None),
        (attempt(Outcome.AMBIGUOUS, window=0), ALWAYS),
        (attempt(Outcome.AMBIGUOUS, window=3, lag=3), at(3)),  # a window of zero, and a stale read
    ],
    ids=lambda value: value.outcome.name if isinstance(value, AttemptRecord) and value.outcome else None,
)
def test_D4_each_outcome_settles_at_its_time(made: AttemptRecord, settles: datetime | None) -> None:
    assert settlement(made) == settles


def test_L9_a_hook_that_overran_its_timeout_settles_from_its_end() -> None:
    assert settlement(attempt(ended=5)) == at(10), "exactly at its timeout is in time"
    assert settlement(attempt(ended=5 + TICK)) == at(15 + TICK)
    assert settlement(attempt(Outcome.RESPONDED, ended=7)) == at(17)
    assert settlement(attempt(ended=60, timeout=None)) == at(10), "nothing declared, nothing overrun"


def test_L9_a_rejection_settles_when_it_ends_however_late() -> None:
    assert settlement(attempt(Outcome.REJECTED, ended=60)) is ALWAYS


def test_L7_an_abandoned_attempt_that_overran_settles_from_when_it_was_given_up() -> None:
    assert settlement(attempt(None, abandoned=at(4))) == at(10)
    assert settlement(attempt(Outcome.UNRECORDED, abandoned=at(60))) == at(70)


def test_responds_after_effect_with_a_lag_settles_strictly_after_the_lag() -> None:
    made = attempt(Outcome.RESPONDED, ended=2, window=13, lag=3, finished_by_response=True)
    assert decided(made, began=5).reason is Reason.SETTLING
    assert decided(made, began=5 + TICK).reason is Reason.SAFE_RETRY


def test_D2_a_window_of_zero_waits_for_nothing() -> None:
    declared = policy(0, key_retention=FOREVER)
    assert decided(attempt(window=0), began=0, declared=declared) == Decision(RETRY, Reason.SAFE_RETRY)


def test_D3_a_window_declared_later_frees_no_attempt_recorded_without_one() -> None:
    recorded = attempt(window=None)
    assert decided(recorded, began=10_000_000, declared=policy(1)).reason is Reason.IN_FLIGHT_NOT_RULED_OUT


def test_D3_a_shorter_window_declared_later_shortens_nothing() -> None:
    assert decided(attempt(window=600), began=300, declared=policy(1)).reason is Reason.SETTLING


@pytest.mark.parametrize("lag", [0, 3])
def test_D3_a_longer_window_declared_later_counts_for_earlier_attempts(lag: float) -> None:
    """Whoever lengthens a window has learned that effects land later than was declared before."""
    recorded = attempt(window=10 + lag, lag=lag)
    declared = policy(60, observation_lag=seconds(lag))
    assert decided(recorded, began=50, declared=declared) == Decision(RETRY, Reason.SETTLING, at(60 + lag + TICK))
    assert decided(recorded, began=64, declared=declared).reason is Reason.SAFE_RETRY


def test_D3_a_window_that_is_declared_no_more_frees_no_earlier_attempt() -> None:
    assert decided(attempt(), began=9999, declared=policy(None)).reason is Reason.IN_FLIGHT_NOT_RULED_OUT


@pytest.mark.parametrize("lag", [0, 3])
def test_D2_a_window_of_zero_counts_only_while_the_contract_still_deduplicates(lag: float) -> None:
    """A deploy that gives up the idempotency key sends an attempt that the provider cannot tell from the first."""
    recorded = attempt(window=lag, lag=lag)
    declared = policy(60, observation_lag=seconds(lag))
    assert decided(recorded, began=50, declared=declared) == Decision(RETRY, Reason.SETTLING, at(60 + lag + TICK))
    assert decided(recorded, began=64, declared=declared).reason is Reason.SAFE_RETRY
    assert decided(recorded, began=9999, declared=policy(None)).reason is Reason.IN_FLIGHT_NOT_RULED_OUT


def test_D6_time_alone_proves_nothing() -> None:
    century = 100 * 365 * 24 * 3600
    assert decided(attempt(window=None), began=century).disposition is INVESTIGATE
    assert decide(facts(Evidence.UNKNOWN, began=century)).disposition is INVESTIGATE


def test_a_window_known_and_one_unknown_wait_for_the_known_one_first() -> None:
    both = attempt(window=None), attempt(number=2, started=1)
    assert decided(*both, began=5) == Decision(RETRY, Reason.SETTLING, at(11 + TICK))
    assert decided(*both, began=20).reason is Reason.IN_FLIGHT_NOT_RULED_OUT


# -- refusals -------------------------------------------------------------------------------------------------


def test_T2_a_refusal_of_attempt_2_says_nothing_about_attempt_1() -> None:
    unsettled, refused = attempt(window=60), attempt(Outcome.REJECTED, number=2, started=20, ended=21)
    assert decided(unsettled, refused, began=30).reason is Reason.SETTLING
    assert decided(attempt(window=None), refused, began=30).reason is Reason.IN_FLIGHT_NOT_RULED_OUT
    assert decided(attempt(), refused, began=30).reason is Reason.PROVIDER_REFUSED


@pytest.mark.parametrize("lag", [0, 3])
def test_T2_a_window_of_zero_does_not_let_a_refusal_of_attempt_2_speak_for_attempt_1(lag: float) -> None:
    """The key was revoked while the first request was on its way: 401, and then it lands."""
    declared = policy(0, key_retention=FOREVER, observation_lag=seconds(lag))
    sent = attempt(Outcome.AMBIGUOUS, ended=1, window=lag, lag=lag)
    refused = attempt(Outcome.REJECTED, number=2, started=20, ended=21)
    assert decided(sent, refused, began=9999, declared=declared).reason is Reason.IN_FLIGHT_NOT_RULED_OUT
    assert decided(refused, began=9999, declared=declared).reason is Reason.PROVIDER_REFUSED
    earlier = attempt(Outcome.REJECTED, ended=1, retryable=True, window=lag, lag=lag)
    assert decided(earlier, refused, began=9999, declared=declared).reason is Reason.PROVIDER_REFUSED


def test_a_refusal_counts_only_if_it_is_the_latest_attempts() -> None:
    refused_before = attempt(Outcome.REJECTED, ended=1)
    assert decided(refused_before, attempt(number=2, started=20)).reason is Reason.SAFE_RETRY


def test_a_refusal_for_now_is_retried_at_the_providers_time() -> None:
    for_now = attempt(Outcome.REJECTED, ended=1, retryable=True, retry_after=at(31), failure=TIMEOUT)
    assert decided(for_now, began=2) == Decision(RETRY, Reason.SAFE_RETRY, at(31))
    assert decided(for_now, began=31) == Decision(RETRY, Reason.SAFE_RETRY, None), "at that time: now"
    assert decided(for_now, began=31 - TICK).retry_at == at(31)


# -- when the next attempt may be made ------------------------------------------------------------------------

BACKOFF = RetryPolicy(max_attempts=9, backoff=Backoff(seconds(1), seconds(4)))


@pytest.mark.parametrize(("failures", "wait"), [(1, 1), (2, 2), (3, 4), (4, 4)])
@pytest.mark.parametrize("outcome", [Outcome.NOT_SENT, Outcome.REJECTED])
def test_backoff_grows_with_the_failures_that_are_known(outcome: Outcome, failures: int, wait: float) -> None:
    made = [
        attempt(outcome, number=n, started=n, ended=n, retryable=True, failure=TIMEOUT)
        for n in range(1, failures + 1)
    ]
    given = facts(Evidence.NOT_APPLIED, *made, began=failures, declared=policy(retry=BACKOFF))
    assert decide(given) == Decision(RETRY, Reason.SAFE_RETRY, at(failures + wait))


def test_no_backoff_after_an_attempt_that_was_waited_for() -> None:
    failed = attempt(Outcome.NOT_SENT, ended=0, failure=TIMEOUT)
    ambiguous = attempt(number=2, started=1)
    assert decided(failed, ambiguous, began=20, declared=policy(retry=BACKOFF)).retry_at is None


def test_no_backoff_after_a_pause_before_the_send() -> None:
    paused = attempt(Outcome.NOT_SENT, ended=8, failure=None)
    assert decided(paused, began=8, declared=policy(retry=BACKOFF)) == Decision(RETRY, Reason.SAFE_RETRY)


def test_backoff_that_is_over_means_now() -> None:
    failed = attempt(Outcome.NOT_SENT, ended=0, failure=TIMEOUT)
    assert decided(failed, began=1 - TICK, declared=policy(retry=BACKOFF)).retry_at == at(1)
    assert decided(failed, began=1, declared=policy(retry=BACKOFF)).retry_at is None


def test_L9_not_sent_uses_up_no_attempt() -> None:
    not_sent = [attempt(Outcome.NOT_SENT, number=n, ended=1) for n in range(1, 9)]
    sent = attempt(Outcome.AMBIGUOUS, number=9)
    assert decided(*not_sent, declared=policy(max_attempts=1)).reason is Reason.SAFE_RETRY
    assert decided(*not_sent, sent, declared=policy(max_attempts=1)).reason is Reason.ATTEMPTS_EXHAUSTED
    assert decided(*not_sent, sent, declared=policy(max_attempts=2)).reason is Reason.SAFE_RETRY


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.NOT_SENT])
def test_every_other_outcome_uses_up_an_attempt(outcome: Outcome) -> None:
    made = [attempt(outcome, number=n, ended=1, retryable=True) for n in (1, 2)]
    assert decided(*made, declared=policy(max_attempts=2)).reason is Reason.ATTEMPTS_EXHAUSTED
    assert decided(*made, declared=policy(max_attempts=3)).reason is Reason.SAFE_RETRY


def test_the_wait_between_looks_doubles_up_to_its_maximum() -> None:
    waits = [
        decide(facts(Evidence.PENDING, looks=looks, began=0)).retry_at == at(wait)
        for looks, wait in enumerate([5, 10, 20, 40, 80, 160, 300, 300])
    ]
    assert all(waits)
    assert decide(facts(Evidence.PENDING, looks=10**9, began=0)).retry_at == at(300), "and does not overflow"


# -- keys that the provider forgets (D2) ----------------------------------------------------------------------


def keyed(retention: timedelta | None, timeout: float | None = None) -> Policy:
    bound = None if timeout is None else seconds(timeout)
    return Policy(window=seconds(0), execute_timeout=bound, key_retention=retention)


def test_D2_a_key_must_outlive_the_attempt_that_would_use_it() -> None:
    made = attempt(window=0)
    assert decided(made, began=94 - TICK, declared=keyed(seconds(100), 6)).reason is Reason.SAFE_RETRY
    assert decided(made, began=94, declared=keyed(seconds(100), 6)).reason is Reason.KEY_EXPIRED


def test_D2_without_a_timeout_an_attempt_is_given_a_minute() -> None:
    made = attempt(window=0)
    assert decided(made, began=40 - TICK, declared=keyed(seconds(100))).reason is Reason.SAFE_RETRY
    assert decided(made, began=40, declared=keyed(seconds(100))).reason is Reason.KEY_EXPIRED


def test_D2_the_first_attempt_that_was_sent_starts_the_clock() -> None:
    not_sent = attempt(Outcome.NOT_SENT, started=0, ended=0)
    first, second = attempt(number=2, started=7), attempt(number=3, started=50)
    declared = keyed(seconds(100))
    assert key_expires((not_sent, first, second), declared) == at(107)
    assert key_expires((not_sent,), declared) is None, "the provider has never seen it"


def test_D2_a_provider_that_never_forgets() -> None:
    assert key_expires((attempt(),), keyed(FOREVER)) is None
    assert decided(attempt(window=0), began=10**9, declared=keyed(FOREVER)).reason is Reason.SAFE_RETRY


def test_D2_without_deduplication_no_key_expires() -> None:
    assert decided(began=10**9).reason is Reason.SAFE_RETRY


# -- a mutant, so that these tests are known to be able to fail ----------------------------------------------


@pytest.mark.parametrize("dropped", range(len(TABLE) - 1))
def test_a_table_without_one_of_its_rows_fails_a_case(dropped: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TABLE", TABLE[:dropped] + TABLE[dropped + 1 :])

    def outcome(given: Facts) -> Decision | None:
        try:
            return decide(given)
        except AssertionError:
            return None

    wrong = [name for name, given, wanted in ROWS if outcome(given) != wanted]
    assert wrong
