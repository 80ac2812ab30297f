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
from typing import Any, Self, cast

from corrobo_core.contract import BaseEffect
from corrobo_core.definition import Definition, Hook
from corrobo_core.records import CLOSED, Disposition, EffectResult
from corrobo_core.reviews import ReviewDesk
from corrobo_core.runner import AsyncEffectRunner, EffectRunner
from corrobo_core.testing._process import Killed, Process, Side
from corrobo_core.testing.clock import VirtualLedger
from corrobo_core.testing.target import ConformanceTarget, Fault, FaultKind

__all__ = ["ContractBroken", "NotApplicable", "Stage", "ending", "say"]

_PASSES = 30  # a contract that has not ended by then waits for a person
_HOUR = timedelta(hours=1)
_SOON = timedelta(seconds=1)


class ContractBroken(AssertionError):
    """The contract does not hold in this scenario; the message says what was seen and what to change."""


class NotApplicable(Exception):
    """The scenario cannot be played with this contract and target; the message says why."""


class _StopIt(KeyboardInterrupt):
    """Stands for Ctrl-C in a synchronous hook."""


def say(span: timedelta) -> str:
    """A duration for people, such as ``10 s``."""
    return f"{span.total_seconds():g} s"


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
        target: what it acts on.
        context: for ``authorize`` and ``revalidate``.

    Attributes:
        wanted: how many effects there should be.
        remedy: what to change if they are not as they should be.
        approves: somebody approves what waits for a review.
        wrote: how many requests that write each hook made.
        ended: what the operation came to.
    """

    def __init__(
        self, contract: BaseEffect[Any, Any], target: ConformanceTarget, context: Mapping[str, Any] | None = None
    ) -> None:
        self.target, self.clock = target, target.clock
        definition = contract.definition
        self.policy, self.is_async = definition.policy, definition.is_async
        self.effect = _Watched(definition, self._step)
        self.approves, self.remedy = True, ""
        self.ended: EffectResult[Any] | None = None
        self._context = dict(context or {})
        self._loop = asyncio.Runner()
        self._depth = 0
        self._seen: ContractBroken | None = None
        self._asks: bool | None = None if self.policy.authorizes or self.policy.revalidates else False
        self.start_over()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.close()

    # -- beginning -------------------------------------------------------------------------------------------

    def start_over(self, *, may_send: bool = False) -> None:
        """Nothing has happened yet. ``may_send``: but for a review, if the contract asks for one."""
        self.target.reset()
        self.wanted, self.wrote = 1, Counter[str]()
        self._rest_until = self.clock()
        self.new_ledger()
        if not may_send or self._asks is False:
            return
        result = self.run()
        self._asks = result is not None and result.disposition is Disposition.REVIEW
        if result is not None and self._asks:
            self.approve(result)
        else:
            self.start_over()

    def new_ledger(self) -> None:
        """Go on with a ledger that knows nothing."""
        self.ledger = VirtualLedger(self.clock)
        self.process = self.fresh()

    def fresh(self, at: int = 0, side: Side = "before", what: Callable[[], None] | None = None) -> Process:
        """Another process of the application; see `Process`."""
        return Process(self.ledger, at, side, what)

    # -- the target ------------------------------------------------------------------------------------------

    def plan(self, kind: FaultKind, delay: timedelta = timedelta(), **details: Any) -> None:
        """Let something go wrong.

        Raises:
            NotApplicable: the target cannot do that.
        """
        if kind not in self.target.supports:
            raise NotApplicable(f"the target does not support {kind.value!r}")
        self.target.plan(Fault(kind, delay, **details))
        if not kind.of_read:
            self._rest_until = max(self._rest_until, self.clock() + delay)

    def changed_intent(self) -> tuple[Any, ...]:
        """The first decision with another content.

        Raises:
            NotApplicable: the target has none.
        """
        changed = self.target.changed_intent()
        if changed is None:
            raise NotApplicable("the target has no changed_intent")
        return changed

    def interruption(self) -> BaseException:
        """What stops a hook of this contract from outside."""
        return asyncio.CancelledError() if self.is_async else _StopIt()

    @property
    def window(self) -> timedelta:
        """The declared window; an hour where none is declared."""
        return _HOUR if self.policy.window is None else self.policy.window

    def latest_landing(self) -> timedelta:
        """The longest time after a request was sent that its effect may still appear.

        Raises:
            NotApplicable: the target does not say.
        """
        if self.target.lands_within is None:
            raise NotApplicable("the target does not say how late an effect can land: set its lands_within")
        return self.target.lands_within

    def honest_landing(self) -> timedelta:
        """A late landing that is neither later than the contract says nor than the target does."""
        known = [span for span in (self.policy.window, self.target.lands_within) if span]
        return min(known, default=_HOUR)

    # -- passes ----------------------------------------------------------------------------------------------

    def run(
        self,
        number: int = 1,
        *,
        intent: tuple[Any, ...] | None = None,
        process: Process | None = None,
        only_reads: bool = False,
    ) -> EffectResult[Any] | None:
        """One pass, judged; None if it was interrupted or its process ended.

        Raises:
            ContractBroken: the target's count, or what the pass says, is wrong.
        """
        args = self.target.intent(number) if intent is None else intent
        before, self.process = self.process, process or self.fresh()
        self._depth += 1
        result = None
        try:
            result = self._one_pass("observe" if only_reads else "run", args)
        except (Killed, _StopIt, asyncio.CancelledError):
            for nonce in self.process.nonces:  # others can tell that it is gone
                self.ledger.pass_ended(nonce)
        except Exception as error:
            if self._depth == 1:
                raise
            self._note(f"a second caller was told {type(error).__name__}: {error}")
        finally:
            self._depth -= 1
            self.process = before
        self._judge(result)
        return result

    def _one_pass(self, method: str, args: tuple[Any, ...]) -> EffectResult[Any]:
        ledger: Any = self.process.ledger
        result: EffectResult[Any]
        if not self.is_async:
            runner = EffectRunner(ledger, context=self._context, observe_now=True)
            result = getattr(runner, method)(self.effect, *args)
            return result

        async def one_pass() -> EffectResult[Any]:
            runner = AsyncEffectRunner(ledger, context=self._context, observe_now=True)
            result = await getattr(runner, method)(self.effect, *args)
            return cast("EffectResult[Any]", result)

        if self._depth == 1:
            return self._loop.run(one_pass())
        with ThreadPoolExecutor(1) as thread:  # another caller, while this loop waits
            return thread.submit(lambda: asyncio.run(one_pass())).result()

    def run_approved(self) -> EffectResult[Any] | None:
        """One pass, and where it only asks for a review, another one with the approval."""
        result = self.run()
        if result is None or result.disposition is not Disposition.REVIEW:
            return result
        self.approve(result)
        return self.run()

    def run_until_closed(
        self, number: int = 1, *, intent: tuple[Any, ...] | None = None
    ) -> EffectResult[Any] | None:
        """Pass after pass, as a scheduler makes them, until the operation is closed or only a person can help."""
        for _ in range(_PASSES):
            result = self.run(number, intent=intent)
            if result is not None and result.disposition in CLOSED:
                return result
            if result is not None and result.disposition is Disposition.REVIEW:
                if not self.approves:
                    return result
                self.approve(result)
            else:
                self.clock.pass_by((result and result.wait) or _SOON)
        return result

    def finish(self, number: int = 1) -> EffectResult[Any]:
        """`run_until_closed`, and `rest`."""
        self.run_until_closed(number)
        return self.rest(number)

    def rest(self, number: int = 1) -> EffectResult[Any]:
        """Wait until everything has landed that ever will, and look once more.

        Raises:
            ContractBroken: the operation ended as it should not.
        """
        late = max(self._rest_until - self.clock(), timedelta())
        self.clock.pass_by(late + self.window + self.policy.observation_lag + self.target.reads_lag + _SOON)
        result = self.run(number)
        if result is None:
            raise ContractBroken("a pass that nothing disturbed was interrupted")
        self.ended = result
        if self.target.effects() == self.wanted > 0 and result.disposition is not Disposition.COMPLETE:
            raise self.broken(f"the effect is at the target, and the operation ended as {_story(result)}")
        return result

    def approve(self, result: EffectResult[Any], *, valid_for: timedelta | None = None) -> None:
        """A person approves what waits."""
        assert result.token is not None
        until = None if valid_for is None else self.clock() + valid_for
        desk = ReviewDesk(self.ledger)
        desk.approved(result.operation_id, token=result.token, reviewer="contract suite", expires_at=until)

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

    def must_complete(self, result: EffectResult[Any]) -> None:
        """The effect is wanted, and nothing stands in its way any more.

        Raises:
            ContractBroken: it did not come to that.
        """
        if result.disposition is not Disposition.COMPLETE:
            raise self.broken(f"nothing stood in its way, and the operation ended as {_story(result)}")

    def _judge(self, result: EffectResult[Any] | None) -> None:
        found, story = self.target.effects(), f"; {_story(result)}" if result else ""
        if found > self.wanted:
            self._note(f"effects at the target: {found}, wanted: {self.wanted}{story}")
        elif result is not None and result.disposition is Disposition.COMPLETE and found < self.wanted:
            self._note(f"COMPLETE was said, and the effect is not at the target{story}")
        if self._seen is not None and not self._depth:
            raise self._seen

    def _note(self, seen: str) -> None:
        """Keep it until no hook is running: one that runs would catch it."""
        self._seen = self._seen or self.broken(seen)


def ending(result: EffectResult[Any]) -> str:
    """How an operation ended, such as ``COMPLETE EFFECT_CONFIRMED``."""
    return f"{result.disposition.value if result.disposition else 'open'} {result.reason}"


def _story(result: EffectResult[Any]) -> str:
    made = ", ".join(f"attempt {a.number} {a.outcome.value if a.outcome else 'reserved'}" for a in result.attempts)
    return f"{ending(result)} ({result.explanation or 'no explanation'}; {made or 'no attempt'})"
