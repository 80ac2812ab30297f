"""The effect, a release at the HTTP ledger that somebody must approve, and the workflow that runs it."""

import os
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from corrobo_core import Attempt, Check, Observation, Verdict, effect
    from corrobo_temporal import CallbackGates, WorkflowEffects
    from examples.http_ledger import Credit, HttpLedger

DECISIONS = "decisions"


def releases() -> HttpLedger:
    """The outside system; the example says where it listens."""
    return HttpLedger(os.environ["HTTP_LEDGER_URL"])


@effect("example/release", identity=lambda revision: revision, in_flight_window=timedelta(seconds=10))
def release(attempt: Attempt, revision: str) -> Credit:
    """Publish a revision."""
    return releases().credit("releases", revision, 1)


@release.authorize
def somebody_must_approve(attempt: Attempt) -> Check:
    return Check.requires_review("every release is approved by a person")


@release.observe
def seen(attempt: Attempt) -> Observation[list[Credit]]:
    found = releases().credits("releases", attempt.operation_id)
    return Observation.of(found, source="releases", proves_absence=True)


@seen.reconcile
def judge(attempt: Attempt, found: list[Credit]) -> Verdict[Credit]:
    match found:
        case []:
            return Verdict.not_applied("NOT_RELEASED")
        case [one]:
            return Verdict.applied("RELEASED", effect=one)
        case _:
            return Verdict.conflicted("RELEASED_TWICE", f"{len(found)} releases exist")


@workflow.defn
class ApprovedRelease:
    """Releases one revision, once somebody has approved it."""

    @workflow.init
    def __init__(self, revision: str) -> None:
        self.gates = CallbackGates()
        self.effects = WorkflowEffects(
            schedule_to_close_timeout=timedelta(minutes=5),
            heartbeat_timeout=timedelta(seconds=5),
            gates=self.gates,
            decisions_task_queue=DECISIONS,
        )

    @workflow.run
    async def run(self, revision: str) -> str:
        """The reference of the release."""
        released = await self.effects.run(release, revision)
        await self.gates.close()
        return released.reference
