"""The smallest routers there are: claim, ask a function, submit what it returns.

Source: semantics G9.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import timedelta

from corrobo_core.errors import CorroboError
from corrobo_core.gates.base import Gates
from corrobo_core.gates.definition import GateRequest
from corrobo_core.gates.results import ClaimRefused, SubmitRefused, SubmitResult
from corrobo_core.gates.stored import AsyncStoredGateClient
from corrobo_core.records import JSON

__all__ = ["direct_router", "direct_router_async"]


def direct_router(
    client: Gates,
    request: GateRequest,
    router_id: str,
    responder: Callable[[GateRequest], JSON],
    *,
    actor: Mapping[str, JSON] | None = None,
    lease: timedelta | None = None,
) -> SubmitResult:
    """Claim a request, ask a function, submit what it returns.

    The claim is released if the function raises, or if what it returns is no answer.

    Args:
        client: where the request was posted.
        request: the question.
        router_id: who claims.
        responder: given the request; returns the answer. What it raises passes through.
        actor: who decides, for approvals.
        lease: of the claim.

    Source: semantics G9.
    """
    claimed = client.claim(request.request_id, router_id, lease=lease)
    if not claimed.ok:
        return _refused(claimed)
    token = claimed.claim_token
    try:
        response = responder(request)
        submitted = client.submit(request.request_id, token, router_id, request.digest, response, actor=actor)
    except BaseException:
        with suppress(CorroboError):  # what was raised first is what matters
            client.release(request.request_id, token)
        raise
    if not submitted.ok and submitted.kind == "invalid":
        client.release(request.request_id, token)
    return submitted


async def direct_router_async(
    client: AsyncStoredGateClient,
    request: GateRequest,
    router_id: str,
    responder: Callable[[GateRequest], Awaitable[JSON] | JSON],
    *,
    actor: Mapping[str, JSON] | None = None,
    lease: timedelta | None = None,
) -> SubmitResult:
    """`direct_router`, awaited; the function may be asynchronous. Cancelled, it releases the claim first."""
    claimed = await client.claim(request.request_id, router_id, lease=lease)
    if not claimed.ok:
        return _refused(claimed)
    token = claimed.claim_token
    try:
        asked = responder(request)
        response = await asked if inspect.isawaitable(asked) else asked
        submitted = await client.submit(request.request_id, token, router_id, request.digest, response, actor=actor)
    except BaseException:
        with suppress(CorroboError):
            await asyncio.shield(client.release(request.request_id, token))
        raise
    if not submitted.ok and submitted.kind == "invalid":
        await client.release(request.request_id, token)
    return submitted


def _refused(refused: ClaimRefused) -> SubmitRefused:
    reason = f"the request could not be claimed: {refused.kind}"
    if refused.kind in ("missing", "expired"):
        return SubmitRefused("missing" if refused.kind == "missing" else "expired", reason)
    return SubmitRefused("not-claimed", reason)
