"""How messages reach the gates of a workflow undecoded, and how events travel from run to run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RawValue

from corrobo_core import CorroboError
from corrobo_core.gates import (
    CallbackRequested,
    CallbackSubmitted,
    GateEvent,
    event_from_wire,
    event_to_wire,
    parse_json,
)

__all__ = ["carried", "decoded", "raw", "raw_async", "restored"]

R = TypeVar("R")

_MESSAGE_BYTES = 4 << 20


def decoded(given: tuple[Any, ...]) -> object:
    """The one JSON value of a message; strictly, as two readers of a duplicate key differ.

    Raises:
        ValueError: not one JSON value.
    """
    if len(given) != 1 or not isinstance(given[0], RawValue):
        raise ValueError("pass one argument, a JSON object")
    payload = given[0].payload
    try:
        if payload.metadata.get("encoding") == b"json/plain":
            return parse_json(payload.data, "message", _MESSAGE_BYTES)
        value: object = workflow.payload_converter().from_payload(payload)
    except CorroboError as error:
        raise ValueError(str(error)) from None
    except Exception:
        raise ValueError("the argument cannot be decoded") from None
    return value


def raw(handle: Callable[[tuple[Any, ...]], R]) -> Callable[..., R]:
    def handler(*given: Any) -> R:
        return handle(given)

    return _undecoded(handler)


def raw_async(handle: Callable[[str, tuple[Any, ...]], Any], kind: str) -> Callable[..., Any]:
    async def handler(*given: Any) -> Any:
        return await handle(kind, given)

    return _undecoded(handler)


def _undecoded(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Show the SDK one parameter, to be handed over as it came: what it cannot decode it would drop."""
    parameter = inspect.Parameter("message", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=RawValue)
    handler.__signature__ = inspect.Signature([parameter])  # type: ignore[attr-defined]  # inspect reads it
    handler.__annotations__ = {"message": RawValue}
    return handler


def carried(event: GateEvent) -> dict[str, Any]:
    beside = {}
    if isinstance(event, CallbackRequested):
        beside = {"subject": event.subject_json}
    elif isinstance(event, CallbackSubmitted):
        beside = {"approval": event.approval_json}
    return {"event": event_to_wire(event), **beside}


def restored(stored: Mapping[str, Any]) -> GateEvent:
    event = event_from_wire(stored["event"])
    if isinstance(event, CallbackRequested):
        return replace(event, subject_json=stored["subject"])
    if isinstance(event, CallbackSubmitted):
        return replace(event, approval_json=stored["approval"])
    return event
