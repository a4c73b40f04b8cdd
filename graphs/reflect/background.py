"""Where a reflection runs in the background: in the queue of LangGraph's server, or in this process.

In the process it needs a program that lives on after the turn, and waits for it at its own end: one that has entered
`process_queue`, such as a server that has no queue for us. Each thread has one run that works and one that waits; a few
threads work at once. What is lost with the process, or fails, is due again at the next turn.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import Context
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from langgraph.runtime import Runtime

from questbook.graphs.reflect.graph import build_graph
from questbook.graphs.settings import ReflectContext
from questbook.graphs.turn import api_server
from questbook.graphs.turn.state import Notice, failure_notice, notice
from questbook.types import JSON

_QUIET_SECONDS = 5  # that a run waits for the person's next turn
_AT_ONCE = 4  # runs in this process
_MOST_THREADS = 1000  # that wait in this process, and whose last run it remembers
_BROKE_OFF = "The work in the background broke off; nothing is lost, and it will be taken up again."


class NoBackgroundError(Exception):
    """There is no background here, or too much waits in it."""


class ServerQueue:
    """Runs of `reflect` on LangGraph's server: each on a thread of the reflection's own."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def last_run(self, thread: str, turn: int) -> tuple[str, list[Notice]] | None:
        """Return the id of a thread's last run, "" if there was none, and its notices; None while one waits or runs."""
        await self._client.threads.create(thread_id=thread, if_exists="do_nothing", graph_id="reflect")
        for status in ("pending", "running"):
            if await self._client.runs.list(thread, status=status, limit=1):
                return None
        runs = await self._client.runs.list(thread, limit=1)  # the newest is first
        made = await self._client.threads.get(thread)
        broke_off = [notice(turn, "reflect", _BROKE_OFF)] if made.get("status") == "error" else []
        return next((run["run_id"] for run in runs), ""), _notices_in(made.get("values")) + broke_off

    async def begin(self, thread: str, start: JSON, runtime: Runtime[Any]) -> None:
        """Begin a run on a thread, with the settings of a turn."""
        context = runtime.context.model_dump(mode="json", include=set(ReflectContext.model_fields))
        how: JSON = {"after_seconds": _QUIET_SECONDS, "multitask_strategy": "enqueue"}
        await self._client.runs.create(thread, "reflect", input=start, context=context, **how)


class ProcessQueue:
    """The same in this process; of the runs of a thread that wait, the newest does the others' work."""

    def __init__(self) -> None:
        self._waiting: dict[str, Callable[[], Awaitable[JSON]]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._last: dict[str, tuple[str, list[Notice]]] = {}
        self._slots, self._ends = asyncio.Semaphore(_AT_ONCE), asyncio.Event()

    async def last_run(self, thread: str, _turn: int) -> tuple[str, list[Notice]] | None:
        """Do as `ServerQueue.last_run`."""
        return None if thread in self._tasks else self._last.get(thread, ("", []))

    async def begin(self, thread: str, start: JSON, runtime: Runtime[Any]) -> None:
        """Do as `ServerQueue.begin`."""
        if len(self._tasks.keys() - {thread}) >= _MOST_THREADS:
            raise NoBackgroundError(f"{_MOST_THREADS} threads wait for theirs")
        graph = build_graph().compile(checkpointer=False, store=runtime.store)
        config = {"configurable": {"thread_id": thread}}  # whose lock keeps other processes from the same work
        self._waiting[thread] = partial(graph.ainvoke, start, config, context=runtime.context)
        if thread not in self._tasks:  # in a context of its own: the stream of the turn's run will have ended
            self._tasks[thread] = asyncio.create_task(self._work(thread, start["turn"]), context=Context())

    async def drain(self, seconds: float) -> None:
        """Wait so long for what is left, without quiet; then cancel it."""
        self._ends.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*self._tasks.values(), return_exceptions=True), seconds)

    async def _work(self, thread: str, turn: int) -> None:
        try:
            while thread in self._waiting:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ends.wait(), _QUIET_SECONDS)
                async with self._slots:
                    notices = await self._run(self._waiting.pop(thread), turn)
                self._last = dict([*self._last.items()][1 - _MOST_THREADS :]) | {thread: (uuid.uuid4().hex, notices)}
        finally:
            del self._tasks[thread]

    async def _run(self, run: Callable[[], Awaitable[JSON]], turn: int) -> list[Notice]:
        try:
            return _notices_in(await run())
        except Exception as error:  # noqa: BLE001 (whatever it is, the next turn says so, and begins again)
            return [failure_notice(turn, "reflect", _BROKE_OFF, error)]


def _notices_in(values: JSON | None) -> list[Notice]:
    """Return the notices of a run's last state."""
    return [entry for entry in (values or {}).get("notices") or [] if entry["turn"] == (values or {}).get("turn")]


_queues: WeakKeyDictionary[asyncio.AbstractEventLoop, ProcessQueue] = WeakKeyDictionary()


@asynccontextmanager
async def process_queue(drain_seconds: float) -> AsyncIterator[None]:
    """Let turns of this event loop leave work to this process; at the end, wait so long for what is left."""
    loop = asyncio.get_running_loop()
    queue = _queues[loop] = ProcessQueue()
    try:
        yield
    finally:
        del _queues[loop]
        await queue.drain(drain_seconds)


@asynccontextmanager
async def queue_of(runtime: Runtime[Any]) -> AsyncIterator[ServerQueue | ProcessQueue]:
    """Give the queue for what a turn leaves to the background; a NoBackgroundError says that there is none."""
    if api_server.has_queue(runtime):
        async with api_server.client() as client:
            yield ServerQueue(client)
    elif (queue := _queues.get(asyncio.get_running_loop())) is not None:
        yield queue
    else:
        raise NoBackgroundError("this program has no background")
