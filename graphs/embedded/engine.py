"""The embedded engine: a graph of ours with SQLite and FAISS in this process, without a server."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from questbook.graphs.embedded.home import Home, HomeError
from questbook.graphs.embedded.saved import Saved as Saved
from questbook.graphs.embedded.saved import last_of_threads, read_saved
from questbook.graphs.embedded.saved import thread_id_of as thread_id_of
from questbook.graphs.errors import UnreadableError
from questbook.graphs.events import STREAM_MODES, Event, read_stream

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.graph.state import CompiledStateGraph

    from questbook.graphs.history.history import History
    from questbook.graphs.settings import Settings
    from questbook.graphs.turn.turn_state import Said, TurnState
    from questbook.memory.store.faiss_store import FaissStore

_WAIT = 30.0
_DOORS = {"dungeon_master": "questbook play", "companion": "questbook chat"}
_SQLITE = b"SQLite format 3\x00"


class Game:
    """One campaign, ready to be played. `open_game` makes it.

    What a player only looks at comes from the checkpoint; the graph and the store are loaded with the first turn,
    or ahead of it by `load`.

    Attributes:
        context: The settings.
        thread_id: The campaign's thread.
        checkpointer: Where its states are kept.
        home: Where the data lives.
        machine: Name of the graph: "dungeon_master" or "companion".
    """

    def __init__(
        self,
        context: Settings,
        checkpointer: AsyncSqliteSaver,
        home: Home,
        resources: AsyncExitStack,
        machine: str = "dungeon_master",
    ) -> None:
        self.context = context
        self.machine = machine
        self.checkpointer = checkpointer
        self.thread_id = thread_id_of(context.user, context.campaign)
        self.home = home
        self._resources = resources
        self._graph: CompiledStateGraph[TurnState, Settings, Said, TurnState] | None = None
        self._loading = asyncio.Lock()

    @property
    def config(self) -> RunnableConfig:
        """The run's config: the thread, and the names that find it again in a list of campaigns."""
        return {
            "configurable": {"thread_id": self.thread_id},
            "metadata": {"user": self.context.user, "campaign": self.context.campaign},
        }

    async def saved(self) -> Saved | None:
        """Return the campaign as its last checkpoint has it, or None before the first message.

        Raises:
            UnreadableError: Another graph wrote it.
        """
        saved = await read_saved(self.checkpointer, self.thread_id)
        if saved and saved.machine not in ("", self.machine):
            raise UnreadableError(
                f"Campaign {self.context.campaign!r} belongs to the graph {saved.machine}, not to {self.machine}: "
                "choose another name, or open it with " + _DOORS.get(saved.machine, "its own door") + "."
            )
        return saved

    async def unfinished(self) -> bool:
        """Whether the last turn stopped before its end, so that `resume` has something to do."""
        graph = await self.load()
        # Not `next`: that is empty if the process was killed after a node's writes and before their checkpoint.
        return bool((await graph.aget_state(self.config)).tasks)

    async def load(self) -> CompiledStateGraph[TurnState, Settings, Said, TurnState]:
        """Load the graph and open the store, once; return the graph."""
        async with self._loading:
            if self._graph is None:
                module = await asyncio.to_thread(import_module, f"questbook.graphs.{self.machine}.graph")
                store = await self._resources.enter_async_context(open_store(self.home.memory, self.context.embeddings))
                self._graph = module.build_graph().compile(checkpointer=self.checkpointer, store=store)
            return self._graph

    async def enter(self) -> bool:
        """Stand where the campaign was left on another thread, as in Studio, if nothing was played on this one.

        Returns:
            Whether it was.
        """
        if await self.saved() is not None:
            return False
        mine = (self.context.user, self.context.campaign, self.machine)
        others = [
            saved
            for saved in await last_of_threads(self.checkpointer)
            if (saved.user, saved.campaign, saved.machine) == mine and saved.turn
        ]
        if not others:
            return False  # a new campaign: its first prompt does not wait for graph and store
        others.sort(key=lambda saved: saved.played, reverse=True)
        return await (await self.history()).enter([saved.thread_id for saved in others])

    async def history(self) -> History:
        """Return what was played: for going back, to another line, or only for looking."""
        module = await asyncio.to_thread(import_module, "questbook.graphs.history.history")
        history: History = module.History(await self.load(), self.config, self.context)
        return history

    def send(self, text: str) -> AsyncGenerator[Event]:
        """Play a turn: send the player's message and tell what happens.

        Raises:
            InputError: The message cannot be played.
            ModelError: The model failed; the message is kept, and `resume` answers it.
        """
        return self._run(_message(text))

    def resume(self) -> AsyncGenerator[Event]:
        """Go on with a turn that stopped before its end; ends at once if there is none."""
        return self._run(None)

    async def retry(self, *, dice: bool = False) -> AsyncGenerator[Event]:
        """Tell the last turn again, in other words; with `dice` it is rolled for again too.

        Raises:
            HistoryError: There is no reply to tell again.
        """
        config, context = await (await self.history()).retry(dice=dice)
        async with aclosing(self._run(None, config, context)) as events:
            async for event in events:
                yield event

    async def edit(self, text: str) -> AsyncGenerator[Event]:
        """Play the last turn again with another message in place of the player's last.

        Raises:
            HistoryError: There is no message to change.
            InputError: The message cannot be played.
        """
        config, _ = await (await self.history()).before_last()
        async with aclosing(self._run(_message(text), config)) as events:
            async for event in events:
                yield event

    async def _run(
        self, given: Any, config: RunnableConfig | None = None, context: Settings | None = None
    ) -> AsyncGenerator[Event]:
        graph = await self.load()
        stream = graph.astream(
            given,
            config or self.config,
            context=context or self.context,
            stream_mode=STREAM_MODES,
            durability="sync",
        )
        from pydantic import ValidationError  # here already: the graph is made of it

        try:
            async for event in read_stream(stream):
                yield event
        except ValidationError as error:  # an edit by hand that no edge has checked
            problem = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(map(str, problem["loc"]))
            raise UnreadableError(
                f"The state of campaign {self.context.campaign!r} cannot be read: {field}: {problem['msg']}. "
                "Go back to a turn before: questbook rewind --to TURN."
            ) from error


@asynccontextmanager
async def open_game(
    context: Settings, home: Home | None = None, machine: str = "dungeon_master"
) -> AsyncIterator[Game]:
    """Open a campaign in this process.

    Args:
        context: The settings; user and campaign name the thread.
        home: Where the data lives; the default is `Home.find()`.
        machine: Name of the graph.

    Raises:
        HomeError: The data cannot be read or written.
    """
    place = home if home is not None else await asyncio.to_thread(Home.find)
    async with AsyncExitStack() as resources:
        await asyncio.to_thread(_claim, place.memory)
        checkpointer = await resources.enter_async_context(open_checkpointer(place.checkpoints))
        yield Game(context, checkpointer, place, resources, machine)


@asynccontextmanager
async def open_checkpointer(path: str | Path | None = None) -> AsyncIterator[AsyncSqliteSaver]:
    """Open the checkpointer over SQLite.

    Args:
        path: The database; the default is the one in `Home`.

    Raises:
        HomeError: The file cannot be used; it is left as it is.
    """
    import aiosqlite  # `questbook --help` needs neither

    from questbook.graphs.embedded.checkpointer import Checkpointer
    from questbook.graphs.embedded.compressed import compressing

    file = Path(path) if path else (await asyncio.to_thread(Home.find)).checkpoints
    await asyncio.to_thread(_claim, file)
    with _readable(file):
        async with aiosqlite.connect(file, timeout=_WAIT) as connection:
            saver = Checkpointer(connection, serde=compressing())
            await saver.setup()  # sets WAL, so that Studio can read while the terminal plays
            yield saver


@asynccontextmanager
async def open_store(
    path: str | Path | None = None,
    embeddings: str | None = None,
    *,
    known: Mapping[str, list[float]] | None = None,
) -> AsyncIterator[FaissStore]:
    """Open the semantic store.

    Args:
        path: The database; the default is the one in `Home`.
        embeddings: The embedder's name; the default is the one that `Context` gives. If the file was written with
            another one, its texts are embedded anew.
        known: Vectors by text that this embedder has made before, and need not make again.

    Raises:
        HomeError: The file cannot be used; it is left as it is.
        StoreError: The store refused it for another reason, or there is no such embedder.
    """
    module = await asyncio.to_thread(import_module, "questbook.memory.store.faiss_store")
    file = Path(path) if path else (await asyncio.to_thread(Home.find)).memory
    await asyncio.to_thread(_claim, file)
    index = await asyncio.to_thread(_index, embeddings, known)
    async with module.FaissStore.open(file, index) as store:
        yield store


def _message(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def _index(embeddings: str | None, known: Mapping[str, list[float]] | None = None) -> dict[str, Any]:
    from questbook.memory.embeddings.embedders import load_embeddings

    if embeddings is None:
        from questbook.graphs.settings import Settings

        embeddings = Settings.of().embeddings
    named = f"minilm:{Home.find().minilm}" if embeddings == "minilm" else embeddings
    embedder = load_embeddings(named)
    if known:
        from questbook.memory.ltm.vectors import KnownVectors

        embedder = KnownVectors(embedder, known)
    return {"embed": embedder, "fields": ["text"]}


def _claim(path: Path) -> None:
    """Make a database's file for its owner alone; of one that exists, see that it is SQLite's before it is opened."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        with path.open("rb") as file:
            head = file.read(len(_SQLITE))
    except OSError as error:
        raise HomeError(f"Cannot use {path}: {error.strerror or error}. Mend its permissions, or move it.") from error
    if head and head != _SQLITE:
        raise _corrupt(path, "it is no SQLite database")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:  # locked, full, read-only: the file is sound
        raise HomeError(f"Cannot use {path}: {error}. What was played so far is kept.") from error
    except sqlite3.DatabaseError as error:
        raise _corrupt(path, str(error)) from error


def _corrupt(path: Path, reason: str) -> HomeError:
    return HomeError(
        f"Cannot read {path}: {reason}. It was left as it is: put back a copy, or move it away to start afresh."
    )
