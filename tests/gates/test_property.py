"""Posts, claims, answers, releases, supersessions and expiries by three routers in any order, on every store:
the same results, the same events, and a state that is the fold of its history, byte for byte.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corrobo_core.gates import GateClient, GateRequest, Gates, StoredGateClient, create_gate, fold, replay, to_lines
from corrobo_core.gates.events import GateEvent
from corrobo_core.ledgers.ports import Ledger
from tests.gates.conftest import STORES, Opened
from tests.gates.support import DEFINITION, MINUTE, NO, START, YES, Clock, Turned, state_of

REQUESTS = [
    create_gate(replace(DEFINITION, gate_id=gate, input={"revision": revision}))
    for gate in ("gate-1", "gate-2")
    for revision in ("a", "b")
]
ROUTERS = ["router-a", "router-b", "router-c"]

routers = st.sampled_from(ROUTERS)
# Tokens are the routers' own and few, so that foreign, repeated and stale ones all occur.
tokens = st.sampled_from(["a1", "a2", "b1", "c1"])

Step = Callable[[Gates, Clock], Any]


def step(name: str, *arguments: Any, **options: Any) -> Step:
    def act(client: Gates, clock: Clock) -> Any:
        if name == "turn":
            return clock.turn(*arguments)
        return getattr(client, name)(*arguments, **options)

    act.__qualname__ = f"{name}{arguments}{options}"
    return act


def submission(request: GateRequest, token: str, router: str, right: bool, answer: Any) -> Step:
    digest = request.digest if right else REQUESTS[0].digest
    return step("submit", request.request_id, token, router, digest, answer)


def posting(request: GateRequest, deadline: Any, reopen: bool) -> Step:
    return step("post", request, deadline=deadline, reopen=reopen)


def claiming(request: GateRequest, router: str, token: str, lease: Any) -> Step:
    return step("claim", request.request_id, router, claim_token=token, lease=lease)


answers = st.sampled_from([YES, NO, {"approved": 1}, {}])


def steps_in(minute: timedelta, asked: Sequence[GateRequest] = REQUESTS) -> st.SearchStrategy[Step]:
    """Every step, on these requests; a ``minute`` is what leases and deadlines count in."""
    requests = st.sampled_from(asked)
    waits = st.sampled_from([None, 2 * minute, 5 * minute])
    return st.one_of(
        st.builds(posting, requests, waits, st.booleans()),
        st.builds(claiming, requests, routers, tokens, waits),
        st.builds(submission, requests, tokens, routers, st.booleans(), answers),
        st.builds(lambda r, t: step("release", r.request_id, t), requests, tokens),
        st.builds(lambda r: step("release_claim", r.request_id, operator="ada", reason="why"), requests),
        st.builds(lambda r, by: step("supersede", r.request_id, by.request_id), requests, requests),
        st.just(step("expire")),
        st.builds(lambda minutes: step("turn", minutes * minute), st.integers(1, 4)),
    )


def frozen(opened: Opened, kind: str) -> tuple[Turned, Clock]:
    """A real ledger whose clock stands still between turns."""
    clock = Clock()
    ledger = Turned(opened.sync(kind))
    ledger.stand_at(clock)
    return ledger, clock


@pytest.mark.parametrize("kind", STORES)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(steps_in(MINUTE), st.integers(0, 2)), max_size=30))
def test_G3_any_interleaving_folds_to_the_same_state_as_its_replay(
    opened: Opened, kind: str, script: list[tuple[Step, int]]
) -> None:
    ledger, clock = frozen(opened, kind)
    stream, model_clock = uuid.uuid4().hex, Clock(START)
    # Three processes on one log, and one client in memory that says what must come out.
    clients = [StoredGateClient(cast("Ledger", ledger), stream) for _ in range(3)]
    model = GateClient(clock=model_clock)
    for act, who in script:
        if "turn" in act.__qualname__:
            act(model, model_clock)
            act(clients[who], clock)
            continue
        assert act(clients[who], clock) == act(model, model_clock)
    history = clients[0].history()
    assert to_lines(history) == to_lines(model.history())
    said = replay(to_lines(history)).state.to_json()
    for client in clients:
        assert state_of(client).to_json() == said
    assert fold(history).to_json() == said
    assert {v.request_id: v for v in model.list_pending()} == {v.request_id: v for v in clients[1].list_pending()}
    hold_invariants(model.history())


def hold_invariants(history: Iterable[GateEvent]) -> None:
    """What must hold whatever happened, told without the fold."""
    answers: Counter[str] = Counter()
    holder: dict[str, str | None] = {}
    expired: set[str] = set()
    for event in history:
        match event.kind:
            case "callback-requested":
                holder[event.request_id] = None
                expired.discard(event.request_id)
            case "callback-claimed":
                assert holder[event.request_id] is None, "two routers hold one claim"
                holder[event.request_id] = event.router_id  # type: ignore[union-attr]
            case "callback-released":
                holder[event.request_id] = None
            case "callback-expired":
                expired.add(event.request_id)
            case "callback-submitted":
                assert holder[event.request_id] == event.router_id  # type: ignore[union-attr]
                answers[event.request_id] += event.request_id not in expired
            case _:
                pass
    assert all(count <= 1 for count in answers.values()), "two answers decide one request"
