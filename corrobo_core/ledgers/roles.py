"""Who may do what in a PostgreSQL ledger, by database role (R1)."""

from __future__ import annotations

from dataclasses import dataclass

from corrobo_core.errors import UsageError

__all__ = ["Roles"]


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of a ledger whose decisions a runner cannot forge. They must exist, and be three.

    The role that calls ``migrate`` owns everything, and neither attempts nor decides.

    Args:
        runner: makes attempts and may only read decisions.
        reviewer: decides by one function, and may only read the rest.
    """

    runner: str
    reviewer: str

    def __post_init__(self) -> None:
        for field, name in (("runner", self.runner), ("reviewer", self.reviewer)):
            if not isinstance(name, str) or not name or "\x00" in name:
                raise UsageError("Roles", f"{field}: pass the name of a database role")
        if self.runner == self.reviewer:
            raise UsageError("Roles", "runner and reviewer must be two roles, or a runner could decide")
