"""For tests: the suite that every contract passes, and the suite that every ledger passes.

The suites themselves need pytest; `verify_contract`, the targets and the virtual clock do not.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from corrobo_core.testing.clock import VirtualClock, VirtualLedger
from corrobo_core.testing.fake import Entry, EntryState, FakeProvider, Listing
from corrobo_core.testing.target import ConformanceTarget, Fault, FaultKind
from corrobo_core.testing.verify import (
    ContractReport,
    ScenarioResult,
    ScenarioStatus,
    scenario_names,
    verify_contract,
)

if TYPE_CHECKING:
    from corrobo_core.testing._drivers import AnotherLedger, ManagedLedger
    from corrobo_core.testing.conformance import LedgerConformance
    from corrobo_core.testing.contract_suite import ContractSuite
    from corrobo_core.testing.shared_conformance import SharedLedgerConformance

__all__ = [
    "AnotherLedger",
    "ConformanceTarget",
    "ContractReport",
    "ContractSuite",
    "Entry",
    "EntryState",
    "FakeProvider",
    "Fault",
    "FaultKind",
    "LedgerConformance",
    "Listing",
    "ManagedLedger",
    "ScenarioResult",
    "ScenarioStatus",
    "SharedLedgerConformance",
    "VirtualClock",
    "VirtualLedger",
    "scenario_names",
    "verify_contract",
]

# pytest is imported by those who use it.
_LAZY = {
    "AnotherLedger": "_drivers",
    "ContractSuite": "contract_suite",
    "LedgerConformance": "conformance",
    "ManagedLedger": "_drivers",
    "SharedLedgerConformance": "shared_conformance",
}
_ASSERTING = ("_suite", "conformance", "shared_conformance")


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _LAZY[name] in _ASSERTING:
        import pytest

        # pytest warns of a module that somebody imported directly: its asserts stay as they are.
        modules = {f"{__name__}.{module}" for module in _ASSERTING}
        pytest.register_assert_rewrite(*(modules - sys.modules.keys()))
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
