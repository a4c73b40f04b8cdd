"""`SyncHistory`: `History` for a sync caller, also with stores and checkpointers that have only sync methods."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from questbook.graphs.history.history import History
from questbook.graphs.history.tree import PlayedTurn
from questbook.graphs.history.view import Graph
from questbook.graphs.settings import Settings
from questbook.memory.store.any_store import SyncStore, refuse_own_loop
from questbook.memory.sync import run_sync

P = ParamSpec("P")
ResultT = TypeVar("ResultT")

_PAGE = 50  # checkpoints that are read at once


def _sync(
    method: Callable[Concatenate[History, P], Coroutine[Any, Any, ResultT]],
) -> Callable[Concatenate[SyncHistory, P], ResultT]:
    @wraps(method)
    def call(self: SyncHistory, /, *args: P.args, **kwargs: P.kwargs) -> ResultT:
        return run_sync(method(self.history, *args, **kwargs))

    return call


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

    Attributes:
        history: The `History` behind it.

    Raises:
        asyncio.InvalidStateError: Checkpointer or store belong to the event loop that is running: use `History`.
    """

    def __init__(self, graph: Graph, config: RunnableConfig, context: Settings) -> None:
        saver, store = graph.checkpointer, graph.store
        through = {
            "checkpointer": _SyncSaver(saver) if isinstance(saver, BaseCheckpointSaver) else saver,
            "store": SyncStore(store) if store is not None else None,
        }
        self.history = History(graph.copy(through), config, context)

    current_state = _sync(History.current_state)
    current_turn = _sync(History.current_turn)
    before_upkeep = _sync(History.before_upkeep)
    end_of_turn = _sync(History.end_of_turn)
    end_of = _sync(History.end_of)
    turns = _sync(History.turns)
    line_names = _sync(History.line_names)
    find = _sync(History.find)
    difference = _sync(History.difference)
    undo = _sync(History.undo)
    rewind = _sync(History.rewind)
    retry = _sync(History.retry)
    last_question = _sync(History.last_question)
    last_message = _sync(History.last_message)
    name_line = _sync(History.name_line)
    finished_state = _sync(History.finished_state)
    write = _sync(History.write)
    go = _sync(History.go)
    enter = _sync(History.enter)

    def config_of(self, played: PlayedTurn) -> RunnableConfig:
        """Return the config of the checkpoint that wrote a turn; see `History.config_of`."""
        return self.history.config_of(played)


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

    async def aput(self, *given: Any, **named: Any) -> RunnableConfig:
        return await asyncio.to_thread(self._saver.put, *given, **named)

    async def aput_writes(self, *given: Any, **named: Any) -> None:
        await asyncio.to_thread(self._saver.put_writes, *given, **named)
