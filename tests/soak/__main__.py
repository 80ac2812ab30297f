"""Run the soak, print a summary, write build/soak.json: ``python -m tests.soak SECONDS EFFECTS [SEED]``."""

from __future__ import annotations

import json
import secrets
import signal
import sys
from pathlib import Path

from tests.soak.report import Report
from tests.soak.soak import Settings, soak


def summary(report: Report) -> str:
    """The numbers as people read them."""
    lines = [
        f"{'':<10}{'':<8}" + "".join(f"{what:>16}" for what in ("expected", "found", "duplicates", "lost", "wrong"))
    ]
    for engine, groups in report.by_engine.items():
        for group, t in groups.items():
            numbers = (t.expected, t.found, t.duplicates, t.lost, t.wrong_completes)
            lines.append(f"{engine:<10}{group:<8}" + "".join(f"{number:>16}" for number in numbers))
    lines.append(f"{report.kills} kills; faults: {', '.join(f'{k} {n}' for k, n in sorted(report.faults.items()))}")
    lines.append(f"effects to completion: p50 {report.effects.p50} s, p99 {report.effects.p99} s")
    return "\n".join(lines)


def main(seconds: str, effects: str, seed: str = "") -> int:
    """Exit status 1 if anything was written twice, lost, or wrongly reported; or if the soak proves nothing."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # stops what was started
    settings = Settings(float(seconds), int(effects), seed or secrets.token_hex(4))
    try:
        report = soak(settings, lambda text: print(f"  {text}", file=sys.stderr, flush=True))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    target = Path("build/soak.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(report.as_json(), indent=2) + "\n")
    print(summary(report))
    for problem in report.problems():
        print(f"FAILED: {problem} (seed {report.seed})", file=sys.stderr)
    return 1 if report.problems() else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
