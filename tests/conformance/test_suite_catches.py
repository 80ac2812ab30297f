"""Each rule of the conformance suite fails on a ledger that breaks it."""

from __future__ import annotations

import inspect
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from corrobo_core.commands import Claim, KeepLate, Load, Open, Opened, Reading, Record, Refused, Written
from corrobo_core.ledgers import _owner_file, _sqlite_commands
from corrobo_core.ledgers.memory import MemoryLedger
from corrobo_core.ledgers.sqlite import SqliteLedger
from corrobo_core.records import Operation, OperationKey, evolve
from corrobo_core.testing import LedgerConformance, ManagedLedger, SharedLedgerConformance
from corrobo_core.testing._drivers import DRIVERS
from corrobo_core.testing._suite import Asking


def _fails(suite: LedgerConformance, rule: str, ledger: ManagedLedger, other: ManagedLedger | None = None) -> None:
    test = getattr(suite, rule)
    with DRIVERS["sync"]() as driver:
        available: dict[str, Any] = {"driver": driver, "asking": Asking(driver, ledger)}
        driver.enter(ledger)
        if other is not None:
            available["other"] = Asking(driver, other)
            driver.enter(other)
        wanted = {name: available[name] for name in inspect.signature(test).parameters}
        with pytest.raises((AssertionError, ValueError)):
            test(**wanted)


# -- mutants of a ledger for one process ---------------------------------------------------------------------


class _Mutant(MemoryLedger):
    breaks: ClassVar[tuple[str, ...]]

    def perform(self, command: Any, /) -> Any:
        return self.after(command, super().perform(self.before(command)))

    def before(self, command: Any) -> Any:
        return command

    def after(self, command: Any, reply: Any) -> Any:
        return reply

    def now_stored(self, key: OperationKey) -> Operation:
        stored = MemoryLedger.perform(self, Load(key)).operation
        assert stored is not None
        return stored


class EverythingIsMine(_Mutant):
    breaks = ("test_open_returns_what_is_there_and_changes_nothing", "test_of_racing_opens_one_is_mine")

    def after(self, command: Any, reply: Any) -> Any:
        return Opened(reply.operation, True, reply.holder, reply.reading) if isinstance(command, Open) else reply


class OnlyInsertsAreMine(_Mutant):
    breaks = ("test_open_again_after_a_lost_reply_finds_its_own_row",)

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[OperationKey] = set()

    def after(self, command: Any, reply: Any) -> Any:
        if not isinstance(command, Open):
            return reply
        new = command.operation.key not in self._seen
        self._seen.add(command.operation.key)
        return Opened(reply.operation, new, reply.holder, reply.reading)


class OpenOverwrites(_Mutant):
    breaks = (
        "test_open_returns_what_is_there_and_changes_nothing",
        "test_open_shows_another_operation_type_under_the_same_id",
        "test_open_shows_another_intent_under_the_same_id",
    )

    def after(self, command: Any, reply: Any) -> Any:
        if isinstance(command, Open) and not reply.mine:
            given = evolve(command.operation, version=reply.operation.version)
            written = MemoryLedger.perform(self, Claim(given))
            assert isinstance(written, Written)
            return Opened(written.operation, False, reply.holder, reply.reading)
        return reply


class WritesUnfenced(_Mutant):
    breaks = (
        "test_record_of_another_version_is_refused_and_changes_nothing",
        "test_record_again_after_a_lost_reply_is_refused_and_its_nonce_tells",
        "test_of_racing_records_one_is_written",
        "test_claim_of_another_version_is_refused_and_changes_nothing",
        "test_of_racing_claims_one_is_written",
        "test_an_abandoned_attempt_can_be_superseded_and_not_recorded_unseen",
    )

    def before(self, command: Any) -> Any:
        if isinstance(command, Record | Claim):
            current = self.now_stored(command.operation.key).version
            return type(command)(evolve(command.operation, version=current))
        return command


class TrustsTheNonce(_Mutant):
    breaks = ("test_record_again_after_a_lost_reply_is_refused_and_its_nonce_tells",)

    def after(self, command: Any, reply: Any) -> Any:
        if isinstance(command, Record) and isinstance(reply, Refused):
            stored = self.now_stored(command.operation.key)
            return Written(stored, reply.reading) if stored.nonce == command.operation.nonce else reply
        return reply


class WritesWhatIsNotThere(_Mutant):
    breaks = ("test_record_of_an_unknown_operation_is_refused",)

    def before(self, command: Any) -> Any:
        if isinstance(command, Record):
            super().perform(Open(command.operation))
        return command


class LosesAField(_Mutant):
    breaks = ("test_everything_stored_reads_back_equal",)

    def before(self, command: Any) -> Any:
        return Record(evolve(command.operation, looking_since=None)) if isinstance(command, Record) else command


class CutsText(_Mutant):
    breaks = ("test_a_large_record_reads_back_equal",)

    def before(self, command: Any) -> Any:
        return (
            Open(evolve(command.operation, intent=command.operation.intent[:65535]))
            if (isinstance(command, Open))
            else command
        )


class RestartsOnRecord(_Mutant):
    breaks = ("test_record_leaves_the_start_of_the_attempt_as_it_was",)

    def before(self, command: Any) -> Any:
        return Claim(command.operation) if isinstance(command, Record) else command


class StartsByTheCallersClock(_Mutant):
    breaks = (
        "test_open_inserts_a_reserved_attempt_started_by_the_ledgers_clock",
        "test_claim_reserves_one_more_attempt",
    )

    def _written(self, operation: Operation, version: int, now: datetime, *, reserves: bool) -> Operation:
        return super()._written(operation, version, now - timedelta(seconds=90), reserves=reserves)


class ReservesForNobody(_Mutant):
    breaks = ("test_open_inserts_a_reserved_attempt_started_by_the_ledgers_clock",)

    def _written(self, operation: Operation, version: int, now: datetime, *, reserves: bool) -> Operation:
        return evolve(super()._written(operation, version, now, reserves=reserves), owner=None)


class RecordFreesTheOwner(_Mutant):
    breaks = ("test_record_can_keep_the_attempt_reserved_for_its_owner",)

    def before(self, command: Any) -> Any:
        return Record(evolve(command.operation, owner=None)) if isinstance(command, Record) else command


class KeepsPassesForEver(_Mutant):
    breaks = ("test_an_attempt_whose_pass_has_ended_is_gone",)

    def pass_ended(self, nonce: str, /) -> None:
        pass


class TakesEveryPassForThisOne(_Mutant):
    breaks = ("test_another_pass_of_the_process_does_not_hold_it",)

    def pass_started(self, nonce: str, /) -> None:
        super().pass_started(nonce)
        super().pass_started("abc")


class AbandonsNothing(_Mutant):
    breaks = (
        "test_an_abandoned_attempt_is_held_by_nobody",
        "test_an_abandoned_attempt_can_be_superseded_and_not_recorded_unseen",
    )

    def abandon(self, key: OperationKey, nonce: str, /) -> None:
        pass


class AbandonsWhateverIsLatest(_Mutant):
    breaks = (
        "test_abandoning_marks_no_attempt_that_has_an_outcome",
        "test_abandoning_marks_no_later_attempt",
    )

    def abandon(self, key: OperationKey, nonce: str, /) -> None:
        stored = self.now_stored(key)
        given_up = evolve(stored.latest, abandoned=datetime.now(UTC))
        super().perform(Record(evolve(stored, attempts=(*stored.attempts[:-1], given_up), owner=None)))


class AbandonInserts(_Mutant):
    breaks = ("test_abandoning_what_was_never_reserved_does_no_harm",)

    def abandon(self, key: OperationKey, nonce: str, /) -> None:
        super().perform(Open(Operation(key, "{}", "v1:sha256:0", nonce=nonce)))


class LoadInserts(_Mutant):
    breaks = ("test_load_of_an_unknown_operation_finds_nothing_and_makes_nothing",)

    def after(self, command: Any, reply: Any) -> Any:
        if isinstance(command, Load):
            super().perform(Open(Operation(command.key, "{}", "v1:sha256:0", nonce="load")))
        return reply


class LateEvidenceTouchesTheRow(_Mutant):
    breaks = ("test_late_evidence_decides_nothing",)

    def after(self, command: Any, reply: Any) -> Any:
        if isinstance(command, KeepLate):
            super().perform(Record(self.now_stored(command.key)))
        return reply


class _OtherIds(_Mutant):
    @staticmethod
    def changed(key: OperationKey) -> OperationKey:
        raise NotImplementedError

    def _find(self, key: OperationKey) -> Operation | None:
        return super()._find(self.changed(key))

    def _store(self, operation: Operation) -> Operation:
        return super()._store(evolve(operation, key=self.changed(operation.key)))


class OneNamespace(_OtherIds):
    breaks = ("test_namespaces_never_meet",)

    @staticmethod
    def changed(key: OperationKey) -> OperationKey:
        return replace(key, namespace="default")


class FoldsCase(_OtherIds):
    breaks = ("test_ids_that_only_look_alike_are_different",)

    @staticmethod
    def changed(key: OperationKey) -> OperationKey:
        return replace(key, operation_id=key.operation_id.lower())


class StripsIds(_OtherIds):
    breaks = ("test_ids_that_only_look_alike_are_different",)

    @staticmethod
    def changed(key: OperationKey) -> OperationKey:
        return replace(key, operation_id=key.operation_id.strip())


class NormalisesIds(_OtherIds):
    breaks = ("test_ids_that_only_look_alike_are_different",)

    @staticmethod
    def changed(key: OperationKey) -> OperationKey:
        return replace(key, operation_id=unicodedata.normalize("NFC", key.operation_id))


class OneKeyForAll(_Mutant):
    breaks = ("test_the_idempotency_key_is_one_for_each_operation",)

    def idempotency_key(self, key: OperationKey, /) -> str:
        return super().idempotency_key(OperationKey(key.namespace, key.operation_id, ""))


class StopwatchStartsAfterTheStatement(_Mutant):
    breaks = ("test_every_reply_carries_a_reading_tied_to_the_stopwatch",)

    @staticmethod
    def _reading(sent: float, now: datetime) -> Reading:
        return Reading(now, sent + 1e6, sent)


class LocalTime(_Mutant):
    breaks = ("test_every_reply_carries_a_reading_tied_to_the_stopwatch",)

    @staticmethod
    def _reading(sent: float, now: datetime) -> Reading:
        return MemoryLedger._reading(sent, now.replace(tzinfo=None))


class MigratingForgets(_Mutant):
    breaks = ("test_migrating_again_keeps_everything",)

    def migrate(self) -> None:
        MemoryLedger.__init__(self)


def _all_mutants(base: type[_Mutant] = _Mutant) -> list[type[_Mutant]]:
    found = [m for sub in base.__subclasses__() for m in (sub, *_all_mutants(sub))]
    return [mutant for mutant in found if hasattr(mutant, "breaks")]


@pytest.mark.parametrize(
    ("mutant", "rule"),
    [pytest.param(m, rule, id=f"{m.__name__}-{rule}") for m in _all_mutants() for rule in m.breaks],
)
def test_a_broken_ledger_fails(mutant: type[_Mutant], rule: str) -> None:
    _fails(LedgerConformance(), rule, mutant())


# -- mutants of a shared ledger --------------------------------------------------------------------------------


def _everyone_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_owner_file.Owner, "lives", lambda self, key: True)


def _nobody_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_owner_file.Owner, "lives", lambda self, key: False)


def _owners_are_never_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_owner_file.Owner, "release", lambda self: None)


def _closing_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sqlite_commands.Commands, "mark", lambda self, abandoned, *, wait: None)


def _abandons_for_everyone(monkeypatch: pytest.MonkeyPatch) -> None:
    unowned = _sqlite_commands._ABANDON.replace("owner = :owner", "(owner is not null or :owner is null)")
    monkeypatch.setattr(_sqlite_commands, "_ABANDON", unowned)


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (_everyone_lives, "test_an_attempt_of_an_ended_owner_is_gone_at_once"),
        (_nobody_lives, "test_an_attempt_of_a_living_owner_is_running"),
        (_owners_are_never_released, "test_a_closed_ledger_opens_again_as_another_owner"),
        (_closing_forgets, "test_closing_marks_what_was_abandoned"),
        (_closing_forgets, "test_an_abandoned_attempt_is_free_for_others"),
        (_abandons_for_everyone, "test_nobody_abandons_the_attempt_of_another_owner"),
    ],
)
def test_a_broken_shared_ledger_fails(
    broken: Callable[[pytest.MonkeyPatch], None], rule: str, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        broken(monkeypatch)
        ledger, other = SqliteLedger(tmp_path / "effects.db"), SqliteLedger(tmp_path / "effects.db")
        ledger.migrate()
        _fails(SharedLedgerConformance(), rule, ledger, other)
    for one in (ledger, other):
        one.close()


def test_two_ledgers_that_share_nothing_fail(tmp_path: Path) -> None:
    ledger, other = SqliteLedger(tmp_path / "a.db"), SqliteLedger(tmp_path / "b.db")
    ledger.migrate()
    other.migrate()
    for rule in (
        "test_what_one_writes_the_other_reads",
        "test_both_make_the_same_idempotency_key",
        "test_of_opens_that_race_one_is_mine",
    ):
        _fails(SharedLedgerConformance(), rule, ledger, other)
