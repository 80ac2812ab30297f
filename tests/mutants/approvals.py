"""Approvals bound to exact bytes."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_ANSWERING = "corrobo_core/gates/answering.py"
_APPROVALS = "corrobo_core/gates/approvals.py"
_EFFECTS = "corrobo_core/gates/effects.py"

APPROVALS = (
    Mutant(
        "changed_bytes_have_the_same_digest",
        "A1",
        _APPROVALS,
        '"proposedOutputDigest": _digest_of(self.proposed_output),',
        '"proposedOutputDigest": _digest_of(b""),',
        "What is applied is not what was approved.",
    ),
    Mutant(
        "any_subject_may_be_posted",
        "A2",
        _APPROVALS,
        'if named != "sha256:" + sha256(text):',
        "if not named:",
        "A question about one output is answered for another.",
    ),
    Mutant(
        "any_permission_is_admitted",
        "A2",
        _APPROVALS,
        'if canonical(each, "permission") not in admitted), None)',
        'if not canonical(each, "permission")), None)',
        "An approval gives a run permissions that its plan never had.",
    ),
    Mutant(
        "nobody_has_decided",
        "A3",
        _APPROVALS,
        "    if not isinstance(actor, Mapping):\n",
        "    if isinstance(actor, str):\n",
        "An approval is recorded, and nobody gave it.",
    ),
    Mutant(
        "the_decision_can_be_changed",
        "A4",
        _ANSWERING,
        "if known.approval_json != record or known.answer is None:",
        "if known.answer is None:",
        "Whoever said no is told that it was recorded, and it was yes.",
    ),
    Mutant(
        "an_approval_is_good_for_anything",
        "A5",
        _APPROVALS,
        "return ActionDecision.parse(decision) if wanted == stored.approval_json else stale",
        "return ActionDecision.parse(decision) if wanted else stale",
        "Bytes that were changed after the approval are applied.",
    ),
    Mutant(
        "a_no_is_a_yes",
        "A6",
        _EFFECTS,
        '"deny": DecisionKind.REJECTED,',
        '"deny": DecisionKind.APPROVED,',
        "The reviewer denies, and the money goes out.",
    ),
    Mutant(
        "the_question_names_no_episode",
        "A6",
        _EFFECTS,
        '            "token": episode.token,\n',
        '            "token": "ep1",\n',
        "An answer to an earlier question is taken for one to this, or to none.",
    ),
)
