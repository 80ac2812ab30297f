"""How a machine is run: many short runs, each from a seed of its own.

In a long run hypothesis makes five of six examples by copying parts of the one before, so that whole openings are
repeated again and again; in the first ten of a run it does not.
"""

from __future__ import annotations

from hypothesis import seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

_IN_A_RUN = 10


def run(machine: type[RuleBasedStateMachine], chosen: settings, first_seed: int = 0) -> None:
    """Draw as many examples as ``chosen`` says; the same ones for the same first seed."""
    for number in range(0, chosen.max_examples, _IN_A_RUN):
        seeded = seed(first_seed + number)(type(machine.__name__, (machine,), {}))
        run_state_machine_as_test(seeded, settings=settings(chosen, max_examples=_IN_A_RUN, derandomize=False))
