"""Reserving and sending: what must be true before, and what an exception means after."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_HOOKS = "corrobo_core/hooks.py"
_LIFECYCLE = "corrobo_core/lifecycle.py"
_POLICY = "corrobo_core/policy.py"
_RUNNER = "corrobo_core/runner.py"
_TRANSITIONS = "corrobo_core/transitions.py"

SENDING = (
    Mutant(
        "sent_without_a_reservation",
        "L1",
        _LIFECYCLE,
        "            return (yield from self._claim(checked.operation, checked.approval))",
        "            unreserved = reserving(checked.operation, self._nonce(), self.call.policy, checked.approval)\n"
        "            begun = (*unreserved.attempts[:-1], evolve(unreserved.latest, started=reading.now))\n"
        "            return (yield from self._attempt(evolve(unreserved, attempts=begun), reading))",
        "A worker that dies after sending leaves no trace of it, and the next one sends again.",
    ),
    Mutant(
        "authorize_is_skipped",
        "L2",
        _LIFECYCLE,
        "if policy.authorizes and operation.authorized is None:",
        "if policy.authorizes and not policy.revalidates and operation.authorized is None:",
        "What nobody authorized is sent, because another hook was satisfied.",
    ),
    Mutant(
        "a_stored_verdict_is_enough",
        "L3",
        _LIFECYCLE,
        "        running = opened.holder is Holder.RUNNING\n        look =",
        "        if operation.disposition is Disposition.RETRY and operation.retry_at is not None:\n"
        "            return (yield from self._next_attempt(operation, reading))\n"
        "        running = opened.holder is Holder.RUNNING\n        look =",
        "What landed between the verdict and the retry is sent again.",
    ),
    Mutant(
        "observe_sends",
        "L4",
        _LIFECYCLE,
        "        settled, _ = self._settle(look, reading, running=running)\n",
        "        settled, safe = self._settle(look, reading, running=running)\n"
        "        if safe.attempt_now:\n"
        "            return (yield from self._next_attempt(settled, reading))\n",
        "A dashboard that only looks makes payments.",
    ),
    Mutant(
        "a_dead_attempt_was_never_sent",
        "L5",
        _TRANSITIONS,
        "outcome=Outcome.UNRECORDED)",
        "outcome=Outcome.NOT_SENT)",
        "A worker is killed after it has sent, and the next one sends at once.",
    ),
    Mutant(
        "a_dead_attempt_is_made_again",
        "L5",
        _LIFECYCLE,
        "        if not operation.attempts:\n            return (yield from self._next_attempt",
        "        if not operation.attempts or (operation.reserved and opened.holder is Holder.GONE):\n"
        "            return (yield from self._next_attempt",
        "After a crash the write is repeated as if nothing had happened: the oldest bug of durable execution.",
    ),
    Mutant(
        "revalidate_hides_what_has_happened",
        "L6",
        _LIFECYCLE,
        "        running = opened.holder is Holder.RUNNING\n        look =",
        "        if self.call.policy.revalidates:\n"
        "            first = yield from self._check(operation, reading)\n"
        "            if first is not None and not first.may_attempt:\n"
        "                return (yield from self._record(superseded(first.operation), reading))\n"
        "        running = opened.holder is Holder.RUNNING\n        look =",
        "An order that was cancelled after its refund landed is reported as not refunded.",
    ),
    Mutant(
        "cancelled_means_not_sent",
        "L7",
        _HOOKS,
        "return Executed(Outcome.AMBIGUOUS, ended, failure=self._failure(error), interrupted=stop)",
        "how = Outcome.NOT_SENT if stop else Outcome.AMBIGUOUS\n"
        "                return Executed(how, ended, failure=self._failure(error), interrupted=stop)",
        "A request that is cancelled while it waits for the answer is sent a second time.",
    ),
    Mutant(
        "given_up_and_nobody_is_told",
        "L7",
        _RUNNER,
        "            self.ledger.abandon(self.key, self._reserved)",
        "            pass",
        "An operation stays in progress for as long as the process lives that gave it up.",
    ),
    Mutant(
        "the_start_is_counted_from_the_reply",
        "L9",
        _LIFECYCLE,
        "limits.append(reading.sent + policy.start_allowance.total_seconds())",
        "limits.append(reading.received + policy.start_allowance.total_seconds())",
        "A reservation whose reply was long on its way sends after its window is over.",
    ),
    Mutant(
        "a_paused_worker_sends",
        "L9",
        _LIFECYCLE,
        "return min(limits, default=None)",
        "return None",
        "A worker that was suspended for an hour wakes up and sends, after somebody else has.",
    ),
    Mutant(
        "the_timeout_needs_no_time",
        "L9",
        _POLICY,
        "return self.window - self.execute_timeout",
        "return self.window",
        "A hook may begin in the last moment of its window and send after it.",
    ),
    Mutant(
        "a_pause_is_ambiguous",
        "L9",
        _HOOKS,
        "return Executed(Outcome.NOT_SENT, began)",
        "return Executed(Outcome.AMBIGUOUS, began)",
        "A paused worker's operation waits for a window though nothing was sent, and loses an attempt.",
    ),
    Mutant(
        "a_broken_connection_means_not_sent",
        "T1",
        _HOOKS,
        "            case NotSent():\n                return",
        "            case ConnectionError():\n"
        "                return Executed(Outcome.NOT_SENT, ended, failure=self._failure(error))\n"
        "            case NotSent():\n                return",
        "A reset after the request was processed is followed by a second request.",
    ),
    Mutant(
        "retry_after_is_not_heard",
        "T1",
        _HOOKS,
        "retry_after=wait if error.refused_for_now else None,",
        "retry_after=None,",
        "A provider that says when to come back is asked again at once, and bans the client.",
    ),
    Mutant(
        "a_refusal_for_now_is_for_good",
        "T1",
        _HOOKS,
        "retryable=error.refused_for_now,",
        "retryable=False,",
        "A rate limit closes the operation.",
    ),
)
