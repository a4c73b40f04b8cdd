"""Upkeep: what a turn does after its reply, such as taking notes. It keeps nobody waiting.

A model may take a minute for notes or a summary. When the person's next message comes meanwhile, `give_way` stops the
model's call, and the turn ends without its result. Nothing is lost: the turn's channels say what was not noted,
reflected on or summarised yet, and a later turn does it. What else a node of the upkeep does, above all its writes to
the store, gives way to nothing: it is short, and must not be half done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TypeVar

from langgraph.runtime import Runtime
from langgraph_sdk import get_client

from questbook.graphs.turn.scope import run_thread

ResultT = TypeVar("ResultT")

PATIENCE = 1.5
"""Seconds that the person's next message waits for upkeep to finish by itself."""
LONGEST_WRITE = 30.0
"""Seconds that it waits for what must not be stopped."""
_POLL = 0.5  # seconds between two looks at a server's queue

_log = logging.getLogger(__name__)


class Upkeep:
    """The upkeep of one run.

    Attributes:
        next_message: Is set when the person's next message waits.
        stoppable: Is set unless a node does what must not be stopped, such as a write to the store.
    """

    def __init__(self) -> None:
        self.next_message, self.stoppable = asyncio.Event(), asyncio.Event()
        self._unbroken = 0
        self.stoppable.set()

    def count(self, change: int) -> None:
        """Count what must not be stopped."""
        self._unbroken += change
        if self._unbroken > 0:
            self.stoppable.clear()
        else:
            self.stoppable.set()


_upkeep: ContextVar[Upkeep | None] = ContextVar("upkeep", default=None)


class GaveWay(Exception):  # noqa: N818 (no error: a later turn does the work)
    """Work of the upkeep was stopped, because the person's next message waits."""


def give_way_on(upkeep: Upkeep) -> None:
    """Have the upkeep of graphs that run in this task give way as soon as its `next_message` is set."""
    _upkeep.set(upkeep)


@contextmanager
def unbroken() -> Iterator[None]:
    """Say that what is done in here must not be stopped, except for the work that `give_way` does."""
    with _counted(1):
        yield


@contextmanager
def _counted(change: int) -> Iterator[None]:
    upkeep = _upkeep.get() or Upkeep()
    upkeep.count(change)
    try:
        yield
    finally:
        upkeep.count(-change)


async def give_way(work: Coroutine[Any, Any, ResultT], runtime: Runtime[Any]) -> ResultT:
    """Do work of the upkeep, unless the person's next message waits: then stop it.

    Whether one waits is said by the event of `give_way_on`; on LangGraph Server, by the runs that the thread has in its
    queue. Elsewhere the work is never stopped.

    Raises:
        GaveWay: It was stopped. What it has written to a store stays; call this for work that writes nothing.
    """
    upkeep = _upkeep.get()
    next_message = upkeep.next_message if upkeep else None
    if next_message is not None and next_message.is_set():
        work.close()
        raise GaveWay
    task, message = asyncio.create_task(work), asyncio.create_task(_message_waits(next_message, runtime))
    with _counted(-1):
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
    thread = run_thread(runtime)
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
