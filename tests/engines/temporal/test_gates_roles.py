"""Attempts and decisions by two processes with two PostgreSQL logins: what a person says is recorded by the one
that makes no attempts, and the other cannot (R1, A6).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from temporalio.client import Client, WorkflowFailureError

from corrobo_core import LedgerError, PostgresLedger, ReviewDesk
from examples.approve_release.release import ApprovedRelease
from examples.http_ledger import HttpLedger
from tests.engines.temporal.gate_support import SIGNAL, Gated, Handle, pending, says
from tests.support.processes import child
from tests.support.roles import Logins, decisions, ledger_with_roles

ALLOW = {"kind": "allow"}


@pytest.fixture
def logins(postgres_dsn: str) -> Iterator[Logins]:
    with ledger_with_roles(postgres_dsn) as made:
        yield made


class Workers:
    """The example's two workers, in processes of their own."""

    def __init__(self, client: Client, address: str, releases: HttpLedger, stack: ExitStack) -> None:
        self._client, self._address, self.releases, self._stack = client, address, releases, stack

    async def start(self, *, runner: str, reviewer: str) -> None:
        for kind, login in {"releases": runner, "decisions": reviewer}.items():
            command = ("examples.approve_release.worker", kind, self._address, login)
            worker = self._stack.enter_context(child(*command, env={"HTTP_LEDGER_URL": self.releases.url}))
            await asyncio.to_thread(worker.wait_for, "ready")

    async def release(self, revision: str) -> Handle:
        workflow_id = f"release-{uuid.uuid4()}"
        return await self._client.start_workflow(
            ApprovedRelease.run, revision, id=workflow_id, task_queue="releases"
        )


@pytest.fixture
def workers(temporal_client: Client, temporal_address: str, http_ledger: HttpLedger) -> Iterator[Workers]:
    with ExitStack() as stack:
        yield Workers(temporal_client, temporal_address, http_ledger, stack)


async def test_R1_the_reviewers_process_records_the_decision_and_the_runners_login_cannot(
    workers: Workers, logins: Logins, gated: Gated
) -> None:
    await workers.start(runner=logins.runner, reviewer=logins.reviewer)
    handle = await workers.release("r1")
    [view] = await pending(gated.gates(handle))
    asked: Any = view.request.input
    with PostgresLedger(logins.runner) as ledger, pytest.raises(LedgerError, match="permission denied"):
        ReviewDesk(ledger).approved("r1", token=asked["token"], reviewer="mallory")
    forgery = (
        "insert into corrobo.decision (ns, id, token, kind, recorded, login, doc)"
        " values ('default', 'r1', %s, 'approved', now(), 'ada', '{}')"
    )
    with psycopg.connect(logins.runner) as runner, pytest.raises(psycopg.errors.InsufficientPrivilege):
        runner.execute(forgery, [asked["token"]])
    assert (decisions(logins), workers.releases.count()) == ([], 0)
    await handle.signal(SIGNAL, says(view, ALLOW))
    assert await handle.result() == "r1"
    [(operation_id, token, kind, _, login)] = decisions(logins)
    assert (operation_id, token, kind, login) == ("r1", asked["token"], "approved", logins.roles.reviewer)
    assert workers.releases.count() == 1


async def test_R1_a_process_with_the_runners_login_records_nothing_on_the_decisions_queue(
    workers: Workers, logins: Logins, gated: Gated
) -> None:
    """The twin: the same workers, except that the reviewers' one was given the runner's login by mistake."""
    await workers.start(runner=logins.runner, reviewer=logins.runner)
    handle = await workers.release("r2")
    [view] = await pending(gated.gates(handle))
    await handle.signal(SIGNAL, says(view, ALLOW))
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert "the ledger refused" in repr(caught.value.cause.__cause__)
    assert (decisions(logins), workers.releases.count()) == ([], 0)
