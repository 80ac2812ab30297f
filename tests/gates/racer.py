"""One of the processes of `tests.gates.test_race`."""

from __future__ import annotations

from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier

from corrobo_core.gates import StoredGateClient
from tests.support.ledgers import ledger_at


def race(
    address: str, stream: str, router: str, request_ids: list[str], start: Barrier, results: Connection
) -> None:
    """Claim each request at the same moment as the other process; send which claims were won."""
    with ledger_at(address) as ledger:
        client = StoredGateClient(ledger, stream)
        won = []
        for request_id in request_ids:
            start.wait(30)
            claim = client.claim(request_id, router)
            won.append(claim.ok)
            assert claim.ok or claim.kind == "claimed", claim
        results.send(won)
