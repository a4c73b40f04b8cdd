"""`Run`: one run of a graph in a task of its own, whose upkeep goes on when nobody reads its events any more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from questbook.graphs.events import Event, NodeStart, Notice

if TYPE_CHECKING:
    from questbook.graphs.turn.node import Upkeep

_log = logging.getLogger(__name__)


class Run:
    """A run that has begun; `questbook.graphs.events.read_stream` yields what happens in it."""

    def __init__(self, events: AsyncGenerator[Event]) -> None:
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._replied = asyncio.Event()
        self._upkeep: Upkeep | None = None
        self._task = asyncio.create_task(self._work(events))
        self._is_read = False

    @property
    def in_upkeep(self) -> bool:
        """Whether the reply is complete and the run still works."""
        return self._replied.is_set() and not self._task.done()

    async def events(self) -> AsyncGenerator[Event]:
        """Yield what happens. A reader who leaves before the reply is complete stops the run."""
        self._is_read = True
        try:
            while (event := await self._events.get()) is not None:
                yield event
            await self._task
        except (GeneratorExit, asyncio.CancelledError):
            self._is_read = False
            raise
        finally:
            if not self._replied.is_set():
                self._task.cancel()
                await asyncio.wait({self._task})

    async def wait(self, seconds: float) -> None:
        """Wait for the reply, then at most so many seconds for the upkeep."""
        await self._replied.wait()
        await asyncio.wait({self._task}, timeout=seconds)

    async def finish(self) -> list[Notice]:
        """End the run before the next message: wait for the reply, and at most two seconds for the upkeep.

        After three quarters of that the upkeep is asked to give way; what does not is cancelled. But what is being
        written to the store or in a node's last steps is waited for, at most half a minute.

        Returns:
            The notices that nobody reads any more, an error of the upkeep among them.
        """
        from questbook.graphs.turn.node import LONGEST_WRITE, PATIENCE  # LangGraph, which came with the run

        await self.wait(PATIENCE)
        unread = list[Notice]()

        def note(text: str) -> None:
            unread.append(Notice({"turn": 0, "node": "upkeep", "text": text}))

        if self._upkeep is not None:
            self._upkeep.next_message.set()
            await self.wait(PATIENCE / 3)
            try:
                async with asyncio.timeout(LONGEST_WRITE):
                    while not self._task.done() and not self._upkeep.stoppable.is_set():
                        await self._upkeep.stoppable.wait()
                        await self.wait(PATIENCE / 3)  # for its checkpoint, and what gives way after it
            except TimeoutError:
                _log.warning("What follows the reply was stopped in a write that took over %g s.", LONGEST_WRITE)
                note("Memory took too long to write what follows the reply, so it was stopped; the next turn does it.")
        self._task.cancel()
        await asyncio.wait({self._task})
        if self._is_read:
            return unread
        while not self._events.empty():
            if isinstance(event := self._events.get_nowait(), Notice):
                unread.append(event)
        error = None if self._task.cancelled() else self._task.exception()
        if error is not None:
            _log.warning("What follows the reply was not finished: %s", error, exc_info=error)
            note(f"What follows the reply was not finished; the next turn will do it. {error}")
        return unread

    async def _work(self, events: AsyncGenerator[Event]) -> None:
        from questbook.graphs.turn.node import Upkeep, give_way_on

        self._upkeep = Upkeep()
        give_way_on(self._upkeep)
        try:
            async with aclosing(events) as stream:
                async for event in stream:
                    if isinstance(event, NodeStart) and event.upkeep:
                        self._replied.set()
                    self._events.put_nowait(event)
        finally:
            self._replied.set()
            self._events.put_nowait(None)
