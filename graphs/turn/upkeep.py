"""Upkeep: what a turn does after its reply, such as taking notes. It keeps nobody waiting.

A model may take a minute for notes or a summary. When the person's next message comes meanwhile, `give_way` stops the
model's call, and the turn ends without its result. Nothing is lost: the turn's channels say what was not noted,
reflected on or summarised yet, and a later turn does it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TypeVar

from langgraph.runtime import Runtime
from langgraph_sdk import get_client

ResultT = TypeVar("ResultT")

PATIENCE = 1.5
"""Seconds that the person's next message waits for upkeep to finish by itself."""
_POLL = 0.5  # seconds between two looks at a server's queue

_next_message: ContextVar[asyncio.Event | None] = ContextVar("next_message", default=None)
_log = logging.getLogger(__name__)


class GaveWay(Exception):  # noqa: N818 (no error: a later turn does the work)
    """Work of the upkeep was stopped, because the person's next message waits."""


def give_way_on(next_message: asyncio.Event) -> None:
    """Have the upkeep of graphs that run in this task give way as soon as the event is set."""
    _next_message.set(next_message)


async def give_way(work: Coroutine[Any, Any, ResultT], runtime: Runtime[Any]) -> ResultT:
    """Do work of the upkeep, unless the person's next message waits: then stop it.

    Whether one waits is said by the event of `give_way_on`; on LangGraph Server, by the runs that the thread has in its
    queue. Elsewhere the work is never stopped.

    Raises:
        GaveWay: It was stopped. What it has written to a store stays; call this for work that writes nothing.
    """
    next_message = _next_message.get()
    if next_message is not None and next_message.is_set():
        work.close()
        raise GaveWay
    task, message = asyncio.create_task(work), asyncio.create_task(_message_waits(next_message, runtime))
    try:
        await asyncio.wait({task, message}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise GaveWay
        return task.result()
    finally:
        task.cancel()
        message.cancel()
        await asyncio.wait({task, message}, timeout=_POLL)  # work that does not stop is left behind


async def _message_waits(next_message: asyncio.Event | None, runtime: Runtime[Any]) -> None:
    """Return when the person's next message has waited long enough."""
    thread = runtime.execution_info.thread_id if runtime.execution_info else None
    if next_message is None and runtime.server_info is not None and thread:
        try:
            await _run_waits(thread)
        except Exception as error:  # noqa: BLE001 (a server's client has errors of many kinds; upkeep works without)
            _log.warning("Thread %s: whether a message waits is not known: %s", thread, error)
        else:
            await asyncio.sleep(PATIENCE - _POLL)
            return
    await (next_message or asyncio.Event()).wait()


async def _run_waits(thread: str) -> None:
    """Return when a run of the thread is due and waits in the server's queue."""
    async with get_client() as client:
        while True:
            runs = await client.runs.list(thread, status="pending", limit=10)
            # The time of a run that is to begin later (`after_seconds`) lies ahead.
            if any(datetime.fromisoformat(str(run["created_at"])) <= datetime.now(UTC) for run in runs):
                return
            await asyncio.sleep(_POLL)
