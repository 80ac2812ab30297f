"""A worker gets SIGKILL around its write. The HTTP ledger counts."""

import pytest

from examples.http_ledger import HttpLedger, client_killed
from tests.engines.temporal.conftest import Engine


async def _killed(engine: Engine, http_ledger: HttpLedger, activity: str, when: str) -> int:
    http_ledger.fail_next(client_killed(when))  # type: ignore[arg-type]
    workers = await engine.start_workers(2)
    handle = await engine.start_call(activity, "rf_81")
    result = await handle.result()
    assert result["reference"] == "rf_81"
    assert sorted(str(worker.returncode) for worker in workers) == ["-9", "None"]
    return http_ledger.count("rf_81")


@pytest.mark.parametrize(
    ("activity", "when", "writes"),
    [
        ("credit", "after_commit", 1),
        ("credit_async", "after_commit", 1),
        ("soon", "before_commit", 1),
        ("soon_async", "before_commit", 1),
        ("naive", "after_commit", 2),
        ("naive_async", "after_commit", 2),
    ],
)
async def test_killed_around_its_write(
    engine: Engine, http_ledger: HttpLedger, activity: str, when: str, writes: int
) -> None:
    assert await _killed(engine, http_ledger, activity, when) == writes
