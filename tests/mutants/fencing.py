"""Coordination: two passes of one operation, and owners that live or are dead."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_LIFECYCLE = "corrobo_core/lifecycle.py"
_MEMORY = "corrobo_core/ledgers/memory.py"
_SHARED = "corrobo_core/ledgers/_shared.py"
_SQLITE = "corrobo_core/ledgers/_sqlite_commands.py"
_OWNER_FILE = "corrobo_core/ledgers/_owner_file.py"
_DECISIONS = "corrobo_core/ledgers/_sqlite_decisions.py"

FENCING = (
    Mutant(
        "whoever_comes_makes_the_attempt",
        "C1",
        _LIFECYCLE,
        "if opened.mine and operation.reserved:",
        "if operation.reserved:",
        "Two callers of one operation both send.",
    ),
    Mutant(
        "nobody_is_left_alone",
        "C1",
        _LIFECYCLE,
        "if opened.holder is Holder.RUNNING and reading.now <= observable_from(operation.latest):",
        "if opened.holder is Holder.RUNNING and reading.now < reading.now:",
        "Every caller reads while the first is still sending, and takes its record away.",
    ),
    Mutant(
        "memory_writes_whatever_the_version",
        "C2",
        _MEMORY,
        "if stored is None or stored.version != operation.version or lapsed:",
        "if stored is None or lapsed:",
        "A worker that was paused overwrites what another has recorded, and both send.",
    ),
    Mutant(
        "sqlite_records_whatever_the_version",
        "C2",
        _SQLITE,
        " where ns = :ns and id = :id and version = :version returning started, corrobo_now()",
        " where ns = :ns and id = :id and :version = :version returning started, corrobo_now()",
        "A worker that was paused overwrites what another has recorded, and its attempt is forgotten.",
    ),
    Mutant(
        "its_own_write_is_not_recognised",
        "C2",
        _LIFECYCLE,
        "if stored is not None and stored.nonce == nonce:  # only the reply was lost (C2)",
        "if stored is not None and not stored.nonce:  # only the reply was lost (C2)",
        "A commit whose reply was lost costs an attempt, and the wait for its window.",
    ),
    Mutant(
        "what_a_loser_knows_is_lost",
        "C2",
        _LIFECYCLE,
        "        yield from KeepLate(self.call.key, made.number, made.nonce, late_evidence(mine, made))\n",
        "",
        "The provider's own reference of a payment, which a worker has seen, is nowhere to be found.",
    ),
    Mutant(
        "a_decision_does_not_move_the_version",
        "C2",
        _DECISIONS,
        "    connection.execute(_BUMP, place).fetchall()\n",
        "",
        "A pass that began before the rejection claims after it, and sends what was rejected.",
    ),
    Mutant(
        "sqlite_claims_whatever_the_version",
        "C3",
        _SQLITE,
        'where ns = :ns and id = :id and version = :version"\n',
        'where ns = :ns and id = :id and :version = :version"\n',
        "Two workers that retry both reserve, and both send.",
    ),
    Mutant(
        "every_other_process_is_dead",
        "C4",
        _SHARED,
        "if owner == own else lives(owner)",
        "if owner == own else False",
        "A worker that is just sending is taken for dead by every other process.",
    ),
    Mutant(
        "every_process_is_immortal",
        "C4",
        _OWNER_FILE,
        "    except FileNotFoundError:\n        return False\n    except OSError:\n        return True\n    try:",
        "    except OSError:\n        return True\n    try:",
        "The operations of a worker that was killed stay in progress for ever.",
    ),
    Mutant(
        "own_passes_never_end",
        "C4",
        _SHARED,
        "        self._running.discard(nonce)",
        "        pass",
        "An operation that a pass gave up stays in progress until the process is restarted.",
    ),
)
