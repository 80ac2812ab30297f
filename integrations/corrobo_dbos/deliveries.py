"""What a reviewer's client gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from corrobo_core import DecisionRecorded, DecisionRefused
from corrobo_core.gates import Answer, GateView, SubmitRefused

__all__ = ["Delivered", "Delivery", "NoWorkflow", "NotDecided", "Progress"]


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
