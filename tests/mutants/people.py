"""People: what their decisions allow, and which of them count."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_LIFECYCLE = "corrobo_core/lifecycle.py"
_RULINGS = "corrobo_core/rulings.py"
_TRANSITIONS = "corrobo_core/transitions.py"
_DECIDE = "corrobo_core/decide.py"
_MEMORY = "corrobo_core/ledgers/memory.py"
_SQLITE = "corrobo_core/ledgers/_sqlite_commands.py"

PEOPLE = (
    Mutant(
        "every_look_opens_another_episode",
        "R2",
        _LIFECYCLE,
        "if same_question and not any(d.token == current.token",
        "if not same_question and not any(d.token == current.token",
        "The link in the reviewer's mail is stale before it is opened.",
    ),
    Mutant(
        "a_revoked_approval_counts",
        "R3",
        _RULINGS,
        "return None if revoked else first",
        "return first",
        "A reviewer who took an approval back sees the money go out.",
    ),
    Mutant(
        "a_used_approval_can_be_revoked",
        "R3",
        _RULINGS,
        "return Refusal(RefusalCode.ALREADY_USED, about[0]) if used else _decision(operation, asked, now)",
        "return _decision(operation, asked, now)",
        "A reviewer is told that the approval is revoked, after it was used.",
    ),
    Mutant(
        "an_attested_value_is_lost",
        "R3",
        _TRANSITIONS,
        "        effect=decision.effect,\n",
        "        effect=None,\n",
        "The workflow goes on without the reference that a person has looked up.",
    ),
    Mutant(
        "an_old_token_counts",
        "R4",
        _RULINGS,
        "if episode.token != asked.token:",
        "if not asked.token:",
        "A click in last week's mail approves today's payment.",
    ),
    Mutant(
        "decided_before_it_was_asked",
        "R4",
        _RULINGS,
        "if asked.decided_at is not None and asked.decided_at < episode.opened_at:",
        "if asked.decided_at is not None and asked.decided_at > now:",
        "A decision about an earlier question is taken for one about this.",
    ),
    Mutant(
        "another_intent_is_approved",
        "R4",
        _RULINGS,
        "    if asked.intent_fingerprint not in (None, operation.fingerprint):\n"
        "        return Refusal(RefusalCode.INTENT_MISMATCH)\n",
        "",
        "The reviewer was shown 50 euros, and approves 5000.",
    ),
    Mutant(
        "an_expired_approval_is_recorded",
        "R4",
        _RULINGS,
        "if asked.expires_at is not None and asked.expires_at <= now:",
        "if asked.expires_at is not None and asked.expires_at < now:",
        "A reviewer is told that an approval stands which never counts.",
    ),
    Mutant(
        "the_last_word_counts",
        "R4",
        _RULINGS,
        "return first if _says_the_same(first, asked) else Refusal(RefusalCode.ALREADY_DECIDED, first)",
        "return first",
        "A rejection after an approval is answered with success, and the money goes out.",
    ),
    Mutant(
        "approvals_never_expire",
        "R5",
        _RULINGS,
        "return None if until is not None and now >= until else Approval(decision, until)",
        "return Approval(decision, None)",
        "An approval that was good until yesterday sends money today.",
    ),
    Mutant(
        "approvals_do_not_age",
        "R5",
        _RULINGS,
        "ends.append(decision.decided_at + policy.max_approval_age)",
        "ends.append(now + policy.max_approval_age)",
        "An approval of last year sends today.",
    ),
    Mutant(
        "approved_tomorrow",
        "R5",
        _RULINGS,
        "now if asked.decided_at is None else min(asked.decided_at, now)",
        "now if asked.decided_at is None else asked.decided_at",
        "An approval that is dated ahead outlives its age.",
    ),
    Mutant(
        "memory_claims_after_the_approval",
        "R5",
        _MEMORY,
        "lapsed = until is not None and now >= until",
        "lapsed = until is not None and now > until",
        "An approval that ends while the claim is on its way is used all the same.",
    ),
    Mutant(
        "sqlite_claims_after_the_approval",
        "R5",
        _SQLITE,
        "and (:until is null or corrobo_now() < :until) returning",
        "and (:until is null or :until = :until) returning",
        "An approval that expires while the claim waits for the file's lock is used all the same.",
    ),
    Mutant(
        "approved_and_not_looked_again",
        "R6",
        _LIFECYCLE,
        "        running = opened.holder is Holder.RUNNING\n        look =",
        "        if decision is not None and decision.kind is DecisionKind.APPROVED:\n"
        "            return (yield from self._next_attempt(operation, reading))\n"
        "        running = opened.holder is Holder.RUNNING\n        look =",
        "While the reviewer thought about the second attempt, the first one landed.",
    ),
    Mutant(
        "a_failed_check_is_a_yes",
        "R7",
        _LIFECYCLE,
        "return self._blocked(operation, Reason.REVALIDATION_FAILED, answer.failure.message, reading)",
        "return _Checked(operation, may_attempt=True)",
        "The order service is down, and refunds of cancelled orders go out.",
    ),
    Mutant(
        "a_rejection_by_revalidate_is_not_heard",
        "R7",
        _LIFECYCLE,
        '            if answer.kind == "reject":\n',
        '            if answer.kind == "rejected":\n',
        "What is not right any more is sent.",
    ),
    Mutant(
        "an_attestation_skips_the_window",
        "R8",
        _DECIDE,
        "    Row(Evidence.NOT_APPLIED, _settling, *_SETTLING),\n",
        "",
        "A person says that nothing is there, a second before it lands.",
    ),
    Mutant(
        "whoever_looks_too_early_has_the_last_word",
        "R8",
        _DECIDE,
        "Row(Evidence.UNKNOWN, _attested_too_early,",
        "Row(Evidence.CONFLICTED, _attested_too_early,",
        "A person says that nothing is there, it lands, nobody can read it, and it is sent again.",
    ),
    Mutant(
        "an_attestation_is_not_looked_after",
        "R8",
        _LIFECYCLE,
        "        running = opened.holder is Holder.RUNNING\n        look =",
        "        if any(d.kind is DecisionKind.NOT_APPLIED for d in self.decisions):\n"
        "            return (yield from self._next_attempt(operation, reading))\n"
        "        running = opened.holder is Holder.RUNNING\n        look =",
        "What landed after the person looked is sent again.",
    ),
    Mutant(
        "an_attestation_beats_what_converges",
        "R8",
        _DECIDE,
        "    Row(Evidence.NOT_APPLIED, _any, *_GRANTED),\n",
        "    Row(Evidence.NOT_APPLIED, _any, *_GRANTED),\n    Row(Evidence.PENDING, _any, *_GRANTED),\n",
        "The provider is booking, a person said that it is not there, and it is sent again.",
    ),
    Mutant(
        "an_attestation_counts_for_ever",
        "R8",
        _RULINGS,
        "grants[-1].attempt < max(sent, default=0):",
        "grants[-1].attempt < 0:",
        "What a person said about the first attempt frees every later one.",
    ),
    Mutant(
        "a_person_s_word_does_not_close",
        "R8",
        _LIFECYCLE,
        "        decision = self._decision_on(operation)\n",
        "        decision = None\n",
        "What was rejected stays open, and what was attested is looked for again.",
    ),
)
