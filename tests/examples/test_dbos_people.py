"""The examples of people's decisions on DBOS print what they say."""

from __future__ import annotations

import json

import pytest

from tests.support.processes import child

EXPECTED = {
    "approve_refund": {"questions": 2, "refundedCents": 25_000, "requestsSent": 2, "refundsAtProvider": 1},
    "investigate": {
        "question": "Did payments/refund happen? It is 'rf_81'.",
        "attestedBy": "ada",
        "refund": "cr_1",
        "requestsSent": 1,
        "refundsAtProvider": 1,
    },
}


@pytest.mark.parametrize("example", EXPECTED)
def test_the_facts_are_as_told(example: str) -> None:
    with child(f"examples.{example}", "--json") as running:
        assert running.wait(90) == 0, running.output
    start = running.output.index("{\n")
    assert json.loads(running.output[start:]) == EXPECTED[example]
