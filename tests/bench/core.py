"""What the library itself costs, without a database."""

from __future__ import annotations

import asyncio
import gc
import statistics
import subprocess
import sys
import time

import psutil

from corrobo_core import AsyncEffectRunner, EffectRunner, MemoryLedger
from tests.bench.effects import empty, waiting

EFFECTS_IN_FLIGHT = 1_000


def lifecycle() -> dict[str, float]:
    """A whole synchronous pass on MemoryLedger with empty hooks, in microseconds."""
    medians = []
    for _ in range(7):
        runner = EffectRunner(MemoryLedger())
        runner.run(empty, "warm")
        times = []
        for number in range(1_000):
            start = time.perf_counter()
            runner.run(empty, f"op-{number}")
            times.append(time.perf_counter() - start)
        medians.append(statistics.median(times) * 1e6)
    return {"lifecycle_us": statistics.median(medians)}


def memory() -> dict[str, float]:
    """Megabytes that 1,000 effects in flight add to one process, measured in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.core"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {"rss_per_1000_in_flight_mb": float(output)}


async def _grow() -> float:
    runner, effect = AsyncEffectRunner(MemoryLedger()), waiting(1.0)
    await runner.run(waiting(0), "warm")
    gc.collect()
    process = psutil.Process()
    before = process.memory_info().rss
    running = asyncio.gather(*(runner.run(effect, f"op-{n}") for n in range(EFFECTS_IN_FLIGHT)))
    await asyncio.sleep(0.6)
    grown = process.memory_info().rss - before
    await running
    return grown / 1e6


if __name__ == "__main__":
    print(asyncio.run(_grow()))
