"""What workflows export at their end: when they run, and again when their history is replayed in this process."""

from typing import Any

EXPORTED: dict[str, list[dict[str, Any]]] = {}
"""By run id."""
