"""Where a reflection runs in the background: in the queue of LangGraph's server, or in this process.

In the process it needs a program that lives on after the turn, and waits for it at its own end: one that has entered
`process_queue`, such as a server that has no queue for us. Each thread has one run that works and one that waits; a few
threads work at once. What is lost with the process, or fails, is due again at the next turn.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from contextvars import Context
from functools import partial
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from langgraph.runtime import Runtime

from questbook.graphs.reflect.graph import build_graph
from questbook.graphs.settings import ReflectContext
from questbook.graphs.turn import api_server
from questbook.graphs.turn.state import Notice, notice
from questbook.types import JSON

_QUIET_SECONDS = 5  # that a run waits for the person's next turn
_AT_ONCE = 4  # runs in this process
_MOST_THREADS = 1000  # that wait in this process, and whose last run it remembers
_BROKE_OFF = "The work in the background broke off; nothing is lost, and it will be taken up again."
_log = logging.getLogger(__name__)


class NoBackgroundError(Exception):
    """There is no background here, or too much waits in it."""


class LastRun(NamedTuple):
    """The last run of a thread that neither waits nor runs; `id` is "" if there was none."""

    id: str
    notices: list[Notice]


class Queue(Protocol):
    """Runs of `reflect`; those of a thread follow one another."""

    async def last_run(self, thread: str, turn: int) -> LastRun | None:
        """Return a thread's last run, as a turn is to show it; None while one waits or runs."""

    async def begin(self, thread: str, start: JSON, runtime: Runtime[Any]) -> None:
        """Begin a run on a thread, with the settings and the store of a turn."""


def queue_of(runtime: Runtime[Any]) -> AbstractAsyncContextManager[Queue]:
    """Return the queue for what a turn leaves to the background.

    Raises:
        NoBackgroundError: There is none.
    """
    if api_server.has_queue(runtime):
        return _server_queue()
    queue = _queues.get(asyncio.get_running_loop())
    if queue is None:
        raise NoBackgroundError("this program has no background")
    return nullcontext(queue)


@asynccontextmanager
async def process_queue(drain_seconds: float) -> AsyncIterator[None]:
    """Let turns of this event loop leave work to this process; at the end, wait so long for what is left."""
    loop = asyncio.get_running_loop()
    queue = _queues[loop] = _ProcessQueue()
    try:
        yield
    finally:
        del _queues[loop]
        await queue.drain(drain_seconds)


@asynccontextmanager
async def _server_queue() -> AsyncIterator[Queue]:
    async with api_server.client() as client:
        yield _ServerQueue(client)


class _ServerQueue:
    """The queue of LangGraph's server, where a reflection is a run on a thread of its own."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def last_run(self, thread: str, turn: int) -> LastRun | None:
        await self._client.threads.create(thread_id=thread, if_exists="do_nothing", graph_id="reflect")
        for status in ("pending", "running"):
            if await self._client.runs.list(thread, status=status, limit=1):
                return None
        runs = await self._client.runs.list(thread, limit=1)  # the newest is first
        made = await self._client.threads.get(thread)
        notices = _notices_in(made.get("values"))
        if made.get("status") == "error":
            notices.append(notice(turn, "reflect", _BROKE_OFF))
        return LastRun(next((run["run_id"] for run in runs), ""), notices)

    async def begin(self, thread: str, start: JSON, runtime: Runtime[Any]) -> None:
        context = runtime.context.model_dump(mode="json", include=set(ReflectContext.model_fields))
        how: JSON = {"after_seconds": _QUIET_SECONDS, "multitask_strategy": "enqueue"}
        await self._client.runs.create(thread, "reflect", input=start, context=context, **how)


class _ProcessQueue:
    """Runs of this process."""

    def __init__(self) -> None:
        self._waiting: dict[str, Callable[[], Awaitable[JSON]]] = {}  # by thread; its newest run does the others' work
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._last: dict[str, LastRun] = {}
        self._slots, self._ends = asyncio.Semaphore(_AT_ONCE), asyncio.Event()

    async def last_run(self, thread: str, turn: int) -> LastRun | None:  # noqa: ARG002 (a run here knows its own)
        return None if thread in self._tasks else self._last.get(thread, LastRun("", []))

    async def begin(self, thread: str, start: JSON, runtime: Runtime[Any]) -> None:
        if len(self._tasks) >= _MOST_THREADS and thread not in self._tasks:
            raise NoBackgroundError(f"{_MOST_THREADS} threads wait for theirs")
        graph = build_graph().compile(checkpointer=False, store=runtime.store)
        # The lock of this thread keeps other processes from working for it at the same time.
        config = {"configurable": {"thread_id": thread}}
        self._waiting[thread] = partial(graph.ainvoke, start, config, context=runtime.context)
        if thread not in self._tasks:  # without what the turn's run left in its context: its stream has ended by then
            self._tasks[thread] = asyncio.create_task(self._work(thread, start["turn"]), context=Context())

    async def drain(self, seconds: float) -> None:
        self._ends.set()
        tasks = set(self._tasks.values())
        for task in (await asyncio.wait(tasks, timeout=seconds))[1] if tasks else ():
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, thread: str, turn: int) -> None:
        try:
            while thread in self._waiting:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ends.wait(), _QUIET_SECONDS)
                async with self._slots:
                    notices = await self._run(self._waiting.pop(thread), turn)
                self._last.pop(thread, None)
                self._last[thread] = LastRun(uuid.uuid4().hex, notices)
                if len(self._last) > _MOST_THREADS:
                    del self._last[next(iter(self._last))]
        finally:
            del self._tasks[thread]

    async def _run(self, run: Callable[[], Awaitable[JSON]], turn: int) -> list[Notice]:
        try:
            return _notices_in(await run())
        except Exception as error:  # noqa: BLE001 (whatever it is, the next turn says so, and begins again)
            _log.warning("Turn %d: %s %s", turn, _BROKE_OFF, error, exc_info=True)
            return [notice(turn, "reflect", _BROKE_OFF)]


def _notices_in(values: Any) -> list[Notice]:
    """Return the notices of a run's last state."""
    values = values if isinstance(values, Mapping) else {}
    return [entry for entry in values.get("notices") or [] if entry["turn"] == values.get("turn")]


_queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _ProcessQueue] = WeakKeyDictionary()
