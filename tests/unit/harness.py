"""One way to write a test of the runners once: the same hooks run sync, async, and sync in threads of a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from corrobo_core import AsyncEffectRunner, Attempt, BaseEffect, EffectResult, EffectRunner, effect
from corrobo_core.ledgers.ports import Ledger
from tests.unit.world import World, judge

Kind = Literal["sync", "async", "thread"]
KINDS: list[Kind] = ["sync", "async", "thread"]


class Clock:
    """A ledger's clock and the process's stopwatch; both stand still until a test moves them."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.elapsed = 0.0

    def __call__(self) -> datetime:
        return self.now

    def stopwatch(self) -> float:
        return self.elapsed

    def pass_by(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.elapsed += seconds


class Harness:
    """Makes effects of one kind, and runs them."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def effect(
        self,
        world: World,
        *,
        execute: Callable[[Attempt, str], Any] | None = None,
        observe: Callable[[Attempt, str], Any] | None = None,
        reconcile: Callable[[Attempt, Any], Any] | None = None,
        authorize: Callable[[Attempt, str], Any] | None = None,
        revalidate: Callable[[Attempt, str], Any] | None = None,
        **options: Any,
    ) -> BaseEffect[[str], Any]:
        """``credit(reference)`` on this world, with some of its hooks replaced."""
        options.setdefault("identity", lambda reference: reference)
        options.setdefault("in_flight_window", timedelta(seconds=10))
        made: Any = effect("world/credit", **options)(
            self._fit(execute or (lambda attempt, reference: world.credit(reference)))
        )
        seen = made.observe(self._fit(observe or (lambda attempt, reference: world.find(reference))))
        seen.reconcile(reconcile or (lambda attempt, found: judge(found)))
        if authorize is not None:
            made.authorize(self._fit(authorize))
        if revalidate is not None:
            made.revalidate(self._fit(revalidate))
        typed: BaseEffect[[str], Any] = made
        return typed

    def _fit(self, hook: Callable[[Attempt, str], Any]) -> Any:
        async def awaited(attempt: Attempt, reference: str) -> Any:
            await asyncio.sleep(0)
            return hook(attempt, reference)

        def plain(attempt: Attempt, reference: str) -> Any:
            return hook(attempt, reference)

        return awaited if self.kind == "async" else plain

    def __repr__(self) -> str:
        return self.kind

    def run(self, ledger: Ledger, made: BaseEffect[[str], Any], reference: str = "r1", **options: Any) -> Any:
        return self._call("run", ledger, made, reference, options)

    def observe(self, ledger: Ledger, made: BaseEffect[[str], Any], reference: str = "r1", **options: Any) -> Any:
        return self._call("observe", ledger, made, reference, options)

    def _call(
        self, method: str, ledger: Ledger, made: BaseEffect[[str], Any], reference: str, options: Any
    ) -> EffectResult[Any]:
        if self.kind == "sync":
            result: EffectResult[Any] = getattr(EffectRunner(ledger, **options), method)(made, reference)
            return result
        runner = AsyncEffectRunner(ledger, **options)
        found: EffectResult[Any] = asyncio.run(getattr(runner, method)(made, reference))
        return found
