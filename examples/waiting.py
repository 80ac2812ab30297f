"""What the examples' reviewers do first: look until there is a question."""

from __future__ import annotations

import time
from collections.abc import Container

from corrobo_core.gates import GateView
from corrobo_dbos import DbosGateClient


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
