"""`SyncHistory`: `History` for a sync caller, also with stores and checkpointers that have only sync methods."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.types import StateSnapshot

from questbook.graphs.history.history import History, LastMessage, LastQuestion, Replay
from questbook.graphs.history.tree import PlayedTurn
from questbook.graphs.history.view import Difference, Graph
from questbook.graphs.settings import Settings
from questbook.memory.sync import SyncStore, refuse_own_loop, run_sync
from questbook.memory.timeline.timeline import Segment

_PAGE = 50  # checkpoints that are read at once


class SyncHistory:
    """What was played in a campaign, and moves between its turns: `History` with sync methods of the same names.

        history = SyncHistory(graph, config, context)
        history.undo()
        replay = history.retry()
        graph.invoke(None, replay.config, context=replay.context)

    Args:
        graph: Compiled with checkpointer and store.
        config: Names the thread; its other keys are passed on to every run.
        context: The settings of the runs; user and campaign say where the records are.

    Raises:
        asyncio.InvalidStateError: Checkpointer or store belong to the event loop that is running: use `History`.
    """

    def __init__(self, graph: Graph, config: RunnableConfig, context: Settings) -> None:
        through = {
            "checkpointer": _SyncSaver(graph.checkpointer)
            if isinstance(graph.checkpointer, BaseCheckpointSaver)
            else graph.checkpointer,
            "store": SyncStore(graph.store) if graph.store is not None else None,
        }
        self._history = History(graph.copy(through), config, context)

    def current_state(self) -> StateSnapshot:
        """Return the thread's last state; see `History.current_state`."""
        return run_sync(self._history.current_state())

    def current_turn(self) -> Segment | None:
        """Return branch and number of the last remembered turn of the thread; see `History.current_turn`."""
        return run_sync(self._history.current_turn())

    def before_upkeep(self) -> StateSnapshot | None:
        """Return the state right after the last reply; see `History.before_upkeep`."""
        return run_sync(self._history.before_upkeep())

    def end_of_turn(self, number: int) -> StateSnapshot:
        """Return the state at the end of an earlier turn on the way to here; see `History.end_of_turn`."""
        return run_sync(self._history.end_of_turn(number))

    def end_of(self, played: PlayedTurn) -> StateSnapshot:
        """Return the state with which a turn ended, whichever thread played it; see `History.end_of`."""
        return run_sync(self._history.end_of(played))

    def turns(self) -> list[PlayedTurn]:
        """Return all turns of the campaign; see `History.turns`."""
        return run_sync(self._history.turns())

    def line_names(self) -> dict[str, Segment]:
        """Return the names of lines, and where each ends; see `History.line_names`."""
        return run_sync(self._history.line_names())

    def find(self, where: str) -> PlayedTurn:
        """Return the turn that a name of a line, a branch or a turn means; see `History.find`."""
        return run_sync(self._history.find(where))

    def difference(self, one: str, other: str = "") -> Difference:
        """Return what two places disagree on; see `History.difference`."""
        return run_sync(self._history.difference(one, other))

    def config_of(self, played: PlayedTurn) -> RunnableConfig:
        """Return the config of the checkpoint that wrote a turn; see `History.config_of`."""
        return self._history.config_of(played)

    def undo(self, turns: int = 1) -> StateSnapshot:
        """Go back by a number of turns; return the state there; see `History.undo`."""
        return run_sync(self._history.undo(turns))

    def rewind(self, turn: int) -> StateSnapshot:
        """Go back to the end of a turn; return the state there; see `History.rewind`."""
        return run_sync(self._history.rewind(turn))

    def retry(self, *, dice: bool = False) -> Replay:
        """Return how to play the last turn again, in other words; see `History.retry`."""
        return run_sync(self._history.retry(dice=dice))

    def last_question(self) -> LastQuestion | None:
        """Return the state from which the model was asked for the last reply; see `History.last_question`."""
        return run_sync(self._history.last_question())

    def last_message(self) -> LastMessage:
        """Return the person's last message, and how to replace it; see `History.last_message`."""
        return run_sync(self._history.last_message())

    def name_line(self, name: str) -> None:
        """Name the line of play from here on; see `History.name_line`."""
        run_sync(self._history.name_line(name))

    def finished_state(self) -> StateSnapshot:
        """Return the state of the last finished turn; see `History.finished_state`."""
        return run_sync(self._history.finished_state())

    def write(self, update: Mapping[str, Any]) -> StateSnapshot:
        """Write to the state as a person's edit; return the new one; see `History.write`."""
        return run_sync(self._history.write(update))

    def go(self, where: str) -> StateSnapshot:
        """Go to the end of a line, a branch or a turn; return the state there; see `History.go`."""
        return run_sync(self._history.go(where))

    def enter(self, threads: Sequence[str]) -> bool:
        """Go to where the campaign stands, if the thread is new; see `History.enter`."""
        return run_sync(self._history.enter(threads))


class _SyncSaver(BaseCheckpointSaver[Any]):
    """Another checkpointer as asynchronous code sees it, by its sync methods alone."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        refuse_own_loop(saver, getattr(saver, "loop", None))
        super().__init__(serde=saver.serde)
        self._saver = saver

    @property
    def config_specs(self) -> list[Any]:
        return self._saver.config_specs

    def get_next_version(self, current: Any, channel: None) -> Any:
        return self._saver.get_next_version(current, channel)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self._saver.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        def read(before: RunnableConfig | None, limit: int) -> list[CheckpointTuple]:
            return list(self._saver.list(config, filter=filter, before=before, limit=limit))

        left = sys.maxsize if limit is None else limit
        # Page by page: LangGraph's SqliteSaver lets nobody else in while a listing is open.
        while left and (page := await asyncio.to_thread(read, before, min(left, _PAGE))):
            for saved in page:
                yield saved
            left, before = left - len(page), page[-1].config

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await asyncio.to_thread(self._saver.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await asyncio.to_thread(self._saver.put_writes, config, writes, task_id, task_path)
