"""Record the histories anew: ``python -m tests.engines.record_histories``.

Only after a change that running workflows do not need to survive: what is recorded is what a release promises to
replay. Keep the old files, under another name, as long as workflows of that release may run.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from temporalio.client import Client

from tests.engines.temporal.scenarios import CACHES, SCENARIOS, play
from tests.support.temporal import running_temporal

HISTORIES = Path(__file__).with_name("histories")


async def record(address: str) -> None:
    """Play every scenario, cached and not, and write what each run left."""
    client = await Client.connect(address, identity="recorder")
    for name in SCENARIOS:
        for cache in CACHES:
            for number, history in enumerate(await play(name, cache, client), 1):
                path = HISTORIES / f"{name}-{cache}-{number}.json"
                path.write_text(json.dumps(_plain(history.to_json_dict()), indent=1, sort_keys=True) + "\n")
                print(path.name)


def _plain(recorded: Any) -> Any:
    """Without the paths, hosts and process ids of whoever records; no replay reads them."""
    if isinstance(recorded, list):
        return [_plain(each) for each in recorded]
    if not isinstance(recorded, dict):
        return recorded
    named = {"identity": "recorder"} if "identity" in recorded else {}
    kept = {name: _plain(value) for name, value in recorded.items() if name not in ("stackTrace", "binaryChecksum")}
    return {**kept, **named}


def main() -> None:
    """Start a server, and record."""
    HISTORIES.mkdir(exist_ok=True)
    with running_temporal() as address:
        asyncio.run(record(address))


if __name__ == "__main__":
    main()
