"""For tests: the suite that every ledger passes. Needs pytest."""

import pytest

pytest.register_assert_rewrite("corrobo_core.testing.conformance")

from corrobo_core.testing.conformance import LedgerConformance, SharedLedgerConformance  # noqa: E402

__all__ = ["LedgerConformance", "SharedLedgerConformance"]
