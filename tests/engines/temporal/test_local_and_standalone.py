"""Effect activities without a task queue, and without a workflow."""

import uuid
from datetime import timedelta

import pytest
from temporalio import activity
from temporalio.client import ActivityFailureError
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

from corrobo_core import MemoryLedger
from corrobo_temporal import disposition_of, effect_activity, stable_identity
from examples.http_ledger import HttpLedger, client_killed, lands_late
from tests.engines.temporal.conftest import Engine
from tests.engines.temporal.effects import soon, soon_async
from tests.engines.temporal.scripted import CONFLICTED, scripted
from tests.engines.temporal.workflows import CallActivity

SOON = RetryPolicy(initial_interval=timedelta(milliseconds=50), backoff_coefficient=1.0)


@pytest.mark.parametrize("name", ["soon", "soon_async"])
async def test_a_local_activity_comes_back_and_writes_once(
    engine: Engine, http_ledger: HttpLedger, name: str
) -> None:
    http_ledger.fail_next(lands_late(0.3))
    ledger = MemoryLedger()
    engine.workflows += "-local"
    await engine.serve(
        effect_activity(soon, ledger),
        effect_activity(soon_async, ledger),
        task_queue=engine.workflows,
        workflows=[CallActivity],
    )
    handle = await engine.start_call(name, "rf_1", local=True)
    assert (await handle.result())["reference"] == "rf_1"
    assert http_ledger.count("rf_1") == 1


@pytest.mark.parametrize(("name", "writes"), [("credit", 1), ("credit_async", 1), ("naive", 2)])
async def test_a_standalone_activity_is_written_once_by_whoever_survives(
    engine: Engine, http_ledger: HttpLedger, name: str, writes: int
) -> None:
    http_ledger.fail_next(client_killed("after_commit"))
    await engine.start_workers(2)
    result = await engine.client.execute_activity(
        name,
        args=["rf_1", 5_000],
        id=f"standalone-{uuid.uuid4()}",
        task_queue=engine.activities,
        heartbeat_timeout=timedelta(seconds=1),
        schedule_to_close_timeout=timedelta(seconds=60),
        retry_policy=SOON,
    )
    assert result["reference"] == "rf_1"
    assert http_ledger.count("rf_1") == writes


async def test_a_standalone_activitys_end_tells(engine: Engine) -> None:
    case = scripted(CONFLICTED)
    await engine.serve(effect_activity(case.effect, case.ledger))
    with pytest.raises(ActivityFailureError) as caught:
        await engine.client.execute_activity(
            "send",
            args=["rf_1"],
            id=f"standalone-{uuid.uuid4()}",
            task_queue=engine.activities,
            schedule_to_close_timeout=timedelta(seconds=60),
        )
    assert isinstance(caught.value.cause, ApplicationError)
    status = disposition_of(caught.value)
    assert status is not None
    assert (status.reason, status.operation_id) == ("WORLD_CHANGED", "rf_1")


async def test_a_standalone_activity_has_an_identity_of_its_own(engine: Engine) -> None:
    seen: list[str] = []

    @activity.defn
    async def identify() -> str:
        seen.append(stable_identity("charge"))
        if len(seen) == 1:
            raise RuntimeError("try again")
        return seen[-1]

    await engine.serve(identify)
    ids = [f"standalone-{uuid.uuid4()}" for _ in range(2)]
    for id in ids:
        await engine.client.execute_activity(
            identify,
            id=id,
            task_queue=engine.activities,
            schedule_to_close_timeout=timedelta(seconds=60),
            retry_policy=SOON,
        )
    assert seen[0] == seen[1] != seen[2]
    assert seen[0].startswith(f"activity:{ids[0]}/")
    assert seen[0].endswith("/charge")
