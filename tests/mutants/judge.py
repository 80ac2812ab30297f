"""Runs in a copy of the source tree: the explorer or the model, which look for violations.

``python -m tests.mutants.judge explorer|machine --quick``. The exit status is `FOUND` for a violation of what must
hold, 0 for none, and another one for everything else: what breaks before it can judge has not found anything.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path

FOUND, BROKE, NOT_THE_COPY = 1, 3, 4


def main(name: str, *arguments: str) -> int:
    try:
        core = importlib.import_module("corrobo_core")
        judge = importlib.import_module(f"tests.model.{name}.__main__")
        here = Path.cwd()
        for module in (core, judge):
            assert module.__file__ is not None
            if not Path(module.__file__).is_relative_to(here):
                print(f"{module.__file__} is not in {here}", file=sys.stderr)
                return NOT_THE_COPY
        sys.argv = [f"tests.model.{name}", *arguments]
        status: int = judge.main()
    except BaseException:
        traceback.print_exc()
        return BROKE
    return status if status in (0, FOUND) else BROKE


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
