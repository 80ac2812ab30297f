"""What a person's answer costs: on PostgreSQL, and in a workflow."""

from __future__ import annotations

import asyncio
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from temporalio.client import Client

from corrobo_core import PostgresLedger
from corrobo_core.gates import GateDefinition, GateRequest, StoredGateClient, create_gate
from corrobo_core.records import JSON
from tests.engines.temporal.gate_support import Ask, Gated, claimed, submitted
from tests.support.temporal import running_temporal

REQUESTS, ROUTERS = 1_000, 32
SCHEMA: dict[str, JSON] = {"type": "object", "required": ["approved"]}


def question(number: int, gate: str) -> GateRequest:
    """One request of a gate of its own, so that none supersedes another."""
    return create_gate(
        GateDefinition(
            gate_id=f"{gate}-{number}",
            gate_version=1,
            decision_text="Approve?",
            response_schema=SCHEMA,
            input={"number": number},
        )
    )


def stored(dsn: str) -> dict[str, float]:
    """One claim and one submission, and many routers that race."""
    with PostgresLedger(dsn) as ledger:
        ledger.migrate()
        return {"gate_claim_submit_ms": _claim_and_submit(ledger), "gate_race_ops": _race(ledger)}


def _claim_and_submit(ledger: PostgresLedger) -> float:
    gates, times = StoredGateClient(ledger, "bench-one"), []
    for number in range(200):
        request = question(number, "one")
        gates.post(request)
        start = time.perf_counter()
        claim = gates.claim(request.request_id, "router")
        assert claim.ok
        answer = gates.submit(request.request_id, claim.claim_token, "router", request.digest, {"approved": True})
        times.append((time.perf_counter() - start) * 1e3)
        assert answer.ok
    return statistics.median(times)


def _race(ledger: PostgresLedger) -> float:
    """Claims tried in one second, by 32 routers that all want each of 1,000 requests."""
    requests = [question(number, "race") for number in range(REQUESTS)]
    posting = StoredGateClient(ledger, "bench-race")
    for request in requests:
        posting.post(request)

    def router(name: str) -> int:
        gates = StoredGateClient(ledger, "bench-race")
        return sum(gates.claim(request.request_id, name).ok for request in requests)

    start = time.perf_counter()
    with ThreadPoolExecutor(ROUTERS) as threads:
        won = sum(threads.map(router, (f"router-{number}" for number in range(ROUTERS))))
    assert won == REQUESTS, "each request has exactly one winner"
    return ROUTERS * REQUESTS / (time.perf_counter() - start)


def temporal() -> dict[str, float]:
    """Claim and submit by updates, one question after the other."""
    with running_temporal() as address:
        return {"temporal_gate_roundtrip_ms": asyncio.run(_updates(address))}


async def _updates(address: str) -> float:
    gated, times = Gated(await Client.connect(address)), []
    revisions = [f"r{number}" for number in range(100)]
    async with gated.worker():
        handle = await gated.start(Ask(list(revisions)))
        gates = gated.gates(handle)
        for revision in revisions:
            start = time.perf_counter()
            answer = await submitted(gates, revision, await claimed(gates, revision))
            times.append((time.perf_counter() - start) * 1e3)
            assert answer.ok
        await handle.result()
    return statistics.median(times)
