"""What came of it: counted at the outside system, and compared with what the engines say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import quantiles

from tests.soak.engines import Ended
from tests.soak.killer import KINDS
from tests.soak.outside import HTTP_FAULTS, Commit

SAME_TIME = 0.05  # seconds: how exactly two processes read one clock


@dataclass(frozen=True)
class Tally:
    """One group of effects, on one engine or on all.

    Attributes:
        expected: effects that were asked for.
        found: references with an effect at the outside system.
        duplicates: effects beyond the first of a reference.
        lost: references without an effect, at the end.
        wrong_completes: reported as made when they were not there, or under another id.
        unfinished: not reported as made at the end.
        p50, p99: seconds from submission to the report; None if nothing was reported.
    """

    expected: int
    found: int
    duplicates: int
    lost: int
    wrong_completes: int
    unfinished: int
    p50: float | None
    p99: float | None


def tally(references: Iterable[str], commits: Sequence[Commit], ended: Iterable[Ended]) -> Tally:
    """Count one group.

    Args:
        references: what was asked for.
        commits: all that the outside system has committed.
        ended: what the engines say has ended.
    """
    wanted = set(references)
    made: dict[str, list[Commit]] = {}
    for commit in commits:
        if commit.credit.reference in wanted:
            made.setdefault(commit.credit.reference, []).append(commit)
    complete = [end for end in ended if end.reference in wanted and end.error is None]
    p50, p99 = _percentiles([end.ended_at - end.submitted_at for end in complete])
    return Tally(
        expected=len(wanted),
        found=len(made),
        duplicates=sum(len(found) - 1 for found in made.values()),
        lost=len(wanted) - len(made),
        wrong_completes=sum(not _is_true(end, made.get(end.reference, [])) for end in complete),
        unfinished=len(wanted) - len(complete),
        p50=p50,
        p99=p99,
    )


def _is_true(end: Ended, made: list[Commit]) -> bool:
    """The reported credit is there, and was when it was reported."""
    return any(commit.credit.id == end.credit_id and commit.at <= end.ended_at + SAME_TIME for commit in made)


def _percentiles(values: list[float]) -> tuple[float | None, float | None]:
    if len(values) < 2:
        return (values[0], values[0]) if values else (None, None)
    cuts = quantiles(values, n=100, method="inclusive")
    return round(cuts[49], 3), round(cuts[98], 3)


@dataclass(frozen=True)
class Report:
    """The soak as a whole.

    Attributes:
        kills: processes that ended by SIGKILL.
        faults: how often each kind was injected.
        submitted_again: effects that an engine gave up on, and that were handed in once more.
        failed_workers: the last words of workers that ended by themselves.
    """

    seed: str
    seconds: float
    wall_seconds: float
    effects: Tally
    naive: Tally
    by_engine: dict[str, dict[str, Tally]]
    kills: int
    faults: Counter[str]
    submitted_again: int
    failed_workers: list[str] = field(default_factory=list)

    def problems(self) -> list[str]:
        """Why the soak has failed; nothing if it has not."""
        wrong = ("duplicates", "lost", "wrong_completes", "unfinished")
        found = [
            f"effects: {count} {what.replace('_', ' ')}" for what in wrong if (count := getattr(self.effects, what))
        ]
        found += [
            f"the naive twins on {engine} wrote nothing twice: the faults prove nothing"
            for engine, groups in self.by_engine.items()
            if not groups["naive"].duplicates
        ]
        found += [
            f"no fault of kind {kind} was injected" for kind in (*HTTP_FAULTS, *KINDS) if not self.faults[kind]
        ]
        return found

    def as_json(self) -> dict[str, object]:
        """For build/soak.json."""
        effects = self.effects
        return {
            "seed": self.seed,
            "seconds": self.seconds,
            "wall_seconds": self.wall_seconds,
            "effects_expected": effects.expected,
            "effects_found": effects.found,
            "duplicates": effects.duplicates,
            "lost": effects.lost,
            "wrong_completes": effects.wrong_completes,
            "unfinished": effects.unfinished,
            "kills": self.kills,
            "faults": dict(sorted(self.faults.items())),
            "p50_seconds": effects.p50,
            "p99_seconds": effects.p99,
            "submitted_again": self.submitted_again,
            "naive": asdict(self.naive),
            "by_engine": {
                engine: {group: asdict(counted) for group, counted in groups.items()}
                for engine, groups in self.by_engine.items()
            },
            "failed_workers": self.failed_workers,
            "problems": self.problems(),
        }
