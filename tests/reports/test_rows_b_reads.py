"""Reports of duplicates at providers: reads that lag, go backwards, or see a part (B07 to B11)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest

from corrobo_core import (
    Attempt,
    Backoff,
    Disposition,
    Effect,
    EffectRunner,
    Evidence,
    MemoryLedger,
    Observation,
    Outcome,
    Reason,
    Verdict,
    effect,
)
from examples.http_ledger import (
    Credit,
    HttpLedger,
    answer_lost,
    error_after_commit,
    lands_late,
    reads_fail,
    reads_stale,
    refused,
)
from tests.reports.provider import Clock, Provider, effect_at, judge
from tests.support.credits import CreditEffect, HttpxCredits, check_then_send, seconds, settle, time_to_begin
from tests.support.ledgers import AnyLedger

# -- B07: a search index that lags ---------------------------------------------------------------------------

LAG = 0.6


def test_b07_naive_find_or_create_writes_twice(http_ledger: HttpLedger, reference: str) -> None:
    http_ledger.fail_next(answer_lost(reference=reference), reads_stale(LAG, reference=reference, times=None))
    client = HttpxCredits(http_ledger)
    check_then_send(lambda: client.find(reference), lambda: client.send(reference, 5_000))
    assert http_ledger.count(reference) == 2


def test_b07_an_empty_search_means_nothing_before_its_lag_has_passed(
    http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str
) -> None:
    http_ledger.fail_next(answer_lost(reference=reference), reads_stale(LAG, reference=reference, times=None))
    credit = CreditEffect(
        HttpxCredits(http_ledger), in_flight_window=seconds(0.3), observation_lag=seconds(LAG + 0.1)
    )
    first = credit.run(any_ledger, reference)
    assert (first.evidence, first.disposition) == (Evidence.NOT_APPLIED, Disposition.RETRY)
    assert first.reason == Reason.SETTLING
    end = credit.settle(any_ledger, reference)
    assert end.disposition is Disposition.COMPLETE
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 1)


def test_b07_nothing_is_sent_again_within_window_and_lag() -> None:
    clock, provider = Clock(), Provider()
    do = effect_at(provider, in_flight_window=seconds(10), observation_lag=seconds(60))
    runner = EffectRunner(MemoryLedger(clock=clock)).observing_now()
    provider.fail(TimeoutError(), loses_request=True)
    started = clock.now
    for passed in (0, 5, 10, 60, 69):
        clock.now = started + seconds(passed)
        result = runner.run(do, "customer")
        assert (result.disposition, result.reason) == (Disposition.RETRY, Reason.SETTLING)
        assert result.retry_at is not None
        assert result.retry_at > started + seconds(70)
    assert provider.sends == 1
    clock.now = started + seconds(71)
    assert runner.run(do, "customer").disposition is Disposition.COMPLETE
    assert provider.sends == 2


def test_b07_a_search_that_could_miss_it_never_leads_to_a_second_request(any_ledger: AnyLedger) -> None:
    provider = Provider()
    do = effect_at(provider, proves_absence=False, in_flight_window=seconds(0.3))
    provider.fail(TimeoutError(), loses_request=True)
    runner = EffectRunner(any_ledger)
    result = settle(lambda: runner.run(do, "customer"), within=0.6)
    assert (result.disposition, result.reason) == (Disposition.INVESTIGATE, Reason.ABSENCE_NOT_PROVEN)
    assert result.evidence is Evidence.UNKNOWN
    assert provider.sends == 1


# -- B08: a search index that goes backwards -----------------------------------------------------------------


def test_b08_what_was_seen_once_stays_seen(any_ledger: AnyLedger) -> None:
    provider = Provider()
    do = effect_at(provider, in_flight_window=timedelta(), key_retention=timedelta.max)  # settled at once
    runner = EffectRunner(any_ledger)
    provider.fail(TimeoutError())
    assert runner.run(do, "customer").disposition is Disposition.COMPLETE
    provider.says = []
    seen_again = runner.observe(do, "customer")
    assert seen_again.disposition is Disposition.COMPLETE
    assert seen_again.history.last[-1].evidence is Evidence.NOT_APPLIED  # kept, and reopens nothing
    after = runner.run(do, "customer")
    assert (after.disposition, after.effect) == (Disposition.COMPLETE, "done")
    assert provider.sends == 1


# -- B09: only the first page was read -----------------------------------------------------------------------

PAGE = 10
COMMENTS = 15


def _comment(http: HttpLedger, thread: str, *, pages: int | None) -> Effect[[str], Credit]:
    """A comment on a thread: found by its marker, among those that were read."""
    declared = time_to_begin({"in_flight_window": seconds(0.3)})
    poll = Backoff(seconds(0.1), seconds(0.1))

    @effect("test/comment", identity=lambda marker: marker, poll=poll, **declared)
    def comment(attempt: Attempt, marker: str) -> Credit:
        return http.credit(thread, marker, 1)

    @comment.observe
    def seen(attempt: Attempt, marker: str) -> Observation[list[Credit]]:
        everything = http.credits(thread)
        read = everything if pages is None else everything[: PAGE * pages]
        found = [one for one in read if one.reference == marker]
        return Observation.of(found, source="comments", proves_absence=len(read) == len(everything))

    @seen.reconcile
    def judged(attempt: Attempt, found: list[Credit]) -> Verdict[Credit]:
        return judge(found)

    return comment


@pytest.mark.parametrize("pages", [1, None], ids=["first page", "all pages"])
def test_b09_part_of_a_list_proves_no_absence(
    pages: int | None, http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str
) -> None:
    for number in range(COMMENTS):
        http_ledger.credit(reference, f"{reference} {number}", 1)
    marker = f"{reference} marker"
    http_ledger.fail_next(answer_lost(reference=marker))
    runner, comment = EffectRunner(any_ledger), _comment(http_ledger, reference, pages=pages)
    result = settle(lambda: runner.run(comment, marker), within=0.6)
    if pages is None:
        assert result.disposition is Disposition.COMPLETE
    else:
        assert (result.evidence, result.reason) == (Evidence.UNKNOWN, Reason.ABSENCE_NOT_PROVEN)
        naive_finds_nothing = not [c for c in http_ledger.credits(reference)[:PAGE] if c.reference == marker]
        assert naive_finds_nothing  # and would comment again
    counts = http_ledger.counts(marker)
    assert (counts.credits, counts.write_requests) == (1, 1)


# -- B10: an error, and it exists all the same ---------------------------------------------------------------


def test_b10_what_exists_in_spite_of_a_500_is_adopted_and_remembered(
    http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str
) -> None:
    http_ledger.fail_next(error_after_commit(500))
    client = HttpxCredits(http_ledger)
    credit = CreditEffect(client, in_flight_window=seconds(5))
    first = credit.run(any_ledger, reference)
    assert first.disposition is Disposition.COMPLETE
    assert first.effect == client.find(reference)[0]
    http_ledger.fail_next(reads_fail(times=None))
    later = credit.run(any_ledger, reference)  # its id is in the ledger, whatever the provider says now
    assert (later.disposition, later.effect) == (Disposition.COMPLETE, first.effect)
    assert http_ledger.counts(reference).write_requests == 1


def test_b10_what_belongs_to_somebody_else_is_not_adopted(
    http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str
) -> None:
    client = HttpxCredits(http_ledger)
    client.send(reference, 7)
    http_ledger.fail_next(refused(500))
    result = CreditEffect(client, in_flight_window=seconds(5)).run(any_ledger, reference)
    assert (result.disposition, result.reason, result.effect) == (
        Disposition.REPLAN,
        Reason.WORLD_CHANGED,
        None,
    )
    assert http_ledger.count(reference) == 1


# -- B11: one look was too early -----------------------------------------------------------------------------


def test_b11_looking_before_the_window_is_over_decides_nothing(
    http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str
) -> None:
    client = HttpxCredits(http_ledger, timeout=0.1)
    credit = CreditEffect(client, in_flight_window=seconds(1.2))
    http_ledger.fail_next(replace(lands_late(0.6), reference=reference))
    result = credit.run(any_ledger, reference)
    eager = EffectRunner(any_ledger).observing_now()
    looks = 0
    while result.disposition is not Disposition.COMPLETE:
        assert (result.disposition, result.reason) == (Disposition.RETRY, Reason.SETTLING)
        assert [attempt.outcome for attempt in result.attempts] == [Outcome.AMBIGUOUS]
        result = eager.run(credit.sync, reference, 5_000)
        looks += 1
    assert looks > 1
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 1)


def test_b11_a_naive_look_writes_twice(http_ledger: HttpLedger, reference: str) -> None:
    http_ledger.fail_next(replace(lands_late(0.4), reference=reference))
    client = HttpxCredits(http_ledger)
    with suppress(httpx.HTTPError):
        client.send(reference, 5_000)
    check_then_send(lambda: client.find(reference), lambda: client.send(reference, 5_000))
    http_ledger.wait_for_count(2, reference)
