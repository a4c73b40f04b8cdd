"""Asynchronous work for sync callers: one event loop, in a thread of its own, is kept for all of them."""

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

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


async def in_own_thread(work: Callable[[], ResultT]) -> ResultT:
    """Work in a thread that is none of the event loop's own, which what it waits for in this loop may need."""
    pool, context = ThreadPoolExecutor(1), contextvars.copy_context()
    try:
        return await asyncio.get_running_loop().run_in_executor(pool, context.run, work)
    finally:
        pool.shutdown(wait=False)


_lock = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


def _sync_loop() -> asyncio.AbstractEventLoop:
    with _lock:
        if not _loops:
            _loops.append(asyncio.new_event_loop())
            threading.Thread(target=_loops[0].run_forever, name="questbook-sync", daemon=True).start()
        return _loops[0]


def _begin_process() -> None:
    global _lock
    _lock = threading.Lock()  # a thread that the fork left behind may hold the other
    _loops.clear()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_begin_process)  # threads do not survive a fork
