"""What a call of an effect step does, returns and raises, in workflows and outside."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from dbos import DBOS, DBOSConfiguredInstance, DBOSPortableJSONSerializer, SetWorkflowID

from corrobo_core import (
    Attempt,
    Check,
    EffectContract,
    IdentityReused,
    IntentError,
    InvestigateError,
    NotYetError,
    Observation,
    Reason,
    Rejected,
    ReplanError,
    ReviewError,
    Verdict,
    effect,
)
from corrobo_dbos import effect_step
from examples.http_ledger import Counts, Credit, HttpLedger, answer_lost, reads_fail, refused
from tests.engines.dbos.app import ACCOUNT, POLL, async_credit_effect, credit_effect, judged
from tests.engines.dbos.conftest import Local


def test_an_effect_in_a_workflow_is_one_named_step_that_returns_its_value(local: Local) -> None:
    credit = effect_step(local.ledger)(credit_effect(local.http))

    @DBOS.workflow()
    def pay(reference: str) -> Credit:
        return credit(reference, 7)

    local.launch()
    with SetWorkflowID("wf"):
        paid = pay("rf_81")

    assert paid == Credit("cr_1", ACCOUNT, "rf_81", 7)
    assert local.steps("wf") == [(1, "tests/credit")]
    with SetWorkflowID("wf"):
        assert pay("rf_81") == paid  # DBOS answers from its record
    assert local.http.count() == 1


async def test_an_async_effect_likewise(local: Local) -> None:
    credit = effect_step(local.ledger, name="credit a customer")(async_credit_effect(local.http))

    @DBOS.workflow()
    async def pay(reference: str) -> Credit:
        return await credit(reference, 7)

    local.launch()
    with SetWorkflowID("wf"):
        assert await pay("rf_81") == Credit("cr_1", ACCOUNT, "rf_81", 7)

    steps = await DBOS.list_workflow_steps_async("wf")
    assert [(step["function_id"], step["function_name"]) for step in steps] == [(1, "credit a customer")]


def test_outside_a_workflow_a_call_is_one_pass_and_needs_no_dbos(local: Local) -> None:
    """E10."""
    credit = effect_step(local.ledger)(credit_effect(local.http))
    local.http.fail_next(refused(503, reference="rf_82"))

    assert credit("rf_81", 5_000).reference == "rf_81"
    with pytest.raises(NotYetError) as not_yet:
        credit("rf_82", 5_000)

    assert not_yet.value.reason == Reason.SETTLING and not_yet.value.retry_at
    assert local.http.counts("rf_82").write_requests == 1


async def test_outside_a_workflow_an_async_call_is_one_pass(local: Local) -> None:
    credit = effect_step(local.ledger)(async_credit_effect(local.http))
    local.http.fail_next(refused(503, reference="rf_82"))

    assert (await credit("rf_81", 5_000)).reference == "rf_81"
    with pytest.raises(NotYetError):
        await credit("rf_82", 5_000)


def test_a_lost_answer_is_looked_up_inside_the_step(local: Local) -> None:
    credit = effect_step(local.ledger)(credit_effect(local.http))
    local.http.fail_next(answer_lost(reset=True))

    @DBOS.workflow()
    def pay(reference: str) -> Credit:
        return credit(reference, 5_000)

    local.launch()

    assert pay("rf_81").id == "cr_1"
    assert local.http.count() == 1


def test_a_retry_waits_inside_the_step(local: Local) -> None:
    credit = effect_step(local.ledger)(credit_effect(local.http))
    local.http.fail_next(refused(503))

    @DBOS.workflow()
    def pay(reference: str) -> Credit:
        return credit(reference, 5_000)

    local.launch()
    with SetWorkflowID("wf"):
        assert pay("rf_81").id == "cr_1"

    assert local.http.counts("rf_81").write_requests == 2
    assert local.steps("wf") == [(1, "tests/credit")]


def test_e04_a_checkpoint_needs_nothing_but_json(local: Local) -> None:
    credit = effect_step(local.ledger)(credit_effect(local.http))

    @DBOS.workflow()
    def pay(reference: str) -> str:
        return credit(reference, 5_000).id

    local.launch(DBOSPortableJSONSerializer())
    with SetWorkflowID("wf"):
        assert pay("rf_81") == "cr_1"

    assert DBOS.fork_workflow("wf", 2).get_result() == "cr_1"
    assert local.http.counts() == Counts(credits=1, write_requests=1, read_requests=1)


def outcomes(http: HttpLedger, ledger: Any) -> dict[type[Exception], Any]:
    """Steps that end with each of the errors that `EffectResult.unwrap` knows."""

    def made(type_: str, verdict: Verdict[str], check: Check | None = None, error: Exception | None = None) -> Any:
        @effect(type_, identity=lambda reference: reference, in_flight_window=timedelta(seconds=1), poll=POLL)
        def act(attempt: Attempt, reference: str) -> str:
            http.credit(ACCOUNT, reference, 1)
            if error:
                raise error
            return reference

        @act.observe
        def seen(attempt: Attempt) -> Observation[None]:
            return Observation.of(None, source="test", proves_absence=True)

        @seen.reconcile
        def judge(attempt: Attempt, data: None) -> Verdict[str]:
            return verdict

        if check is not None:
            act.authorize(lambda attempt: check)
        return effect_step(ledger, look_again_for=timedelta(seconds=0.5))(act)

    return {
        ReplanError: made("tests/replan", Verdict.not_applied("NO"), error=Rejected("closed account")),
        ReviewError: made("tests/review", Verdict.not_applied("NO"), Check.requires_review("large")),
        InvestigateError: made("tests/unclear", Verdict.unknown("NOBODY_KNOWS", "the archive is closed")),
    }


@pytest.mark.parametrize("kind", [ReplanError, ReviewError, InvestigateError])
def test_what_needs_somebody_is_checkpointed_as_data_and_raised_in_workflow_code(
    local: Local, kind: type[Exception]
) -> None:
    act = outcomes(local.http, local.ledger)[kind]
    seen: list[Exception] = []

    @DBOS.workflow()
    def workflow(reference: str) -> str:
        try:
            return str(act(reference))
        except kind as error:
            seen.append(error)
            raise

    local.launch()
    with SetWorkflowID("wf"), pytest.raises(kind) as raised:
        workflow("rf_81")
    forked = DBOS.fork_workflow("wf", 2)  # the step is replayed from its checkpoint
    with pytest.raises(kind) as again:
        forked.get_result()

    assert len(seen) == 2
    assert raised.value.args == again.value.args == seen[1].args
    assert raised.value.args[1] == "rf_81"
    (step,) = DBOS.list_workflow_steps("wf")
    assert step["error"] is None and step["output"] is not None and step["output"]["id"] == "rf_81"
    assert local.http.count() == (0 if kind is ReviewError else 1)


def test_unclear_evidence_is_looked_at_again_until_it_clears(local: Local) -> None:
    credit = effect_step(local.ledger, look_again_for=timedelta(seconds=20))(credit_effect(local.http))
    local.http.fail_next(reads_fail(times=3))

    @DBOS.workflow()
    def pay(reference: str) -> Credit:
        return credit(reference, 5_000)

    local.launch()

    assert pay("rf_81").id == "cr_1"
    assert local.http.counts("rf_81").write_requests == 1
    assert local.http.counts("rf_81").read_requests == 4


def test_one_id_with_another_intent_is_refused_and_leaves_no_checkpoint(local: Local) -> None:
    """A09: never sends one effect's body under another's id."""
    credit = effect_step(local.ledger)(credit_effect(local.http))

    @DBOS.workflow()
    def pay(reference: str, amount_cents: int) -> Credit:
        return credit(reference, amount_cents)

    local.launch()
    pay("rf_81", 5_000)
    with SetWorkflowID("wf"), pytest.raises(IdentityReused, match="another intent"):
        pay("rf_81", 6_000)

    assert local.http.count() == 1
    assert local.steps("wf") == []


def test_a_bad_intent_is_refused_and_the_next_effect_still_works(local: Local) -> None:
    credit = effect_step(local.ledger)(credit_effect(local.http))

    @DBOS.workflow()
    def pay(reference: str, amount: Any) -> Credit:
        try:
            return credit(reference, amount)
        except IntentError:
            return credit(reference, 5_000)

    local.launch()
    with SetWorkflowID("wf"):
        assert pay("rf_81", float("nan")).amount_cents == 5_000

    assert local.steps("wf") == [(2, "tests/credit")]  # each call has its own id, also a refused one


# -- contracts, instances, context ---------------------------------------------------------------------------


class Credits(EffectContract[str, list[Credit], Credit]):
    """A contract with a client of its own; its intent is the reference."""

    type = "tests/credits"
    in_flight_window = timedelta(seconds=1)

    def __init__(self, http: HttpLedger) -> None:
        self.http = http

    def identity(self, intent: str) -> str:
        return intent

    def execute(self, attempt: Attempt, intent: str) -> Credit:
        return self.http.credit(ACCOUNT, intent, 5_000)

    def observe(self, attempt: Attempt, intent: str) -> Observation[list[Credit]]:
        return Observation.of(self.http.credits(ACCOUNT, intent), source="credits", proves_absence=True)

    def reconcile(self, attempt: Attempt, intent: str, data: list[Credit]) -> Verdict[Credit]:
        return judged(data)


def test_a_configured_instance_holds_the_steps_of_its_own_contracts(local: Local) -> None:
    @DBOS.dbos_class()
    class Payments(DBOSConfiguredInstance):
        def __init__(self, name: str, http: HttpLedger) -> None:
            super().__init__(name)
            self.credit = effect_step(local.ledger)(Credits(http))

        @DBOS.workflow()
        def pay(self, reference: str) -> Credit:
            return self.credit(reference)

    payments = Payments("eu", local.http)
    local.http.fail_next(answer_lost())
    local.launch()
    with SetWorkflowID("wf"):
        assert payments.pay("rf_81").id == "cr_1"

    assert local.steps("wf") == [(1, "tests/credits")]
    assert DBOS.fork_workflow("wf", 1).get_result().id == "cr_1"
    assert local.http.count() == 1


def test_hooks_are_added_through_the_step_and_context_reaches_them(local: Local) -> None:
    asked: list[Any] = []

    @effect_step(local.ledger)
    @effect("tests/asked", identity=lambda reference: reference, in_flight_window=timedelta(seconds=1))
    def act(attempt: Attempt, reference: str) -> Credit:
        return local.http.credit(ACCOUNT, reference, 1)

    @act.observe
    def seen(attempt: Attempt, reference: str) -> Observation[list[Credit]]:
        return Observation.of(local.http.credits(ACCOUNT, reference), source="credits", proves_absence=True)

    @seen.reconcile
    def judge(attempt: Attempt, found: list[Credit]) -> Verdict[Credit]:
        return judged(found)

    @act.authorize
    def may(attempt: Attempt) -> Check:
        asked.append(("authorize", attempt.context["actor"]))
        return Check.proceed()

    @act.revalidate
    def still_right(attempt: Attempt) -> Check:
        asked.append(("revalidate", attempt.context["actor"]))
        return Check.proceed()

    @DBOS.workflow()
    def workflow(reference: str) -> Credit:
        return act.with_context(actor="bob")(reference)

    local.launch()

    assert workflow("rf_81").id == "cr_1"
    assert asked == [("authorize", "bob"), ("revalidate", "bob")]


async def test_hooks_of_an_async_effect_are_added_through_the_step(local: Local) -> None:
    @effect_step(local.ledger)
    @effect("tests/asked", identity=lambda reference: reference, in_flight_window=timedelta(seconds=1))
    async def act(attempt: Attempt, reference: str) -> Credit:
        return await asyncio.to_thread(local.http.credit, ACCOUNT, reference, 1)

    @act.observe
    def seen(attempt: Attempt, reference: str) -> Observation[list[Credit]]:
        return Observation.of(local.http.credits(ACCOUNT, reference), source="credits", proves_absence=True)

    @seen.reconcile
    def judge(attempt: Attempt, found: list[Credit]) -> Verdict[Credit]:
        return judged(found)

    @act.authorize
    async def may(attempt: Attempt) -> Check:
        return Check.proceed()

    @act.revalidate
    def still_right(attempt: Attempt) -> Check:
        return Check.reject("sold out")

    with pytest.raises(ReplanError, match="sold out"):
        await act("rf_81")
    assert local.http.count() == 0


def test_a_step_looks_like_its_effect(local: Local) -> None:
    credit = effect_step(local.ledger)(credit_effect(local.http))

    assert credit.__name__ == "credit" and credit.__module__ == "tests.engines.dbos.app"
    assert repr(credit) == "<FunctionStep of <Effect 'tests/credit'>>"
    assert credit.effect.definition.type == credit.name == "tests/credit"
