"""The reviewer's side of gates on DBOS: records first, then wakes the workflow.

Source: semantics sections 8 and 9, A6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from dbos import DBOSClient

from corrobo_core import AsyncReviewDesk, ReviewDesk, UsageError
from corrobo_core.gates import (
    AsyncStoredGateClient,
    ClaimResult,
    GateEvent,
    GateView,
    ReleaseResult,
    RunPlan,
    StoredGateClient,
)
from corrobo_core.gates.effects import EFFECT_PLAN
from corrobo_core.ledgers.ports import Ledger
from corrobo_core.records import JSON
from corrobo_dbos import engine
from corrobo_dbos.deciding import Reviewing, Side, Submission, driven, driven_async
from corrobo_dbos.deliveries import Delivery, NoWorkflow, Progress

__all__ = ["AsyncDbosGateClient", "DbosGateClient"]


class DbosGateClient:
    """Lists, claims and answers the questions of one workflow, from any process.

    What is answered is recorded, then the workflow is woken by a message. A repeated call does what is missing.

    Args:
        ledger: that has the questions; migrated.
        workflow_id: of the workflow, or of the fork, that asks.
        dbos: a `DBOSClient`, outside of DBOS applications; without it this process's own DBOS is used.
        desk: decides about effects; with a ledger that has the reviewer's database role, where there are roles.
        effects: those whose investigations are answered here: an attested value must be of the effect's type.
        plan: of the run, where approvals are bound to it.

    Raises:
        UsageError: an argument is not usable. Not retryable.

    Every method raises `LedgerUnavailable` if the database does not answer; repeat the call then.

    Source: semantics G2, A6, R9: nobody is authenticated.
    """

    def __init__(
        self,
        ledger: Ledger,
        workflow_id: str,
        *,
        dbos: DBOSClient | None = None,
        desk: ReviewDesk | None = None,
        effects: Iterable[Any] = (),
        plan: RunPlan | None = None,
    ) -> None:
        if not isinstance(desk, ReviewDesk | None):
            raise UsageError("DbosGateClient", "desk: takes a ReviewDesk")
        self._gates = StoredGateClient(ledger, workflow_id, plan=plan)
        reviews = StoredGateClient(ledger, workflow_id, plan=EFFECT_PLAN)
        self._side = Side(self._gates, reviews, desk, engine.Workflows(dbos))
        self._reviewing = Reviewing("DbosGateClient", workflow_id, effects)

    def list_pending(self) -> tuple[GateView, ...]:
        """The questions that could be claimed now, oldest first; without tokens."""
        return self._gates.list_pending()

    def show(self, request_id: str) -> GateView | None:
        """One question, or None; without tokens."""
        return self._gates.show(request_id)

    def history(self, request_id: str | None = None) -> tuple[GateEvent, ...]:
        """The events, of one question or of all. They hold claim tokens (G12)."""
        return self._gates.history(request_id)

    def progress(self, request_id: str) -> Progress | None:
        """Where a question stands, to see an answer that nobody consumes; None if there is no such question."""
        return driven(self._reviewing.progress(request_id), self._side)

    def claim(
        self, request_id: str, router_id: str, *, claim_token: str | None = None, lease: timedelta | None = None
    ) -> ClaimResult | NoWorkflow:
        """Take a question, as the only router; see `Gates.claim`."""
        return driven(self._reviewing.claim(request_id, router_id, claim_token, lease), self._side)

    def release(self, request_id: str, claim_token: str) -> ReleaseResult:
        """Give a claimed question back; see `Gates.release`."""
        return self._gates.release(request_id, claim_token)

    def release_claim(self, request_id: str, *, operator: str, reason: str) -> ReleaseResult:
        """Take a claim from whoever holds it; see `Gates.release_claim`."""
        return self._gates.release_claim(request_id, operator=operator, reason=reason)

    def submit(
        self,
        request_id: str,
        claim_token: str,
        router_id: str,
        request_digest: str,
        response: JSON,
        *,
        actor: Mapping[str, JSON] | None = None,
    ) -> Delivery:
        """Bring the answer: it is recorded, then the workflow is woken.

        The question of an effect is decided at the review desk first, since that is what counts for it: the
        reviewer is the actor's ``name``, or the router.

        Args:
            request_id: of the question.
            claim_token: of the claim.
            router_id: who claimed.
            request_digest: of the question as it was shown.
            response: the answer.
            actor: who decided, for approvals; an object.

        Raises:
            GateConflictError: an approval that has another decision or actor already. Not retryable.
            UsageError: an effect's question and no desk, or an effect that is not known here; called on an event
                loop (use `AsyncDbosGateClient`). Nothing is recorded. Not retryable.
            LedgerError: the login of the desk's ledger may not decide. Nothing is recorded. Not retryable.

        Source: semantics A6, G8.
        """
        if engine.on_event_loop():
            raise UsageError("DbosGateClient.submit", "would block the event loop; use AsyncDbosGateClient")
        sent = Submission(request_id, claim_token, router_id, request_digest, response, actor)
        return driven(self._reviewing.submit(sent), self._side)


class AsyncDbosGateClient:
    """`DbosGateClient`, for a running event loop: the same methods, awaited, and an `AsyncReviewDesk`.

    Cancelled in a call, it may have recorded the answer and woken nobody: the workflow looks by itself, and the
    same call again does what is missing.

    Raises:
        UsageError: an argument is not usable. Not retryable.

    Source: semantics G2, A6, R9.
    """

    def __init__(
        self,
        ledger: Ledger,
        workflow_id: str,
        *,
        dbos: DBOSClient | None = None,
        desk: AsyncReviewDesk | None = None,
        effects: Iterable[Any] = (),
        plan: RunPlan | None = None,
    ) -> None:
        if not isinstance(desk, AsyncReviewDesk | None):
            raise UsageError("AsyncDbosGateClient", "desk: takes an AsyncReviewDesk")
        self._gates = AsyncStoredGateClient(ledger, workflow_id, plan=plan)
        reviews = AsyncStoredGateClient(ledger, workflow_id, plan=EFFECT_PLAN)
        counterparts: Any = (self._gates, reviews, desk, engine.AsyncWorkflows(dbos))
        self._side = Side(*counterparts)
        self._reviewing = Reviewing("AsyncDbosGateClient", workflow_id, effects)

    async def list_pending(self) -> tuple[GateView, ...]:
        """See `DbosGateClient.list_pending`."""
        return await self._gates.list_pending()

    async def show(self, request_id: str) -> GateView | None:
        """See `DbosGateClient.show`."""
        return await self._gates.show(request_id)

    async def history(self, request_id: str | None = None) -> tuple[GateEvent, ...]:
        """See `DbosGateClient.history`."""
        return await self._gates.history(request_id)

    async def progress(self, request_id: str) -> Progress | None:
        """See `DbosGateClient.progress`."""
        return await driven_async(self._reviewing.progress(request_id), self._side)

    async def claim(
        self, request_id: str, router_id: str, *, claim_token: str | None = None, lease: timedelta | None = None
    ) -> ClaimResult | NoWorkflow:
        """See `DbosGateClient.claim`."""
        return await driven_async(self._reviewing.claim(request_id, router_id, claim_token, lease), self._side)

    async def release(self, request_id: str, claim_token: str) -> ReleaseResult:
        """See `DbosGateClient.release`."""
        return await self._gates.release(request_id, claim_token)

    async def release_claim(self, request_id: str, *, operator: str, reason: str) -> ReleaseResult:
        """See `DbosGateClient.release_claim`."""
        return await self._gates.release_claim(request_id, operator=operator, reason=reason)

    async def submit(
        self,
        request_id: str,
        claim_token: str,
        router_id: str,
        request_digest: str,
        response: JSON,
        *,
        actor: Mapping[str, JSON] | None = None,
    ) -> Delivery:
        """See `DbosGateClient.submit`."""
        sent = Submission(request_id, claim_token, router_id, request_digest, response, actor)
        return await driven_async(self._reviewing.submit(sent), self._side)
