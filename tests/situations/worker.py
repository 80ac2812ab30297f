"""A worker process: ``python -m tests.situations.worker {effect,naive} LEDGER HTTP_URL REFERENCE [DECLARED]``.

DECLARED is JSON: what the contract declares, in seconds, and the client's ``timeout``. The worker prints one
line of JSON: what it found out, or that it has sent.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from corrobo_core import EffectResult
from examples.http_ledger import HttpLedger
from tests.support.credits import CreditEffect, HttpxCredits, seconds, settle
from tests.support.ledgers import ledger_at


def declared(options: str) -> dict[str, Any]:
    """What the contract declares: numbers of seconds become timedeltas, counts stay."""
    given: dict[str, Any] = json.loads(options)
    return {k: seconds(v) if k not in ("max_attempts", "timeout") else v for k, v in given.items()}


def report(result: EffectResult[Any]) -> None:
    """One line of JSON."""
    print(
        json.dumps(
            {
                "disposition": result.disposition,
                "reason": result.reason,
                "outcomes": [attempt.outcome for attempt in result.attempts],
            }
        )
    )


def main(what: str, address: str, url: str, reference: str, options: str = "{}") -> None:
    """Make the credit, until it is decided."""
    given = declared(options)
    client = HttpxCredits(HttpLedger(url), given.pop("timeout", 10.0))
    if what == "naive":
        client.send(reference, 5_000)
        print("sent")
        return
    credit = CreditEffect(client, **given)
    with ledger_at(address) as ledger:
        report(settle(lambda: credit.run(ledger, reference)))


if __name__ == "__main__":
    main(*sys.argv[1:])
