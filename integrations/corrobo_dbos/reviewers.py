"""The reviewer's side of gates on DBOS: records first, then wakes the workflow.

Source: semantics sections 8 and 9, A6.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

from dbos import DBOSClient, WorkflowStatusString

from corrobo_core import BaseEffect, DecisionRecorded, DecisionRefused, IntentError, ReviewDesk, UsageError
from corrobo_core.gates import (
    Answer,
    ClaimResult,
    GateEvent,
    GateStatus,
    GateView,
    ReleaseResult,
    RunPlan,
    StoredGateClient,
    SubmitRefused,
    SubmitResult,
    replay,
)
from corrobo_core.gates.effects import EFFECT_PLAN, EffectQuestion, decision_kind, effect_question
from corrobo_core.ledgers.ports import Ledger
from corrobo_core.records import JSON, DecisionKind
from corrobo_core.values import LOST
from corrobo_dbos import engine
from corrobo_dbos.asking import LOOK, POST, topic_of

__all__ = ["DbosGateClient", "Delivered", "Delivery", "NoWorkflow", "NotDecided", "Progress"]

log = logging.getLogger("corrobo_dbos")

_FINISHED = (WorkflowStatusString.SUCCESS.value, WorkflowStatusString.ERROR.value)
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class NoWorkflow:
    """Nobody waits for the answer any more, or ever did; nothing was recorded.

    Attributes:
        kind: ``unknown``: there is no such workflow; ``finished``: it has returned, or failed.
        workflow_id: of the workflow.
        status: as DBOS has it, or None.
    """

    kind: Literal["unknown", "finished"]
    workflow_id: str
    status: str | None
    ok: Literal[False] = False


@dataclass(frozen=True, slots=True)
class NotDecided:
    """The review desk refused the decision (R4); nothing was recorded.

    Attributes:
        code: such as ``STALE_TOKEN``.
        refusal: the whole of it, with the first decision if there was one.
    """

    code: str
    refusal: DecisionRefused
    ok: Literal[False] = False


@dataclass(frozen=True, slots=True)
class Delivered:
    """The answer counts.

    Attributes:
        answer: the recorded one.
        again: this very answer was recorded before: a double click, or a repeated call.
        woken: the workflow was told; if not, it looks by itself before long.
        decision: what the review desk recorded, for the question of an effect.
    """

    answer: Answer
    again: bool
    woken: bool
    decision: DecisionRecorded | None = None
    ok: Literal[True] = True


Delivery: TypeAlias = Delivered | SubmitRefused | NotDecided | NoWorkflow


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a question stands, in the ledger and in DBOS.

    Attributes:
        view: the question, without tokens.
        consumed: the workflow has taken the answer into its history. Of an effect's question, which is decided at
            the review desk, look at the operation instead.
        workflow_status: as DBOS has it; None if there is no such workflow.
        executor_id: who runs it, or ran it last.
        application_version: only executors of this version recover it.
    """

    view: GateView
    consumed: bool
    workflow_status: str | None
    executor_id: str | None
    application_version: str | None


class DbosGateClient:
    """Lists, claims and answers the questions of one workflow, from any process. Synchronous.

    What is answered is recorded, then the workflow is woken by a message. A repeated call does what is missing.

    Args:
        ledger: that has the questions; migrated.
        workflow_id: of the workflow, or of the fork, that asks.
        dbos: a `DBOSClient`, outside of DBOS applications; without it this process's own DBOS is used.
        desk: decides about effects; with a ledger that has the reviewer's database role, where there are roles.
        effects: those whose investigations are answered here: an attested value must be of the effect's type.
        plan: of the run, where approvals are bound to it.

    Every method raises `LedgerUnavailable` if the database does not answer; repeat the call then.

    Source: semantics G2, A6, R9: nobody is authenticated.
    """

    def __init__(
        self,
        ledger: Ledger,
        workflow_id: str,
        *,
        dbos: DBOSClient | None = None,
        desk: ReviewDesk | None = None,
        effects: Iterable[Any] = (),
        plan: RunPlan | None = None,
    ) -> None:
        self._gates = StoredGateClient(ledger, workflow_id, plan=plan)
        self._reviews = StoredGateClient(ledger, workflow_id, plan=EFFECT_PLAN)
        self._plan, self._desk, self._workflow_id = plan, desk, workflow_id
        self._workflows = engine.Workflows(dbos)
        self._effects: dict[str, BaseEffect[Any, Any]] = {}
        for given in effects:
            effect = getattr(given, "effect", given)  # an effect step has one
            if not isinstance(effect, BaseEffect):
                raise UsageError("DbosGateClient", f"effects: takes effects, not a {type(effect).__name__}")
            self._effects[effect.definition.type] = effect

    def list_pending(self) -> tuple[GateView, ...]:
        """The questions that could be claimed now, oldest first; without tokens."""
        return self._gates.list_pending()

    def show(self, request_id: str) -> GateView | None:
        """One question, or None; without tokens."""
        return self._gates.show(request_id)

    def history(self, request_id: str | None = None) -> tuple[GateEvent, ...]:
        """The events, of one question or of all. They hold claim tokens (G12)."""
        return self._gates.history(request_id)

    def progress(self, request_id: str) -> Progress | None:
        """Where a question stands, to see an answer that nobody consumes; None if there is no such question."""
        view = self._gates.show(request_id)
        if view is None:
            return None
        found = self._workflows.status(self._workflow_id)
        if found is None:
            return Progress(view, False, None, None, None)
        consumed = any(
            step["function_name"] in (POST, LOOK)
            and isinstance(seen := step["output"], dict)
            and (seen.get("gate"), seen.get("status")) == (request_id, GateStatus.ANSWERED)
            for step in self._workflows.steps(self._workflow_id)
        )
        return Progress(view, consumed, found.status, found.executor_id, found.app_version)

    def claim(
        self, request_id: str, router_id: str, *, claim_token: str | None = None, lease: timedelta | None = None
    ) -> ClaimResult | NoWorkflow:
        """Take a question, as the only router; see `Gates.claim`."""
        gone = self._gone()
        return gone or self._gates.claim(request_id, router_id, claim_token=claim_token, lease=lease)

    def release(self, request_id: str, claim_token: str) -> ReleaseResult:
        """Give a claimed question back; see `Gates.release`."""
        return self._gates.release(request_id, claim_token)

    def release_claim(self, request_id: str, *, operator: str, reason: str) -> ReleaseResult:
        """Take a claim from whoever holds it; see `Gates.release_claim`."""
        return self._gates.release_claim(request_id, operator=operator, reason=reason)

    def submit(
        self,
        request_id: str,
        claim_token: str,
        router_id: str,
        request_digest: str,
        response: JSON,
        *,
        actor: Mapping[str, JSON] | None = None,
    ) -> Delivery:
        """Bring the answer: it is recorded, then the workflow is woken.

        The question of an effect is decided at the review desk first, since that is what counts for it: the
        reviewer is the actor's ``name``, or the router.

        Args:
            request_id: of the question.
            claim_token: of the claim.
            router_id: who claimed.
            request_digest: of the question as it was shown.
            response: the answer.
            actor: who decided, for approvals; an object.

        Raises:
            GateConflictError: an approval that has another decision or actor already. Not retryable.
            UsageError: an effect's question and no desk, or an effect that is not known here; called on an event
                loop (use ``asyncio.to_thread``). Nothing is recorded. Not retryable.

        Source: semantics A6, G8.
        """
        if engine.on_event_loop():
            raise UsageError("DbosGateClient.submit", "would block the event loop; call it by asyncio.to_thread")
        if (gone := self._gone()) is not None:
            return gone
        view = self._gates.show(request_id)
        question = None if view is None else effect_question(view.request)
        if view is None or question is None:
            made = self._gates.submit(request_id, claim_token, router_id, request_digest, response, actor=actor)
            return self._delivered(request_id, made, None)
        actor = {"name": router_id} if actor is None else actor
        call = (request_id, claim_token, router_id, request_digest, response)
        return self._decide(view, question, call, actor)

    def _gone(self) -> NoWorkflow | None:
        found = self._workflows.status(self._workflow_id)
        if found is None:
            return NoWorkflow("unknown", self._workflow_id, None)
        return NoWorkflow("finished", self._workflow_id, found.status) if found.status in _FINISHED else None

    def _delivered(self, request_id: str, made: SubmitResult, decision: DecisionRecorded | None) -> Delivery:
        if isinstance(made, SubmitRefused):
            if not (made.same and made.answer):
                return made
            return Delivered(made.answer, True, self._wake(request_id), decision)
        return Delivered(made.answer, False, self._wake(request_id), decision)

    def _wake(self, request_id: str) -> bool:
        try:
            self._workflows.wake(self._workflow_id, topic_of(request_id), f"corrobo:{request_id}")
        except Exception:  # the answer is recorded, and the workflow looks by itself
            log.warning("could not wake workflow %s", self._workflow_id, exc_info=True)
            return False
        return True

    # -- effects -----------------------------------------------------------------------------------------------

    def _decide(
        self,
        view: GateView,
        question: EffectQuestion,
        call: tuple[str, str, str, str, JSON],
        actor: Mapping[str, JSON],
    ) -> Delivery:
        rehearsed = self._rehearsed(view, call, actor)
        again = isinstance(rehearsed, SubmitRefused) and rehearsed.same is True
        if isinstance(rehearsed, SubmitRefused) and not again:
            made = self._reviews.submit(*call, actor=actor)  # the refusal goes on record
            return made if isinstance(made, SubmitRefused) else rehearsed
        name = actor.get("name")
        reviewer = name if isinstance(name, str) and name else call[2]
        try:
            decision = self._record(question, reviewer, rehearsed)
        except DecisionRefused as refusal:
            return NotDecided(refusal.code, refusal)
        except IntentError as error:
            return SubmitRefused("invalid", str(error))
        made = self._reviews.submit(*call, actor=actor)
        if isinstance(made, SubmitRefused) and not made.same:
            # Decided all the same; the workflow was so quick that it took the question back.
            assert rehearsed.answer is not None
            return Delivered(rehearsed.answer, decision.again, self._wake(view.request_id), decision)
        return self._delivered(view.request_id, made, decision)

    def _rehearsed(
        self, view: GateView, call: tuple[str, str, str, str, JSON], actor: Mapping[str, JSON]
    ) -> SubmitResult:
        """What the gate would say to this answer now: only what it accepts is brought to the desk."""
        now = datetime.now(UTC)
        if view.status is not GateStatus.EXPIRED and view.deadline is not None:  # judged by the ledger's clock
            now = min(now, view.deadline - _TICK)
        history = self._reviews.history(view.request_id)
        return replay(history, clock=lambda: now, plan=EFFECT_PLAN).submit(*call, actor=actor)

    def _record(self, question: EffectQuestion, reviewer: str, accepted: SubmitResult) -> DecisionRecorded:
        if self._desk is None:
            raise UsageError("DbosGateClient", "is asked to decide about an effect: pass desk=ReviewDesk(…)")
        assert accepted.answer is not None
        response: Any = accepted.answer.response
        id_, token = question.operation_id, question.token
        note = str(response.get("reason") or response.get("note") or "")
        match decision_kind(response):
            case DecisionKind.APPROVED:
                seen = question.fingerprint
                return self._desk.approved(id_, token=token, reviewer=reviewer, intent_fingerprint=seen, note=note)
            case DecisionKind.REJECTED:
                seen = question.fingerprint
                return self._desk.rejected(id_, token=token, reviewer=reviewer, intent_fingerprint=seen, note=note)
            case DecisionKind.APPLIED:
                effect, value = self._attested(question, response.get("value"))
                return self._desk.applied(effect, id_, value, token=token, reviewer=reviewer, note=note)
            case _:
                return self._desk.not_applied(id_, token=token, reviewer=reviewer, note=note)

    def _attested(self, question: EffectQuestion, value: JSON) -> tuple[BaseEffect[Any, Any], Any]:
        effect = self._effects.get(question.operation_type)
        if effect is None:
            raise UsageError("DbosGateClient", f"does not know {question.operation_type!r}: pass it in effects=[…]")
        read = effect.definition.effect_type.decode(value)
        if read is LOST:
            raise IntentError("response.value", f"is not what {question.operation_type} returns")
        return effect, read
