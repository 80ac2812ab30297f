"""Workflows of these tests, run in the default sandbox."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow

from corrobo_core.gates import GateDefinition, create_gate
from corrobo_temporal import CallbackGates, WorkflowEffects

with workflow.unsafe.imports_passed_through():
    from examples.http_ledger import Credit

A_MINUTE = timedelta(minutes=1)


@activity.defn(name="letter")
async def letter(reference: str, body: str) -> Credit:
    """What a workflow needs to know of the effect."""
    raise NotImplementedError


@dataclass
class Letters:
    """How many letters of what size, and where to; naive: by plain activity calls."""

    task_queue: str
    reference: str
    count: int = 1
    size: int = 0
    body: str = "x"
    naive: bool = False


@workflow.defn
class SendLetters:
    """Sends all at once."""

    @workflow.init
    def __init__(self, letters: Letters) -> None:
        self.effects = WorkflowEffects(schedule_to_close_timeout=A_MINUTE, task_queue=letters.task_queue)

    @workflow.run
    async def run(self, letters: Letters) -> list[str]:
        body = letters.body.ljust(letters.size, "x")
        sent = await asyncio.gather(
            *(self.send(letters, f"{letters.reference} {number}", body) for number in range(letters.count))
        )
        return [credit.reference for credit in sent]

    async def send(self, letters: Letters, reference: str, body: str) -> Credit:
        if not letters.naive:
            return await self.effects.run(letter, reference, body)
        return await workflow.execute_activity(
            letter, args=[reference, body], task_queue=letters.task_queue, start_to_close_timeout=A_MINUTE
        )


def long_question(number: int, size: int) -> GateDefinition:
    """A question with much to read."""
    schema: dict[str, Any] = {"type": "boolean"}
    return GateDefinition("reports/long", 1, "Is this right?", schema, {"number": number, "text": "x" * size})


@dataclass
class Questions:
    """How many questions of what size are asked in the first run, one after the other."""

    count: int
    size: int
    carried: dict[str, Any] | None = None


@workflow.defn
class AskAndGoOn:
    """Asks, continues as new, and tells which of its questions the next run still knows."""

    @workflow.init
    def __init__(self, questions: Questions) -> None:
        self.gates = CallbackGates(questions.carried)

    @workflow.run
    async def run(self, questions: Questions) -> list[int]:
        if questions.carried is None:
            for number in range(questions.count):
                await self.gates.ask(long_question(number, questions.size))
            await self.gates.close()
            workflow.continue_as_new(Questions(questions.count, questions.size, self.gates.carry()))
        asked = [
            self.gates.show(create_gate(long_question(n, questions.size)).request_id)
            for n in range(questions.count)
        ]
        return [number for number, view in enumerate(asked) if view is not None and view.answer is not None]
