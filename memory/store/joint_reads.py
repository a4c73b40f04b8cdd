"""Joint reads: what several functions read of a store at the same time goes out as one batch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from langgraph.store.base import BaseStore, Op, Result


class JointReads(BaseStore):
    """A store for functions that run side by side; their reads of one moment are one batch of the store behind it.

        reads = JointReads.of(store)
        superseded, judgements = await asyncio.gather(find_superseded(reads), find_judgements(reads))

    Each batch costs its way to a thread and back, a transaction, or a round trip to a server. What one of the functions
    reads next waits for the others only as long as they have something to read at that moment, too. If the batch fails,
    all of them fail. For reads alone: a batch of LangGraph's does not order writes and reads.
    """

    def __init__(self, store: BaseStore) -> None:
        self._store = store
        self.ttl_config = getattr(store, "ttl_config", None)
        self._calls: list[tuple[list[Op], asyncio.Future[list[Result]]]] = []
        self._sending: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, store: BaseStore) -> JointReads:
        """Return a store whose reads are joined; the same one if they are already."""
        return store if isinstance(store, cls) else cls(store)

    def __getattr__(self, name: str) -> Any:
        """Return what the store behind it says of itself, such as `filters_any`."""
        return getattr(self._store, name)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations at once."""
        return self._store.batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations together with those that others ask for at the same time."""
        loop = asyncio.get_running_loop()
        results: asyncio.Future[list[Result]] = loop.create_future()
        self._calls.append((list(ops), results))
        if len(self._calls) == 1:
            self._sending = loop.create_task(self._send())
        return await results

    async def _send(self) -> None:
        waiting = 0
        while waiting < len(self._calls):  # until nobody has added anything in a tick of the loop
            waiting = len(self._calls)
            await asyncio.sleep(0)
        calls, self._calls = self._calls, []
        try:
            done = iter(await self._store.abatch([op for ops, _ in calls for op in ops]))
        except Exception as error:  # noqa: BLE001 (any store may be behind this; each caller gets the error)
            for _, results in calls:
                if not results.done():
                    results.set_exception(error)
            return
        for ops, results in calls:
            part = [next(done) for _ in ops]
            if not results.done():  # else its caller was cancelled
                results.set_result(part)
