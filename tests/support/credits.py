"""One effect over the HTTP ledger in both kinds, whoever runs it; and what runs it to its end."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal, TypeAlias

import httpx

from corrobo_core import (
    AsyncEffect,
    AsyncEffectRunner,
    Attempt,
    Backoff,
    Disposition,
    Effect,
    EffectResult,
    EffectRunner,
    Observation,
    Verdict,
    effect,
)
from corrobo_core.http import classified
from examples.http_ledger import PID_HEADER, Credit, HttpLedger
from tests.support.ledgers import AnyLedger

Kind: TypeAlias = Literal["sync", "async"]
Send: TypeAlias = Callable[[str, int], Credit]

DECIDED = (Disposition.COMPLETE, Disposition.REPLAN, Disposition.REVIEW)
ACCOUNT = "alice"


def seconds(number: float) -> timedelta:
    """A timedelta of so many seconds."""
    return timedelta(seconds=number)


def time_to_begin(declared: dict[str, Any]) -> dict[str, Any]:
    """Leave most of a short window to a busy machine: an attempt that cannot begin in time is not sent (L9).

    A hook that takes longer settles later, no more, unless it is async: those are cut.
    """
    window = declared.get("in_flight_window")
    return {"execute_timeout": window / 8, **declared} if window else declared


class HttpxCredits:
    """A client of the HTTP ledger on httpx, sync and async.

    Args:
        http: the ledger.
        timeout: seconds to wait for the answer to a write.
    """

    def __init__(self, http: HttpLedger, timeout: float = 10.0) -> None:
        self.http, self.timeout = http, timeout

    def _options(self, timeout: float = 10.0) -> dict[str, Any]:
        headers = {PID_HEADER: str(os.getpid())}
        # Only the answer is waited for so briefly: a busy machine may take longer to connect.
        return {
            "timeout": httpx.Timeout(10.0, read=timeout),
            "headers": headers,
            "trust_env": False,
            "verify": False,
        }

    def send(self, reference: str, amount_cents: int) -> Credit:
        """Credit the account. Not idempotent."""
        with httpx.Client(**self._options(self.timeout)) as client:
            body = {"reference": reference, "amount_cents": amount_cents}
            return Credit(**client.post(self.http.credits_url(ACCOUNT), json=body).raise_for_status().json())

    async def send_async(self, reference: str, amount_cents: int) -> Credit:
        """`send`, on an event loop."""
        async with httpx.AsyncClient(**self._options(self.timeout)) as client:
            body = {"reference": reference, "amount_cents": amount_cents}
            response = await client.post(self.http.credits_url(ACCOUNT), json=body)
            return Credit(**response.raise_for_status().json())

    def find(self, reference: str) -> list[Credit]:
        """All credits with this reference; a read that misses nothing."""
        with httpx.Client(**self._options()) as client:
            response = client.get(self.http.credits_url(ACCOUNT), params={"reference": reference})
            return [Credit(**credit) for credit in response.raise_for_status().json()["credits"]]

    async def find_async(self, reference: str) -> list[Credit]:
        """`find`, on an event loop."""
        async with httpx.AsyncClient(**self._options()) as client:
            response = await client.get(self.http.credits_url(ACCOUNT), params={"reference": reference})
            return [Credit(**credit) for credit in response.raise_for_status().json()["credits"]]


def judge(found: list[Credit], amount_cents: int) -> Verdict[Credit]:
    """None, exactly the one that was meant, or something else."""
    match found:
        case []:
            return Verdict.not_applied("NONE")
        case [one] if one.amount_cents == amount_cents:
            return Verdict.applied("ONE", effect=one)
        case _:
            return Verdict.conflicted("OTHERS", f"{len(found)} credits")


class CreditEffect:
    """The credit as an effect: run in passes on a ledger, sync or async.

    Args:
        client: how to reach the outside system.
        kind: which kind of effect, and of runner.
        send: the write, if not the client's own; sync only.
        proves_absence: whether the read could miss nothing.
        declared: what the contract declares, as for `effect`.
    """

    def __init__(
        self,
        client: HttpxCredits,
        kind: Kind = "sync",
        *,
        send: Send | None = None,
        proves_absence: bool = True,
        **declared: Any,
    ) -> None:
        self.kind = kind
        declared.setdefault("poll", Backoff(seconds(0.1), seconds(0.5)))  # no test waits for the default of 5 s
        self.sync = self._sync(client, send or client.send, proves_absence, time_to_begin(declared))
        self.coro = self._async(client, proves_absence, declared)

    @staticmethod
    def _sync(
        client: HttpxCredits, send: Send, proof: bool, declared: dict[str, Any]
    ) -> Effect[[str, int], Credit]:
        @effect("test/credit", identity=lambda reference, **_: f"op {reference}", **declared)
        @classified()
        def credit(attempt: Attempt, reference: str, amount_cents: int) -> Credit:
            return send(reference, amount_cents)

        @credit.observe
        def seen(attempt: Attempt, reference: str, amount_cents: int) -> Observation[list[Credit]]:
            return Observation.of(client.find(reference), source="credits", proves_absence=proof)

        @seen.reconcile
        def judged(attempt: Attempt, found: list[Credit], reference: str, amount_cents: int) -> Verdict[Credit]:
            return judge(found, amount_cents)

        return credit

    @staticmethod
    def _async(client: HttpxCredits, proof: bool, declared: dict[str, Any]) -> AsyncEffect[[str, int], Credit]:
        @effect("test/credit", identity=lambda reference, **_: f"op {reference}", **declared)
        @classified()
        async def credit(attempt: Attempt, reference: str, amount_cents: int) -> Credit:
            return await client.send_async(reference, amount_cents)

        @credit.observe
        async def seen(attempt: Attempt, reference: str, amount_cents: int) -> Observation[list[Credit]]:
            return Observation.of(await client.find_async(reference), source="credits", proves_absence=proof)

        @seen.reconcile
        def judged(attempt: Attempt, found: list[Credit], reference: str, amount_cents: int) -> Verdict[Credit]:
            return judge(found, amount_cents)

        return credit

    def run(self, ledger: AnyLedger, reference: str, amount_cents: int = 5_000) -> EffectResult[Credit]:
        """One pass."""
        if self.kind == "sync":
            return EffectRunner(ledger).run(self.sync, reference, amount_cents)
        return asyncio.run(self.run_async(ledger, reference, amount_cents))

    async def run_async(self, ledger: AnyLedger, reference: str, amount_cents: int = 5_000) -> EffectResult[Credit]:
        """One pass of the async effect, on this event loop."""
        async with ledger:
            return await AsyncEffectRunner(ledger).run(self.coro, reference, amount_cents)

    def settle(
        self, ledger: AnyLedger, reference: str, amount_cents: int = 5_000, *, within: float = 20.0
    ) -> EffectResult[Credit]:
        """As many passes as it takes, each when the one before said to come back."""
        return settle(lambda: self.run(ledger, reference, amount_cents), within=within)


def settle(one_pass: Callable[[], EffectResult[Any]], *, within: float = 20.0) -> EffectResult[Any]:
    """Repeat a pass when it says to, until something is decided or the next one would be later than ``within``."""
    deadline = time.monotonic() + within
    while True:
        result = one_pass()
        pause = max(result.wait.total_seconds(), 0.005)
        if result.disposition in DECIDED or time.monotonic() + pause > deadline:
            return result
        time.sleep(pause)


def retry_blindly(send: Callable[[], object], times: int = 3) -> None:
    """What people write: try again after any error."""
    for number in range(1, times + 1):
        try:
            send()
            return
        except Exception:
            if number == times:
                raise


def check_then_send(find: Callable[[], list[Credit]], send: Callable[[], object], times: int = 3) -> None:
    """What careful people write: look before each try."""
    for number in range(1, times + 1):
        if find():
            return
        try:
            send()
            return
        except Exception:
            if number == times:
                raise
