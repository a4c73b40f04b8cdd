"""Sync twins: `recall_sync`, `remember_sync` and `claim_sync` do for a sync caller what the names without `_sync` do.

They call a store's sync methods, so they work with stores that have no others, such as LangGraph's `SqliteStore`, and
inside a running event loop, which they block meanwhile, as the store's sync methods do.
"""

import asyncio
import contextvars
import inspect
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from questbook.memory.recall.recall import recall
from questbook.memory.store.any_store import SyncStore
from questbook.memory.timeline.timeline import claim, remember

P = ParamSpec("P")
ResultT = TypeVar("ResultT")


def run_sync(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Do asynchronous work for a sync caller, in one event loop kept for all of them, and wait for it.

    One loop, because HTTP clients stay bound to the loop that opened their connections.
    """
    context, loop = contextvars.copy_context(), _sync_loop()
    if asyncio._get_running_loop() is loop:  # a sync call in the midst of such work: the loop cannot wait for itself
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(context.run, asyncio.run, work).result()

    async def run() -> ResultT:
        return await asyncio.create_task(work, context=context)

    future = asyncio.run_coroutine_threadsafe(run(), loop)
    try:
        return future.result()
    finally:
        future.cancel()  # the caller was interrupted: so is the work


@cache
def _sync_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="questbook-sync", daemon=True).start()
    return loop


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_sync_loop.cache_clear)  # threads do not survive a fork


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
