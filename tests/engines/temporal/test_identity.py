"""`stable_identity`: one id for one decision, whatever Temporal repeats."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.common import RetryPolicy, WorkflowIDReusePolicy
from temporalio.testing import ActivityEnvironment
from temporalio.worker import Worker

from corrobo_core import MemoryLedger, UsageError
from corrobo_temporal import CorroboInterceptor, CorroboPlugin, effect_activity, stable_identity
from examples.http_ledger import Credit, HttpLedger
from tests.engines.temporal.conftest import Engine
from tests.engines.temporal.effects import credit
from tests.engines.temporal.workflows import CallActivity, Identify, Naming


@activity.defn
async def identify(name: str) -> str:
    """The id, as an activity sees it; the first attempt fails."""
    if activity.info().attempt == 1:
        raise RuntimeError("try again")
    return stable_identity(name)


@activity.defn(name="identify")
def identify_sync(name: str) -> str:
    return stable_identity(name)


@pytest.fixture
async def plugged(engine: Engine, temporal_address: str) -> Engine:
    """The same engine, on a client with the plugin."""
    engine.client = await Client.connect(temporal_address, plugins=[CorroboPlugin()])
    engine.workflows += "-plugged"
    worker = Worker(engine.client, task_queue=engine.workflows, workflows=[Identify, CallActivity])
    await engine.enter(worker)
    return engine


async def ids_of(handle: WorkflowHandle[Any, Any]) -> list[str]:
    """The ids that a running workflow and its activity have made."""
    while True:
        ids: list[str] = await handle.query(Identify.ids)
        if ids:
            return ids
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("local", [False, True], ids=["activity", "local-activity"])
async def test_workflow_and_activity_agree_over_activity_retries(plugged: Engine, local: bool) -> None:
    if local:
        worker = Worker(
            plugged.client,
            task_queue=plugged.workflows + "-local",
            workflows=[Identify],
            activities=[identify],
        )
        await plugged.enter(worker)
        plugged.workflows += "-local"
    else:
        await plugged.serve(identify)
    handle = await plugged.start(Identify.run, Naming(plugged.activities, local=local))
    mine, theirs = await ids_of(handle)
    assert mine == theirs == f"{handle.id}/{handle.first_execution_run_id}/charge"


async def test_a_sync_activity_reads_it_in_its_thread(plugged: Engine) -> None:
    await plugged.serve(identify_sync)
    handle = await plugged.start(Identify.run, Naming(plugged.activities))
    mine, theirs = await ids_of(handle)
    assert mine == theirs


async def test_it_survives_a_workflow_reset(plugged: Engine) -> None:
    await plugged.serve(identify_sync)
    handle = await plugged.start(Identify.run, Naming(plugged.activities))
    before = await ids_of(handle)
    again = await reset(plugged, handle)
    assert again.result_run_id != handle.first_execution_run_id
    assert await ids_of(again) == before


async def test_it_survives_continue_as_new_and_workflow_retry(plugged: Engine) -> None:
    await plugged.serve(identify_sync)
    handle = await plugged.start(Identify.run, Naming(plugged.activities, rounds=3))
    seen = await handle.result()
    assert len(seen) == 6
    assert len(set(seen)) == 1

    retried = await plugged.start(
        Identify.run,
        Naming(plugged.activities, fail_first_run=True),
        retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=50)),
    )
    assert set(await retried.result()) == {f"{retried.id}/{retried.first_execution_run_id}/charge"}


async def test_a_new_start_under_an_old_id_is_a_new_decision(plugged: Engine) -> None:
    await plugged.serve(identify_sync)
    ids = set()
    for _ in range(2):
        handle = await plugged.client.start_workflow(
            Identify.run,
            Naming(plugged.activities, fail_first_run=False, rounds=1),
            id=f"same-{plugged.activities}",
            task_queue=plugged.workflows,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        )
        await handle.signal(Identify.go)
        ids.update(await handle.result())
    assert len(ids) == 2


@pytest.mark.parametrize(("stable", "writes"), [(True, 1), (False, 2)], ids=["stable", "run-id"])
async def test_a08_a_reset_workflow_with_an_id_of_its_own_writes_once(
    plugged: Engine, http_ledger: HttpLedger, stable: bool, writes: int
) -> None:
    made = effect_activity(credit, MemoryLedger())

    @activity.defn(name="credit")
    def with_own_id(name: str) -> Credit:
        info = activity.info()
        return made(stable_identity(name) if stable else f"{info.workflow_run_id}/{info.activity_id}")

    await plugged.serve(with_own_id)
    handle = await plugged.start_call("credit", "charge")
    first = await handle.result()
    again = await reset(plugged, handle)
    second = await again.result()
    assert http_ledger.count() == writes
    assert (first == second) is stable


async def reset(engine: Engine, handle: WorkflowHandle[Any, Any]) -> WorkflowHandle[Any, Any]:
    """Reset the workflow to its first task."""
    answer = await engine.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=engine.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=handle.id, run_id=handle.first_execution_run_id or ""),
            reason="test",
            workflow_task_finish_event_id=4,  # started, scheduled, started, completed
            request_id=f"reset {handle.id}",
        )
    )
    return engine.client.get_workflow_handle(handle.id, run_id=answer.run_id)


async def test_given_twice_the_interceptor_does_the_same_as_once(engine: Engine, temporal_address: str) -> None:
    engine.client = await Client.connect(
        temporal_address, interceptors=[CorroboInterceptor(), CorroboInterceptor()]
    )
    engine.workflows += "-twice"
    await engine.enter(Worker(engine.client, task_queue=engine.workflows, workflows=[Identify]))
    await engine.serve(identify_sync, interceptors=[CorroboInterceptor()])
    handle = await engine.start(Identify.run, Naming(engine.activities))
    mine, theirs = await ids_of(handle)
    assert mine == theirs


async def test_an_activity_without_the_interceptor_is_told_what_to_do(engine: Engine) -> None:
    await engine.serve(identify_sync)
    ended = await engine.end_of("identify", "charge", maximum_attempts=1)
    assert ended.shape == ["ActivityError", "UsageError"]


def test_elsewhere_it_is_refused() -> None:
    with pytest.raises(UsageError, match="works in workflow code"):
        stable_identity("charge")


@pytest.mark.parametrize("name", ["", " charge", "x" * 201, 7])
def test_an_unusable_name_is_refused(name: Any) -> None:
    with pytest.raises(UsageError, match="name"):
        ActivityEnvironment().run(stable_identity, name)
