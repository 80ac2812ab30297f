"""What a mutant is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Judge: TypeAlias = Literal["explorer", "machine"]
"""Who looks for violations: ``python -m tests.model.explorer`` or ``python -m tests.model.machine``."""


@dataclass(frozen=True)
class Mutant:
    """One bug.

    Attributes:
        name: names it for good.
        rule: of the semantics, which it breaks.
        file: the source file, from the repository's root.
        before: text that occurs exactly once in it.
        after: what the bug has there.
        cost: what it would cost a user, in one sentence.
        first: who is asked first, to be done sooner; the other one is asked if it finds nothing.
    """

    name: str
    rule: str
    file: str
    before: str
    after: str
    cost: str
    first: Judge = "machine"

    def of(self, source: str) -> str:
        """The source with the bug in it.

        Raises:
            AnchorError: the anchor does not occur exactly once.
        """
        found = source.count(self.before)
        if found != 1:
            raise AnchorError(f"{self.name}: its anchor occurs {found} times in {self.file}")
        return source.replace(self.before, self.after)

    def put(self, tree: Path) -> str:
        """Write the bug into a copy of the source tree.

        Returns:
            the text of the file without it.
        """
        path = tree / self.file
        source = path.read_text("utf-8")
        path.write_text(self.of(source), "utf-8")
        return source


class AnchorError(Exception):
    """The source has changed, and the mutant must be written anew."""
