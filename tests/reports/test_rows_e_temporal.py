"""Reports about libraries on Temporal: what travels through it, and what is told of it (E03, E05, E06)."""

from __future__ import annotations

import asyncio
import base64
import logging
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.converter import DefaultFailureConverterWithEncodedAttributes, PayloadCodec
from temporalio.exceptions import ActivityError, ApplicationError, TerminatedError
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, Worker

from corrobo_core import (
    Attempt,
    Effect,
    MemoryLedger,
    Observation,
    Outcome,
    Rejected,
    SqliteLedger,
    UsageError,
    Verdict,
    effect,
)
from corrobo_core.commands import Load
from corrobo_core.gates import create_gate
from corrobo_core.records import OperationKey
from corrobo_temporal import (
    CallbackGates,
    CorroboPlugin,
    WorkflowEffects,
    _book,
    effect_activity,
    observe_activity,
)
from corrobo_temporal.gate_wire import SIGNAL
from examples.http_ledger import Credit, HttpLedger
from tests.engines.temporal.conftest import Engine
from tests.engines.temporal.effects import with_hooks
from tests.reports.workflows import AskAndGoOn, Letters, Questions, SendLetters, long_question

WINDOW = timedelta(seconds=20)


def letter_effect(execute: Callable[[Attempt, str, str], Credit]) -> Effect[[str, str], Credit]:
    """A letter is a credit with its reference at the HTTP ledger."""

    @with_hooks
    @effect("reports/letter", identity=lambda reference, **_: reference, in_flight_window=WINDOW)
    def letter(attempt: Attempt, reference: str, body: str) -> Credit:
        return execute(attempt, reference, body)

    return letter


@asynccontextmanager
async def sending(
    engine: Engine, made: Any, letters: Letters, client: Client | None = None
) -> AsyncIterator[WorkflowHandle[SendLetters, list[str]]]:
    """The workflow, under way; its activities are registered as `letter`."""
    client, queue = client or engine.client, f"{engine.workflows}-letters"
    async with Worker(client, task_queue=queue, workflows=[SendLetters]):
        engine.client = client
        await engine.serve(*made)
        yield await client.start_workflow(
            SendLetters.run, replace(letters, task_queue=engine.activities), id=queue, task_queue=queue
        )


def activities(letter: Effect[[str, str], Any], ledger: Any, **options: Any) -> list[Any]:
    return [effect_activity(letter, ledger, **options), observe_activity(letter, ledger)]


# -- E03: more than the server takes -------------------------------------------------------------------------


def too_large(reference: str, *, naive: bool = False) -> Letters:
    return Letters("", reference, size=2_100_000, naive=naive)


def too_many(reference: str, *, naive: bool = False) -> Letters:
    return Letters("", reference, count=20, size=300_000, naive=naive)


def credited(http: HttpLedger) -> list[Any]:
    return activities(
        letter_effect(lambda attempt, reference, body: http.credit("alice", reference, 1)), MemoryLedger()
    )


async def test_e03_arguments_that_the_server_refuses_are_refused_by_name(
    engine: Engine, reference: str, http_ledger: HttpLedger
) -> None:
    async with sending(engine, credited(http_ledger), too_large(reference)) as handle:
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    refusal = failed.value.cause
    assert isinstance(refusal, ApplicationError)
    assert (refusal.type, refusal.non_retryable) == ("IntentError", True)
    assert "arguments of letter: 21000" in str(refusal.details[0])
    assert http_ledger.count(f"{reference} 0") == 0


async def why_its_task_fails(handle: WorkflowHandle[Any, Any]) -> str:
    """Wait until a task of the workflow has failed; it stays that way, as every further one does."""
    for _ in range(600):
        for event in (await handle.fetch_history()).events:
            if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
                cause = WorkflowTaskFailedCause.Name(event.workflow_task_failed_event_attributes.cause)
                return cause.removeprefix("WORKFLOW_TASK_FAILED_CAUSE_")
        await asyncio.sleep(0.05)
    raise AssertionError("no task has failed")


async def test_e03_a_naive_workflow_stands_still_and_its_worker_alone_knows_why(
    engine: Engine, reference: str, http_ledger: HttpLedger
) -> None:
    async with sending(engine, credited(http_ledger), too_large(reference, naive=True)) as handle:
        assert await why_its_task_fails(handle) == "PAYLOADS_TOO_LARGE"
        await handle.terminate()


async def test_e03_effects_that_are_too_large_together_start_one_task_later(
    engine: Engine, reference: str, http_ledger: HttpLedger
) -> None:
    async with sending(engine, credited(http_ledger), too_many(reference)) as handle:
        sent = await handle.result()
        history = await handle.fetch_history()
    assert sent == [f"{reference} {number}" for number in range(20)]
    assert [http_ledger.count(reference) for reference in sent] == [1] * 20
    await Replayer(workflows=[SendLetters]).replay_workflow(history)


async def test_e03_a_naive_workflow_is_ended_by_the_server(
    engine: Engine, reference: str, http_ledger: HttpLedger
) -> None:
    async with sending(engine, credited(http_ledger), too_many(reference, naive=True)) as handle:
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    assert isinstance(failed.value.cause, TerminatedError)


@asynccontextmanager
async def asking(
    engine: Engine, questions: Questions, foreign: int = 0, **options: Any
) -> AsyncIterator[WorkflowHandle[AskAndGoOn, list[int]]]:
    """Questions whose answers come early, and signals for questions that are never asked."""
    queue = f"{engine.workflows}-questions"
    async with Worker(engine.client, task_queue=queue, workflows=[AskAndGoOn], **options):
        handle = await engine.client.start_workflow(AskAndGoOn.run, questions, id=queue, task_queue=queue)
        for number in range(foreign):
            await handle.signal(SIGNAL, answer(f"reports/other#1#{number}", "x" * 60_000))
        for number in range(questions.count):
            asked = create_gate(long_question(number, questions.size))
            await handle.signal(SIGNAL, answer(asked.request_id, True))
        yield handle


def answer(request_id: str, response: object) -> dict[str, object]:
    return {"kind": "answer", "requestId": request_id, "routerId": "ada", "response": response}


async def test_e03_of_many_answers_the_next_run_knows_those_for_which_there_is_room(engine: Engine) -> None:
    async with asking(engine, Questions(24, 100_000)) as handle:
        assert await handle.result() == [19, 20, 21, 22, 23]


async def test_e03_many_signals_for_other_questions_do_not_stop_the_workflow(engine: Engine) -> None:
    async with asking(engine, Questions(2, 10), foreign=40) as handle:
        assert await handle.result() == [0, 1]


@pytest.mark.parametrize(
    ("limit", "questions", "foreign"),
    [("_ANSWERED_BYTES", Questions(24, 100_000), 0), ("_EARLY_BYTES", Questions(2, 10), 40)],
)
async def test_e03_without_a_limit_the_workflow_never_comes_to_its_next_run(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, limit: str, questions: Questions, foreign: int
) -> None:
    monkeypatch.setattr(_book, limit, 1 << 30)
    async with asking(engine, questions, foreign, workflow_runner=UnsandboxedWorkflowRunner()) as handle:
        assert await why_its_task_fails(handle) == "PAYLOADS_TOO_LARGE"
        await handle.terminate()


# -- E05: secrets --------------------------------------------------------------------------------------------

IN_ARGUMENTS, IN_ERRORS = "4000-0566-5566-5556", "sk_live_51HxQz"


class Codec(PayloadCodec):
    """Stands for encryption: what it has encoded is not what was given."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": b"test/hidden"}, data=base64.b85encode(payload.SerializeToString()))
            for payload in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload.FromString(base64.b85decode(payload.data)) for payload in payloads]


def leaky_letter() -> Effect[[str, str], None]:
    """Neither its write nor its read tells anything but secrets."""

    @effect("reports/letter", identity=lambda reference, **_: reference)
    def letter(attempt: Attempt, reference: str, body: str) -> None:
        raise TimeoutError(f"no answer to {body} with {IN_ERRORS}") from ValueError(IN_ERRORS)

    @letter.observe
    def seen(attempt: Attempt, reference: str, body: str) -> Observation[None]:
        raise ConnectionError(f"refused {body} with {IN_ERRORS}")

    @seen.reconcile
    def judge(attempt: Attempt, found: None) -> Verdict[None]:
        raise AssertionError("there is nothing to judge")

    return letter


def redact(text: str) -> str:
    return text.replace(IN_ERRORS, "***").replace(IN_ARGUMENTS, "***")


def texts_of(error: BaseException | None) -> str:
    """Everything that an error and its causes say."""
    said = []
    while error is not None:
        said += [str(error), repr(error), str(getattr(error, "details", ""))]
        error = error.__cause__
    return "\n".join(said)


def files_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir() if file.is_file())


async def test_e05_a_secret_in_arguments_and_errors_is_in_no_history_log_or_message(
    engine: Engine, reference: str, temporal_address: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    plain = engine.client
    converter = replace(
        plain.data_converter,
        payload_codec=Codec(),
        failure_converter_class=DefaultFailureConverterWithEncodedAttributes,
    )
    client = await Client.connect(temporal_address, data_converter=converter)
    with SqliteLedger(tmp_path / "effects.db", redact=redact) as ledger:
        ledger.migrate()
        made = activities(leaky_letter(), ledger, look_again_for=timedelta())
        async with sending(engine, made, Letters("", reference, body=IN_ARGUMENTS), client) as handle:
            with pytest.raises(WorkflowFailureError) as failed:
                await handle.result()
        history = await plain.get_workflow_handle(handle.id).fetch_history()
        operation = ledger.perform(Load(OperationKey("default", f"{reference} 0", "reports/letter"))).operation
    assert operation is not None
    assert IN_ARGUMENTS in operation.intent, "what is executed is stored: pass references instead"
    told = "\n".join([history.to_json(), caplog.text, texts_of(failed.value), repr(replace(operation, intent=""))])
    assert "corrobo.Investigate" in told
    assert IN_ERRORS not in told
    assert IN_ARGUMENTS not in told
    stored = files_of(tmp_path)
    assert IN_ERRORS.encode() not in stored
    assert b"***" in stored


async def test_e05_a_naive_activity_tells_both(engine: Engine, reference: str) -> None:
    @activity.defn(name="letter")
    def naive(reference: str, body: str) -> None:
        raise ApplicationError(f"no answer to {body} with {IN_ERRORS}", non_retryable=True)

    letters = Letters("", reference, body=IN_ARGUMENTS, naive=True)
    async with sending(engine, [naive], letters) as handle:
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
        history = (await handle.fetch_history()).to_json()
    assert isinstance(failed.value.cause, ActivityError)
    assert IN_ERRORS in history


# -- E06: one span for each attempt --------------------------------------------------------------------------


async def test_e06_what_a_hook_traces_is_one_for_each_attempt_and_none_at_replay(
    engine: Engine, reference: str, http_ledger: HttpLedger, temporal_address: str
) -> None:
    """The library writes no spans. Those of a hook have the attempt's number and the operation's id."""
    spans: list[tuple[str, int]] = []

    def execute(attempt: Attempt, reference: str, body: str) -> Credit:
        spans.append((attempt.operation_id, attempt.number))
        if attempt.number < 3:
            raise Rejected("busy", retryable=True, retry_after=timedelta())
        return http_ledger.credit("alice", reference, 1)

    ledger, client = MemoryLedger(), await Client.connect(temporal_address, plugins=[CorroboPlugin()])
    made = activities(letter_effect(execute), ledger)
    async with sending(engine, made, Letters("", reference), client) as handle:
        await handle.result()
        history = await handle.fetch_history()
    await Replayer(workflows=[SendLetters], plugins=[CorroboPlugin()]).replay_workflow(history)
    assert spans == [(f"{reference} 0", 1), (f"{reference} 0", 2), (f"{reference} 0", 3)]
    assert http_ledger.count(f"{reference} 0") == 1
    operation = ledger.perform(Load(OperationKey("default", f"{reference} 0", "reports/letter"))).operation
    assert operation is not None
    told = [(attempt.number, attempt.outcome) for attempt in operation.attempts]
    assert told == [(1, Outcome.REJECTED), (2, Outcome.REJECTED), (3, Outcome.RESPONDED)]


# -- E10: in the wrong place ---------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [CallbackGates, lambda: WorkflowEffects(schedule_to_close_timeout=timedelta(1))])
def test_e10_outside_a_workflow_it_says_where_it_belongs(made: Callable[[], object]) -> None:
    with pytest.raises(UsageError, match=re.escape("in @workflow.init")):
        made()
