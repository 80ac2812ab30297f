"""The programs of `tests.gates.test_property`, inside a workflow: by its own calls, by updates and by signals, from
workers with and without a cache, through continue-as-new. What comes out is what a client in memory says.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from temporalio.client import Client
from temporalio.worker import Replayer, Worker

from corrobo_core.gates import GateClient, GateRequest, condense, fold, from_lines, replay, to_lines
from corrobo_temporal import CorroboPlugin, TemporalGateClient
from corrobo_temporal.gate_wire import SIGNAL, Message
from tests.engines.temporal.exports import EXPORTED
from tests.engines.temporal.gate_programs import Begin, Played, posted
from tests.engines.temporal.gate_support import UNCACHED, Handle
from tests.gates.support import NO, YES, Clock
from tests.gates.test_property import REQUESTS, Step, claiming, posting, step, steps_in, submission

MINUTE = timedelta(milliseconds=40)  # the server's clock does not stand still


class Line(NamedTuple):
    """A step of a program, and whether a router's message goes as a signal."""

    act: Step
    signalled: bool = False


NO_CLOCK = Clock()  # it is the workflow that lets time pass
NEXT_RUN = step("next_run")
steps = steps_in(MINUTE, REQUESTS[:3]) | st.just(NEXT_RUN)
programs = st.lists(st.builds(Line, steps, st.booleans()), max_size=24)


# -- on the server ---------------------------------------------------------------------------------------------


TOLD = object()
"""The reply to what shows in the times that the workflow tells."""


class Signalled(NamedTuple):
    """Nobody is told what became of a signal."""

    request_id: str


class Performance(NamedTuple):
    """What a workflow did."""

    replies: list[Any]
    exported: dict[str, Any]


class InWorkflow:
    """A client whose calls a workflow takes, and a clock that is turned by waiting."""

    def __init__(self, client: Client, handle: Handle) -> None:
        self._client, self._handle, self.signalled = client, handle, False
        self._gates = TemporalGateClient(client, handle.id)

    async def post(self, request: GateRequest, *, deadline: timedelta | None, reopen: bool) -> Any:
        seconds = None if deadline is None else deadline.total_seconds()
        order = [request.to_wire(), seconds, reopen]
        return await self._handle.execute_update(Played.post, args=order)

    async def supersede(self, request_id: str, by: str) -> None:
        await self._handle.execute_update(Played.supersede, args=[request_id, by])

    async def expire(self) -> object:
        await self._handle.execute_update(Played.expire)
        return TOLD

    async def claim(self, request_id: str, router: str, *, claim_token: str, lease: timedelta | None) -> Any:
        message = Message("claim", request_id, router, claim_token, lease=lease)
        named: Any = {"claim_token": claim_token, "lease": lease}
        return await self._send(message, lambda: self._gates.claim(request_id, router, **named))

    async def submit(self, request_id: str, token: str, router: str, digest: str, answer: Any) -> Any:
        message = Message("submit", request_id, router, token, digest, answer)
        return await self._send(message, lambda: self._gates.submit(request_id, token, router, digest, answer))

    async def release(self, request_id: str, token: str) -> Any:
        message = Message("release", request_id, claim_token=token)
        return await self._send(message, lambda: self._gates.release(request_id, token))

    async def release_claim(self, request_id: str, **named: Any) -> Any:
        message = Message("release-claim", request_id, **named)
        return await self._send(message, lambda: self._gates.release_claim(request_id, **named))

    async def _send(self, message: Message, call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        if not self.signalled:
            return await call()
        await self._handle.signal(SIGNAL, {"kind": message.kind, **message.to_wire()})
        return Signalled(message.request_id)

    async def turn(self, by: timedelta) -> object:
        await asyncio.sleep(by.total_seconds())
        return TOLD

    async def next_run(self) -> None:
        run_id = before = (await self._handle.describe()).run_id
        await self._handle.signal(Played.continue_as_new)
        while run_id == before:
            await asyncio.sleep(0.01)
            run_id = (await self._handle.describe()).run_id


class Stage:
    """Workers with and without a cache."""

    def __init__(self, client: Client) -> None:
        self._client, self.queues = client, {cached: f"played-{uuid.uuid4()}" for cached in (True, False)}

    def worker(self, cached: bool) -> Worker:
        options = {} if cached else UNCACHED
        return Worker(self._client, task_queue=self.queues[cached], workflows=[Played], **options)

    async def play(self, program: list[Line], *, cached: bool = True, forgetful: bool = False) -> Performance:
        """Play a program in a workflow, whose history must replay."""
        begin = Begin(forgetful=forgetful)
        handle = await self._client.start_workflow(
            Played.run, begin, id=f"played-{uuid.uuid4()}", task_queue=self.queues[cached]
        )
        taking, replies = InWorkflow(self._client, handle), []
        for act, taking.signalled in program:
            replies.append(await act(taking, taking))  # type: ignore[arg-type]  # its methods are asynchronous
        await handle.signal(Played.finish)
        exported = await handle.result()
        await self._replay(handle, exported)
        return Performance(replies, exported)

    async def _replay(self, handle: Handle, exported: dict[str, Any]) -> None:
        """Replay the history of the last run: it must export the same."""
        last = self._client.get_workflow_handle(handle.id)
        history = await last.fetch_history()
        await Replayer(workflows=[Played], plugins=[CorroboPlugin()]).replay_workflow(history)
        run_id = (await last.describe()).run_id
        played, *replayed = EXPORTED.pop(run_id)
        assert replayed
        assert [played, *replayed] == [exported] * (1 + len(replayed))


@pytest.fixture
async def stage(temporal_client: Client) -> AsyncIterator[Stage]:
    stage = Stage(temporal_client)
    async with stage.worker(True), stage.worker(False):
        yield stage


# -- in memory -------------------------------------------------------------------------------------------------


class Model:
    """A client in memory, whose clock shows what the workflow's showed at the same decision."""

    def __init__(self, told: list[list[str]]) -> None:
        self._told = iter(told)
        self._next = next(self._told, None)
        self.client = GateClient(clock=self._clock)
        self._early: list[tuple[str, Step]] = []

    def _clock(self) -> datetime:
        assert self._next is not None
        kind, time = self._next
        assert kind in ("step", "expire")
        self._next = next(self._told, None)
        return datetime.fromisoformat(time)

    def follow(self, program: list[Line], replies: list[Any]) -> None:
        """Take the same steps; what the workflow was told to do, and what its replies were, is the same."""
        for (act, _), reply in zip(program, replies, strict=True):
            self.let_expire()
            if act is NEXT_RUN:
                self._continue_as_new()
            elif isinstance(reply, Signalled) and self.client.state.get(reply.request_id) is None:
                self._early.append((reply.request_id, act))
            elif reply is not TOLD:
                self._take(act, reply)
        self.let_expire()
        assert self._next is None

    def let_expire(self) -> None:
        """Let the workflow's timers, and its own expiries, come where they came."""
        while self._next is not None and self._next[0] == "expire":
            self.client.expire()

    def _take(self, act: Step, reply: Any) -> None:
        found = act(self.client, NO_CLOCK)
        if isinstance(reply, dict):
            assert posted(found) == reply
            for waiting in [each for each in self._early if self.client.state.get(each[0])]:
                self._early.remove(waiting)
                waiting[1](self.client, NO_CLOCK)
        elif reply is not None and not isinstance(reply, Signalled):
            assert found == reply

    def _continue_as_new(self) -> None:
        assert self._next is not None and self._next[0] == "next"
        self._next = next(self._told, None)
        self.client = replay(condense(self.client.state), clock=self._clock)


def check(program: list[Line], done: Performance) -> None:
    """The workflow did what the client in memory does, and its state is the fold of its history, byte for byte."""
    model = Model(done.exported["told"])
    model.follow(program, done.replies)
    lines, state = done.exported["lines"], done.exported["state"]
    assert lines == to_lines(model.client.history())
    assert state == model.client.state.to_json()
    assert state == replay(lines).state.to_json() == fold(from_lines(lines)).to_json()


FIRST = REQUESTS[0]
CLAIMED_ACROSS_RUNS = [
    Line(posting(FIRST, None, False)),
    Line(claiming(FIRST, "router-a", "a1", 5 * MINUTE)),
    Line(NEXT_RUN),
    Line(submission(FIRST, "a1", "router-a", True, YES)),
]
TWO_CAME_EARLY = [
    Line(claiming(FIRST, "router-b", "b1", None), True),
    Line(claiming(FIRST, "router-a", "a1", None), True),
    Line(NEXT_RUN),
    Line(posting(FIRST, None, False)),
    Line(submission(FIRST, "b1", "router-b", True, NO), True),
]
TIMED_OUT_AMONG_SIGNALS = [
    Line(posting(FIRST, 5 * MINUTE, False)),
    *(Line(claiming(FIRST, f"router-{name}", f"{name}1", 2 * MINUTE), True) for name in "abc"),
    Line(step("turn", 2 * MINUTE)),
    Line(claiming(FIRST, "router-b", "b1", 2 * MINUTE), True),
    Line(step("turn", 4 * MINUTE)),
    Line(submission(FIRST, "b1", "router-b", True, YES), True),
]


@settings(
    max_examples=15,
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(CLAIMED_ACROSS_RUNS, False)
@example(TWO_CAME_EARLY, True)
@example(TIMED_OUT_AMONG_SIGNALS, False)
@example(TIMED_OUT_AMONG_SIGNALS, True)
@given(programs, st.booleans())
async def test_G3_any_interleaving_in_a_workflow_folds_to_the_same_state_as_its_replay(
    stage: Stage, program: list[Line], cached: bool
) -> None:
    check(program, await stage.play(program, cached=cached))


@pytest.mark.parametrize("forgetful", [False, True])
async def test_a_workflow_that_begins_its_gates_anew_in_the_next_run_is_found_out(
    stage: Stage, forgetful: bool
) -> None:
    """The naive twin of carrying over: so that the property can fail."""
    done = await stage.play(CLAIMED_ACROSS_RUNS, forgetful=forgetful)
    if not forgetful:
        check(CLAIMED_ACROSS_RUNS, done)
        return
    with pytest.raises(AssertionError):
        check(CLAIMED_ACROSS_RUNS, done)
