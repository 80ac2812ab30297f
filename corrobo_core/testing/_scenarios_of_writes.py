"""What can become of a write: lost on the way, lost on the way back, late, refused, pending, reversed.

Source: semantics section 3, D2, D4, I5.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from corrobo_core.testing._registry import Scenarios
from corrobo_core.testing._stage import NotApplicable, Stage, say
from corrobo_core.testing.target import FaultKind

__all__ = ["OF_WRITES"]

OF_WRITES = Scenarios()

_HOUR = timedelta(hours=1)
_HUGE = "x" * (2 << 20)


@OF_WRITES.add
def normal(stage: Stage) -> None:
    """Nothing goes wrong, and the operation is called again after its end."""
    stage.must_complete(stage.finish())


@OF_WRITES.add
def response_lost(stage: Stage) -> None:
    """The write is carried out, and its answer is lost."""
    stage.plan(FaultKind.RESPONSE_LOST)
    stage.must_complete(stage.finish())


@OF_WRITES.add
def request_lost(stage: Stage) -> None:
    """The write never arrives, and its caller cannot tell."""
    stage.plan(FaultKind.REQUEST_LOST)
    stage.finish()


@OF_WRITES.add
def lands_before_window_ends(stage: Stage) -> None:
    """No answer, and the effect appears at half the declared window."""
    stage.plan(FaultKind.LANDS_LATE, stage.window / 2)
    stage.must_complete(stage.finish())


@OF_WRITES.add
def lands_as_window_ends(stage: Stage) -> None:
    """No answer, and the effect appears in the last instant of the declared window."""
    stage.plan(FaultKind.LANDS_LATE, stage.window)
    stage.must_complete(stage.finish())


@OF_WRITES.add
def lands_at_its_latest(stage: Stage) -> None:
    """No answer, and the effect appears as late as one ever does: after the window, if that is too short."""
    latest, window = stage.latest_landing(), stage.policy.window
    if window is not None and window < latest and (window or not stage.target.keeps_keys):
        stage.remedy = (
            f"in_flight_window is {say(window)}, and an effect lands up to {say(latest)} after it was sent:"
            " declare a longer window"
        )
    stage.plan(FaultKind.LANDS_LATE, latest)
    stage.must_complete(stage.finish())


@OF_WRITES.add
def answers_before_effect(stage: Stage) -> None:
    """The answer says that all is well, and the effect appears later."""
    if stage.policy.responds_after_effect:
        stage.remedy = "responds_after_effect is declared, and the target answers before the effect is there"
    stage.plan(FaultKind.ANSWERS_FIRST, stage.honest_landing())
    stage.must_complete(stage.finish())


@OF_WRITES.add
def refused(stage: Stage) -> None:
    """The provider refuses the write for good."""
    stage.plan(FaultKind.REFUSED)
    stage.finish()


@OF_WRITES.add
def second_attempt_refused(stage: Stage) -> None:
    """The first write is lost on its way, and the second one is refused."""
    stage.plan(FaultKind.REQUEST_LOST)
    stage.plan(FaultKind.REFUSED)
    stage.finish()


@OF_WRITES.add
def pending_then_settled(stage: Stage) -> None:
    """The effect is shown as pending until long after the window, and then as settled."""
    stage.plan(FaultKind.PENDING, 2 * stage.window + _HOUR)
    stage.must_complete(stage.finish())


@OF_WRITES.add
def pending_then_rejected(stage: Stage) -> None:
    """The effect is shown as pending until long after the window, and then as rejected."""
    stage.plan(FaultKind.PENDING_THEN_REJECTED, 2 * stage.window + _HOUR)
    stage.finish()


@OF_WRITES.add
def reversed_later(stage: Stage) -> None:
    """The effect is confirmed, and later reversed by the provider: never a reason to send again."""
    after = 2 * stage.window + _HOUR
    stage.plan(FaultKind.REVERSED, after)
    stage.run_until_closed()
    stage.clock.pass_by(2 * after)
    stage.wanted = 0
    stage.run(only_reads=True)
    stage.rest()


@OF_WRITES.add
def hostile_answers(stage: Stage) -> None:
    """The answer to the write is nonsense (null, empty, not text, far too long), and the effect appears later."""
    later = timedelta() if stage.policy.responds_after_effect else stage.honest_landing()
    for value in _NONSENSE:
        stage.start_over()
        stage.plan(FaultKind.GARBLED, later, value=value)
        stage.remedy = f"The answer was a {type(value).__name__}, {repr(value)[:40]}"
        stage.must_complete(stage.finish())


@OF_WRITES.add
def key_retention_over(stage: Stage) -> None:
    """The provider forgets the idempotency key while the first request still waits to be carried out."""
    declared, kept = stage.policy.key_retention, stage.target.keeps_keys
    if declared is None:
        raise NotApplicable("the contract declares no key_retention")
    if kept == timedelta.max:
        raise NotApplicable("the target never forgets a key")
    if declared > kept:
        stage.remedy = f"key_retention is {say(declared)}, and the target keeps keys for {say(kept)}"
    stage.plan(FaultKind.LANDS_LATE, stage.policy.window or kept * 1.5 + _HOUR)
    if kept:  # nothing can be read while it still knows the key
        stage.plan(FaultKind.READ_FAILS)
        stage.run_approved()
        stage.clock.pass_by(kept * 1.2)
    stage.finish()


class _Opaque:
    """Says nothing about itself."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


_NONSENSE: tuple[Any, ...] = (
    *(None, "", 0, False, [], {}, b"\xff", float("nan"), "\ud800", "a\x00b"),
    *(object(), _Opaque(), {1: {2, 3}}, _HUGE),
)
