"""Reports of duplicates at providers: keys that change, expire, or are refused (B01 to B05)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from corrobo_core import (
    Attempt,
    Disposition,
    Effect,
    EffectResult,
    EffectRunner,
    IdentityReused,
    MemoryLedger,
    Observation,
    Outcome,
    Reason,
    Rejected,
    Verdict,
    current_attempt,
    effect,
)
from examples.http_ledger import Credit, HttpLedger, lands_late, refused
from tests.reports.provider import Clock, Provider, effect_at, judge
from tests.support.credits import CreditEffect, HttpxCredits, retry_blindly, seconds, settle, time_to_begin
from tests.support.ledgers import AnyLedger, ledger_at

DAY = timedelta(hours=24)


# -- B01: a new key for each try -----------------------------------------------------------------------------


def test_b01_every_attempt_in_every_process_is_handed_the_same_key(
    http_ledger: HttpLedger, ledger_address: str, reference: str
) -> None:
    client, keys = HttpxCredits(http_ledger), []

    def send(about: str, amount_cents: int) -> Credit:
        keys.append(current_attempt().idempotency_key)
        return client.send(about, amount_cents)

    def one_pass() -> EffectResult[Credit]:
        with ledger_at(ledger_address) as ledger:  # as a new process would
            return CreditEffect(client, send=send, in_flight_window=seconds(0.3)).run(ledger, reference)

    http_ledger.fail_next(refused(503), refused(503))
    assert settle(one_pass).disposition is Disposition.COMPLETE
    assert len(keys) == 3
    assert len(set(keys)) == 1


def _keyed(
    provider: Provider, sent: list[tuple[str, str, str]], **declared: Any
) -> Effect[[str, str, str], object]:
    """An effect whose caller passes something of their own besides: a key, a tag, a time."""

    @effect("test/keyed", identity=lambda name, **_: name, **time_to_begin(declared))
    def do(attempt: Attempt, name: str, amount: str, extra: str) -> object:
        sent.append((attempt.idempotency_key, amount, extra))
        return provider.send()

    @do.observe
    def seen(attempt: Attempt) -> Observation[list[object]]:
        return Observation.of(provider.find(), source="provider", proves_absence=True)

    @seen.reconcile
    def judged(attempt: Attempt, found: list[object]) -> Verdict[object]:
        return judge(found)

    return do


def test_b01_a_key_that_the_caller_changes_is_refused(any_ledger: AnyLedger) -> None:
    provider, sent = Provider(), list[tuple[str, str, str]]()
    keyed = _keyed(provider, sent, in_flight_window=seconds(5))
    provider.fail(TimeoutError(), loses_request=True)
    runner = EffectRunner(any_ledger)
    runner.run(keyed, "rf", "10", "key 1")
    with pytest.raises(IdentityReused) as caught:
        runner.run(keyed, "rf", "10", "key 2")
    assert caught.value.field == "intent"
    assert provider.sends == 1


# -- B02: a key made from everything, times included ---------------------------------------------------------


def test_b02_what_is_declared_volatile_changes_neither_operation_nor_key(any_ledger: AnyLedger) -> None:
    provider, sent = Provider(), list[tuple[str, str, str]]()
    keyed = _keyed(provider, sent, in_flight_window=seconds(0.3), volatile=("extra",))
    runner = EffectRunner(any_ledger)
    provider.fail(TimeoutError(), loses_request=True)
    runner.run(keyed, "rf", "10", "12:00:00")
    end = settle(lambda: runner.run(keyed, "rf", "10", "12:00:09"))
    assert end.disposition is Disposition.COMPLETE
    assert len(sent) == 2
    assert sent[0] == sent[1]  # what is sent again is what was recorded
    assert sent[0][1:] == ("10", "12:00:00")
    with pytest.raises(IdentityReused):
        runner.run(keyed, "rf", "11", "12:00:00")
    assert (provider.sends, len(provider.done)) == (2, 1)


# -- B03: a key that the provider has forgotten --------------------------------------------------------------


@pytest.mark.parametrize(
    ("retention", "asleep", "sends"),
    [(DAY, timedelta(hours=23), 2), (DAY, timedelta(hours=25), 1), (timedelta.max, timedelta(hours=25), 2)],
    ids=["remembered", "forgotten", "never forgotten"],
)
def test_b03_after_the_keys_lifetime_nothing_is_sent_again(
    retention: timedelta, asleep: timedelta, sends: int
) -> None:
    clock, provider = Clock(), Provider()
    runner = EffectRunner(MemoryLedger(clock=clock))
    do = effect_at(provider, in_flight_window=timedelta(), key_retention=retention)
    provider.fail(ConnectionResetError(), loses_request=True)
    provider.unreadable = True
    assert runner.run(do, "charge").disposition is Disposition.INVESTIGATE
    provider.unreadable = False
    clock.move(asleep)
    result = runner.run(do, "charge")
    assert provider.sends == sends
    if sends == 1:
        assert (result.disposition, result.reason) == (Disposition.INVESTIGATE, Reason.KEY_EXPIRED)
        provider.done.append("landed")  # proof may still turn up
        clock.move(DAY)
        assert runner.run(do, "charge").disposition is Disposition.COMPLETE
        assert provider.sends == 1


def test_b03_the_keys_lifetime_ends_by_the_ledgers_clock(
    http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str
) -> None:
    credit = CreditEffect(
        HttpxCredits(http_ledger),
        in_flight_window=timedelta(),
        key_retention=seconds(0.5),
        execute_timeout=seconds(0.6),  # so long that no second use of the key could end in time
    )
    http_ledger.fail_next(refused(503))
    result = credit.run(any_ledger, reference)
    assert (result.disposition, result.reason) == (Disposition.INVESTIGATE, Reason.KEY_EXPIRED)
    assert credit.settle(any_ledger, reference, within=0.3).reason == Reason.KEY_EXPIRED
    assert http_ledger.counts(reference).write_requests == 1


# -- B04: a tag that is added on the second try --------------------------------------------------------------


def test_b04_a_tag_cannot_be_added_to_a_retry(any_ledger: AnyLedger) -> None:
    provider, sent = Provider(), list[tuple[str, str, str]]()
    keyed = _keyed(provider, sent, in_flight_window=seconds(0.3))
    runner = EffectRunner(any_ledger)
    provider.fail(ConnectionResetError(), loses_request=True)
    runner.run(keyed, "rf", "10", "")
    with pytest.raises(IdentityReused):
        settle(lambda: runner.run(keyed, "rf", "10", "tag to search for"))
    assert provider.sends == 1


@pytest.mark.parametrize(
    ("found", "reason"), [(["another", "body"], Reason.WORLD_CHANGED), ([], Reason.PROVIDER_REFUSED)]
)
def test_b04_same_key_with_another_body_closes_the_operation(
    found: list[object], reason: Reason, any_ledger: AnyLedger
) -> None:
    provider = Provider()
    do = effect_at(provider, in_flight_window=seconds(0.3))
    provider.says = found
    provider.fail(Rejected("400: keys can only be used with the same parameters"), loses_request=True)
    runner = EffectRunner(any_ledger)
    for _ in range(2):
        result = runner.run(do, "charge")
        assert (result.disposition, result.reason) == (Disposition.REPLAN, reason)
    assert provider.sends == 1


# -- B05: 409, the first request is still being processed ----------------------------------------------------


def test_b05_a_naive_retry_of_409_writes_twice(http_ledger: HttpLedger, reference: str) -> None:
    http_ledger.fail_next(lands_late(0.2, status=409))
    retry_blindly(lambda: HttpxCredits(http_ledger).send(reference, 5_000))
    http_ledger.wait_for_count(2, reference)


def test_b05_in_progress_at_the_provider_is_neither_failure_nor_success(
    http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str
) -> None:
    http_ledger.fail_next(refused(503), lands_late(0.5, status=409))
    credit = CreditEffect(HttpxCredits(http_ledger), in_flight_window=seconds(1))
    passes: list[EffectResult[Credit]] = []

    def one_pass() -> EffectResult[Credit]:
        passes.append(credit.run(any_ledger, reference))
        return passes[-1]

    end = settle(one_pass)
    assert end.disposition is Disposition.COMPLETE
    conflict = next(result for result in passes if len(result.attempts) == 2)
    assert (conflict.disposition, conflict.reason) == (Disposition.RETRY, Reason.SETTLING)
    assert conflict.retry_at is not None
    assert conflict.attempts[-1].outcome is Outcome.AMBIGUOUS
    counts = http_ledger.counts(reference)
    assert (counts.credits, counts.write_requests) == (1, 2)


@pytest.mark.parametrize(
    ("amount_there", "disposition"), [(5_000, Disposition.COMPLETE), (4_999, Disposition.REPLAN)]
)
def test_b05_what_already_exists_is_adopted_only_if_it_is_ours(
    amount_there: int, disposition: Disposition, http_ledger: HttpLedger, any_ledger: AnyLedger, reference: str
) -> None:
    client = HttpxCredits(http_ledger)
    there = client.send(reference, amount_there)
    http_ledger.fail_next(refused(409))
    result = CreditEffect(client, in_flight_window=seconds(5)).run(any_ledger, reference)
    assert result.disposition is disposition
    assert result.effect == (there if disposition is Disposition.COMPLETE else None)
    assert http_ledger.count(reference) == 1
