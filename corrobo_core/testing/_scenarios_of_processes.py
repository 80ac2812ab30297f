"""What can become of the process: it dies, is cancelled, is paused, is not alone, must ask a person.

Source: semantics L5, L7, L9, C1, C5, R5.
"""

from __future__ import annotations

from collections.abc import Iterator

from corrobo_core.commands import Claim, Open
from corrobo_core.records import Disposition
from corrobo_core.testing._process import Process, Side
from corrobo_core.testing._registry import Scenarios
from corrobo_core.testing._stage import NotApplicable, Stage, say
from corrobo_core.testing.target import FaultKind

__all__ = ["OF_PROCESSES"]

OF_PROCESSES = Scenarios()

_SIDES: tuple[Side, Side] = ("before", "after")
_RESERVE = (Open.__name__, Claim.__name__)


@OF_PROCESSES.add
def crash_at_every_command(stage: Stage) -> None:
    """The process dies before or after any command of the ledger and any hook, and another one goes on."""
    for at, side in _around_every_step(stage):
        stage.run(process=stage.fresh(at, side))
        stage.finish()


@OF_PROCESSES.add
def cancelled_during_write(stage: Stage) -> None:
    """The pass is cancelled while it writes: before the write is carried out, and after."""
    for fault in (FaultKind.CANCELLED_BEFORE, FaultKind.CANCELLED_AFTER):
        stage.start_over(may_send=True)
        stage.plan(fault, stage.honest_landing() / 2, error=stage.interruption())
        _interrupted(stage, "execute")
        stage.finish()


@OF_PROCESSES.add
def cancelled_after_write(stage: Stage) -> None:
    """The pass is cancelled while it looks for what it wrote."""
    stage.start_over(may_send=True)
    stage.plan(FaultKind.READ_CANCELLED, error=stage.interruption())
    _interrupted(stage, "observe")
    stage.must_complete(stage.finish())


def _interrupted(stage: Stage, hook: str) -> None:
    if stage.run() is not None:
        raise stage.broken(f"a cancellation in {hook} did not end the pass. Catch Exception, never BaseException")


@OF_PROCESSES.add
def paused_before_send(stage: Stage) -> None:
    """The process stands still between its reservation and its send, too long, and as long as it may."""
    allowance, window = stage.policy.start_allowance, stage.policy.window
    if allowance is None or window is None:
        raise NotApplicable("the contract declares no window that a pause could be compared with")
    reserves = _reservation(stage)

    stage.start_over(may_send=True)
    paused = stage.fresh(reserves, "after", lambda: _another_takes_over(stage, paused))
    stage.ledger.pause(window + stage.policy.observation_lag + allowance, noticed=True)
    stage.run(process=paused)
    stage.must_complete(stage.finish())

    if stage.target.lands_within is not None:
        stage.start_over(may_send=True)
        latest = stage.target.lands_within
        if allowance + latest > window:
            stage.remedy = (
                f"A write may begin {say(allowance)} after its reservation (in_flight_window less execute_timeout),"
                f" and lands up to {say(latest)} later: declare an execute_timeout at least that long"
            )
        stage.ledger.pause(allowance, noticed=False)
        stage.plan(FaultKind.LANDS_LATE, latest)
        stage.must_complete(stage.finish())


def _another_takes_over(stage: Stage, paused: Process) -> None:
    for nonce in paused.nonces:  # taken for dead, wrongly
        stage.ledger.pass_ended(nonce)
    stage.run_until_closed()


@OF_PROCESSES.add
def two_callers(stage: Stage) -> None:
    """A second caller comes at any moment of the first one's pass."""
    for at, side in _around_every_step(stage):
        stage.run(process=stage.fresh(at, side, lambda: _second_call(stage)))
        stage.must_complete(stage.finish())


def _second_call(stage: Stage) -> None:
    stage.run()


@OF_PROCESSES.add
def review_expires(stage: Stage) -> None:
    """An approval ends after the first attempt, which came to nothing: the second one needs another approval."""
    if not (stage.policy.authorizes or stage.policy.revalidates):
        raise NotApplicable("the contract has neither authorize nor revalidate")
    asked = stage.run()
    if asked is None or asked.disposition is not Disposition.REVIEW:
        raise NotApplicable("neither authorize nor revalidate asks for a review of the target's intent")
    stage.plan(FaultKind.REQUEST_LOST)
    stage.approve(asked, valid_for=stage.window / 2)
    stage.run()
    sent = stage.target.writes()
    stage.approves = False
    stage.finish()
    if stage.target.writes() > sent:
        raise stage.broken("another attempt was made after its approval had ended")
    stage.approves = True
    stage.finish()


def _around_every_step(stage: Stage) -> Iterator[tuple[int, Side]]:
    """Each step's number and each side of it, with nothing done yet; first as it is, then with a lost answer."""
    count = len(_steps(stage))
    for fault in (None, FaultKind.RESPONSE_LOST):
        for at in range(1, count + 1):
            for side in _SIDES:
                stage.start_over(may_send=True)
                if fault is not None:
                    stage.plan(fault)
                yield at, side


def _steps(stage: Stage) -> list[str]:
    """The steps of one undisturbed pass that writes."""
    stage.start_over(may_send=True)
    process = stage.fresh()
    stage.run(process=process)
    return process.steps


def _reservation(stage: Stage) -> int:
    """The number of the step that reserves the attempt."""
    steps = _steps(stage)
    if "execute" not in steps:
        raise NotApplicable("the contract's checks let nothing be sent")
    before = steps[: steps.index("execute")]
    return max(number for number, name in enumerate(before, 1) if name in _RESERVE)
