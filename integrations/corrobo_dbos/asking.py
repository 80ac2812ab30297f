"""A question in a workflow: what is asked of the ledger and of DBOS, and in which order.

Two kinds of generators. What one DBOS step does with the ledger asks the ledger's commands; what the workflow does
asks for steps and messages. Sync and async workflows drive the same ones, so the step ids and names are the same.

Source: semantics G4, G5, G7.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from corrobo_core import Backoff
from corrobo_core.gates import Answer, ApprovalSubject, GateRequest, GateStatus, GateView, protocol
from corrobo_core.gates.calls import Calls
from corrobo_core.gates.programs import Program, Programs
from corrobo_dbos.engine import Receive
from corrobo_dbos.failures import CheckpointError, GateExpiredError, GateSupersededError

__all__ = ["LOOK", "POST", "Step", "Until", "known_or_posted", "topic_of", "until_answered"]

POST, LOOK = "corrobo.gate.post", "corrobo.gate.look"  # names of steps: compatibility data
VERSION = 1
_SHORTEST = timedelta(milliseconds=50)


@dataclass(frozen=True, slots=True)
class Step:
    """Run a step. The reply is what it returned, now or before a restart.

    Args:
        name: of the step.
        work: what to ask the ledger in it.
    """

    name: str
    work: Callable[[], Program[dict[str, Any]]]


Until: TypeAlias = Generator[Step | Receive, Any, Answer]


def topic_of(request_id: str) -> str:
    """The topic on which the question's workflow is woken."""
    return "corrobo-gate/" + request_id.rpartition("#")[2]


# -- in one step ---------------------------------------------------------------------------------------------


def known_or_posted(
    programs: Programs,
    calls: Calls,
    request: GateRequest,
    subject: ApprovalSubject | None,
    deadline: datetime | timedelta | None,
) -> Program[dict[str, Any]]:
    """Look at a question, and ask it if its stream does not have it: the first time, or in a fork.

    Args:
        programs: of the workflow's stream.
        calls: of the same.
        request: the question.
        subject: of an approval.
        deadline: for the first time only; what was stored stays.
    """
    state, now = yield from programs.look(request.gate_id)
    view = protocol.view(state, request.request_id, now=now)
    if view is None and isinstance(deadline, datetime) and deadline <= now:
        return _seen(request.request_id, GateStatus.EXPIRED, deadline, now)
    if view is None:
        yield from programs.change(*calls.post(request, subject, deadline, False))
        state, now = yield from programs.look(request.gate_id)
        view = protocol.view(state, request.request_id, now=now)
    assert view is not None
    return {**_seen(view.request_id, view.status, view.deadline, now), **_answered(view)}


def _seen(request_id: str, status: GateStatus, deadline: datetime | None, now: datetime) -> dict[str, Any]:
    return {
        "corrobo": VERSION,
        "gate": request_id,
        "status": status.value,
        "deadline": None if deadline is None else deadline.isoformat(),
        "now": now.isoformat(),
    }


def _answered(view: GateView) -> dict[str, Any]:
    if view.answer is None:
        return {"superseded_by": view.superseded_by}
    return {"router": view.answer.router_id, "response": view.answer.response_json}


# -- in the workflow -----------------------------------------------------------------------------------------


def until_answered(
    request: GateRequest,
    deadline: datetime | timedelta | None,
    look_every: Backoff,
    look: Callable[[datetime | timedelta | None], Program[dict[str, Any]]],
) -> Until:
    """Ask, wait for a wake-up, look, until there is an answer: ids are one for `POST`, then three for each wait.

    Args:
        request: the question.
        deadline: when it expires, or how long after it is first asked.
        look_every: how long to wait for a wake-up before looking all the same.
        look: `known_or_posted`, with a deadline.

    Raises:
        GateExpiredError, GateSupersededError: there will be no answer.
        CheckpointError: the workflow's history is about another question.
    """
    seen = yield Step(POST, lambda: look(deadline))
    looks = 0
    while True:
        status, until, now = _read(seen, request.request_id)
        if status is GateStatus.ANSWERED:
            return Answer(seen["router"], seen["response"])
        if status is GateStatus.EXPIRED:
            raise GateExpiredError(request.request_id, f"nobody answered before {until}")
        if status is GateStatus.SUPERSEDED:
            raise GateSupersededError(request.request_id, f"{seen['superseded_by']!r} took its place")
        wait = look_every.delay(looks)
        if until is not None:
            wait = min(wait, until - now)
        yield Receive(topic_of(request.request_id), max(wait, _SHORTEST).total_seconds())
        seen = yield Step(LOOK, lambda until=until: look(until))  # type: ignore[misc]
        looks += 1


def _read(seen: object, request_id: str) -> tuple[GateStatus, datetime | None, datetime]:
    if not isinstance(seen, dict) or seen.get("corrobo") != VERSION or "gate" not in seen:
        raise CheckpointError(POST, request_id, "its checkpoint was not made by a gate of this release")
    if seen["gate"] != request_id:
        raise CheckpointError(
            POST, request_id, f"its checkpoint is about {seen['gate']!r}; the workflow is not deterministic"
        )
    until = seen["deadline"]
    return (
        GateStatus(seen["status"]),
        None if until is None else datetime.fromisoformat(until),
        datetime.fromisoformat(seen["now"]),
    )
