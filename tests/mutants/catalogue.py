"""All mutants, and the rules that no mutant here can break."""

from __future__ import annotations

from tests.mutants.approvals import APPROVALS
from tests.mutants.evidence import EVIDENCE
from tests.mutants.fencing import FENCING
from tests.mutants.identity import IDENTITY
from tests.mutants.mutant import Mutant
from tests.mutants.people import PEOPLE
from tests.mutants.questions import QUESTIONS
from tests.mutants.sending import SENDING
from tests.mutants.settlement import SETTLEMENT

MUTANTS: tuple[Mutant, ...] = (
    *SETTLEMENT,
    *SENDING,
    *EVIDENCE,
    *FENCING,
    *IDENTITY,
    *PEOPLE,
    *QUESTIONS,
    *APPROVALS,
)

ELSEWHERE = {
    "T3": "what is kept of an exception decides nothing; tests/ledgers/test_redaction.py",
    "C6": "the explorer and the model hold no connections; tests/ledgers/postgres/test_pools.py",
    "C7": "needs a pooler; tests/ledgers/postgres/test_owner.py",
    "C8": "needs a standby, and a second schema; tests/ledgers/postgres/test_settings.py",
    "C9": "needs a server that restarts; tests/ledgers/postgres/test_faults.py",
    "C10": "needs a server's settings; tests/ledgers/test_sqlite_durability.py",
    "C11": "needs a fork; tests/ledgers/test_sqlite_owners.py, tests/ledgers/postgres/test_owner.py",
    "C12": "needs processes that start at once; tests/ledgers/test_sqlite_migrate.py",
    "R1": "needs roles of a database; tests/reviews/test_roles.py",
    "R9": "says what the library does not do",
}
"""Rules of engines, processes and files, which explorer and model do not have: where they are tried instead."""
