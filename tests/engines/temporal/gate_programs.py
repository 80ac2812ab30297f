"""A workflow that does what a program says, and tells everything: what it decided, and when."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import workflow

from corrobo_temporal import CallbackGates

with workflow.unsafe.imports_passed_through():
    from corrobo_core.gates import ExpireOk, GateDefinition, PostResult, protocol, to_lines
    from corrobo_core.gates.decided import Decide
    from tests.engines.temporal.exports import EXPORTED


@dataclass
class Begin:
    """What a run begins with."""

    carried: dict[str, Any] | None = None
    told: list[list[str]] = field(default_factory=list)
    forgetful: bool = False  # the naive twin: it makes its gates anew in each run


@workflow.defn
class Played:
    """Does what it is told, and tells when each decision was made, by its own time."""

    @workflow.init
    def __init__(self, given: Begin) -> None:
        self.gates = CallbackGates(given.carried, patience=timedelta(milliseconds=1))
        self.told = given.told
        self.next_run = self.finished = False
        self.decide = self.gates._book.decide
        self.gates._book.decide = self.timed  # type: ignore[method-assign]  # to be told what is decided when

    def timed(self, decide: Decide[Any]) -> Any:
        decision = ["step", workflow.now().isoformat()]
        self.told.append(decision)
        result = self.decide(decide)
        if isinstance(result, ExpireOk):
            decision[0] = "expire"
        return result

    @workflow.run
    async def run(self, given: Begin) -> dict[str, Any]:
        await workflow.wait_condition(lambda: self.next_run or self.finished)
        await self.gates.close()
        if not self.finished:
            self.told.append(["next", ""])
            given.carried = None if given.forgetful else self.gates.carry()
            given.told = self.told
            workflow.continue_as_new(given)
        book = self.gates._book
        exported = {"lines": to_lines(book.events), "state": book.state.to_json(), "told": self.told}
        EXPORTED.setdefault(workflow.info().run_id, []).append(exported)
        return exported

    @workflow.signal
    def continue_as_new(self) -> None:
        self.next_run = True

    @workflow.signal
    def finish(self) -> None:
        self.finished = True

    @workflow.update
    async def post(self, wire: dict[str, Any], seconds: float | None, reopen: bool) -> dict[str, Any]:
        definition = GateDefinition(
            wire["gateId"], wire["gateVersion"], wire["decisionText"], wire["responseSchema"], wire["input"]
        )
        deadline = None if seconds is None else timedelta(seconds=seconds)
        return posted(self.gates.post(definition, deadline=deadline, reopen=reopen))

    @workflow.update
    async def supersede(self, request_id: str, by: str) -> None:
        self.gates.supersede(request_id, by)

    @workflow.update
    async def expire(self) -> None:
        self.gates._book.decide(lambda state, now: protocol.expire(state, now=now))


def posted(result: PostResult) -> dict[str, Any]:
    """What a post says, for the wire."""
    return {name: value for name, value in vars(result).items() if isinstance(value, str | bool)}
