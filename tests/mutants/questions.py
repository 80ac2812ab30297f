"""Gates: questions, claims, answers and their history."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_ANSWERING = "corrobo_core/gates/answering.py"
_CANONICAL_TEXT = "corrobo_core/gates/definition.py"
_EVENTS = "corrobo_core/gates/events.py"
_PORT = "corrobo_core/ledgers/gate_port.py"
_PROTOCOL = "corrobo_core/gates/protocol.py"
_ROUTERS = "corrobo_core/gates/routers.py"
_SQLITE = "corrobo_core/ledgers/_sqlite_gates.py"
_STATE = "corrobo_core/gates/state.py"

QUESTIONS = (
    Mutant(
        "another_input_is_the_same_question",
        "G1",
        _CANONICAL_TEXT,
        '"gateVersion":{version},"input":{input_json},',
        '"gateVersion":{version},"input":{{}},',
        "The approval of one release is the approval of every one.",
    ),
    Mutant(
        "a_question_can_be_claimed_twice",
        "G2",
        _STATE,
        "(self.status is GateStatus.PENDING or (self.live and lapsed))",
        "(self.status is GateStatus.PENDING or self.live)",
        "Two people work on the same question.",
    ),
    Mutant(
        "anybody_may_answer",
        "G2",
        _STATE,
        "(self.router_id, self.claim_token) == (router_id, claim_token)",
        "self.router_id == router_id",
        "Whoever knows a router's name answers for it.",
    ),
    Mutant(
        "an_answered_question_is_asked_again",
        "G3",
        _STATE,
        "before is None or before.status in (GateStatus.SUPERSEDED, GateStatus.EXPIRED)",
        "before is None or before.status is not GateStatus.PENDING",
        "A history that was tampered with replays, and the recorded answer is gone.",
    ),
    Mutant(
        "events_have_more_fields",
        "G3",
        _EVENTS,
        'if wire.keys() != {"kind", *fields}:',
        'if not wire.keys() >= {"kind", *fields}:',
        "Another system's history replays, and means something else there.",
    ),
    Mutant(
        "a_newer_question_leaves_the_older_open",
        "G4",
        _PROTOCOL,
        "others = [each for each in state.live_of(request.gate_id) if",
        "others = [each for each in state.live_of(request.gate_id) if each.due(now) and",
        "A reviewer answers the question of the revision before.",
    ),
    Mutant(
        "a_stale_worker_asks_again",
        "G4",
        _PROTOCOL,
        "if known is not None and not reopen:",
        "if known is not None and known.answer:",
        "A worker that was restarted pushes out the live question with an old one.",
    ),
    Mutant(
        "memory_appends_whatever_the_revision",
        "G5",
        _PORT,
        "if len(log) != command.revision or (",
        "if len(log) < command.revision or (",
        "Two routers claim at the same time, and both are told that they won.",
    ),
    Mutant(
        "sqlite_appends_whatever_the_revision",
        "G5",
        _SQLITE,
        " where :revision = (select coalesce(max(revision), 0)",
        " where :revision <= (select coalesce(max(revision), 0)",
        "A router that lost is told that the storage is damaged.",
    ),
    Mutant(
        "any_answer_will_do",
        "G6",
        _ANSWERING,
        "return problem_of(json.loads(response), known.request.response_schema_json)",
        "return None",
        "A program that expects a boolean is given something else, or nothing.",
    ),
    Mutant(
        "a_late_answer_decides",
        "G7",
        _ANSWERING,
        "    if known.due(now):\n        expired = expiry(known, now)",
        "    if known.due(now) and known.router_id is None:\n        expired = expiry(known, now)",
        "A release is approved after its window was over and the default has been taken.",
    ),
    Mutant(
        "memory_appends_after_the_deadline",
        "G7",
        _PORT,
        "(command.before is not None and now >= command.before)",
        "(command.before is not None and now > command.before)",
        "An answer that was on its way when the deadline passed decides.",
    ),
    Mutant(
        "sqlite_appends_after_the_deadline",
        "G7",
        _SQLITE,
        "(:before is null or corrobo_now() < :before)",
        "(:before is null or :before = :before)",
        "An answer that waited for the file's lock past the deadline decides.",
    ),
    Mutant(
        "due_one_moment_late",
        "G7",
        _STATE,
        "self.deadline is not None and now >= self.deadline",
        "self.deadline is not None and now > self.deadline",
        "At the deadline itself an answer counts here and has expired there.",
    ),
    Mutant(
        "every_second_answer_is_a_double_click",
        "G8",
        _ANSWERING,
        "same = known.answer is not None and known.answer.response_json == response",
        "same = known.answer is not None",
        "Somebody who said no is told that no was recorded, and it was yes.",
    ),
    Mutant(
        "an_invalid_answer_keeps_the_claim",
        "G9",
        _ROUTERS,
        "        client.release(request.request_id, token)\n    return submitted\n\n\nasync def",
        "        pass\n    return submitted\n\n\nasync def",
        "After one bad answer a question waits for ever for a router that is gone.",
    ),
    Mutant(
        "a_repeated_claim_is_refused",
        "G10",
        _PROTOCOL,
        "if known.status is GateStatus.CLAIMED and known.owned_by(router, token):",
        "if known.status is GateStatus.PENDING and known.owned_by(router, token):",
        "A router whose reply was lost never hears that the claim is its own.",
    ),
    Mutant(
        "leases_hold_for_ever",
        "G11",
        _STATE,
        "(self.status is GateStatus.PENDING or (self.live and lapsed))",
        "(self.status is GateStatus.PENDING or (self.status is GateStatus.ANSWERED and lapsed))",
        "A router that died blocks its question for ever.",
    ),
    Mutant(
        "claim_tokens_are_shown",
        "G12",
        _STATE,
        "            GateStatus.EXPIRED if state.due(now) else state.status,\n            state.router_id,",
        "            GateStatus.EXPIRED if state.due(now) else state.status,\n            state.claim_token,",
        "Whoever may see the list may answer in somebody else's name.",
    ),
)
