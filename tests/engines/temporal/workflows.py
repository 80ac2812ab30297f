"""Workflows of the tests, run in the default sandbox."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutError

from corrobo_temporal import WorkflowEffects, disposition_of, stable_identity

with workflow.unsafe.imports_passed_through():
    from examples.http_ledger import Credit
    from tests.engines.temporal.effects import credit


@dataclass
class Call:
    """One activity call. Times are in seconds."""

    activity: str
    args: list[Any]
    task_queue: str
    heartbeat: float | None = 1.0
    start_to_close: float | None = None
    schedule_to_close: float = 60.0
    maximum_attempts: int = 0
    local: bool = False
    times: int = 1  # how often the workflow calls it, as long as it fails
    pause: float = 0.0  # before it calls again


def seconds(value: float | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)


async def called(call: Call) -> Any:
    """What the activity returns."""
    retry = RetryPolicy(
        initial_interval=timedelta(milliseconds=50),
        backoff_coefficient=1.0,
        maximum_attempts=call.maximum_attempts,
    )
    if call.local:
        return await workflow.execute_local_activity(
            call.activity,
            args=call.args,
            start_to_close_timeout=seconds(call.start_to_close),
            schedule_to_close_timeout=seconds(call.schedule_to_close),
            retry_policy=retry,
        )
    return await workflow.execute_activity(
        call.activity,
        args=call.args,
        task_queue=call.task_queue,
        heartbeat_timeout=seconds(call.heartbeat),
        start_to_close_timeout=seconds(call.start_to_close),
        schedule_to_close_timeout=seconds(call.schedule_to_close),
        retry_policy=retry,
        cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )


@workflow.defn
class CallActivity:
    """Calls one activity, again if it fails and the call says so, and returns what it returns."""

    @workflow.run
    async def run(self, call: Call) -> Any:
        for _ in range(call.times - 1):
            try:
                return await called(call)
            except ActivityError:
                await workflow.sleep(call.pause)
        return await called(call)


@dataclass
class Ended:
    """How an activity call ended, as the workflow sees it."""

    shape: list[str]
    retry_state: str | None = None
    reason: str | None = None
    operation_id: str | None = None
    disposition: str | None = None
    result: Any = None


@workflow.defn
class DescribeEnd:
    """Calls one activity and describes its end."""

    @workflow.run
    async def run(self, call: Call) -> Ended:
        try:
            return Ended([], result=await called(call))
        except ActivityError as error:
            status = disposition_of(error)
            state = error.retry_state.name if error.retry_state else None
            ended = Ended(_shape(error), state)
            if status is not None:
                ended.reason, ended.operation_id = status.reason, status.operation_id
                ended.disposition = status.disposition
            return ended


def _shape(error: BaseException | None) -> list[str]:
    shape = []
    while error is not None:
        kind = type(error).__name__
        if isinstance(error, ApplicationError):
            kind = f"{error.type}"
        elif isinstance(error, TimeoutError) and error.type is not None:
            kind = f"{kind} {error.type.name}"
        shape.append(kind)
        error = error.__cause__
    return shape


@activity.defn(name="credit")
async def credit_stub(reference: str, amount_cents: int = 5_000) -> Credit:
    """What a workflow needs to know of an effect that it cannot import."""
    raise NotImplementedError


@dataclass
class Run:
    """One effect by `WorkflowEffects`."""

    task_queue: str
    reference: str
    schedule_to_close: float = 60.0
    observe_only: bool = False
    stub: bool = False


@workflow.defn
class RunCredit:
    """Runs an effect, as applications do."""

    @workflow.init
    def __init__(self, order: Run) -> None:
        self.effects = WorkflowEffects(
            schedule_to_close_timeout=timedelta(seconds=order.schedule_to_close),
            heartbeat_timeout=timedelta(seconds=1),
            task_queue=order.task_queue,
            observe_timeout=timedelta(seconds=20),
        )

    @workflow.run
    async def run(self, order: Run) -> Credit:
        if order.observe_only:
            return await self.effects.observe(credit, order.reference)
        if order.stub:
            return await self.effects.run(credit_stub, order.reference)
        return await self.effects.run(credit, reference=order.reference)


@dataclass
class Naming:
    """What `Identify` does with its ids."""

    task_queue: str
    local: bool = False
    rounds: int = 1
    seen: list[str] = field(default_factory=list)
    fail_first_run: bool = False


@workflow.defn
class Identify:
    """Mints an id, lets an activity mint the same, waits for a signal, and continues as new."""

    def __init__(self) -> None:
        self._go = False
        self._ids: list[str] = []

    @workflow.signal
    def go(self) -> None:
        self._go = True

    @workflow.query
    def ids(self) -> list[str]:
        return self._ids

    @workflow.run
    async def run(self, naming: Naming) -> list[str]:
        mine = stable_identity("charge")
        call = Call("identify", ["charge"], naming.task_queue, local=naming.local)
        theirs = await called(call)
        self._ids = [mine, theirs]
        if naming.fail_first_run and workflow.info().attempt == 1:
            raise ApplicationError("the first run fails")
        if naming.rounds == 1 and not naming.seen and not naming.fail_first_run:
            await workflow.wait_condition(lambda: self._go)
        naming.seen += [mine, theirs]
        if naming.rounds > 1:
            naming.rounds -= 1
            workflow.continue_as_new(naming)
        return naming.seen


ALL = [CallActivity, DescribeEnd, RunCredit, Identify]
