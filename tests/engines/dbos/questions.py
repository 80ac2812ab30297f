"""Questions to people, and reviewers, for the tests of gates on DBOS."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from dbos import DBOS

from corrobo_core import Backoff
from corrobo_core.gates import ClaimOk, GateDefinition, GateView, create_gate
from corrobo_dbos import DbosGateClient, Delivery
from corrobo_dbos.asking import topic_of
from tests.engines.dbos.conftest import wait_until

SELDOM = Backoff(timedelta(minutes=5), timedelta(minutes=5))
OFTEN = Backoff(timedelta(milliseconds=200), timedelta(milliseconds=400))
YES, NO = {"approved": True}, {"approved": False}


def question(revision: str = "abc123", gate_id: str = "release-approval") -> GateDefinition:
    """May this revision be released?"""
    return GateDefinition(
        gate_id=gate_id,
        gate_version=1,
        decision_text=f"Approve release {revision}?",
        response_schema={
            "type": "object",
            "properties": {"approved": {"type": "boolean"}},
            "required": ["approved"],
            "additionalProperties": False,
        },
        input={"revision": revision},
    )


REQUEST = create_gate(question())


def waiting(client: DbosGateClient, gate_id: str | None = None, timeout: float = 20.0) -> GateView:
    """The one question that waits, once it does."""
    found: list[GateView] = []

    def look() -> bool:
        found[:] = [each for each in client.list_pending() if gate_id in (None, each.request.gate_id)]
        return bool(found)

    wait_until(look, timeout)
    (one,) = found
    return one


def answered(
    client: DbosGateClient, view: GateView, response: Any = YES, router: str = "router", token: str = "token"
) -> Delivery:
    """Claim a question, and answer it."""
    claim = client.claim(view.request_id, router, claim_token=token)
    assert isinstance(claim, ClaimOk), claim
    return client.submit(view.request_id, token, router, view.request.digest, response)


def wake(workflow_id: str, view: GateView, key: str | None = None) -> None:
    """Send the wake-up of a question, whatever is recorded."""
    DBOS.send(workflow_id, "look", topic_of(view.request_id), idempotency_key=key)


def waits_for_message(workflow_id: str, timeout: float = 10.0) -> None:
    """Wait until a workflow has begun to wait: its last step is the sleep that goes with a message."""
    wait_until(lambda: DBOS.list_workflow_steps(workflow_id)[-1:] != [] and _sleeps(workflow_id), timeout)


def _sleeps(workflow_id: str) -> bool:
    return DBOS.list_workflow_steps(workflow_id)[-1]["function_name"] == "DBOS.sleep"
