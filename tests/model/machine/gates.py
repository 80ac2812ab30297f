"""The machine that drives gates: the same steps on an object in memory and on every ledger, with two clients each.

In the middle of a step the ledger can lose a reply, or not answer, or time passes, or the other client acts; what
must come of it is told by `desk`, which knows no event. After each step the histories are equal byte for byte, and
replay to the state that the clients have.
"""

from __future__ import annotations

import itertools
import json
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from corrobo_core.commands import LedgerCommand
from corrobo_core.gates import (
    GateClient,
    Gates,
    GateView,
    StoredGateClient,
    create_gate,
    replay,
    to_lines,
)
from corrobo_core.gates.approvals import (
    ApprovalSubject,
)
from corrobo_core.gates.errors import ApprovalSubjectError, GateHistoryError
from corrobo_core.gates.events import CallbackRejected, CallbackRequested, CallbackSubmitted
from corrobo_core.ledgers.gate_port import AppendGate
from corrobo_core.ledgers.ports import Ledger
from tests.gates.support import DEFINITION, NO, YES, Turned, state_of
from tests.model.machine.desk import Desk
from tests.model.machine.questions import (
    ADA,
    ALLOW,
    APPROVALS,
    BOB,
    CHANGED,
    DENY,
    EXAMPLE,
    NAMES,
    PLAN,
    REQUESTS,
    SUBJECT,
    Act,
    Again,
    Between,
    NotAnswered,
    Pause,
    remembered,
)
from tests.model.machine.stores import PROCESSES, Store
from tests.model.machine.times import Time

R = TypeVar("R")
_streams = itertools.count(1)

# -- what is drawn -----------------------------------------------------------------------------------------------

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
        assert create_gate(DEFINITION).request_id == EXAMPLE, "the example of the semantics has another id (G1)"
        self.desk = Desk({name: remembered(name) for name in REQUESTS})

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

    @rule(
        name=_names,
        first=st.sampled_from([YES, ALLOW, DENY]),
        then=st.sampled_from([NO, ALLOW, DENY, {}]),
        actor=st.sampled_from([ADA, BOB, None]),
        between=st.booleans(),
    )
    def it_is_answered_twice(self, name: str, first: Any, then: Any, actor: Any, between: bool) -> None:
        """By the same claim, one after the other or at the same time; the second may be nobody's."""
        self._step(Act("post", (name, None, True)), 0, None)
        self._step(Act("claim", (name, "router-a", "token-1", None)), 0, None)
        answer = Act("submit", (name, "token-1", "router-a", True, first, ADA))
        another = Act("submit", (name, "token-1", "router-a", True, then, actor))
        if between:
            self._step(another, 1, answer)
        else:
            self._step(another, 1, None)
            self._step(answer, 0, None)

    @rule(name=_names, lease=_waits, by=st.sampled_from([0, 3, 4, 5, 10]), between=st.booleans())
    def two_claim_it(self, name: str, lease: timedelta | None, by: int, between: bool) -> None:
        """At the same time, or the second when the first one's lease is over, or nearly."""
        self._step(Act("post", (name, None, True)), 0, None)
        first = Act("claim", (name, "router-a", "token-1", lease))
        second = Act("claim", (name, "router-b", "token-2", None))
        if between:
            self._step(second, 1, first)
        else:
            self._step(first, 0, None)
            self.time.pass_by(by)
            self._step(second, 1, None)

    @rule(
        name=_names,
        router=_routers,
        token=_tokens,
        response=st.one_of(_answers, st.just("raises")),
        ask=st.booleans(),
    )
    def a_function_is_asked(self, name: str, router: str, token: str, response: Any, ask: bool) -> None:
        if ask:
            self._step(Act("post", (name, None, True)), 0, None)
        self._step(Act("route", (name, router, token, response, ADA)), 1, None)

    @rule(
        name=_names,
        wait=st.sampled_from([timedelta(seconds=4), timedelta(seconds=10)]),
        answer=st.sampled_from([YES, ALLOW, {}]),
        by=st.sampled_from([-1, 0, 0, 1]),
        between=st.booleans(),
    )
    def an_answer_at_the_deadline(self, name: str, wait: timedelta, answer: Any, by: int, between: bool) -> None:
        """At the very moment, or just before or after it; or it passes while the answer is on its way."""
        self._step(Act("post", (name, wait, True)), 0, None)
        self._step(Act("claim", (name, "router-a", "token-1", None)), 1, None)
        until = self.desk.questions[name].deadline or self.time.now()
        left = int((until - self.time.now()).total_seconds()) + by
        if between:
            what: Between = Pause(max(left, 0))
        else:
            what = None
            self.time.pass_by(max(left, 0))
        self._step(Act("submit", (name, "token-1", "router-a", True, answer, ADA)), 1, what)

    @rule(name=st.sampled_from(sorted(APPROVALS)), subject=st.sampled_from([None, CHANGED]))
    def what_may_not_be_asked(self, name: str, subject: ApprovalSubject | None) -> None:
        """A2: another subject than the question names, or permissions that the plan does not admit."""
        lesser = GateClient(clock=self.time.now, plan=replace(PLAN, admitted=()))
        for client, given in ((self.plain, subject), (lesser, SUBJECT)):
            _not_asked(client, name, given)

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
        self._tampered()
        for clients in self.everywhere:
            for client in clients.clients:
                assert _stored_state(client) == state, f"{clients.name} has another state"
            self._as_the_desk_says(clients.clients[0], clients.name, list(REQUESTS))

    def _as_the_desk_says(self, client: Gates, name: str, questions: list[str]) -> None:
        now = self.time.now()
        pending = {NAMES[view.request_id] for view in client.list_pending()}
        assert pending == self.desk.pending(now), f"{name}: what can be claimed is {pending}"
        for question in questions:
            shown = _shown(client.show(REQUESTS[question].request_id))
            assert shown == self.desk.shown(now, question), f"{name} shows {question} as {shown}"
            if question in APPROVALS:
                self._approval(client, name, question)

    def _approval(self, client: Gates, name: str, question: str) -> None:
        """A5: the recorded decision, and only for exactly what was approved."""
        asked, request = self.desk.questions[question], REQUESTS[question]
        decided = asked.answer[1]["kind"] if asked.status == "answered" and asked.answer else "wait"
        assert client.resolve_approval(request, SUBJECT).kind == decided, f"{name}: {question}"
        assert client.resolve_approval(request, CHANGED).kind == "wait", f"{name}: changed bytes are approved"

    def _tampered(self) -> None:
        """G3: a history in which something happens that cannot have happened does not replay."""
        history = self.plain.history()
        for number, event in enumerate(history, 1):
            if not isinstance(event, CallbackRejected | CallbackSubmitted):
                _refuse([*history[:number], event], f"{event.kind} twice")
        for name, question in self.desk.questions.items():
            if question.status in ("pending", "claimed", "answered"):
                _refuse([*history, CallbackRequested(REQUESTS[name])], f"{name} is asked while {question.status}")
        for line in to_lines(history[-1:]).splitlines():
            for bad in (
                line.replace('{"', '{"more":1,"', 1),
                line.replace("callback-", "callback-un"),
                line.replace('{"', '{"kind":1,"', 1),
                line.replace('"kind"', '"kinds"', 1),
            ):
                _refuse(to_lines(history[:-1]) + bad, bad)


def _stored_state(client: StoredGateClient) -> str:
    try:
        return state_of(client).to_json()
    except GateHistoryError as error:
        raise AssertionError("what was appended is damaged") from error


def _not_asked(client: Gates, name: str, subject: ApprovalSubject | None) -> None:
    try:
        client.post(REQUESTS[name], subject)
    except ApprovalSubjectError:
        return
    raise AssertionError(f"{name} is asked about {subject}")


def _refuse(history: Any, why: str) -> None:
    try:
        replay(history)
    except GateHistoryError:
        return
    raise AssertionError(f"it replays: {why}")


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
