"""The state of gates: a pure fold of their events. It knows no time, and nothing is hidden beside it.

Source: semantics G3, G7, G11, G12.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, cast

from corrobo_core.gates.definition import GateRequest
from corrobo_core.gates.errors import GateHistoryError
from corrobo_core.gates.events import (
    CallbackClaimed,
    CallbackClaimLeased,
    CallbackDeadlineSet,
    CallbackExpired,
    CallbackRejected,
    CallbackReleased,
    CallbackRequested,
    CallbackSubmitted,
    CallbackSuperseded,
    GateEvent,
)
from corrobo_core.gates.jsontext import canonical, timestamp
from corrobo_core.gates.schemas import agrees
from corrobo_core.records import JSON

__all__ = ["Answer", "GateState", "GateStatus", "GateView", "RequestState", "condense", "fold"]


class GateStatus(StrEnum):
    """Where a request stands."""

    PENDING = "pending"
    CLAIMED = "claimed"
    ANSWERED = "answered"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"


LIVE = frozenset({GateStatus.PENDING, GateStatus.CLAIMED})


@dataclass(frozen=True)
class Answer:
    """A structured answer, and who brought it.

    Attributes:
        router_id: as the application named it; the library authenticates nobody.
        response_json: canonical JSON text.
    """

    router_id: str
    response_json: str = field(repr=False)

    @property
    def response(self) -> JSON:
        """A copy of the answer."""
        return cast("JSON", json.loads(self.response_json))


@dataclass(frozen=True)
class RequestState:
    """What the events say about one request. It holds the claim's token: show a `GateView` instead.

    Attributes:
        request: the question.
        status: by the events alone.
        router_id: who holds the claim, or held it when the question was answered or expired.
        claim_token: of that claim.
        lease_until: from when on another router may take the claim over; None: only by a release.
        deadline: when it expires; None: never.
        answer: the one that decides.
        late: answers that came after the expiry, and decide nothing.
        superseded_by: id of the newer request.
        expired_at: when the expiry was noticed.
        subject_json: the approval's subject, canonical JSON.
        approval_json: the approval record, canonical JSON.
    """

    request: GateRequest
    status: GateStatus = GateStatus.PENDING
    router_id: str | None = None
    claim_token: str | None = field(default=None, repr=False)
    lease_until: datetime | None = None
    deadline: datetime | None = None
    answer: Answer | None = None
    late: tuple[Answer, ...] = ()
    superseded_by: str | None = None
    expired_at: datetime | None = None
    subject_json: str | None = field(default=None, repr=False)
    approval_json: str | None = field(default=None, repr=False)

    @property
    def live(self) -> bool:
        """It can still be answered, as far as the events say."""
        return self.status in LIVE

    def due(self, now: datetime) -> bool:
        """Its deadline has passed, and nobody has recorded it yet (G7)."""
        return self.live and self.deadline is not None and now >= self.deadline

    def claimable(self, now: datetime) -> bool:
        """A router could claim it now (G11)."""
        lapsed = self.lease_until is not None and now >= self.lease_until
        return not self.due(now) and (self.status is GateStatus.PENDING or (self.live and lapsed))

    def owned_by(self, router_id: str, claim_token: str) -> bool:
        """The claim, if there is or was one, is this router's."""
        return self.claim_token is not None and (self.router_id, self.claim_token) == (router_id, claim_token)


@dataclass(frozen=True)
class GateView:
    """A request as anybody may see it: never with a claim token (G12).

    Attributes:
        request: the question.
        status: by the store's clock: ``expired`` from the deadline on.
        router_id: who holds the claim, or brought the answer.
        lease_until: until when nobody else may take the claim over.
        deadline: when it expires.
        answer: the one that decides, or None.
        late: answers that came after the expiry.
        superseded_by: id of the newer request, or None.
        approval: the approval record, or None.
    """

    request: GateRequest
    status: GateStatus
    router_id: str | None
    lease_until: datetime | None
    deadline: datetime | None
    answer: Answer | None
    late: tuple[Answer, ...]
    superseded_by: str | None
    approval: JSON = field(default=None, repr=False)

    @property
    def request_id(self) -> str:
        """Of the question."""
        return self.request.request_id

    @classmethod
    def of(cls, state: RequestState, now: datetime) -> GateView:
        """What may be shown of a request at a time of the store's clock."""
        return cls(
            state.request,
            GateStatus.EXPIRED if state.due(now) else state.status,
            state.router_id,
            state.lease_until,
            state.deadline,
            state.answer,
            state.late,
            state.superseded_by,
            json.loads(state.approval_json) if state.approval_json else None,
        )


@dataclass(frozen=True)
class GateState:
    """All requests of a stream, in the order in which they were first asked. Made by `fold`."""

    requests: Mapping[str, RequestState] = field(default_factory=lambda: MappingProxyType({}))

    def get(self, request_id: str) -> RequestState | None:
        """One request, or None."""
        return self.requests.get(request_id)

    def live_of(self, gate_id: str) -> Iterator[RequestState]:
        """The requests of a gate that can still be answered, as far as the events say."""
        return (state for state in self.requests.values() if state.live and state.request.gate_id == gate_id)

    def to_json(self) -> str:
        """Canonical text of everything the state holds, claim tokens too: equal states have equal text."""
        return canonical([_dump(state) for state in self.requests.values()], "state", 1 << 40)


EMPTY = GateState()


def fold(
    events: Iterable[GateEvent], start: GateState = EMPTY, where: str = "history", position: int = 0
) -> GateState:
    """The state after some events. Pure; ``start`` stays as it is.

    Args:
        events: in their order.
        start: the state before them.
        where: names the history in errors.
        position: how many events made ``start``, for errors.

    Raises:
        GateHistoryError: an event does not fit the state. Not retryable.

    Source: semantics G3.
    """
    requests = dict(start.requests)
    for event in events:
        position += 1
        try:
            after = _after(requests.get(event.request_id), event)
        except _DoesNotFit as error:
            raise GateHistoryError(where, position, f"{event.kind} {error}") from None
        requests[event.request_id] = after
    return GateState(MappingProxyType(requests))


# -- what each event needs, and what it makes of a request ---------------------------------------------------


class _DoesNotFit(Exception):
    """An event that the state does not allow."""


def _after(before: RequestState | None, event: GateEvent) -> RequestState:
    if isinstance(event, CallbackRequested):
        return _requested(before, event)
    if before is None:
        raise _DoesNotFit("names a request that was never asked")
    return _STEPS[type(event)](before, event)


def _need(allowed: bool, problem: str) -> None:
    if not allowed:
        raise _DoesNotFit(problem)


def _requested(before: RequestState | None, event: CallbackRequested) -> RequestState:
    _need(
        before is None or before.status in (GateStatus.SUPERSEDED, GateStatus.EXPIRED),
        "repeats a request that is open or answered",
    )
    subject = event.subject_json or (before.subject_json if before else None)
    return RequestState(event.request, subject_json=subject)


def _claimed(before: RequestState, event: CallbackClaimed) -> RequestState:
    _need(before.status is GateStatus.PENDING, "claims a request that is not pending")
    return replace(
        before,
        status=GateStatus.CLAIMED,
        router_id=event.router_id,
        claim_token=event.claim_token,
        lease_until=None,
    )


def _leased(before: RequestState, event: CallbackClaimLeased) -> RequestState:
    _need_claim_of(before, event.router_id)
    _need(before.lease_until is None, "gives a claim a second lease")
    return replace(before, lease_until=event.lease_until)


def _need_claim_of(before: RequestState, router_id: str) -> None:
    claimed = before.status is GateStatus.CLAIMED
    _need(claimed and before.router_id == router_id, "is of a router that does not hold the claim")


def _released(before: RequestState, event: CallbackReleased) -> RequestState:
    _need_claim_of(before, event.router_id)
    return _unclaimed(before, GateStatus.PENDING)


def _unclaimed(before: RequestState, status: GateStatus) -> RequestState:
    return replace(before, status=status, router_id=None, claim_token=None, lease_until=None)


def _rejected(before: RequestState, event: CallbackRejected) -> RequestState:
    _need_claim_of(before, event.router_id)
    return before


def _submitted(before: RequestState, event: CallbackSubmitted) -> RequestState:
    holder = before.status in (GateStatus.CLAIMED, GateStatus.EXPIRED) and before.router_id == event.router_id
    _need(holder, "is of a router that does not hold the claim")
    _need(before.request.digest == event.request_digest, "names another digest than the request has")
    _need(agrees(event.response, before.request.response_schema), "holds no answer of the requested form")
    answer = Answer(event.router_id, event.response_json)
    if before.status is GateStatus.EXPIRED:
        _need(event.approval_json is None, "records an approval after the expiry")
        return replace(before, late=(*before.late, answer))
    _need(event.approval_json is None or before.subject_json is not None, "records an approval without a subject")
    return replace(
        before, status=GateStatus.ANSWERED, answer=answer, lease_until=None, approval_json=event.approval_json
    )


def _superseded(before: RequestState, event: CallbackSuperseded) -> RequestState:
    _need(before.live, "supersedes a request that is not open")
    return replace(_unclaimed(before, GateStatus.SUPERSEDED), superseded_by=event.superseded_by)


def _deadline_set(before: RequestState, event: CallbackDeadlineSet) -> RequestState:
    _need(before.live, "is for a request that is not open")
    _need(before.deadline is None, "changes a deadline")
    return replace(before, deadline=event.deadline)


def _expired(before: RequestState, event: CallbackExpired) -> RequestState:
    _need(before.live, "is for a request that is not open")
    _need(before.deadline is not None and event.expired_at >= before.deadline, "comes before the deadline")
    return replace(before, status=GateStatus.EXPIRED, expired_at=event.expired_at, lease_until=None)


_STEPS: Mapping[type[Any], Callable[[RequestState, Any], RequestState]] = {
    CallbackClaimed: _claimed,
    CallbackReleased: _released,
    CallbackSubmitted: _submitted,
    CallbackRejected: _rejected,
    CallbackSuperseded: _superseded,
    CallbackDeadlineSet: _deadline_set,
    CallbackClaimLeased: _leased,
    CallbackExpired: _expired,
}

# -- written down --------------------------------------------------------------------------------------------


def _dump(state: RequestState) -> dict[str, JSON]:
    return {
        "request": state.request.to_wire(),
        "status": state.status.value,
        "routerId": state.router_id,
        "claimToken": state.claim_token,
        "leaseUntil": _time(state.lease_until),
        "deadline": _time(state.deadline),
        "answer": _answer(state.answer),
        "late": [_answer(answer) for answer in state.late],
        "supersededBy": state.superseded_by,
        "expiredAt": _time(state.expired_at),
        "subject": state.subject_json,
        "approval": state.approval_json,
    }


def _time(time: datetime | None) -> str | None:
    return None if time is None else timestamp(time)


def _answer(answer: Answer | None) -> JSON:
    return None if answer is None else {"routerId": answer.router_id, "response": answer.response}


def condense(state: GateState) -> tuple[GateEvent, ...]:
    """The shortest history that folds to the same state: what to carry over when a log must not grow.

    Claims that were given up, rejections and earlier askings are left out.
    """
    return tuple(event for request in state.requests.values() for event in _shortest(request))


def _shortest(state: RequestState) -> Iterator[GateEvent]:
    request, router_id = state.request, state.router_id
    request_id = request.request_id
    yield CallbackRequested(request, state.subject_json)
    if state.deadline is not None:
        yield CallbackDeadlineSet(request_id, state.deadline)
    if router_id is not None and state.claim_token is not None:
        yield CallbackClaimed(request_id, router_id, state.claim_token)
        if state.lease_until is not None:
            yield CallbackClaimLeased(request_id, router_id, state.lease_until)
    if state.superseded_by is not None:
        yield CallbackSuperseded(request_id, state.superseded_by)
    if state.expired_at is not None:
        yield CallbackExpired(request_id, state.expired_at)
    for answer in (*((state.answer,) if state.answer else ()), *state.late):
        yield CallbackSubmitted(
            request_id, request.digest, answer.router_id, answer.response_json, state.approval_json
        )
