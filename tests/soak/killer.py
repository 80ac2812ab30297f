"""The killer: at times drawn from the seed it kills, cuts, stops and restarts what the soak runs on.

It keeps to what the library promises. One thing is beyond that, and documented: a process that stands still inside
its hook, between the last check and the send, and whose session is lost as well, can send after others have given
it up. So while a worker is stopped, and until what it sends then has landed, neither it nor a session is ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import psycopg

from tests.soak.effects import SLACK, WINDOW
from tests.soak.outside import LATEST_LANDING, Outside
from tests.soak.processes import Fleet, Worker
from tests.support.postgres import PostgresServer

STOPPED_FOR = WINDOW + 1.0
SPARED_FOR = LATEST_LANDING + SLACK  # after it goes on

WORKER_KILLED, WORKER_STOPPED = "worker_killed", "worker_stopped"
OWNER_CUT, BACKEND_CUT, RESTARTED = "owner_session_terminated", "backend_terminated", "postgres_restarted"
KINDS = [WORKER_KILLED, WORKER_STOPPED, OWNER_CUT, BACKEND_CUT, RESTARTED]

EVERY = {WORKER_KILLED: 2.5, OWNER_CUT: 5.0, BACKEND_CUT: 3.0}  # seconds, on average
STOP_EVERY = 30.0

ALL_OWNERS = """
select pid from pg_locks where locktype = 'advisory' and granted
and database = (select oid from pg_database where datname = current_database()) order by pid"""
ALL_BACKENDS = """
select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() order by pid"""


@dataclass(frozen=True, order=True)
class Strike:
    """What is to happen, and when: seconds after the start."""

    at: float
    kind: str


def drawn(seconds: float, draw: Random) -> list[Strike]:
    """All strikes of a soak: each kind happens, and PostgreSQL restarts once, in the middle."""
    strikes = [Strike(seconds * draw.uniform(0.65, 0.75), RESTARTED)]
    stops = max(1, int(seconds / STOP_EVERY))
    strikes += [
        Strike(seconds * (number + draw.uniform(0.05, 0.2)) / stops, WORKER_STOPPED) for number in range(stops)
    ]
    for kind, every in EVERY.items():
        count = max(2, round(seconds / every))
        strikes += [Strike(seconds * draw.uniform(0.05, 1.0), kind) for _ in range(count)]
    return sorted(strikes)


class Killer:
    """Strikes when it is time, or as soon as it may.

    Args:
        strikes: what is to happen.
        ledger_dsn: the database of the effect ledger, whose advisory locks are the owners'.

    Attributes:
        injected: how often each kind happened.
    """

    def __init__(
        self,
        strikes: list[Strike],
        draw: Random,
        fleet: Fleet,
        server: PostgresServer,
        ledger_dsn: str,
        outside: Outside,
    ) -> None:
        self._pending, self._draw = list(strikes), draw
        self._fleet, self._server, self._ledger_dsn, self._outside = fleet, server, ledger_dsn, outside
        self._stopped: Worker | None = None
        self._resume_at = self._spared_until = 0.0
        self.injected: Counter[str] = Counter()
        self._strike: dict[str, Callable[[float], bool]] = {
            WORKER_KILLED: self._kill,
            WORKER_STOPPED: self._stop,
            OWNER_CUT: lambda _: self._cut(ALL_OWNERS),
            BACKEND_CUT: lambda _: self._cut(ALL_BACKENDS),
            RESTARTED: self._restart,
        }

    @property
    def busy(self) -> bool:
        """Whether a worker is stopped or spared, or PostgreSQL has yet to restart."""
        return self._stopped is not None or any(
            strike.kind in (WORKER_STOPPED, RESTARTED) for strike in self._pending
        )

    def tick(self, now: float) -> None:
        """Do what is due.

        Args:
            now: seconds since the start.
        """
        self._let_go_on(now)
        for strike in [strike for strike in self._pending if strike.at <= now]:
            if self._allowed(strike.kind) and self._strike[strike.kind](now):
                self.injected[strike.kind] += 1
                self._pending.remove(strike)

    def rest(self) -> None:
        """Strike no more."""
        self._pending.clear()

    def _allowed(self, kind: str) -> bool:
        return kind == WORKER_KILLED or self._stopped is None

    # -- workers ------------------------------------------------------------------------------------------------

    def _kill(self, now: float) -> bool:
        alive = [w for w in self._fleet.workers if w is not self._stopped and w.process.returncode is None]
        if alive:
            self._draw.choice(alive).process.kill()
        return bool(alive)

    def _stop(self, now: float) -> bool:
        self._outside.kills(False)
        worker = self._draw.choice(self._fleet.workers)
        if worker.process.returncode is not None:
            self._outside.kills(True)
            return False
        worker.process.pause()
        worker.paused, self._stopped = True, worker
        self._resume_at = now + STOPPED_FOR
        self._spared_until = self._resume_at + SPARED_FOR
        return True

    def _let_go_on(self, now: float) -> None:
        worker = self._stopped
        if worker is None:
            return
        if worker.paused and now >= self._resume_at:
            worker.process.resume()
            worker.paused = False
            self._spared_until = now + SPARED_FOR
        if not worker.paused and now >= self._spared_until:
            self._stopped = None
            self._outside.kills(True)

    # -- PostgreSQL ---------------------------------------------------------------------------------------------

    def _cut(self, query: str) -> bool:
        with psycopg.connect(self._ledger_dsn, autocommit=True) as admin:
            found = [pid for (pid,) in admin.execute(query.encode())]
            if not found:
                return False
            cut = admin.execute("select pg_terminate_backend(%s, 2000)", (self._draw.choice(found),)).fetchone()
            return cut == (True,)

    def _restart(self, now: float) -> bool:
        self._server.crash()
        self._server.start()
        return True
