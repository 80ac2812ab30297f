"""The real servers start, do what tests need of them, and leave nothing behind."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import psutil
import psycopg
import pytest
from dbos import DBOS, DBOSConfig
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.support.dbos import dbos_config, running_dbos
from tests.support.postgres import fresh_database, running_postgres, with_database
from tests.support.processes import child

# -- PostgreSQL ----------------------------------------------------------------------------------------------


def test_every_test_has_a_database_of_its_own(postgres_dsn: str) -> None:
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("create table public.mine ()")
        settings = connection.execute("select current_setting('fsync'), current_database()").fetchone()
    assert settings is not None
    assert settings[0] == "on"
    assert postgres_dsn == with_database(postgres_dsn, settings[1])


def test_the_database_goes_with_the_test(postgres_admin: str) -> None:
    with fresh_database(postgres_admin) as dsn:
        unfinished = psycopg.connect(dsn)
    unfinished.close()
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(dsn)


def test_a_server_keeps_its_data_over_stop_and_crash() -> None:
    with running_postgres(idle_in_transaction_session_timeout="2s") as server:
        with psycopg.connect(server.dsn()) as connection:
            connection.execute("create table public.kept as select 1 as number")
        client = psycopg.connect(server.dsn(), autocommit=True)
        server.stop()
        with client, pytest.raises(psycopg.OperationalError):
            client.execute("select 1")
        server.start()
        server.crash()
        server.start(timezone="Pacific/Chatham")
        with psycopg.connect(server.dsn()) as connection:
            row = connection.execute(
                "select number, current_setting('idle_in_transaction_session_timeout'),"
                " current_setting('timezone') from public.kept"
            ).fetchone()
        assert row == (1, "2s", "Pacific/Chatham")
    assert not server.folder.exists()


# -- PgBouncer -----------------------------------------------------------------------------------------------


def test_pgbouncer_pools_transactions(pgbouncer_dsn: str, postgres_dsn: str) -> None:
    with psycopg.connect(pgbouncer_dsn) as pooled, psycopg.connect(postgres_dsn) as direct:
        backend = "select pg_backend_pid(), current_database()"
        through_pool, straight = pooled.execute(backend).fetchone(), direct.execute(backend).fetchone()
        assert through_pool is not None
        assert straight is not None
        assert through_pool[0] != pooled.info.backend_pid
        assert straight[0] == direct.info.backend_pid
        assert through_pool[1] == straight[1]


# -- Temporal ------------------------------------------------------------------------------------------------


@activity.defn
def double(number: int) -> int:
    return 2 * number


@workflow.defn
class Doubling:
    @workflow.run
    async def run(self, number: int) -> int:
        return await workflow.execute_activity(double, number, start_to_close_timeout=timedelta(seconds=5))


async def test_temporal_runs_a_workflow(temporal_client: Client) -> None:
    with ThreadPoolExecutor() as threads:
        async with Worker(
            temporal_client,
            task_queue="doubling",
            workflows=[Doubling],
            activities=[double],
            activity_executor=threads,
            workflow_runner=UnsandboxedWorkflowRunner(),
        ):
            done = await temporal_client.execute_workflow(Doubling.run, 21, id="doubling", task_queue="doubling")
    assert done == 42


async def test_temporal_is_shared_and_clients_are_not(temporal_client: Client, temporal_address: str) -> None:
    assert temporal_client.service_client.config.target_host == temporal_address
    await temporal_client.count_workflows()


# -- DBOS ----------------------------------------------------------------------------------------------------


def check_dbos(config: DBOSConfig) -> None:
    DBOS.destroy(destroy_registry=True)  # tests that ran before in this process have put others in its place

    @DBOS.workflow()
    def tripling(number: int) -> int:
        return 3 * number

    with running_dbos(config):
        assert tripling(14) == 42


def test_dbos_on_sqlite(tmp_path: Path) -> None:
    check_dbos(dbos_config(tmp_path / "dbos.sqlite"))


def test_dbos_on_postgres(postgres_dsn: str) -> None:
    check_dbos(dbos_config(postgres_dsn))


# -- nothing stays -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["postgres", "temporal"])
def test_a_server_does_not_outlive_a_parent_that_is_killed(kind: str) -> None:
    with child("tests.support_tests.keeps_servers", kind) as parent:
        parent.wait_for("server")
        family = psutil.Process(parent.pid).children(recursive=True)
        folders = [Path(process.cwd()) for process in family if "corrobo-" in process.cwd()]
        parent.kill()
        _, alive = psutil.wait_procs(family, timeout=15)
    assert len(family) >= 2
    assert alive == []
    assert folders
    deadline = time.monotonic() + 5
    while any(folder.exists() for folder in folders):
        assert time.monotonic() < deadline
        time.sleep(0.01)
