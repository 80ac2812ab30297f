"""Histories replay: those that were recorded, and fresh ones, from workers with and without a cache (E09)."""

from __future__ import annotations

import asyncio

import pytest
from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from corrobo_core.gates import SubmitRefused
from corrobo_temporal import CorroboPlugin
from corrobo_temporal._book import Book
from tests.engines.record_histories import HISTORIES
from tests.engines.temporal.gate_support import SIGNAL, Ask, Gated, answer, message, submitted
from tests.engines.temporal.scenarios import CACHES, SCENARIOS, WORKFLOWS, play

RECORDED = {path.stem: path.read_text() for path in sorted(HISTORIES.glob("*.json"))}


def replayer() -> Replayer:
    return Replayer(workflows=WORKFLOWS, plugins=[CorroboPlugin()])


@pytest.mark.parametrize("name", RECORDED)
async def test_E09_a_history_that_was_recorded_earlier_still_replays(name: str) -> None:
    history = WorkflowHistory.from_json("recorded", RECORDED[name])
    await replayer().replay_workflow(history)


def test_every_scenario_is_recorded_with_and_without_cache() -> None:
    recorded = {name.rpartition("-")[0] for name in RECORDED}
    assert recorded == {f"{name}-{cache}" for name in SCENARIOS for cache in CACHES}


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("name", SCENARIOS)
async def test_E09_what_is_played_now_replays(temporal_client: Client, name: str, cache: str) -> None:
    for history in await play(name, cache, temporal_client):
        await replayer().replay_workflow(history)


async def test_gates_that_emit_no_command_do_not_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same histories, and gates without the memo: a replay that could not fail would prove nothing."""
    monkeypatch.setattr(Book, "changed", lambda book: None)
    history = WorkflowHistory.from_json("recorded", RECORDED["gates-interleaved-uncached-1"])
    with pytest.raises(NondeterminismError):
        await replayer().replay_workflow(history)


async def test_E09_a_worker_without_the_run_in_its_cache_tells_the_same_history(temporal_client: Client) -> None:
    """Times included: each step that reads the workflow's time emits a command, so that it reads the same again."""
    gated = Gated(temporal_client)
    async with gated.worker():
        handle = await gated.start(Ask(["r1", "r2"], deadline=1.5, linger=True))
        gates = gated.gates(handle)
        await handle.signal(SIGNAL, message("claim", "r1", claimToken="t", leaseSeconds=1))
        await handle.signal(SIGNAL, answer("r2"))
        await asyncio.sleep(1.7)
        assert isinstance(await submitted(gates, "r1", "t"), SubmitRefused)
        told = [await gates.history(), await gates.refusals()]
    async with gated.worker():
        assert [await gates.history(), await gates.refusals()] == told
        await handle.terminate()
