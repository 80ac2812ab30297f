"""The machine that drives gates: the same steps on an object in memory and on every ledger, with two clients each.

In the middle of a step the ledger can lose a reply, or not answer, or time passes, or the other client acts; what
must come of it is told by `desk`, which knows no event. After each step the histories are equal byte for byte, and
replay to the state that the clients have.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeAlias, TypeVar, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from corrobo_core.commands import LedgerCommand
from corrobo_core.errors import CorroboError
from corrobo_core.gates import (
    GateClient,
    GateDefinition,
    GateRequest,
    Gates,
    GateView,
    StoredGateClient,
    create_gate,
    replay,
    to_lines,
)
from corrobo_core.gates.approvals import (
    ACTION_DECISION_SCHEMA,
    ApprovalSubject,
    ArtifactReference,
    Permission,
    RunPlan,
    create_approval_gate,
)
from corrobo_core.ledgers.gate_port import AppendGate
from corrobo_core.ledgers.ports import Ledger
from tests.gates.support import DEFINITION, NO, YES, Turned, state_of
from tests.model.machine.desk import Desk, Question, Reply
from tests.model.machine.stores import PROCESSES, Store
from tests.model.machine.times import Time

R = TypeVar("R")
_streams = itertools.count(1)

# -- what is asked -----------------------------------------------------------------------------------------------

_WRITE = Permission("fs:write")
PLAN = RunPlan("sha256:" + "a" * 64, "sha256:" + "b" * 64, 1, [_WRITE])
SUBJECT = ApprovalSubject(
    input_artifact_hashes={"order.json": "sha256:" + "1" * 64},
    proof_scope={"checks": ["limits"]},
    proof_artifact=ArtifactReference.of(b"proof", "application/json"),
    proposed_output=b"refund 50.00",
    effective_permissions=[_WRITE],
    workspace_anchor=None,
)
CHANGED = replace(SUBJECT, proposed_output=b"refund 5000.00")
_PLAIN = {
    f"{gate}/{revision}": create_gate(replace(DEFINITION, gate_id=gate, input={"revision": revision}))
    for gate in ("gate-1", "gate-2")
    for revision in ("a", "b")
}
_APPROVALS = {
    f"refund/{order}": create_approval_gate(
        GateDefinition("refund", 1, "Refund it?", ACTION_DECISION_SCHEMA, {"order": order}), SUBJECT
    )
    for order in ("a", "b")
}
REQUESTS: dict[str, GateRequest] = {**_PLAIN, **_APPROVALS}
NAMES = {request.request_id: name for name, request in REQUESTS.items()}
ALLOW = {"kind": "allow"}
DENY = {"kind": "deny", "reason": "too much"}
ADA, BOB = {"name": "ada"}, {"name": "bob"}


def _is_answer(response: Any) -> bool:
    return response in (YES, NO) and isinstance(response["approved"], bool)


def _is_decision(response: Any) -> bool:
    return response in (ALLOW, DENY)


def _question(name: str) -> Question:
    approval = name in _APPROVALS
    return Question(REQUESTS[name].gate_id, _is_decision if approval else _is_answer, approval)


# -- what is done ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Act:
    """One call of a client: how it is made, and how the oracle is told."""

    name: str
    arguments: tuple[Any, ...]

    def on(self, client: Gates) -> Any:
        """What the client answers, as the oracle would say it."""
        try:
            return _said(_CALLS[self.name](client, *self.arguments))
        except CorroboError as error:
            return (type(error).__name__,)

    def on_desk(self, desk: Desk, now: Any) -> Reply:
        """What it must answer."""
        reply: Reply = getattr(desk, self.name)(now, *self.arguments)
        return reply


def _post(client: Gates, name: str, wait: timedelta | None, reopen: bool) -> Any:
    subject = SUBJECT if name in _APPROVALS else None
    return client.post(REQUESTS[name], subject, deadline=wait, reopen=reopen)


def _submit(client: Gates, name: str, token: str, router: str, right: bool, response: Any, actor: Any) -> Any:
    digest = REQUESTS[name].digest if right else "0" * 64
    return client.submit(REQUESTS[name].request_id, token, router, digest, response, actor=actor)


_CALLS: dict[str, Callable[..., Any]] = {
    "post": _post,
    "claim": lambda c, name, router, token, lease: c.claim(
        REQUESTS[name].request_id, router, claim_token=token, lease=lease
    ),
    "submit": _submit,
    "release": lambda c, name, token: c.release(REQUESTS[name].request_id, token),
    "release_claim": lambda c, name: c.release_claim(REQUESTS[name].request_id, operator="ada", reason="stuck"),
    "supersede": lambda c, name, by: c.supersede(REQUESTS[name].request_id, REQUESTS[by].request_id),
    "expire": lambda c: c.expire(),
}


def _said(result: Any) -> tuple[Any, ...]:
    """A result with only what the oracle speaks of."""
    kind = type(result).__name__
    match kind:
        case "PostOk":
            pushed = tuple(sorted(NAMES[each] for each in result.superseded))
            return kind, result.created, result.status.value, pushed
        case "ClaimOk":
            return kind, result.claim_token, result.lease_until
        case "ClaimRefused":
            return kind, result.kind, result.router_id
        case "SubmitOk":
            return kind, result.answer.router_id, result.answer.response
        case "SubmitRefused":
            return kind, result.kind, result.same, result.late
        case "ExpireOk":
            return kind, tuple(sorted(NAMES[each] for each in result.request_ids))
        case "ReleaseOk" | "SupersedeOk":
            return (kind,)
        case _:
            return kind, result.kind


@dataclass(frozen=True)
class NotAnswered:
    """The ledger does not answer the append; it was recorded all the same if ``recorded``."""

    recorded: bool


@dataclass(frozen=True)
class Again:
    """The reply to the append is lost, and the ledger repeats it."""


@dataclass(frozen=True)
class Pause:
    """Time passes between reading and appending, in seconds."""

    seconds: int


Between: TypeAlias = "NotAnswered | Again | Pause | Act | None"

_names = st.sampled_from(sorted(REQUESTS))
_routers = st.sampled_from(["router-a", "router-b"])
_tokens = st.sampled_from(["token-1", "token-2"])
_waits = st.sampled_from([None, timedelta(seconds=4), timedelta(seconds=10)])
_answers = st.one_of(
    st.sampled_from([YES, NO, ALLOW, DENY]), st.sampled_from([{"approved": 1}, {}, {"kind": "deny"}, None])
)
acts = st.one_of(
    st.builds(Act, st.just("post"), st.tuples(_names, _waits, st.booleans())),
    st.builds(Act, st.just("claim"), st.tuples(_names, _routers, _tokens, _waits)),
    st.builds(
        Act,
        st.just("submit"),
        st.tuples(
            _names,
            _tokens,
            _routers,
            st.sampled_from([True, True, False]),
            _answers,
            st.sampled_from([ADA, ADA, BOB, None]),
        ),
    ),
    st.builds(Act, st.just("release"), st.tuples(_names, _tokens)),
    st.builds(Act, st.just("release_claim"), st.tuples(_names)),
    st.builds(Act, st.just("supersede"), st.tuples(_names, _names)),
)
between = st.one_of(
    st.none(),
    st.none(),
    st.builds(NotAnswered, st.booleans()),
    st.just(Again()),
    st.builds(Pause, st.sampled_from([2, 4, 6, 10])),
    acts,
)


class Line:
    """A process's ledger: it is told the time, and can repeat an append whose reply was lost."""

    def __init__(self, store: Store, process: int) -> None:
        self._store, self._process = store, process
        self.repeats = False

    @property
    def namespace(self) -> str:
        return self._store.ledger(self._process).namespace

    def perform(self, command: LedgerCommand[R], /) -> R:
        self._store.tell_time()
        ledger = self._store.ledger(self._process)
        if self.repeats and isinstance(command, AppendGate):
            self.repeats = False
            ledger.perform(command)
        return ledger.perform(command)


class Clients:
    """The clients of one stream on one store."""

    def __init__(self, store: Store, stream: str) -> None:
        self.name = store.name
        self._lines = [Line(store, process) for process in range(PROCESSES)]
        self._ledgers = [Turned(cast("Ledger", line)) for line in self._lines]
        self.clients = [StoredGateClient(cast("Ledger", each), stream, plan=PLAN) for each in self._ledgers]

    def do(self, who: int, act: Act, what: Between, time: Time) -> Any:
        """One step of one client."""
        ledger, line = self._ledgers[who], self._lines[who]
        ledger.fail, ledger.after_read = lambda _: None, lambda: None
        match what:
            case NotAnswered(recorded):
                ledger.fail = lambda _: "after" if recorded else "before"
            case Again():
                line.repeats = True
            case Pause() | Act():
                ledger.after_read = lambda: self._meanwhile(who, what, time)
            case None:
                pass
        try:
            return act.on(self.clients[who])
        finally:
            line.repeats = False
            ledger.fail, ledger.after_read = lambda _: None, lambda: None

    def _meanwhile(self, who: int, what: Pause | Act, time: Time) -> None:
        self._ledgers[who].after_read = lambda: None
        if isinstance(what, Pause):
            time.pass_by(what.seconds)
        else:
            what.on(self.clients[1 - who])


class GateSteps(RuleBasedStateMachine):
    """Six questions of three gates. Subclassed with the stores by `machine`."""

    stores: list[Store]
    time: Time

    @initialize()
    def begin(self) -> None:
        self.time.reset()
        stream = f"stream-{next(_streams)}"
        self.everywhere = [Clients(store, stream) for store in self.stores]
        self.plain = GateClient(clock=self.time.now, plan=PLAN)
        self.desk = Desk(
            {
                name: Question(
                    request.gate_id, _is_decision if name in _APPROVALS else _is_answer, name in _APPROVALS
                )
                for name, request in REQUESTS.items()
            }
        )

    @rule(act=acts, who=st.integers(0, 1), what=between)
    def somebody_acts(self, act: Act, who: int, what: Between) -> None:
        self._step(act, who, what)

    @rule(act=acts, who=st.integers(0, 1))
    def somebody_else_acts(self, act: Act, who: int) -> None:
        self._step(act, who, None)

    @rule(name=_names, wait=_waits, router=_routers, token=_tokens, response=_answers)
    def a_question_is_asked_and_answered(
        self, name: str, wait: timedelta | None, router: str, token: str, response: Any
    ) -> None:
        """Else few get so far."""
        self._step(Act("post", (name, wait, True)), 0, None)
        self._step(Act("claim", (name, router, token, wait)), 1, None)
        self._step(Act("submit", (name, token, router, True, response, ADA)), 1, None)

    @rule(by=st.sampled_from([1, 3, 4, 6, 10]))
    def time_passes(self, by: int) -> None:
        self.time.pass_by(by)

    @rule(who=st.integers(0, 1))
    def expiries_are_recorded(self, who: int) -> None:
        self._step(Act("expire", ()), who, None)

    # -- one step ----------------------------------------------------------------------------------------------

    def _step(self, act: Act, who: int, what: Between) -> None:
        began = self.time.mark
        wanted, after = self._wanted(act, what)
        for clients in self.everywhere:
            self.time.reset(began)
            got = clients.do(who, act, what, self.time)
            assert got == wanted, f"{clients.name} answers {got}, and not {wanted}"
        self.time.reset(after)
        self._compare(who, act)

    def _wanted(self, act: Act, what: Between) -> tuple[Any, tuple[float, float]]:
        """What must be answered, done to the desk and to the client in memory in the order in which it counts."""
        match what:
            case NotAnswered(recorded):
                tried = deepcopy(self.desk)
                if not act.on_desk(tried, self.time.now()).writes:
                    return self._both(act), self.time.mark
                if recorded:
                    self._both(act)
                return ("LedgerUnavailable",), self.time.mark
            case Act():
                writes = act.on_desk(deepcopy(self.desk), self.time.now()).writes
                first, second = (what, act) if writes else (act, what)
                answers = {id(each): self._both(each) for each in (first, second)}
                return answers[id(act)], self.time.mark
            case Pause(seconds):
                reply = act.on_desk(deepcopy(self.desk), self.time.now())
                began = self.time.mark
                self.time.pass_by(seconds)
                after = self.time.mark
                if not (reply.writes and reply.before is not None and self.time.now() >= reply.before):
                    self.time.reset(began)
                return self._both(act), after
            case _:
                return self._both(act), self.time.mark

    def _both(self, act: Act) -> Any:
        wanted = act.on_desk(self.desk, self.time.now()).result
        got = act.on(self.plain)
        assert got == wanted, f"the client in memory answers {got}, and not {wanted}"
        return wanted

    # -- what must hold after each -----------------------------------------------------------------------------

    def _compare(self, who: int, act: Act) -> None:
        """The same history everywhere, and the question that was acted on as the desk says."""
        history = to_lines(self.plain.history())
        touched = [each for each in act.arguments[:1] if each in REQUESTS]
        self._as_the_desk_says(self.plain, "the client in memory", touched)
        for clients in self.everywhere:
            client = clients.clients[who]
            assert to_lines(client.history()) == history, f"{clients.name} has another history"
            self._as_the_desk_says(client, clients.name, touched)

    def teardown(self) -> None:
        """In the end every client shows everything alike, and the history replays to it."""
        if not hasattr(self, "desk"):
            return
        state = state_of(self.plain).to_json()
        assert replay(self.plain.history()).state.to_json() == state
        wire = replay(to_lines(self.plain.history())).state.to_json()
        assert _on_the_wire(wire) == _on_the_wire(state)
        for clients in self.everywhere:
            for client in clients.clients:
                assert state_of(client).to_json() == state, f"{clients.name} has another state"
            self._as_the_desk_says(clients.clients[0], clients.name, list(REQUESTS))

    def _as_the_desk_says(self, client: Gates, name: str, questions: list[str]) -> None:
        now = self.time.now()
        pending = {NAMES[view.request_id] for view in client.list_pending()}
        assert pending == self.desk.pending(now), f"{name}: what can be claimed is {pending}"
        for question in questions:
            shown = _shown(client.show(REQUESTS[question].request_id))
            assert shown == self.desk.shown(now, question), f"{name} shows {question} as {shown}"
            if question in _APPROVALS:
                self._approval(client, name, question)

    def _approval(self, client: Gates, name: str, question: str) -> None:
        """A5: the recorded decision, and only for exactly what was approved."""
        asked, request = self.desk.questions[question], REQUESTS[question]
        decided = asked.answer[1]["kind"] if asked.status == "answered" and asked.answer else "wait"
        assert client.resolve_approval(request, SUBJECT).kind == decided, f"{name}: {question}"
        assert client.resolve_approval(request, CHANGED).kind == "wait", f"{name}: changed bytes are approved"


def _shown(view: GateView | None) -> Any:
    """A view with only what the oracle speaks of."""
    if view is None:
        return None
    answer = view.answer and (view.answer.router_id, view.answer.response)
    late = tuple((each.router_id, each.response) for each in view.late)
    by = view.superseded_by and NAMES[view.superseded_by]
    return view.status.value, view.router_id, view.deadline, answer, late, by


def _on_the_wire(state: str) -> Any:
    """A state without what its events' wire form leaves out."""
    return [{**each, "subject": None, "approval": None} for each in json.loads(state)]


def machine(stores: list[Store], time: Time) -> type[GateSteps]:
    """The machine for these stores."""
    return type("GateSteps", (GateSteps,), {"stores": stores, "time": time})
