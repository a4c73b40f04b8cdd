"""`SavedGame`: what a campaign's last checkpoint says, read without loading a graph; and the list of campaigns."""

import asyncio
import json
import logging
import sqlite3
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Self

from langchain_core.messages import convert_to_messages
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from questbook.graphs.errors import InputError, UnreadableError
from questbook.graphs.turn.player_view import PlayerView
from questbook.notebooks import CharacterNotebook, StateNotebook
from questbook.types import JSON

OWNER = "questbook_owner"
"""Key of a checkpoint's metadata: who began the thread, on a server with a log-in. No caller can write it."""
STOPPED = ("questbook-stopped", "__error__", True)
"""Pending write of a checkpoint whose reply a person stopped; an error, since only these can be written over."""
_log = logging.getLogger(__name__)
_THREADS = uuid.UUID("6f0d3b0e-5d0c-4c6e-9a3b-0c6d1f6f6e51")
"""UUID namespace of the thread ids. Never change it: every saved game would be lost."""


def thread_id_of(user: str, campaign: str) -> str:
    """Return the thread id of a user's campaign: a UUID, as LangGraph Server requires, the same on every machine."""
    return str(uuid.uuid5(_THREADS, json.dumps([user, campaign])))


def users_in(metadata: Mapping[str, Any], values: Mapping[str, Any]) -> frozenset[str]:
    """Return the users whose a checkpoint is said to be: one; none, if nothing says so; or it is nobody's for certain.

    A run or an edit in Studio gives no user in the metadata; from the first turn on, the channels have the names. On
    a server with a log-in, the checkpointer notes who began the thread. A caller can write the metadata, and in older
    versions the channel, but not all, so that no thread comes to another user.
    """
    names = *(values.get("campaign") or ())[:1], metadata.get("user"), metadata.get(OWNER)
    return frozenset(str(name) for name in names if name)


def machine_of(values: Mapping[str, Any]) -> str:
    """Return the name of the graph that wrote a state, or a campaign's head; "" if nothing says so."""
    channels = {"core": "companion", "quest": "dungeon_master", "character": "dungeon_master"}
    return next((machine for channel, machine in channels.items() if channel in values), "")


class SavedGame(NamedTuple):
    """What a checkpoint says about a campaign, read without a graph."""

    user: str  # who plays; "" if that is not known
    campaign: str
    thread_id: str
    played: str  # when the checkpoint was written, ISO 8601 in UTC
    values: JSON  # the state's channels
    users: frozenset[str] = frozenset()  # all whose it is said to be
    is_stopped: bool = False  # whether a person stopped the reply that is missing, so that no start goes on with it

    @classmethod
    def of(cls, saved: CheckpointTuple) -> Self:
        """Read a checkpoint."""
        values = dict(saved.checkpoint["channel_values"])
        metadata: JSON = dict(saved.metadata)
        users = users_in(metadata, values)
        _, campaign = values.get("campaign") or ("", metadata.get("campaign", ""))
        user, campaign = min(users) if len(users) == 1 else "", str(campaign) if len(users) < 2 else ""
        thread_id, played = str(saved.config["configurable"]["thread_id"]), str(saved.checkpoint["ts"])
        return cls(user, campaign, thread_id, played, values, users, STOPPED in (saved.pending_writes or []))

    @property
    def on_own_thread(self) -> bool:
        """Whether this is the campaign's own thread, on which the terminal plays, and not one of Studio's."""
        return self.thread_id == thread_id_of(self.user, self.campaign)

    @property
    def is_playable(self) -> bool:
        """Whether the terminal can play it."""
        # Before its first turn a thread does not say which graph it belongs to, and an agent's thread never does.
        on_its_own = self.machine == "dungeon_master" or (self.on_own_thread and self.machine == "")
        return on_its_own and bool(self.campaign)

    @property
    def turn(self) -> int:
        """Number of the last turn that began."""
        return int(self.values.get("turn", 0))

    @property
    def machine(self) -> str:
        """Name of the graph that wrote it; "" before the first turn."""
        return machine_of(self.values)

    @property
    def view(self) -> PlayerView:
        """What the player may see of it; the terminal shows nothing else."""
        return PlayerView.of(self.values)

    @property
    def character(self) -> CharacterNotebook:
        """Who plays."""
        return CharacterNotebook.load(self.values.get("character"))

    @property
    def quest(self) -> StateNotebook:
        """Where the story stands."""
        return StateNotebook.load(self.values.get("quest"))

    @property
    def last_reply(self) -> str:
        """What the dungeon master said last."""
        replies = (m.text for m in reversed(self.values.get("messages") or []) if m.type == "ai")
        return next((text for text in replies if text.strip()), "")

    @property
    def unread(self) -> list[Any]:
        """What was sent and has not reached its channel: the run was stopped before. The next input would drop it."""
        sent = self.values.get("__start__")
        return list(sent.get("messages") or []) if isinstance(sent, dict) else []

    @property
    def unanswered(self) -> str | None:
        """The player's message that has no reply yet, if there is one."""
        messages = [*(self.values.get("messages") or []), *convert_to_messages(self.unread)]
        if not messages or (messages[-1].type == "ai" and not messages[-1].tool_calls):
            return None
        return next((message.text for message in reversed(messages) if message.type == "human"), None)


class HomeCheckpointer(BaseCheckpointSaver[str], ABC):
    """A checkpointer of a home: it also knows which threads there are, and whose."""

    log_in: Callable[[], str | None] | None = None
    """Returns who logged in: "" without a name, None for the server itself. It is None where there is no log-in."""

    @abstractmethod
    async def newest_of_threads(self, user: str | None = None) -> list[tuple[str, JSON]]:
        """Return each thread with the metadata of its newest checkpoint, the last written first.

        With a user, threads of which these metadata name another one may be left out.
        """

    @abstractmethod
    async def first(self, thread: str) -> tuple[str, JSON] | None:
        """Return id and metadata of a thread's first checkpoint; None if it has none."""

    @abstractmethod
    async def show_threads(self, names: Mapping[str, str]) -> None:
        """Show hidden threads, all or none: their own ids by those that they have while they are hidden."""

    async def check_thread(self, thread: str) -> None:
        """Refuse a thread that is not the caller's, with an InputError."""
        if (caller := self.caller()) is not None and (first := await self.first(thread)):
            check_caller(thread, first[1], caller)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints of threads ("delete"), or what no last turn of a line or branch needs ("keep_latest").

        LangGraph's server calls this. `questbook.graphs.pruning` can keep more.
        """
        if strategy not in ("delete", "keep_latest"):
            raise ValueError(f"strategy: got {strategy!r:.40}, expected 'keep_latest' or 'delete'.")
        if strategy == "delete":
            for thread in thread_ids:
                await self.adelete_thread(thread)
        else:
            for thread in thread_ids:
                await self.check_thread(str(thread))
            pruning = await asyncio.to_thread(import_module, "questbook.graphs.pruning.prune")
            await pruning.prune(self, threads=thread_ids, keep_turns=1, compact=False)

    async def aput_all_writes(self, config: RunnableConfig, writes: Iterable[tuple[str, str, Any]]) -> None:
        """Save a checkpoint's pending writes, each with its task; those of a task are counted, so they come at once."""
        tasks: dict[str, list[tuple[str, Any]]] = {}
        for task, channel, value in writes:
            tasks.setdefault(task, []).append((channel, value))
        for task, own in tasks.items():
            await self.aput_writes(config, own, task)

    def caller(self) -> str | None:
        """Return who logged in, "" without a name; None for the server itself, and where there is no log-in."""
        return self.log_in() if self.log_in else None


def is_of_another(began: Mapping[str, Any] | None, caller: str | None) -> bool:
    """Whether another user than a server's caller began a thread on the page or in the terminal.

    Its id can be computed, and the server's own rules know nothing of it: a caller could make a thread of the server
    with the same id. Whose a thread is that began over the server, those rules say. `began` is the metadata of the
    thread's first checkpoint; `caller` is as `HomeCheckpointer.log_in` returns it.
    """
    if caller is None or began is None or not began.keys() >= {"user", "campaign"}:  # page and terminal give both
        return False
    return not began.get(OWNER) and bool(began["user"] != caller)


def check_caller(thread: str, began: Mapping[str, Any] | None, caller: str | None) -> None:
    """Refuse a thread that `is_of_another`, with an InputError."""
    if is_of_another(began, caller):
        problem = f"Thread {thread} is a campaign that another user began on the page or in the terminal."
        raise InputError(f"{problem} Nothing was changed: begin a new thread.")


async def read_saved_game(saver: BaseCheckpointSaver[Any], thread_id: str, checkpoint_id: str = "") -> SavedGame | None:
    """Read a checkpoint of a thread, by default the last; None if there is none, and an error if it is damaged."""
    where = {"thread_id": thread_id, "checkpoint_ns": ""} | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})
    try:
        checkpoint = await saver.aget_tuple({"configurable": where})
        return SavedGame.of(checkpoint) if checkpoint else None
    except (UnreadableError, sqlite3.DatabaseError, ValueError, KeyError, TypeError, EOFError) as error:
        reason = error.__cause__ if isinstance(error, UnreadableError) else error
        problem = f"The last checkpoint of thread {thread_id} cannot be read: {reason!s:.120}."
        hint = "It was not changed: put back a copy of the data directory, or play another campaign."
        raise UnreadableError(f"{problem} {hint}") from error


async def last_of_threads(saver: HomeCheckpointer, user: str, campaign: str | None = None) -> AsyncIterator[SavedGame]:
    """Read the last checkpoint of each thread of a user, or only of one campaign's, the last written first.

    A thread that cannot be read is left out, and logged.
    """
    for thread, names in await saver.newest_of_threads(user):
        # Reading a checkpoint takes a millisecond. The terminal's say in their metadata whose they are.
        if names.get("user", user) != user or campaign not in (None, names.get("campaign", campaign)):
            continue
        saved = await last_of_thread(saver, thread)
        if saved and saved.user == user and campaign in (None, saved.campaign):
            yield saved


async def last_of_thread(checkpointer: HomeCheckpointer, thread: str) -> SavedGame | None:
    """Read the last checkpoint of a thread; None if there is none, or if it cannot be read, which is logged."""
    last = await _readable(checkpointer, thread)
    if last and not last.campaign and len(last.users) < 2:
        # Edited in Studio before its first turn: its first checkpoint has the names.
        earliest = await checkpointer.first(thread)
        first = await _readable(checkpointer, thread, earliest[0]) if earliest else None  # it was deleted meanwhile
        last = first and last._replace(user=first.user, campaign=first.campaign)
    return last


async def list_campaigns(checkpointer: HomeCheckpointer, user: str, most: int | None = None) -> list[SavedGame]:
    """Return the user's campaigns as they were saved last, or only the last `most`, the last played first.

    They are read from the checkpoints themselves, so the list cannot differ from what can be played. If a campaign has
    a thread of the terminal, that thread counts; otherwise the last played of its other threads, begun in Studio.
    """
    campaigns: dict[str, SavedGame] = {}
    async for saved in last_of_threads(checkpointer, user):
        if saved.campaign in campaigns or not saved.is_playable:
            continue
        own = None if saved.on_own_thread else await last_of_thread(checkpointer, thread_id_of(user, saved.campaign))
        campaigns[saved.campaign] = own if own and own.is_playable else saved
        if len(campaigns) == most:
            break
    return sorted(campaigns.values(), key=lambda saved: saved.played, reverse=True)


async def _readable(checkpointer: HomeCheckpointer, thread: str, checkpoint: str = "") -> SavedGame | None:
    try:
        saved = await read_saved_game(checkpointer, thread, checkpoint)
        if saved:
            _ = saved.turn, saved.character, saved.quest  # raises if a page cannot be read
    except (UnreadableError, ValueError, TypeError) as error:
        _log.warning("Thread %s is left out of the list of campaigns: %s", thread, error)
        return None
    return saved
