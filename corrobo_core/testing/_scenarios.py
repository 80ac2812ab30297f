"""Every scenario of the contract suite, by name, in the order in which they are played."""

from __future__ import annotations

from corrobo_core.testing._registry import Scenario
from corrobo_core.testing._scenarios_of_processes import OF_PROCESSES
from corrobo_core.testing._scenarios_of_reads import OF_READS
from corrobo_core.testing._scenarios_of_writes import OF_WRITES

__all__ = ["SCENARIOS"]

SCENARIOS: dict[str, Scenario] = {**OF_WRITES, **OF_READS, **OF_PROCESSES}
