"""What can become of a read: it fails, is stale, is partial, goes back; and what it may show beside the effect.

Source: semantics section 4, I1.
"""

from __future__ import annotations

from datetime import timedelta

from corrobo_core.errors import IdentityReused
from corrobo_core.records import Disposition
from corrobo_core.testing._registry import Scenarios
from corrobo_core.testing._stage import ContractBroken, NotApplicable, Stage, ending, say
from corrobo_core.testing.target import FaultKind

__all__ = ["OF_READS"]

OF_READS = Scenarios()

_DAYS = timedelta(days=7)
_READS = ("observe", "reconcile", "authorize", "revalidate")


@OF_READS.add
def read_fails(stage: Stage) -> None:
    """The answer to the write is lost, and the first three reads fail."""
    stage.plan(FaultKind.RESPONSE_LOST)
    stage.plan(FaultKind.READ_FAILS, times=3)
    stage.remedy = "A read that fails proves nothing: let its error out of observe"
    stage.must_complete(stage.finish())


@OF_READS.add
def read_cannot_prove_absence(stage: Stage) -> None:
    """The answer to the write is lost, and the first three reads may have missed something, and say so."""
    stage.plan(FaultKind.RESPONSE_LOST)
    stage.plan(FaultKind.READ_PARTIAL, times=3)
    stage.remedy = "Such a read does not prove absence: say proves_absence=False, or read on"
    stage.must_complete(stage.finish())


@OF_READS.add
def reads_lag_as_declared(stage: Stage) -> None:
    """Every read is as stale as observation_lag says, and the effect lands in the last instant of the window."""
    lag = stage.policy.observation_lag
    if not lag:
        raise NotApplicable("the contract declares no observation_lag")
    _late_and_stale(stage, lag)


@OF_READS.add
def reads_lag_at_worst(stage: Stage) -> None:
    """Every read is as stale as the target's ever are: staler than observation_lag, if that is too short."""
    worst, declared = stage.target.reads_lag, stage.policy.observation_lag
    if not worst:
        raise NotApplicable("the target's reads are never stale")
    if declared < worst:
        stage.remedy = f"observation_lag is {say(declared)}, and reads of the target lag by up to {say(worst)}"
    _late_and_stale(stage, worst)


def _late_and_stale(stage: Stage, lag: timedelta) -> None:
    remedy = stage.remedy
    for write in (FaultKind.LANDS_LATE, None):
        stage.start_over()
        stage.remedy = remedy
        stage.plan(FaultKind.READ_STALE, lag, times=None)
        if write is not None:
            stage.plan(write, stage.window)
        stage.must_complete(stage.finish())


@OF_READS.add
def read_goes_backwards(stage: Stage) -> None:
    """One read shows the effect, pending if it can be, the next ones are staler, and a last one shows nothing."""
    if FaultKind.PENDING in stage.target.supports:
        stage.plan(FaultKind.PENDING, 2 * stage.window)
    stage.run_approved()
    stage.plan(FaultKind.READ_STALE, stage.target.reads_lag, times=2)
    stage.must_complete(stage.finish())
    stage.plan(FaultKind.READ_STALE, _DAYS)
    stage.run(only_reads=True)
    stage.must_complete(stage.rest())


@OF_READS.add
def observe_creates_nothing(stage: Stage) -> None:
    """The write never arrives; whatever looks for it must not write it."""
    stage.plan(FaultKind.REQUEST_LOST)
    try:
        stage.finish()
    except ContractBroken:
        _wrote_nothing(stage)
        raise
    _wrote_nothing(stage)


def _wrote_nothing(stage: Stage) -> None:
    for hook in _READS:
        if stage.wrote[hook]:
            raise ContractBroken(
                f"{hook} wrote {stage.wrote[hook]} time(s). It may only read: a call that creates what is missing,"
                " or replays a create by its idempotency key, is a write"
            )


# -- what else is there ----------------------------------------------------------------------------------------


@OF_READS.add
def two_decisions(stage: Stage) -> None:
    """Two decisions about the same thing, alike in everything but what names them: both take effect."""
    stage.remedy = "identity must differ from decision to decision"
    stage.must_complete(stage.finish(2))
    stage.wanted = 2
    stage.must_complete(stage.finish(1))


@OF_READS.add
def identity_reused(stage: Stage) -> None:
    """The same identity comes with another content: it is refused, and nothing is sent."""
    changed = stage.changed_intent()
    stage.remedy = "What an intent says must be bound to its identity: identity must not depend on it, nor volatile"
    stage.must_complete(stage.finish())
    sent = stage.target.writes()
    try:
        result = stage.run(intent=changed)
    except IdentityReused:
        if stage.target.writes() > sent:
            raise stage.broken("the call was refused, and something was sent") from None
        return
    raise stage.broken(f"a changed intent was accepted: {ending(result) if result else 'interrupted'}")


@OF_READS.add
def neighbours_effect(stage: Stage) -> None:
    """Another decision's effect is there, alike in everything but what names it."""
    for fault in (FaultKind.REQUEST_LOST, FaultKind.RESPONSE_LOST):
        stage.start_over()
        stage.finish(2)
        stage.remedy = "Another decision's effect was there: look for this operation's own reference"
        stage.wanted = 2
        stage.plan(fault)
        stage.finish(1)


@OF_READS.add
def many_neighbours(stage: Stage) -> None:
    """More effects of other decisions, before and after, than one read shows."""
    size = stage.target.page_size
    if size is None:
        raise NotApplicable("the target's reads are not paged")
    stage.remedy = f"A read shows {size} entries: read every page before absence is proven"
    for number in range(2, size + 3):
        stage.run_until_closed(number)
        stage.wanted += 1
    stage.plan(FaultKind.RESPONSE_LOST)
    stage.plan(FaultKind.READ_FAILS)
    stage.run_approved()
    for number in range(size + 3, 2 * size + 4):
        stage.wanted += 1
        stage.run_until_closed(number)
    stage.must_complete(stage.finish(1))


@OF_READS.add
def wrong_amount(stage: Stage) -> None:
    """An effect with this operation's own reference is there, and with another content."""
    changed = stage.changed_intent()
    stage.run_until_closed(intent=changed)
    stage.new_ledger()
    stage.remedy = "It carries this operation's reference, and another content: let reconcile compare that"
    stage.plan(FaultKind.REQUEST_LOST)
    result = stage.run_until_closed()
    if result is not None and result.disposition is Disposition.COMPLETE:
        raise stage.broken("COMPLETE was said about an effect of another content")
