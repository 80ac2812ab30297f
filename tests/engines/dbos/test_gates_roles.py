"""Two logins on PostgreSQL: the worker's may attempt, the reviewer's may decide, and DBOS carries no decision."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest

from corrobo_core import LedgerError, PostgresLedger, ReviewDesk
from corrobo_dbos import DbosGateClient, Delivered
from examples.http_ledger import HttpLedger
from tests.engines.dbos.conftest import World
from tests.engines.dbos.questions import answered, waiting
from tests.support.processes import ROOT
from tests.support.roles import Logins, allow_create, decisions, ledger_with_roles

PAGE = ROOT / "docs/how-to/review-over-dbos.md"


@dataclass(frozen=True)
class Sides:
    """One database: the worker's world, the reviewer's, and the logins."""

    worker: World
    reviewer: World
    logins: Logins


@pytest.fixture
def sides(postgres_dsn: str, http_ledger: HttpLedger) -> Iterator[Sides]:
    """The worker's login owns DBOS's schema, and the ledger's owner is neither."""
    with ledger_with_roles(postgres_dsn) as logins:
        allow_create(postgres_dsn, logins.roles.runner)
        yield Sides(
            World(http_ledger, logins.runner, logins.runner),
            World(http_ledger, logins.reviewer, logins.reviewer),
            logins,
        )


def let_reviewer_ask_dbos(logins: Logins, woken: bool = True) -> None:
    """Grant what the page says that the reviewer needs; all but its last line, if nobody is to be woken."""
    (block,) = re.findall(r'```sql title="reviewer.sql"\n(.*?)```', PAGE.read_text(), re.DOTALL)
    statements = block.replace("shop_reviewer", logins.roles.reviewer).splitlines()
    with psycopg.connect(logins.runner, autocommit=True) as connection:
        for statement in statements if woken else statements[:-1]:
            connection.execute(statement.encode())


def test_d12_the_runners_login_decides_nothing_the_reviewers_does_and_the_workflow_completes(sides: Sides) -> None:
    """The worker is killed meanwhile, with the question open. The twin, where one login may do both, decides:
    `test_a_review_is_asked_for_approved_and_the_effect_happens_once`.
    """
    worker, logins = sides.worker, sides.logins
    with (
        worker.worker("start", "reviewed=rf_81") as first,
        worker.spare("reviewed") as spare,
        worker.client() as engine,
        PostgresLedger(logins.runner) as ledger,
    ):
        mallory = DbosGateClient(ledger, "reviewed", dbos=engine, desk=ReviewDesk(ledger))
        asked = waiting(mallory, timeout=40)
        with pytest.raises(LedgerError, match="permission denied"):
            answered(mallory, asked, {"kind": "allow"}, "mallory")
        assert decisions(logins) == []
        first.kill()

        let_reviewer_ask_dbos(logins)
        with sides.reviewer.client() as dbos, PostgresLedger(logins.reviewer) as desk:
            reviewer = DbosGateClient(desk, "reviewed", dbos=dbos, desk=ReviewDesk(desk))
            assert reviewer.release_claim(asked.request_id, operator="ops", reason="may not decide").ok
            delivered = answered(reviewer, asked, {"kind": "allow"}, "ada")
            progress = reviewer.progress(asked.request_id)
        assert isinstance(delivered, Delivered) and delivered.woken
        assert progress is not None and progress.workflow_status == "PENDING"
        assert worker.http.count("rf_81") == 0

        second = spare.launch()
        assert second.wait_for("done reviewed") == "done reviewed rf_81"
        assert second.wait() == 0
    ((operation_id, _, kind, _, login),) = decisions(logins)
    assert (operation_id, kind, login) == ("rf_81", "approved", logins.roles.reviewer)
    assert worker.http.count("rf_81") == 1


def test_an_answer_by_a_login_that_may_wake_nobody_is_recorded_and_taken_at_the_next_look(sides: Sides) -> None:
    worker, logins = sides.worker, sides.logins
    with worker.worker("start", "looking=rf_81") as running:
        running.wait_for("launched", 40)
        let_reviewer_ask_dbos(logins, woken=False)
        with sides.reviewer.client() as dbos, PostgresLedger(logins.reviewer) as ledger:
            delivered = answered(reviewer := DbosGateClient(ledger, "looking", dbos=dbos), waiting(reviewer))
        assert isinstance(delivered, Delivered) and not delivered.woken
        assert running.wait_for("done looking") == "done looking {'approved': True}"
