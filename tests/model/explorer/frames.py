"""What a suspended generator still knows: two that know the same, at the same place, go on alike."""

from __future__ import annotations

import dis
from collections.abc import Generator, Hashable
from functools import cache
from types import CodeType
from typing import Any

from tests.model.explorer.numbers import content

_WAITS = "JUMP_BACKWARD_NO_INTERRUPT"  # of ``yield from`` itself, which is no loop


def memory(program: Generator[Any, Any, Any]) -> Hashable:
    """Where it stands and which of its variables it can still read, through every generator that it waits for."""
    frames: list[Hashable] = []
    inner: Any = program
    while inner is not None:
        frame = inner.gi_frame
        readable = _readable(frame.f_code, frame.f_lasti)
        known = [(name, content(value)) for name, value in frame.f_locals.items() if name in readable]
        frames.append((frame.f_code, frame.f_lasti, tuple(known)))
        inner = inner.gi_yieldfrom
    return tuple(frames)


@cache
def _readable(code: CodeType, position: int) -> frozenset[str]:
    """The variables that are read after a position; all of them inside a loop, or where that is not known for sure.

    A loop's own iterator is nowhere to be seen: its variable, kept though nobody reads it, stands for it.
    """
    every = frozenset((*code.co_varnames, *code.co_cellvars, *code.co_freevars))
    names = {*code.co_cellvars, *code.co_freevars}
    for step in dis.get_instructions(code):
        if step.offset <= position:
            continue
        jumps = step.opcode in dis.hasjrel or step.opcode in dis.hasjabs
        if jumps and step.opname != _WAITS and step.argval <= position:
            return every
        if "FAST" in step.opname:
            read = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            if not every.issuperset(read):  # an instruction that this does not understand
                return every
            if step.opname not in ("STORE_FAST", "DELETE_FAST", "STORE_FAST_STORE_FAST"):
                names.update(read)
    return frozenset(names)
