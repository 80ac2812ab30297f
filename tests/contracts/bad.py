"""Contracts that are wrong in one way each, and the scenarios that must say so."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from corrobo_core import Attempt, Check, NotSent, Observation, Outcome, Rejected, Verdict
from corrobo_core.testing.example import FakePayments, PaymentRefused, Refund, RefundContract, RefundOrder
from corrobo_core.testing.fake import EntryState
from tests.contracts.good import Deduplicated, ReviewedRefund, deduplicating, lagging

BAD: list[Bad] = []
ALL = "all"


@dataclass(frozen=True)
class Bad:
    """One way to be wrong.

    Attributes:
        contract: made for a target.
        target: makes one.
        scenario: the one that is about it, which must fail.
        says: what its line must say.
        also: every other scenario that fails because of it, or `ALL`.
    """

    contract: type[RefundContract]
    target: Callable[[], FakePayments]
    scenario: str
    says: str
    also: frozenset[str] | str


def bad(
    scenario: str, says: str, *also: str, target: Callable[[], FakePayments] = FakePayments
) -> Callable[[type[RefundContract]], type[RefundContract]]:
    def add(contract: type[RefundContract]) -> type[RefundContract]:
        BAD.append(Bad(contract, target, scenario, says, ALL if ALL in also else frozenset(also)))
        return contract

    return add


TWICE = "effects at the target: 2, wanted: 1"
NOT_THERE = "COMPLETE was said, and the effect is not at the target"
LATE = ("lands_as_window_ends", "lands_at_its_latest", "paused_before_send")


# -- declarations ----------------------------------------------------------------------------------------------


@bad("lands_at_its_latest", "in_flight_window is 5 s, and an effect lands up to 10 s", "paused_before_send")
class WindowIsTheClientsTimeout(RefundContract):
    """Its client gives up after five seconds. The request goes on for ten."""

    execute_timeout = timedelta(seconds=4)
    in_flight_window = timedelta(seconds=5)


@bad("paused_before_send", "declare an execute_timeout")
class WindowForgetsThePause(RefundContract):
    """Long enough for a request that is sent at once, and not for one that is sent as late as it may be."""

    execute_timeout = timedelta(seconds=1)


@bad("reads_lag_at_worst", "observation_lag is 0 s, and reads of the target lag by up to 3 s", target=lagging)
class ReadsFromAReplica(RefundContract):
    """And declares no observation_lag."""


@bad("answers_before_effect", "responds_after_effect is declared")
class AcceptedIsDone(RefundContract):
    responds_after_effect = True


@bad("key_retention_over", "the target keeps keys for 86400 s", target=deduplicating)
class KeyKeptTooLong(Deduplicated):
    """The provider forgets it after a day."""

    key_retention = timedelta(days=30)


@bad(
    "key_retention_over",
    "the target keeps keys for 0 s",
    *("lands_at_its_latest", "answers_before_effect", "hostile_answers", "cancelled_during_write"),
)
class NobodyDeduplicates(Deduplicated):
    """The provider takes a key, and ignores it."""


@bad("identity_reused", "a changed intent was accepted")
class AmountNotBound(RefundContract):
    volatile = ("amount_cents",)


# -- identity --------------------------------------------------------------------------------------------------


@bad("normal", TWICE, ALL)
class IdentityOfTheCall(RefundContract):
    """A new operation with each call."""

    numbers = itertools.count()

    def identity(self, intent: RefundOrder) -> str:
        return f"{intent.refund_id}/{next(self.numbers)}"


@bad("two_decisions", "IdentityReused", "neighbours_effect", "many_neighbours")
class IdentityOfTheOrder(RefundContract):
    """As if an order were refunded at most once."""

    def identity(self, intent: RefundOrder) -> str:
        return intent.order_id


@bad("identity_reused", TWICE, "wrong_amount")
class IdentityOfTheAmount(RefundContract):
    """A correction of the amount is a second refund."""

    def identity(self, intent: RefundOrder) -> str:
        return f"{intent.refund_id}/{intent.amount_cents}"


# -- execute ---------------------------------------------------------------------------------------------------


@bad("lands_before_window_ends", "attempt 1 NOT_SENT, attempt 2 RESPONDED", *LATE)
class SilenceIsNotSent(RefundContract):
    """As if a request that got no answer had never left."""

    def execute(self, attempt: Attempt, intent: RefundOrder) -> Refund:
        try:
            return super().execute(attempt, intent)
        except TimeoutError as error:
            raise NotSent(error) from error


@bad("lands_before_window_ends", "the effect is at the target, and the operation ended as REPLAN", *LATE)
class SilenceIsARefusal(RefundContract):
    def execute(self, attempt: Attempt, intent: RefundOrder) -> Refund:
        try:
            return super().execute(attempt, intent)
        except Exception as error:
            raise Rejected(error) from error


@bad(
    "response_lost",
    "effects at the target: 2, wanted: 1; REPLAN WORLD_CHANGED (2 refunds carry our reference, not one as intended;"
    " attempt 1 RESPONDED)",
    *("lands_before_window_ends", *LATE, "read_fails", "read_cannot_prove_absence"),
    *("neighbours_effect", "many_neighbours", "wrong_amount", "crash_at_every_command", "two_callers"),
)
class ClientTriesAgain(RefundContract):
    """As HTTP clients do by themselves."""

    def execute(self, attempt: Attempt, intent: RefundOrder) -> Refund:
        try:
            return super().execute(attempt, intent)
        except TimeoutError:
            return super().execute(attempt, intent)


@bad("cancelled_during_write", "Catch Exception, never BaseException")
class SwallowsCancellation(RefundContract):
    def execute(self, attempt: Attempt, intent: RefundOrder) -> Refund:
        try:
            return super().execute(attempt, intent)
        except Exception:
            raise
        except BaseException as error:
            raise Rejected(str(error)) from error


@bad("hostile_answers", "The answer was a NoneType")
class EmptyAnswerIsARefusal(RefundContract):
    def execute(self, attempt: Attempt, intent: RefundOrder) -> Refund:
        answer = super().execute(attempt, intent)
        if not isinstance(answer, Refund):
            raise NotSent("no refund in the answer")
        return answer


@bad(
    "lands_at_its_latest",
    TWICE,
    *("answers_before_effect", "hostile_answers", "cancelled_during_write"),
    target=deduplicating,
)
class NewKeyForEachAttempt(Deduplicated):
    """A window of zero relies on the key."""

    def execute(self, attempt: Attempt, intent: RefundOrder) -> Refund:
        reference = attempt.idempotency_key
        key = f"{reference}/{attempt.number}"
        return self.payments.create_refund(intent.order_id, intent.amount_cents, reference, key=key)


# -- observe ---------------------------------------------------------------------------------------------------


@bad(
    "observe_creates_nothing",
    "observe wrote 1 time",
    *("lands_at_its_latest", "answers_before_effect", "pending_then_rejected", "hostile_answers"),
    *("key_retention_over", "cancelled_during_write", "cancelled_after_write"),
    target=deduplicating,
)
class ObserveReplaysTheCreate(Deduplicated):
    """The same key gives the same answer. If there is one."""

    def observe(self, attempt: Attempt, intent: RefundOrder) -> Observation[list[Refund]]:
        key = attempt.idempotency_key
        refund = self.payments.create_refund(intent.order_id, intent.amount_cents, key, key=key)
        return Observation.of([refund], source="payments.create_refund", proves_absence=True)


@bad("read_fails", "A read that fails proves nothing")
class FailedReadIsEmpty(RefundContract):
    def observe(self, attempt: Attempt, intent: RefundOrder) -> Observation[list[Refund]]:
        try:
            return super().observe(attempt, intent)
        except TimeoutError:
            return Observation.of([], source="payments.refunds", proves_absence=True)


@bad("read_cannot_prove_absence", "say proves_absence=False")
class PartialReadIsWhole(RefundContract):
    def observe(self, attempt: Attempt, intent: RefundOrder) -> Observation[list[Refund]]:
        seen = super().observe(attempt, intent)
        return Observation.of(seen.data, source=seen.source, proves_absence=True)


@bad("many_neighbours", "read every page")
class OnlyTheFirstPage(RefundContract):
    def observe(self, attempt: Attempt, intent: RefundOrder) -> Observation[list[Refund]]:
        page = self.payments.refunds(intent.order_id)
        ours = [refund for refund in page.refunds if refund.reference == attempt.idempotency_key]
        return Observation.of(ours, source="payments.refunds", proves_absence=not page.partial)


@bad("neighbours_effect", NOT_THERE, "two_decisions", "many_neighbours", "wrong_amount")
class AnyRefundOfTheOrder(RefundContract):
    """Looks for the amount, and not for the reference."""

    def observe(self, attempt: Attempt, intent: RefundOrder) -> Observation[list[Refund]]:
        page = self.payments.refunds(intent.order_id)
        ours = [refund for refund in page.refunds if refund.amount_cents == intent.amount_cents]
        return Observation.of(ours, source="payments.refunds", proves_absence=not page.partial)


@bad("wrong_amount", TWICE)
class RightAmountOnly(RefundContract):
    """What has another amount is not looked at."""

    def observe(self, attempt: Attempt, intent: RefundOrder) -> Observation[list[Refund]]:
        seen = super().observe(attempt, intent)
        ours = [refund for refund in seen.data if refund.amount_cents == intent.amount_cents]
        return Observation.of(ours, source=seen.source, proves_absence=seen.proves_absence)


# -- reconcile -------------------------------------------------------------------------------------------------


@bad("wrong_amount", "COMPLETE was said about an effect of another content")
class AnyAmount(RefundContract):
    def reconcile(self, attempt: Attempt, intent: RefundOrder, data: list[Refund]) -> Verdict[Refund]:
        same = [refund.model_copy(update={"amount_cents": intent.amount_cents}) for refund in data]
        return super().reconcile(attempt, intent, same)


@bad("answers_before_effect", NOT_THERE, "pending_then_rejected", "hostile_answers")
class TrustsTheAnswer(RefundContract):
    def reconcile(self, attempt: Attempt, intent: RefundOrder, data: list[Refund]) -> Verdict[Refund]:
        if attempt.outcome is Outcome.RESPONDED:
            done = Refund(order_id=intent.order_id, amount_cents=intent.amount_cents, reference="")
            return Verdict.applied("ANSWERED", effect=done)
        return super().reconcile(attempt, intent, data)


@bad("pending_then_settled", TWICE, "pending_then_rejected", "read_goes_backwards")
class PendingIsAbsent(RefundContract):
    def reconcile(self, attempt: Attempt, intent: RefundOrder, data: list[Refund]) -> Verdict[Refund]:
        done = [refund for refund in data if refund.state is not EntryState.PENDING]
        return super().reconcile(attempt, intent, done)


@bad("pending_then_rejected", NOT_THERE)
class PendingIsDone(RefundContract):
    def reconcile(self, attempt: Attempt, intent: RefundOrder, data: list[Refund]) -> Verdict[Refund]:
        hopeful = [
            refund.model_copy(update={"state": EntryState.SETTLED})
            if refund.state is EntryState.PENDING
            else refund
            for refund in data
        ]
        return super().reconcile(attempt, intent, hopeful)


@bad("refused", NOT_THERE, "second_attempt_refused")
class RefusalIsAnAnswer(RefundContract):
    """An error body is a body."""

    def execute(self, attempt: Attempt, intent: RefundOrder) -> Any:
        try:
            return self.payments.create_refund(intent.order_id, intent.amount_cents, attempt.idempotency_key)
        except PaymentRefused:
            return "refused"

    def reconcile(self, attempt: Attempt, intent: RefundOrder, data: list[Refund]) -> Verdict[Refund]:
        if attempt.response == "refused":
            nothing = Refund(order_id=intent.order_id, amount_cents=0, reference="")
            return Verdict.applied("DONE_WITH_IT", effect=nothing)
        return super().reconcile(attempt, intent, data)


# -- checks ----------------------------------------------------------------------------------------------------


@bad("review_expires", "after its approval had ended")
class ReviewedOnce(ReviewedRefund):
    """Asks for the first attempt only."""

    def authorize(self, attempt: Attempt, intent: RefundOrder) -> Check:
        return Check.proceed()

    def revalidate(self, attempt: Attempt, intent: RefundOrder) -> Check:
        return Check.requires_review("who may?") if attempt.number == 1 else Check.proceed()
