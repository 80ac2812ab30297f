"""All fuzz targets."""

from __future__ import annotations

from tests.fuzz.addresses import ADDRESSES
from tests.fuzz.canonical import CANONICAL
from tests.fuzz.decisions import DECISIONS
from tests.fuzz.histories import REPLAY

__all__ = ["TARGETS"]

TARGETS = (CANONICAL, REPLAY, DECISIONS, ADDRESSES)
