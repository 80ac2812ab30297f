"""pytest plugin: chosen scenarios of contract suites, a clock without sleeping, and a line in the summary.

It imports the library only for those who use it: in every other test run it costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from corrobo_core import MemoryLedger
    from corrobo_core.testing import VirtualClock

__all__ = ["corrobo_clock", "corrobo_ledger"]

_PARAMETER = "corrobo_scenario"
_WORDS = {"passed": "passed", "failed": "failed", "skipped": "not applicable"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--corrobo-scenario``."""
    parser.getgroup("corrobo").addoption(
        "--corrobo-scenario",
        action="append",
        default=[],
        metavar="NAME",
        help="of contract suites, run only this scenario; may be given several times. Other tests run as always.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a scenario that does not exist.

    Raises:
        pytest.UsageError: names those that do.
    """
    chosen = config.getoption("corrobo_scenario")
    if chosen:
        from corrobo_core.testing import scenario_names

        unknown = sorted(set(chosen) - set(scenario_names()))
        if unknown:
            known = ", ".join(scenario_names())
            raise pytest.UsageError(f"--corrobo-scenario: {unknown[0]!r} is none; choose from {known}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out the scenarios that were not chosen."""
    chosen = config.getoption("corrobo_scenario")
    if not chosen:
        return
    left_out = [item for item in items if _scenario(item) not in (None, *chosen)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _scenario(item: pytest.Item) -> str | None:
    callspec: Any = getattr(item, "callspec", None)
    return callspec.params.get(_PARAMETER) if callspec else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what came of contract scenarios. What does not apply is skipped for pytest, and no pass."""
    counts = {
        word: sum(_is_of_scenario(report) for report in terminalreporter.stats.get(status, ()))
        for status, word in _WORDS.items()
    }
    if any(counts.values()):
        line = ", ".join(f"{count} {word}" for word, count in counts.items())
        terminalreporter.write_line(f"contract scenarios: {line}")


def _is_of_scenario(report: Any) -> bool:
    return any(name == _PARAMETER for name, _ in getattr(report, "user_properties", ()))


@pytest.fixture
def corrobo_clock() -> VirtualClock:
    """A clock that stands still until the test moves it."""
    from corrobo_core.testing import VirtualClock

    return VirtualClock()


@pytest.fixture
def corrobo_ledger(corrobo_clock: VirtualClock) -> Iterator[MemoryLedger]:
    """A ledger in memory that runs on ``corrobo_clock``: windows end when the test says so."""
    from corrobo_core.testing import VirtualLedger

    with VirtualLedger(corrobo_clock) as ledger:
        yield ledger
