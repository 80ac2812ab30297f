"""The HTTP ledger counts every commit, and goes wrong exactly as ordered."""

import http.client
import subprocess
import sys
import time
from urllib.error import HTTPError, URLError

import pytest

from examples.http_ledger import (
    Counts,
    Credit,
    HttpLedger,
    answer_lost,
    client_killed,
    error_after_commit,
    lands_late,
    reads_fail,
    reads_stale,
    refused,
    running_http_ledger,
    slow_answer,
    slow_commit,
)
from tests.support.processes import child

NO_ANSWER = (ConnectionResetError, http.client.RemoteDisconnected)


def test_the_same_credit_twice_is_two_credits(http_ledger: HttpLedger) -> None:
    first = http_ledger.credit("alice", "rf_81", 5_000)
    second = http_ledger.credit("alice", "rf_81", 5_000)
    http_ledger.credit("bob", "rf_82", 1)

    assert first == Credit("cr_1", "alice", "rf_81", 5_000)
    assert http_ledger.credits("alice", "rf_81") == [first, second]
    assert http_ledger.credits("bob", "rf_81") == []
    assert http_ledger.counts("rf_81") == Counts(credits=2, write_requests=2, read_requests=2)
    assert http_ledger.count() == 3


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (answer_lost(), http.client.RemoteDisconnected),
        (answer_lost(reset=True), ConnectionResetError),
        (slow_answer(1.0), TimeoutError),
        (error_after_commit(502), HTTPError),
    ],
)
def test_a_commit_without_a_good_answer(http_ledger: HttpLedger, fault: object, error: type[Exception]) -> None:
    http_ledger.fail_next(fault)  # type: ignore[arg-type]

    with pytest.raises(error):
        HttpLedger(http_ledger.url, timeout=0.2).credit("alice", "rf_81", 5_000)

    assert http_ledger.count("rf_81") == 1
    http_ledger.credit("alice", "rf_81", 5_000)  # one occurrence only


@pytest.mark.parametrize("fault", [lands_late(0.3), slow_commit(0.3)])
def test_a_commit_that_lands_after_the_client_gave_up(http_ledger: HttpLedger, fault: object) -> None:
    http_ledger.fail_next(fault)  # type: ignore[arg-type]

    with pytest.raises((*NO_ANSWER, TimeoutError)):
        HttpLedger(http_ledger.url, timeout=0.1).credit("alice", "rf_81", 5_000)

    assert http_ledger.count("rf_81") == 0
    http_ledger.wait_for_count(1, "rf_81", timeout=5)


def test_accepted_now_and_committed_later(http_ledger: HttpLedger) -> None:
    http_ledger.fail_next(lands_late(0.2, status=202))

    with pytest.raises(TypeError):  # an acceptance is no credit
        http_ledger.credit("alice", "rf_81", 5_000)

    assert http_ledger.count("rf_81") == 0
    http_ledger.wait_for_count(1, "rf_81", timeout=5)


def test_a_refusal_commits_nothing(http_ledger: HttpLedger) -> None:
    http_ledger.fail_next(refused(429, retry_after="7", reference="rf_81"))
    http_ledger.credit("alice", "rf_80", 5_000)  # another reference

    with pytest.raises(HTTPError) as refusal:
        http_ledger.credit("alice", "rf_81", 5_000)

    refusal.value.close()
    assert refusal.value.code == 429
    assert refusal.value.headers["Retry-After"] == "7"
    assert http_ledger.counts("rf_81") == Counts(credits=0, write_requests=1, read_requests=0)


def test_reads_fail_until_healed(http_ledger: HttpLedger) -> None:
    http_ledger.credit("alice", "rf_81", 5_000)
    http_ledger.fail_next(reads_fail(times=None))

    for _ in range(3):
        with pytest.raises(HTTPError) as failure:
            http_ledger.credits("alice")
        failure.value.close()

    http_ledger.heal()
    assert len(http_ledger.credits("alice")) == 1


def test_stale_reads_miss_what_has_just_landed(http_ledger: HttpLedger) -> None:
    http_ledger.fail_next(reads_stale(0.3, times=None))
    http_ledger.credit("alice", "rf_81", 5_000)

    assert http_ledger.credits("alice") == []
    time.sleep(0.4)
    assert len(http_ledger.credits("alice")) == 1


CLIENT = "from examples.http_ledger import HttpLedger; HttpLedger({url!r}).credit('alice', 'rf_81', 5_000)"


@pytest.mark.parametrize(("when", "credits"), [("before_commit", 0), ("after_commit", 1)])
def test_the_client_is_killed_around_the_commit(http_ledger: HttpLedger, when: str, credits: int) -> None:
    http_ledger.fail_next(client_killed(when))  # type: ignore[arg-type]

    client = subprocess.run([sys.executable, "-c", CLIENT.format(url=http_ledger.url)], check=False)

    assert client.returncode == -9
    assert http_ledger.count("rf_81") == credits


def test_the_server_is_gone_afterwards() -> None:
    with running_http_ledger() as ledger:
        assert ledger.count() == 0
    with pytest.raises(URLError):
        ledger.count()


def test_the_server_does_not_outlive_a_parent_that_is_killed() -> None:
    with child("tests.support_tests.keeps_servers", "http") as parent:
        url = parent.wait_for("http://")
        parent.kill()
        with pytest.raises((URLError, *NO_ANSWER)):
            for _ in range(500):
                HttpLedger(url).count()
                time.sleep(0.01)
