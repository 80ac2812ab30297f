"""Gates in a ledger: their events survive every process, and one log serves all of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from corrobo_core.commands import LedgerCommand
from corrobo_core.gates import protocol
from corrobo_core.gates.approvals import ActionDecision, ApprovalSubject, RunPlan, resolve_approval
from corrobo_core.gates.base import Gates, new_token
from corrobo_core.gates.calls import Call, Calls
from corrobo_core.gates.definition import GateRequest, gate_of
from corrobo_core.gates.events import GateEvent
from corrobo_core.gates.jsontext import MAX_BYTES
from corrobo_core.gates.programs import OnDamage, Program, Programs
from corrobo_core.gates.results import (
    ClaimResult,
    ExpireOk,
    PostResult,
    ReleaseResult,
    SubmitResult,
    SupersedeResult,
)
from corrobo_core.gates.state import GateState, GateView
from corrobo_core.ledgers.ports import Ledger
from corrobo_core.records import JSON

__all__ = ["AsyncStoredGateClient", "StoredGateClient"]

R = TypeVar("R")


class StoredGateClient(Gates):
    """Gates whose events are kept in a ledger: SQLite, PostgreSQL, or memory.

    Any number of processes may have clients of the same stream. A claim costs two statements: read what is new,
    append if nothing else was appended meanwhile.

    Args:
        ledger: migrated; the application opens and closes it.
        stream: which history, such as a run id; 1 to 200 characters.
        plan: of the run, where approvals are bound to it.
        response_limit: bytes that an answer may have.

    Raises:
        GateArgumentError: the stream's name is not usable. Not retryable.

    Every method raises what its counterpart in `Gates` raises, and

    * `LedgerUnavailable`: the database did not answer, and the call may or may not have been recorded. Retryable.
    * `GateHistoryError`: the stored log of this gate is damaged; other gates are not affected. Not retryable.

    Source: semantics G5.
    """

    def __init__(
        self,
        ledger: Ledger,
        stream: str,
        *,
        plan: RunPlan | None = None,
        response_limit: int = MAX_BYTES,
    ) -> None:
        super().__init__(plan=plan, response_limit=response_limit)
        self._ledger, self._programs = ledger, Programs(ledger.namespace, stream)

    def _drive(self, program: Program[R]) -> R:
        reply: object = None
        try:
            while True:
                command = cast("LedgerCommand[Any]", program.send(reply))
                reply = self._ledger.perform(command)
        except StopIteration as ended:
            return cast("R", ended.value)

    def _run(self, call: Call[R]) -> R:
        return self._drive(self._programs.change(*call))

    def _look(self, gate: str | None) -> tuple[GateState, datetime]:
        return self._drive(self._programs.look(gate))

    def history(self, request_id: str | None = None) -> tuple[GateEvent, ...]:
        """The events, of one request or of all, in their order. They hold claim tokens (G12)."""
        gate = None if request_id is None else gate_of(request_id) or ""
        return self._drive(self._programs.events(gate, request_id))

    def expire(self) -> ExpireOk:
        """Record every expiry that is due. Nobody needs to: whoever acts after a deadline does (G7)."""
        return self._drive(self._programs.expire())

    def list_pending(self, *, on_damage: OnDamage | None = None) -> tuple[GateView, ...]:
        """The requests that a router could claim now, oldest first; without tokens.

        Args:
            on_damage: given the error of each gate whose log is damaged, and the others are listed; without it,
                the first one is raised.
        """
        state, now = self._drive(self._programs.look(None, on_damage))
        return protocol.list_pending(state, now=now)


class AsyncStoredGateClient:
    """`StoredGateClient`, for a running event loop: the same methods, awaited.

    Args:
        ledger: migrated; the application opens and closes it.
        stream: which history, such as a run id; 1 to 200 characters.
        plan: of the run, where approvals are bound to it.
        response_limit: bytes that an answer may have.

    Raises:
        GateArgumentError: the stream's name is not usable. Not retryable.

    Source: semantics G5.
    """

    def __init__(
        self,
        ledger: Ledger,
        stream: str,
        *,
        plan: RunPlan | None = None,
        response_limit: int = MAX_BYTES,
    ) -> None:
        self._calls = Calls(plan, response_limit)
        self._ledger, self._programs = ledger, Programs(ledger.namespace, stream)

    async def _drive(self, program: Program[R]) -> R:
        reply: object = None
        try:
            while True:
                command = cast("LedgerCommand[Any]", program.send(reply))
                reply = await self._ledger.perform_async(command)
        except StopIteration as ended:
            return cast("R", ended.value)

    async def _run(self, call: Call[R]) -> R:
        return await self._drive(self._programs.change(*call))

    async def post(
        self,
        request: GateRequest,
        subject: ApprovalSubject | None = None,
        *,
        deadline: datetime | timedelta | None = None,
        reopen: bool = False,
    ) -> PostResult:
        """See `Gates.post`."""
        return await self._run(self._calls.post(request, subject, deadline, reopen))

    async def supersede(self, request_id: str, superseded_by: str) -> SupersedeResult:
        """See `Gates.supersede`."""
        return await self._run(self._calls.supersede(request_id, superseded_by))

    async def expire(self) -> ExpireOk:
        """See `Gates.expire`."""
        return await self._drive(self._programs.expire())

    async def claim(
        self, request_id: str, router_id: str, *, claim_token: str | None = None, lease: timedelta | None = None
    ) -> ClaimResult:
        """See `Gates.claim`."""
        token = new_token() if claim_token is None else claim_token
        return await self._run(self._calls.claim(request_id, router_id, token, lease))

    async def submit(
        self,
        request_id: str,
        claim_token: str,
        router_id: str,
        request_digest: str,
        response: JSON,
        *,
        actor: Mapping[str, JSON] | None = None,
    ) -> SubmitResult:
        """See `Gates.submit`."""
        return await self._run(
            self._calls.submit(request_id, claim_token, router_id, request_digest, response, actor)
        )

    async def release(self, request_id: str, claim_token: str) -> ReleaseResult:
        """See `Gates.release`."""
        return await self._run(self._calls.release(request_id, claim_token))

    async def release_claim(self, request_id: str, *, operator: str, reason: str) -> ReleaseResult:
        """See `Gates.release_claim`."""
        return await self._run(self._calls.release_claim(request_id, operator, reason))

    async def list_pending(self, *, on_damage: OnDamage | None = None) -> tuple[GateView, ...]:
        """See `StoredGateClient.list_pending`."""
        state, now = await self._drive(self._programs.look(None, on_damage))
        return protocol.list_pending(state, now=now)

    async def show(self, request_id: str) -> GateView | None:
        """See `Gates.show`."""
        state, now = await self._drive(self._programs.look(gate_of(request_id) or ""))
        return protocol.view(state, request_id, now=now)

    async def history(self, request_id: str | None = None) -> tuple[GateEvent, ...]:
        """See `Gates.history`."""
        gate = None if request_id is None else gate_of(request_id) or ""
        return await self._drive(self._programs.events(gate, request_id))

    async def resolve_approval(self, request: GateRequest, subject: ApprovalSubject) -> ActionDecision:
        """See `Gates.resolve_approval`."""
        state, _ = await self._drive(self._programs.look(request.gate_id))
        return resolve_approval(state, request, subject, self._calls.plan)
