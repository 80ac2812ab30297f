"""Where a scenario plays: the contract under watch, its target, and a ledger on the target's clock.

Effects are counted at the target after every pass, never in our own record.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, TypeVar

from corrobo_core.canonical import idempotency_key
from corrobo_core.clocks import stopwatch
from corrobo_core.commands import Claim, LedgerCommand, Open, Opened, Reading, Written
from corrobo_core.contract import BaseEffect
from corrobo_core.definition import Definition, Hook
from corrobo_core.frozen import evolve
from corrobo_core.ledgers.memory import MemoryLedger
from corrobo_core.records import CLOSED, Disposition, EffectResult, OperationKey
from corrobo_core.reviews import ReviewDesk
from corrobo_core.runner import AsyncEffectRunner, EffectRunner
from corrobo_core.testing._process import Killed, Process, Side
from corrobo_core.testing.clock import VirtualClock
from corrobo_core.testing.target import ConformanceTarget, Fault, FaultKind

__all__ = ["ContractBroken", "NotApplicable", "Stage", "ending", "say"]

R = TypeVar("R")

_PASSES = 30  # a contract that has not ended by then waits for a person
_HOUR = timedelta(hours=1)
_SOON = timedelta(seconds=1)
_NEVER = float("inf")


class ContractBroken(AssertionError):
    """The contract does not hold in this scenario; the message says what was seen and what to change."""


class NotApplicable(Exception):
    """The scenario cannot be played with this contract and target; the message says why."""


class _StopIt(KeyboardInterrupt):
    """Stands for Ctrl-C in a synchronous hook."""


def say(span: timedelta) -> str:
    """A duration for people, such as ``10 s``."""
    return f"{span.total_seconds():g} s"


class VirtualLedger(MemoryLedger):
    """A memory ledger for which no real time counts, however slow the machine.

    A reply is read at the end of time on the stopwatch, so that nothing elapses after it on the ledger's clock.
    ``pauses`` lets the process stand still after its next reservation, before anything is sent (L9).
    """

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock=clock)
        self._virtual = clock
        self.pauses: timedelta | None = None

    def perform(self, command: LedgerCommand[R], /) -> R:
        """Answer one command."""
        reply: Any = super().perform(command)
        reading: Reading | None = getattr(reply, "reading", None)
        if reading is None:
            return reply  # type: ignore[no-any-return]
        sent = _NEVER
        if self.pauses is not None and _reserves(command, reply):
            pause, self.pauses = self.pauses, None
            self._virtual.pass_by(pause)
            sent = stopwatch() - pause.total_seconds()
        answer: R = evolve(reply, reading=Reading(reading.now, sent, _NEVER))
        return answer

    def idempotency_key(self, key: OperationKey, /) -> str:
        """The same in every ledger of the suite, as in every process of one application (I5)."""
        return idempotency_key("contract suite", key.namespace, key.type, key.operation_id)


def _reserves(command: LedgerCommand[Any], reply: Any) -> bool:
    if isinstance(command, Open):
        return isinstance(reply, Opened) and reply.mine and reply.operation.reserved
    return isinstance(command, Claim) and isinstance(reply, Written)


class _Watched(BaseEffect[..., Any]):
    """The contract, with each call of a hook as a step."""

    def __init__(self, definition: Definition, step: Callable[[str], Any]) -> None:
        hooks = {name: _watched(name, hook, step) for name, hook in definition.hooks.items()}
        self._definition = replace(definition, hooks=hooks)

    @property
    def definition(self) -> Definition:
        """The watched one."""
        return self._definition


def _watched(name: str, hook: Hook, step: Callable[[str], Any]) -> Hook:
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        with step(name):
            return await hook.fn(*args, **kwargs)

    def plain(*args: Any, **kwargs: Any) -> Any:
        with step(name):
            return hook.fn(*args, **kwargs)

    return replace(hook, fn=awaited if hook.is_async else plain)


class Stage:
    """One scenario's world.

    Args:
        contract: under test.
        target: what it acts on; reset.
        context: for ``authorize`` and ``revalidate``.
    """

    def __init__(
        self, contract: BaseEffect[Any, Any], target: ConformanceTarget, context: Mapping[str, Any] | None = None
    ) -> None:
        target.reset()
        self.target, self.clock = target, target.clock
        self._definition = contract.definition
        self.policy = self._definition.policy
        self.is_async = self._definition.is_async
        self.effect = _Watched(self._definition, self._step)
        self.wanted = 1
        self.remedy = ""
        self.wrote: Counter[str] = Counter()
        self.approves = True
        self.ended: EffectResult[Any] | None = None
        self._context = dict(context or {})
        self._loop = asyncio.Runner()
        self._passes = 0
        self._rest_until = self.clock()
        self.new_ledger()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.close()

    def new_ledger(self) -> None:
        """Go on with a ledger that knows nothing."""
        self.ledger = VirtualLedger(self.clock)
        self.process = Process(self.ledger)

    # -- the target ------------------------------------------------------------------------------------------

    def plan(self, kind: FaultKind, delay: timedelta = timedelta(), **details: Any) -> None:
        """Let something go wrong.

        Raises:
            NotApplicable: the target cannot do that.
        """
        if kind not in self.target.supports:
            raise NotApplicable(f"the target does not support {kind.value!r}")
        self.target.plan(Fault(kind, delay, **details))
        self._rest_until = max(self._rest_until, self.clock() + delay)

    def interruption(self) -> BaseException:
        """What stops a hook of this contract from outside."""
        return asyncio.CancelledError() if self.is_async else _StopIt()

    @property
    def window(self) -> timedelta:
        """The declared window; an hour where none is declared."""
        return self.policy.window or _HOUR

    # -- passes ----------------------------------------------------------------------------------------------

    def run(
        self, number: int = 1, *, intent: tuple[Any, ...] | None = None, process: Process | None = None
    ) -> EffectResult[Any] | None:
        """One pass, judged; None if it was interrupted or its process ended."""
        args = self.target.intent(number) if intent is None else intent
        before, self.process = self.process, process or Process(self.ledger)
        current, self._passes = self._passes, self._passes + 1
        try:
            result = self._one_pass(args, nested=current > 0)
        except (Killed, _StopIt, asyncio.CancelledError):
            for nonce in self.process.nonces:  # others can tell that it is gone
                self.ledger.pass_ended(nonce)
            result = None
        finally:
            self._passes, self.process = current, before
        self._judge(result)
        return result

    def _one_pass(self, args: tuple[Any, ...], *, nested: bool) -> EffectResult[Any]:
        ledger: Any = self.process.ledger
        if not self.is_async:
            return EffectRunner(ledger, context=self._context, observe_now=True).run(self.effect, *args)  # type: ignore[arg-type]  # its definition says that it is synchronous

        async def one_pass() -> EffectResult[Any]:
            runner = AsyncEffectRunner(ledger, context=self._context, observe_now=True)
            return await runner.run(self.effect, *args)

        if not nested:
            return self._loop.run(one_pass())
        with ThreadPoolExecutor(1) as thread:  # another caller, while this loop waits for a hook
            return thread.submit(lambda: asyncio.run(one_pass())).result()

    def finish(self, number: int = 1) -> EffectResult[Any]:
        """Pass after pass, as a scheduler makes them, until the operation is closed or only a person can help.

        Raises:
            ContractBroken: something in between or at the end is not as it is said to be.
        """
        result = None
        for _ in range(_PASSES):
            result = self.run(number)
            if result is not None and result.disposition in CLOSED:
                break
            if result is not None and result.disposition is Disposition.REVIEW:
                if not self.approves:
                    break
                self.approve(result)
            else:
                self.clock.pass_by(result.wait if result is not None and result.wait else _SOON)
        return self.rest(number)

    def rest(self, number: int = 1) -> EffectResult[Any]:
        """Wait until everything has landed that ever will, and look once more."""
        late = max(self._rest_until - self.clock(), timedelta())
        self.clock.pass_by(late + self.window + self.policy.observation_lag + self.target.reads_lag + _SOON)
        result = self.run(number)
        if result is None:
            raise ContractBroken("a pass that nothing disturbed was interrupted")
        self.ended = result
        self._judge_end(result)
        return result

    def approve(self, result: EffectResult[Any], *, valid_for: timedelta | None = None) -> None:
        """A person approves what waits."""
        assert result.token is not None
        until = None if valid_for is None else self.clock() + valid_for
        desk = ReviewDesk(self.ledger)
        desk.approved(result.operation_id, token=result.token, reviewer="contract suite", expires_at=until)

    def fresh(self, at: int = 0, side: Side = "before", what: Callable[[], None] | None = None) -> Process:
        """Another process of the application."""
        return Process(self.ledger, at, side, what)

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        with self.process.step(name):
            before = self.target.writes()
            try:
                yield
            finally:
                self.wrote[name] += self.target.writes() - before

    # -- judging ---------------------------------------------------------------------------------------------

    def broken(self, seen: str) -> ContractBroken:
        """What was seen, and what to change."""
        return ContractBroken(f"{seen}. {self.remedy}" if self.remedy else seen)

    def _judge(self, result: EffectResult[Any] | None) -> None:
        found = self.target.effects()
        if found > self.wanted:
            raise self.broken(f"{found} effects at the target, where {self.wanted} was wanted")
        if result is not None and result.disposition is Disposition.COMPLETE and found < self.wanted:
            raise self.broken("COMPLETE was said, and the effect is not at the target")

    def must_complete(self, result: EffectResult[Any]) -> None:
        """The effect is wanted, and nothing stands in its way any more.

        Raises:
            ContractBroken: it did not come to that.
        """
        if result.disposition is not Disposition.COMPLETE:
            raise self.broken(f"the operation ended as {ending(result)}, and nothing stood in its way")

    def _judge_end(self, result: EffectResult[Any]) -> None:
        there = self.target.effects() == self.wanted
        if there and result.disposition is not Disposition.COMPLETE:
            raise self.broken(
                f"the effect is at the target, and the operation ended as {ending(result)}: {result.explanation}"
            )


def ending(result: EffectResult[Any]) -> str:
    """How an operation ended, such as ``COMPLETE EFFECT_CONFIRMED``."""
    return f"{result.disposition.value if result.disposition else 'open'} {result.reason}"
