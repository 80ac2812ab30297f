"""The activities of workers that hold the reviewer's role: what waits, and what a person decided about it.

Source: semantics R1, R3, R4, A6.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from temporalio import activity
from temporalio.exceptions import ApplicationError

from corrobo_core import AsyncReviewDesk, BaseEffect, CorroboError, DecisionRefused, IntentError, Waiting
from corrobo_core.commands import Load
from corrobo_core.gates import GateRequest
from corrobo_core.gates.effects import effect_gate
from corrobo_core.gates.jsontext import sha256
from corrobo_core.ledgers.ports import Ledger
from corrobo_core.records import Operation, OperationKey
from corrobo_core.values import LOST
from corrobo_temporal.failures import refusal_for
from corrobo_temporal.people import ASK, DECIDE

__all__ = ["MayDecide", "decision_activities"]

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
    desk = _Desk(ledger, {effect.definition.type: effect for effect in effects}, may_decide)

    @activity.defn(name=ASK)
    async def ask(order: dict[str, Any]) -> dict[str, Any]:
        return await _refused(desk.ask(order))

    @activity.defn(name=DECIDE)
    async def decide(order: dict[str, Any]) -> dict[str, Any]:
        return await _refused(desk.decide(order))

    return [ask, decide]


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
            recorded = await self._record(order)
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

    async def _record(self, order: Mapping[str, Any]) -> Any:
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
                    raise _Unusable(
                        "UNKNOWN_EFFECT", "this worker was not given the effect: decision_activities(…, effects=)"
                    )
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
