"""The privilege boundary on PostgreSQL, with real logins (R1): whatever SQL a runner sends, no decision changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import psycopg
import pytest

from corrobo_core import (
    DecisionRefused,
    EffectRunner,
    LedgerError,
    PostgresLedger,
    ReviewDesk,
    ReviewError,
    Roles,
    UsageError,
)
from tests.reviews.test_reviews import RealClock, World, needs_review, refund_effect
from tests.support.roles import Logins, decisions, ledger_with_roles


@pytest.fixture
def logins(postgres_dsn: str) -> Iterator[Logins]:
    with ledger_with_roles(postgres_dsn) as made:
        yield made


@pytest.fixture
def world() -> World:
    return World(RealClock())


def awaiting(logins: Logins, world: World, operation_id: str = "rf_1") -> str:
    """An operation that waits for a review; its token."""
    with PostgresLedger(logins.runner) as ledger, pytest.raises(ReviewError) as waiting:
        EffectRunner(ledger).run(refund_effect(world, authorize=needs_review), operation_id).unwrap()
    assert waiting.value.token is not None
    return waiting.value.token


def test_r1_the_runner_attempts_and_the_reviewer_decides(logins: Logins, world: World) -> None:
    token = awaiting(logins, world)
    with PostgresLedger(logins.reviewer) as ledger:
        ReviewDesk(ledger).approved("rf_1", token=token, reviewer="ann")
    with PostgresLedger(logins.runner) as ledger:
        refund = refund_effect(world, authorize=needs_review)
        assert EffectRunner(ledger).run(refund, "rf_1").unwrap() == "rf_1"
    assert world.effects == ["rf_1"]


def test_r1_a_runner_cannot_decide_through_the_desk(logins: Logins, world: World) -> None:
    token = awaiting(logins, world)
    with PostgresLedger(logins.runner) as ledger, pytest.raises(LedgerError, match="permission denied"):
        ReviewDesk(ledger).approved("rf_1", token=token, reviewer="mallory")
    assert decisions(logins) == []


def test_r9_the_desk_records_whom_the_application_names_and_postgresql_who_was_logged_in(
    logins: Logins, world: World
) -> None:
    """Nobody asks whether it is ann: the name is the application's word, the login is the server's."""
    token = awaiting(logins, world)
    with PostgresLedger(logins.reviewer) as ledger:
        ReviewDesk(ledger).approved("rf_1", token=token, reviewer="ann, by telephone")
    ((_, _, kind, document, login),) = decisions(logins)
    assert (kind, login) == ("approved", logins.roles.reviewer)
    assert json.loads(str(document))["reviewer"] == "ann, by telephone"


def test_r1_a_reviewer_cannot_attempt(logins: Logins, world: World) -> None:
    with PostgresLedger(logins.reviewer) as ledger, pytest.raises(LedgerError, match="permission denied"):
        EffectRunner(ledger).run(refund_effect(world), "rf_1")
    assert world.effects == []


FORGERIES = {
    "insert": "insert into corrobo.decision (ns, id, token, kind, recorded, login, doc)"
    " values ('default', 'rf_1', 'x', 'approved', now(), 'ann', '{}')",
    "change": "update corrobo.decision set kind = 'approved'",
    "delete": "delete from corrobo.decision",
    "truncate": "truncate corrobo.decision",
    "truncate by cascade": "truncate corrobo.operation cascade",
    "delete the operation": "delete from corrobo.operation",
    "rename the operation": "update corrobo.operation set id = 'other'",
    "call the function": "select * from corrobo.decide("
    "'default', 'rf_1', 'x', 'approved', 'ann', null, null, null, '', null)",
    "replace the function": "create or replace function corrobo.decide(text) returns int language sql"
    " as 'select 1'",
    "take the table": "alter table corrobo.decision owner to current_user",
    "drop the table": "drop table corrobo.decision cascade",
    "drop the schema": "drop schema corrobo cascade",
    "disable the foreign key": "alter table corrobo.decision disable trigger all",
    "add a rule": "create rule r as on insert to corrobo.decision do instead nothing",
    "grant itself": "grant all on corrobo.decision to current_user",
    "become the reviewer": "set role {reviewer}",
    "become the owner": "set session authorization {owner}",
    "replicate": "set session_replication_role = replica",
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_r1_whatever_the_runner_sends_no_decision_changes(logins: Logins, world: World, forgery: str) -> None:
    token = awaiting(logins, world)
    with PostgresLedger(logins.reviewer) as ledger:
        ReviewDesk(ledger).rejected("rf_1", token=token, reviewer="ann")
    before = decisions(logins)
    owner = str(urlsplit(logins.owner).username)
    attack = FORGERIES[forgery].replace("{reviewer}", logins.roles.reviewer).replace("{owner}", owner)
    with psycopg.connect(logins.runner, autocommit=True) as connection:
        if forgery == "grant itself":  # PostgreSQL warns, and grants nothing
            connection.execute(attack.encode())
        else:
            with pytest.raises(psycopg.Error):
                connection.execute(attack.encode())
    assert before
    assert decisions(logins) == before


def test_the_forgeries_can_succeed_with_the_owners_login(logins: Logins, world: World) -> None:
    """So that the test above can fail."""
    token = awaiting(logins, world)
    with PostgresLedger(logins.reviewer) as ledger:
        ReviewDesk(ledger).rejected("rf_1", token=token, reviewer="ann")
    with psycopg.connect(logins.owner, autocommit=True) as connection:
        connection.execute(FORGERIES["change"].encode())
    assert [row[2] for row in decisions(logins)] == ["approved"]


def test_r1_a_login_that_owns_the_tables_is_refused_once_roles_are_set_up(logins: Logins, world: World) -> None:
    with pytest.raises(LedgerError, match="forge"), PostgresLedger(logins.owner):
        pass
    with pytest.raises(LedgerError, match="forge"):
        EffectRunner(PostgresLedger(logins.owner)).run(refund_effect(world), "rf_1")
    assert world.effects == []


def test_r1_roles_that_could_take_the_owners_part_are_refused(logins: Logins) -> None:
    owner = urlsplit(logins.owner).username
    assert owner is not None
    with pytest.raises(LedgerError, match="owns the tables"):
        PostgresLedger(logins.owner).migrate(roles=Roles(runner=owner, reviewer=logins.roles.reviewer))
    with pytest.raises(LedgerError, match="does not exist"):
        PostgresLedger(logins.owner).migrate(roles=Roles(runner="nobody_here", reviewer=logins.roles.reviewer))
    with pytest.raises(UsageError):
        Roles(runner="one", reviewer="one")


def test_r1_a_decision_that_races_a_new_episode_is_refused_as_stale(logins: Logins, world: World) -> None:
    """The function waits for the writer that opens the episode, and then sees the new token."""
    token = awaiting(logins, world)
    with psycopg.connect(logins.runner) as runner:
        runner.execute(
            "update corrobo.operation set version = version + 1,"
            " doc = jsonb_set(doc::jsonb, '{episode,token}', '\"newer\"')::json where id = 'rf_1'"
        )
        with PostgresLedger(logins.reviewer) as ledger, ThreadPoolExecutor(1) as thread:
            deciding = thread.submit(ReviewDesk(ledger).approved, "rf_1", token=token, reviewer="ann")
            with pytest.raises(TimeoutError):
                deciding.result(timeout=0.3)  # it waits for the row
            runner.commit()
            with pytest.raises(DecisionRefused) as refused:
                deciding.result(timeout=10)
    assert refused.value.code == "STALE_TOKEN"
    assert decisions(logins) == []
