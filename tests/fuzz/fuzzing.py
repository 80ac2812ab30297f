"""A fuzz target, and running it against the clock.

Hypothesis draws, and not atheris: what is parsed here is structured (values, events, documents, addresses), so that
bytes changed at random hardly get past the JSON reader; findings are made small; and it runs on every Python.
"""

from __future__ import annotations

import itertools
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

__all__ = ["Fuzzed", "Target", "fuzz"]

_BATCH = 100  # examples between two looks at the clock
_SETTINGS = settings(
    max_examples=_BATCH,
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
)


@dataclass(frozen=True)
class Target:
    """What is fuzzed.

    Attributes:
        name: as it is chosen.
        checks: what must hold of whatever is drawn: an exception is a finding.
    """

    name: str
    checks: Mapping[Callable[[Any], None], st.SearchStrategy[Any]]


@dataclass(frozen=True)
class Fuzzed:
    """What came of it: ``finding`` shows the smallest input that breaks a check, and how."""

    name: str
    seconds: float
    examples: int
    finding: str | None

    def __str__(self) -> str:
        rate = self.examples / self.seconds
        found = 0 if self.finding is None else 1
        return f"{self.name:<10}{self.seconds:7.1f} s{self.examples:9} examples{rate:7.0f}/s  findings: {found}"


def fuzz(target: Target, seconds: float, first_seed: int) -> Fuzzed:
    """Draw until the time is over, or something is found; each check in turn, the same examples for a seed."""
    began, examples = time.monotonic(), 0
    checks = list(target.checks.items())
    for batch in itertools.count():
        check, drawn = checks[batch % len(checks)]

        def counted(case: Any) -> None:
            nonlocal examples
            examples += 1
            check(case)  # noqa: B023 - it is called before the loop goes on

        counted.__name__ = counted.__qualname__ = check.__name__
        try:
            seed(f"{first_seed}/{batch}")(_SETTINGS(given(case=drawn)(counted)))()
        except Exception as error:
            return Fuzzed(
                target.name, time.monotonic() - began, examples, "".join(traceback.format_exception(error))
            )
        if batch >= len(checks) - 1 and time.monotonic() - began >= seconds:
            return Fuzzed(target.name, time.monotonic() - began, examples, None)
    raise AssertionError
