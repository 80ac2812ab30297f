"""What the examples of people's decisions on DBOS share: DBOS itself, a reviewer, and how facts are printed."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dbos import DBOS

from corrobo_core.gates import ClaimOk, GateView
from corrobo_core.records import JSON
from corrobo_dbos import DbosGateClient, Delivered
from examples.http_ledger import HttpLedger, running_http_ledger


@contextmanager
def launched(folder: Path) -> Iterator[None]:
    """DBOS, launched with what was registered before; its database is in the folder."""
    DBOS(
        config={
            "name": "refunds",
            "application_version": "1",
            "system_database_url": f"sqlite:///{folder / 'dbos.db'}",
            "log_level": "ERROR",
        }
    )
    DBOS.launch()
    try:
        yield
    finally:
        DBOS.destroy()


def next_question(reviewer: DbosGateClient, known: Container[str] = (), timeout: float = 60.0) -> GateView:
    """The first question that waits and is not known yet.

    Raises:
        TimeoutError: there was none within ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        for view in reviewer.list_pending():
            if view.request_id not in known:
                return view
        time.sleep(0.05)
    raise TimeoutError("no question came")


def answer(reviewer: DbosGateClient, asked: GateView, response: JSON, name: str) -> Delivered:
    """What a reviewer's console does once a person has decided: claim the question, and submit the answer."""
    claim = reviewer.claim(asked.request_id, "console")
    assert isinstance(claim, ClaimOk)
    delivered = reviewer.submit(
        asked.request_id, claim.claim_token, "console", asked.request.digest, response, actor={"name": name}
    )
    assert isinstance(delivered, Delivered)
    return delivered


def show(run: Callable[[Path, HttpLedger], dict[str, Any]], *lines: str) -> None:
    """Run an example, and print its facts: as JSON with ``--json``, else in these lines, which name facts."""
    with TemporaryDirectory() as folder, running_http_ledger() as payments:
        facts = run(Path(folder), payments)
    if "--json" in sys.argv[1:]:
        print(json.dumps(facts, indent=2))
    else:
        print("\n".join(lines).format(**facts))
