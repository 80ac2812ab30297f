"""Workflow code may import this in the default sandbox, with the plugin and without it."""

import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer, Worker

from corrobo_core import MemoryLedger
from corrobo_temporal import CorroboPlugin, effect_activity, observe_activity
from examples.http_ledger import HttpLedger, lands_late
from tests.engines.temporal.conftest import Engine
from tests.engines.temporal.effects import credit
from tests.engines.temporal.workflows import Run, RunCredit
from tests.support.processes import ROOT

RECORDED = Path(__file__).with_name("look_at_the_end.json")  # of test_its_history_replays
HEAVY = ["dbos", "httpx", "opentelemetry.sdk", "psycopg", "psycopg_pool", "requests", "rich", "sqlite3", "typer"]


@pytest.mark.parametrize("plugins", [[], [CorroboPlugin()]], ids=["bare", "plugin"])
async def test_a_workflow_imports_and_runs_an_effect_in_the_sandbox(
    engine: Engine, http_ledger: HttpLedger, temporal_address: str, plugins: list[CorroboPlugin]
) -> None:
    client = await Client.connect(temporal_address)
    ledger, queue = MemoryLedger(), f"{engine.workflows}-sandbox"
    await engine.serve(effect_activity(credit, ledger), observe_activity(credit, ledger))
    async with Worker(client, task_queue=queue, workflows=[RunCredit], plugins=plugins):
        handle = await client.start_workflow(
            RunCredit.run, Run(engine.activities, "rf_1"), id=str(uuid.uuid4()), task_queue=queue
        )
        assert (await handle.result()).reference == "rf_1"


PROGRAM = """
import builtins, json, os, sys
import jsonschema, pydantic, temporalio.client, temporalio.contrib.pydantic, temporalio.worker  # theirs, not ours
seen = []
real_open = builtins.open
builtins.open = lambda *args, **kwargs: seen.append(f"open {args[0]}") or real_open(*args, **kwargs)
class Environment(dict):
    def __getitem__(self, name):
        seen.append(f"env {name}")
        return dict.__getitem__(self, name)
    def get(self, name, default=None):
        seen.append(f"env {name}")
        return dict.get(self, name, default)
os.environ = Environment(os.environ)
import corrobo_temporal
print(json.dumps([seen, sorted(set(sys.argv[1:]) & set(sys.modules))]))
"""


def test_importing_it_loads_no_driver_reads_no_environment_and_opens_nothing() -> None:
    command = [sys.executable, "-c", PROGRAM, *HEAVY]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    seen, heavy = json.loads(done.stdout)
    assert heavy == []
    assert seen == []


async def test_its_history_replays(engine: Engine, http_ledger: HttpLedger) -> None:
    """A late effect, no time left for the next pass, and a last look, which finds the effect."""
    http_ledger.fail_next(lands_late(0.2))
    ledger = MemoryLedger()
    await engine.serve(effect_activity(credit, ledger), observe_activity(credit, ledger))
    handle = await engine.start(RunCredit.run, Run(engine.activities, "rf_1", schedule_to_close=0.5))
    await handle.result()
    history = await handle.fetch_history()
    await Replayer(workflows=[RunCredit], plugins=[CorroboPlugin()]).replay_workflow(history)


async def test_a_history_that_was_recorded_earlier_still_replays() -> None:
    """What `WorkflowEffects` asks of Temporal is part of the histories of running workflows."""
    history = WorkflowHistory.from_json("recorded", RECORDED.read_text())
    await Replayer(workflows=[RunCredit]).replay_workflow(history)
