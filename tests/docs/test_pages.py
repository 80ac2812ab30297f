"""Every example on every page runs, from the top of the page to its end, in an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.session import ROOT, Session

PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_reader_who_follows_the_page_sees_what_it_says(page: Path, tmp_path: Path) -> None:
    Session(page, tmp_path).follow()
