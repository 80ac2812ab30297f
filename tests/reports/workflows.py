"""Workflows of these tests, run in the default sandbox."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from temporalio import activity, workflow

from corrobo_temporal import WorkflowEffects

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
