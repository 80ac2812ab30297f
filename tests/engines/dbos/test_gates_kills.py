"""Workers are killed while a question is open, and fresh ones go on. The HTTP ledger counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from corrobo_core.gates import GateStatus
from corrobo_dbos import DbosGateClient, Delivered
from tests.engines.dbos.app import LONG_WINDOW
from tests.engines.dbos.conftest import World
from tests.engines.dbos.questions import answered, waiting


def test_killed_between_the_wake_up_and_the_look_it_goes_on_with_the_answer_once(world: World) -> None:
    with (
        world.worker("start", "dying=rf_81") as first,
        world.spare("dying") as spare,
        world.client() as dbos,
        world.open_ledger() as ledger,
    ):
        reviewer = DbosGateClient(ledger, "dying", dbos=dbos)
        asked = waiting(reviewer, timeout=40)
        world.wait_for_step("dying", 3)
        assert isinstance(answered(reviewer, asked), Delivered)
        assert first.wait(40) == -9
        second = spare.launch()
        assert second.wait_for("done dying") == "done dying {'approved': True} rf_81"
        assert second.wait() == 0
        kinds = [event.kind for event in reviewer.history(asked.request_id)]

    assert kinds == ["callback-requested", "callback-claimed", "callback-submitted"]
    assert world.http.count("rf_81") == 1


def test_d01_d12_an_answer_given_while_no_worker_lives_shows_as_not_consumed_and_is_used_once(world: World) -> None:
    with (
        world.worker("start", "asking=rf_81") as first,
        world.spare("asking") as spare,
        world.client() as dbos,
        world.open_ledger() as ledger,
    ):
        reviewer = DbosGateClient(ledger, "asking", dbos=dbos)
        asked = waiting(reviewer, timeout=40)
        first.kill()
        assert isinstance(answered(reviewer, asked), Delivered)
        before = reviewer.progress(asked.request_id)
        assert before is not None and before.view.status is GateStatus.ANSWERED
        assert (before.consumed, before.workflow_status, before.application_version) == (False, "PENDING", "1")
        second = spare.launch()
        assert second.wait_for("done asking") == "done asking {'approved': True} rf_81"
        assert second.wait() == 0
        after = reviewer.progress(asked.request_id)
        assert after is not None and (after.consumed, after.workflow_status) == (True, "SUCCESS")

    assert world.http.count("rf_81") == 1


def test_d07_a_restart_does_not_extend_the_deadline(world: World) -> None:
    with (
        world.worker("start", "deadline=rf_81") as first,
        world.spare("deadline") as spare,
        world.client() as dbos,
        world.open_ledger() as ledger,
    ):
        reviewer = DbosGateClient(ledger, "deadline", dbos=dbos)
        asked = waiting(reviewer, timeout=40)
        first.kill()
        second = spare.launch()
        second.wait_for("launched")
        launched = datetime.now(UTC)
        assert second.wait_for("done deadline") == "done deadline expired"
        ended = datetime.now(UTC)
        left = reviewer.show(asked.request_id)

    assert left is not None and asked.deadline is not None
    assert (left.status, left.deadline) == (GateStatus.EXPIRED, asked.deadline)
    # DBOS looks for work once a second; a clock that started again would end LONG_WINDOW after the launch.
    assert ended < max(asked.deadline, launched + timedelta(seconds=1)) + LONG_WINDOW * 0.9
