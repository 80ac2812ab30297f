"""Every example on every page runs, from the top of the page to its end, in an empty folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from examples.killed_worker.__main__ import EXPECTED, LABELS, table
from tests.docs.session import ROOT, Session

PAGES = sorted((ROOT / "docs").rglob("*.md"))

# What a page tells its reader to have set, and the fixture that has it.
ENVIRONMENT = {
    "CORROBO_DSN": "postgres_dsn",
    "POOLER_DSN": "pgbouncer_dsn",
    "TEMPORAL_ADDRESS": "temporal_address",
}


@pytest.mark.timeout(300)  # the tutorial starts ten processes and waits out a window
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_reader_who_follows_the_page_sees_what_it_says(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    text = page.read_text()
    env = {name: request.getfixturevalue(fixture) for name, fixture in ENVIRONMENT.items() if f'"{name}"' in text}
    Session(page, tmp_path, env).follow()


class Provider:
    """The ``provider`` of the README: it loses its answers."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []

    def create_refund(self, amount_cents: int, reference: str) -> dict[str, Any]:
        self.entries.append({"reference": reference, "amount_cents": amount_cents})
        raise TimeoutError

    def refunds(self, reference: str) -> list[dict[str, Any]]:
        return [entry for entry in self.entries if entry["reference"] == reference]


class Worker:
    """Stands for temporalio's in the README, which passes it ``[...]``."""

    def __init__(self, client: object, *, task_queue: str, workflows: object, activities: list[Any]) -> None:
        assert [activity.__name__ for activity in activities] == ["refund"]


def test_a_reader_who_follows_the_readme_sees_what_it_says(tmp_path: Path) -> None:
    provider = Provider()
    given = {"provider": provider, "client": object(), "Worker": Worker}
    session = Session(ROOT / "README.md", tmp_path, given=given)
    session.printed = table(dict.fromkeys(LABELS, EXPECTED))  # the first fence is the demo's table
    assert session.follow() == 4
    assert len(provider.entries) == 1
