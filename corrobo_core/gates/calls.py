"""The calls of a client, as decisions that wait for state and time: shared by the synchronous and the asynchronous
clients, which differ only in how they wait.

Source: semantics G2.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Generic, NamedTuple, TypeVar

from corrobo_core.gates import protocol
from corrobo_core.gates.approvals import NO_PLAN, ApprovalSubject, RunPlan
from corrobo_core.gates.decided import Decide
from corrobo_core.gates.definition import GateRequest, gate_of
from corrobo_core.gates.errors import GateArgumentError
from corrobo_core.gates.jsontext import MAX_BYTES
from corrobo_core.gates.results import (
    ClaimResult,
    ExpireOk,
    PostResult,
    ReleaseResult,
    SubmitResult,
    SupersedeResult,
)
from corrobo_core.records import JSON

__all__ = ["Call", "Calls"]

R = TypeVar("R")


class Call(NamedTuple, Generic[R]):
    """One call.

    Attributes:
        gate: whose events it is decided on; None: all, or no gate can be meant.
        decide: the decision.
    """

    gate: str | None
    decide: Decide[R]


class Calls:
    """Makes calls of arguments. What the arguments mean is told at `Gates`.

    Args:
        plan: of the run, or None.
        response_limit: bytes that an answer may have.
    """

    def __init__(self, plan: RunPlan | None = None, response_limit: int = MAX_BYTES) -> None:
        self._plan, self._limit = plan, response_limit

    @property
    def plan(self) -> RunPlan:
        """The plan that approvals need.

        Raises:
            GateArgumentError: there is none. Not retryable.
        """
        if self._plan is None:
            raise GateArgumentError("plan", NO_PLAN)
        return self._plan

    def post(
        self,
        request: GateRequest,
        subject: ApprovalSubject | None,
        deadline: datetime | timedelta | None,
        reopen: bool,
    ) -> Call[PostResult]:
        """See `Gates.post`."""
        return Call(
            getattr(request, "gate_id", None),
            lambda state, now: protocol.post(
                state, request, now=now, deadline=deadline, reopen=reopen, subject=subject, plan=self._plan
            ),
        )

    def supersede(self, request_id: str, superseded_by: str) -> Call[SupersedeResult]:
        """See `Gates.supersede`."""
        return Call(
            gate_of(request_id), lambda state, now: protocol.supersede(state, request_id, superseded_by, now=now)
        )

    def expire(self) -> Call[ExpireOk]:
        """See `Gates.expire`."""
        return Call(None, lambda state, now: protocol.expire(state, now=now))

    def claim(
        self, request_id: str, router_id: str, claim_token: str, lease: timedelta | None
    ) -> Call[ClaimResult]:
        """See `Gates.claim`."""
        return Call(
            gate_of(request_id),
            lambda state, now: protocol.claim(
                state, request_id, router_id, now=now, claim_token=claim_token, lease=lease
            ),
        )

    def submit(
        self,
        request_id: str,
        claim_token: str,
        router_id: str,
        request_digest: str,
        response: JSON,
        actor: Mapping[str, JSON] | None,
    ) -> Call[SubmitResult]:
        """See `Gates.submit`."""
        sent = protocol.Submission(request_id, claim_token, router_id, request_digest, response, actor)
        return Call(
            gate_of(request_id),
            lambda state, now: protocol.submit(state, sent, now=now, plan=self._plan, limit=self._limit),
        )

    def release(self, request_id: str, claim_token: str) -> Call[ReleaseResult]:
        """See `Gates.release`."""
        return Call(
            gate_of(request_id), lambda state, now: protocol.release(state, request_id, claim_token, now=now)
        )

    def release_claim(self, request_id: str, operator: str, reason: str) -> Call[ReleaseResult]:
        """See `Gates.release_claim`."""
        return Call(
            gate_of(request_id),
            lambda state, now: protocol.release_claim(state, request_id, now=now, operator=operator, reason=reason),
        )
