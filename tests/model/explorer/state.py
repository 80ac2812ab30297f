"""One state of the explored world, and the configurations that bound it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.model.explorer.contract import Seen
from tests.model.explorer.outside import Requests


class Hook(NamedTuple):
    """A hook that is going on.

    Attributes:
        began: when it was called; for a request, when its attempt was reserved, which is all that it depends on.
        request: index of the request that it has sent; -1 for a read.
        seen: what a read has found.
    """

    began: int
    request: int = -1
    seen: Seen | None = None


class Going(NamedTuple):
    """One pass that goes on.

    Attributes:
        point: number of the point that it has reached.
        owned: its process's lock is held; else it is taken for dead, though it goes on.
        since: when it was told the latest, and so when it asks what it asks now.
        hook: the hook that is going on.
        waits: it does nothing of its own before the next second.
        cleared: its latest read began when nothing sent before could land any more.
        reserved: when its attempt was reserved.
        unrecorded: index of the request whose hook has ended, which nothing stored says yet; -1: none.
    """

    point: int
    owned: bool
    since: int
    hook: Hook | None = None
    waits: bool = False
    cleared: bool = False
    reserved: int = 0
    unrecorded: int = -1


class State(NamedTuple):
    """Everything that what happens next can depend on.

    Attributes:
        now: seconds since the start.
        stored: number of what the ledger holds.
        passes: sorted: which of two equal processes makes which pass does not matter.
        requests: the outside system.
        faults: so many more things may go wrong.
        words: so many more things may the review desk say.
        starts: so many more passes of each kind may begin; -1: any number.
        behind: so many seconds has the ledger's clock gone back.
    """

    now: int
    stored: int
    passes: tuple[Going, ...]
    requests: Requests
    faults: int
    words: int
    starts: tuple[int, ...]
    behind: int = 0

    @property
    def clock(self) -> int:
        """The ledger's clock."""
        return self.now - self.behind


@dataclass(frozen=True, slots=True)
class Deployed:
    """One kind of process, and the contract that it carries.

    Attributes:
        name: "runner", "recoverer".
        limit: so many of its passes go on at the same time, at most.
        only_reads: it runs ``observe``.
        observe_now: it does not wait for ``retry_at``.
        only_first: its passes begin only where no operation is recorded yet.
        times: so many of its passes begin, at most; None: any number.
        declared: what it declares otherwise than the configuration.
        lands: until so many seconds after its start an attempt's effect really lands, at the latest.
    """

    name: str
    limit: int = 1
    only_reads: bool = False
    observe_now: bool = False
    only_first: bool = False
    times: int | None = None
    declared: dict[str, Any] = field(default_factory=dict)
    lands: int = 1


FAULTS = frozenset(
    {
        "crash",  # a process dies, at any command
        "owner lost",  # a process that lives is taken for dead
        "reply lost",  # a write is committed, and asked again since its reply was lost
        "unavailable",  # a write is committed or not, and the ledger gives up
        "paused",  # a process stands still between its reservation and its send, for a second or more
        "no answer",  # a provider that answers does not
        "slow statement",  # a statement waits a second before it counts
        "read fails",
        "not sent",
        "refused",
        "refused for good",
        "interrupted",
        "clock back",  # the ledger's clock goes back by a second
        "late send",  # a hook overruns its timeout, and its request goes out at its end
    }
)


@dataclass(frozen=True, slots=True)
class Configuration:
    """What is explored to exhaustion.

    Attributes:
        name: of it.
        about: what it is there for.
        processes: who makes passes.
        declared: the contract.
        faults: which may happen.
        budget: how many of them, in all.
        words: how often the review desk decides.
        horizon: the last second of the explored time.
        answers: the provider answers, maybe before the effect; else nobody ever hears of a request again.
        asks: the contract has ``authorize`` (always a review) and ``revalidate``.
        proves_absence: its reads do.
        shows_pending: a read tells that a request is on its way, or does not.
        lag: how stale a read can be, seconds.
        late: the provider lands so many seconds later than the contract says. Dishonest.
    """

    name: str
    about: str
    processes: tuple[Deployed, ...]
    declared: dict[str, Any]
    faults: frozenset[str] = frozenset()
    budget: int = 1
    words: int = 0
    horizon: int = 2
    answers: bool = False
    asks: bool = False
    proves_absence: bool = True
    shows_pending: bool = False
    lag: int = 0
    late: int = 0
