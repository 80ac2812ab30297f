"""Questions that workflows ask: the answer, the history that it leaves, and what is refused."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dbos import DBOS, SetWorkflowID

from corrobo_core import MemoryLedger, UsageError
from corrobo_core.gates import Answer, GateArgumentError, StoredGateClient
from corrobo_dbos import DbosGateClient, DbosGates, Delivered, GateExpiredError
from tests.engines.dbos.conftest import Here, Local
from tests.engines.dbos.questions import OFTEN, REQUEST, SELDOM, YES, answered, question, waiting, waits_for_message


def test_an_answer_wakes_its_workflow_and_replays_from_its_history(here: Here) -> None:
    gates = DbosGates(here.ledger, look_every=SELDOM)

    @DBOS.workflow()
    def release() -> str:
        answer = gates.ask(question())
        return f"{answer.router_id} {answer.response}"

    here.launch()
    with SetWorkflowID("wf"):
        handle = DBOS.start_workflow(release)
    client = DbosGateClient(here.ledger, "wf")
    asked = waiting(client)
    waits_for_message("wf")
    delivered = answered(client, asked)

    assert delivered == Delivered(Answer("router", '{"approved":true}'), again=False, woken=True)
    assert handle.get_result() == "router {'approved': True}"
    assert here.steps("wf") == [
        (1, "corrobo.gate.post"),
        (2, "DBOS.recv"),
        (3, "DBOS.sleep"),
        (4, "corrobo.gate.look"),
    ]
    with SetWorkflowID("wf"):
        assert release() == "router {'approved': True}"


async def test_an_async_workflow_asks_likewise(here: Here) -> None:
    gates = DbosGates(here.ledger, look_every=SELDOM)

    @DBOS.workflow()
    async def release() -> Any:
        return (await gates.ask_async(question())).response

    here.launch()
    with SetWorkflowID("wf"):
        handle = await DBOS.start_workflow_async(release)
    client = DbosGateClient(here.ledger, "wf")
    asked = await asyncio.to_thread(waiting, client)
    await asyncio.to_thread(answered, client, asked)

    assert await handle.get_result() == YES
    steps = await DBOS.list_workflow_steps_async("wf")
    assert [step["function_name"] for step in steps][:2] == ["corrobo.gate.post", "DBOS.recv"]


async def test_two_questions_side_by_side_in_one_workflow_are_refused(here: Here) -> None:
    gates = DbosGates(here.ledger, look_every=OFTEN)

    async def indirectly(revision: str) -> Any:
        return (await gates.ask_async(question(revision, f"gate-{revision}"))).response

    @DBOS.workflow()
    async def both() -> list[str]:
        found = await asyncio.gather(indirectly("one"), indirectly("two"), return_exceptions=True)
        return [str(one) for one in found]

    here.launch()
    with SetWorkflowID("wf"):
        handle = await DBOS.start_workflow_async(both)
    client = DbosGateClient(here.ledger, "wf")
    asked = await asyncio.to_thread(waiting, client)
    assert asked.request.input == {"revision": "one"}
    await asyncio.to_thread(answered, client, asked)

    first, second = await handle.get_result()
    assert first == "{'approved': True}"
    assert "start one child workflow for each" in second
    assert client.list_pending() == ()


def test_e10_outside_workflows_and_inside_steps_it_is_refused_and_nothing_is_stored(local: Local) -> None:
    gates = DbosGates(local.ledger)

    @DBOS.step()
    def step() -> None:
        gates.ask(question())

    @DBOS.workflow()
    def workflow() -> None:
        step()

    local.launch()
    with pytest.raises(UsageError, match="outside any workflow; call it from workflow code"):
        gates.ask(question())
    with SetWorkflowID("wf"), pytest.raises(UsageError, match="inside a step"):
        workflow()
    assert StoredGateClient(local.ledger, "wf").history() == ()


async def test_e10_the_wrong_kind_of_workflow_is_refused_and_nothing_is_stored(local: Local) -> None:
    gates = DbosGates(local.ledger)

    @DBOS.workflow()
    async def workflow() -> None:
        gates.ask(question())

    @DBOS.workflow()
    def sync_workflow() -> None:
        gates.ask_async(question())  # type: ignore[unused-coroutine]

    local.launch()
    with SetWorkflowID("wf"), pytest.raises(UsageError, match="use ask_async"):
        await workflow()
    with SetWorkflowID("sync"), pytest.raises(UsageError, match="without an event loop; use ask"):
        await asyncio.to_thread(sync_workflow)
    for stream in ("wf", "sync"):
        assert StoredGateClient(local.ledger, stream).history() == ()
    client = DbosGateClient(local.ledger, "wf")
    with pytest.raises(UsageError, match="would block the event loop"):
        client.submit(REQUEST.request_id, "token", "router", REQUEST.digest, YES)


@pytest.mark.parametrize(
    ("gate_id", "deadline", "problem"),
    [
        ("release", datetime(2030, 1, 1), "time zone"),  # noqa: DTZ001
        ("release", timedelta(), "it has passed already"),
        ("effect-review", None, "is what effects ask under"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(
    local: Local, gate_id: str, deadline: Any, problem: str
) -> None:
    gates = DbosGates(local.ledger)

    @DBOS.workflow()
    def workflow() -> None:
        gates.ask(question(gate_id=gate_id), deadline=deadline)

    local.launch()
    with SetWorkflowID("wf"), pytest.raises(GateArgumentError, match=problem):
        workflow()
    assert local.steps("wf") == []


def test_a_deadline_in_the_past_is_an_expiry_and_nothing_is_stored(here: Here) -> None:
    gates = DbosGates(here.ledger)

    @DBOS.workflow()
    def workflow() -> None:
        gates.ask(question(), deadline=datetime.now(UTC) - timedelta(seconds=1))

    here.launch()
    with SetWorkflowID("wf"), pytest.raises(GateExpiredError, match="nobody answered before"):
        workflow()
    assert StoredGateClient(here.ledger, "wf").history() == ()


def test_unusable_options_are_refused() -> None:
    with pytest.raises(UsageError, match="takes a ledger first"):
        DbosGates("effects.db")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="look_every: must be a Backoff"):
        DbosGates(MemoryLedger(), look_every=5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="effects: takes effects, not a str"):
        DbosGateClient(MemoryLedger(), "wf", effects=["refund"])
