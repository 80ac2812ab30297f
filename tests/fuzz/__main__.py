"""`make fuzz`: every target, or those named, for some seconds each. Exits 1 with the input that broke one."""

from __future__ import annotations

import sys

from tests.fuzz.fuzzing import fuzz
from tests.fuzz.targets import TARGETS


def main(seconds: float, seed: int, names: list[str]) -> int:
    chosen = [target for target in TARGETS if not names or target.name in names]
    print(f"SECONDS={seconds:g} SEED={seed}", flush=True)
    findings = []
    for target in chosen:
        result = fuzz(target, seconds, seed)
        print(result, flush=True)
        if result.finding is not None:
            findings.append(result.finding)
    print(*findings, sep="\n", end="")
    return 1 if findings or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
