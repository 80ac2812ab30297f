"""What `CallbackGates` is measured against: a field that signals and updates set, and a run that waits for it."""

from dataclasses import dataclass, field
from datetime import timedelta

from temporalio import workflow

WAIT = timedelta(seconds=1)


@dataclass
class Wanted:
    """What is to be approved, one after the other, and by whom each was."""

    revisions: list[str]
    approvals: list[str] = field(default_factory=list)


@workflow.defn
class NaiveApprovals:
    """Waits for an approval of each revision; returns who approved, or that nobody did in time."""

    def __init__(self) -> None:
        self.approved_by: str | None = None
        self.approvals: list[str] = []
        self.next_run = False

    @workflow.run
    async def run(self, order: Wanted) -> list[str]:
        self.approved_by, self.approvals = None, order.approvals  # too late for what came before the first task
        for number, _ in enumerate(order.revisions):
            try:
                await workflow.wait_condition(lambda: self.next_run or self.approved_by is not None, timeout=WAIT)
            except TimeoutError:
                return [*self.approvals, "nobody"]
            if self.next_run:
                workflow.continue_as_new(Wanted(order.revisions[number:], self.approvals))
            await workflow.sleep(0.3)  # the release itself; a second click comes meanwhile
        return self.approvals

    @workflow.signal
    def continue_as_new(self) -> None:
        self.next_run = True

    @workflow.signal
    def approve(self, who: str) -> None:
        self.approved_by = who
        self.approvals.append(who)

    @workflow.update
    def decide(self, who: str) -> bool:
        """Whether it counts: it always does."""
        self.approve(who)
        return True

    @workflow.query
    def waiting(self) -> bool:
        return True
