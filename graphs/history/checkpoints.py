"""What one checkpoint says: its position in the story, and what it was made from; and copying it to another thread."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointMetadata, create_checkpoint
from langgraph.types import StateSnapshot

from questbook.graphs.errors import HistoryError
from questbook.memory.buffer.policies import ASIDE, split_turns, turn_text
from questbook.memory.timeline.timeline import Segment, read_timeline
from questbook.types import JSON

_ORIGIN: Literal["copied_from"] = "copied_from"
"""Field of a copy's metadata: thread and id of the checkpoint that was copied."""


class Position(NamedTuple):
    """Where in the story a state is: turn 0 is before anything was said, an empty reply is none yet."""

    turn: int
    player: str
    reply: str
    line: str


def position_of(state: StateSnapshot) -> Position:
    """Return where in the story a state is; a message that was sent and not processed yet counts as a turn."""
    values = state.values
    turn, messages, line = values.get("turn", 0), values.get("messages") or [], values.get("line", "main")
    if not messages:
        return Position(turn, "", "", line)
    last = split_turns(messages, turn)[-1].messages
    opened_by = next((message.id for message in last if isinstance(message, HumanMessage)), None)
    replies = [message.text.strip() for message in last if isinstance(message, AIMessage) and message.name != ASIDE]
    reply = "\n\n".join(text for text in replies if text)
    return Position(turn + (opened_by != values.get("opened_by")), turn_text(last).player, reply, line)


def waiting_nodes(state: StateSnapshot, upkeep: Collection[str]) -> tuple[str, ...]:
    """Return the nodes that run next in a state before its turn is answered; none if it is.

    Not `state.next`, which leaves out a node that was killed after its writes were saved and before the checkpoint.
    Nodes of the upkeep do not count: a turn whose upkeep gave way to the next message is finished.
    """
    return tuple(task.name for task in state.tasks if task.name not in upkeep)


def remembered_timeline(values: Mapping[str, Any]) -> list[Segment]:
    """Return a state's timeline as far as it has been remembered.

    A turn in progress has a number that another future may have used on the same branch. Until the turn claims its
    place, the record under that number is not its own.
    """
    through, reached = values.get("remembered_through", 0), 0
    timeline: list[Segment] = []
    for branch, turn in read_timeline(values):
        if (last := min(turn, through)) > reached:
            timeline.append((branch, last))
            reached = last
    return timeline


def is_at(state: StateSnapshot, head: Mapping[str, Any]) -> bool:
    """Whether a state is where a campaign's head is: at the same turn of the same timeline."""
    return bool(state.values["turn"] == head["turn"]) and read_timeline(state.values) == read_timeline(head)


def thread_of(state: StateSnapshot) -> str:
    """Return the thread of a state."""
    return str(state.config["configurable"]["thread_id"])


def origin_of(state: StateSnapshot) -> JSON | None:
    """Return the `configurable` of the checkpoint that a state was copied from; None if it is no copy."""
    metadata: JSON = {**(state.metadata or {})}
    return metadata.get(_ORIGIN)


def checkpoint_id_of(config: RunnableConfig) -> str:
    """Return the id of the checkpoint that a config names; "" if it names none."""
    return str(config["configurable"].get("checkpoint_id", ""))


def is_successor(after: StateSnapshot, state: StateSnapshot) -> bool:
    """Whether a state was made from another one: by a run, by an edit, or as the copy that going back to it makes."""
    state_id = checkpoint_id_of(state.config)
    if origin := origin_of(after):
        return bool(origin["checkpoint_id"] == state_id)
    if after.parent_config is None or checkpoint_id_of(after.parent_config) == state_id:
        return after.parent_config is not None
    # LangGraph makes a copy a sibling of the state that it copies.
    siblings = state.parent_config is not None and (
        checkpoint_id_of(after.parent_config) == checkpoint_id_of(state.parent_config)
    )
    return siblings and (after.metadata or {}).get("source") == "fork" and after.values == state.values


async def copy_to(saver: BaseCheckpointSaver[Any], state: StateSnapshot, config: RunnableConfig) -> RunnableConfig:
    """Write a copy of a state to another thread, where it has no parent; return its config.

    Raises:
        HistoryError: The checkpoint is gone.
    """
    saved = await saver.aget_tuple(state.config)
    if saved is None:
        raise HistoryError(f"The checkpoint that was to be copied from thread {thread_of(state)} is gone.")
    step = saved.metadata.get("step", 0) + 1
    origin = {name: state.config["configurable"][name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id")}
    metadata: CheckpointMetadata = {"source": "fork", "step": step, "parents": {}, _ORIGIN: origin}  # type: ignore[typeddict-unknown-key]  # savers keep any field
    where: RunnableConfig = {**config, "configurable": {**config["configurable"], "checkpoint_ns": ""}}
    checkpoint = create_checkpoint(saved.checkpoint, None, step)
    return await saver.aput(where, checkpoint, metadata, checkpoint["channel_versions"])
