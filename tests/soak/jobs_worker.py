"""A worker without an engine: takes jobs and does them, naively or as effects. ``jobs_worker.py JOBS_DSN``."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

from corrobo_core import Disposition, Effect, EffectRunner, LedgerUnavailable
from examples.http_ledger import Credit
from tests.soak.effects import AMOUNT, client, credit_effect, effect_ledger, end_with_parent
from tests.soak.jobs import Job, Jobs, jobs_at

THREADS = 3
IDLE = 0.05  # seconds
FINAL = (Disposition.REPLAN, Disposition.REVIEW)


def do_as_effect(jobs: Jobs, job: Job, runner: EffectRunner, credit: Effect[[str, int], Credit]) -> None:
    """One pass."""
    try:
        result = runner.run(credit, job.reference, AMOUNT)
    except LedgerUnavailable:
        return jobs.come_back(job.reference, 0.5)
    if result.disposition is Disposition.COMPLETE:
        return jobs.end(job.reference, result.unwrap().id)
    if result.disposition in FINAL:
        return jobs.end(job.reference, None, str(result.reason))
    return jobs.come_back(job.reference, result.wait.total_seconds())


def do_naively(jobs: Jobs, job: Job) -> None:
    """Send, and try again if it fails: what the lease is for."""
    try:
        made = client().send(job.reference, AMOUNT)
    except Exception:
        return jobs.come_back(job.reference, 0.2)
    return jobs.end(job.reference, made.id)


def main(dsn: str) -> None:
    """Work until killed."""
    end_with_parent()
    credit = credit_effect()
    with effect_ledger() as ledger:
        runner = EffectRunner(ledger)

        def work() -> None:
            with jobs_at(dsn) as jobs:
                while True:
                    job = jobs.take()
                    if job is None:
                        time.sleep(IDLE)
                    elif job.kind == "naive":
                        do_naively(jobs, job)
                    else:
                        do_as_effect(jobs, job, runner, credit)

        with ThreadPoolExecutor(THREADS) as threads:
            working = [threads.submit(work) for _ in range(THREADS)]
            print("ready", flush=True)
            next(as_completed(working)).result()  # none ends but by an error


if __name__ == "__main__":
    main(*sys.argv[1:])
