"""The question of the gates' tests."""

from corrobo_core.gates import GateDefinition, GateRequest, create_gate


def release(revision: str) -> GateDefinition:
    """May this revision be released?"""
    return GateDefinition(
        gate_id="release-approval",
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


def asked(revision: str) -> GateRequest:
    """The request of that question."""
    return create_gate(release(revision))
