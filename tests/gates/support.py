"""What the tests of gates share: a question, a clock to turn, a ledger that counts and fails, an async client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from corrobo_core.commands import LedgerCommand
from corrobo_core.errors import LedgerUnavailable
from corrobo_core.gates import AsyncStoredGateClient, ClaimOk, GateDefinition, Gates, create_gate
from corrobo_core.gates.state import GateState
from corrobo_core.ledgers.gate_port import Appended, AppendGate, GateRows
from corrobo_core.ledgers.ports import Ledger

DEFINITION = GateDefinition(
    gate_id="release-approval",
    gate_version=1,
    decision_text="Approve release abc123?",
    response_schema={
        "type": "object",
        "properties": {"approved": {"type": "boolean"}},
        "required": ["approved"],
    },
    input={"revision": "abc123"},
)
REQUEST = create_gate(DEFINITION)
OTHER = create_gate(replace(DEFINITION, input={"revision": "def456"}))
YES, NO = {"approved": True}, {"approved": False}
START = datetime(2026, 11, 30, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Clock:
    """A clock that stands still until it is turned."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def turn(self, by: timedelta) -> None:
        self.now += by


class Turned:
    """A real ledger whose clock can be turned ahead. It counts the statements of gates, and fails where told to.

    Attributes:
        ahead: how far its clock is ahead of the real ledger's.
        commands: every gate command so far.
        fail: given the number of an append, from 1: "before" it is sent, "after" it is committed, or None.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.ahead = timedelta()
        self.commands: list[LedgerCommand[Any]] = []
        self.fail: Callable[[int], str | None] = lambda number: None
        self.after_read: Callable[[], None] = lambda: None
        self._clock: Clock | None = None

    @property
    def namespace(self) -> str:
        return self._ledger.namespace

    @property
    def appends(self) -> int:
        return sum(isinstance(command, AppendGate) for command in self.commands)

    def turn(self, by: timedelta) -> None:
        self.ahead += by

    def stand_at(self, clock: Clock) -> None:
        """Replies tell this clock's time from now on, and ``before`` is judged by it."""
        self._clock = clock

    def perform(self, command: LedgerCommand[Any], /) -> Any:
        how = self._begin(command)
        return self._end(command, self._ledger.perform(self._real(command)), how)

    async def perform_async(self, command: LedgerCommand[Any], /) -> Any:
        how = self._begin(command)
        return self._end(command, await self._ledger.perform_async(self._real(command)), how)

    def _begin(self, command: LedgerCommand[Any]) -> str | None:
        self.commands.append(command)
        how = self.fail(self.appends) if isinstance(command, AppendGate) else None
        if how == "before":
            raise LedgerUnavailable("test", "never sent")
        return how

    def _real(self, command: LedgerCommand[Any]) -> LedgerCommand[Any]:
        if not isinstance(command, AppendGate) or command.before is None:
            return command
        if self._clock is not None:
            reached = self._clock.now >= command.before
            return replace(command, before=datetime(2000 if reached else 9000, 1, 1, tzinfo=UTC))
        return replace(command, before=command.before - self.ahead)

    def _end(self, command: LedgerCommand[Any], reply: Any, how: str | None) -> Any:
        if how == "after":
            raise LedgerUnavailable("test", "the reply was lost")
        if not isinstance(reply, GateRows | Appended):
            return reply
        told = replace(reply, now=reply.now + self.ahead if self._clock is None else self._clock.now)
        if isinstance(reply, GateRows):
            self.after_read()
        return told


class Blocking:
    """An asynchronous client, called as if it were synchronous, on an event loop of its own."""

    def __init__(self, client: AsyncStoredGateClient, loop: asyncio.Runner) -> None:
        self._client, self._loop = client, loop

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            async def run() -> Any:
                return await method(*args, **kwargs)

            return self._loop.run(run())

        return call


def kinds(client: Gates, request_id: str | None = None) -> list[str]:
    """The kinds of the events, without what they all begin with."""
    return [event.kind.removeprefix("callback-") for event in client.history(request_id)]


def claimed(client: Gates, router: str = "router-a", request_id: str = REQUEST.request_id, **options: Any) -> str:
    """The token of a claim that succeeds."""
    claim = client.claim(request_id, router, **options)
    assert isinstance(claim, ClaimOk)
    return claim.claim_token


def state_of(client: Gates) -> GateState:
    """The whole state, tokens too."""
    return client._look(None)[0]
