"""One effect that DBOS runs more than once: at the same time, again, or in another order. With naive twins."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from dbos import DBOS, SetWorkflowID, SetWorkflowTimeout, WorkflowHandle
from dbos import error as dbos_error

from corrobo_core import EffectError
from corrobo_dbos import CheckpointError, effect_step
from examples.http_ledger import Credit, Fault, answer_lost, error_after_commit, reads_fail, refused, slow_answer
from tests.engines.dbos.app import ACCOUNT, async_credit_effect, credit_effect, register
from tests.engines.dbos.conftest import Local, wait_until

BOTH = ["guarded", "guarded_async"]


def started(workflow: Callable[..., Any], *args: Any) -> WorkflowHandle[Any]:
    """Start it where DBOS starts recovered ones: in a thread, or on its own event loop."""
    return DBOS.start_workflow(workflow, *args)


# -- again, by the application -------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [answer_lost(reset=True), error_after_commit(502), answer_lost()])
def test_a03_a_loop_around_an_effect_does_not_send_it_again(local: Local, fault: Fault) -> None:
    """Everything but a proof of non-delivery is unknown; the next call looks first."""
    credit = effect_step(local.ledger, look_again_for=timedelta(0))(credit_effect(local.http))
    local.http.fail_next(fault, fault, reads_fail(times=2))
    errors: list[Exception] = []

    def five_times(call: Callable[[], Credit]) -> Credit:
        for _ in range(5):
            try:
                return call()
            except Exception as error:
                errors.append(error)
                DBOS.sleep(0.5)
        raise AssertionError(errors)

    @DBOS.step()
    def naive(reference: str) -> Credit:
        return local.http.credit(ACCOUNT, reference, 5_000)

    @DBOS.workflow()
    def publish(reference: str, naively: bool) -> Credit:
        return five_times(lambda: naive(reference) if naively else credit(reference, 5_000))

    local.launch()
    publish("guarded", False)
    publish("naive", True)

    assert sum(isinstance(error, EffectError) for error in errors) == 2
    assert (local.http.count("guarded"), local.http.count("naive")) == (1, 2)


def test_a03_an_effect_that_the_workflow_stops_waiting_for_is_not_sent_again(local: Local) -> None:
    credit = effect_step(local.ledger)(async_credit_effect(local.http))
    local.http.fail_next(slow_answer(2, reference="guarded"), slow_answer(2, reference="naive"))

    @DBOS.step()
    async def naive(reference: str) -> Credit:
        return await asyncio.to_thread(local.http.credit, ACCOUNT, reference, 5_000)

    @DBOS.workflow()
    async def publish(reference: str, naively: bool) -> str:
        async def once() -> Credit:
            return await (naive(reference) if naively else credit(reference, 5_000))

        impatient = asyncio.create_task(once())
        await asyncio.to_thread(local.http.wait_for_count, 1, reference)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        return (await once()).reference

    local.launch()
    handles = [started(publish, reference, reference == "naive") for reference in ("guarded", "naive")]

    assert [handle.get_result() for handle in handles] == ["guarded", "naive"]
    assert (local.http.count("guarded"), local.http.count("naive")) == (1, 2)


# -- again, by DBOS ------------------------------------------------------------------------------------------


def test_cancelled_and_resumed_in_mid_write_an_effect_is_sent_once(local: Local) -> None:
    """A07: the resumed run does not know that the first one is still at it."""
    workflows = register(local.ledger, local.http)
    names = [*BOTH, "naive"]
    local.http.fail_next(*(slow_answer(3, reference=name) for name in names))
    local.launch()
    for name in names:
        with SetWorkflowID(name):
            started(workflows[name], name)
    for name in names:
        local.http.wait_for_count(1, name)

    for name in names:
        DBOS.cancel_workflow(name)
        DBOS.resume_workflow(name)
    for name in names:
        DBOS.retrieve_workflow(name).get_result()

    assert {name: local.http.count(name) for name in names} == {"guarded": 1, "guarded_async": 1, "naive": 2}


def test_forked_from_its_step_an_effect_is_not_sent_again(local: Local) -> None:
    workflows = register(local.ledger, local.http)
    names = [*BOTH, "naive"]
    local.launch()
    for name in names:
        with SetWorkflowID(name):
            started(workflows[name], name).get_result()

    for forked in [DBOS.fork_workflow(name, 1) for name in names]:
        forked.get_result()

    assert {name: local.http.count(name) for name in names} == {"guarded": 1, "guarded_async": 1, "naive": 2}


def test_a05_five_calls_with_one_workflow_id_send_an_effect_once(local: Local) -> None:
    """Also where each call of the workflow has an id of its own, which DBOS does not deduplicate."""
    workflows = register(local.ledger, local.http)
    local.http.fail_next(slow_answer(0.5, reference="same"), slow_answer(0.5, reference="naive"))
    local.launch()
    results: list[str] = []

    def call(name: str, reference: str, workflow_id: str) -> None:
        with SetWorkflowID(workflow_id):
            results.append(workflows[name](reference))

    calls = [("guarded", "same", "same")] * 5 + [("guarded", "same", f"own-{n}") for n in range(5)]
    calls += [("naive", "naive", f"naive-{n}") for n in range(5)]
    threads = [threading.Thread(target=call, args=arguments) for arguments in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(results) == ["naive"] * 5 + ["same"] * 10
    assert (local.http.count("same"), local.http.count("naive")) == (1, 5)


# -- in another order ----------------------------------------------------------------------------------------


def test_a09_effects_of_a_gather_keep_their_results_on_replay(local: Local) -> None:
    """Also when one of them waits in between: a loop of steps and sleeps would get the numbers mixed up."""
    credit = effect_step(local.ledger)(async_credit_effect(local.http))
    local.http.fail_next(refused(503, reference="a"))

    @DBOS.workflow()
    async def pair() -> list[str]:
        return [one.reference for one in await asyncio.gather(credit("a", 1), credit("b", 2))]

    local.launch()
    with SetWorkflowID("wf"):
        assert started(pair).get_result() == ["a", "b"]

    assert local.steps("wf") == [(1, "tests/credit"), (2, "tests/credit")]
    for start in (1, 2, 3):
        assert DBOS.fork_workflow("wf", start).get_result() == ["a", "b"]
    assert local.http.count() == 2


def test_a09_step_ids_follow_the_order_of_the_calls_whatever_is_awaited_first(local: Local) -> None:
    credit = effect_step(local.ledger)(async_credit_effect(local.http))

    @DBOS.workflow()
    async def pair() -> None:
        first, second = credit("a", 1), credit("b", 2)
        await second
        await first

    local.launch()
    with SetWorkflowID("wf"):
        started(pair).get_result()

    outputs = {step["function_id"]: step["output"] for step in DBOS.list_workflow_steps("wf")}
    assert {number: output["id"] for number, output in outputs.items() if output} == {1: "a", 2: "b"}


def test_a09_replayed_in_another_order_no_effect_gets_anothers_result(local: Local) -> None:
    credit = effect_step(local.ledger)(async_credit_effect(local.http))
    order = ["a", "b"]

    @DBOS.step()
    async def naive_credit(reference: str) -> str:
        return reference

    @DBOS.workflow()
    async def naive() -> dict[str, str]:
        return dict(zip(order, await asyncio.gather(*map(naive_credit, order)), strict=True))

    @DBOS.workflow()
    async def guarded() -> list[Any]:
        return await asyncio.gather(*(credit(one, 1) for one in order), return_exceptions=True)

    local.launch()
    for workflow in (naive, guarded):
        with SetWorkflowID(workflow.__name__):
            started(workflow).get_result()
    order.reverse()
    swapped = DBOS.fork_workflow("naive", 3).get_result()
    refused_ones = DBOS.fork_workflow("guarded", 3).get_result()

    assert swapped == {"b": "a", "a": "b"}
    assert [type(error) for error in refused_ones] == [CheckpointError, CheckpointError]
    assert "holds the outcome of tests/credit 'a'" in str(refused_ones[0])
    assert local.http.count() == 2


# -- stopped while it waits ----------------------------------------------------------------------------------


def waiting_workflow(
    local: Local, kind: str, window: timedelta
) -> tuple[Callable[[str], Any], list[BaseException]]:
    """A workflow whose effect was refused unclearly and waits for its window, and how it was stopped."""
    stopped: list[BaseException] = []
    options: dict[str, Any] = {"in_flight_window": window, "execute_timeout": timedelta(seconds=1)}
    local.http.fail_next(refused(503))
    credit = effect_step(local.ledger)(credit_effect(local.http, **options))
    credit_async = effect_step(local.ledger)(async_credit_effect(local.http, **options))

    @DBOS.workflow(name="guarded")
    def guarded(reference: str) -> str:
        try:
            return credit(reference, 5_000).reference
        except BaseException as error:
            stopped.append(error)
            raise

    @DBOS.workflow(name="guarded_async")
    async def guarded_async(reference: str) -> str:
        try:
            return (await credit_async(reference, 5_000)).reference
        except BaseException as error:
            stopped.append(error)
            raise

    return {"guarded": guarded, "guarded_async": guarded_async}[kind], stopped


@pytest.mark.parametrize("kind", BOTH)
def test_a_cancelled_workflow_stops_waiting_and_sends_nothing_until_resumed(local: Local, kind: str) -> None:
    workflow, stopped = waiting_workflow(local, kind, timedelta(seconds=4))
    local.launch()
    with SetWorkflowID("wf"):
        started(workflow, "rf_81")
    wait_until(lambda: local.http.counts("rf_81").read_requests == 1)

    DBOS.cancel_workflow("wf")
    wait_until(lambda: bool(stopped))

    assert isinstance(stopped[0], dbos_error.DBOSWorkflowCancelledError)
    assert local.steps("wf") == []
    assert local.http.counts("rf_81").write_requests == 1
    assert DBOS.resume_workflow("wf").get_result() == "rf_81"
    assert local.http.count("rf_81") == 1


@pytest.mark.parametrize("kind", BOTH)
def test_a_workflow_timeout_ends_the_wait(local: Local, kind: str) -> None:
    workflow, stopped = waiting_workflow(local, kind, timedelta(seconds=20))
    local.launch()

    with SetWorkflowTimeout(0.5):
        handle = started(workflow, "rf_81")
    with pytest.raises(dbos_error.DBOSAwaitedWorkflowCancelledError):
        handle.get_result()
    wait_until(lambda: bool(stopped))

    assert local.http.counts("rf_81").write_requests == 1


def test_shut_down_while_it_waits_a_workflow_goes_on_at_the_next_launch(local: Local) -> None:
    workflow, stopped = waiting_workflow(local, "guarded", timedelta(seconds=4))
    local.launch()
    with SetWorkflowID("wf"):
        started(workflow, "rf_81")
    wait_until(lambda: local.http.counts("rf_81").read_requests == 1)

    DBOS.destroy()
    wait_until(lambda: bool(stopped))
    assert local.http.counts("rf_81").write_requests == 1
    local.launch()

    assert DBOS.retrieve_workflow("wf").get_result() == "rf_81"
    assert local.http.count("rf_81") == 1
