"""Side by side: rounds of each candidate in turn, and the median of the ratios of neighbours."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable

ROUNDS = 7


async def seconds(work: Callable[[], Awaitable[object]]) -> float:
    """Wall time of one round."""
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


async def ratio(
    ours: Callable[[], Awaitable[object]], theirs: Callable[[], Awaitable[object]], rounds: int = ROUNDS
) -> float:
    """Median over the rounds of ``theirs`` in seconds ÷ ``ours``: how many times their speed ours is.

    Each round runs both, in alternating order, so that a machine that gets slower slows both.
    """
    await ours()
    await theirs()
    found = []
    for number in range(rounds):
        if number % 2:
            mine, other = await seconds(ours), await seconds(theirs)
        else:
            other, mine = await seconds(theirs), await seconds(ours)
        found.append(other / mine)
    return statistics.median(found)


async def at_once(count: int, total: int, work: Callable[[int], Awaitable[object]]) -> None:
    """Run ``work(0)`` to ``work(total - 1)``, never more than ``count`` at once."""
    numbers = iter(range(total))

    async def worker() -> None:
        for number in numbers:
            await work(number)

    await asyncio.gather(*(worker() for _ in range(min(count, total))))
