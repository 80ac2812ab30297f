"""What routers and posters are answered. Refusals are values, not exceptions (G2).

``ok`` tells success from refusal. Type checkers follow ``isinstance(claim, ClaimOk)`` and ``claim.ok is True``; not
all of them follow a bare ``if claim.ok``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from corrobo_core.gates.state import Answer, GateStatus

__all__ = [
    "ClaimOk",
    "ClaimRefused",
    "ClaimResult",
    "ExpireOk",
    "PostOk",
    "PostRefused",
    "PostResult",
    "ReleaseOk",
    "ReleaseRefused",
    "ReleaseResult",
    "SubmitOk",
    "SubmitRefused",
    "SubmitResult",
    "SupersedeOk",
    "SupersedeRefused",
    "SupersedeResult",
]


@dataclass(frozen=True)
class PostOk:
    """The request is known.

    Attributes:
        created: it was asked just now; False if nothing changed.
        status: where it stands.
        superseded: ids of the older requests of the gate that it took the place of.
    """

    request_id: str
    created: bool
    status: GateStatus
    superseded: tuple[str, ...] = ()
    ok: Literal[True] = True


@dataclass(frozen=True)
class PostRefused:
    """A newer question took its place, or its time is over; ``reopen=True`` asks it again (G4)."""

    request_id: str
    kind: Literal["superseded", "expired"]
    ok: Literal[False] = False


@dataclass(frozen=True)
class ClaimOk:
    """The claim is this router's.

    Attributes:
        claim_token: proves it; keep it to yourself.
        lease_until: from when on another router may take the claim over, by the store's clock; None: never.
    """

    claim_token: str = field(repr=False)
    lease_until: datetime | None = None
    ok: Literal[True] = True


@dataclass(frozen=True)
class ClaimRefused:
    """Nothing to claim. ``router_id`` holds the claim, or brought the answer, if somebody did."""

    kind: Literal["missing", "claimed", "answered", "superseded", "expired"]
    router_id: str | None = None
    ok: Literal[False] = False


@dataclass(frozen=True)
class SubmitOk:
    """The answer is recorded, and decides."""

    answer: Answer
    ok: Literal[True] = True


@dataclass(frozen=True)
class SubmitRefused:
    """The answer does not decide.

    Attributes:
        kind: why; ``stale``: superseded, or given for another digest.
        reason: one sentence; never quotes the answer.
        answer: the recorded one, if the request is answered (G8).
        same: whether the recorded answer equals this one: a double click; None if there is none.
        late: this answer is kept in the history all the same (G7).
    """

    kind: Literal["missing", "not-claimed", "not-owner", "stale", "invalid", "expired"]
    reason: str
    answer: Answer | None = None
    same: bool | None = None
    late: bool = False
    ok: Literal[False] = False


@dataclass(frozen=True)
class ReleaseOk:
    """The request can be claimed again."""

    ok: Literal[True] = True


@dataclass(frozen=True)
class ReleaseRefused:
    """There is no such request, or no such claim on it."""

    kind: Literal["missing", "not-owner"]
    ok: Literal[False] = False


@dataclass(frozen=True)
class SupersedeOk:
    """The request cannot be answered any more."""

    ok: Literal[True] = True


@dataclass(frozen=True)
class SupersedeRefused:
    """There was nothing to supersede; nothing changed."""

    kind: Literal["missing", "answered", "superseded", "expired"]
    ok: Literal[False] = False


@dataclass(frozen=True)
class ExpireOk:
    """The requests whose expiry was recorded now."""

    request_ids: tuple[str, ...]
    ok: Literal[True] = True


PostResult: TypeAlias = PostOk | PostRefused
ClaimResult: TypeAlias = ClaimOk | ClaimRefused
SubmitResult: TypeAlias = SubmitOk | SubmitRefused
ReleaseResult: TypeAlias = ReleaseOk | ReleaseRefused
SupersedeResult: TypeAlias = SupersedeOk | SupersedeRefused
