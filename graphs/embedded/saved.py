"""Saved: what a checkpoint says about a campaign, read without the graph."""

from __future__ import annotations

import json
import logging
import sqlite3
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from questbook.graphs.errors import UnreadableError

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    from questbook.graphs.turn.player_view import PlayerView
    from questbook.notebooks import CharacterNotebook, StateNotebook

# The primary key alone answers this; no checkpoint is read for it.
_FIRSTS = "SELECT thread_id, MIN(checkpoint_id) FROM checkpoints WHERE checkpoint_ns = '' GROUP BY thread_id"
_log = logging.getLogger(__name__)
_THREADS = uuid.UUID("6f0d3b0e-5d0c-4c6e-9a3b-0c6d1f6f6e51")
"""Name space of the thread ids; another one would orphan every game."""


def thread_id_of(user: str, campaign: str) -> str:
    """Return the thread id of a user's campaign: a UUID, as LangGraph Server wants it, the same on every machine."""
    return str(uuid.uuid5(_THREADS, json.dumps([user, campaign])))


async def read_saved(checkpointer: BaseCheckpointSaver[Any], thread_id: str, checkpoint_id: str = "") -> Saved | None:
    """Read a thread's last checkpoint, or the one that is named; None if there is none.

    Raises:
        UnreadableError: There is one, but its bytes cannot be read.
    """
    one = {"checkpoint_id": checkpoint_id} if checkpoint_id else {}
    try:
        found = await checkpointer.aget_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": "", **one}})
        return Saved.of(found) if found else None
    except (sqlite3.DatabaseError, ValueError, KeyError, TypeError, EOFError) as error:
        raise UnreadableError(
            f"The last checkpoint of thread {thread_id} cannot be read: {error!s:.120}. It was left as it is: put back "
            "a copy of the data directory, or play another campaign."
        ) from error


async def last_of_threads(checkpointer: AsyncSqliteSaver) -> list[Saved]:
    """Read the last checkpoint of every thread; one that cannot be read is left out, and logged."""
    async with checkpointer.lock, checkpointer.conn.execute(_FIRSTS) as cursor:
        threads = [(str(thread), str(first)) for thread, first in await cursor.fetchall()]
    found = []
    for thread, first in threads:
        saved = await _sound(checkpointer, thread)
        if saved and not saved.campaign:  # edited in Studio before its first turn: the names of the beginning hold
            begun = await _sound(checkpointer, thread, first)
            saved = begun and saved._replace(user=begun.user, campaign=begun.campaign)
        if saved:
            found.append(saved)
    return found


async def _sound(checkpointer: AsyncSqliteSaver, thread: str, checkpoint: str = "") -> Saved | None:
    try:
        saved = await read_saved(checkpointer, thread, checkpoint)
        if saved:
            _ = saved.turn, saved.character, saved.quest
    except (UnreadableError, ValueError, TypeError) as error:
        _log.warning("Thread %s is left out of the list of campaigns: %s", thread, error)
        return None
    return saved


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
        values = dict(found.checkpoint["channel_values"])
        # A run or an edit in Studio gives no metadata; from the first turn on the state itself says it.
        user, campaign = values.get("campaign") or (metadata.get("user", ""), metadata.get("campaign", ""))
        return cls(
            user=str(user),
            campaign=str(campaign),
            thread_id=str(found.config["configurable"]["thread_id"]),
            played=str(found.checkpoint["ts"]),
            values=values,
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
    def machine(self) -> str:
        """Name of the graph that wrote it; "" before the first turn."""
        channels = {"core": "companion", "quest": "dungeon_master", "character": "dungeon_master"}
        return next((machine for channel, machine in channels.items() if channel in self.values), "")

    @property
    def view(self) -> PlayerView:
        """What the player may see of it: all that a door shows is made of this."""
        from questbook.graphs.turn.player_view import PlayerView

        return PlayerView.of(self.values)

    @property
    def character(self) -> CharacterNotebook:
        """Who plays."""
        from questbook.notebooks import CharacterNotebook  # pydantic, which a list of commands does not need

        return CharacterNotebook.load(self.values.get("character"))

    @property
    def quest(self) -> StateNotebook:
        """Where the story stands."""
        from questbook.notebooks import StateNotebook

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
