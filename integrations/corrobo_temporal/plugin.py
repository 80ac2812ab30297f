"""Everything at once: converter, header, activities, sandbox, and the ledger's opening and closing."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

from temporalio.client import ClientConfig
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import DataConverter, DefaultPayloadConverter
from temporalio.plugin import SimplePlugin
from temporalio.worker import WorkerConfig, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from corrobo_core import BaseEffect, UsageError
from corrobo_core.ledgers.ports import Ledger
from corrobo_temporal.activities import LOOK_AGAIN_FOR, effect_activity, observe_activity
from corrobo_temporal.decisions import decision_activities
from corrobo_temporal.identity import CorroboInterceptor

__all__ = ["CorroboPlugin"]

_PASSED_THROUGH = ("corrobo_core", "corrobo_temporal")
_THREADS = 100  # for sync effects, where the worker was given no executor


class CorroboPlugin(SimplePlugin):
    """On a client it brings the pydantic converter and `CorroboInterceptor`; on a worker also the effects.

    ``CorroboPlugin()`` for clients, ``CorroboPlugin(ledger, effects=[...])`` for workers that run effects. One may
    be given to both: it does everything once. A converter that was chosen already is kept.

    Args:
        ledger: where operations are recorded; opened while the worker runs, and closed after it. Migrate it first.
        effects: each becomes two activities, the effect's own and one that only looks.
        look_again_for: see `effect_activity`.
        decides: on a reviewers' worker, whose ledger has their database role: brings `decision_activities`, with
            these effects; ``()`` for reviews only; None: no decisions here.

    Raises:
        UsageError: effects or decisions without a ledger. Not retryable.
        ContractError: an effect is incomplete. Not retryable.
    """

    def __new__(cls, ledger: Ledger | None = None, **_: Any) -> CorroboPlugin:
        """A worker's plugin is of another class: the SDK warns of one class on both client and worker."""
        kind = _WorkerPlugin if cls is CorroboPlugin and ledger is not None else cls
        plugin: CorroboPlugin = super().__new__(kind)
        return plugin

    def __init__(
        self,
        ledger: Ledger | None = None,
        *,
        effects: Sequence[BaseEffect[Any, Any]] = (),
        look_again_for: timedelta = LOOK_AGAIN_FOR,
        decides: Sequence[BaseEffect[Any, Any]] | None = None,
    ) -> None:
        if decides is not None and ledger is None:
            raise UsageError("CorroboPlugin", "decisions need a ledger: CorroboPlugin(ledger, decides=[...])")
        if effects and ledger is None:
            raise UsageError("CorroboPlugin", "effects need a ledger: CorroboPlugin(ledger, effects=[...])")
        self._ledger, self._users, self._opened = ledger, 0, AsyncExitStack()
        self._kinds = {effect.is_async for effect in effects}
        self._activities: list[Callable[..., Any]] = []
        for effect in effects:
            assert ledger is not None
            run: Callable[..., Any] = effect_activity(effect, ledger, look_again_for=look_again_for)  # type: ignore[call-overload]  # of either kind
            self._activities += [run, observe_activity(effect, ledger)]
        if decides is not None and ledger is not None:
            self._kinds.add(True)
            self._activities += decision_activities(ledger, effects=decides)
        super().__init__(
            "corrobo.CorroboPlugin",
            data_converter=_with_pydantic,
            activities=self._with_activities,
            workflow_runner=_with_passthrough,
            run_context=self._open_ledger,
        )

    def configure_client(self, config: ClientConfig) -> ClientConfig:
        """See the base class."""
        config = super().configure_client(config)
        config["interceptors"] = _with_interceptor(config.get("interceptors"))
        return config

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """See the base class."""
        config = super().configure_worker(config)
        from_client = config["client"].config(active_config=True)["interceptors"]
        if not any(isinstance(interceptor, CorroboInterceptor) for interceptor in from_client):
            config["interceptors"] = _with_interceptor(config.get("interceptors"))
        if False in self._kinds and config.get("activity_executor") is None:
            threads = config.get("max_concurrent_activities") or _THREADS
            config["activity_executor"] = ThreadPoolExecutor(threads, "corrobo-activity")
        return config

    def _with_activities(self, existing: Sequence[Callable[..., Any]] | None) -> Sequence[Callable[..., Any]]:
        present = list(existing or ())
        return [*present, *(fn for fn in self._activities if fn not in present)]

    @asynccontextmanager
    async def _open_ledger(self) -> AsyncIterator[None]:
        """Once, however often the plugin arrives and whichever of its workers runs."""
        self._users += 1
        try:
            if self._users == 1:
                await self._open()
            yield
        finally:
            self._users -= 1
            if self._users == 0:
                await self._opened.aclose()

    async def _open(self) -> None:
        ledger: Any = self._ledger
        if True in self._kinds:
            await self._opened.enter_async_context(ledger)
        if False in self._kinds:
            await asyncio.to_thread(ledger.__enter__)
            self._opened.push_async_callback(asyncio.to_thread, ledger.__exit__, None, None, None)


class _WorkerPlugin(CorroboPlugin):
    """`CorroboPlugin` with a ledger."""


def _with_pydantic(existing: DataConverter | None) -> DataConverter:
    converter = existing or DataConverter.default
    if converter.payload_converter_class is not DefaultPayloadConverter:
        return converter
    return dataclasses.replace(converter, payload_converter_class=PydanticPayloadConverter)


def _with_passthrough(existing: WorkflowRunner | None) -> WorkflowRunner:
    runner = existing or SandboxedWorkflowRunner()
    if not isinstance(runner, SandboxedWorkflowRunner):
        return runner
    restrictions = runner.restrictions.with_passthrough_modules(*_PASSED_THROUGH)
    return dataclasses.replace(runner, restrictions=restrictions)


def _with_interceptor(existing: Sequence[Any] | None) -> list[Any]:
    present = list(existing or ())
    if any(isinstance(interceptor, CorroboInterceptor) for interceptor in present):
        return present
    return [*present, CorroboInterceptor()]
