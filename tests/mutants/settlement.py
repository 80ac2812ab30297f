"""Settlement and the decision table: when is it safe to send again?"""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_DECIDE = "corrobo_core/decide.py"
_POLICY = "corrobo_core/policy.py"
_COMMANDS = "corrobo_core/commands.py"
_HOOKS = "corrobo_core/hooks.py"
_LIFECYCLE = "corrobo_core/lifecycle.py"

SETTLEMENT = (
    Mutant(
        "settled_in_the_last_moment",
        "D4",
        _DECIDE,
        "facts.began > at)",
        "facts.began >= at)",
        "A payment that lands in the last moment of its window is missed by that read, and paid twice.",
    ),
    Mutant(
        "an_answer_ends_every_request",
        "D4",
        _DECIDE,
        "attempt.outcome is Outcome.RESPONDED and attempt.finished_by_response",
        "attempt.outcome is Outcome.RESPONDED",
        "A provider that answers 202 and books later books twice.",
    ),
    Mutant(
        "an_answer_is_seen_at_once",
        "D4",
        _DECIDE,
        "return ALWAYS if not attempt.lag else _end(attempt) + attempt.lag",
        "return ALWAYS",
        "A replica that is a second behind makes an answered payment look absent, and it is paid again.",
    ),
    Mutant(
        "only_the_latest_attempt_counts",
        "T2",
        _DECIDE,
        "for attempt in facts.attempts]\n    return",
        "for attempt in facts.attempts[-1:]]\n    return",
        "A refused second attempt frees a third, while the first one is still on its way.",
    ),
    Mutant(
        "a_refusal_ends_a_window_of_zero",
        "T2",
        _DECIDE,
        "longest + lag if longest or not _refused_for_good(facts) else None",
        "longest + lag",
        "An operation is closed as refused although its first attempt still lands: money moved, and nobody knows.",
    ),
    Mutant(
        "the_lag_is_forgotten",
        "O4",
        _POLICY,
        "return None if self.window is None else self.window + self.observation_lag",
        "return self.window",
        "What landed last in its window is not on the replica yet, and is sent again.",
    ),
    Mutant(
        "nobody_waits_for_a_window",
        "D2",
        _DECIDE,
        "    Row(Evidence.NOT_APPLIED, _settling, Disposition.RETRY, Reason.SETTLING, _all_settled),\n",
        "",
        "A lost response is followed by a second request while the first is on its way: every timeout pays twice.",
    ),
    Mutant(
        "a_minute_is_enough",
        "D6",
        _DECIDE,
        "    if attempt.window is None:\n        return None",
        "    if attempt.window is None:\n        return _counted_from(attempt) + timedelta(minutes=1)",
        "Without a declared window, time is taken for proof that nothing happened.",
    ),
    Mutant(
        "a_window_that_is_declared_later_frees",
        "D3",
        _DECIDE,
        "    if attempt.window is not None and facts.policy.window is not None:\n"
        "        longest = max(attempt.window - attempt.lag, facts.policy.window)",
        "    if facts.policy.window is not None:\n"
        "        recorded = timedelta() if attempt.window is None else attempt.window\n"
        "        longest = max(recorded - attempt.lag, facts.policy.window)",
        "A deploy that declares a window sends again what was sent when nobody could say how long it takes.",
    ),
    Mutant(
        "a_deploy_shortens_the_window",
        "D3",
        _DECIDE,
        "longest = max(attempt.window - attempt.lag, facts.policy.window)",
        "longest = facts.policy.window",
        "A deploy with a shorter window sends again what is still on its way under the longer one.",
    ),
    Mutant(
        "reads_are_as_fresh_as_they_were",
        "D3",
        _DECIDE,
        "lag = max(attempt.lag, facts.policy.observation_lag)",
        "lag = attempt.lag",
        "After a move to a replica, the first read misses what landed just before, and it is sent again.",
    ),
    Mutant(
        "an_overrun_is_counted_from_the_start",
        "L9",
        _DECIDE,
        "return end if overran else attempt.started",
        "return attempt.started",
        "A hook that hung past its window may have sent last of all; nobody waits for what it sent.",
    ),
    Mutant(
        "the_read_is_dated_late",
        "D4a",
        _LIFECYCLE,
        "reading.at_least(saw.began)",
        "reading.at_most(saw.began)",
        "A read that began before the window was over counts as one after it, when the ledger was slow to answer.",
    ),
    Mutant(
        "the_read_is_dated_by_its_end",
        "D4a",
        _HOOKS,
        "lambda saw: _saw(saw, began), self._raised",
        "lambda saw: _saw(saw, stopwatch()), self._raised",
        "A slow read that saw nothing ends after the window, and what landed meanwhile is sent again.",
    ),
    Mutant(
        "the_worker_s_clock_decides",
        "D5",
        _COMMANDS,
        "return self.now + timedelta(seconds=max(stopwatch - self.received, 0.0))",
        "return datetime.now().astimezone()",
        "A worker whose clock runs ahead finds every window over.",
    ),
    Mutant(
        "the_answer_depends_on_who_computes_it",
        "D7",
        _DECIDE,
        "return expires is not None and facts.began + facts.policy.key_use >= expires",
        "return expires is not None and datetime.now(UTC) + facts.policy.key_use >= expires",
        "Two workers look at the same record, and one sends where the other calls a person.",
    ),
    Mutant(
        "not_knowing_is_enough_to_send_again",
        "D1",
        _DECIDE,
        "Row(Evidence.UNKNOWN, _any, Disposition.INVESTIGATE, None, _next_look)",
        "Row(Evidence.UNKNOWN, _any, Disposition.RETRY, Reason.SAFE_RETRY, _next_attempt)",
        "A failed read in an outage is followed by a second payment.",
    ),
    Mutant(
        "keys_are_remembered_for_ever",
        "D2",
        _DECIDE,
        "    Row(Evidence.NOT_APPLIED, _key_expired, Disposition.INVESTIGATE, Reason.KEY_EXPIRED, _next_look),\n",
        "",
        "After the provider has forgotten the key, the retry that it would have recognised is a second payment.",
    ),
    Mutant(
        "every_attempt_renews_the_key",
        "D2",
        _DECIDE,
        "return min(sent) + policy.key_retention if sent else None",
        "return max(sent) + policy.key_retention if sent else None",
        "Providers count a key's life from its first use; retries go on past it, and pay twice.",
    ),
    Mutant(
        "a_pause_outlives_the_key",
        "D2",
        _LIFECYCLE,
        "left = expires - reading.now - policy.key_use",
        "left = expires - reading.now + policy.key_use",
        "A worker that is paused before its retry sends it after the key was forgotten.",
    ),
    Mutant(
        "what_may_not_be_retried_is_retried",
        "L3",
        _DECIDE,
        "return not facts.policy.retry.retryable and _sent(facts) > 0",
        "return False",
        "An effect that its contract allows once only is attempted again.",
    ),
    Mutant(
        "one_attempt_too_many",
        "L3",
        _DECIDE,
        "return _sent(facts) >= facts.policy.retry.max_attempts",
        "return _sent(facts) > facts.policy.retry.max_attempts",
        "A provider that locks an account after three tries gets a fourth.",
    ),
    Mutant(
        "what_never_left_uses_up_attempts",
        "L9",
        _DECIDE,
        "return sum(attempt.outcome is not Outcome.NOT_SENT for attempt in facts.attempts)",
        "return len(facts.attempts)",
        "Workers that are paused a few times leave an operation for a person that nobody ever sent.",
    ),
    Mutant(
        "a_running_attempt_is_overtaken",
        "C5",
        _DECIDE,
        "    Row(Evidence.NOT_APPLIED, _running, Disposition.INVESTIGATE, Reason.STILL_RUNNING, _next_look),\n",
        "",
        "A hook that overran its timeout and is still at work sends after another worker has sent.",
    ),
)
