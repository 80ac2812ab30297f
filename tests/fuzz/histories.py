"""Replay of gates: real histories, damaged. One state however it is folded, or the documented error (G3, G5)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from corrobo_core.gates import GateClient, fold, replay, to_lines
from corrobo_core.gates.errors import GateHistoryError
from corrobo_core.gates.events import GateEvent, from_lines
from corrobo_core.gates.log import Log
from corrobo_core.gates.state import EMPTY, GateState, condense
from corrobo_core.ledgers.gate_port import GateRow
from tests.fuzz.fuzzing import Target
from tests.fuzz.hostile import Edit, any_text, edited, edits, refused_or
from tests.gates.support import MINUTE, START, Clock
from tests.gates.test_property import Step, hold_invariants, steps_in

__all__ = ["REPLAY"]


@dataclass(frozen=True)
class Move:
    """One line of a history is left out, told twice, or told at another place."""

    how: str
    line: int
    to: int


moves = st.lists(
    st.builds(Move, st.sampled_from(["drop", "repeat", "move"]), st.integers(0, 80), st.integers(0, 80)), max_size=4
)
scripts = st.lists(steps_in(MINUTE), min_size=3, max_size=40)


def history_of(script: Sequence[Step]) -> list[str]:
    """The lines that a real client writes."""
    clock = Clock(START)
    client = GateClient(clock=clock)
    for act in script:
        act(client, clock)
    return [to_lines([event]) for event in client.history()]


def moved(lines: list[str], changes: Sequence[Move]) -> list[str]:
    """The lines with these changes."""
    lines = list(lines)
    for change in changes:
        if lines:
            line = lines[change.line % len(lines)]
            if change.how != "repeat":
                lines.remove(line)
            if change.how != "drop":
                lines.insert(change.to % (len(lines) + 1), line)
    return lines


def folded(events: Sequence[GateEvent], start: GateState = EMPTY) -> GateState | None:
    state = refused_or(GateHistoryError, lambda: fold(events, start))
    assert state is None or isinstance(state, GateState)
    return state


def a_moved_history_folds_in_one_way_or_not_at_all(case: tuple[Sequence[Step], Sequence[Move]]) -> None:
    script, changes = case
    _folds_in_one_way(from_lines("".join(moved(history_of(script), changes))))


def _folds_in_one_way(events: Sequence[GateEvent]) -> None:
    whole = folded(events)
    state, fitting = EMPTY, 0
    for event in events:
        after = folded([event], state)
        if after is None:
            break
        state, fitting = after, fitting + 1
    assert (whole is None) == (fitting < len(events)), "one by one it ends elsewhere"
    for cut in {0, fitting // 2, fitting}:
        prefix = folded(events[:cut])
        assert prefix is not None, "a prefix of a history is one"
        again = folded(events[cut:fitting], prefix)
        assert again is not None, "it goes on from there"
        assert again.to_json() == state.to_json()
    hold_invariants(events[:fitting])
    if whole is not None:
        text = to_lines(events)
        assert from_lines(text) == tuple(events)
        assert replay(text).state.to_json() == whole.to_json()
        assert fold(condense(whole)).to_json() == whole.to_json()


def a_damaged_line_is_refused_or_read(case: tuple[Sequence[Step], Sequence[Edit], int, str, bool]) -> None:
    script, changes, at, scrap, torn = case
    events = edited([json.loads(line) for line in history_of(script)], changes)
    text = "".join(json.dumps(event) + "\n" for event in events)
    text = text[:-1] if torn else text
    place = at % (len(text) + 1)
    text = text[:place] + scrap + text[place:]
    read = refused_or(GateHistoryError, lambda: from_lines(text, torn_end=torn))
    if read is not None:
        _folds_in_one_way(read)


def a_changed_row_breaks_the_chain(case: tuple[Sequence[Step], Sequence[Move]]) -> None:
    script, changes = case
    events = from_lines("".join(history_of(script)))
    rows = [GateRow("g", n, "n", *row) for n, row in enumerate(_rows(events), 1)]
    log = Log("g").plus(rows)
    assert log.state.to_json() == fold(events).to_json()
    damaged = _moved_rows(rows, changes)
    kept = refused_or(GateHistoryError, lambda: Log("g").plus(damaged))
    assert kept is None or damaged == rows[: len(damaged)], "rows that were moved read back"


def _rows(events: Sequence[GateEvent]) -> list[tuple[str, str | None, str]]:
    return [(row.event, row.beside, row.chain) for row in Log("g").rows_for(events)]


def _moved_rows(rows: list[GateRow], changes: Sequence[Move]) -> list[GateRow]:
    """The rows with their revisions set right, as whoever tampers would."""
    numbered = {str(number): row for number, row in enumerate(rows)}
    order = moved(list(numbered), changes)
    return [numbered[name]._replace(revision=n) for n, name in enumerate(order, 1)]


REPLAY = Target(
    "replay",
    {
        a_moved_history_folds_in_one_way_or_not_at_all: st.tuples(scripts, moves),
        a_damaged_line_is_refused_or_read: st.tuples(
            scripts, edits, st.integers(0, 10_000), st.just("") | any_text, st.booleans()
        ),
        a_changed_row_breaks_the_chain: st.tuples(scripts, moves),
    },
)
