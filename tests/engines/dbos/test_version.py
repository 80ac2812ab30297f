"""E08: the library has no part in the version that DBOS recovers workflows by."""

from __future__ import annotations

from collections.abc import Callable

from dbos import DBOS

from corrobo_dbos import effect_step
from tests.engines.dbos.app import credit_effect
from tests.engines.dbos.conftest import Local
from tests.support.dbos import dbos_config


def version(local: Local, make: Callable[[], Callable[[str, int], object]]) -> str:
    """What DBOS computes for one and the same workflow around what ``make`` gives."""
    act = make()

    @DBOS.workflow(name="pay")
    def pay(reference: str) -> None:
        act(reference, 5_000)

    config = dbos_config(local.path)
    del config["application_version"]
    DBOS(config=config)
    DBOS.launch()
    computed: str = DBOS.application_version
    DBOS.destroy(destroy_registry=True)
    return computed


def test_e08_effect_steps_leave_the_application_version_alone(local: Local) -> None:
    def a_function() -> Callable[[str, int], object]:
        return lambda reference, amount_cents: None

    def an_effect_step() -> Callable[[str, int], object]:
        return effect_step(local.ledger)(credit_effect(local.http))

    def a_dbos_step() -> Callable[[str, int], object]:
        @DBOS.step(name="credit")
        def credit(reference: str, amount_cents: int) -> None: ...

        return credit

    without = version(local, a_function)

    assert version(local, an_effect_step) == without
    assert version(local, a_dbos_step) != without  # DBOS's own steps have a part in it
