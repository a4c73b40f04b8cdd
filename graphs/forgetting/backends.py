"""What can be done to which store and checkpointer: the one place that asks of what class they are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from questbook.graphs.errors import ForgettingError
from questbook.graphs.forgetting import postgres
from questbook.graphs.forgetting.erasure import Cutting, Erasure
from questbook.memory.store.any_store import SyncStore
from questbook.memory.store.faiss_store import FaissStore


def erasure_of(checkpointer: BaseCheckpointSaver[Any] | None) -> Cutting | None:
    """Return what takes things out of a checkpointer's checkpoints; None if nothing does.

    Raises:
        ForgettingError: It has no asynchronous methods. Nothing was changed.
    """
    if isinstance(checkpointer, (SqliteSaver, *postgres.SYNC_SAVERS)):
        name = type(checkpointer).__name__
        raise ForgettingError(
            f"{name} has no asynchronous methods: open its database with Async{name} to forget in it. "
            "Nothing was changed."
        )
    if isinstance(checkpointer, AsyncSqliteSaver):
        return Erasure(checkpointer)
    return postgres.PostgresErasure(checkpointer) if isinstance(checkpointer, postgres.SAVERS) else None


async def delete_threads(saver: BaseCheckpointSaver[Any], threads: Iterable[str]) -> int:
    """Delete every checkpoint of threads, with any checkpointer; return how many threads there were.

    Raises:
        ForgettingError: The checkpointer cannot delete threads.
    """
    count = 0
    for thread in sorted(set(threads)):
        count += await saver.aget_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}) is not None
        try:
            await saver.adelete_thread(thread)
        except NotImplementedError as error:
            raise ForgettingError(
                f"{type(saver).__name__} cannot delete threads: delete {', '.join(sorted(set(threads)))} by its own "
                "means. Memories and everything else of the campaign were not changed."
            ) from error
    return count


async def compact(
    store: BaseStore, checkpointer: BaseCheckpointSaver[Any] | None, erasure: Cutting | None, done: str, *, cut: bool
) -> None:
    """Write the databases of a store and a checkpointer again, so that no deleted byte stays in a file.

    Args:
        store: The store.
        checkpointer: The checkpointer.
        erasure: That of the checkpointer.
        done: What was done, for the error message.
        cut: Whether words were to be cut out of checkpoints.

    Raises:
        ForgettingError: Something could not be done here. The message says what, and what was done.
    """
    problems: list[str] = []
    store = store.store if isinstance(store, SyncStore) else store
    if isinstance(store, FaissStore):
        await asyncio.to_thread(store.compact)
    elif isinstance(store, postgres.STORES):
        await postgres.vacuum(store, postgres.STORE_TABLES)
    elif not isinstance(store, InMemoryStore):
        name = type(store).__name__
        problems.append(f"{name} may keep deleted rows in its files until it is vacuumed by its own means")
    if erasure is not None:
        await erasure.compact()
    elif cut and checkpointer is not None:
        problems.append(
            f"the checkpoints of {type(checkpointer).__name__} were not changed and may still hold it: "
            "only those of AsyncSqliteSaver and AsyncPostgresSaver can be changed; delete the threads there"
        )
    if problems:
        raise ForgettingError(f"{done}, but {'; '.join(problems)}.")
