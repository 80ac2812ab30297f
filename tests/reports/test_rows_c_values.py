"""Reports about ledgers: values that a database does not take (C09 to C11)."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from corrobo_core import (
    Attempt,
    Disposition,
    Effect,
    EffectRunner,
    IntentError,
    NotYetError,
    Observation,
    Reason,
    Verdict,
    effect,
)
from tests.reports.provider import Provider, effect_at
from tests.support.credits import seconds, settle
from tests.support.ledgers import AnyLedger, ledger_at

RESULTS: dict[str, object] = {
    "c09 NUL in a value": {"note": "a\x00b"},
    "c09 NUL in a key": {"a\x00b": 1},
    "c10 lone surrogate": {"said": "\ud83d"},
    "c10 bad pair": ["\ude00\ud83d"],
    "c10 surrogate in a key": {"\ud83d": {}},
    "c11 NaN": {"rate": math.nan},
    "c11 infinity": [math.inf, -math.inf],
    "c11 decimal NaN": Decimal("NaN"),
    "bytes": b"\x00\xff",
    "large integer": 2**70,
    "looks like our own mark": {"$corrobo": "nan"},
}
READ_BACK = {"c11 decimal NaN": "NaN"}  # decimals are text, unless the effect declares the type


@pytest.mark.parametrize("name", list(RESULTS))
def test_c09_to_c11_no_answer_of_a_provider_makes_a_write_unrecordable(name: str, ledger_address: str) -> None:
    provider = Provider(RESULTS[name])
    do = effect_at(provider, in_flight_window=seconds(5))
    with ledger_at(ledger_address) as ledger:
        assert EffectRunner(ledger).run(do, "poison").disposition is Disposition.COMPLETE
    with ledger_at(ledger_address) as ledger:  # as a new process reads it
        runner = EffectRunner(ledger)
        again = runner.run(do, "poison")
        assert again.disposition is Disposition.COMPLETE
        assert not again.value_lost
        assert repr(again.effect) == repr(READ_BACK.get(name, RESULTS[name]))  # NaN is not equal to itself
        provider.value, provider.done = "plain", []
        assert runner.run(do, "the next one").disposition is Disposition.COMPLETE  # nothing is blocked
    assert provider.sends == 2


def test_c10_too_large_a_result_is_recorded_by_size_and_digest(ledger_address: str) -> None:
    provider = Provider("x" * 20_000_000)
    do = effect_at(provider, in_flight_window=seconds(5))
    for _ in range(2):
        with ledger_at(ledger_address) as ledger:
            assert EffectRunner(ledger).run(do, "large").disposition is Disposition.COMPLETE
    assert provider.sends == 1


@pytest.mark.parametrize("text", ["a\x00b", "\ud83d", "\ude00\ud83d", "x" * 100_000])
def test_c09_c10_what_hooks_say_is_stored_whatever_it_contains(text: str, any_ledger: AnyLedger) -> None:
    provider = Provider()
    provider.says = []
    do = effect_at(provider, in_flight_window=seconds(5), reconcile=lambda found: Verdict.not_applied(text, text))
    provider.fail(RuntimeError(text))
    runner = EffectRunner(any_ledger)
    with pytest.raises(NotYetError):
        runner.run(do, "poison").unwrap()
    stored = runner.observing_now().run(do, "poison")
    assert stored.reason == Reason.SETTLING
    assert stored.attempts[0].failure is not None
    assert 0 < len(stored.attempts[0].failure.message) <= 2_000
    assert provider.sends == 1


def _paying(provider: Provider) -> Effect[[object], object]:
    @effect("test/pay", identity=lambda **_: "pay", in_flight_window=seconds(5))
    def pay(attempt: Attempt, amount: object) -> object:
        return provider.send()

    @pay.observe
    def seen(attempt: Attempt) -> Observation[list[object]]:
        return Observation.of(provider.find(), source="provider", proves_absence=True)

    @seen.reconcile
    def judged(attempt: Attempt, found: list[object]) -> Verdict[object]:
        return Verdict.applied("THERE", effect=found[0]) if found else Verdict.not_applied("NOT_THERE")

    return pay


@pytest.mark.parametrize(
    "amount",
    [math.nan, math.inf, -math.inf, {"a": [1, {"b": math.nan}]}, Decimal("NaN"), "\ud83d", "a\x00b", {"\x00": 1}],
    ids=repr,
)
def test_c09_to_c11_an_intent_that_cannot_be_stored_is_refused_before_anything_happens(
    amount: object, any_ledger: AnyLedger
) -> None:
    provider = Provider()
    pay, runner = _paying(provider), EffectRunner(any_ledger)
    with pytest.raises(IntentError) as caught:
        runner.run(pay, amount)
    assert caught.value.path.startswith("intent.amount")
    assert provider.sends == 0
    assert runner.observe(pay, 1).reason == Reason.NEVER_SENT
    assert settle(lambda: runner.run(pay, 1)).disposition is Disposition.COMPLETE
