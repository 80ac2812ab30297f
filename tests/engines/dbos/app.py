"""A small application: effects on the HTTP ledger, as DBOS steps, and their naive twins.

Also the program of the child processes that tests kill: ``app.py start WORKFLOW=REFERENCE,... ...`` starts
workflows, ``app.py wait WORKFLOW...`` only recovers, and ``app.py spare FILE WORKFLOW...`` does so once that file
exists. All print ``done WORKFLOW RESULT`` as workflows end.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from dbos import DBOS, SetWorkflowID, StepReservation

from corrobo_core import AsyncEffect, Attempt, Backoff, Check, Effect, Observation, Verdict, effect
from corrobo_core.ledgers.env import from_env
from corrobo_core.ledgers.ports import Ledger
from corrobo_dbos import DbosGates, GateExpiredError, effect_step
from corrobo_dbos.asking import LOOK, Step
from examples.http_ledger import Credit, HttpLedger
from tests.engines.dbos.questions import OFTEN, SELDOM, question
from tests.support.dbos import dbos_config, running_dbos

ACCOUNT = "alice"
WINDOW = timedelta(seconds=1)
LONG_WINDOW = timedelta(seconds=4)
POLL = Backoff(timedelta(milliseconds=200), timedelta(milliseconds=400))


def judged(found: list[Credit]) -> Verdict[Credit]:
    """What the credits that carry one reference say about the intended one."""
    match found:
        case []:
            return Verdict.not_applied("NO_CREDIT")
        case [one]:
            return Verdict.applied("CREDITED", effect=one)
        case _:
            return Verdict.conflicted("DUPLICATES", f"{len(found)} credits exist")


def credit_effect(http: HttpLedger, type_: str = "tests/credit", **options: Any) -> Effect[[str, int], Credit]:
    """A credit of one account; its reference is the operation."""
    declared = {"in_flight_window": WINDOW, "poll": POLL, **options}

    @effect(type_, identity=lambda reference: reference, **declared)
    def credit(attempt: Attempt, reference: str, amount_cents: int) -> Credit:
        return http.credit(ACCOUNT, reference, amount_cents)

    @credit.observe
    def seen(attempt: Attempt, reference: str, amount_cents: int) -> Observation[list[Credit]]:
        return Observation.of(http.credits(ACCOUNT, reference), source="credits", proves_absence=True)

    @seen.reconcile
    def judge(attempt: Attempt, found: list[Credit]) -> Verdict[Credit]:
        return judged(found)

    return credit


def reviewed_effect(http: HttpLedger, **options: Any) -> Effect[[str, int], Credit]:
    """A credit that a person must approve."""
    credit = credit_effect(http, "tests/reviewed", **options)

    @credit.authorize
    def asks(attempt: Attempt, reference: str, amount_cents: int) -> Check:
        return Check.requires_review("over the limit")

    return credit


def async_credit_effect(
    http: HttpLedger, type_: str = "tests/credit", **options: Any
) -> AsyncEffect[[str, int], Credit]:
    """`credit_effect`, asynchronous."""
    declared = {"in_flight_window": WINDOW, "poll": POLL, **options}

    @effect(type_, identity=lambda reference: reference, **declared)
    async def credit(attempt: Attempt, reference: str, amount_cents: int) -> Credit:
        return await asyncio.to_thread(http.credit, ACCOUNT, reference, amount_cents)

    @credit.observe
    async def seen(attempt: Attempt, reference: str, amount_cents: int) -> Observation[list[Credit]]:
        found = await asyncio.to_thread(http.credits, ACCOUNT, reference)
        return Observation.of(found, source="credits", proves_absence=True)

    @seen.reconcile
    def judge(attempt: Attempt, found: list[Credit]) -> Verdict[Credit]:
        return judged(found)

    return credit


class DyingGates(DbosGates):
    """Gates whose process dies the first time it was woken, before it has looked; the HTTP ledger remembers."""

    def __init__(self, ledger: Ledger, http: HttpLedger) -> None:
        super().__init__(ledger, look_every=SELDOM)
        self._http = http

    def step(self, reserved: StepReservation, ask: Step) -> object:
        if ask.name == LOOK and not self._http.count("died"):
            self._http.credit(ACCOUNT, "died", 1)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(reserved, ask)


def register(ledger: Ledger, http: HttpLedger) -> dict[str, Callable[..., Any]]:
    """Register the workflows; their arguments are references."""
    credit = effect_step(ledger)(credit_effect(http))
    credit_async = effect_step(ledger)(async_credit_effect(http))
    credit_late = effect_step(ledger)(credit_effect(http, "tests/late", in_flight_window=LONG_WINDOW))

    @DBOS.step()
    def naive_credit(reference: str) -> Credit:
        return http.credit(ACCOUNT, reference, 5_000)

    @DBOS.step()
    async def naive_credit_async(reference: str) -> Credit:
        return await asyncio.to_thread(http.credit, ACCOUNT, reference, 5_000)

    @DBOS.workflow(name="naive")
    def naive(reference: str) -> str:
        return naive_credit(reference).reference

    @DBOS.workflow(name="naive_async")
    async def naive_async(*references: str) -> list[str]:
        return [found.reference for found in await asyncio.gather(*map(naive_credit_async, references))]

    @DBOS.workflow(name="guarded")
    def guarded(reference: str) -> str:
        return credit(reference, 5_000).reference

    @DBOS.workflow(name="guarded_async")
    async def guarded_async(*references: str) -> list[str]:
        found = await asyncio.gather(*(credit_async(reference, 5_000) for reference in references))
        return [one.reference for one in found]

    @DBOS.workflow(name="patient")
    def patient(reference: str) -> str:
        return credit_late(reference, 5_000).reference

    gates, dying = DbosGates(ledger, look_every=SELDOM), DyingGates(ledger, http)

    credit_reviewed = effect_step(ledger, gates=gates)(reviewed_effect(http))

    @DBOS.workflow(name="reviewed")
    def reviewed(reference: str) -> str:
        return credit_reviewed(reference, 5_000).reference

    @DBOS.workflow(name="asking")
    def asking(reference: str) -> str:
        answer = gates.ask(question(reference))
        return f"{answer.response} {credit(reference, 5_000).reference}"

    looking = DbosGates(ledger, look_every=OFTEN)

    @DBOS.workflow(name="looking")
    def looking_(reference: str) -> str:
        return str(looking.ask(question(reference)).response)

    @DBOS.workflow(name="dying")
    def dying_(reference: str) -> str:
        answer = dying.ask(question(reference))
        return f"{answer.response} {credit(reference, 5_000).reference}"

    @DBOS.workflow(name="deadline")
    def deadline(reference: str) -> str:
        try:
            return str(gates.ask(question(reference), deadline=LONG_WINDOW).response)
        except GateExpiredError:
            return "expired"

    return {
        "asking": asking,
        "deadline": deadline,
        "dying": dying_,
        "guarded": guarded,
        "guarded_async": guarded_async,
        "looking": looking_,
        "naive": naive,
        "naive_async": naive_async,
        "patient": patient,
        "reviewed": reviewed,
    }


def main(command: str, *words: str) -> None:
    """See the module's text. Configured by the environment, since a child process must find it there again."""
    ledger, http = from_env(), HttpLedger(os.environ["HTTP_LEDGER"])
    workflows = register(ledger, http)
    database = os.environ["SYSTEM_DATABASE"]
    config = dbos_config(database if "://" in database else Path(database))
    if command == "spare":
        starts, words = words[0], words[1:]
        print("ready", flush=True)
        while not Path(starts).exists():
            time.sleep(0.01)
    with ledger, running_dbos(config):
        print("launched", flush=True)
        for word in words if command == "start" else ():
            name, _, references = word.partition("=")
            with SetWorkflowID(name):
                DBOS.start_workflow(workflows[name], *references.split(","))
        for name in (word.partition("=")[0] for word in words):
            print("done", name, DBOS.retrieve_workflow(name).get_result(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
