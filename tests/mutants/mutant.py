"""What a mutant is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Judge: TypeAlias = Literal["operations", "gates", "explorer"]
"""Who looks for violations: one of the two machines of ``tests.model.machine``, or ``tests.model.explorer``."""


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
    """

    name: str
    rule: str
    file: str
    before: str
    after: str
    cost: str

    @property
    def judges(self) -> tuple[Judge, ...]:
        """Who is asked, one after the other until one finds something: first whoever is most likely to."""
        if "gate" in self.file:
            return ("gates", "operations", "explorer")
        return ("operations", "explorer", "gates")

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
