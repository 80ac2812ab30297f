"""Every example on every page runs, from the top of the page to its end, in an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.session import ROOT, Session

PAGES = sorted((ROOT / "docs").rglob("*.md"))

# What a page tells its reader to have set, and the fixture that has it.
ENVIRONMENT = {
    "CORROBO_DSN": "postgres_dsn",
    "POOLER_DSN": "pgbouncer_dsn",
    "TEMPORAL_ADDRESS": "temporal_address",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_reader_who_follows_the_page_sees_what_it_says(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    text = page.read_text()
    env = {name: request.getfixturevalue(fixture) for name, fixture in ENVIRONMENT.items() if f'"{name}"' in text}
    Session(page, tmp_path, env).follow()
