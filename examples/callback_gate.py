"""A question that code cannot answer: ``python -m examples.callback_gate``.

One router holds a claim at a time, a released request can be claimed again, an accepted answer survives replay, and
other question bytes are another question.
"""

from __future__ import annotations

import json
from dataclasses import replace

from corrobo_core.gates import GateClient, GateDefinition, create_gate, direct_router, replay

DEFINITION = GateDefinition(
    gate_id="release-approval",
    gate_version=1,
    decision_text="Approve release abc123?",
    response_schema={
        "type": "object",
        "properties": {"approved": {"type": "boolean"}},
        "required": ["approved"],
    },
    input={"revision": "abc123"},
)


def main() -> None:
    """Ask, claim, give back, claim again, answer; print what happened as JSON."""
    client = GateClient()
    request = create_gate(DEFINITION)
    client.post(request)

    first_claim = client.claim(request.request_id, "router-a")
    blocked_claim = client.claim(request.request_id, "router-b")
    assert first_claim.ok
    released = client.release(request.request_id, first_claim.claim_token)
    submitted = direct_router(client, request, "router-b", lambda asked: {"approved": True})

    same_question = create_gate(replace(DEFINITION, presentation={"theme": "dark"}))
    changed_question = create_gate(replace(DEFINITION, input={"revision": "def456"}))
    replayed = replay(client.history())

    facts = {
        "requestId": request.request_id,
        "digest": request.digest,
        "sameQuestionId": same_question.request_id == request.request_id,
        "changedQuestionId": changed_question.request_id != request.request_id,
        "blockedKind": None if blocked_claim.ok else blocked_claim.kind,
        "released": released.ok,
        "submitted": submitted.ok,
        "events": [event.kind for event in client.history(request.request_id)],
        "replayedPending": len(replayed.list_pending()),
    }
    print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
