"""People at the desk: what they say, what must come of it, and what it allows. They never lie."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from corrobo_core.canonical import fingerprint
from corrobo_core.commands import Load
from corrobo_core.errors import DecisionRefused
from corrobo_core.gates.effects import decision_kind, effect_gate, effect_question
from corrobo_core.records import DecisionKind, Disposition
from corrobo_core.reviews import Waiting
from tests.model.machine.contracts import contract
from tests.model.machine.outside import AMOUNT, Sent
from tests.model.machine.plans import Check, Says, Send

if TYPE_CHECKING:
    from tests.model.machine.stage import Stage

_ABOUT_REVIEWS = (DecisionKind.APPROVED, DecisionKind.REJECTED)
_ANSWERS = {
    DecisionKind.APPROVED: "allow",
    DecisionKind.REJECTED: "deny",
    DecisionKind.APPLIED: "applied",
    DecisionKind.NOT_APPLIED: "not_applied",
}
_WRONG = "v1:sha256:" + "0" * 64


@dataclass
class Said:
    """A decision that was accepted.

    Attributes:
        at: the ledger's clock then.
        sent: how many requests had really been sent by then.
    """

    token: str
    says: Says
    at: datetime
    decided: datetime
    expires: datetime | None
    sent: int
    used: bool = False
    revoked: bool = False


class People:
    """Whoever decides about this stage's operation."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.said: list[Said] = []
        self.tokens: list[str] = []

    # -- what it allows --------------------------------------------------------------------------------------

    @property
    def attested(self) -> bool:
        """Somebody has said that the effect is there."""
        return any(each.says.kind is DecisionKind.APPLIED for each in self.said)

    def grants(self, sent: list[Sent]) -> datetime | None:
        """When somebody said, the latest, that nothing of this has an effect."""
        count = _really_sent(sent)
        granted = [e.decided for e in self.said if e.says.kind is DecisionKind.NOT_APPLIED and e.sent == count]
        return granted[-1] if granted else None

    def approves(self, elapsed: float) -> bool:
        """An approval is in force, by the ledger's clock at that stopwatch time."""
        return any(self._in_force(each, elapsed) for each in self.said)

    def _in_force(self, said: Said, elapsed: float) -> bool:
        now, age = self._stage.time.at(elapsed), self._stage.setup.max_age
        if said.says.kind is not DecisionKind.APPROVED or said.revoked:
            return False
        too_old = age is not None and now >= said.decided + timedelta(seconds=age)
        return not too_old and (said.expires is None or now < said.expires)

    def check_reservation(self) -> None:
        """An attempt is reserved just now: was it allowed (R5)?"""
        stage = self._stage
        if stage.setup.authorizes is Check.REJECT:
            stage.wrong("attempted although authorize rejects it")
        if any(each.says.kind is DecisionKind.REJECTED for each in self.said):
            stage.wrong("attempted after it was rejected")
        if self.attested:
            stage.wrong("attempted after it was attested")
        asks = stage.running[-1].checked is Check.REVIEW or stage.setup.authorizes is Check.REVIEW
        if not asks:
            return
        if not self.approves(stage.time.elapsed):
            stage.wrong("attempted without an approval")
        for each in self.said:
            each.used = each.used or self._in_force(each, stage.time.elapsed)

    # -- what they say -----------------------------------------------------------------------------------------

    def say(self, says: Says, process: int = 0) -> str:
        """One decision; how the desk answers, as text that is the same for every ledger."""
        stage = self._stage
        with stage.desk(process) as desk:
            waiting = desk.show(stage.operation_id)
            if waiting is not None and waiting.token is not None and waiting.token not in self.tokens:
                self.tokens.append(waiting.token)
            if not self._true(says):
                return "nobody would say so"
            token = self._token(says, waiting)
            if waiting is not None and waiting.token == token:
                self._asked_by_a_gate(says, waiting, process)
            wanted = self._wanted(says, token, waiting)
            got = self._ask(desk, says, token)
        if got != wanted:
            stage.wrong(f"{says} is answered {got}, and not {wanted}")
        return got

    def _asked_by_a_gate(self, says: Says, waiting: Waiting, process: int) -> None:
        """A6: the question that a gate asks is about this very episode, and its answer means the same."""
        operation = self._stage.store.ledger(process).perform(Load(self._stage.key)).operation
        gate = None if operation is None else effect_gate(operation)
        asked = None if gate is None else effect_question(gate.request)
        if gate is None or asked is None:
            self._stage.wrong("no gate asks what the desk shows")
            return
        shown = (waiting.kind, waiting.operation_id, waiting.token, waiting.intent_fingerprint)
        if (asked.kind, asked.operation_id, asked.token, asked.fingerprint) != shown:
            self._stage.wrong(f"the gate asks about {asked}, and the desk shows {shown}")
        if gate.subject is not None and gate.subject.proposed_output != waiting.intent.encode():
            self._stage.wrong("the gate asks about other bytes than the desk shows")
        if says.kind in _ANSWERS and decision_kind({"kind": _ANSWERS[says.kind]}) is not says.kind:
            self._stage.wrong(f"the answer {_ANSWERS[says.kind]} is not taken for {says.kind}")

    def _true(self, says: Says) -> bool:
        outside, now = self._stage.outside, self._stage.time.elapsed
        if says.kind is DecisionKind.APPLIED:
            return outside.there(now) and not outside.others
        if says.kind is DecisionKind.NOT_APPLIED:
            # Of a request that is just on its way, nobody can know.
            return not self._stage.running and not outside.will_be_there(now)
        return True

    def _token(self, says: Says, waiting: Waiting | None) -> str:
        if says.token == "open" and waiting is not None and waiting.token is not None:
            return waiting.token
        if says.token != "wrong" and self.tokens:
            return self.tokens[-1]
        return "ep9-nothing"

    def _ask(self, desk: Any, says: Says, token: str) -> str:
        stage, now = self._stage, self._stage.time.now()
        options: dict[str, Any] = {"token": token, "reviewer": says.reviewer}
        decided, expires = _later(now, says.decided), _later(now, says.expires)
        shown = {
            None: None,
            True: fingerprint(f'{{"amount":{AMOUNT},"reference":"{stage.operation_id}"}}'),
            False: _WRONG,
        }
        if says.kind is not DecisionKind.REVOKED:
            options["decided_at"] = decided
        if says.kind in _ABOUT_REVIEWS:
            options["intent_fingerprint"] = shown[says.shown]
        if says.kind is DecisionKind.APPROVED:
            options["expires_at"] = expires
        names = {"revoked": "revoke"}
        decide = getattr(desk, names.get(says.kind.value, says.kind.value))
        try:
            if says.kind is DecisionKind.APPLIED:
                effect = contract(
                    0, stage.setup.authorizes is not None, stage.setup.revalidates, stage.setup.max_age
                )
                recorded = decide(effect, stage.operation_id, AMOUNT, **options)
            else:
                recorded = decide(stage.operation_id, **options)
        except DecisionRefused as error:
            return error.code
        if recorded.again:
            return "AGAIN"
        self._accept(says, token, now, min(decided or now, now), expires)
        return "RECORDED"

    def _accept(self, says: Says, token: str, now: datetime, decided: datetime, expires: datetime | None) -> None:
        if says.kind is DecisionKind.REVOKED:
            for each in self.said:
                each.revoked = each.revoked or each.token == token
        sent = _really_sent(self._stage.outside.sent)
        until = expires if says.kind is DecisionKind.APPROVED else None
        self.said.append(Said(token, says, now, decided, until, sent))

    def _wanted(self, says: Says, token: str, waiting: Waiting | None) -> str:
        """R4, by what was said before and what the desk shows."""
        about = [each for each in self.said if each.token == token]
        if waiting is None:
            return "NOT_AWAITING_DECISION"
        if says.kind is DecisionKind.REVOKED:
            return _revocation(says, about)
        now = self._stage.time.now()
        if about:
            first = about[0]
            expires = _later(now, says.expires) if says.kind is DecisionKind.APPROVED else None
            same = (first.says.kind, first.says.reviewer, first.expires) == (says.kind, says.reviewer, expires)
            return "AGAIN" if same else "ALREADY_DECIDED"
        if waiting.token is None:
            return "NOT_AWAITING_DECISION"
        if token != waiting.token:
            return "STALE_TOKEN"
        if (waiting.kind is Disposition.REVIEW) != (says.kind in _ABOUT_REVIEWS):
            return "NOT_AWAITING_DECISION"
        decided, expires = _later(now, says.decided), _later(now, says.expires)
        assert waiting.opened_at is not None
        if decided is not None and decided < waiting.opened_at:
            return "DECIDED_BEFORE_OPENED"
        if says.shown is False and says.kind in _ABOUT_REVIEWS:
            return "INTENT_MISMATCH"
        if says.kind is DecisionKind.APPROVED and expires is not None and expires <= now:
            return "ALREADY_EXPIRED"
        return "RECORDED"


def _really_sent(sent: list[Sent]) -> int:
    return sum(each.how is not Send.NOT_SENT for each in sent)


def _revocation(says: Says, about: list[Said]) -> str:
    if not about or about[0].says.kind is not DecisionKind.APPROVED:
        return "NOT_AWAITING_DECISION"
    if about[0].revoked:
        return "AGAIN" if about[-1].says.reviewer == says.reviewer else "ALREADY_DECIDED"
    return "ALREADY_USED" if about[0].used else "RECORDED"


def _later(now: datetime, seconds: int | None) -> datetime | None:
    return None if seconds is None else now + timedelta(seconds=seconds)


def decide_all(stage: Stage) -> None:
    """Whatever waits is decided as it should be."""
    with stage.desk(0) as desk:
        waiting = desk.show(stage.operation_id)
    if waiting is None or waiting.token is None:
        return
    if waiting.kind is Disposition.REVIEW:
        stage.people.say(Says(DecisionKind.APPROVED))
    elif stage.outside.there(stage.time.elapsed):
        stage.people.say(Says(DecisionKind.APPLIED))
    else:
        stage.people.say(Says(DecisionKind.NOT_APPLIED))
