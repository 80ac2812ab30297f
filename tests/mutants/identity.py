"""Identity and intent: which operation this is, and what exactly is executed."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_BINDING = "corrobo_core/binding.py"
_CANONICAL = "corrobo_core/canonical.py"
_HOOKS = "corrobo_core/hooks.py"
_LIFECYCLE = "corrobo_core/lifecycle.py"
_RUNNER = "corrobo_core/runner.py"

IDENTITY = (
    Mutant(
        "an_id_may_be_used_for_another_intent",
        "I1",
        _LIFECYCLE,
        "if operation.fingerprint != call.fingerprint:",
        "if not operation.fingerprint:",
        "A second refund under a used id is reported as done, and never made.",
    ),
    Mutant(
        "an_id_may_be_used_for_another_type",
        "L8",
        _LIFECYCLE,
        "if key.type != call.key.type:",
        "if not key.type:",
        "A payout under a refund's id is reported as done, and never made.",
    ),
    Mutant(
        "today_s_intent_is_executed",
        "I2",
        _HOOKS,
        "values = kind.anew(today) if same else kind.recorded(operation.intent, operation.fingerprint)",
        "values = kind.anew(today)",
        "What was recorded, shown and approved is not what is sent.",
    ),
    Mutant(
        "volatile_fields_are_bound",
        "I3",
        _BINDING,
        "        if not self.volatile:\n            return fingerprint(text)",
        "        return fingerprint(text)",
        "A trace id that differs makes every retry an IdentityReused.",
    ),
    Mutant(
        "any_text_is_an_intent",
        "I4",
        _CANONICAL,
        "            _check_text(value, path)",
        "            return",
        "An intent with NUL is sent, and PostgreSQL cannot record it.",
    ),
    Mutant(
        "every_attempt_has_its_own_key",
        "I5",
        _RUNNER,
        "lambda: ledger.idempotency_key(self.key)",
        "lambda: ledger.idempotency_key(self.key) + self.nonce",
        "The provider takes every retry for a new payment.",
    ),
    Mutant(
        "all_operations_share_a_key",
        "I5",
        _CANONICAL,
        'f"{len(operation_type)}:{operation_type}{len(operation_id)}:{operation_id}"',
        'f"{len(operation_type)}:{operation_type}"',
        "The provider answers the second customer's payment with the first one's, and never makes it.",
    ),
    Mutant(
        "execute_sees_the_context",
        "I6",
        _HOOKS,
        "context=self._context if with_context else {},",
        "context=self._context,",
        "What is sent depends on who happens to retry, and on no record.",
    ),
)
