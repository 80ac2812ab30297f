"""The effect that all engines run, its naive twin, and what every worker process needs."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

from corrobo_core import Effect, PostgresLedger
from examples.http_ledger import Credit, HttpLedger
from tests.soak.outside import LATEST_LANDING
from tests.support.credits import CreditEffect, HttpxCredits, seconds

AMOUNT = 5_000
CLIENT_TIMEOUT = 2.0
# An attempt begins to send within WINDOW - EXECUTE_TIMEOUT of its start, or never (L9); what it sends has landed
# LATEST_LANDING after it arrived.
EXECUTE_TIMEOUT = 3.0
WINDOW = 4.5
SLACK = EXECUTE_TIMEOUT - LATEST_LANDING  # seconds that a busy machine may lose between the check and the arrival

URL, LEDGER, PARENT = "SOAK_URL", "SOAK_LEDGER", "SOAK_PARENT"
_PR_SET_PDEATHSIG = 1


def client() -> HttpxCredits:
    """How a worker reaches the outside system."""
    return HttpxCredits(HttpLedger(os.environ[URL]), timeout=CLIENT_TIMEOUT)


def credit_effect() -> Effect[[str, int], Credit]:
    """One credit. Retried as often as it takes: what is counted is whether it happens once."""
    return CreditEffect(
        client(),
        in_flight_window=seconds(WINDOW),
        execute_timeout=seconds(EXECUTE_TIMEOUT),
        max_attempts=1_000,
    ).sync


def effect_ledger() -> PostgresLedger:
    """The ledger that all workers share."""
    return PostgresLedger(os.environ[LEDGER])


def end_with_parent() -> None:
    """End this process when the soak has ended without stopping it; on Linux also while it is stopped itself."""
    parent = int(os.environ[PARENT])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
