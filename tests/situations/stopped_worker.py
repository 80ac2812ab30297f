"""A worker that stops itself (SIGSTOP) once its attempt is reserved, before anything is sent.

``python -m tests.situations.stopped_worker {kept,removed} LEDGER HTTP_URL REFERENCE WINDOW``: with the check of
rule L9 as it is, or removed. Prints which attempt sends, and at the end one line of JSON.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from dataclasses import replace
from typing import Any

from corrobo_core import current_attempt
from corrobo_core.commands import Execute, Open
from corrobo_core.hooks import Hooks
from examples.http_ledger import Credit, HttpLedger
from tests.situations.worker import report
from tests.support.credits import CreditEffect, HttpxCredits, seconds, settle
from tests.support.ledgers import AnyLedger, ledger_at


def stop_once_reserved(ledger: AnyLedger) -> None:
    """Stop the whole process when the reservation has been confirmed."""
    perform = ledger.perform

    def and_stop(command: Any) -> Any:
        reply = perform(command)
        if isinstance(command, Open) and reply.mine:
            # To this very thread, so that it does not get any further.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        return reply

    ledger.perform = and_stop  # type: ignore[method-assign]


def remove_the_check() -> None:
    """The mutant: an attempt may begin however late it is."""
    prepare = Hooks.prepare

    def prepare_anyway(self: Hooks, command: Any) -> Any:
        if isinstance(command, Execute):
            command = replace(command, not_after=None)
        return prepare(self, command)

    Hooks.prepare = prepare_anyway  # type: ignore[method-assign]


def main(check: str, address: str, url: str, reference: str, window: str) -> None:
    """Make the credit, until it is decided."""
    if check == "removed":
        remove_the_check()
    client = HttpxCredits(HttpLedger(url))

    def send(about: str, amount_cents: int) -> Credit:
        print(f"attempt {current_attempt().number} sends")
        return client.send(about, amount_cents)

    credit = CreditEffect(client, send=send, in_flight_window=seconds(float(window)))
    with ledger_at(address) as ledger:
        stop_once_reserved(ledger)
        report(settle(lambda: credit.run(ledger, reference)))


if __name__ == "__main__":
    print(os.getpid())
    main(*sys.argv[1:])
