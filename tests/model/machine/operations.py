"""The machine that drives operations: the same steps on every ledger, compared after each one.

A step is one whole pass of a process, in the middle of which one thing can happen: its death, a lost reply, time, a
person, a whole pass of somebody else. What the outside world does is drawn, and never breaks what the contract
declares: windows, lags and refusals are honest, and so are people.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from corrobo_core.records import DecisionKind, Disposition
from tests.model.machine.contracts import DECLARED, ONLY_WITH_KEYS, TYPE
from tests.model.machine.old_rows import OldAttempt, OldRow
from tests.model.machine.outside import AMOUNT, Effect
from tests.model.machine.people import decide_all
from tests.model.machine.plans import (
    Check,
    Dies,
    Look,
    Meanwhile,
    Repeated,
    Says,
    Send,
    SetBack,
    Slow,
    TakenForDead,
    Turn,
    Unanswered,
)
from tests.model.machine.scripts import (
    Approved,
    AskedBeforeTheRetry,
    Attested,
    CutShort,
    Hangs,
    HeldUp,
    LapsesOnTheWay,
    ManyLooks,
    OneAfterTheOther,
    Refused,
    Script,
    SeenLater,
    SlowRead,
    WhenOver,
    WhenTheKeyExpires,
)
from tests.model.machine.stage import Setup, Stage
from tests.model.machine.stores import Store
from tests.model.machine.times import Time

_numbers = itertools.count(1)

# -- what is drawn -----------------------------------------------------------------------------------------------

looks = st.sampled_from([*[Look.HONEST] * 6, *[Look.STALE] * 3, *Look])
checks = st.one_of(st.just(Check.PROCEED), st.sampled_from(Check))
steps = st.sampled_from([0, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7])
seconds = st.sampled_from([1, 2, 5, 11])

says = st.builds(
    Says,
    st.sampled_from(DecisionKind),
    st.sampled_from(["ada", "ada", "bob"]),
    st.sampled_from(["open", "open", "open", "before", "wrong"]),
    st.sampled_from([None, None, None, -3, 3]),
    st.sampled_from([None, None, 3, 12, -1, 0]),
    st.sampled_from([None, None, True, False]),
)
plain_turns = st.builds(
    Turn,
    process=st.integers(0, 1),
    contract=st.integers(0, len(DECLARED) - 1),
    reads_only=st.sampled_from([False, False, False, True]),
    observe_now=st.booleans(),
    send=st.sampled_from([Send.ANSWERED, Send.LATE, *[Send.LOST] * 3, *Send]),
    landing=st.integers(0, 4),
    slow=st.sampled_from([0, 0, 1, 6]),
    strange=st.sampled_from([False, False, False, True]),
    looks=st.tuples(looks, looks),
    check=checks,
)
happenings = st.one_of(
    st.just(Dies()),
    st.just(Unanswered()),
    st.just(Repeated()),
    st.builds(Slow, seconds, seconds),
    st.builds(SetBack, st.just(3)),
    says,
    plain_turns,
    plain_turns,
    st.builds(TakenForDead, plain_turns),
)
turns = st.one_of(plain_turns, st.builds(replace, plain_turns, at=steps, after=st.booleans(), what=happenings))
setups = st.builds(
    Setup,
    authorizes=st.sampled_from([None, None, None, Check.PROCEED, Check.REVIEW, Check.REVIEW, Check.REJECT]),
    revalidates=st.sampled_from([False, False, True]),
    max_age=st.sampled_from([None, 10]),
    deduplicates=st.sampled_from([False, False, True]),
    calm=st.booleans(),
)
scripts: st.SearchStrategy[Script] = st.one_of(
    st.builds(HeldUp, plain_turns, st.sampled_from([1, 1, 2, 3]), st.booleans(), st.sampled_from([3, 5, 7, 11])),
    st.builds(
        Hangs,
        st.builds(
            replace,
            plain_turns,
            send=st.sampled_from([Send.ANSWERED, Send.REPLY_LOST, Send.LOST, Send.LATE]),
            looks=st.sampled_from([(Look.HONEST, Look.HONEST), (Look.STALE, Look.HONEST)]),
        ),
        st.sampled_from([True, True, False]),
        st.sampled_from([7, 11, 17, 17]),
        st.builds(
            replace, plain_turns, looks=st.tuples(st.sampled_from([Look.FAILS, Look.INCOMPLETE, *Look]), looks)
        ),
    ),
    st.builds(  # whoever comes cannot see what the first one sees at its end
        Hangs,
        st.builds(
            replace,
            plain_turns,
            send=st.sampled_from([Send.ANSWERED, Send.REPLY_LOST]),
            looks=st.just((Look.HONEST, Look.HONEST)),
        ),
        st.just(True),
        st.sampled_from([11, 17]),
        st.builds(replace, plain_turns, looks=st.tuples(st.sampled_from([Look.FAILS, Look.MISJUDGED]), looks)),
    ),
    st.builds(ManyLooks, plain_turns, st.sampled_from([Send.LOST, Send.DROPPED])),
    st.builds(
        CutShort,
        st.builds(replace, plain_turns, send=st.sampled_from([Send.LATE, Send.LOST, Send.STOPPED, Send.ANSWERED])),
        st.sampled_from([1, 2, 3, 4]),
        st.booleans(),
        st.one_of(st.just(Dies()), st.just(Unanswered()), st.builds(TakenForDead, plain_turns)),
        plain_turns,
    ),
    st.builds(
        WhenOver,
        plain_turns,
        st.sampled_from([-6, -5, -4, -3, -2, -1, 0, 0, 1]),
        plain_turns,
        st.sampled_from([Look.HONEST, Look.STALE]),
    ),
    st.builds(SlowRead, plain_turns, st.sampled_from([0, 0, 1]), st.sampled_from([2, 5]), st.booleans()),
    st.builds(
        SeenLater, st.sampled_from([Send.ANSWERED, Send.LATE]), st.booleans(), st.sampled_from([-2, -1, 0, 1])
    ),
    st.builds(
        WhenTheKeyExpires,
        st.sampled_from([Send.LOST, Send.LATE]),
        st.sampled_from([(-9, 6), (-5, 3), (-5, 3), (-5, 0), (-4, 0), (-3, 0), (1, 0), (-9, 3)]),
        looks,
    ),
    st.builds(Refused, plain_turns, st.sampled_from([Send.LOST, Send.LATE, Send.ANSWER_FIRST])),
    st.builds(
        OneAfterTheOther,
        plain_turns,
        st.sampled_from([Send.LOST, Send.LATE, Send.REPLY_LOST, Send.REFUSED_FOR_NOW]),
    ),
    st.builds(
        Approved,
        st.booleans(),
        st.builds(
            Says,
            st.just(DecisionKind.APPROVED),
            decided=st.sampled_from([None, None, 3]),
            expires=st.sampled_from([None, 3, 3, 12, 0]),
        ),
        st.sampled_from([0, 2, 3, 9, 11]),
        st.booleans(),
        st.builds(replace, plain_turns, check=st.sampled_from([Check.PROCEED, *Check])),
        st.sampled_from([None, None, None, Slow(2, 0), Slow(5, 1), Slow(11, 0)]),
        st.sampled_from([1, 2, 2, 3]),
    ),
    st.builds(
        Attested,
        plain_turns,
        st.sampled_from([Send.DROPPED, Send.LOST, Send.REFUSED_FOR_NOW]),
        st.sampled_from(Look),
        st.booleans(),
    ),
    st.builds(
        LapsesOnTheWay, st.booleans(), st.booleans(), st.sampled_from([-1, 0, 0, 1]), st.sampled_from([None, 3])
    ),
    st.builds(
        AskedBeforeTheRetry,
        plain_turns,
        st.sampled_from([Send.LATE, Send.LOST]),
        st.sampled_from([-1, 1]),
        st.sampled_from([Check.REVIEW, Check.REVIEW, Check.REJECT, Check.RAISES]),
    ),
)
old_attempts = st.builds(
    OldAttempt,
    outcome=st.sampled_from([None, "AMBIGUOUS", "RESPONDED"]),
    window=st.sampled_from([None, 3.0, 10.0, 30.0]),
    ago=st.sampled_from([2.0, 20.0]),
)


class Operations(RuleBasedStateMachine):
    """One operation on every store. Subclassed with the stores by `machine`."""

    stores: list[Store]
    time: Time

    def __init__(self) -> None:
        super().__init__()
        self.stages: list[Stage] = []
        self.there_is_one = False

    def _each(self, step: Callable[[Stage], Any]) -> Any:
        """One step on each stage, from the same time; all of them must come to the same."""
        began, answers = self.time.mark, []
        for stage in self.stages:
            self.time.reset(began)
            answer = step(stage)
            answers.append((answer, stage.stored(), self.time.mark))
            assert not stage.check(), f"{stage.store.name}: {stage.broken}"
        for stage, other in zip(self.stages[1:], answers[1:], strict=True):
            assert other == answers[0], f"{stage.store.name} and {self.stages[0].store.name} differ"
        self.there_is_one = answers[0][1] is not None
        return answers[0][0]

    @initialize(setup=setups, script=st.one_of(st.none(), scripts, scripts))
    def begin(self, setup: Setup, script: Script | None = None) -> None:
        setup = setup if script is None else script.needs(setup)
        self.time.reset()
        operation_id = f"operation-{next(_numbers)}"
        self.setup, self.passes_after_end, self.there_is_one = setup, 0, False
        self.stages = [Stage(store, self.time, setup, operation_id) for store in self.stores]
        if script is not None:
            script.play(self)

    def fitting(self, turn: Turn) -> Turn:
        """What is only honest where the provider deduplicates is left out elsewhere, and clocks stand right where
        it forgets keys by its own.
        """
        what = turn.what
        if isinstance(what, Turn):
            what = self.fitting(what)
        if isinstance(what, TakenForDead | Meanwhile):
            what = replace(what, then=self.fitting(what.then))
        if isinstance(what, SetBack) and self.setup.deduplicates:
            what = None
        if self.setup.calm:
            turn, what = _calm(turn, self.setup), what and Repeated()
        contract = turn.contract
        if self.setup.deduplicates and contract % 2:  # most deploys say so, then
            contract = ONLY_WITH_KEYS
        elif contract == ONLY_WITH_KEYS and not self.setup.deduplicates:
            contract = 0
        return replace(turn, contract=contract, what=what)

    @rule(turn=turns)
    def one_pass(self, turn: Turn) -> None:
        if self.stages[0].closed is not None:
            self.passes_after_end += 1
            if self.passes_after_end > 2:  # little more can happen to it
                self.teardown()
                self.begin(self.setup)
        self._each(lambda stage: stage.play(self.fitting(turn)))

    @rule(turn=turns)
    def another_pass(self, turn: Turn) -> None:
        """Passes are most of what happens."""
        self.one_pass(turn)

    @precondition(lambda self: not self.setup.calm)
    @rule(turn=plain_turns, other=plain_turns, at=st.sampled_from([2, 2, 3, 4]), after=st.booleans())
    def two_callers(self, turn: Turn, other: Turn, at: int, after: bool) -> None:
        """The second one comes while the first makes its attempt."""
        self.one_pass(replace(turn, reads_only=False, at=at, after=after, what=other))

    @rule(by=st.sampled_from([1, 3, 7, 12, 30]))
    def time_passes(self, by: int) -> None:
        self.time.pass_by(by)

    @precondition(lambda self: self.stages[0].outside.sent)
    @rule(by=st.sampled_from([-1, 0, 0, 1]), turn=plain_turns, look=st.sampled_from([Look.HONEST, Look.STALE]))
    def a_pass_when_all_is_over(self, by: int, turn: Turn, look: Look) -> None:
        """At the very moment, or just before or after it."""
        turn = self.fitting(replace(turn, looks=(look, turn.looks[1]), observe_now=True))
        self.until_over(turn.contract, by)
        self.one_pass(turn)

    def until_over(self, contract: int, by: float) -> None:
        sent = self.stages[0].outside.sent
        over = [each.over(DECLARED[contract], recorded=True) for each in sent]
        latest = max((at for at in over if at is not None), default=0.0)
        self.time.pass_by(max(latest + by - self.time.elapsed, 0.0))

    @precondition(lambda self: self.stages[0].results and self.stages[0].results[-1].retry_at)
    @rule(by=st.sampled_from([-1, 0]))
    def time_passes_until_told(self, by: int) -> None:
        """To when the last pass said that it is worth coming back, or just before."""
        told = self.stages[0].results[-1].retry_at
        assert told is not None
        self.time.pass_by(max((told - self.time.now()).total_seconds() + by, 0.0))

    @rule(what=says)
    def somebody_decides(self, what: Says) -> None:
        self._each(lambda stage: stage.people.say(what))

    @rule()
    def somebody_decides_well(self) -> None:
        self._each(decide_all)

    @precondition(lambda self: len(self.stages[0].outside.sent) > 1)
    @rule()
    def somebody_else_writes(self) -> None:
        """Another effect, which this intent does not explain, is there from now on."""
        self._each(lambda stage: stage.outside.others.append(self.time.elapsed))

    @precondition(lambda self: self.stages[0].closed is Disposition.COMPLETE)
    @rule()
    def the_effect_is_reversed(self) -> None:
        for stage in self.stages:
            for effect in stage.outside.effects:
                effect.gone = effect.gone or self.time.elapsed

    @precondition(lambda self: self.there_is_one)
    @rule(amount=st.sampled_from([AMOUNT, AMOUNT + 1]))
    def the_id_is_reused(self, amount: int) -> None:
        def reuse(stage: Stage) -> str:
            return stage.reuse_for_another_type() if amount == AMOUNT else stage.play(Turn(), amount)

        assert self._each(reuse) == "IdentityReused", "an id was used for something else"

    @rule(amount=st.sampled_from([AMOUNT, 1 << 53]), note=st.sampled_from(["\0", "\ud800"]))
    def a_call_that_cannot_be_recorded(self, amount: int, note: str) -> None:
        """I4, L8: nothing is written, and nothing sent."""

        def refused(stage: Stage) -> str:
            before = stage.stored()
            said = stage.play(Turn(), amount, note if amount == AMOUNT else None)
            assert stage.stored() == before, "what was refused is on record"
            return said

        assert self._each(refused) == "IntentError", "what cannot be recorded is accepted"

    @precondition(lambda self: not self.setup.calm and not self.stages[0].nonces and not self.there_is_one)
    @rule(attempt=old_attempts, lands=st.sampled_from([None, 1.0, 25.0]))
    def an_older_release_was_here(self, attempt: OldAttempt, lands: float | None) -> None:
        """Its attempt has its effect within the window that it recorded, or, without one, at any time."""
        started = self.time.elapsed
        self.time.pass_by(attempt.ago)
        latest = 40.0 if attempt.window is None else attempt.window
        for stage in self.stages:
            reference = f'"reference":"{stage.operation_id}"}}'
            intent, bound = (f'{{"amount":{AMOUNT},{note}{reference}' for note in ('"note":"old",', ""))
            row = OldRow("default", stage.operation_id, TYPE, intent, bound, attempt, self.time.at(started))
            stage.store.put(row)
            stage.remember_old(attempt, started)
            self.there_is_one = True
            if lands is not None:
                stage.outside.effects.append(Effect(started, started + min(lands, latest)))

    def teardown(self) -> None:
        """From wherever it is, an operation can be brought to its end."""
        if self.stages:
            self._each(_finish)


def _calm(turn: Turn, setup: Setup) -> Turn:
    """Told to stop by nobody, and asking people one question and not two."""
    sends = {Send.STOPPED: Send.REPLY_LOST, Send.STOPPED_BEFORE: Send.LOST}
    first, later = (Look.FAILS if look is Look.STOPPED else look for look in turn.looks)
    twice = setup.authorizes is Check.REVIEW and turn.check is Check.REVIEW
    check = Check.PROCEED if twice else turn.check
    return replace(turn, send=sends.get(turn.send, turn.send), looks=(first, later), check=check)


def _finish(stage: Stage) -> str:
    end = ""
    for _ in range(30):
        end = stage.play(Turn(observe_now=True, send=Send.ANSWERED))
        if stage.closed is not None:
            break
        stage.time.pass_by(12)
        decide_all(stage)
    else:
        stage.wrong("it never ends")
    stage.time.pass_by(60)
    there = stage.outside.there(stage.time.elapsed) or stage.people.attested
    reversed_ = any(each.gone is not None for each in stage.outside.effects)
    if stage.closed is Disposition.COMPLETE and not there and not reversed_:
        stage.wrong("COMPLETE, and nothing is there in the end")
    if stage.closed_for == "PROVIDER_REFUSED" and there:
        stage.wrong("said to be refused, and is there in the end")
    return end


def machine(stores: list[Store], time: Time) -> type[Operations]:
    """The machine for these stores."""
    return type("Operations", (Operations,), {"stores": stores, "time": time})
