"""Sync twins: `recall_sync`, `remember_sync` and `claim_sync` do for a sync caller what the names without `_sync` do.

They call a store's sync methods, so they work with stores that have no others, such as LangGraph's `SqliteStore`, and
inside a running event loop, which they block meanwhile, as the store's sync methods do.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from langgraph.store.base import BaseStore, Op, Result

from questbook.memory.recall.recall import recall
from questbook.memory.timeline.timeline import claim, remember

P = ParamSpec("P")
ResultT = TypeVar("ResultT")
StoreT = TypeVar("StoreT", bound=BaseStore | None)


class SyncStore(BaseStore):
    """Another store as asynchronous code sees it, by its sync methods alone.

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
    """Return a store as it is, or a `SyncStore` of LangGraph's `SqliteStore`, which has sync methods alone.

    Of a store of others that has sync methods alone, make a `SyncStore` before it is passed to a graph.
    """
    sqlite = sys.modules.get("langgraph.store.sqlite.base")  # loaded if there is such a store; it loads numpy
    return SyncStore(store) if sqlite and isinstance(store, sqlite.SqliteStore) else store


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
    """Refuse a sync call to a store or checkpointer whose methods run in the event loop that the call would block.

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


def _twin(function: Callable[P, Coroutine[Any, Any, ResultT]]) -> Callable[P, ResultT]:
    """Return a sync function that does what an asynchronous one does with its argument `store`."""
    signature = inspect.signature(function)

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> ResultT:
        bound = signature.bind(*args, **kwargs)
        bound.arguments["store"] = SyncStore(bound.arguments["store"])
        return run_sync(function(*bound.args, **bound.kwargs))

    run.__module__, run.__name__ = __name__, f"{function.__name__}_sync"
    return run


recall_sync = _twin(recall)
"""Return the records that fit a question best, best first; see `recall`."""
remember_sync = _twin(remember)
"""Write exchanges as records; return the timeline, as it is now; see `remember`."""
claim_sync = _twin(claim)
"""Claim a turn before it writes; return the timeline, forked if another run has claimed it; see `claim`."""
