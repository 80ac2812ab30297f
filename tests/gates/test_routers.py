"""Direct routers: the claim is given back when there is no answer. Rule: semantics G9."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from corrobo_core import MemoryLedger
from corrobo_core.gates import (
    AsyncStoredGateClient,
    ClaimRefused,
    GateClient,
    GateRequest,
    Gates,
    StoredGateClient,
    SubmitRefused,
    direct_router,
    direct_router_async,
)
from corrobo_core.ledgers.ports import Ledger
from tests.gates.support import MINUTE, NO, OTHER, REQUEST, YES, Clock, Turned, claimed, kinds


def failing(request: GateRequest) -> Any:
    raise RuntimeError("responder failed")


def test_G9_a_direct_router_claims_asks_and_submits() -> None:
    client = GateClient()
    client.post(REQUEST)
    asked: list[GateRequest] = []
    submitted = direct_router(client, REQUEST, "router-a", lambda request: asked.append(request) or YES)  # type: ignore[func-returns-value]
    assert (submitted.ok, asked) == (True, [REQUEST])
    assert kinds(client) == ["requested", "claimed", "submitted"]


def test_G9_it_gives_back_what_it_cannot_answer() -> None:
    client = GateClient()
    client.post(REQUEST)
    with pytest.raises(RuntimeError, match="responder failed"):
        direct_router(client, REQUEST, "router-a", failing)
    for response in ({"approved": "yes"}, {"approved": float("nan")}):
        refused = direct_router(client, REQUEST, "router-a", lambda request, given=response: given)  # type: ignore[misc]
        assert isinstance(refused, SubmitRefused) and refused.kind == "invalid"
    assert kinds(client) == [
        "requested", "claimed", "released", "claimed", "rejected", "released", "claimed", "released"
    ]  # fmt: skip
    assert direct_router(client, REQUEST, "router-b", lambda request: NO).ok


def test_G9_it_says_why_it_could_not_claim() -> None:
    clock = Clock()
    client = GateClient(clock=clock)

    def kind(request: GateRequest = REQUEST) -> str:
        refused = direct_router(client, request, "router-b", failing)
        assert isinstance(refused, SubmitRefused)
        return refused.kind

    assert kind() == "missing"
    client.post(REQUEST, deadline=MINUTE)
    claimed(client)
    assert kind() == "not-claimed"
    clock.turn(MINUTE)
    assert kind() == "expired"
    client.post(OTHER)
    claimed(client, request_id=OTHER.request_id)
    assert kind(OTHER) == "not-claimed"


def test_G9_what_was_raised_first_passes_through_even_if_the_claim_cannot_be_given_back() -> None:
    ledger = Turned(MemoryLedger())
    client: Gates = StoredGateClient(cast("Ledger", ledger), "run")
    client.post(REQUEST)
    ledger.fail = lambda number: "before" if number > 2 else None
    with pytest.raises(RuntimeError, match="responder failed"):
        direct_router(client, REQUEST, "router-a", failing)
    ledger.fail = lambda number: None
    assert client.claim(REQUEST.request_id, "router-b") == ClaimRefused("claimed", "router-a")
    assert client.release_claim(REQUEST.request_id, operator="ada", reason="the router is gone").ok
    claimed(client, "router-b")


async def test_G9_asynchronous_responders_are_awaited() -> None:
    client = AsyncStoredGateClient(MemoryLedger(), "run")
    await client.post(REQUEST)

    async def respond(request: GateRequest) -> Any:
        await asyncio.sleep(0)
        return YES

    with pytest.raises(RuntimeError, match="responder failed"):
        await direct_router_async(client, REQUEST, "router-a", failing)
    refused = await direct_router_async(client, REQUEST, "router-a", lambda request: {"approved": 1})
    assert isinstance(refused, SubmitRefused) and refused.kind == "invalid"
    assert (await direct_router_async(client, REQUEST, "router-a", respond)).ok
    refused = await direct_router_async(client, REQUEST, "router-b", respond)
    assert isinstance(refused, SubmitRefused) and refused.kind == "not-claimed"


async def test_G9_a_cancelled_router_gives_its_claim_back() -> None:
    client = AsyncStoredGateClient(MemoryLedger(), "run")
    await client.post(REQUEST)
    asked = asyncio.Event()

    async def never(request: GateRequest) -> Any:
        asked.set()
        await asyncio.Event().wait()

    router = asyncio.create_task(direct_router_async(client, REQUEST, "router-a", never))
    await asked.wait()
    router.cancel()
    with pytest.raises(asyncio.CancelledError):
        await router
    assert [event.kind for event in await client.history()] == [
        "callback-requested", "callback-claimed", "callback-released"
    ]  # fmt: skip
