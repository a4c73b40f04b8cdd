"""Compaction: databases are written again after something was forgotten, so that no deleted byte stays in a file."""

from __future__ import annotations

import asyncio
from typing import Any

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from questbook.graphs.errors import ForgettingError
from questbook.graphs.forgetting.erasure import Erasure
from questbook.graphs.forgetting.postgres import STORE_TABLES, PostgresErasure, is_a, vacuum
from questbook.memory.store.faiss_store import FaissStore


async def compact(
    store: BaseStore, checkpointer: Any, erasure: Erasure | PostgresErasure | None, done: str, *, cut: bool
) -> None:
    """Write the databases of a store and a checkpointer again, as far as that is possible.

    Args:
        store: The store.
        checkpointer: The checkpointer; None if there is none.
        erasure: What takes things out of its checkpoints; None if nothing does.
        done: What was done, for the error message.
        cut: Whether words were to be cut out of checkpoints.

    Raises:
        ForgettingError: Something could not be done here. The message says what, and what was done.
    """
    problems: list[str] = []
    if isinstance(store, FaissStore):
        await asyncio.to_thread(store.compact)
    elif is_a(store, "AsyncPostgresStore") or is_a(store, "PostgresStore"):
        await vacuum(store, STORE_TABLES)
    elif not isinstance(store, InMemoryStore):
        name = type(getattr(store, "store", store)).__name__  # one without async methods is inside another
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
