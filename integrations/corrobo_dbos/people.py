"""An effect that may need people: pass after pass, with a question and a wait in between.

A generator, driven by sync and async steps alike. Each round takes the same step ids: one for the effect, and, if a
person must decide, one for `ASK` and two for the wake-up.

Source: semantics R2, A6; design "Gates on DBOS".
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from dbos import StepReservation

from corrobo_core import Backoff, Disposition, EffectResult
from corrobo_core.commands import Load, Loaded
from corrobo_core.gates import GateStatus, protocol
from corrobo_core.gates.calls import Calls
from corrobo_core.gates.effects import EFFECT_PLAN, effect_gate
from corrobo_core.gates.programs import Program, Programs
from corrobo_core.records import Operation, OperationKey
from corrobo_dbos.asking import VERSION, Step, topic_of
from corrobo_dbos.engine import Receive
from corrobo_dbos.failures import CheckpointError
from corrobo_dbos.gates import DbosGates, driven, driven_async

__all__ = ["ASK", "Pass", "People"]

R = TypeVar("R")

ASK = "corrobo.gate.ask"  # the name of a step: compatibility data
_PEOPLE = (Disposition.REVIEW, Disposition.INVESTIGATE)
_CALLS = Calls(EFFECT_PLAN)


@dataclass(frozen=True, slots=True)
class Pass:
    """Run the effect's step; the reply is its result.

    Args:
        asked: the question that was asked before; it is taken back once it is no longer open.
        token: of the episode that it is about.
    """

    asked: str | None = None
    token: str | None = None

    def ended_by(self, result: EffectResult[Any]) -> str | None:
        """The question that was asked, if it no longer waits after this pass."""
        waits = result.disposition in _PEOPLE and result.token == self.token
        return None if waits else self.asked


Rounds: TypeAlias = Generator[Pass | Step | Receive, Any, EffectResult[Any]]


def _rounds(look_every: Backoff, ask: Callable[[], Program[dict[str, Any]]]) -> Rounds:
    """What the workflow does until a pass ends with something that no person decides.

    Args:
        look_every: how long to wait for a wake-up before another pass, which sees decisions made elsewhere.
        ask: what to do with the ledger to ask.
    """
    before = Pass()
    looks = 0
    while True:
        result: EffectResult[Any] = yield before
        if result.disposition not in _PEOPLE or result.token is None:
            return result
        looks = looks + 1 if result.token == before.token else 0
        question = yield Step(ASK, ask)
        request_id = _read(question, result)
        before = Pass(request_id or before.asked, result.token)
        if request_id is not None or looks:  # the second time that nothing is open, do not hurry
            yield Receive(topic_of(request_id or result.token), look_every.delay(looks).total_seconds())


def _read(question: object, result: EffectResult[Any]) -> str | None:
    if not isinstance(question, dict) or question.get("corrobo") != VERSION or "gate" not in question:
        raise CheckpointError(ASK, result.operation_id, "its checkpoint was not made by a gate of this release")
    if question["id"] != result.operation_id:
        problem = f"its checkpoint asks about {question['id']!r}; the workflow is not deterministic"
        raise CheckpointError(ASK, result.operation_id, problem)
    found: str | None = question["gate"]
    return found


# -- in one step ---------------------------------------------------------------------------------------------


def _asked(programs: Programs, namespace: str, operation_id: str) -> Program[dict[str, Any]]:
    """Ask the question of the episode that is open and undecided, if there is one.

    Args:
        programs: of the workflow's stream.
        namespace: of the ledger.
        operation_id: the operation.
    """
    loaded: Loaded = yield from Load(OperationKey(namespace, operation_id, ""))
    operation, request_id = loaded.operation, None
    open_ = operation.episode if operation else None
    if operation is not None and open_ is not None and all(one.token != open_.token for one in loaded.decisions):
        request_id = yield from _open_question(programs, operation)
    return {"corrobo": VERSION, "gate": request_id, "id": operation_id}


def _open_question(programs: Programs, operation: Operation) -> Program[str]:
    number = 0
    while True:
        number += 1
        gate = effect_gate(operation, number)
        assert gate is not None
        state, now = yield from programs.look(gate.request.gate_id)
        known = protocol.view(state, gate.request.request_id, now=now)
        if known is not None and known.status is GateStatus.ANSWERED:
            continue  # by somebody who did not tell the review desk: that decides nothing, ask again
        if known is None or known.status in (GateStatus.SUPERSEDED, GateStatus.EXPIRED):
            yield from programs.change(*_CALLS.post(gate.request, gate.subject, None, True))
        return gate.request.request_id


def _closed(programs: Programs, request_id: str) -> Program[None]:
    yield from programs.change(*_CALLS.supersede(request_id, "decided"))


# -- driven ----------------------------------------------------------------------------------------------------


class People:
    """The people whom one call of an effect may need.

    Args:
        gates: where they are asked.
        workflow_id: names the stream.
        operation_id: of the effect.
    """

    def __init__(self, gates: DbosGates, workflow_id: str, operation_id: str) -> None:
        self.gates, self._operation_id = gates, operation_id
        self._programs = Programs(gates.ledger.namespace, workflow_id)

    def _ask(self) -> Program[dict[str, Any]]:
        return _asked(self._programs, self.gates.ledger.namespace, self._operation_id)

    def take_back(self, after: Pass, result: EffectResult[Any]) -> None:
        """In the effect's step: end a question that no longer waits, so that nobody is asked in vain."""
        if (request_id := after.ended_by(result)) is not None:
            self.gates.perform(lambda: _closed(self._programs, request_id))

    async def take_back_async(self, after: Pass, result: EffectResult[Any]) -> None:
        """`take_back`, on an event loop."""
        if (request_id := after.ended_by(result)) is not None:
            await self.gates.perform_async(lambda: _closed(self._programs, request_id))

    def waited_for(
        self, first: StepReservation, effect: Callable[[StepReservation, Pass], EffectResult[R]]
    ) -> EffectResult[R]:
        """Run the effect's step until no person is needed; ``first`` is its first step id."""

        def step(reserved: StepReservation, ask: Pass | Step) -> object:
            return effect(reserved, ask) if isinstance(ask, Pass) else self.gates.step(reserved, ask)

        return driven(_rounds(self.gates.look_every, self._ask), first, step)

    async def waited_for_async(
        self,
        first: StepReservation,
        effect: Callable[[StepReservation, Pass], Coroutine[Any, Any, EffectResult[R]]],
    ) -> EffectResult[R]:
        """`waited_for`, on the event loop that runs the workflow."""

        async def step(reserved: StepReservation, ask: Pass | Step) -> object:
            if isinstance(ask, Pass):
                return await effect(reserved, ask)
            return await self.gates.step_async(reserved, ask)

        return await driven_async(_rounds(self.gates.look_every, self._ask), first, step)
