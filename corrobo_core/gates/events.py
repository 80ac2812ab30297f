"""The events of gates: the wire's names and exact fields, so that histories pass between implementations.

One event is one JSON object, and one line of an exported history. An approval's subject and record travel beside
the event that they belong to, in the same stored row; they are no part of its wire form.

Source: semantics G3, A3; docs/reference/gate-wire-format.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, TypeAlias, cast

from corrobo_core.gates.definition import GateRequest
from corrobo_core.gates.errors import GateHistoryError, GateValueError
from corrobo_core.gates.jsontext import canonical, from_timestamp, is_digest, parse_json, timestamp
from corrobo_core.records import JSON

__all__ = [
    "CallbackClaimLeased",
    "CallbackClaimed",
    "CallbackDeadlineSet",
    "CallbackExpired",
    "CallbackRejected",
    "CallbackReleased",
    "CallbackRequested",
    "CallbackSubmitted",
    "CallbackSuperseded",
    "GateEvent",
    "event_from_json",
    "event_from_wire",
    "event_to_json",
    "event_to_wire",
    "from_lines",
    "to_lines",
]

_EVENT_BYTES = 4 << 20  # a request of the largest size, with room for its names


@dataclass(frozen=True)
class CallbackRequested:
    """A question was asked, or asked again after it was superseded or had expired.

    Attributes:
        request: the question.
        subject_json: beside it, the approval's subject as canonical JSON; None if it has none.
    """

    kind: ClassVar[str] = "callback-requested"
    request: GateRequest
    subject_json: str | None = field(default=None, repr=False)

    @property
    def request_id(self) -> str:
        """Of the question."""
        return self.request.request_id


@dataclass(frozen=True)
class CallbackClaimed:
    """A router took the question; the token is its proof."""

    kind: ClassVar[str] = "callback-claimed"
    request_id: str
    router_id: str
    claim_token: str = field(repr=False)


@dataclass(frozen=True)
class CallbackReleased:
    """A router gave the question back, or lost it: the question is pending again."""

    kind: ClassVar[str] = "callback-released"
    request_id: str
    router_id: str


@dataclass(frozen=True)
class CallbackSubmitted:
    """A router brought the answer. After the expiry: a late answer, which decides nothing (G7).

    Attributes:
        response_json: canonical JSON text.
        approval_json: beside it, the approval record as canonical JSON; None if the question has no subject.
    """

    kind: ClassVar[str] = "callback-submitted"
    request_id: str
    request_digest: str
    router_id: str
    response_json: str = field(repr=False)
    approval_json: str | None = field(default=None, repr=False)

    @property
    def response(self) -> JSON:
        """A copy of the answer."""
        return cast("JSON", json.loads(self.response_json))


@dataclass(frozen=True)
class CallbackRejected:
    """The claim's owner brought something that is no answer; or, just before a release, an operator's reason."""

    kind: ClassVar[str] = "callback-rejected"
    request_id: str
    router_id: str
    reason: str


@dataclass(frozen=True)
class CallbackSuperseded:
    """A newer question of the same gate took its place."""

    kind: ClassVar[str] = "callback-superseded"
    request_id: str
    superseded_by: str


@dataclass(frozen=True)
class CallbackDeadlineSet:
    """The question expires at this time of the store's clock (G7)."""

    kind: ClassVar[str] = "callback-deadline-set"
    request_id: str
    deadline: datetime


@dataclass(frozen=True)
class CallbackClaimLeased:
    """From this time of the store's clock on, another router may take the claim over (G11)."""

    kind: ClassVar[str] = "callback-claim-leased"
    request_id: str
    router_id: str
    lease_until: datetime


@dataclass(frozen=True)
class CallbackExpired:
    """The deadline had passed, and somebody noticed at this time of the store's clock."""

    kind: ClassVar[str] = "callback-expired"
    request_id: str
    expired_at: datetime


GateEvent: TypeAlias = (
    CallbackRequested
    | CallbackClaimed
    | CallbackReleased
    | CallbackSubmitted
    | CallbackRejected
    | CallbackSuperseded
    | CallbackDeadlineSet
    | CallbackClaimLeased
    | CallbackExpired
)

# -- the wire ------------------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("text is missing")
    return value


def _digest(value: Any) -> str:
    if not is_digest(value):
        raise ValueError("a digest is not 64 lowercase hex digits")
    return cast("str", value)


def _response(value: Any) -> str:
    return canonical(value, "response", _EVENT_BYTES)


_Codec: TypeAlias = tuple[str, Callable[[Any], Any], Callable[[Any], Any]]
_TEXT: tuple[Callable[[Any], Any], Callable[[Any], Any]] = (_text, lambda value: value)
_TIME: tuple[Callable[[Any], Any], Callable[[Any], Any]] = (from_timestamp, timestamp)
_ID: dict[str, _Codec] = {"requestId": ("request_id", *_TEXT)}
_ROUTER: dict[str, _Codec] = {"routerId": ("router_id", *_TEXT)}

# For each kind: the class, and for each field of the wire its attribute, how it is read, how it is written.
_EVENTS: tuple[tuple[type[Any], dict[str, _Codec]], ...] = (
    (CallbackRequested, {"request": ("request", GateRequest.from_wire, GateRequest.to_wire)}),
    (CallbackClaimed, {**_ID, **_ROUTER, "claimToken": ("claim_token", *_TEXT)}),
    (CallbackReleased, {**_ID, **_ROUTER}),
    (
        CallbackSubmitted,
        {
            **_ID,
            "requestDigest": ("request_digest", _digest, lambda value: value),
            **_ROUTER,
            "response": ("response_json", _response, json.loads),
        },
    ),
    (CallbackRejected, {**_ID, **_ROUTER, "reason": ("reason", *_TEXT)}),
    (CallbackSuperseded, {**_ID, "supersededBy": ("superseded_by", *_TEXT)}),
    (CallbackDeadlineSet, {**_ID, "deadline": ("deadline", *_TIME)}),
    (CallbackClaimLeased, {**_ID, **_ROUTER, "leaseUntil": ("lease_until", *_TIME)}),
    (CallbackExpired, {**_ID, "expiredAt": ("expired_at", *_TIME)}),
)
_WIRE = {cls.kind: (cls, fields) for cls, fields in _EVENTS}


def event_to_wire(event: GateEvent) -> dict[str, JSON]:
    """The event with the wire's names, ``kind`` first."""
    _, fields = _WIRE[event.kind]
    wire: dict[str, JSON] = {"kind": event.kind}
    for name, (attribute, _, write) in fields.items():
        wire[name] = write(getattr(event, attribute))
    return wire


def event_from_wire(wire: object) -> GateEvent:
    """Read back what `event_to_wire` wrote, or what another implementation did.

    Raises:
        ValueError: unknown kind, a missing, extra or malformed field. Not retryable.
    """
    if not isinstance(wire, Mapping):
        raise ValueError("it is no object")
    kind = wire.get("kind")
    known = _WIRE.get(kind) if isinstance(kind, str) else None
    if known is None:
        raise ValueError("it has an unknown kind")
    cls, fields = known
    if wire.keys() != {"kind", *fields}:
        raise ValueError(f"{kind} has missing or unknown fields")
    try:
        return cast("GateEvent", cls(**{attribute: read(wire[n]) for n, (attribute, read, _) in fields.items()}))
    except (ValueError, TypeError, GateValueError) as error:
        raise ValueError(f"{kind}: {error}") from None


def event_to_json(event: GateEvent) -> str:
    """The event's canonical JSON text, on one line."""
    return canonical(event_to_wire(event), "event", _EVENT_BYTES)


def event_from_json(text: str | bytes) -> GateEvent:
    """Read back one line.

    Raises:
        ValueError: not JSON, a duplicate key, or no event. Not retryable.
    """
    try:
        return event_from_wire(parse_json(text, "event", _EVENT_BYTES))
    except GateValueError as error:
        raise ValueError(str(error)) from None


def to_lines(events: Iterable[GateEvent]) -> str:
    """A history as JSON lines. It holds claim tokens: it is no view."""
    return "".join(event_to_json(event) + "\n" for event in events)


def from_lines(text: str, *, torn_end: bool = False) -> tuple[GateEvent, ...]:
    """The events of a history in JSON lines.

    Args:
        text: one event on each line.
        torn_end: leave out a last line that has no line end and does not read: its write was cut off.

    Raises:
        GateHistoryError: a line does not read; it names the line. Not retryable.
    """
    lines = text.split("\n")
    torn = lines.pop() if torn_end else ""
    events = [_line(number, line) for number, line in enumerate(lines, 1) if line or number < len(lines)]
    if torn:
        with suppress(ValueError):
            events.append(event_from_json(torn))
    return tuple(events)


def _line(number: int, line: str) -> GateEvent:
    try:
        return event_from_json(line)
    except ValueError as error:
        raise GateHistoryError("JSON lines", number, str(error)) from None
