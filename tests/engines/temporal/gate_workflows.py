"""Workflows with gates, run in the default sandbox."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from temporalio import activity, workflow

from corrobo_temporal import CallbackGates, GateUnansweredError, WorkflowEffects

with workflow.unsafe.imports_passed_through():
    from tests.engines.temporal.questions import release


@dataclass
class Ask:
    """What `Release` asks, one after the other. Times are in seconds."""

    revisions: list[str]
    deadline: float | None = None  # one absolute deadline for all of them
    wait_first: float = 0.0  # before the first question
    rounds: int = 0  # how often it continues as new, when told to
    patience: float = 10.0
    linger: bool = False  # after the last question, until told to finish
    until: str | None = None
    carried: dict[str, Any] | None = None
    answers: list[Any] = field(default_factory=list)


@workflow.defn
class Release:
    """Asks for the approval of each revision, and returns the answers."""

    @workflow.init
    def __init__(self, order: Ask) -> None:
        self.gates = CallbackGates(order.carried, patience=timedelta(seconds=order.patience))
        self.next_run = self.finished = False

    @workflow.signal
    def finish(self) -> None:
        self.finished = True

    @workflow.signal
    def continue_as_new(self) -> None:
        self.next_run = True

    @workflow.run
    async def run(self, order: Ask) -> list[Any]:
        if order.wait_first:
            await workflow.sleep(order.wait_first)
        if order.until is None and order.deadline is not None:
            order.until = (workflow.now() + timedelta(seconds=order.deadline)).isoformat()
        until = None if order.until is None else datetime.fromisoformat(order.until)
        while order.revisions:
            definition = release(order.revisions[0])
            if order.rounds:
                posted = self.gates.post(definition, deadline=until)
                await workflow.wait_condition(partial(self._done, posted.request_id))
                if self.next_run:
                    await self.gates.close()
                    order.rounds, order.carried = order.rounds - 1, self.gates.carry()
                    workflow.continue_as_new(order)
            try:
                answer = await self.gates.ask(definition, deadline=until)
                order.answers.append([answer.router_id, answer.response])
            except GateUnansweredError as error:
                order.answers.append(error.kind)
            order.revisions.pop(0)
        if order.linger:
            await workflow.wait_condition(lambda: self.finished)
        await self.gates.close()
        return order.answers

    def _done(self, request_id: str) -> bool:
        shown = self.gates.show(request_id)
        return self.next_run or (shown is not None and shown.answer is not None)


@activity.defn(name="send")
async def send_stub(reference: str) -> str:
    """What the workflow knows of the effect, which each test scripts anew."""
    raise NotImplementedError


@dataclass
class Send:
    """Effects that may need people. Times are in seconds."""

    activities: str
    decisions: str
    references: list[str]
    look_every: float = 60.0
    answer_within: float | None = None
    decisions_timeout: float = 20.0
    approve_last: str | None = None  # a revision to ask about, once they are sent
    approve_then: str | None = None  # another one, once that is answered


@workflow.defn
class SendAll:
    """Runs the effects side by side."""

    @workflow.init
    def __init__(self, order: Send) -> None:
        self.gates = CallbackGates()
        within = order.answer_within
        self.effects = WorkflowEffects(
            schedule_to_close_timeout=timedelta(seconds=60),
            task_queue=order.activities,
            gates=self.gates,
            decisions_task_queue=order.decisions,
            decisions_timeout=timedelta(seconds=order.decisions_timeout),
            look_every=timedelta(seconds=order.look_every),
            answer_within=None if within is None else timedelta(seconds=within),
        )

    @workflow.run
    async def run(self, order: Send) -> list[str]:
        sent = await asyncio.gather(*(self.effects.run(send_stub, each) for each in order.references))
        for revision in (order.approve_last, order.approve_then):
            if revision is not None:
                await self.gates.ask(release(revision))
        await self.gates.close()
        return list(sent)


@dataclass
class Remind:
    """A question with a warning before it expires. Times are in seconds."""

    revision: str
    deadline: float
    warn_after: float


@workflow.defn
class Reminded:
    """Asks, and has somebody reminded if there is no answer in time."""

    @workflow.init
    def __init__(self, order: Remind) -> None:
        self.gates = CallbackGates()

    @workflow.run
    async def run(self, order: Remind) -> Any:
        deadline = timedelta(seconds=order.deadline)
        question = asyncio.create_task(self.gates.ask(release(order.revision), deadline=deadline))
        try:
            await workflow.wait_condition(question.done, timeout=timedelta(seconds=order.warn_after))
        except TimeoutError:
            await workflow.execute_activity("remind", order.revision, start_to_close_timeout=timedelta(seconds=20))
        try:
            answered: Any = (await question).response
        except GateUnansweredError as error:
            answered = error.kind
        await self.gates.close()
        return answered


GATED = [Release, SendAll, Reminded]
