"""A worker is killed around its write, and a fresh one recovers the workflow. The HTTP ledger counts."""

from __future__ import annotations

import pytest

from examples.http_ledger import client_killed
from tests.engines.dbos.conftest import World


def killed_and_recovered(world: World, workflow: str, *references: str) -> str:
    """Start, be killed by the write that the HTTP ledger was told about, recover; gives what it returned."""
    with world.worker("start", workflow, "wf", *references) as first:
        assert first.wait() == -9
    with world.worker("wait", "wf") as second:
        return second.wait_for("done wf").removeprefix("done wf ")


@pytest.mark.parametrize("workflow", ["guarded", "guarded_async"])
def test_killed_after_the_write_it_is_not_sent_again(world: World, workflow: str) -> None:
    world.http.fail_next(client_killed("after_commit"))

    result = killed_and_recovered(world, workflow, "rf_81")

    assert "rf_81" in result
    assert world.http.counts("rf_81").write_requests == 1
    assert world.http.count("rf_81") == 1
