"""How an effect activity's end looks to workflow code, on a real server."""

from corrobo_core import MemoryLedger
from corrobo_temporal import effect_activity
from examples.http_ledger import Fault, HttpLedger, lands_late
from tests.engines.temporal.conftest import Engine
from tests.engines.temporal.effects import credit, soon


async def test_a_pass_that_may_come_back_is_retried_by_the_server(engine: Engine, http_ledger: HttpLedger) -> None:
    http_ledger.fail_next(lands_late(0.3))
    await engine.serve(effect_activity(soon, MemoryLedger()))
    ended = await engine.end_of("soon", "rf_1")
    assert ended.result["reference"] == "rf_1"
    assert http_ledger.count("rf_1") == 1


async def test_with_one_attempt_the_first_come_back_later_is_the_end_and_still_tells(
    engine: Engine, http_ledger: HttpLedger
) -> None:
    http_ledger.fail_next(lands_late(0.3))
    await engine.serve(effect_activity(credit, MemoryLedger()))
    ended = await engine.end_of("credit", "rf_1", maximum_attempts=1)
    assert ended.shape == ["ActivityError", "corrobo.NotYet"]
    assert (ended.operation_id, ended.disposition, ended.reason) == ("rf_1", "RETRY", "SETTLING")
    assert ended.retry_state == "MAXIMUM_ATTEMPTS_REACHED"


async def test_a_schedule_to_close_end_before_the_next_pass_keeps_its_cause(
    engine: Engine, http_ledger: HttpLedger
) -> None:
    http_ledger.fail_next(lands_late(0.3))
    await engine.serve(effect_activity(credit, MemoryLedger()))
    ended = await engine.end_of("credit", "rf_1", schedule_to_close=0.9)
    assert ended.shape == ["ActivityError", "corrobo.NotYet"]
    assert (ended.retry_state, ended.reason) == ("TIMEOUT", "SETTLING")


async def test_a_schedule_to_close_end_in_a_later_pass_keeps_the_last_failure(
    engine: Engine, http_ledger: HttpLedger
) -> None:
    http_ledger.fail_next(lands_late(0.3), Fault(on="read"), Fault(on="read", delay_answer=4.0))
    await engine.serve(effect_activity(soon, MemoryLedger()))
    ended = await engine.end_of("soon", "rf_1", schedule_to_close=3.0)
    assert ended.shape == ["ActivityError", "TimeoutError SCHEDULE_TO_CLOSE", "corrobo.NotYet"]
    assert (ended.operation_id, ended.disposition, ended.reason) == ("rf_1", "RETRY", "SETTLING")
