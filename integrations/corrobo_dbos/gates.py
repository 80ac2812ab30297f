"""Questions to people from DBOS workflows: stored in the ledger, woken by messages.

Source: semantics section 9; design "Gates on DBOS".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Generator
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from dbos import StepReservation

from corrobo_core import Backoff, LedgerUnavailable, UsageError
from corrobo_core.commands import LedgerCommand
from corrobo_core.gates import (
    Answer,
    ApprovalSubject,
    GateDefinition,
    GateRequest,
    RunPlan,
    create_approval_gate,
    create_gate,
)
from corrobo_core.gates.calls import Calls
from corrobo_core.gates.effects import INVESTIGATION, REVIEW
from corrobo_core.gates.errors import GateArgumentError
from corrobo_core.gates.programs import Program, Programs
from corrobo_core.ledgers.ports import Ledger
from corrobo_dbos import engine
from corrobo_dbos.alone import Turn
from corrobo_dbos.asking import Step, Until, known_or_posted, until_answered
from corrobo_dbos.engine import Place

__all__ = ["DbosGates", "driven", "driven_async"]

R = TypeVar("R")
log = logging.getLogger("corrobo_dbos")

LOOK_EVERY = Backoff(timedelta(seconds=30), timedelta(minutes=10))
_LEDGER_GONE = Backoff(timedelta(seconds=1), timedelta(seconds=30))


class DbosGates:
    """Asks people from workflow code, and waits for their answers.

    A question is stored in the ledger, in a stream with the workflow's id as its name; a message only wakes the
    workflow to look there. A forked workflow has a stream of its own: what it still waits for, it asks again.

    Args:
        ledger: migrated; the application opens and closes it.
        plan: of the run, where approvals are bound to it.
        look_every: how long a workflow waits for a wake-up before it looks all the same, growing.

    Raises:
        UsageError: an argument is not usable. Not retryable.

    Source: semantics section 9.
    """

    def __init__(self, ledger: Ledger, *, plan: RunPlan | None = None, look_every: Backoff = LOOK_EVERY) -> None:
        if not isinstance(ledger, Ledger):
            raise UsageError("DbosGates", "takes a ledger first")
        if not isinstance(look_every, Backoff):
            raise UsageError("DbosGates", "look_every: must be a Backoff")
        self.ledger, self.plan, self.look_every = ledger, plan, look_every

    def ask(
        self,
        definition: GateDefinition,
        *,
        deadline: datetime | timedelta | None = None,
        subject: ApprovalSubject | None = None,
    ) -> Answer:
        """Ask, and wait until somebody has answered. Asked again in one workflow, it is the same question.

        Takes one step id to ask, and three for each time that it waits.

        Args:
            definition: the question.
            deadline: aware, or how long from now; fixed when it is first asked, whatever restarts. None: never.
            subject: what an approval is for; its answer is an action decision.

        Returns:
            Who brought the answer, and its ``response``.

        Raises:
            GateExpiredError: nobody answered in time. Not retryable: ask another question.
            GateSupersededError: this workflow asked a newer question of the gate. Not retryable.
            GateError: the question cannot be asked like this; nothing is stored. Not retryable.
            LedgerError: the ledger cannot be used; one that does not answer is waited for.
            UsageError: not called in workflow code, or on an event loop. Not retryable.

        Source: semantics G1, G4, G7.
        """
        request, workflow_id = self._checked(definition, deadline, subject)
        if engine.on_event_loop():
            raise UsageError("DbosGates.ask", "was called on an event loop, which it would block; use ask_async")
        program = self._program(request, workflow_id, deadline, subject)
        return driven(program, engine.reserve(), self.step)

    def ask_async(
        self,
        definition: GateDefinition,
        *,
        deadline: datetime | timedelta | None = None,
        subject: ApprovalSubject | None = None,
    ) -> Coroutine[None, None, Answer]:
        """`ask`, for async workflows. One at a time in a workflow: for more, start child workflows.

        Raises:
            UsageError: another question or effect of this workflow waits for people already; nothing is stored.
        """
        request, workflow_id = self._checked(definition, deadline, subject)
        if not engine.on_event_loop():
            raise UsageError("DbosGates.ask_async", "was called without an event loop; use ask")
        reserved = engine.reserve()
        turn = Turn("DbosGates.ask_async", workflow_id, reserved.step_id)
        return self._in_turn(turn, reserved, self._program(request, workflow_id, deadline, subject))

    async def _in_turn(self, turn: Turn, reserved: StepReservation, program: Until) -> Answer:
        with turn:
            return await driven_async(program, reserved, self.step_async)

    def _checked(
        self, definition: GateDefinition, deadline: object, subject: ApprovalSubject | None
    ) -> tuple[GateRequest, str]:
        where = engine.place()
        if where is not Place.WORKFLOW:
            raise UsageError("DbosGates.ask", f"was called {where.value}; call it from workflow code")
        if isinstance(deadline, datetime) and deadline.tzinfo is None:
            raise GateArgumentError("deadline", "pass a datetime with a time zone")
        if isinstance(deadline, timedelta) and deadline <= timedelta():
            raise GateArgumentError("deadline", "it has passed already; pass more than zero")
        if definition.gate_id in (REVIEW, INVESTIGATION):
            raise GateArgumentError("gate_id", f"{definition.gate_id!r} is what effects ask under; take another")
        request = create_gate(definition) if subject is None else create_approval_gate(definition, subject)
        return request, engine.workflow_id()

    def _program(
        self,
        request: GateRequest,
        workflow_id: str,
        deadline: datetime | timedelta | None,
        subject: ApprovalSubject | None,
    ) -> Until:
        programs, calls = Programs(self.ledger.namespace, workflow_id), Calls(self.plan)

        def look(until: datetime | timedelta | None) -> Program[dict[str, Any]]:
            return known_or_posted(programs, calls, request, subject, until)

        return until_answered(request, deadline, self.look_every, look)

    # -- steps -------------------------------------------------------------------------------------------------

    def step(self, reserved: StepReservation, ask: Step) -> object:
        """Run what a program asks as a reserved step."""
        return engine.run(reserved, ask.name, lambda: self.perform(ask.work))

    async def step_async(self, reserved: StepReservation, ask: Step) -> object:
        """`step`, on an event loop."""
        return await engine.run_async(reserved, ask.name, lambda: self.perform_async(ask.work))

    def perform(self, work: Callable[[], Program[R]]) -> R:
        """Do with the ledger what a program says, in a step; wait for a ledger that does not answer (C9)."""
        for seconds in _pauses():
            try:
                return _performed(self.ledger, work())
            except LedgerUnavailable as error:
                log.warning("a gate waits %.0f s for its ledger: %s", seconds, error)
                engine.sleep(seconds)
        raise AssertionError("pauses never end")

    async def perform_async(self, work: Callable[[], Program[R]]) -> R:
        """`perform`, on an event loop."""
        for seconds in _pauses():
            try:
                return await _performed_async(self.ledger, work())
            except LedgerUnavailable as error:
                log.warning("a gate waits %.0f s for its ledger: %s", seconds, error)
                await engine.sleep_async(seconds)
        raise AssertionError("pauses never end")


def _pauses() -> Generator[float]:
    step = 0
    while True:
        yield _LEDGER_GONE.delay(step).total_seconds()
        step += 1


def _performed(ledger: Ledger, program: Program[R]) -> R:
    reply: object = None
    try:
        while True:
            reply = ledger.perform(cast("LedgerCommand[Any]", program.send(reply)))
    except StopIteration as ended:
        return cast("R", ended.value)


async def _performed_async(ledger: Ledger, program: Program[R]) -> R:
    reply: object = None
    while True:
        try:  # around the send alone: StopIteration cannot pass through a coroutine
            command = cast("LedgerCommand[Any]", program.send(reply))
        except StopIteration as ended:
            return cast("R", ended.value)
        reply = await ledger.perform_async(command)


# -- the workflow's side ---------------------------------------------------------------------------------------


def driven(
    program: Generator[Any, Any, R],
    first: StepReservation,
    step: Callable[[StepReservation, Any], object],
) -> R:
    """Run a workflow's program: messages here, everything else as a step; ``first`` is for its first one."""
    reserved: StepReservation | None = first
    reply: object = None
    try:
        while True:
            ask = program.send(reply)
            if isinstance(ask, engine.Receive):
                engine.receive(ask.topic, ask.seconds)
                reply = None
            else:
                reply, reserved = step(reserved or engine.reserve(), ask), None
    except StopIteration as ended:
        return cast("R", ended.value)


async def driven_async(
    program: Generator[Any, Any, R],
    first: StepReservation,
    step: Callable[[StepReservation, Any], Coroutine[Any, Any, object]],
) -> R:
    """`driven`, on the event loop that runs the workflow."""
    reserved: StepReservation | None = first
    reply: object = None
    while True:
        try:
            ask = program.send(reply)
        except StopIteration as ended:
            return cast("R", ended.value)
        if isinstance(ask, engine.Receive):
            await engine.receive_async(ask.topic, ask.seconds)
            reply = None
        else:
            reply, reserved = await step(reserved or engine.reserve(), ask), None
