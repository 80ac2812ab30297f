"""Reading: what a read proves, and what is kept of it."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_HOOKS = "corrobo_core/hooks.py"
_LIFECYCLE = "corrobo_core/lifecycle.py"
_RECORDS = "corrobo_core/records.py"
_TRANSITIONS = "corrobo_core/transitions.py"

EVIDENCE = (
    Mutant(
        "every_read_is_recorded_as_proof",
        "O1",
        _LIFECYCLE,
        "        proves_absence=proves_absence,\n        evidence=evidence,\n        code=judged",
        "        proves_absence=True,\n        evidence=evidence,\n        code=judged",
        "Whoever investigates is told that a search index has proved absence.",
    ),
    Mutant(
        "an_incomplete_read_proves_absence",
        "O2",
        _LIFECYCLE,
        "if verdict.evidence is Evidence.NOT_APPLIED and not proof:  # O2",
        "if verdict.evidence is Evidence.NOT_APPLIED and not source:  # O2",
        "A search index that lags behind makes the payment look absent, and it is paid again.",
    ),
    Mutant(
        "a_failed_read_proves_absence",
        "O3",
        _LIFECYCLE,
        'return _looked(operation, Evidence.UNKNOWN, Reason.NOT_ESTABLISHED, why, reading.now, "observe")',
        'return _looked(operation, Evidence.NOT_APPLIED, Reason.NOT_ESTABLISHED, why, reading.now, "observe")',
        "An outage of the read side makes every payment look absent.",
    ),
    Mutant(
        "not_knowing_is_the_end",
        "O5",
        _LIFECYCLE,
        "        if not operation.attempts:\n            return (yield from self._next_attempt",
        "        if operation.disposition is Disposition.INVESTIGATE and decision is None:\n"
        "            return Conclusion(operation, reading.now)\n"
        "        if not operation.attempts:\n            return (yield from self._next_attempt",
        "One failed read during an outage leaves the operation to a person for ever.",
    ),
    Mutant(
        "observe_now_is_not_heard",
        "O5",
        _LIFECYCLE,
        "if self.call.observe_now or operation.retry_at is None or reading.now >= operation.retry_at:",
        "if operation.retry_at is None or reading.now >= operation.retry_at:",
        "A webhook that says that the payment is there changes nothing for five minutes.",
    ),
    Mutant(
        "a_read_before_its_time",
        "O5",
        _LIFECYCLE,
        "        return not operation.reserved or holder is Holder.RUNNING",
        "        return operation.reserved and holder is Holder.RUNNING",
        "Every caller reads the provider at once, and a thousand of them are an attack.",
    ),
    Mutant(
        "what_was_there_is_sent_again_when_it_is_gone",
        "O6",
        _RECORDS,
        "return self.disposition in CLOSED",
        "return self.disposition is Disposition.REPLAN",
        "A refund that was reversed on purpose is made again by the next retry.",
    ),
    Mutant(
        "an_overtaken_pass_forgets_what_it_saw",
        "O6",
        _TRANSITIONS,
        "if mine.evidence is not Evidence.APPLIED:",
        "if mine.evidence is not None:",
        "An effect that was seen and then reversed looks as if it had never been, and is made again.",
    ),
    Mutant(
        "the_history_grows_without_bound",
        "O7",
        _RECORDS,
        "(*self.last, record)[-self.KEPT :]",
        "(*self.last, record)",
        "A month of pending makes a row of megabytes, which every pass rewrites.",
    ),
    Mutant(
        "a_bug_in_reconcile_proves_absence",
        "O8",
        _LIFECYCLE,
        "return _looked(operation, Evidence.UNKNOWN, Reason.RECONCILE_FAILED, why, began, source, proof)",
        "return _looked(operation, Evidence.NOT_APPLIED, Reason.RECONCILE_FAILED, why, began, source, proof)",
        "A typo in reconcile sends every payment again.",
    ),
    Mutant(
        "the_history_is_not_shown",
        "O8",
        _HOOKS,
        "            history=operation.history,\n",
        "",
        "A reconcile that knows a reversal by what was seen before takes every look for the first.",
    ),
    Mutant(
        "a_value_that_cannot_be_stored_is_an_error",
        "T4",
        "corrobo_core/canonical.py",
        '        return {_TAG: "unstorable", "type": safe_text(type(value).__name__)}',
        "        raise",
        "A provider's answer is forgotten because of what is in it, and the wait for its window begins.",
    ),
)
