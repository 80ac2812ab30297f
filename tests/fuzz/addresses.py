"""Addresses of databases: whatever is wrong with one, its password is in no error, repr or log (T3)."""

from __future__ import annotations

import logging
import os
import pickle
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from unittest import mock

from hypothesis import strategies as st

from corrobo_core.commands import Load
from corrobo_core.errors import DsnError, LedgerUnavailable
from corrobo_core.ledgers.env import from_env
from corrobo_core.ledgers.postgres import PostgresLedger
from corrobo_core.ledgers.sqlite import SqliteLedger
from corrobo_core.records import OperationKey
from tests.fuzz.fuzzing import Target
from tests.fuzz.hostile import any_text

__all__ = ["ADDRESSES", "SECRET", "no_part_of_a_password_is_shown"]

SECRET = "hunter2hunter2"
VARIABLE = "FUZZED_DSN"
NOWHERE = "@127.0.0.1:1/db"  # nothing listens there


class Records(logging.Handler):
    """Everything that is logged, as text."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@contextmanager
def logged() -> Iterator[list[str]]:
    root, handler = logging.getLogger(), Records()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield handler.texts
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def no_part_of_a_password_is_shown(dsn: str) -> None:
    shown: list[str] = []
    with mock.patch.dict(os.environ), logged() as texts:
        if dsn.isprintable():
            os.environ[VARIABLE] = dsn
            shown += _tried(lambda: from_env(VARIABLE))
        shown += _tried(
            lambda: PostgresLedger(dsn, unavailable_after=timedelta(milliseconds=1)), connect=NOWHERE in dsn
        )
    for text in (*shown, *texts):
        assert SECRET not in text


def _tried(make: Callable[[], SqliteLedger | PostgresLedger], *, connect: bool = False) -> list[str]:
    """Everything that a ledger of this address shows of itself, and in what it raises."""
    try:
        ledger = make()
        shown = [repr(ledger), str(ledger)]
        if connect:
            ledger.perform(Load(OperationKey("default", "op", "type")))
    except (DsnError, LedgerUnavailable) as error:
        return ["".join(traceback.format_exception(error)), repr(error), repr(pickle.loads(pickle.dumps(error)))]
    return shown


_around = st.text(st.sampled_from("@:/?#%[] '\\=&;aé"), max_size=3)
_passwords = st.builds(lambda before, after: before + SECRET + after, _around, _around)

# Without a host, nobody can tell ``user:pass@word`` from a user, a password and a host.
_urls = st.builds(
    lambda scheme, user, password, rest: (
        f"{scheme}://{user}:{password if rest else password.replace('@', '')}{rest}"
    ),
    st.sampled_from(["postgresql", "postgres", "mysql", "sqlite", "", "POSTGRESQL"]),
    st.sampled_from(["app", "", "a b"]),
    _passwords,
    st.sampled_from([NOWHERE, "@127.0.0.1:notaport/db", "@[::1/db", "@/db", f"{NOWHERE}?sslmode=never", ""]),
)
_keywords = st.builds(
    lambda quote, password, rest: f"host=127.0.0.1 port=1 password={quote}{password}{quote}{rest}",
    st.sampled_from(["'", ""]),
    _passwords,
    st.sampled_from([" dbname=db", " nonsense", "", " connect_timeout=x"]),
)
_others = st.builds(
    lambda name, password: f"postgresql://app{NOWHERE}?{name}={password}",
    st.sampled_from(["password", "sslpassword", "oauth_client_secret"]),
    _passwords,
)

ADDRESSES = Target("dsn", {no_part_of_a_password_is_shown: _urls | _keywords | _others | any_text})
