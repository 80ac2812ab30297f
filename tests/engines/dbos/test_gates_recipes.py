"""What the how-to page says to build of gates and DBOS's own means. A test's name begins with its row."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from dbos import DBOS, SetWorkflowID

from corrobo_core.gates import GateStatus, create_gate
from corrobo_dbos import DbosGateClient, DbosGates, Delivered, GateExpiredError, NoWorkflow
from tests.engines.dbos.conftest import Local
from tests.engines.dbos.questions import NO, SELDOM, YES, answered, question, waiting


def test_d16_two_of_three_is_a_child_workflow_for_each_reviewer(local: Local) -> None:
    """Each reviewer counts once; the outcome is fixed at the second yes; a later vote is recorded only."""
    gates = DbosGates(local.ledger, look_every=SELDOM)

    @DBOS.workflow()
    def vote(reviewer: str) -> bool:
        return gates.ask(question(gate_id=f"release-approval/{reviewer}")).response == YES

    @DBOS.workflow()
    def release(reviewers: list[str], needed: int) -> list[str]:
        votes: dict[str, Any] = {}
        for reviewer in reviewers:
            with SetWorkflowID(f"{DBOS.workflow_id}/{reviewer}"):
                votes[reviewer] = DBOS.start_workflow(vote, reviewer)
        in_favour: list[str] = []
        while votes and len(in_favour) < needed:
            first = DBOS.wait_first(list(votes.values()), polling_interval_sec=0.05)
            reviewer = first.workflow_id.rpartition("/")[2]
            if votes.pop(reviewer).get_result():
                in_favour.append(reviewer)
        return in_favour

    local.launch()
    with SetWorkflowID("wf"):
        handle = DBOS.start_workflow(release, ["ada", "bob", "cyd"], 2)
    clients = {name: DbosGateClient(local.ledger, f"wf/{name}") for name in ("ada", "bob", "cyd")}
    asked = {name: waiting(client) for name, client in clients.items()}

    def votes(name: str, response: Any) -> Any:
        return answered(clients[name], asked[name], response, name)

    assert isinstance(votes("ada", YES), Delivered)
    assert DBOS.retrieve_workflow("wf/ada").get_result() is True
    again = clients["ada"].submit(asked["ada"].request_id, "token", "ada", asked["ada"].request.digest, YES)
    assert isinstance(again, NoWorkflow) and again.kind == "finished"
    assert handle.get_status().status == "PENDING"
    assert isinstance(votes("bob", YES), Delivered)
    assert handle.get_result() == ["ada", "bob"]
    assert isinstance(votes("cyd", NO), Delivered)
    assert DBOS.retrieve_workflow("wf/cyd").get_result() is False
    assert DBOS.retrieve_workflow("wf").get_result() == ["ada", "bob"]


@pytest.mark.parametrize("in_time", [True, False])
def test_d13_a_child_workflow_warns_before_a_question_expires_that_nobody_has_answered(
    local: Local, in_time: bool
) -> None:
    gates, warned = DbosGates(local.ledger, look_every=SELDOM), []

    @DBOS.step()
    def warn_if_open(workflow_id: str, request_id: str) -> None:
        view = DbosGateClient(local.ledger, workflow_id).show(request_id)
        if view is not None and view.status in (GateStatus.PENDING, GateStatus.CLAIMED):
            warned.append(view)

    @DBOS.workflow()
    def remind(workflow_id: str, request_id: str, seconds: float) -> None:
        DBOS.sleep(seconds)
        warn_if_open(workflow_id, request_id)

    @DBOS.workflow()
    def release() -> Any:
        asked = question()
        assert DBOS.workflow_id is not None
        reminder = DBOS.start_workflow(remind, DBOS.workflow_id, create_gate(asked).request_id, 1.0)
        try:
            return gates.ask(asked, deadline=timedelta(seconds=2)).response
        except GateExpiredError:
            return "expired"
        finally:
            reminder.get_result()

    local.launch()
    with SetWorkflowID("wf"):
        handle = DBOS.start_workflow(release)
    reviewer = DbosGateClient(local.ledger, "wf")
    asked = waiting(reviewer)
    if in_time:
        answered(reviewer, asked)
    assert handle.get_result() == (YES if in_time else "expired")
    assert warned == ([] if in_time else [asked])
