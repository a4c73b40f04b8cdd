"""A game: one kind of operation between plain turns, on one adapter."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, HumanMessage

from benchmarks.forkbench.bench import JUDGE, Bench
from benchmarks.forkbench.oracle import Oracle, Place
from benchmarks.forkbench.worlds import ASKED, Event, World

KINDS = ("play", "rewind", "retry", "edit", "fork", "crash", "parallel", "thread", "mixed")
MOVES = 8


class Agent(NamedTuple):
    """What an adapter builds.

    Args:
        graph: A compiled graph with a channel `messages`.
        context: The context of its runs.
        hello: What the person says before the game begins, for agents that ask who somebody is.
    """

    graph: Any
    context: Any = None
    hello: str = ""


class Turn(NamedTuple):
    """A turn that can be run again: where it began, what it told and asked, and the checkpoint after its message."""

    base: Place
    world: World
    told: tuple[Event, ...]
    asked: str
    message: HumanMessage
    config: Any


@dataclass
class Game:
    """Plays one game and keeps what each of its places was told.

    Args:
        agent: The app with the memory.
        bench: What its adapter was given.
        world: What is told.
        kind: Which operation is played between turns; see `KINDS`.
        seed: Of the moves.
    """

    agent: Agent
    bench: Bench
    world: World
    kind: str
    seed: int
    turns: list[Turn] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    tips: list[Place] = field(default_factory=list)

    async def play(self) -> Counter[str]:
        """Play; return what was wrong."""
        self.dice, self.oracle, self.writes = random.Random(self.seed), Oracle(self.bench), 6
        place = Place(None, self.world, self._thread())
        if self.agent.hello:
            place = await self._run(place, self.world, HumanMessage(self.agent.hello), (), "")
        self.tips = [await self.turn(place)]
        await self.turn_on()
        for _ in range(MOVES // 2):
            await self.step()
        promised = self.dice.choice(self.tips)
        asked = self._ask(promised, None)
        self._reach(await self.turn(promised, silent=True, asked=asked), instead=promised)
        shown = self.shown
        for _ in range(MOVES // 2):
            await self.step()
        for tip in list(self.tips):
            await self.turn(await self.turn(tip, silent=True), silent=True)
        faults = Counter(self.oracle.faults)  # in a game without forks, what follows would be the only one
        await self.turn(promised, silent=True, asked=asked)
        changed = self.shown ^ shown
        # What other threads were told belongs to no checkpoint of this one: they go on, and so does what they tell.
        return faults + Counter(promises=1, broken=bool(changed - promised.foreign), moved=bool(changed))

    async def step(self) -> None:
        """Make one move."""
        kind = self.dice.choice(KINDS[1:-1]) if self.kind == "mixed" else self.kind
        if kind == "play" or self.dice.random() < 0.4:
            await self.turn_on()
        else:
            await getattr(self, kind)()

    # The moves

    async def turn_on(self) -> None:
        """Say something more at a tip."""
        tip = self.dice.choice(self.tips)
        self._reach(await self.turn(tip), instead=tip)

    async def rewind(self) -> None:
        """Go back to an earlier checkpoint and say something else; what came after is abandoned."""
        self.tips = [await self.turn(self._earlier())]

    async def fork(self) -> None:
        """Say something else at an earlier checkpoint; both futures are played on."""
        self._reach(await self.turn(self._earlier()))

    async def retry(self) -> None:
        """Run a turn again from its message: the other reply is discarded."""
        turn = self._latest_turn()
        self.tips = [await self._run(turn.base, turn.world, None, turn.told, turn.asked, config=turn.config)]

    async def edit(self) -> None:
        """Rewrite the message of a turn, under its id, and run on from there."""
        turn = self._latest_turn()
        world, event = self._event(turn.base)
        asked = self._ask(turn.base, event)
        message = HumanMessage(self._message((event,), asked), id=turn.message.id)
        where = self._config(turn.config)
        config = await self.agent.graph.aupdate_state(where, {"messages": [message]}, as_node="__start__")
        self.tips = [await self._run(turn.base, world, None, (event,), asked, config=config)]

    async def crash(self) -> None:
        """Let the process die at one of a turn's writes; then resume the turn, or say something else."""
        tip = self.dice.choice(self.tips)
        world, event = self._event(tip)
        asked = self._ask(tip, event)
        message = HumanMessage(self._message((event,), asked), id=str(uuid.uuid4()))
        try:
            at = self.dice.randint(1, max(self.writes, 2))
            place = await self._run(tip, world, message, (event,), asked, at=at)
        except BaseException:
            if not self.bench.fuse.dead:
                raise
            place = await self._after_crash(tip, world, message, event, asked)
        self._reach(place, instead=tip)

    async def _after_crash(self, base: Place, world: World, message: HumanMessage, event: Event, asked: str) -> Place:
        self.bench.fuse.reset()
        thread = self._config({"configurable": {"thread_id": base.thread}})
        shown = await self.agent.graph.aget_state(thread)
        state = await self.agent.graph.aget_state(shown.config)  # as saved: without writes that no checkpoint has yet
        messages = state.values.get("messages", [])
        resumed = self.dice.random() < 0.5
        if resumed and message.id in {one.id for one in shown.values.get("messages", [])} and not self._replied(state):
            return await self._run(base, world, None, (event,), asked, config=thread)
        if message.id not in {one.id for one in messages}:  # it never arrived: the person says it again
            return await self._run(base, world, message, (event,), asked)
        said = replace(base, told=(*base.told, event), heard=base.heard | self._heard(messages), world=world)
        if self._replied(state):
            return self._arrive(replace(said, config=state.config))
        world, more = self._event(said)
        other = HumanMessage(self._message((more,), asked), id=str(uuid.uuid4()))
        return await self._run(said, world, other, (more,), asked, config=thread)

    async def parallel(self) -> None:
        """Send two messages at once: two runs begin at one checkpoint of one thread."""
        tip = self.dice.choice(self.tips)
        places = await asyncio.gather(self.turn(tip), self.turn(tip))
        self.oracle.heads[tip.thread] = list(places)
        self.tips = [*places, *(one for one in self.tips if one is not tip)][:3]

    async def thread(self) -> None:
        """Begin a new thread of the same user; the others stay where they are."""
        heads = self.oracle.heads[self.places[-1].thread]
        told = tuple(event for event in heads[-1].told if all(event in head.told for head in heads))
        heard = frozenset().union(*(head.tokens for head in heads))  # which of two it goes on from is not said
        new = Place(None, heads[-1].world, self._thread(), told, heard, told, heard)
        self._reach(await self.turn(new))

    # What the moves are made of

    async def turn(self, place: Place, *, silent: bool = False, asked: str | None = None) -> Place:
        """Play a turn at a place: tell something, unless silent, and ask something."""
        world, event = (place.world, None) if silent else self._event(place)
        asked = self._ask(place, event) if asked is None else asked
        told = (event,) if event else ()
        message = HumanMessage(self._message(told, asked), id=str(uuid.uuid4()))
        return await self._run(place, world, message, told, asked)

    async def _run(
        self,
        base: Place,
        world: World,
        message: HumanMessage | None,
        told: tuple[Event, ...],
        asked: str,
        *,
        config: Any = None,
        at: int | None = None,
    ) -> Place:
        """Run the graph from a place, or on from a checkpoint; judge its prompts, and return where it arrives."""

        def judge(messages: Sequence[BaseMessage]) -> None:
            self.shown = self.oracle.judge(messages, base, asked, told)

        judged = self.oracle.faults["prompts"]
        self.bench.fuse.reset(at)
        JUDGE.set(judge)
        where = self._config(config or base.config or {"configurable": {"thread_id": base.thread}})
        given = None if message is None else {"messages": [message]}
        stream = self.agent.graph.astream(
            given, where, context=self.agent.context, stream_mode="checkpoints", durability="sync"
        )
        events = [event async for event in stream]
        self.writes = self.bench.fuse.count
        if told and message is not None and self.oracle.faults["prompts"] == judged:
            raise RuntimeError("The app replied without `bench.reply`: nothing was judged.")
        messages = events[-1]["values"]["messages"]
        arrived = _checkpoint(events[-1])
        after = [one for one in events if one["next"] and one["next"] != ("__start__",)]
        if message is not None and told:
            self.turns.append(Turn(base, world, told, asked, message, _checkpoint(after[0])))
        said, heard = (*base.told, *told), base.heard | self._heard(messages)
        return self._arrive(replace(base, config=arrived, world=world, told=said, heard=heard))

    def _arrive(self, place: Place) -> Place:
        self.places.append(place)
        self.oracle.heads[place.thread] = [place]
        return place

    def _event(self, place: Place) -> tuple[World, Event]:
        world = place.world.copy()
        event = world.tell(self.dice, next(self.bench.words))
        self.bench.events[event.token] = event
        return world, event

    def _ask(self, place: Place, event: Event | None) -> str:
        """Return a slot to ask about; rather one that was told before the turns that a prompt shows anyway."""
        sure = [one for one in self.oracle.sure(place) if event is None or one.slot != event.slot]
        old = [one for one in sure if one not in place.told[-2:]]
        return self.dice.choice(old or sure).slot if sure else ""

    @staticmethod
    def _message(told: Sequence[Event], asked: str) -> str:
        return " ".join([*(event.said for event in told), ASKED.format(asked) if asked else "How are you?"])

    def _heard(self, messages: Sequence[BaseMessage]) -> frozenset[str]:
        text = "\n".join(message.text for message in messages if message.type == "ai")
        return frozenset(token for token in self.bench.heard if token in text)

    def _earlier(self) -> Place:
        return self.dice.choice([place for place in self.places if place.told] or self.places)

    def _latest_turn(self) -> Turn:
        return self.dice.choice(self.turns[-3:])

    def _reach(self, place: Place, instead: Place | None = None) -> None:
        self.tips = [*(one for one in self.tips if one is not instead), place][-3:]

    @staticmethod
    def _replied(state: Any) -> bool:
        """Whether a run came to its end."""
        return not state.next and state.values.get("messages", [])[-1:] and state.values["messages"][-1].type == "ai"

    def _thread(self) -> str:
        return str(uuid.UUID(int=self.dice.getrandbits(128)))

    def _config(self, config: Any) -> Any:
        user = {"user_id": self.bench.user, "langgraph_user_id": self.bench.user}
        return {"configurable": {**config["configurable"], **user}, "recursion_limit": 60}


def _checkpoint(event: dict[str, Any]) -> Any:
    where = event["config"]["configurable"]
    return {"configurable": {name: where[name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id")}}
