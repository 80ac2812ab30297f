"""What every client of gates can do. Where the events are kept is the part that differs.

Source: semantics G2, G12.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TypeVar

from corrobo_core.gates import protocol
from corrobo_core.gates.approvals import ActionDecision, ApprovalSubject, RunPlan, resolve_approval
from corrobo_core.gates.calls import Call, Calls
from corrobo_core.gates.definition import GateRequest, gate_of
from corrobo_core.gates.events import GateEvent
from corrobo_core.gates.jsontext import MAX_BYTES
from corrobo_core.gates.results import (
    ClaimResult,
    ExpireOk,
    PostResult,
    ReleaseResult,
    SubmitResult,
    SupersedeResult,
)
from corrobo_core.gates.state import GateState, GateView
from corrobo_core.records import JSON

__all__ = ["Gates", "new_token"]

R = TypeVar("R")


def new_token() -> str:
    """A claim token that nobody can guess."""
    return secrets.token_urlsafe(24)


class Gates(ABC):
    """Questions, claims and answers, for synchronous callers.

    Args:
        plan: of the run, where approvals are bound to it.
        response_limit: bytes that an answer may have.
    """

    def __init__(self, *, plan: RunPlan | None = None, response_limit: int = MAX_BYTES) -> None:
        self._calls = Calls(plan, response_limit)

    @abstractmethod
    def _run(self, call: Call[R]) -> R:
        """Decide on the events, append what was decided, give the result."""

    @abstractmethod
    def _look(self, gate: str | None) -> tuple[GateState, datetime]:
        """The state of one gate, or of all, and the store's time."""

    @abstractmethod
    def history(self, request_id: str | None = None) -> tuple[GateEvent, ...]:
        """The events, of one request or of all, in their order. They hold claim tokens (G12)."""

    # -- asking -------------------------------------------------------------------------------------------

    def post(
        self,
        request: GateRequest,
        subject: ApprovalSubject | None = None,
        *,
        deadline: datetime | timedelta | None = None,
        reopen: bool = False,
    ) -> PostResult:
        """Ask a question; older open ones of the same gate are superseded. The same one again changes nothing.

        Args:
            request: made by `create_gate` or `create_approval_gate`.
            subject: the one that `create_approval_gate` was given.
            deadline: when it expires, or how long from now; fixed by the first post; None: never.
            reopen: ask again what was superseded or has expired; else that is refused.

        Raises:
            GateArgumentError: a deadline that is naive or not ahead, or a request built by hand. Not retryable.
            ApprovalSubjectError: the subject is missing, another one, or not admitted. Not retryable.
            LedgerUnavailable: the database did not answer; posting again is safe. Retryable.

        Source: semantics G4, G7, A2.
        """
        return self._run(self._calls.post(request, subject, deadline, reopen))

    def supersede(self, request_id: str, superseded_by: str) -> SupersedeResult:
        """End an open request because something newer took its place.

        Source: semantics G2.
        """
        return self._run(self._calls.supersede(request_id, superseded_by))

    @abstractmethod
    def expire(self) -> ExpireOk:
        """Record every expiry that is due. Nobody needs to: whoever acts after a deadline does (G7)."""

    # -- routing ------------------------------------------------------------------------------------------

    def claim(
        self, request_id: str, router_id: str, *, claim_token: str | None = None, lease: timedelta | None = None
    ) -> ClaimResult:
        """Take a request, as the only router.

        Args:
            request_id: of the request.
            router_id: who claims, 1 to 200 characters.
            claim_token: proof of the claim; give one to be able to repeat a call whose reply was lost (G10).
            lease: from then on another router may take the claim over; None: it holds until it is released.

        Raises:
            GateArgumentError: an empty router, a lease of zero or less. Not retryable.
            LedgerUnavailable: the database did not answer. Retryable, with the same token.

        Source: semantics G2, G5, G10, G11.
        """
        token = new_token() if claim_token is None else claim_token
        return self._run(self._calls.claim(request_id, router_id, token, lease))

    def submit(
        self,
        request_id: str,
        claim_token: str,
        router_id: str,
        request_digest: str,
        response: JSON,
        *,
        actor: Mapping[str, JSON] | None = None,
    ) -> SubmitResult:
        """Bring the answer.

        Args:
            request_id: of the request.
            claim_token: of the claim.
            router_id: who claimed.
            request_digest: of the request as it was shown: what was read is what is answered.
            response: any JSON value that meets the response schema; an action decision, for an approval.
            actor: who decided, for an approval; an object. Nobody is authenticated.

        Raises:
            GateConflictError: an approval that has another decision or actor already. Not retryable.
            LedgerUnavailable: the database did not answer. Repeat it: a second answer is told from the first by
                the refusal's ``same``. Retryable.

        Source: semantics G2, G6, G7, G8, A3, A4.
        """
        return self._run(self._calls.submit(request_id, claim_token, router_id, request_digest, response, actor))

    def release(self, request_id: str, claim_token: str) -> ReleaseResult:
        """Give a claimed request back.

        Source: semantics G2.
        """
        return self._run(self._calls.release(request_id, claim_token))

    def release_claim(self, request_id: str, *, operator: str, reason: str) -> ReleaseResult:
        """Take a claim from whoever holds it; the operator's name and reason are recorded.

        Raises:
            GateArgumentError: an empty name or reason. Not retryable.

        Source: semantics G11.
        """
        return self._run(self._calls.release_claim(request_id, operator, reason))

    # -- looking ------------------------------------------------------------------------------------------

    def list_pending(self) -> tuple[GateView, ...]:
        """The requests that a router could claim now, oldest first; without tokens."""
        state, now = self._look(None)
        return protocol.list_pending(state, now=now)

    def show(self, request_id: str) -> GateView | None:
        """One request, or None if there is none; without tokens."""
        state, now = self._look(gate_of(request_id) or "")
        return protocol.view(state, request_id, now=now)

    def resolve_approval(self, request: GateRequest, subject: ApprovalSubject) -> ActionDecision:
        """The recorded decision, if it was made for exactly this; else a ``wait``. Applies nothing.

        Args:
            request: made anew from what is to be applied now.
            subject: likewise.

        Source: semantics A5.
        """
        state, _ = self._look(request.gate_id)
        return resolve_approval(state, request, subject, self._calls.plan)
