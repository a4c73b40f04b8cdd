"""The embedded engine: the dungeon master with SQLite and FAISS in this process, without a server."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from graphs.events import STREAM_MODES, Event, read_stream
from graphs.home import Home, HomeError

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import CheckpointTuple
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.graph.state import CompiledStateGraph

    from graphs.dungeon_master.context import Context
    from graphs.dungeon_master.state import DungeonInput, DungeonState
    from memory.faiss_store import FaissStore
    from notebooks import CharacterNotebook, StateNotebook

_THREADS = uuid.UUID("6f0d3b0e-5d0c-4c6e-9a3b-0c6d1f6f6e51")
"""Name space of the thread ids; another one would orphan every game."""
_WAIT = 30.0
_SQLITE = b"SQLite format 3\x00"


def thread_id_of(user: str, campaign: str) -> str:
    """Return the thread id of a user's campaign: a UUID, as LangGraph Server wants it, the same on every machine."""
    return str(uuid.uuid5(_THREADS, json.dumps([user, campaign])))


class Saved(NamedTuple):
    """What a checkpoint says about a campaign, read without the graph.

    Attributes:
        user: Who plays.
        campaign: Name of the campaign.
        thread_id: Its thread.
        played: When the checkpoint was written, ISO 8601 in UTC.
        values: The state's channels.
    """

    user: str
    campaign: str
    thread_id: str
    played: str
    values: dict[str, Any]

    @classmethod
    def of(cls, found: CheckpointTuple) -> Self:
        """Read a checkpoint."""
        metadata: dict[str, Any] = dict(found.metadata)
        return cls(
            user=str(metadata.get("user", "")),
            campaign=str(metadata.get("campaign", "")),
            thread_id=str(found.config["configurable"]["thread_id"]),
            played=str(found.checkpoint["ts"]),
            values=dict(found.checkpoint["channel_values"]),
        )

    @property
    def named(self) -> bool:
        """Whether the checkpoint knows whose campaign it is, and that is the campaign of its thread."""
        return self.thread_id == thread_id_of(self.user, self.campaign)

    @property
    def turn(self) -> int:
        """Number of the last turn that began."""
        return int(self.values.get("turn", 0))

    @property
    def character(self) -> CharacterNotebook:
        """Who plays."""
        from notebooks import CharacterNotebook  # pydantic, which a list of commands does not need

        return CharacterNotebook.load(self.values.get("character"))

    @property
    def quest(self) -> StateNotebook:
        """Where the story stands."""
        from notebooks import StateNotebook

        return StateNotebook.load(self.values.get("quest"))

    @property
    def last_reply(self) -> str:
        """What the dungeon master said last."""
        said = (m.text for m in reversed(self.values.get("messages") or []) if m.type == "ai")
        return next((text for text in said if text.strip()), "")

    @property
    def unanswered(self) -> str | None:
        """The player's message that has no reply yet, if there is one."""
        from langchain_core.messages import convert_to_messages

        messages = list(self.values.get("messages") or [])
        if isinstance(given := self.values.get("__start__"), dict):  # stopped before it had reached its channel
            messages += convert_to_messages(given.get("messages") or [])
        if not messages or (messages[-1].type == "ai" and not messages[-1].tool_calls):
            return None
        said = (message.text for message in reversed(messages) if message.type == "human")
        return next(said, None)


class Game:
    """One campaign, ready to be played. `open_game` makes it.

    What a player only looks at comes from the checkpoint; the graph and the store are loaded with the first turn,
    or ahead of it by `load`.

    Attributes:
        context: The settings.
        thread_id: The campaign's thread.
        checkpointer: Where its states are kept.
        home: Where the data lives.
    """

    def __init__(self, context: Context, checkpointer: AsyncSqliteSaver, home: Home, resources: AsyncExitStack) -> None:
        self.context = context
        self.checkpointer = checkpointer
        self.thread_id = thread_id_of(context.user, context.campaign)
        self.home = home
        self._resources = resources
        self._graph: CompiledStateGraph[DungeonState, Context, DungeonInput, DungeonState] | None = None
        self._loading = asyncio.Lock()

    @property
    def config(self) -> RunnableConfig:
        """The run's config: the thread, and the names that find it again in a list of campaigns."""
        return {
            "configurable": {"thread_id": self.thread_id},
            "metadata": {"user": self.context.user, "campaign": self.context.campaign},
        }

    async def saved(self) -> Saved | None:
        """Return the campaign as its last checkpoint has it, or None before the first message."""
        found = await self.checkpointer.aget_tuple({"configurable": {"thread_id": self.thread_id}})
        return Saved.of(found) if found else None

    async def unfinished(self) -> bool:
        """Whether the last turn stopped before its end, so that `resume` has something to do."""
        graph = await self.load()
        return bool((await graph.aget_state(self.config)).next)

    async def load(self) -> CompiledStateGraph[DungeonState, Context, DungeonInput, DungeonState]:
        """Load the graph and open the store, once; return the graph."""
        async with self._loading:
            if self._graph is None:
                module = await asyncio.to_thread(import_module, "graphs.dungeon_master.graph")
                store = await self._resources.enter_async_context(open_store(self.home.memory))
                self._graph = module.build_graph().compile(checkpointer=self.checkpointer, store=store)
            return self._graph

    async def send(self, text: str) -> AsyncGenerator[Event]:
        """Play a turn: send the player's message and tell what happens.

        Raises:
            InputError: The message cannot be played.
            ModelError: The model failed; the message is kept, and `resume` answers it.
        """
        async with aclosing(self._run({"messages": [{"role": "user", "content": text}]})) as events:
            async for event in events:
                yield event

    async def resume(self) -> AsyncGenerator[Event]:
        """Go on with a turn that stopped before its end; ends at once if there is none."""
        async with aclosing(self._run(None)) as events:
            async for event in events:
                yield event

    async def _run(self, given: Any) -> AsyncGenerator[Event]:
        graph = await self.load()
        stream = graph.astream(given, self.config, context=self.context, stream_mode=STREAM_MODES, durability="sync")
        async for event in read_stream(stream):
            yield event


@asynccontextmanager
async def open_game(context: Context, home: Home | None = None) -> AsyncIterator[Game]:
    """Open a campaign in this process.

    Args:
        context: The settings; user and campaign name the thread.
        home: Where the data lives; the default is `Home.find()`.

    Raises:
        HomeError: The data cannot be read or written.
    """
    place = home if home is not None else await asyncio.to_thread(Home.find)
    async with AsyncExitStack() as resources:
        await asyncio.to_thread(_claim, place.memory)
        checkpointer = await resources.enter_async_context(open_checkpointer(place.checkpoints))
        yield Game(context, checkpointer, place, resources)


@asynccontextmanager
async def open_checkpointer(path: str | Path | None = None) -> AsyncIterator[AsyncSqliteSaver]:
    """Open the checkpointer over SQLite.

    Args:
        path: The database; the default is the one in `Home`.

    Raises:
        HomeError: The file cannot be used; it is left as it is.
    """
    import aiosqlite  # `questbook --help` needs neither
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    file = Path(path) if path else (await asyncio.to_thread(Home.find)).checkpoints
    await asyncio.to_thread(_claim, file)
    with _readable(file):
        async with aiosqlite.connect(file, timeout=_WAIT) as connection:
            saver = AsyncSqliteSaver(connection)
            await saver.setup()  # sets WAL, so that Studio can read while the terminal plays
            yield saver


@asynccontextmanager
async def open_store(path: str | Path | None = None) -> AsyncIterator[FaissStore]:
    """Open the semantic store.

    Args:
        path: The database; the default is the one in `Home`.

    Raises:
        HomeError: The file cannot be used; it is left as it is.
        StoreError: The store refused it for another reason.
    """
    module = await asyncio.to_thread(import_module, "memory.faiss_store")
    file = Path(path) if path else (await asyncio.to_thread(Home.find)).memory
    await asyncio.to_thread(_claim, file)
    async with module.FaissStore.open(file) as store:
        yield store


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
