"""Tables of the reference, drawn from the code."""

from __future__ import annotations

from collections.abc import Iterable

from corrobo_core import Disposition, Evidence, Reason
from corrobo_core.decide import Row

# What each condition and each time in `decide` means, for people.
CONDITIONS = {
    "_any": "",
    "_running": "an earlier attempt is unrecorded and its owner lives",
    "_settling": "some attempt not settled when the observation began, its window known",
    "_attested_too_early": "some attempt not settled when the person decided, its window known",
    "_window_unknown": "some attempt not settled, no window recorded for it",
    "_refused_for_good": "the latest attempt was refused for good",
    "_not_retryable": "policy forbids retry",
    "_exhausted": "attempts used up",
    "_key_expired": "provider deduplicates, and its key could expire before this attempt ends",
}
TIMES = {
    "_no_time": "",
    "_next_look": "at the next look, by `poll`",
    "_all_settled": "when every attempt has settled",
    "_next_attempt": "now, or at `retry_after`, or after the retry backoff",
}
# UNKNOWN carries the reason that the look itself gave.
REASONS_OF_UNKNOWN = (Reason.NOT_ESTABLISHED, Reason.ABSENCE_NOT_PROVEN, Reason.RECONCILE_FAILED)


def decision_table(rows: Iterable[Row]) -> str:
    """Rows of `decide`, as the reference shows them."""
    head = ["| evidence | condition | disposition | reason code | come back |", "|---|---|---|---|---|"]
    return "\n".join([*head, *(_row(row) for row in rows)]) + "\n"


def reasons(row: Row) -> tuple[Reason, ...]:
    """The codes that a row can give."""
    return (row.reason,) if row.reason else REASONS_OF_UNKNOWN


def _row(row: Row) -> str:
    last = row.evidence is Evidence.NOT_APPLIED and row.reason is Reason.SAFE_RETRY
    settled = "every attempt settled when the observation began" if last else ""
    cells = [
        f"`{row.evidence}`",
        CONDITIONS[row.condition.__name__] or settled,
        f"`{row.disposition}`" if isinstance(row.disposition, Disposition) else "none yet",
        ", ".join(f"`{reason}`" for reason in reasons(row)),
        TIMES[row.when.__name__],
    ]
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"
