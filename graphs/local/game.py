"""`Game`: one campaign, played in this process on SQLite and FAISS. `open_game` opens it; `Run` plays one turn."""

import asyncio
import gc
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, nullcontext
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore
from pydantic import ValidationError

from questbook.graphs.errors import UnreadableError
from questbook.graphs.events import STREAM_MODES, Event, NodeStart, Notice, events_of_prompt, read_stream
from questbook.graphs.local.home import Held, Home, hold_campaign
from questbook.graphs.local.homes import find_home
from questbook.graphs.local.saved_game import (
    STOPPED,
    HomeCheckpointer,
    SavedGame,
    last_of_threads,
    read_saved_game,
    thread_id_of,
)
from questbook.graphs.settings import Settings
from questbook.graphs.turn.scope import with_user
from questbook.types import JSON

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

    from questbook.graphs.history.history import History
    from questbook.graphs.local.costs import UsageMeter
    from questbook.graphs.turn.node import Upkeep
    from questbook.graphs.turn.state import TurnInput, TurnState

    Graph = CompiledStateGraph[TurnState, Settings, TurnInput, TurnState]

_log = logging.getLogger(__name__)
_CONTEXTS = {"dungeon_master": "Context", "companion": "CompanionContext"}
_YOUNG = 10_000  # new objects after which the garbage collector looks
_COMMANDS = {"dungeon_master": "questbook play", "companion": "questbook chat"}


class Game:
    """One campaign, ready to be played. `open_game` makes it.

    What a player only looks at is read from the checkpoint. The graph and the store are loaded with the first turn, or
    earlier by `load`.

    A reader may leave a turn's events at the first `NodeStart` of the upkeep: the reply is complete. The upkeep goes
    on, and what comes next (`send`, `resume`, `retry`, `edit`, `history`) waits for it at most two seconds. What is not
    done by then is done by a later turn. `machine` names the graph: "dungeon_master" or "companion".
    """

    def __init__(
        self, context: Settings, checkpointer: HomeCheckpointer, home: Home, resources: AsyncExitStack, machine: str
    ) -> None:
        self.context, self.machine, self.checkpointer, self.home = context, machine, checkpointer, home
        self.thread_id, self._resources = thread_id_of(context.user, context.campaign), resources
        self._graph: Graph | None = None
        self._run: Run | None = None
        self._loading, self._beginning = asyncio.Lock(), asyncio.Lock()
        self._unread: list[Notice] = []
        self._meter: UsageMeter | None = None
        self.held: Held | None = None  # as this process holds it: checked before each turn; None: nobody holds it

    @property
    def is_loaded(self) -> bool:
        """Whether graph and store are there, so that nobody waits for them."""
        return self._graph is not None

    @property
    def config(self) -> RunnableConfig:
        """The run's config: the thread, and the metadata by which a list of campaigns finds it."""
        return {
            "configurable": {"thread_id": self.thread_id},
            "metadata": {"user": self.context.user, "campaign": self.context.campaign},
            **({"callbacks": [self._meter]} if self._meter else {}),
        }

    async def saved_game(self) -> SavedGame | None:
        """Return what the campaign's last checkpoint says; None before the first message.

        If another graph wrote it, or it is another person's, that is an UnreadableError.
        """
        saved = await read_saved_game(self.checkpointer, self.thread_id)
        if saved and (others := saved.users - {self.context.user}):
            where = f"Campaign {self.context.campaign!r} of {self.context.user!r} is played on thread {self.thread_id}"
            owner = f"its last checkpoint says that it is of {min(others)!r:.80}"
            raise UnreadableError(f"{where}, but {owner}. Nothing was changed: choose another name.")
        if saved and saved.machine not in ("", self.machine):
            where = f"Campaign {self.context.campaign!r} belongs to the graph {saved.machine}, not to {self.machine}"
            program = _COMMANDS.get(saved.machine, "its own program")
            raise UnreadableError(f"{where}: choose another name, or open it with {program}.")
        return saved

    async def threads(self) -> list[str]:
        """Return the ids of the campaign's threads, sorted: its own, and others that have a checkpoint of it."""
        lasts = last_of_threads(self.checkpointer, self.context.user, self.context.campaign)
        return sorted({self.thread_id} | {saved.thread_id async for saved in lasts})

    async def has_unfinished_turn(self) -> bool:
        """Whether the last turn stopped before its end, so that `resume` has something to do."""
        graph = await self.load()
        # Not `next`: it is empty if the process was killed after a node's writes and before their checkpoint.
        return bool((await graph.aget_state(self.config)).tasks)

    async def load(self) -> "Graph":
        """Load the graph and open the store, once; return the graph."""
        async with self._loading:
            if self._graph is None:
                module = await asyncio.to_thread(import_module, f"questbook.graphs.{self.machine}.graph")
                store = await self._resources.enter_async_context(self.home.open_store(self.context.embeddings))
                self._meter = import_module("questbook.graphs.local.costs").UsageMeter()
                self._graph = module.build_graph().compile(checkpointer=self.checkpointer, store=store)
                import_module("questbook.graphs.turn.run_guard").players.add(self._graph)
                _settle_heap()
            return self._graph

    async def store(self) -> BaseStore:
        """Return the store, which is opened with the graph."""
        return cast(BaseStore, (await self.load()).store)

    async def enter(self) -> bool:
        """Go to where the campaign was left on another thread, such as in Studio, if this one is empty; say whether."""
        if await self.saved_game() is not None:
            return False
        lasts = last_of_threads(self.checkpointer, self.context.user, self.context.campaign)
        others = [saved async for saved in lasts if saved.machine == self.machine and saved.turn]
        if not others:
            return False  # a new campaign: its first prompt does not wait for graph and store
        others.sort(key=lambda saved: saved.played, reverse=True)
        return await (await self.history()).enter([saved.thread_id for saved in others])

    async def history(self, *, only_looks: bool = False) -> "History":
        """Return the history of the campaign: to go back or to another line, or `only_looks`: the upkeep goes on."""
        if not only_looks:
            await self.finish()
        module = await asyncio.to_thread(import_module, "questbook.graphs.history.history")
        history: History = module.History(await self.load(), self.config, self.context)
        return history

    async def last_turn(self) -> list[Event]:
        """Return what was recalled for the last turn and what the model saw in it, made again of its checkpoint."""
        is_new = await self.saved_game() is None
        if is_new or (question := await (await self.history(only_looks=True)).last_question()) is None:
            return []
        from langgraph.runtime import ExecutionInfo, Runtime  # loaded already, with the graph

        module = await asyncio.to_thread(import_module, f"questbook.graphs.{self.machine}.graph")
        where = question.state.config["configurable"]
        here = ExecutionInfo(where["checkpoint_id"], where.get("checkpoint_ns", ""), "", self.thread_id)
        runtime = Runtime(context=self.context, store=await self.store(), execution_info=here)
        last = await module.last_prompt(question.state.values, question.node, runtime)
        return events_of_prompt(last["recalled"], last["report"])

    async def wait_for_upkeep(self, seconds: float) -> bool:
        """Wait at most so many seconds for the upkeep of the last turn; return whether it goes on."""
        if self._run is not None:
            await self._run.wait(seconds)
        return self._run is not None and self._run.in_upkeep

    async def finish(self) -> None:
        """Wait for the reply that is coming, and at most two seconds for the upkeep; what is left is done later."""
        async with self._beginning:
            await self._finish()

    def unread_notices(self) -> list[Notice]:
        """Return the notices that came after their reader had left, once: here, or first in the next turn."""
        notices, self._unread = self._unread, []
        if self._run is not None and self._run.is_left:
            notices += self._run.unread()
        return notices

    def send(self, text: str) -> AsyncGenerator[Event]:
        """Play a turn: send the player's message and yield what happens.

        It takes the place of a message that has no reply yet: the model never gets two as one. One that cannot be
        played is an InputError. If the model fails (ModelError), the message is kept, and `resume` answers it.
        """
        return self._play(_message(text, self.context))

    def resume(self) -> AsyncGenerator[Event]:
        """Continue a turn that stopped before its end; yield nothing if there is none."""
        return self._play(None)

    def replay(self, config: RunnableConfig) -> AsyncGenerator[Event]:
        """Go on from a checkpoint of this campaign, without a message."""
        return self._play(None, config)

    async def retry(self, *, dice: bool = False) -> AsyncGenerator[Event]:
        """Play the last turn again: other words, and with `dice` other rolls; a HistoryError, if there is no reply."""
        replay = await (await self.history()).retry(dice=dice)
        async with aclosing(self._play(None, replay.config, replay.context)) as events:
            async for event in events:
                yield event

    async def edit(self, text: str) -> AsyncGenerator[Event]:
        """Play the last turn again with another message of the player; a HistoryError, if there is none."""
        last = await (await self.history()).last_message()
        async with aclosing(self._play(_message(text, self.context), last.config)) as events:
            async for event in events:
                yield event

    async def _play(
        self, message: Any, config: RunnableConfig | None = None, context: Settings | None = None
    ) -> AsyncGenerator[Event]:
        await self.load()
        if self.held is not None:
            await self.held.check()
        async with self._beginning:
            await self._finish()
            run = self._run = Run(self._events(message, config, context))
        for notice in self.unread_notices():
            yield notice
        async with aclosing(run.events()) as events:
            async for event in events:
                yield event

    async def keep_stopped(self, *, is_stopped: bool = True) -> bool:
        """Keep that a person stopped the reply that is missing, or that it goes on; return whether one is missing."""
        last = await self.checkpointer.aget_tuple(self.config)
        if last is None or SavedGame.of(last).unanswered is None:
            return False
        task, channel, _ = STOPPED
        await self.checkpointer.aput_writes(last.config, [(channel, is_stopped)], task)
        return True

    async def _finish(self) -> None:
        if self._run is not None:
            self._unread += await self._run.finish()
            self._run = None

    async def _events(
        self, message: Any, config: RunnableConfig | None, context: Settings | None
    ) -> AsyncGenerator[Event]:
        graph = await self.load()
        if config is None and (saved := await self.saved_game()) and saved.unanswered:
            if message is not None:
                await (await self.history(only_looks=True)).take_back()
            elif saved.is_stopped:
                await self.keep_stopped(is_stopped=False)
        config, context = config or self.config, context or self.context
        stream = graph.astream(message, config, context=context, stream_mode=STREAM_MODES, durability="sync")
        try:
            async for event in read_stream(stream):
                yield event
        except ValidationError as error:  # an edit by hand that no edge has checked
            first = error.errors(include_url=False, include_input=False)[0]
            reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            problem = f"The state of campaign {self.context.campaign!r} cannot be read: {reason}."
            raise UnreadableError(f"{problem} Go back to an earlier turn: questbook rewind --to TURN.") from error
        finally:
            if self._meter and graph.store:
                await self._meter.keep(graph.store, self.context.user or "", self.context.campaign)


def context_class(machine: str) -> type[Settings]:
    """Return the class of a machine's settings, by its name in `Game.machine`."""
    settings: type[Settings] = getattr(import_module(f"questbook.graphs.{machine}.context"), _CONTEXTS[machine])
    return settings


@asynccontextmanager
async def open_game(
    context: Settings, home: Home | None = None, machine: str = "dungeon_master", *, holds: bool = False
) -> AsyncIterator[Game]:
    """Open the campaign that the settings name in this process, by default of the home that `find_home` finds.

    With `holds`, this process holds it meanwhile (`hold_campaign`), so that no other one plays it. If the data cannot
    be read or written, it is a HomeError; if neither settings nor environment name the user, a SettingsError.
    """
    context = with_user(context)
    context = context.model_copy(update={"campaign": context.campaign})  # named, so that no words name another one
    home = home if home is not None else await asyncio.to_thread(find_home)
    async with AsyncExitStack() as resources:
        holding = hold_campaign(home, context.user or "", context.campaign) if holds else nullcontext()
        held = await resources.enter_async_context(holding)
        await home.check()  # a damaged file is reported before the first turn
        checkpointer = await resources.enter_async_context(home.open_checkpointer())
        game = Game(context, checkpointer, home, resources, machine)
        game.held = held
        try:
            yield game
        finally:
            await game.finish()


@cache
def _settle_heap() -> None:
    """Have the garbage collector pass over all that was loaded, once: looking through it stops the loop for 100 ms.

    It also waits for more new objects: a turn makes some thousand, and nearly all are gone before it looks.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(max(gc.get_threshold()[0], _YOUNG), *gc.get_threshold()[1:])


def _message(text: str, context: Settings) -> JSON:
    context.check_message(text)  # here, because a fork would stay if the graph refused it
    return {"messages": [{"role": "user", "content": text}]}


class Run:
    """A run of a graph in a task of its own, whose upkeep goes on when nobody reads its events any more."""

    def __init__(self, events: AsyncGenerator[Event]) -> None:
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._replied = asyncio.Event()
        self._upkeep: Upkeep | None = None
        self._task = asyncio.create_task(self._work(events))
        self._is_read = self.is_left = False  # whether somebody reads, or has left before its end

    @property
    def in_upkeep(self) -> bool:
        """Whether the reply is complete and the run still works."""
        return self._replied.is_set() and not self._task.done()

    async def events(self) -> AsyncGenerator[Event]:
        """Yield what happens. A reader who leaves before the reply is complete stops the run."""
        self._is_read = True
        try:
            while (event := await self._events.get()) is not None:
                yield event
            await self._task
        except (GeneratorExit, asyncio.CancelledError):
            self._is_read, self.is_left = False, True
            raise
        finally:
            if not self._replied.is_set():
                self._task.cancel()
                await asyncio.wait({self._task})

    async def wait(self, seconds: float) -> None:
        """Wait for the reply, then at most so many seconds for the upkeep."""
        await self._replied.wait()
        await asyncio.wait({self._task}, timeout=seconds)

    async def finish(self) -> list[Notice]:
        """End the run before the next message: wait for the reply, and at most two seconds for the upkeep.

        After three quarters of that the upkeep is asked to give way; what does not is cancelled. But what is being
        written to the store or in a node's last steps is waited for, at most half a minute. The notices that nobody
        reads any more are returned, an error of the upkeep among them.
        """
        from questbook.graphs.turn.node import LONGEST_WRITE, PATIENCE  # LangGraph, which came with the run

        await self.wait(PATIENCE)
        unread = list[Notice]()

        def note(text: str) -> None:
            unread.append(Notice({"turn": 0, "node": "upkeep", "text": text}))

        if self._upkeep is not None:
            self._upkeep.next_message.set()
            await self.wait(PATIENCE / 3)
            try:
                async with asyncio.timeout(LONGEST_WRITE):
                    while not self._task.done() and not self._upkeep.stoppable.is_set():
                        await self._upkeep.stoppable.wait()
                        await self.wait(PATIENCE / 3)  # for its checkpoint, and what gives way after it
            except TimeoutError:
                _log.warning("What follows the reply was stopped in a write that took over %g s.", LONGEST_WRITE)
                note("Memory took too long to write what follows the reply, so it was stopped; the next turn does it.")
        self._task.cancel()
        await asyncio.wait({self._task})
        if self._is_read:
            return unread
        unread += self.unread()
        error = None if self._task.cancelled() else self._task.exception()
        if error is not None:
            _log.warning("What follows the reply was not finished: %s", error, exc_info=error)
            note(f"What follows the reply was not finished; the next turn will do it. {error}")
        return unread

    def unread(self) -> list[Notice]:
        """Return the notices that came since the reader left, once."""
        events = [self._events.get_nowait() for _ in range(self._events.qsize())]
        return [event for event in events if isinstance(event, Notice)]

    async def _work(self, events: AsyncGenerator[Event]) -> None:
        from questbook.graphs.turn.node import Upkeep, give_way_on

        self._upkeep = Upkeep()
        give_way_on(self._upkeep)
        try:
            async with aclosing(events) as stream:
                async for event in stream:
                    if isinstance(event, NodeStart) and event.upkeep:
                        self._replied.set()
                    self._events.put_nowait(event)
        finally:
            self._replied.set()
            self._events.put_nowait(None)
