"""The model-based machines on all three ledgers, and the proof that they can fail.

``make model EXAMPLES=2000`` runs them for long, with a new seed each time, which it prints; ``make model SEED=…``
draws the same examples again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import gates, operations
from tests.model.machine.stores import Store, stores
from tests.model.machine.times import Time

EXAMPLES = int(os.environ.get("CORROBO_MODEL_EXAMPLES", "60"))
pytestmark = pytest.mark.timeout(120 if EXAMPLES <= 60 else 0)
CHOSEN = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    stateful_step_count=12,
)


@pytest.fixture(scope="module")
def time() -> Time:
    return Time()


@pytest.fixture(scope="module")
def everywhere(postgres_admin: str, time: Time) -> Iterator[list[Store]]:
    """Memory, SQLite and PostgreSQL."""
    with stores(time, postgres_admin) as opened:
        yield opened


def test_operations_go_the_same_way_on_every_ledger_and_as_the_test_knows(
    everywhere: list[Store], time: Time
) -> None:
    run_state_machine_as_test(operations.machine(everywhere, time), settings=CHOSEN)


def test_gates_go_the_same_way_on_every_ledger_and_as_the_test_knows(everywhere: list[Store], time: Time) -> None:
    run_state_machine_as_test(gates.machine(everywhere, time), settings=CHOSEN)
