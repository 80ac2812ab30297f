"""Answering a gate: which answers count, and what becomes of the others. Pure, as `corrobo_core.gates.protocol`.

Source: semantics G6, G7, G8, A3, A4.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from corrobo_core.gates.approvals import NO_PLAN, RunPlan, approval_record
from corrobo_core.gates.decided import Decided, expiry, nothing
from corrobo_core.gates.errors import GateArgumentError, GateConflictError, GateValueError
from corrobo_core.gates.events import CallbackRejected, CallbackSubmitted
from corrobo_core.gates.jsontext import MAX_BYTES, aware, canonical
from corrobo_core.gates.results import SubmitOk, SubmitRefused, SubmitResult
from corrobo_core.gates.schemas import problem_of
from corrobo_core.gates.state import Answer, GateState, GateStatus, RequestState
from corrobo_core.records import JSON

__all__ = ["Submission", "submit"]

_LONGEST_REASON = 2_000


@dataclass(frozen=True)
class Submission:
    """One answer on its way in.

    Attributes:
        request_id: of the request.
        claim_token: of the claim.
        router_id: who claimed.
        request_digest: of the request that was shown.
        response: any JSON value.
        actor: who decided, as the caller says; an object, for approvals.
    """

    request_id: str
    claim_token: str
    router_id: str
    request_digest: str
    response: JSON
    actor: Mapping[str, JSON] | None = None


def submit(
    state: GateState,
    submission: Submission,
    *,
    now: datetime,
    plan: RunPlan | None = None,
    limit: int = MAX_BYTES,
) -> Decided[SubmitResult]:
    """Accept an answer from the claim's owner, for the digest that was asked, of the form that was asked for.

    Args:
        state: of the stream, or at least of the request's gate.
        submission: the answer.
        now: the store's clock; aware.
        plan: of the run, for approvals.
        limit: bytes that an answer may have.

    Raises:
        GateConflictError: an approval that is recorded with another decision or actor (A4). Not retryable.
        GateArgumentError: an approval, and no plan. Not retryable.

    Source: semantics G2, G6, G7, G8, A3, A4.
    """
    now = aware(now, "now")
    known = state.get(submission.request_id)
    if known is None:
        return nothing(SubmitRefused("missing", "there is no such request"))
    try:
        response = canonical(submission.response, "response", limit)
    except GateValueError as error:
        return _unstorable(known, now, str(error))
    if known.due(now):
        expired = expiry(known, now)
        late = _late(replace(known, status=GateStatus.EXPIRED), submission, response)
        return Decided((expired, *late.events), late.result)
    if known.status is GateStatus.EXPIRED:
        return _late(known, submission, response)
    if known.subject_json is not None:
        return _submit_approval(known, known.subject_json, submission, response, plan)
    return _submit(known, submission, response)


def _unstorable(known: RequestState, now: datetime, problem: str) -> Decided[SubmitResult]:
    if known.due(now):
        return Decided((expiry(known, now),), SubmitRefused("expired", "the deadline has passed"))
    if known.status is GateStatus.EXPIRED:
        return nothing(SubmitRefused("expired", "the deadline has passed"))
    return nothing(SubmitRefused("invalid", problem))


def _late(known: RequestState, submission: Submission, response: str) -> Decided[SubmitResult]:
    """An answer after the deadline: kept if it is one, and its router held the claim (G7)."""
    answer = Answer(submission.router_id, response)
    mine = known.owned_by(submission.router_id, submission.claim_token)
    is_one = submission.request_digest == known.request.digest and _problem(known, response) is None
    if not (mine and is_one):
        return nothing(SubmitRefused("expired", "the deadline has passed"))
    kept = "the deadline has passed; the answer is kept, and decides nothing"
    refused = SubmitRefused("expired", kept, late=True)
    if known.late and known.late[-1] == answer:
        return nothing(refused)
    return Decided((_submitted(submission, response),), refused)


def _problem(known: RequestState, response: str) -> str | None:
    return problem_of(json.loads(response), known.request.response_schema_json)


def _submitted(submission: Submission, response: str, approval: str | None = None) -> CallbackSubmitted:
    return CallbackSubmitted(
        submission.request_id, submission.request_digest, submission.router_id, response, approval
    )


def _refused(known: RequestState, submission: Submission, response: str) -> SubmitRefused | None:
    """Why this router may not answer now; None if it may."""
    match known.status:
        case GateStatus.ANSWERED:
            same = known.answer is not None and known.answer.response_json == response
            again = "with this answer" if same else "with another answer"
            return SubmitRefused("not-claimed", f"the request is answered, {again}", known.answer, same)
        case GateStatus.SUPERSEDED:
            return SubmitRefused("stale", "a newer request took its place")
        case GateStatus.PENDING:
            return SubmitRefused("not-claimed", "nobody holds a claim on the request")
        case _:
            return _not_owner_or_stale(known, submission)


def _not_owner_or_stale(known: RequestState, submission: Submission) -> SubmitRefused | None:
    if not known.owned_by(submission.router_id, submission.claim_token):
        return SubmitRefused("not-owner", "the claim is not this router's")
    if submission.request_digest != known.request.digest:
        return SubmitRefused("stale", "the answer is for another digest than the request has")
    return None


def _submit(known: RequestState, submission: Submission, response: str) -> Decided[SubmitResult]:
    if (refused := _refused(known, submission, response)) is not None:
        return nothing(refused)
    if (problem := _problem(known, response)) is not None:
        return _rejected(known, submission, problem)
    return _accepted(known, submission, response, None)


def _rejected(known: RequestState, submission: Submission, problem: str) -> Decided[SubmitResult]:
    event = CallbackRejected(submission.request_id, submission.router_id, problem[:_LONGEST_REASON])
    return Decided((event,), SubmitRefused("invalid", problem), before=known.deadline)


def _accepted(
    known: RequestState, submission: Submission, response: str, approval: str | None
) -> Decided[SubmitResult]:
    answer = Answer(submission.router_id, response)
    return Decided((_submitted(submission, response, approval),), SubmitOk(answer), before=known.deadline)


def _submit_approval(
    known: RequestState, subject: str, submission: Submission, response: str, plan: RunPlan | None
) -> Decided[SubmitResult]:
    if plan is None:
        raise GateArgumentError("plan", NO_PLAN)
    try:
        record = approval_record(
            known.request, subject, plan, submission.router_id, submission.actor, json.loads(response)
        )
    except ValueError as error:
        return nothing(SubmitRefused("invalid", str(error)))
    if known.status is GateStatus.ANSWERED:
        return _repeated_approval(known, submission, record)
    if (refused := _refused(known, submission, response)) is not None:
        return nothing(refused)
    if (problem := _problem(known, response)) is not None:
        return _rejected(known, submission, problem)
    return _accepted(known, submission, response, record)


def _repeated_approval(known: RequestState, submission: Submission, record: str) -> Decided[SubmitResult]:
    if (refused := _not_owner_or_stale(known, submission)) is not None:
        return nothing(refused)
    if known.approval_json != record or known.answer is None:
        raise GateConflictError(submission.request_id, "another decision or actor is recorded, and stays")
    return nothing(SubmitOk(known.answer))
