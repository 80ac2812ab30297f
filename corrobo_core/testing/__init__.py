"""For tests: the suite that every ledger passes. Needs pytest."""

import pytest

pytest.register_assert_rewrite(
    "corrobo_core.testing._suite", "corrobo_core.testing.conformance", "corrobo_core.testing.shared_conformance"
)

from corrobo_core.testing._drivers import AnotherLedger, ManagedLedger  # noqa: E402
from corrobo_core.testing.conformance import LedgerConformance  # noqa: E402
from corrobo_core.testing.shared_conformance import SharedLedgerConformance  # noqa: E402

__all__ = ["AnotherLedger", "LedgerConformance", "ManagedLedger", "SharedLedgerConformance"]
