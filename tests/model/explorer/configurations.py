"""What is explored, each to its end: one contract, the processes that carry it, and what may go wrong.

Time is in whole seconds. Windows are a second, hooks may take half a second, waits are a second: an attempt
reserved at 0 may be followed by another at 2, which has settled at 4. A horizon of 2 therefore holds two attempts
with everything that can come between them; what follows is explored by one process left alone (see `finishing`).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from corrobo_core import Backoff, RetryPolicy
from tests.model.explorer.state import FAULTS, Configuration, Deployed

SECOND = timedelta(seconds=1)
_EVERY_SECOND = Backoff(SECOND, SECOND)


def declared(window: int | None = 1, **more: Any) -> dict[str, Any]:
    """A contract of two attempts, whose waits are a second each; its hook may take half a second."""
    bounds = {} if window is None else {"in_flight_window": window * SECOND, "execute_timeout": SECOND / 2}
    return {**bounds, "retry": RetryPolicy(max_attempts=2, backoff=_EVERY_SECOND), "poll": _EVERY_SECOND, **more}


_NOT_DECLARED = {"in_flight_window": None, "execute_timeout": None}

WORKERS = (Deployed("worker", limit=2),)
RECOVERER = Deployed("recoverer", only_reads=True, times=1)
IMPATIENT = Deployed("recoverer", observe_now=True, times=1)

FULL = (
    Configuration(
        "crashes",
        "processes die, and are taken for dead though they live; effects land late, and nobody hears of it",
        WORKERS,
        declared(),
        faults=frozenset({"crash", "owner lost"}),
        budget=2,
    ),
    Configuration(
        "pauses",
        "a process stands still between its reservation and its send; statements wait for locks",
        WORKERS,
        declared(),
        faults=frozenset({"paused", "slow statement", "owner lost"}),
        budget=2,
    ),
    Configuration(
        "lost replies",
        "a commit whose reply is lost is asked again; a ledger that does not answer; cancellation",
        WORKERS,
        declared(),
        faults=frozenset({"reply lost", "unavailable", "interrupted", "paused"}),
    ),
    Configuration(
        "answers",
        "an answer precedes its effect; refusals, for now and for good; a request that never left",
        WORKERS,
        declared(),
        answers=True,
        faults=frozenset({"no answer", "refused", "refused for good", "not sent", "crash"}),
    ),
    Configuration(
        "answers after the effect",
        "the answer means that the effect is there, and is seen by reads a second later",
        WORKERS,
        declared(responds_after_effect=True, observation_lag=SECOND),
        answers=True,
        lag=1,
        horizon=3,
        faults=frozenset({"no answer", "refused"}),
    ),
    Configuration(
        "stale reads",
        "reads are up to a second old, and go back",
        WORKERS,
        declared(observation_lag=SECOND),
        lag=1,
        horizon=3,
        faults=frozenset({"crash"}),
    ),
    Configuration(
        "overruns",
        "a hook overruns its timeout and sends late; reads fail",
        WORKERS,
        declared(),
        faults=frozenset({"late send", "crash", "read fails"}),
    ),
    Configuration(
        "recoverer",
        "a worker, and a recoverer that only reads",
        (Deployed("worker"), RECOVERER),
        declared(),
        faults=frozenset({"crash", "owner lost", "read fails"}),
        budget=2,
    ),
    Configuration(
        "no window",
        "nobody can say how long an effect may take; the desk attests what is there",
        WORKERS,
        declared(None),
        words=1,
        faults=frozenset({"crash", "read fails"}),
    ),
    Configuration(
        "attested",
        "a person attests while an effect may still land; attempts are used up",
        WORKERS,
        declared(retry=RetryPolicy(max_attempts=1)),
        words=1,
        faults=frozenset({"crash", "read fails"}),
        budget=2,
    ),
    Configuration(
        "converging",
        "a read may say that an effect is on its way",
        WORKERS,
        declared(),
        shows_pending=True,
        faults=frozenset({"crash"}),
    ),
    Configuration(
        "searching",
        "a read cannot prove absence; the desk attests",
        WORKERS,
        declared(),
        proves_absence=False,
        lag=9,
        words=1,
        faults=frozenset({"crash"}),
    ),
    Configuration(
        "reviews",
        "every attempt needs an approval, which expires, is revoked or is a rejection",
        (Deployed("worker"), Deployed("other worker", times=1)),
        declared(),
        asks=True,
        words=2,
    ),
    Configuration(
        "rolling deploy",
        "one worker carries a contract with a shorter window",
        (
            Deployed("new worker", declared={"in_flight_window": SECOND, "execute_timeout": SECOND / 2}),
            Deployed("old worker", lands=2),
        ),
        declared(2),
        horizon=3,
        faults=frozenset({"crash", "owner lost"}),
    ),
    Configuration(
        "slower since a deploy",
        "the first attempt was sent by a worker that knew of a shorter window",
        (
            Deployed("new worker", limit=2, lands=2),
            Deployed("old worker", only_first=True, lands=2, declared={"in_flight_window": SECOND}),
        ),
        declared(2, execute_timeout=SECOND / 2),
        horizon=3,
        faults=frozenset({"crash"}),
    ),
    Configuration(
        "declared since a deploy",
        "the first attempt was sent when nobody could say how long an effect may take",
        (Deployed("new worker", limit=2), Deployed("old worker", only_first=True, lands=3, declared=_NOT_DECLARED)),
        declared(),
        words=1,
        faults=frozenset({"crash"}),
    ),
    Configuration(
        "clock steps",
        "the ledger's clock goes back; a worker's own is decades ahead throughout",
        WORKERS,
        declared(),
        faults=frozenset({"clock back", "crash"}),
        budget=2,
    ),
    Configuration(
        "three passes",
        "two workers and a recoverer at the same time",
        (*WORKERS, RECOVERER),
        declared(),
        faults=frozenset({"crash", "owner lost"}),
    ),
    Configuration(
        "impatient",
        "two workers, and a pass that may attempt and does not wait for its time",
        (*WORKERS, IMPATIENT),
        declared(),
    ),
    Configuration(
        "everything",
        "any one fault of any kind, with stale reads, an answer before its effect and an attestation",
        (Deployed("worker"), RECOVERER),
        declared(observation_lag=SECOND),
        answers=True,
        lag=1,
        words=1,
        horizon=3,
        faults=FAULTS,
    ),
)


_FULL = {configuration.name: configuration for configuration in FULL}


def _smaller(name: str, *faults: str, **changes: Any) -> Configuration:
    return replace(_FULL[name], faults=frozenset(faults), **{"budget": 1, **changes})


def _one_of_each(name: str) -> tuple[Deployed, ...]:
    return tuple(replace(process, limit=1) for process in _FULL[name].processes)


QUICK = (
    _smaller("crashes", "crash", "owner lost"),
    _smaller("attested", "read fails", budget=2, processes=_one_of_each("attested")),
    _smaller("reviews", "crash", processes=_one_of_each("reviews")[:1]),
    _smaller("stale reads"),
    _smaller("no window"),
    _smaller("converging"),
    _smaller("answers after the effect"),
    _smaller("answers", "no answer", "refused", "refused for good", "not sent"),
    _smaller("declared since a deploy", words=0),
    _smaller("slower since a deploy", processes=_one_of_each("slower since a deploy")),
    _smaller("clock steps", "clock back"),
    _smaller("searching", processes=_one_of_each("searching")),
    _smaller("overruns", "late send", "crash", "read fails"),
    _smaller("rolling deploy"),
    _smaller("pauses", "paused", "owner lost", budget=2),
    _smaller("lost replies", "reply lost", "unavailable", "interrupted"),
)
"""Smaller forms of the same, which find most bugs in seconds."""
