"""`CorroboPlugin` on client and worker: everything once."""

import asyncio
import warnings
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from pydantic import BaseModel
from temporalio import activity
from temporalio.client import Client
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import DataConverter, DefaultPayloadConverter
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from corrobo_core import MemoryLedger, PostgresLedger, UsageError
from corrobo_temporal import CorroboInterceptor, CorroboPlugin
from examples.http_ledger import HttpLedger, answer_lost
from tests.engines.temporal.conftest import Engine
from tests.engines.temporal.effects import credit, credit_async
from tests.engines.temporal.workflows import ALL, Run, RunCredit


class Opened(MemoryLedger):
    """Counts how often it is opened and closed, each way."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []

    def __enter__(self) -> Any:
        self.log.append("open")
        return self

    def __exit__(self, *_: object) -> None:
        self.log.append("close")

    async def __aenter__(self) -> Any:
        self.log.append("open async")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.log.append("close async")


class Order(BaseModel):
    """Something that only the pydantic converter reads back."""

    number: int


@activity.defn
async def next_order(order: Order) -> Order:
    return Order(number=order.number + 1)


async def connect(address: str, *plugins: Any, **options: Any) -> Client:
    return await Client.connect(address, plugins=plugins, **options)


def interceptors(config: Any) -> int:
    return sum(isinstance(one, CorroboInterceptor) for one in config.get("interceptors", ()))


def configured(plugin: CorroboPlugin, config: Any) -> Any:
    """A worker's configuration after the plugin has seen it."""
    return plugin.configure_worker(config)


async def run_credit(engine: Engine, client: Client, *plugins: Any) -> Any:
    """Run the effect with client and worker as given; one worker for workflow and activities."""
    queue = engine.activities
    async with Worker(client, task_queue=queue, workflows=ALL, plugins=plugins):
        handle = await client.start_workflow(RunCredit.run, Run(queue, "rf_1"), id=queue, task_queue=queue)
        return await handle.result()


async def test_on_client_and_worker_it_brings_everything(
    engine: Engine, temporal_address: str, http_ledger: HttpLedger
) -> None:
    ledger = Opened()
    client = await connect(temporal_address, CorroboPlugin())
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "the same plugin type is present from both client and worker"
        result = await run_credit(engine, client, CorroboPlugin(ledger, effects=[credit, credit_async]))
    assert result.reference == "rf_1"
    assert ledger.log == ["open async", "open", "close", "close async"]
    assert http_ledger.count("rf_1") == 1


async def test_on_the_client_alone_it_reaches_the_workers(
    engine: Engine, temporal_address: str, http_ledger: HttpLedger
) -> None:
    ledger = Opened()
    client = await connect(temporal_address, CorroboPlugin(ledger, effects=[credit]))
    assert (await run_credit(engine, client)).reference == "rf_1"
    assert ledger.log == ["open", "close"]


@pytest.mark.filterwarnings("ignore:The same plugin type")
async def test_given_to_both_it_does_everything_once(
    engine: Engine, temporal_address: str, http_ledger: HttpLedger
) -> None:
    ledger = Opened()
    plugin = CorroboPlugin(ledger, effects=[credit])
    client = await connect(temporal_address, plugin)
    assert (await run_credit(engine, client, plugin)).reference == "rf_1"
    assert ledger.log == ["open", "close"]
    config = configured(plugin, configured(plugin, {"client": client}))
    assert interceptors(client.config(active_config=True)) + interceptors(config) == 1
    names = [fn.__name__ for fn in config["activities"]]
    assert len(names) == 2


async def alone(dsn: str) -> bool:
    """Nobody else is connected; what was closed takes the server a moment."""
    query = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    with psycopg.connect(dsn, autocommit=True) as connection:
        while True:
            if connection.execute(query).fetchone() == (0,):
                return True
            await asyncio.sleep(0.05)


async def test_it_opens_and_closes_a_postgres_ledger_for_both_kinds(
    engine: Engine, temporal_address: str, http_ledger: HttpLedger, postgres_dsn: str
) -> None:
    http_ledger.fail_next(answer_lost(times=2))
    ledger = PostgresLedger(postgres_dsn)
    ledger.migrate()
    client = await connect(temporal_address)
    plugin = CorroboPlugin(ledger, effects=[credit, credit_async])
    async with Worker(client, task_queue=engine.activities, plugins=[plugin]):
        for name, reference in ("credit", "rf_1"), ("credit_async", "rf_2"):
            handle = await engine.start_call(name, reference)
            assert (await handle.result())["reference"] == reference
    assert await asyncio.wait_for(alone(postgres_dsn), 10)
    assert (http_ledger.count("rf_1"), http_ledger.count("rf_2")) == (1, 1)


async def test_two_workers_of_one_plugin_open_the_ledger_once(temporal_address: str, engine: Engine) -> None:
    ledger = Opened()
    plugin = CorroboPlugin(ledger, effects=[credit_async])
    client = await connect(temporal_address)
    async with Worker(client, task_queue=f"{engine.activities}-1", plugins=[plugin]):
        async with Worker(client, task_queue=f"{engine.activities}-2", plugins=[plugin]):
            pass
        assert ledger.log == ["open async"]
    assert ledger.log == ["open async", "close async"]


async def test_the_client_gets_the_pydantic_converter_unless_another_was_chosen(temporal_address: str) -> None:
    class Own(DefaultPayloadConverter):
        """Somebody's own."""

    plain = await connect(temporal_address, CorroboPlugin())
    assert plain.data_converter.payload_converter_class is PydanticPayloadConverter
    twice = await connect(temporal_address, CorroboPlugin(), CorroboPlugin())
    assert twice.data_converter.payload_converter_class is PydanticPayloadConverter
    assert interceptors(twice.config(active_config=True)) == 1
    own = await connect(
        temporal_address, CorroboPlugin(), data_converter=DataConverter(payload_converter_class=Own)
    )
    assert own.data_converter.payload_converter_class is Own


async def test_models_travel(engine: Engine, temporal_address: str) -> None:
    client = await connect(temporal_address, CorroboPlugin())
    async with Worker(client, task_queue=engine.activities, activities=[next_order]):
        order = await client.execute_activity(
            next_order,
            Order(number=1),
            id=engine.activities,
            task_queue=engine.activities,
            schedule_to_close_timeout=timedelta(seconds=10),
        )
    assert order == Order(number=2)


async def test_the_sandbox_lets_corrobo_through_and_other_runners_stay(temporal_address: str) -> None:
    client = await connect(temporal_address)
    sandboxed = SandboxedWorkflowRunner()
    config = configured(CorroboPlugin(), {"client": client, "workflow_runner": sandboxed})
    assert {"corrobo_core", "corrobo_temporal"} <= config["workflow_runner"].restrictions.passthrough_modules
    plain = UnsandboxedWorkflowRunner()
    config = configured(CorroboPlugin(), {"client": client, "workflow_runner": plain})
    assert config["workflow_runner"] is plain


async def test_sync_effects_get_threads_unless_the_worker_has_some(temporal_address: str) -> None:
    client = await connect(temporal_address)

    def executor(effect: Any, **options: Any) -> Any:
        plugin = CorroboPlugin(MemoryLedger(), effects=[effect])
        return configured(plugin, {"client": client, **options}).get("activity_executor")

    made = executor(credit, max_concurrent_activities=3)
    assert isinstance(made, ThreadPoolExecutor)
    assert made._max_workers == 3
    assert executor(credit_async) is None
    with ThreadPoolExecutor(1) as own:
        assert executor(credit, activity_executor=own) is own


def test_effects_need_a_ledger() -> None:
    with pytest.raises(UsageError, match="effects need a ledger"):
        CorroboPlugin(effects=[credit])
