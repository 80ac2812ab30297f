"""A release waits for approval: ``python -m examples.approve_release [--json]``.

Two reviewers race for the question, and one wins. While it is open, the worker is killed. The winner's answer is
a plain signal, sent while there is no worker. A fresh worker takes over: the release happens, once. The worker that
releases has a database role that cannot record decisions; the one that records them has another. What is counted is
what the outside system has committed. The exit status is 1 if anything is not as expected.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from temporalio.client import Client

from corrobo_core import LedgerError, PostgresLedger, ReviewDesk
from corrobo_core.gates import ClaimOk, ClaimRefused, GateView
from corrobo_temporal import TemporalGateClient, WorkflowGone
from examples.approve_release.release import ApprovedRelease
from examples.http_ledger import HttpLedger, running_http_ledger
from tests.support.postgres import fresh_database, running_postgres
from tests.support.processes import Child, child
from tests.support.roles import Logins, ledger_with_roles
from tests.support.temporal import running_temporal

EXPECTED = {
    "asked": "May example/release '2026.11' be sent?",
    "claims": ["claimed", "won"],
    "workerMayDecide": False,
    "releasesWhileOpen": 0,
    "workerKilled": True,
    "released": "2026.11",
    "releases": 1,
    "history": ["requested", "claimed", "submitted"],
}


async def pending(gates: TemporalGateClient) -> GateView:
    """The one question, as soon as it is asked."""
    while True:
        found = await gates.list_pending()
        if found and not isinstance(found, WorkflowGone):
            return found[0]
        await asyncio.sleep(0.1)


async def raced(gates: TemporalGateClient, request_id: str) -> tuple[str, str, list[str]]:
    """Two reviewers claim at once: the winner, the winner's token, and what each was told."""
    names = ("ada", "grace")
    told = await asyncio.gather(*(gates.claim(request_id, name) for name in names))
    won = [(name, claim.claim_token) for name, claim in zip(names, told, strict=True) if isinstance(claim, ClaimOk)]
    lost: list[str] = [claim.kind for claim in told if isinstance(claim, ClaimRefused)]
    return *won[0], sorted(["won"] * len(won) + lost)


def kind_of(event: Mapping[str, Any]) -> str:
    """Without the word that all have in common."""
    return str(event["kind"]).removeprefix("callback-")


def may_decide(dsn: str, token: str) -> bool:
    """Whether a login can approve the release: it tries."""
    with PostgresLedger(dsn) as ledger:
        try:
            ReviewDesk(ledger).approved("2026.11", token=token, reviewer="nobody")
        except LedgerError:
            return False
    return True


async def play(address: str, ledger: HttpLedger, logins: Logins, start: Callable[[str], Child]) -> dict[str, Any]:
    """What happens, as facts."""
    worker = start("releases")
    client = await Client.connect(address)
    handle = await client.start_workflow(
        ApprovedRelease.run, "2026.11", id="release-2026.11", task_queue="releases"
    )
    gates = TemporalGateClient(client, handle.id)
    question = await pending(gates)
    asked: Any = question.request.input
    worker_may_decide = await asyncio.to_thread(may_decide, logins.runner, asked["token"])
    reviewer, token, claims = await raced(gates, question.request_id)

    worker.close()  # SIGKILL
    answer = {
        "kind": "submit",
        "requestId": question.request_id,
        "requestDigest": question.request.digest,
        "routerId": reviewer,
        "claimToken": token,
        "actor": {"name": reviewer},
        "response": {"kind": "allow"},
    }
    await handle.signal("corrobo_gate", answer)
    open_releases = ledger.count()

    await asyncio.to_thread(start, "releases")
    released = await handle.result()
    history = await gates.history()
    return {
        "asked": question.request.decision_text,
        "claims": claims,
        "workerMayDecide": worker_may_decide,
        "releasesWhileOpen": open_releases,
        "workerKilled": worker.returncode == -9,
        "released": released,
        "releases": ledger.count(),
        "history": [] if isinstance(history, WorkflowGone) else [kind_of(event) for event in history],
    }


def facts() -> dict[str, Any]:
    """Start the servers and workers, and play."""
    with ExitStack() as stack:
        address = stack.enter_context(running_temporal())
        ledger = stack.enter_context(running_http_ledger())
        postgres = stack.enter_context(running_postgres())
        database = stack.enter_context(fresh_database(postgres.dsn()))
        logins = stack.enter_context(ledger_with_roles(database))
        environment = {"HTTP_LEDGER_URL": ledger.url}

        def start(kind: str) -> Child:
            login = logins.reviewer if kind == "decisions" else logins.runner
            worker = child("examples.approve_release.worker", kind, address, login, env=environment)
            running = stack.enter_context(worker)
            running.wait_for("ready")
            return running

        start("decisions")
        return asyncio.run(play(address, ledger, logins, start))


def main(*args: str) -> int:
    found = facts()
    if "--json" in args:
        print(json.dumps(found))
    else:
        print("\n".join(f"{name:<20}{value}" for name, value in found.items()))
    return 0 if found == EXPECTED else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
