"""One ledger, one outside system, and the passes and people that meet there.

The oracle is the stage's own record of what it did: which statements it let through and when, what became of each
request, what each read showed, what people said. What is wrong with it is kept in ``broken``, since a hook that
raised would only be taken for a failing hook.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from corrobo_core import EffectResult, EffectRunner, ReviewDesk
from corrobo_core.commands import Holder, Load
from corrobo_core.errors import IdentityReused, IntentError, LedgerUnavailable
from corrobo_core.ledgers.document import to_document
from corrobo_core.records import Disposition, History, OperationKey, Outcome
from tests.crash.process import Killed
from tests.model.machine import people
from tests.model.machine.contracts import ANOTHER_TYPE, CONTEXT, TYPE, Declared, contract, running
from tests.model.machine.foreseen import Foreseen
from tests.model.machine.old_rows import OldAttempt
from tests.model.machine.outside import AMOUNT, Outside, Sent
from tests.model.machine.passes import Pass, Seen
from tests.model.machine.plans import Check, Look, Send, Turn
from tests.model.machine.stores import PROCESSES, Store
from tests.model.machine.times import Time

R = TypeVar("R")


@dataclass(frozen=True)
class Setup:
    """What stays the same for one operation.

    Attributes:
        authorizes: what ``authorize`` answers; None: there is no such hook.
        revalidates: whether there is such a hook.
        max_age: of approvals, in seconds.
        deduplicates: the provider does.
        calm: nothing happens in the middle of passes, so that each one can be foreseen.
    """

    authorizes: Check | None = None
    revalidates: bool = False
    max_age: int | None = None
    deduplicates: bool = False
    calm: bool = False


class Stage:
    """See the module.

    Args:
        store: the ledger under test.
        time: shared with the other stages, which are brought to the same time before each step.
        setup: of the operation.
        operation_id: of the operation.
    """

    def __init__(self, store: Store, time: Time, setup: Setup, operation_id: str) -> None:
        self.store, self.time, self.setup, self.operation_id = store, time, setup, operation_id
        self.outside = Outside(setup.deduplicates)
        self.people = people.People(self)
        self.nonces: list[str] = []
        self.broken: list[str] = []
        self.running: list[Pass] = []
        self.closed: Disposition | None = None
        self.closed_for = ""
        self.results: list[EffectResult[int]] = []
        self.foreseen = Foreseen(self)
        self.disturbed = False
        self.note: str | None = None
        self.looked: list[Seen] = []

    # -- steps ---------------------------------------------------------------------------------------------

    def play(self, turn: Turn, amount: int = AMOUNT, note: str | None = None) -> str:
        """One pass; what it ends with, as text that is the same for every ledger."""
        this, sent = Pass(self, turn), list(self.outside.sent)
        effect = contract(
            turn.contract, self.setup.authorizes is not None, self.setup.revalidates, self.setup.max_age
        )
        runner = EffectRunner(this.process.ledger, context=CONTEXT, observe_now=turn.observe_now)
        closed, held = self.closed, any(each.holds() for each in self.running)
        # Which of two questions people are asked is not foreseen.
        self.disturbed |= self.setup.authorizes is turn.check is Check.REVIEW
        self.running.append(this)
        try:
            with running(this):
                call = runner.observe if turn.reads_only else runner.run
                result = call(effect, self.operation_id, amount, this.note if note is None else note)
        except (IdentityReused, IntentError) as error:
            return type(error).__name__
        except (Killed, LedgerUnavailable, KeyboardInterrupt) as error:
            self.disturbed = True
            return type(error).__name__
        except Exception as error:
            self.wrong(f"{turn} raises {error!r}")
            return type(error).__name__
        finally:
            self.running.remove(this)
            if this.process.dead:
                self.store.kill(turn.process, this.process.nonces)
        self._judge(result, closed)
        self._judge_attempts(this, result)
        saw_it = this.sent is not None and this.seen[-1:] and this.seen[-1].shown == "there"
        judged = saw_it and this.seen[-1].how in (Look.HONEST, Look.STALE, Look.INCOMPLETE)
        if judged and not this.given_up and self.closed is None:
            self.wrong("the effect of its own attempt was seen, and is not on record")
        if this.sent is not None and not this.recorded and not self.store.late(self.operation_id):
            self.wrong("what a pass knew that had lost the operation is nowhere kept")
        if held and (this.seen or result.reason != "IN_PROGRESS"):
            self.wrong(f"while another pass makes an attempt: {result.reason}, after {len(this.seen)} reads")
        self.looked += this.seen
        if not self.disturbed:
            self.check_history(result.history, self.looked)
            if this.sent is None:
                self._keeps_its_token()
            self.foreseen.judge(this, result, sent)
        return self.neutral(repr(result))

    def reuse_for_another_type(self) -> str:
        """The same id for something else."""
        this = Pass(self, Turn())
        try:
            with running(this):
                EffectRunner(this.process.ledger).run(ANOTHER_TYPE, self.operation_id, AMOUNT, "")
        except IdentityReused as error:
            return type(error).__name__
        return "no error"

    def remember_old(self, attempt: OldAttempt, started: float) -> None:
        """An older release has sent something, under the window that it recorded."""
        how = Send.ANSWER_FIRST if attempt.outcome == "RESPONDED" else Send.LATE
        declared = Declared(window=attempt.window, timeout=None)
        self.outside.sent.append(Sent(started, started, how, declared, None, ended=started + 1))
        self.disturbed, self.note = True, "old"

    def stored(self) -> tuple[Any, ...] | None:
        """All that is stored, without what differs between ledgers: nonces, owners."""
        loaded = None
        for process in range(PROCESSES):
            self.store.tell_time()
            loaded = self.store.ledger(process).perform(Load(self.key))
        assert loaded is not None
        if loaded.operation is None:
            return None
        operation = loaded.operation
        document = to_document(operation)
        if CONTEXT["caller"] in document:
            self.wrong("the caller is on record")
        return (
            self.neutral(document),
            operation.version,
            self.neutral(operation.nonce).removesuffix(".abandoned"),
            operation.owner is not None,
            self.neutral(repr(loaded.decisions)),
            loaded.holder is Holder.RUNNING,
            self.store.late(self.operation_id),
        )

    @property
    def key(self) -> OperationKey:
        return OperationKey("default", self.operation_id, TYPE)

    def neutral(self, text: str) -> str:
        """Without the random names of passes."""
        for number, nonce in enumerate(self.nonces):
            text = text.replace(nonce, f"pass{number}")
        return text

    @contextmanager
    def desk(self, process: int) -> Iterator[ReviewDesk]:
        self.store.tell_time()
        yield ReviewDesk(self.store.ledger(process))

    # -- what must hold ------------------------------------------------------------------------------------

    def wrong(self, what: str) -> None:
        self.broken.append(what)

    def _judge(self, result: EffectResult[int], closed: Disposition | None) -> None:
        self.results.append(result)
        now = self.time.elapsed
        if closed is not None and result.disposition is not closed:
            self.wrong(f"it was {closed}, and is {result.disposition}")
        if result.disposition in (Disposition.COMPLETE, Disposition.REPLAN):
            self.closed, self.closed_for = result.disposition, result.reason
        if result.disposition is Disposition.COMPLETE:
            seen = any(each.lands <= now for each in self.outside.effects)
            if not (seen or self.people.attested):
                self.wrong("COMPLETE, and nothing is there")
            if result.effect != AMOUNT:
                self.wrong(f"COMPLETE, with the value {result.effect}")
        if len(result.history.last) > 20:
            self.wrong("the history grows without bound")

    def _judge_attempts(self, this: Pass, result: EffectResult[int]) -> None:
        """L9: what was never sent is on record as that, and uses up no attempt."""
        own = [each for each in result.attempts if each.nonce.partition(".")[0] in this.process.nonces]
        if this.sent is None and any(each.outcome not in (None, Outcome.NOT_SENT) for each in own):
            self.wrong("a pass has sent nothing, and it is on record as if it had")

    def check_history(self, history: History, looked: list[Seen]) -> None:
        """O1, O8: it tells of every look so far, and what each could prove; beside what people have said."""
        if self.disturbed:
            return
        told = [each.proves_absence for each in history.last if not each.source.startswith("person:")]
        if told != [each.proof for each in looked[-len(told) :]] or (looked and not told):
            self.wrong(f"after {len(looked)} looks the history tells of {len(told)}")

    def _keeps_its_token(self) -> None:
        """R2: an open question stays the same question while passes look again."""
        before, after = ([None, *self.results])[-2:]
        if before is None or after is None:
            return
        open_ = before.disposition is after.disposition is Disposition.INVESTIGATE
        if open_ and before.token != after.token and before.token not in [each.token for each in self.people.said]:
            self.wrong("an open question has another token")

    def check(self) -> list[str]:
        """What is wrong so far."""
        if len(self.outside.effects) > 1:
            self.wrong(f"{len(self.outside.effects)} effects")
        if len(self.outside.keys) > 1:
            self.wrong("attempts with different keys")
        for key in self.outside.keys:
            if self.store.keys.setdefault(key, self.operation_id) != self.operation_id:
                self.wrong("two operations with one key")
        return self.broken
