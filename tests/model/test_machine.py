"""The model-based machines on all three ledgers, and the proof that they can fail.

``make model EXAMPLES=2000`` runs them for long, with a new seed each time, which it prints; ``make model SEED=…``
draws the same examples again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine

from corrobo_core import decide, lifecycle, rulings, transitions
from corrobo_core.commands import Claim, Record
from corrobo_core.decide import TABLE
from corrobo_core.gates import protocol
from corrobo_core.gates.state import RequestState
from corrobo_core.ledgers import gate_port
from corrobo_core.ledgers.memory import MemoryLedger
from corrobo_core.policy import Policy
from corrobo_core.records import Outcome, Reason, evolve
from tests.model.machine import gates, operations
from tests.model.machine.old_rows import OldAttempt
from tests.model.machine.plans import Dies, Look, Send, Turn
from tests.model.machine.runs import run
from tests.model.machine.scripts import HeldUp
from tests.model.machine.stage import Setup
from tests.model.machine.stores import InMemory, Store, stores
from tests.model.machine.times import Time, virtual

LONG = os.environ.get("CORROBO_MODEL_EXAMPLES")
pytestmark = pytest.mark.timeout(0 if LONG else 120)
CHOSEN = settings(
    max_examples=int(LONG or 25),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    stateful_step_count=12,
)


@pytest.fixture(scope="module")
def time() -> Time:
    return Time()


@pytest.fixture
def first_seed(pytestconfig: pytest.Config) -> int:
    """Of ``--hypothesis-seed``; the short form draws the same examples each time."""
    return int(pytestconfig.getoption("--hypothesis-seed") or 0) if LONG else 0


@pytest.fixture
def everywhere(postgres_admin: str, time: Time) -> Iterator[list[Store]]:
    """Memory, SQLite and PostgreSQL."""
    with stores(time, postgres_admin) as opened:
        yield opened


def test_operations_go_the_same_way_on_every_ledger_and_as_the_test_knows(
    everywhere: list[Store], time: Time, first_seed: int
) -> None:
    run(operations.machine(everywhere, time), CHOSEN, first_seed)


def test_gates_go_the_same_way_on_every_ledger_and_as_the_test_knows(
    everywhere: list[Store], time: Time, first_seed: int
) -> None:
    run(gates.machine(everywhere, time), CHOSEN, first_seed)


def _begun(opened: list[Store], time: Time) -> operations.Operations:
    machine = operations.machine(opened, time)()
    machine.begin(Setup())
    return machine


@pytest.mark.parametrize("window", [None, 3.0, 30.0])
@pytest.mark.parametrize("outcome", [None, "AMBIGUOUS", "RESPONDED"])
def test_D3_what_an_older_release_has_sent_is_waited_for_on_every_ledger(
    everywhere: list[Store], time: Time, outcome: str | None, window: float | None
) -> None:
    """Its row has the oldest columns and fields alone; today's window frees nothing that was recorded without."""
    machine = _begun(everywhere, time)
    machine.an_older_release_was_here(OldAttempt(outcome, window, ago=20.0), lands=None)
    machine.one_pass(Turn(send=Send.ANSWERED, observe_now=True))
    sent = [len(stage.outside.sent) - 1 for stage in machine.stages]  # one was the older release's
    assert sent == [int(window == 3.0)] * len(everywhere)
    machine.teardown()


def test_D3_reads_that_are_staler_since_a_deploy_are_waited_for(everywhere: list[Store], time: Time) -> None:
    """The request lands last in its window; a read 1 s later would miss it, since today's can be 6 s old."""
    machine = _begun(everywhere, time)
    machine.one_pass(Turn(contract=0, send=Send.LATE, landing=4))
    machine.time_passes(11)
    machine.one_pass(Turn(contract=1, observe_now=True, looks=(Look.STALE, Look.HONEST)))
    assert [stage.results[-1].reason for stage in machine.stages] == ["SETTLING"] * len(everywhere)
    machine.teardown()


# -- mutants ----------------------------------------------------------------------------------------------------


def found(machine: type[RuleBasedStateMachine], examples: int) -> str:
    """What the machine finds in memory; empty if it finds nothing."""
    try:
        run(machine, settings(CHOSEN, max_examples=examples, phases=[Phase.generate]))
    except AssertionError as error:
        return str(error) or "found"
    return ""


def in_memory(kind: Any, examples: int = 600) -> str:
    """What a machine finds on the memory ledger alone."""
    time = Time()
    with virtual(time):
        machine: type[RuleBasedStateMachine] = kind([InMemory(time)], time)
        return found(machine, examples)


Patch = Callable[[pytest.MonkeyPatch], None]


def _does_not_wait(patch: pytest.MonkeyPatch) -> None:
    waits = (Reason.SETTLING, Reason.IN_FLIGHT_NOT_RULED_OUT)
    patch.setattr(decide, "TABLE", tuple(row for row in TABLE if row.reason not in waits))


def _forgets_the_lag(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Policy, "settles_after", property(lambda self: self.window))


def _takes_a_dead_attempt_for_unsent(patch: pytest.MonkeyPatch) -> None:
    def superseded(operation: Any) -> Any:
        if not operation.reserved:
            return operation
        unsent = evolve(operation.latest, outcome=Outcome.NOT_SENT)
        return evolve(operation, attempts=(*operation.attempts[:-1], unsent), owner=None)

    for module in (lifecycle, transitions):
        patch.setattr(module, "superseded", superseded)


def _writes_whatever_the_version(patch: pytest.MonkeyPatch) -> None:
    answer = MemoryLedger._answer

    def unfenced(self: MemoryLedger, command: Any) -> Any:
        if isinstance(command, Claim | Record):
            stored = self._find(command.operation.key)
            assert stored is not None
            command = evolve(command, operation=evolve(command.operation, version=stored.version))
        return answer(self, command)

    patch.setattr(MemoryLedger, "_answer", unfenced)


def _overlooks_revocations(patch: pytest.MonkeyPatch) -> None:
    def decision_on(token: str, decisions: Any) -> Any:
        return next((each for each in decisions if each.token == token), None)

    for module in (lifecycle, rulings):
        patch.setattr(module, "decision_on", decision_on)


def _always_tries_once_more(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decide, "_sent", lambda facts: 0)


def _sends_however_late(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Policy, "start_allowance", None)


OPERATIONS: list[Patch] = [
    _does_not_wait,
    _forgets_the_lag,
    _writes_whatever_the_version,
    _overlooks_revocations,
    _always_tries_once_more,
]


@pytest.mark.parametrize("mutant", OPERATIONS)
def test_the_machine_finds_a_lifecycle_that(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert in_memory(operations.machine)


def _held_up(machine: operations.Operations) -> None:
    HeldUp(Turn(), at=1, after=True, by=11).play(machine)


def _dies_in_the_middle(machine: operations.Operations) -> None:
    machine.one_pass(Turn(contract=3, send=Send.LATE, landing=4, at=3, what=Dies()))
    machine.one_pass(Turn(observe_now=True))


@pytest.mark.parametrize(
    ("mutant", "steps"), [(_sends_however_late, _held_up), (_takes_a_dead_attempt_for_unsent, _dies_in_the_middle)]
)
def test_these_steps_find_a_lifecycle_that(
    mutant: Patch, steps: Callable[[operations.Operations], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps that the machine draws seldom: nothing is wrong, and with the mutant it is."""
    time = Time()
    with virtual(time):
        steps(_begun([InMemory(time)], time))
        mutant(monkeypatch)
        with pytest.raises(AssertionError):
            steps(_begun([InMemory(time)], time))


def _counts_a_late_answer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RequestState, "due", lambda self, now: False)


def _lets_everybody_claim(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RequestState, "claimable", lambda self, now: self.live)


def _takes_every_router_for_the_owner(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RequestState, "owned_by", lambda self, router_id, claim_token: self.claim_token == claim_token)


def _appends_whenever(patch: pytest.MonkeyPatch) -> None:
    append = gate_port.GateLog.append
    patch.setattr(
        gate_port.GateLog, "append", lambda self, command, now: append(self, replace_before(command), now)
    )


def replace_before(command: gate_port.AppendGate) -> gate_port.AppendGate:
    return evolve(command, before=None)


def _leases_too_long(patch: pytest.MonkeyPatch) -> None:
    lease = protocol._lease
    patch.setattr(protocol, "_lease", lambda wait, now: lease(wait and wait + timedelta(seconds=1), now))


GATES: list[Patch] = [
    _counts_a_late_answer,
    _lets_everybody_claim,
    _takes_every_router_for_the_owner,
    _appends_whenever,
    _leases_too_long,
]


@pytest.mark.parametrize("mutant", GATES)
def test_the_machine_finds_gates_that(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert in_memory(gates.machine, 200)


def test_a_ledger_that_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What memory alone does wrong, and nobody could see in its results, shows beside SQLite."""
    store = MemoryLedger._store
    forgetful = lambda self, operation: store(self, evolve(operation, explanation=""))  # noqa: E731
    monkeypatch.setattr(MemoryLedger, "_store", forgetful)
    time = Time()
    with stores(time) as opened:
        assert "differ" in found(operations.machine(opened, time), 20)
