"""Copies: a checkpoint of one thread as the newest of another, so that a thread can go where another has been."""

from __future__ import annotations

from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointMetadata, create_checkpoint
from langgraph.types import StateSnapshot

from questbook.graphs.errors import HistoryError

_ORIGIN: Literal["copied_from"] = "copied_from"
"""Field of a copy's metadata: the thread and the checkpoint that it was made of."""


def thread_of(state: StateSnapshot) -> str:
    """Return the thread that a state stands on."""
    return str(state.config["configurable"]["thread_id"])


def origin_of(state: StateSnapshot) -> dict[str, Any] | None:
    """Return the `configurable` of the checkpoint that a state was copied from; None if it was made on its thread."""
    metadata: dict[str, Any] = {**(state.metadata or {})}
    return metadata.get(_ORIGIN)


async def copy_to(saver: BaseCheckpointSaver[Any], state: StateSnapshot, config: RunnableConfig) -> RunnableConfig:
    """Write a copy of a state on another thread, where it follows nothing; return its config.

    Args:
        saver: Holds the checkpoints of both threads.
        state: What is copied.
        config: Names the other thread; its metadata goes with the copy.

    Raises:
        HistoryError: The checkpoint is gone.
    """
    found = await saver.aget_tuple(state.config)
    if found is None:
        raise HistoryError(f"The checkpoint that was to be copied from thread {thread_of(state)} is gone.")
    step = found.metadata.get("step", 0) + 1
    origin = {name: state.config["configurable"][name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id")}
    metadata: CheckpointMetadata = {"source": "fork", "step": step, "parents": {}, _ORIGIN: origin}  # type: ignore[typeddict-unknown-key]  # savers keep any field
    where: RunnableConfig = {**config, "configurable": {**config["configurable"], "checkpoint_ns": ""}}
    checkpoint = create_checkpoint(found.checkpoint, None, step)
    return await saver.aput(where, checkpoint, metadata, checkpoint["channel_versions"])
