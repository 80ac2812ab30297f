"""The activities of workers that hold the reviewer's role: what waits, and what a person decided about it.

Source: semantics R1, R3, R4, A6.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from temporalio import activity
from temporalio.exceptions import ApplicationError

from corrobo_core import (
    AsyncReviewDesk,
    BaseEffect,
    CorroboError,
    DecisionRecorded,
    DecisionRefused,
    IntentError,
    UsageError,
    Waiting,
)
from corrobo_core.commands import Load
from corrobo_core.gates import Answer, GateRequest, GateView
from corrobo_core.gates.effects import decision_kind, effect_gate, effect_question
from corrobo_core.gates.jsontext import sha256
from corrobo_core.gates.schemas import problem_of
from corrobo_core.ledgers.ports import Ledger
from corrobo_core.records import JSON, Operation, OperationKey
from corrobo_core.values import LOST
from corrobo_temporal.failures import refusal_for
from corrobo_temporal.people import ASK, DECIDE

__all__ = ["MayDecide", "decide_late", "decision_activities"]

MayDecide: TypeAlias = Callable[[str, Waiting], bool | Awaitable[bool]]
"""Given the reviewer's name and what waits: may this person decide it, now?"""

_LONGEST_GATE_ID = 200


def decision_activities(
    ledger: Ledger, *, effects: Sequence[BaseEffect[Any, Any]] = (), may_decide: MayDecide | None = None
) -> list[Callable[..., Any]]:
    """The two activities of a worker on `WorkflowEffects`' ``decisions_task_queue``.

    They neither execute nor observe, and belong in a process of the reviewer's role. Open the ledger with
    ``async with``, or let ``CorroboPlugin(ledger, decides=[...])`` do so.

    Args:
        ledger: with the reviewer's database role, where there are roles.
        effects: whose investigations may be answered with ``applied``: its value is checked against their types.
        may_decide: asked before each decision is recorded, after the person has answered; the library authenticates
            nobody (R9).

    Returns:
        ``@activity.defn`` functions, to be registered together.

    Source: semantics R1, A6.
    """
    desk = _Desk(ledger, _by_type(effects), may_decide)

    @activity.defn(name=ASK)
    async def ask(order: dict[str, Any]) -> dict[str, Any]:
        return await _refused(desk.ask(order))

    @activity.defn(name=DECIDE)
    async def decide(order: dict[str, Any]) -> dict[str, Any]:
        return await _refused(desk.decide(order))

    return [ask, decide]


async def decide_late(
    ledger: Ledger,
    view: GateView,
    answer: Answer,
    *,
    actor: Mapping[str, JSON] | None = None,
    effects: Sequence[BaseEffect[Any, Any]] = (),
) -> DecisionRecorded:
    """Record what a person said about an effect whose workflow has ended (`WorkflowGone.undelivered`).

    The effect goes on when any workflow runs it again. Whether this person may decide is for the caller to check:
    nobody is authenticated (R9).

    Args:
        ledger: open, with the reviewer's database role, where there are roles.
        view: the question, as it was shown.
        answer: to it.
        actor: whose ``name`` is recorded as the reviewer's; the router's unless given.
        effects: whose investigations may be answered with ``applied``.

    Raises:
        DecisionRefused: it waits for no such decision any more (R4). Not retryable.
        UsageError: the question is no effect's, or the answer does not fit it. Not retryable.
        LedgerUnavailable: the database did not answer. Retryable: the same decision is recorded once.

    Source: semantics R3, R4, A6.
    """
    question = effect_question(replace(view.request, gate_id=view.request.gate_id.partition("/")[0]))
    if question is None:
        raise UsageError("decide_late", "this is not the question of an effect: keep its answer yourself")
    problem = problem_of(answer.response, view.request.response_schema_json)
    if problem is not None:
        raise UsageError("decide_late", f"the answer does not fit the question: {problem}")
    response: Any = answer.response
    named = None if actor is None else actor.get("name")
    order = {
        "operationId": question.operation_id,
        "operationType": question.operation_type,
        "token": question.token,
        "fingerprint": question.fingerprint,
        "decision": decision_kind(response).value,
        "reviewer": named if isinstance(named, str) and named.strip() else answer.router_id,
        "note": response.get("reason", response.get("note", "")),
        "value": response.get("value"),
    }
    try:
        return await _Desk(ledger, _by_type(effects), None).record(order)
    except _Unusable as unusable:
        raise UsageError("decide_late", unusable.args[1]) from None


def _by_type(effects: Sequence[BaseEffect[Any, Any]]) -> dict[str, BaseEffect[Any, Any]]:
    return {effect.definition.type: effect for effect in effects}


async def _refused(work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    try:
        return await work
    except CorroboError as error:
        raise refusal_for(error) from None


class _Desk:
    def __init__(
        self, ledger: Ledger, effects: Mapping[str, BaseEffect[Any, Any]], may_decide: MayDecide | None
    ) -> None:
        self._ledger, self._effects, self._may_decide = ledger, effects, may_decide
        self._desk = AsyncReviewDesk(ledger)

    # -- what waits --------------------------------------------------------------------------------------------

    async def ask(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """The question to ask, or that nothing is open any more."""
        key = OperationKey(self._ledger.namespace, order["operationId"], "")
        loaded = await self._ledger.perform_async(Load(key))
        operation = loaded.operation
        if operation is None:
            raise ApplicationError(
                "the decisions' ledger does not know the operation: is it the same database and namespace?",
                {"operation_id": order["operationId"]},
                type="corrobo.UnknownOperation",
                non_retryable=True,
            )
        token = order["token"]
        is_open = operation.episode is not None and operation.episode.token == token
        gate = effect_gate(operation, order["asked"])
        if gate is None or not is_open or any(decision.token == token for decision in loaded.decisions):
            return {"open": False}
        return {
            "open": True,
            "fingerprint": operation.fingerprint,
            "question": _question(gate.request, operation),
            "subject": None if gate.subject is None else _subject(operation, gate.subject.proof_scope),
        }

    # -- what was decided --------------------------------------------------------------------------------------

    async def decide(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Record it; a refusal is data, as asking again may help."""
        try:
            await self._check(order)
            recorded = await self.record(order)
        except DecisionRefused as refused:
            return _not_recorded(refused.code, str(refused))
        except _Unusable as problem:
            return _not_recorded(problem.args[0], problem.args[1])
        except IntentError as error:
            return _not_recorded("INVALID_VALUE", str(error))
        return {"recorded": True, "again": recorded.again}

    async def _check(self, order: Mapping[str, Any]) -> None:
        if self._may_decide is None:
            return
        waiting = await self._desk.show(order["operationId"])
        allowed = waiting is not None and self._may_decide(order["reviewer"], waiting)
        if inspect.isawaitable(allowed):
            allowed = await allowed
        if not allowed:
            raise _Unusable("NOT_ALLOWED", "this reviewer may not decide this")

    async def record(self, order: Mapping[str, Any]) -> DecisionRecorded:
        """Record it, or raise."""
        operation_id = order["operationId"]
        named = {"token": order["token"], "reviewer": order["reviewer"], "note": order["note"]}
        match order["decision"]:
            case "approved":
                return await self._desk.approved(operation_id, intent_fingerprint=order["fingerprint"], **named)
            case "rejected":
                return await self._desk.rejected(operation_id, intent_fingerprint=order["fingerprint"], **named)
            case "not_applied":
                return await self._desk.not_applied(operation_id, **named)
            case "applied":
                effect = self._effects.get(order["operationType"])
                if effect is None:
                    raise _Unusable("UNKNOWN_EFFECT", "this process was not given the effect: effects=[…]")
                value = effect.definition.effect_type.decode(order["value"])
                if value is LOST:
                    raise _Unusable("INVALID_VALUE", "the value is not what the effect returns")
                return await self._desk.applied(effect, operation_id, value, **named)
            case _:
                raise _Unusable("NO_DECISION", "the answer is not for what is asked now")


class _Unusable(Exception):
    """The decision cannot be recorded: code and reason."""


def _not_recorded(code: str, reason: str) -> dict[str, Any]:
    return {"recorded": False, "code": code, "reason": reason}


def _question(request: GateRequest, operation: Operation) -> dict[str, Any]:
    """The definition, with a gate for each operation: effects that wait at once do not supersede one another."""
    name = f"{request.gate_id}/{operation.key.type}/{operation.key.operation_id}"
    if len(name) > _LONGEST_GATE_ID:
        name = f"{request.gate_id}/{sha256(name)}"
    given = {**request.input} if isinstance(request.input, Mapping) else {}
    given.pop("approvalSubjectDigest", None)
    return {**request.to_wire(), "gateId": name, "input": given}


def _subject(operation: Operation, scope: Mapping[str, Any]) -> dict[str, Any]:
    return {"intent": operation.intent, "scope": scope}
