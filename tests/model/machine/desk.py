"""What gates must answer, told from what routers and posters did: an oracle that knows no event.

Source: semantics G2, G4, G7, G8, G11, A3 to A5.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeAlias

Answer: TypeAlias = tuple[str, Any]  # the router, and what it brought
Result: TypeAlias = tuple[Any, ...]

_LIVE = ("pending", "claimed")


@dataclass
class Question:
    """One request, as the test remembers it.

    Attributes:
        gate: questions of one gate push each other out.
        valid: whether a response has the form that is asked for.
        approval: it is bound to a subject.
        router, token: of the claim, also after its answer or expiry.
    """

    gate: str
    valid: Callable[[Any], bool]
    approval: bool = False
    status: str | None = None
    router: str | None = None
    token: str | None = None
    lease: datetime | None = None
    deadline: datetime | None = None
    answer: Answer | None = None
    actor: Any = None
    late: list[Answer] = field(default_factory=list)
    superseded_by: str | None = None

    @property
    def live(self) -> bool:
        return self.status in _LIVE

    def due(self, now: datetime) -> bool:
        return self.live and self.deadline is not None and now >= self.deadline

    def free(self) -> None:
        self.router = self.token = self.lease = None

    def owned(self, router: str, token: str) -> bool:
        return self.token is not None and (self.router, self.token) == (router, token)


@dataclass(frozen=True)
class Reply:
    """What an action comes to.

    Attributes:
        result: what is answered.
        writes: whether anything was recorded.
        before: recorded only before this time; else it is decided anew.
    """

    result: Result
    writes: bool = False
    before: datetime | None = None


class Desk:
    """Every question of a stream. Each method does what the gates must do, and says what they must answer."""

    def __init__(self, questions: Mapping[str, Question]) -> None:
        self.questions = dict(questions)

    # -- asking ----------------------------------------------------------------------------------------------

    def post(self, now: datetime, name: str, wait: timedelta | None, reopen: bool) -> Reply:
        question = self.questions[name]
        due = question.due(now)
        status = "expired" if due else question.status
        if status is not None and status not in ("superseded", "expired"):
            return Reply(("PostOk", False, status, ()))
        if due:
            self._expire(question)
        if status is not None and not reopen:
            return Reply(("PostRefused", status), writes=due)
        pushed = []
        for other_name, other in self.questions.items():
            if other is not question and other.gate == question.gate and other.live:
                if other.due(now):
                    self._expire(other)
                else:
                    self._push_out(other, name)
                    pushed.append(other_name)
        question.free()
        question.status, question.answer, question.actor = "pending", None, None
        question.superseded_by, question.late = None, []
        question.deadline = None if wait is None else now + wait
        return Reply(("PostOk", True, "pending", tuple(sorted(pushed))), True, question.deadline)

    def supersede(self, now: datetime, name: str, by: str) -> Reply:
        question = self.questions[name]
        if question.status is None:
            return Reply(("SupersedeRefused", "missing"))
        if question.due(now):
            self._expire(question)
            return Reply(("SupersedeRefused", "expired"), writes=True)
        if not question.live:
            return Reply(("SupersedeRefused", question.status))
        self._push_out(question, by)
        return Reply(("SupersedeOk",), writes=True)

    def expire(self, now: datetime) -> Reply:
        due = [name for name, question in self.questions.items() if question.due(now)]
        for name in due:
            self._expire(self.questions[name])
        return Reply(("ExpireOk", tuple(sorted(due))), writes=bool(due))

    @staticmethod
    def _expire(question: Question) -> None:
        question.status, question.lease = "expired", None

    @staticmethod
    def _push_out(question: Question, by: str) -> None:
        question.free()
        question.status, question.superseded_by = "superseded", by

    # -- claiming, giving back -------------------------------------------------------------------------------

    def claim(self, now: datetime, name: str, router: str, token: str, lease: timedelta | None) -> Reply:
        question = self.questions[name]
        if question.status is None:
            return Reply(("ClaimRefused", "missing", None))
        if question.due(now):
            self._expire(question)
            return Reply(("ClaimRefused", "expired", question.router), writes=True)
        if question.status == "claimed" and question.owned(router, token):
            return Reply(("ClaimOk", token, question.lease))
        lapsed = question.status == "claimed" and question.lease is not None and now >= question.lease
        if question.status != "pending" and not lapsed:
            return Reply(("ClaimRefused", question.status, question.router))
        question.status, question.router, question.token = "claimed", router, token
        question.lease = None if lease is None else now + lease
        return Reply(("ClaimOk", token, question.lease), True, question.deadline)

    def release(self, now: datetime, name: str, token: str) -> Reply:
        question = self.questions[name]
        if question.status is None:
            return Reply(("ReleaseRefused", "missing"))
        if question.status != "claimed" or question.token != token:
            return Reply(("ReleaseRefused", "not-owner"))
        return self._given_back(question, now)

    def release_claim(self, now: datetime, name: str) -> Reply:
        question = self.questions[name]
        if question.status is None:
            return Reply(("ReleaseRefused", "missing"))
        if question.status != "claimed":
            return Reply(("ReleaseRefused", "not-owner"))
        return self._given_back(question, now)

    def _given_back(self, question: Question, now: datetime) -> Reply:
        due = question.due(now)
        question.free()
        question.status = "expired" if due else "pending"
        return Reply(("ReleaseOk",), writes=True)

    # -- answering -------------------------------------------------------------------------------------------

    def submit(
        self, now: datetime, name: str, token: str, router: str, right: bool, response: Any, actor: Any
    ) -> Reply:
        """``right``: the digest is the question's."""
        question = self.questions[name]
        if question.status is None:
            return _refused("missing")
        if question.due(now) or question.status == "expired":
            return self._too_late(question, now, question.owned(router, token) and right, (router, response))
        if question.approval:
            return self._approve(question, token, router, right, response, actor)
        return self._answer(question, token, router, right, response)

    def _too_late(self, question: Question, now: datetime, mine: bool, answer: Answer) -> Reply:
        due = question.due(now)
        if due:
            self._expire(question)
        if not (mine and question.valid(answer[1])):
            return _refused("expired", writes=due)
        again = bool(question.late) and _same(question.late[-1], answer)
        if not again:
            question.late.append(answer)
        return _refused("expired", late=True, writes=due or not again)

    def _answer(self, question: Question, token: str, router: str, right: bool, response: Any) -> Reply:
        if question.status == "answered":
            assert question.answer is not None
            return _refused("not-claimed", same=_same(question.answer[1], response))
        if question.status == "superseded":
            return _refused("stale")
        if question.status == "pending":
            return _refused("not-claimed")
        if not question.owned(router, token):
            return _refused("not-owner")
        if not right:
            return _refused("stale")
        if not question.valid(response):
            return Reply(("SubmitRefused", "invalid", None, False), True, question.deadline)
        question.status, question.answer, question.lease = "answered", (router, response), None
        return Reply(("SubmitOk", router, response), True, question.deadline)

    def _approve(
        self, question: Question, token: str, router: str, right: bool, response: Any, actor: Any
    ) -> Reply:
        if actor is None or not question.valid(response):
            return _refused("invalid")
        if question.status != "answered":
            reply = self._answer(question, token, router, right, response)
            if reply.result[0] == "SubmitOk":
                question.actor = actor
            return reply
        if not question.owned(router, token):
            return _refused("not-owner")
        if not right:
            return _refused("stale")
        if not _same((question.answer, question.actor), ((router, response), actor)):
            return Reply(("GateConflictError",))
        return Reply(("SubmitOk", router, response))

    def route(self, now: datetime, name: str, router: str, token: str, response: Any, actor: Any) -> Reply:
        """What ``direct_router`` does: a claim, and an answer; the claim is given back if there is none (G9)."""
        claimed = self.claim(now, name, router, token, None)
        if claimed.result[0] != "ClaimOk":
            kind = claimed.result[1]
            return _refused(kind if kind in ("missing", "expired") else "not-claimed", writes=claimed.writes)
        if response == "raises":
            self.release(now, name, token)
            return Reply(("NoAnswer",), True)
        reply = self.submit(now, name, token, router, True, response, actor)
        if reply.result[1] == "invalid":
            self.release(now, name, token)
        return Reply(reply.result, True)

    # -- looking ---------------------------------------------------------------------------------------------

    def pending(self, now: datetime) -> set[str]:
        """The questions that a router could claim."""
        return {
            name
            for name, question in self.questions.items()
            if not question.due(now)
            and (
                question.status == "pending"
                or (question.status == "claimed" and question.lease is not None and now >= question.lease)
            )
        }

    def shown(self, now: datetime, name: str) -> Result | None:
        """What anybody may see of one."""
        question = self.questions[name]
        if question.status is None:
            return None
        status = "expired" if question.due(now) else question.status
        late = tuple(question.late)
        return status, question.router, question.deadline, question.answer, late, question.superseded_by


def _same(one: Any, other: Any) -> bool:
    """As JSON: in Python, True equals 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _refused(kind: str, *, same: bool | None = None, late: bool = False, writes: bool = False) -> Reply:
    return Reply(("SubmitRefused", kind, same, late), writes)
