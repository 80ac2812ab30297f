"""What a reviewer's call does, and in which order: generators that ask the gates, the review desk and DBOS.

A sync and an async client drive the same ones. What was recorded is recorded before anybody is woken.

Source: semantics sections 8 and 9, A6.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from dbos import StepInfo, WorkflowStatusString

from corrobo_core import BaseEffect, DecisionRecorded, DecisionRefused, IntentError, ReviewDesk, UsageError
from corrobo_core.gates import (
    ClaimResult,
    GateStatus,
    GateView,
    StoredGateClient,
    SubmitRefused,
    SubmitResult,
    replay,
)
from corrobo_core.gates.effects import EFFECT_PLAN, EffectQuestion, decision_kind, effect_question
from corrobo_core.records import JSON, DecisionKind
from corrobo_core.values import LOST
from corrobo_dbos.asking import LOOK, POST, topic_of
from corrobo_dbos.deliveries import Delivered, Delivery, NotDecided, NoWorkflow, Progress
from corrobo_dbos.engine import Workflows

__all__ = ["Program", "Reviewing", "Side", "Submission", "driven", "driven_async"]

R = TypeVar("R")
log = logging.getLogger("corrobo_dbos")

_FINISHED = (WorkflowStatusString.SUCCESS.value, WorkflowStatusString.ERROR.value)
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class Side:
    """Whom a program asks. An async client has their async counterparts here: the same methods, awaited.

    Args:
        gates: of the workflow's stream.
        reviews: the same stream, with the plan of effects.
        desk: decides about effects, or None.
        workflows: DBOS.
    """

    gates: StoredGateClient
    reviews: StoredGateClient
    desk: ReviewDesk | None
    workflows: Workflows


Ask: TypeAlias = Callable[[Side], Any]
Program: TypeAlias = Generator[Ask, Any, R]


def _from(ask: Callable[[Side], R]) -> Program[R]:
    reply: R = yield ask
    return reply


class Submission(NamedTuple):
    """The arguments of one `submit`."""

    request_id: str
    claim_token: str
    router_id: str
    request_digest: str
    response: JSON
    actor: Mapping[str, JSON] | None

    def to(self, gates: StoredGateClient) -> SubmitResult:
        """Bring it to the gate."""
        return gates.submit(*self[:5], actor=self.actor)


class Reviewing:
    """The calls about one workflow's questions.

    Args:
        who: is asked, for errors.
        workflow_id: of the workflow.
        effects: whose investigations are answered.
    """

    def __init__(self, who: str, workflow_id: str, effects: Iterable[Any]) -> None:
        self._who, self._workflow_id = who, workflow_id
        self._effects: dict[str, BaseEffect[Any, Any]] = {}
        for given in effects:
            effect = getattr(given, "effect", given)  # an effect step has one
            if not isinstance(effect, BaseEffect):
                raise UsageError(who, f"effects: takes effects, not a {type(effect).__name__}")
            self._effects[effect.definition.type] = effect

    def progress(self, request_id: str) -> Program[Progress | None]:
        """Where a question stands."""
        view = yield from _from(lambda side: side.gates.show(request_id))
        if view is None:
            return None
        found = yield from _from(lambda side: side.workflows.status(self._workflow_id))
        if found is None:
            return Progress(view, False, None, None, None)
        steps = yield from _from(lambda side: side.workflows.steps(self._workflow_id))
        consumed = any(_took(step, request_id) for step in steps)
        return Progress(view, consumed, found.status, found.executor_id, found.app_version)

    def claim(
        self, request_id: str, router_id: str, claim_token: str | None, lease: timedelta | None
    ) -> Program[ClaimResult | NoWorkflow]:
        """Claim, if the workflow still waits."""
        gone = yield from self._gone()
        if gone is not None:
            return gone
        return (
            yield from _from(
                lambda side: side.gates.claim(request_id, router_id, claim_token=claim_token, lease=lease)
            )
        )

    def submit(self, sent: Submission) -> Program[Delivery]:
        """Record, then wake; an effect's answer is decided at the review desk first."""
        if (gone := (yield from self._gone())) is not None:
            return gone
        view = yield from _from(lambda side: side.gates.show(sent.request_id))
        question = None if view is None else effect_question(view.request)
        if view is None or question is None:
            made = yield from _from(lambda side: sent.to(side.gates))
            return (yield from self._delivered(sent.request_id, made, None))
        if sent.actor is None:
            sent = sent._replace(actor={"name": sent.router_id})
        return (yield from self._decide(view, question, sent))

    def _gone(self) -> Program[NoWorkflow | None]:
        found = yield from _from(lambda side: side.workflows.status(self._workflow_id))
        if found is None:
            return NoWorkflow("unknown", self._workflow_id, None)
        return NoWorkflow("finished", self._workflow_id, found.status) if found.status in _FINISHED else None

    def _delivered(
        self, request_id: str, made: SubmitResult, decision: DecisionRecorded | None
    ) -> Program[Delivery]:
        again = isinstance(made, SubmitRefused)
        if isinstance(made, SubmitRefused) and not made.same:
            return made
        assert made.answer is not None  # the same answer as this one, or this one
        woken = yield from self._wake(request_id)
        return Delivered(made.answer, again, woken, decision)

    def _wake(self, request_id: str) -> Program[bool]:
        key = f"corrobo:{request_id}"
        try:
            yield from _from(lambda side: side.workflows.wake(self._workflow_id, topic_of(request_id), key))
        except Exception:  # the answer is recorded, and the workflow looks by itself
            log.warning("could not wake workflow %s", self._workflow_id, exc_info=True)
            return False
        return True

    # -- effects -----------------------------------------------------------------------------------------------

    def _decide(self, view: GateView, question: EffectQuestion, sent: Submission) -> Program[Delivery]:
        rehearsed = yield from self._rehearsed(view, sent)
        again = isinstance(rehearsed, SubmitRefused) and rehearsed.same is True
        if isinstance(rehearsed, SubmitRefused) and not again:
            made = yield from _from(lambda side: sent.to(side.reviews))  # the refusal goes on record
            return made if isinstance(made, SubmitRefused) else rehearsed
        name = (sent.actor or {}).get("name")
        reviewer = name if isinstance(name, str) and name else sent.router_id
        try:
            decision = yield from self._recorded(question, reviewer, rehearsed)
        except DecisionRefused as refusal:
            return NotDecided(refusal.code, refusal)
        except IntentError as error:
            return SubmitRefused("invalid", str(error))
        made = yield from _from(lambda side: sent.to(side.reviews))
        if isinstance(made, SubmitRefused) and not made.same:
            # Decided all the same; the workflow was so quick that it took the question back.
            assert rehearsed.answer is not None
            woken = yield from self._wake(view.request_id)
            return Delivered(rehearsed.answer, decision.again, woken, decision)
        return (yield from self._delivered(view.request_id, made, decision))

    def _rehearsed(self, view: GateView, sent: Submission) -> Program[SubmitResult]:
        """What the gate would say to this answer now: only what it accepts is brought to the desk."""
        now = datetime.now(UTC)
        if view.status is not GateStatus.EXPIRED and view.deadline is not None:  # judged by the ledger's clock
            now = min(now, view.deadline - _TICK)
        history = yield from _from(lambda side: side.reviews.history(view.request_id))
        return replay(history, clock=lambda: now, plan=EFFECT_PLAN).submit(*sent[:5], actor=sent.actor)

    def _recorded(
        self, question: EffectQuestion, reviewer: str, accepted: SubmitResult
    ) -> Program[DecisionRecorded]:
        assert accepted.answer is not None
        response: Any = accepted.answer.response
        id_, token, seen = question.operation_id, question.token, question.fingerprint
        note = str(response.get("reason") or response.get("note") or "")

        def decided(desk: ReviewDesk) -> DecisionRecorded:
            match decision_kind(response):
                case DecisionKind.APPROVED:
                    return desk.approved(id_, token=token, reviewer=reviewer, intent_fingerprint=seen, note=note)
                case DecisionKind.REJECTED:
                    return desk.rejected(id_, token=token, reviewer=reviewer, intent_fingerprint=seen, note=note)
                case DecisionKind.APPLIED:
                    effect, value = self._attested(question, response.get("value"))
                    return desk.applied(effect, id_, value, token=token, reviewer=reviewer, note=note)
                case _:
                    return desk.not_applied(id_, token=token, reviewer=reviewer, note=note)

        return (yield from _from(lambda side: decided(self._present(side.desk))))

    def _present(self, desk: ReviewDesk | None) -> ReviewDesk:
        if desk is None:
            raise UsageError(self._who, "is asked to decide about an effect: pass a review desk as desk=")
        return desk

    def _attested(self, question: EffectQuestion, value: JSON) -> tuple[BaseEffect[Any, Any], Any]:
        effect = self._effects.get(question.operation_type)
        if effect is None:
            raise UsageError(self._who, f"does not know {question.operation_type!r}: pass it in effects=[…]")
        read = effect.definition.effect_type.decode(value)
        if read is LOST:
            raise IntentError("response.value", f"is not what {question.operation_type} returns")
        return effect, read


def _took(step: StepInfo, request_id: str) -> bool:
    """Whether a workflow took an answer into its history by this step."""
    seen: object = step["output"]
    if step["function_name"] not in (POST, LOOK) or not isinstance(seen, dict):
        return False
    return (seen.get("gate"), seen.get("status")) == (request_id, GateStatus.ANSWERED)


# -- driven ----------------------------------------------------------------------------------------------------


def driven(program: Program[R], side: Side) -> R:
    """Run a program, on a thread that may wait."""
    reply: object = None
    error: Exception | None = None
    while True:
        try:
            ask = program.send(reply) if error is None else program.throw(error)
        except StopIteration as ended:
            return cast("R", ended.value)
        reply = error = None
        try:
            reply = ask(side)
        except Exception as raised:
            error = raised


async def driven_async(program: Program[R], side: Side) -> R:
    """`driven`, on an event loop; the side has the async counterparts."""
    reply: object = None
    error: Exception | None = None
    while True:
        try:
            ask = program.send(reply) if error is None else program.throw(error)
        except StopIteration as ended:
            return cast("R", ended.value)
        reply = error = None
        try:
            reply = await ask(side)
        except Exception as raised:
            error = raised
