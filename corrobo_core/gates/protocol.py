"""Every decision about gates, as a function: state, arguments, the store's time → events and a result.

Pure, and shared by everything that keeps gates: in memory, in a database, in a workflow. Whoever calls one of these
appends its events to the history, at once and in one piece, before it hands out the result, and only if

* the state is still the one that was decided on, and
* ``before``, where given, has not been reached by the store's clock (a process can be paused in between).

Else it decides anew.

Source: semantics section 9.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal, cast

from corrobo_core.gates.answering import Submission, submit
from corrobo_core.gates.approvals import ApprovalSubject, RunPlan, check_subject
from corrobo_core.gates.decided import Decided, expiry, nothing
from corrobo_core.gates.definition import GateRequest, verified
from corrobo_core.gates.errors import GateArgumentError
from corrobo_core.gates.events import (
    CallbackClaimed,
    CallbackClaimLeased,
    CallbackDeadlineSet,
    CallbackRejected,
    CallbackReleased,
    CallbackRequested,
    CallbackSuperseded,
    GateEvent,
)
from corrobo_core.gates.jsontext import aware, plain_text
from corrobo_core.gates.results import (
    ClaimOk,
    ClaimRefused,
    ClaimResult,
    ExpireOk,
    PostOk,
    PostRefused,
    PostResult,
    ReleaseOk,
    ReleaseRefused,
    ReleaseResult,
    SupersedeOk,
    SupersedeRefused,
    SupersedeResult,
)
from corrobo_core.gates.state import GateState, GateStatus, GateView, RequestState

__all__ = [
    "Decided",
    "Submission",
    "claim",
    "expire",
    "list_pending",
    "post",
    "release",
    "release_claim",
    "submit",
    "supersede",
    "view",
]

# -- asking --------------------------------------------------------------------------------------------------


def post(
    state: GateState,
    request: GateRequest,
    *,
    now: datetime,
    deadline: datetime | timedelta | None = None,
    reopen: bool = False,
    subject: ApprovalSubject | None = None,
    plan: RunPlan | None = None,
) -> Decided[PostResult]:
    """Ask a question; older open ones of the same gate are superseded.

    Args:
        state: of the stream, or at least of the request's gate.
        request: made by `create_gate` or `create_approval_gate`.
        now: the store's clock; aware.
        deadline: when it expires, or how long from now; None: never.
        reopen: ask again what was superseded or has expired.
        subject: of an approval (A2).
        plan: of the run, for an approval.

    Raises:
        GateArgumentError: a deadline that is naive or not ahead. Not retryable.
        GateDefinitionError: the request was not made by `create_gate`, and cannot be answered. Not retryable.
        ApprovalSubjectError: see `check_subject`. Not retryable.

    Source: semantics G4, G7, A2.
    """
    now = aware(now, "now")
    until = _deadline(deadline, now)
    request = verified(request)
    subject_json = check_subject(request, subject, plan)
    known = state.get(request.request_id)
    if known is not None and known.due(now):
        expired: tuple[GateEvent, ...] = (expiry(known, now),)
        known = replace(known, status=GateStatus.EXPIRED)
    else:
        expired = ()
    if known is not None and known.status not in (GateStatus.SUPERSEDED, GateStatus.EXPIRED):
        return nothing(PostOk(request.request_id, False, known.status))
    if known is not None and not reopen:
        kind = cast("Literal['superseded', 'expired']", known.status.value)
        return Decided(expired, PostRefused(request.request_id, kind))
    others = [each for each in state.live_of(request.gate_id) if each.request.request_id != request.request_id]
    left = [
        expiry(each, now) if each.due(now) else CallbackSuperseded(each.request.request_id, request.request_id)
        for each in others
    ]
    asked: list[GateEvent] = [CallbackRequested(request, subject_json)]
    if until is not None:
        asked.append(CallbackDeadlineSet(request.request_id, until))
    superseded = tuple(event.request_id for event in left if isinstance(event, CallbackSuperseded))
    result = PostOk(request.request_id, True, GateStatus.PENDING, superseded)
    return Decided((*expired, *left, *asked), result, before=until)


def _deadline(given: datetime | timedelta | None, now: datetime) -> datetime | None:
    if given is None:
        return None
    until = _later(now, given, "deadline") if isinstance(given, timedelta) else aware(given, "deadline")
    if until <= now:
        raise GateArgumentError("deadline", "it has passed already; pass a time that is still to come")
    return until


def _later(now: datetime, wait: timedelta, argument: str) -> datetime:
    try:
        return now + wait
    except OverflowError:
        raise GateArgumentError(argument, "beyond the year 9999; pass None for never") from None


# -- claiming ------------------------------------------------------------------------------------------------


def claim(
    state: GateState,
    request_id: str,
    router_id: str,
    *,
    now: datetime,
    claim_token: str,
    lease: timedelta | None = None,
) -> Decided[ClaimResult]:
    """Give a request to exactly one router.

    The same claim again, by the same router with the same token, succeeds and changes nothing (G10).

    Args:
        state: of the stream, or at least of the request's gate.
        request_id: of the request.
        router_id: who claims, 1 to 200 characters.
        now: the store's clock; aware.
        claim_token: proof of this claim, 1 to 200 characters that nobody else can guess.
        lease: how long from now the claim is safe from other routers; None: until it is released.

    Raises:
        GateArgumentError: an empty router or token, a lease of zero or less. Not retryable.

    Source: semantics G2, G5, G10, G11.
    """
    now = aware(now, "now")
    router = plain_text(router_id, "router_id")
    token = plain_text(claim_token, "claim_token")
    known = state.get(request_id)
    if known is None:
        return nothing(ClaimRefused("missing"))
    if known.due(now):
        return Decided((expiry(known, now),), ClaimRefused("expired", known.router_id))
    if known.status is GateStatus.CLAIMED and known.owned_by(router, token):
        return nothing(ClaimOk(token, known.lease_until))
    if not known.claimable(now):
        kind = cast("Literal['claimed', 'answered', 'superseded', 'expired']", known.status.value)
        return nothing(ClaimRefused(kind, known.router_id))
    until = _lease(lease, now)
    taken: list[GateEvent] = []
    if known.router_id is not None:  # its lease is over (G11)
        taken.append(CallbackReleased(request_id, known.router_id))
    taken.append(CallbackClaimed(request_id, router, token))
    if until is not None:
        taken.append(CallbackClaimLeased(request_id, router, until))
    return Decided(tuple(taken), ClaimOk(token, until), before=known.deadline)


def _lease(lease: timedelta | None, now: datetime) -> datetime | None:
    if lease is None:
        return None
    if not isinstance(lease, timedelta) or lease <= timedelta():
        raise GateArgumentError("lease", "pass a timedelta of more than zero, or None")
    return _later(now, lease, "lease")


# -- giving back, taking away --------------------------------------------------------------------------------


def release(state: GateState, request_id: str, claim_token: str, *, now: datetime) -> Decided[ReleaseResult]:
    """Give a claimed request back.

    Source: semantics G2.
    """
    now = aware(now, "now")
    known = state.get(request_id)
    if known is None:
        return nothing(ReleaseRefused("missing"))
    if known.status is not GateStatus.CLAIMED or known.claim_token != claim_token:
        return nothing(ReleaseRefused("not-owner"))
    return Decided(tuple(_given_back(known, now)), ReleaseOk())


def _given_back(known: RequestState, now: datetime) -> Iterator[GateEvent]:
    assert known.router_id is not None
    yield CallbackReleased(known.request.request_id, known.router_id)
    if known.due(now):
        yield expiry(known, now)


def release_claim(
    state: GateState, request_id: str, *, now: datetime, operator: str, reason: str
) -> Decided[ReleaseResult]:
    """Take a claim from whoever holds it; an operator's name and reason are recorded (G11).

    Refused with ``not-owner`` if nobody holds one.

    Raises:
        GateArgumentError: an empty name or reason. Not retryable.
    """
    now = aware(now, "now")
    name, why = plain_text(operator, "operator"), plain_text(reason, "reason", 1_000)
    known = state.get(request_id)
    if known is None:
        return nothing(ReleaseRefused("missing"))
    if known.status is not GateStatus.CLAIMED or known.router_id is None:
        return nothing(ReleaseRefused("not-owner"))
    told = CallbackRejected(request_id, known.router_id, f"released by operator {name}: {why}")
    return Decided((told, *_given_back(known, now)), ReleaseOk())


def supersede(state: GateState, request_id: str, superseded_by: str, *, now: datetime) -> Decided[SupersedeResult]:
    """End an open request because something newer took its place.

    Raises:
        GateArgumentError: an empty successor. Not retryable.

    Source: semantics G2, G4.
    """
    now = aware(now, "now")
    successor = plain_text(superseded_by, "superseded_by", 2_000)
    known = state.get(request_id)
    if known is None:
        return nothing(SupersedeRefused("missing"))
    if known.due(now):
        return Decided((expiry(known, now),), SupersedeRefused("expired"))
    if not known.live:
        kind = cast("Literal['answered', 'superseded', 'expired']", known.status.value)
        return nothing(SupersedeRefused(kind))
    return Decided((CallbackSuperseded(request_id, successor),), SupersedeOk())


def expire(state: GateState, *, now: datetime) -> Decided[ExpireOk]:
    """Record every expiry that is due. Nobody needs to: whoever acts after a deadline does (G7)."""
    now = aware(now, "now")
    due = [each for each in state.requests.values() if each.due(now)]
    events = tuple(expiry(each, now) for each in due)
    return Decided(events, ExpireOk(tuple(event.request_id for event in events)))


# -- looking -------------------------------------------------------------------------------------------------


def list_pending(state: GateState, *, now: datetime) -> tuple[GateView, ...]:
    """The requests that a router could claim now, oldest first; without tokens (G12)."""
    now = aware(now, "now")
    return tuple(GateView.of(each, now) for each in state.requests.values() if each.claimable(now))


def view(state: GateState, request_id: str, *, now: datetime) -> GateView | None:
    """One request as it may be shown, or None; without tokens (G12)."""
    now = aware(now, "now")
    known = state.get(request_id)
    return None if known is None else GateView.of(known, now)
