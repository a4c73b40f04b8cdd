"""Sync twins: `recall_sync`, `remember_sync` and `claim_sync` do for a sync caller what the names without `_sync` do.

They call a store's sync methods, so they work with stores that have no others, such as LangGraph's `SqliteStore`, and
inside a running event loop, which they block meanwhile, as the store's sync methods do.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from langgraph.store.base import BaseStore, Op, PutOp, Result

from questbook.memory.recall.query import Query, Recalled
from questbook.memory.recall.recall import recall
from questbook.memory.timeline.remember import Said, remember
from questbook.memory.timeline.timeline import Segment, claim

ResultT = TypeVar("ResultT")
StoreT = TypeVar("StoreT", bound=BaseStore | None)


class SyncStore(BaseStore):
    """Another store as asynchronous code sees it, by its sync methods alone.

    Args:
        store: Any store.

    Raises:
        asyncio.InvalidStateError: It is an asynchronous store of the event loop that is running, which would wait for
            itself.
    """

    def __init__(self, store: BaseStore) -> None:
        refuse_own_loop(store, getattr(store, "_loop", None))
        self.store = store
        self.supports_ttl = store.supports_ttl

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)  # its index, and what it says of its searches

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations."""
        return self.store.batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations in a thread, by the store's sync method."""
        return await asyncio.to_thread(self.store.batch, ops)


def with_async_methods(store: StoreT) -> StoreT | SyncStore:
    """Return a store as it is, or a `SyncStore` of it if it has only sync methods, as LangGraph's `SqliteStore`."""
    if store is None or isinstance(store, SyncStore):
        return store
    code = getattr(type(store).abatch, "__code__", None)  # to call it would be to use the store
    return SyncStore(store) if code and "NotImplementedError" in code.co_names else store


def recall_sync(
    store: BaseStore, namespaces: tuple[str, ...] | Sequence[tuple[str, ...]], query: str | Query
) -> list[Recalled]:
    """Return the records that fit a question best, best first; see `recall`."""
    return run_sync(recall(SyncStore(store), namespaces, query))


def remember_sync(
    store: BaseStore,
    namespace: tuple[str, ...],
    exchange: Said | Sequence[Said],
    *,
    turn: int | None = None,
    timeline: Sequence[Segment] | None = None,
    claims: tuple[str, ...] | None = None,
    provenance: Mapping[str, Any] | None = None,
    also: Callable[[list[Segment]], Iterable[PutOp]] = lambda _: (),
) -> list[Segment]:
    """Write exchanges as records; return the timeline, as it is now; see `remember`."""
    written = remember(
        SyncStore(store),
        namespace,
        exchange,
        turn=turn,
        timeline=timeline,
        claims=claims,
        provenance=provenance,
        also=also,
    )
    return run_sync(written)


def claim_sync(
    store: BaseStore, namespace: tuple[str, ...], timeline: Sequence[Segment], turn: int, owner: str
) -> list[Segment]:
    """Claim a turn before it writes; return the timeline, forked if another run has claimed it; see `claim`."""
    return run_sync(claim(SyncStore(store), namespace, timeline, turn, owner))


def run_sync(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Do asynchronous work for a sync caller, in one event loop kept for all of them, and wait for it.

    One loop, because HTTP clients stay bound to the loop that opened their connections.
    """
    context, loop = contextvars.copy_context(), _sync_loop()
    if _running_loop() is loop:  # a sync call in the midst of such work: the loop cannot wait for itself
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(context.run, asyncio.run, work).result()

    async def run() -> ResultT:
        return await asyncio.create_task(work, context=context)

    future = asyncio.run_coroutine_threadsafe(run(), loop)
    try:
        return future.result()
    finally:
        future.cancel()  # the caller was interrupted: so is the work


def refuse_own_loop(owner: object, loop: object) -> None:
    """Refuse a sync call that would wait for the event loop that it blocks.

    Args:
        owner: A store or checkpointer.
        loop: The event loop in which its methods run; None if it needs none.

    Raises:
        asyncio.InvalidStateError: That loop is running in this thread.
    """
    if loop is not None and loop is _running_loop():
        raise asyncio.InvalidStateError(
            f"A sync call to {type(owner).__name__} inside its own event loop would wait for ever. Use the "
            "asynchronous functions here (recall, remember, claim, History), or a sync store and checkpointer."
        )


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@cache
def _sync_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="questbook-sync", daemon=True).start()
    return loop
