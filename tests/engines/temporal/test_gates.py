"""Questions in workflows, on a real server: no decision is lost, and none is applied twice."""

from __future__ import annotations

from corrobo_core.gates import ClaimOk, SubmitOk
from corrobo_temporal import TemporalGateClient
from tests.engines.temporal.gate_support import Gated
from tests.engines.temporal.gate_workflows import Ask
from tests.engines.temporal.questions import asked

YES, NO = {"approved": True}, {"approved": False}


async def test_a_question_is_claimed_answered_and_the_workflow_goes_on(gated: Gated) -> None:
    request = asked("r1")
    async with gated.worker():
        handle = await gated.start(Ask(["r1"]))
        gates = TemporalGateClient(gated.client, handle.id)
        claimed = await gates.claim(request.request_id, "ada")
        assert isinstance(claimed, ClaimOk)
        submitted = await gates.submit(request.request_id, claimed.claim_token, "ada", request.digest, YES)
        assert isinstance(submitted, SubmitOk)
        assert await handle.result() == [["ada", YES]]
