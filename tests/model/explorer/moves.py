"""What can happen next in a state, and the state that follows.

A move is the smallest thing that others can see: a statement that counts, a request that goes out, the end of a
hook. What a pass does between two of them is its own business.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from corrobo_core import Check
from corrobo_core.commands import (
    Authorize,
    Claim,
    Command,
    Execute,
    KeepLate,
    LedgerCommand,
    Observe,
    Open,
    Record,
    Revalidate,
)
from corrobo_core.records import Decision, DecisionKind, Disposition, Operation
from tests.model.explorer import invariants
from tests.model.explorer.contract import Seen
from tests.model.explorer.library import Library
from tests.model.explorer.outside import (
    LANDED,
    NEVER,
    PENDING,
    Request,
    absent,
    effects,
    lands,
    later,
    pending,
    reads,
    replaced,
)
from tests.model.explorer.state import Configuration, Deployed, Going, Hook, State


class Move(NamedTuple):
    """What happens: its name, which pass or request it is about, and how."""

    name: str
    about: int = -1
    how: str = ""


class Next(NamedTuple):
    """A move, the state after it, and the rule that it breaks."""

    move: Move
    state: State
    broken: str | None = None


class Moves:
    """The moves of one configuration.

    Args:
        configuration: what may happen.
        library: what the passes are made of.
    """

    def __init__(self, configuration: Configuration, library: Library) -> None:
        self._configuration, self._library = configuration, library
        self._faults, self._lag = configuration.faults, configuration.lag
        self._answers_after_effect = bool(configuration.declared.get("responds_after_effect"))
        # Who attests before a window is over relies on the read after it.
        declared = [{**configuration.declared, **process.declared} for process in configuration.processes]
        declares = all(one.get("in_flight_window") is not None for one in declared)
        self._attested_early = declares

    def first(self) -> State:
        """Nothing was asked yet."""
        configuration = self._configuration
        starts = tuple(-1 if p.times is None else p.times for p in configuration.processes)
        return State(0, self._library.empty, (), (), configuration.budget, configuration.words, starts)

    def of(self, state: State) -> Iterator[Next]:
        """Everything that can happen next."""
        for index, going in enumerate(state.passes):
            if not going.waits and (own := self._own_business(state, index, going)):
                yield from own
                return
        for index, going in enumerate(state.passes):
            yield from self._of_pass(state, index, going)
        yield from self._starts(state)
        yield from self._desk(state)
        if self._may(state, "clock back"):
            yield Next(Move("the ledger's clock goes back"), _fault(state)._replace(behind=state.behind + 1))
        if state.now < self._configuration.horizon and not any(self._about_to_send(g) for g in state.passes):
            yield Next(Move("a second passes"), self.at(state, state.now + 1))

    def _about_to_send(self, going: Going) -> bool:
        command = self._library.asks(going.point)
        return isinstance(command, Execute) and going.hook is None and not going.waits

    def _own_business(self, state: State, index: int, going: Going) -> list[Next]:
        """What a pass can do now that nobody else sees, and that depends on nothing but the time.

        In which order that and what others do in the same second happens makes no difference: it is done first, or
        not before the next second.
        """
        command, too_late = self._library.asks(going.point), False
        if isinstance(command, KeepLate):
            return list(self._statement(state, index, going, state.now, ""))
        if going.hook is not None:
            own = self._hook_ends(state, index, going, going.hook)
        elif isinstance(command, Execute):
            own, too_late = self._too_late(state, index, going), True
        elif isinstance(command, Authorize | Revalidate):
            own = self._checks(state, index, going, command)
        else:
            return []
        found = list(own)
        if found and state.now < self._configuration.horizon and not too_late:
            found.append(Next(Move("waits", index), self._with(state, index, going._replace(waits=True))))
        return found

    # -- one pass alone --------------------------------------------------------------------------------------

    def at(self, state: State, time: int) -> State:
        """The same state at this time."""
        passes = tuple([going._replace(waits=False) for going in state.passes])
        return state._replace(now=time, passes=passes, requests=later(state.requests, time, self._lag))

    def deserted(self, state: State) -> State:
        """Everybody has died, and nothing more goes wrong."""
        for going in state.passes:
            state = self._unrecorded(state, going)
        stored = self._library.known_to(state.stored, ())
        return state._replace(stored=stored, passes=(), faults=0, words=0, starts=self.first().starts)

    def alone(self, state: State) -> Next:
        """A pass of the first kind begins where nobody else is."""
        return next(self._starts(state))

    def undisturbed(self, state: State) -> Next:
        """It goes on, and nothing goes wrong; what it sends lands at once."""
        going = state.passes[0]
        own = self._own_business(state, 0, going)
        done = own[0] if own else next(self._of_pass(state, 0, going))
        return done._replace(state=self.all_landed(done.state)) if done.move.name == "sends" else done

    def all_landed(self, state: State) -> State:
        """What can land has landed."""
        for index, request in enumerate(state.requests):
            if request.state == PENDING:
                state = state._replace(requests=lands(state.requests, index, min(state.now, request.until)))
        return state

    # -- passes ----------------------------------------------------------------------------------------------

    def _starts(self, state: State) -> Iterator[Next]:
        """A pass begins with its first statement: before it, nobody knows that it is there."""
        library = self._library
        kinds = [library.passes.points[going.point].kind for going in state.passes]
        points = tuple([going.point for going in state.passes])
        for kind, process in enumerate(self._configuration.processes):
            if state.starts[kind] == 0 or kinds.count(kind) >= process.limit:
                continue
            if process.only_first and library.row(state.stored) is not None:
                continue
            left = state.starts[kind]
            starts = (*state.starts[:kind], left - 1 if left > 0 else left, *state.starts[kind + 1 :])
            going = Going(library.begun(kind, state.stored, points), True, state.now)
            before = state._replace(passes=(*state.passes, going), starts=starts)
            yield from self._ledger(before, len(state.passes), going)

    def _of_pass(self, state: State, index: int, going: Going) -> Iterator[Next]:
        command = self._library.asks(going.point)
        if isinstance(command, LedgerCommand):
            yield from self._ledger(state, index, going)
        elif going.hook is not None:
            yield from self._hook_ends_visibly(state, index, going, going.hook)
        elif isinstance(command, Execute) and not going.waits:
            yield from self._sends(state, index, going)
            if (stands_still := state.now > going.reserved) or self._may(state, "paused"):
                paused = state if stands_still else _fault(state)
                yield Next(Move("is paused", index), self._with(paused, index, going._replace(waits=True)))
        elif isinstance(command, Observe):
            yield from self._reads(state, index, going)
        if self._may(state, "crash"):
            yield Next(Move("crash", index), self._without(_fault(state), index))
        reserved = self._library.holder(state.stored) == self._library.nonce(going.point)
        if going.owned and reserved and self._may(state, "owner lost"):
            lost = self._unrecorded(_fault(state), going)
            yield Next(Move("owner lost", index), self._with(lost, index, going._replace(owned=False)))

    def _may(self, state: State, fault: str) -> bool:
        return state.faults > 0 and fault in self._faults

    # -- statements ------------------------------------------------------------------------------------------

    def _ledger(self, state: State, index: int, going: Going) -> Iterator[Next]:
        command = self._library.asks(going.point)
        reserves = isinstance(command, Open | Claim)
        sent = going.since if reserves else state.now
        yield from self._statement(state, index, going, sent, "")
        if reserves and self._may(state, "slow statement") and going.since == state.now > 0:
            yield from self._statement(_fault(state), index, going, state.now - 1, "slowly")
        if not isinstance(command, Open | Claim | Record):
            return
        if self._may(state, "reply lost"):
            stored = self._performed(state, going, going.since).stored
            if stored != state.stored:
                after, lost = _fault(state)._replace(stored=stored), self._reserving(state, going, stored)
                yield Next(Move("reply lost", index), self._with(after, index, lost))
        if self._may(state, "unavailable"):
            yield from self._given_up(_fault(state), index, going)

    def _statement(self, state: State, index: int, going: Going, sent: int, how: str) -> Iterator[Next]:
        answer = self._performed(state, going, sent)
        after = state._replace(stored=answer.stored)
        going = self._reserving(state, going, answer.stored)
        yield self._told(Move("statement", index, how), after, index, going, answer.reply)

    def _reserving(self, state: State, going: Going, stored: int) -> Going:
        """With the time of its reservation, if this statement makes one."""
        reserved = isinstance(self._library.asks(going.point), Open | Claim) and stored != state.stored
        return going._replace(reserved=state.now) if reserved else going

    def _performed(self, state: State, going: Going, sent: int) -> Any:
        alive = []
        holder, nonce = self._library.holder(state.stored), self._library.nonce(going.point)
        if holder is not None and any(
            other.owned and self._library.nonce(other.point) == holder for other in state.passes
        ):
            alive.append(holder)
        if going.owned and nonce not in alive:
            alive.append(nonce)
        return self._library.perform(state.stored, going.point, state.clock, state.now, sent, tuple(alive))

    def _given_up(self, state: State, index: int, going: Going) -> Iterator[Next]:
        """The database did not answer for too long, and the pass ends with that."""
        wrote = self._performed(state, going, going.since).stored
        for committed in {None, wrote}:
            stored = self._library.given_up(state.stored, going.point, state.clock, committed=committed)
            how = "nothing was written" if committed is None else "it was written"
            yield Next(Move("unavailable", index, how), self._without(state._replace(stored=stored), index))

    # -- hooks -----------------------------------------------------------------------------------------------

    def _too_late(self, state: State, index: int, going: Going) -> Iterator[Next]:
        answer = self._library.too_late(going.point, state.now)
        if answer is not None:
            yield self._told(Move("too late to send", index), state, index, going, answer)

    def _sends(self, state: State, index: int, going: Going) -> Iterator[Next]:
        command = self._library.asks(going.point)
        assert isinstance(command, Execute)
        decisions = self._library.stored(state.stored).decisions
        oldest = self._configuration.declared.get("max_approval_age")
        broken = invariants.sending(state, going, command.operation, decisions, oldest)
        request = self._request(state, going)
        hook = Hook(request.started, len(state.requests))
        after = state._replace(requests=(*state.requests, request))
        yield Next(Move("sends", index), self._with(after, index, going._replace(hook=hook, cleared=False)), broken)

    def _request(self, state: State, going: Going) -> Request:
        declared = max(going.reserved + self._process(going).lands, state.now)
        return Request(PENDING, going.reserved, declared, declared + self._configuration.late)

    def _reads(self, state: State, index: int, going: Going) -> Iterator[Next]:
        clear = bool(state.requests) and not any(
            r.state == PENDING and state.now <= r.declared for r in state.requests
        )
        for count, requests in reads(state.requests, state.now, self._lag):
            unclear = self._configuration.shows_pending and count == 0 and pending(requests, state.now)
            for shown in (False, True) if unclear else (False,):
                hook = Hook(state.now, seen=Seen(count, shown))
                how = f"{count} there" + (", one on its way" if shown else "")
                after = self._with(state, index, going._replace(hook=hook, cleared=clear))
                yield Next(Move("reads", index, how), after._replace(requests=requests))

    def _hook_ends(self, state: State, index: int, going: Going, hook: Hook) -> Iterator[Next]:
        """As nobody else can see it."""
        if hook.seen is not None:
            yield self._ends(state, index, going, "ok")
            if self._may(state, "read fails"):
                yield self._ends(_fault(state), index, going, "read fails")
            return
        early = not self._answers_after_effect or state.requests[hook.request].state == LANDED
        if self._configuration.answers and early:
            yield self._ends(state, index, going, "ok")
        if not self._configuration.answers or self._may(state, "no answer"):
            left = _fault(state) if self._configuration.answers else state
            yield self._ends(left, index, going, "ambiguous")
        if self._may(state, "interrupted"):
            yield self._ends(_fault(state), index, going, "interrupted")

    def _hook_ends_visibly(self, state: State, index: int, going: Going, hook: Hook) -> Iterator[Next]:
        """In a way that says something about the request, or does something to it."""
        if hook.seen is not None or state.requests[hook.request].state == LANDED:
            return
        if self._answers_after_effect and state.now <= state.requests[hook.request].until:
            landed = state._replace(requests=lands(state.requests, hook.request, state.now))
            yield self._ends(landed, index, going, "ok")
        for fault in ("not sent", "refused", "refused for good"):
            if self._may(state, fault):
                never = replaced(state.requests, hook.request, NEVER)
                yield self._ends(_fault(state)._replace(requests=never), index, going, fault)
        if self._may(state, "late send"):
            yield from self._sends_late(state, index, going, hook)

    def _sends_late(self, state: State, index: int, going: Going, hook: Hook) -> Iterator[Next]:
        """The hook overran its timeout, and its request goes out only now.

        That is within the contract as long as its end is recorded (L9): its process is not taken for dead.
        """
        command = self._library.asks(going.point)
        assert isinstance(command, Execute)
        request, timeout = state.requests[hook.request], command.timeout
        if timeout is None or state.now - request.started <= timeout.total_seconds() or not going.owned:
            return
        until = state.now + self._process(going).lands
        sent = replaced(state.requests, hook.request, Request(PENDING, request.started, until, until))
        yield self._ends(_fault(state)._replace(requests=sent), index, going, "ambiguous", "sends late")

    def _ends(self, state: State, index: int, going: Going, how: str, name: str = "") -> Next:
        assert going.hook is not None
        began, seen = going.hook.began, going.hook.seen
        answer = seen if seen is not None else "accepted"
        reply = self._library.hook(going.point, began, state.now, how, answer)
        unrecorded = going.hook.request if seen is None else going.unrecorded
        over = going._replace(hook=None, unrecorded=unrecorded)
        return self._told(Move("hook ends", index, name or how), state, index, over, reply)

    def _checks(self, state: State, index: int, going: Going, command: Command[Any] | None) -> Iterator[Next]:
        answers = [Check.proceed()] if isinstance(command, Revalidate) else [None]
        for answer in answers:
            reply = self._library.hook(going.point, state.now, state.now, "ok", answer)
            how = type(command).__name__.lower()
            yield self._told(Move("check", index, how), state, index, going, reply)

    # -- after a reply ---------------------------------------------------------------------------------------

    def _told(self, move: Move, state: State, index: int, going: Going, reply: int) -> Next:
        """The pass goes on with this reply: to its next question, or to its end."""
        library = self._library
        was = library.asks(going.point)
        point = library.told(going.point, reply)
        going = going._replace(point=point, since=state.now, waits=False)
        if isinstance(was, KeepLate) or (isinstance(was, Record) and self._end_is_known(state, going)):
            going = going._replace(unrecorded=-1)
        if library.asks(point) is None:
            stored = library.left(state.stored, point, state.clock)
            broken = "what became of its attempt is kept nowhere" if going.unrecorded >= 0 else None
            return Next(move, self._without(state._replace(stored=stored), index), broken)
        if not isinstance(library.asks(point), Open | Claim):
            going = going._replace(since=0)  # nobody asks
        return Next(move, self._with(state, index, going))

    def _end_is_known(self, state: State, going: Going) -> bool:
        """Of the latest attempt that it made: one before that was not sent."""
        row = self._library.row(state.stored)
        name = self._library.nonce(going.point) + "."
        mine = [attempt for attempt in row.attempts if attempt.nonce.startswith(name)] if row is not None else []
        return bool(mine) and (mine[-1].ended or mine[-1].abandoned) is not None

    def _unrecorded(self, state: State, going: Going) -> State:
        """A late request whose late end nobody will know: its contract promises what it promised at the start."""
        if going.unrecorded < 0 or self._end_is_known(state, going):
            return state
        request = state.requests[going.unrecorded]
        until = request.started + self._process(going).lands
        if request.state == PENDING and request.declared > until:
            kept = request._replace(declared=until, until=until)
        elif request.state == LANDED and request.landed > until:
            kept = request._replace(landed=until)
        else:
            return state
        back = replaced(state.requests, going.unrecorded, kept)
        return state._replace(requests=later(back, state.now, self._lag))

    def _process(self, going: Going) -> Deployed:
        return self._configuration.processes[self._library.passes.points[going.point].kind]

    def _with(self, state: State, index: int, going: Going) -> State:
        return state._replace(passes=tuple(sorted([*_others(state.passes, index), going], key=_order)))

    def _without(self, state: State, index: int) -> State:
        others, state = _others(state.passes, index), self._unrecorded(state, state.passes[index])
        stored = self._library.known_to(state.stored, tuple([going.point for going in others]))
        return state._replace(passes=others, stored=stored)

    # -- everybody else --------------------------------------------------------------------------------------

    def _desk(self, state: State) -> Iterator[Next]:
        if state.words == 0:
            return
        row = self._library.row(state.stored)
        if row is None:
            return
        for word, until in self._words(state, row):
            stored = self._library.decided(state.stored, state.clock, word, until)
            if stored != state.stored:
                how = word if until is None else f"{word} until {until} s"
                said = state._replace(stored=stored, words=state.words - 1)
                if (
                    word == "not_applied"
                ):  # who says so has looked: what is not there, and can land no more, never will
                    said = said._replace(requests=absent(state.requests, state.now))
                if not state.passes:
                    said = said._replace(stored=self._library.known_to(stored, ()))
                yield Next(Move("the desk", how=how), said)

    def _words(self, state: State, row: Operation) -> Iterator[tuple[str, int | None]]:
        """What a person can say who tells the truth."""
        decisions = self._library.stored(state.stored).decisions
        if row.review is not None and _approved(row.review.token, decisions):
            yield "revoke", None
        if row.episode is None:
            return
        if row.episode.kind is Disposition.REVIEW:
            yield from (("approved", None), ("approved", state.clock + 2), ("rejected", None))
        elif effects(state.requests):
            yield "applied", None
        elif self._attested_early or not pending(state.requests, state.now):
            yield "not_applied", None


def _others(passes: tuple[Going, ...], index: int) -> tuple[Going, ...]:
    return (*passes[:index], *passes[index + 1 :])


def _order(going: Going) -> tuple[Any, ...]:
    return going._replace(hook=going.hook or ())  # type: ignore[arg-type]  # None has no order


def _fault(state: State) -> State:
    return state._replace(faults=state.faults - 1)


def _approved(token: str, decisions: tuple[Decision, ...]) -> bool:
    return any(decision.token == token and decision.kind is DecisionKind.APPROVED for decision in decisions)
