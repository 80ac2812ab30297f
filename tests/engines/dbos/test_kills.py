"""Workers are killed around their writes, and fresh ones recover the workflows. The HTTP ledger counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from examples.http_ledger import client_killed, refused, slow_answer
from tests.engines.dbos.app import LONG_WINDOW
from tests.engines.dbos.conftest import World, wait_until


def test_a03_killed_after_the_write_an_effect_is_not_sent_again_and_a_plain_step_is(world: World) -> None:
    """Sync, async, and two effects in a gather, of which one is done and the other under way."""
    under_way = ["sync", "async-2", "naive", "naive-async"]
    world.http.fail_next(*(slow_answer(60, reference=reference) for reference in under_way))
    started = ["guarded=sync", "guarded_async=async-1,async-2", "naive=naive", "naive_async=naive-async"]

    with world.worker("start", *started) as first, world.spare(*started) as spare:
        for reference in under_way:
            world.http.wait_for_count(1, reference, timeout=30)
        world.wait_for_step("guarded_async", 1)
        reads = world.http.counts("async-1").read_requests
        first.kill()
        second = spare.launch()
        assert second.wait_for("done guarded ") == "done guarded sync"
        assert second.wait_for("done guarded_async") == "done guarded_async ['async-1', 'async-2']"
        assert second.wait() == 0

    counts = {reference: world.http.count(reference) for reference in [*under_way, "async-1"]}
    assert counts == {"sync": 1, "async-1": 1, "async-2": 1, "naive": 2, "naive-async": 2}
    assert world.http.counts("async-1").read_requests == reads  # replayed from its checkpoint


def test_killed_before_the_write_it_is_sent_once(world: World) -> None:
    world.http.fail_next(client_killed("before_commit"))

    started = ["guarded=sync", "guarded_async=async-1,async-2"]

    with world.worker("start", *started) as first, world.spare(*started) as spare:
        assert first.wait() == -9
        assert spare.launch().wait() == 0

    assert [world.http.count(reference) for reference in ("sync", "async-1", "async-2")] == [1, 1, 1]


def test_a_wait_goes_on_where_it_was_after_a_restart(world: World) -> None:
    """The window of an attempt is waited out once, not once for each worker."""
    world.http.fail_next(refused(503, reference="rf_81"))  # for all that is known, it may still land

    with world.worker("start", "patient=rf_81") as first, world.spare("patient") as spare:
        wait_until(lambda: world.http.counts("rf_81").read_requests == 1, 20)
        first.kill()
        second = spare.launch()
        second.wait_for("launched")
        launched = datetime.now(UTC)
        assert second.wait_for("done patient") == "done patient rf_81"

    first_attempt, second_attempt = world.operation("tests/late", "rf_81").attempts
    assert first_attempt.started and second_attempt.started
    settled = first_attempt.started + LONG_WINDOW
    recovered = launched + timedelta(seconds=1.5)  # DBOS looks for work once a second
    assert settled < second_attempt.started < max(settled, recovered) + timedelta(seconds=2)
    assert world.http.count("rf_81") == 1


def test_a07_two_live_processes_with_one_executor_id_send_an_effect_once(world: World) -> None:
    """The second one recovers what the first one is still doing: both run the step at once."""
    both = ["guarded_async=async", "guarded=sync", "naive=naive"]
    world.http.fail_next(*(slow_answer(5, reference=reference) for reference in ("sync", "async", "naive")))

    with world.spare(*both) as spare:
        spare.child.wait_for("ready")
        with world.worker("start", *both) as first:
            for reference in ("sync", "async", "naive"):
                world.http.wait_for_count(1, reference, timeout=30)
            for worker in (first, spare.launch()):
                assert worker.wait_for("done guarded ") == "done guarded sync"
                assert worker.wait() == 0

    counts = {reference: world.http.count(reference) for reference in ("sync", "async", "naive")}
    assert counts == {"sync": 1, "async": 1, "naive": 2}
