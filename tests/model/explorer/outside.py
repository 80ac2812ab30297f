"""The outside system, as facts: which requests were sent to it, and which of them can have had their effect.

When a request lands is decided by the first read that sees it: until then it may have landed or not, which covers
every moment up to its last one.
"""

from __future__ import annotations

from typing import NamedTuple

PENDING, LANDED, GONE = "can land", "has landed", "never lands"


class Request(NamedTuple):
    """One request.

    Attributes:
        state: it can land, or has perhaps landed unseen; a read has seen it; or it never will.
        started: when its attempt was reserved; 0 once every read sees it.
        declared: until when it may land, as its contract says.
        until: until when it may really land; later than ``declared`` in a dishonest world only.
        landed: when it was first seen; 0 again once every read sees it.
    """

    state: str
    started: int = 0
    declared: int = 0
    until: int = 0
    landed: int = 0


NEVER = Request(GONE)

Requests = tuple[Request, ...]


def effects(requests: Requests) -> int:
    """How many effects are certainly there."""
    return sum(request.state == LANDED for request in requests)


def possible(requests: Requests) -> int:
    """How many effects there can be."""
    return sum(request.state != GONE for request in requests)


def pending(requests: Requests, now: int) -> bool:
    """Something may still land."""
    return any(request.state == PENDING and now <= request.until for request in requests)


def replaced(requests: Requests, index: int, request: Request) -> Requests:
    """With one of them replaced."""
    return (*requests[:index], request, *requests[index + 1 :])


def lands(requests: Requests, index: int, now: int) -> Requests:
    """One more effect is there for certain."""
    return replaced(requests, index, Request(LANDED, requests[index].started, landed=now))


def later(requests: Requests, now: int, lag: int) -> Requests:
    """The same a moment later: what landed long ago is seen by every read."""
    return tuple([Request(LANDED) if r.state == LANDED and r.landed < now - lag else r for r in requests])


def absent(requests: Requests, now: int) -> Requests:
    """The same once somebody has seen that nothing is there: what can land no more never will."""
    return tuple([NEVER if r.state == PENDING and r.until < now else r for r in requests])


def reads(requests: Requests, now: int, lag: int) -> list[tuple[int, Requests]]:
    """What a read that is at most ``lag`` seconds stale can find, with what is then certain about the requests."""
    views: list[tuple[int, Requests]] = [(0, ())]
    for request in requests:
        ways = _ways(request, now, lag)
        views = [(count + seen, (*before, after)) for count, before in views for seen, after in ways]
    return views


def _ways(request: Request, now: int, lag: int) -> list[tuple[int, Request]]:
    """Whether a read sees one request, and what is certain about it then."""
    if request.state == GONE:
        return [(0, request)]
    if request.state == LANDED:
        return [(1, request), (0, request)] if now - lag < request.landed else [(1, request)]
    unseen = request if now - lag <= request.until else NEVER
    return [(0, unseen), (1, Request(LANDED, request.started, landed=min(now, request.until)))]
