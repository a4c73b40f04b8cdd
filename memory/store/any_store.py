"""Any LangGraph store, ours or another: typed reads and writes, joint reads, and a store by its sync methods alone.

`BaseStore.abatch` answers with a union of types. The functions say what each kind of read gives, send everything in one
batch, and hide what the stores do differently.
"""

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, ParamSpec, Protocol, Self, TypeVar, cast

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, Result, SearchItem, SearchOp, get_text_at_path

from questbook.memory.errors import StoreConfigError, StoreUnavailableError
from questbook.memory.sync import in_own_thread, run_sync
from questbook.types import JSON, storable

NEWEST_LIMIT = 1_000  # how many records `newest_items` returns if the caller names no number
_PAGE = 500  # items of one read
StoreT = TypeVar("StoreT", bound=BaseStore | None)
P = ParamSpec("P")
ResultT = TypeVar("ResultT")
Namespace = tuple[str, ...]


class AnyItem(Protocol):
    """An `Item`, a `SearchItem`, a `Recalled`, or anything else with these three attributes."""

    @property
    def key(self) -> str:
        """Its key in the store."""

    @property
    def value(self) -> JSON:
        """The record."""

    @property
    def namespace(self) -> Namespace:
        """Its namespace."""


AnyItemT = TypeVar("AnyItemT", bound=AnyItem)
_ReadT = TypeVar("_ReadT", GetOp, SearchOp)


async def search_all(store: BaseStore, searches: Sequence[SearchOp]) -> list[list[SearchItem]]:
    """Run searches in one batch, so that their queries are embedded in one call; return the items of each."""
    return cast("list[list[SearchItem]]", await store.abatch(_as_set(store, searches))) if searches else []


async def get_all(store: BaseStore, gets: Sequence[GetOp]) -> list[Item | None]:
    """Read items by their keys in one batch; None for a key that the store does not have."""
    return cast("list[Item | None]", await store.abatch(_as_set(store, gets))) if gets else []


def _as_set(store: BaseStore, reads: Sequence[_ReadT]) -> Sequence[_ReadT]:
    """Leave times to live as they are if the store is set so, as its own methods do; `abatch` does what reads say."""
    refreshes = (store.ttl_config or {}).get("refresh_on_read", True)
    return reads if refreshes else [read._replace(refresh_ttl=False) for read in reads]


async def get_values(
    store: BaseStore, places: Sequence[tuple[Namespace, str]]
) -> dict[tuple[Namespace, str], Mapping[str, Any]]:
    """Read records by namespace and key in one batch; leave out those that the store does not have."""
    items = await get_all(store, [GetOp(*place, refresh_ttl=False) for place in places])
    return {place: item.value for place, item in zip(places, items, strict=True) if item is not None}


async def put_all(store: BaseStore, puts: Sequence[PutOp]) -> None:
    """Write in this order and in one batch; begin another batch where a text that is embedded comes a second time.

    Where the store indexes whole values, as LangGraph's do by default, only the text of a record with one is indexed:
    its ids and places would hide what it says.
    LangGraph's InMemoryStore refuses a batch that embeds one text twice (1.2: "does not match number of indices"); of
    two fields of a record that say the same, the first is indexed.
    `FaissStore` accepts it. What PostgreSQL refuses, NUL and lone surrogates, is left out of the values for all stores.
    """
    batches: list[list[PutOp]] = [[]]
    texts, fields = set[str](), (getattr(store, "index_config", None) or {}).get("fields") or ["$"]
    is_ours = getattr(store, "filters_any", False)
    # LangGraph's SqliteStore 3.1 indexes whole values whatever its `fields` say (langgraph#8808).
    whole = "$" in fields or (list(fields) == ["text"] and not is_ours)
    for op in (put._replace(value=storable(put.value)) for put in puts):
        if whole and op.index is None and isinstance((op.value or {}).get("text"), str):
            op = op._replace(index=["text"])
        if op.value is not None and op.index is not False and not is_ours:
            said = [(path, text) for path in op.index or fields for text in get_text_at_path(op.value, path)]
            own = {text: path for path, text in reversed(said)}
            if len(own) < len(said):
                op = op._replace(index=list(dict.fromkeys(own.values())))
            if not texts.isdisjoint(own):
                batches.append([])
                texts.clear()
            texts.update(own)
        batches[-1].append(op)
    for batch in filter(None, batches):
        await store.abatch(batch)


async def items_under(
    store: BaseStore, namespace: Namespace, only: Mapping[str, Any] | None = None, *, refresh_ttl: bool | None = None
) -> AsyncIterator[SearchItem]:
    """Read what meets a filter (None: everything) under a namespace, page by page, deeper namespaces included.

    Deleting an item moves the later ones up: a caller that deletes collects all items first. `refresh_ttl` says whether
    reading starts the items' time to live again; None: as the store is set.
    """
    offset, page, wanted = 0, _PAGE, dict(only) if only else None
    # Until a page is empty; one that is short is the last in our stores alone: others may return fewer items than they
    # have. Pages grow, because a store reads for each what lies before it.
    while items := await store.asearch(namespace, filter=wanted, limit=page, offset=offset, refresh_ttl=refresh_ttl):
        for item in items:
            yield item
        if len(items) < page and getattr(store, "filters_any", False):
            return
        offset += len(items)
        page = max(_PAGE, offset)


def is_own(item: AnyItem, namespace: Namespace) -> bool:
    """Return whether an item is in a namespace itself: a search finds those of deeper namespaces, too."""
    return tuple(item.namespace) == tuple(namespace)


async def newest_items(
    store: BaseStore, namespace: Namespace, filters: Sequence[Mapping[str, Any]], limit: int = NEWEST_LIMIT
) -> list[SearchItem]:
    """Return a namespace's newest records that meet one of some filters, oldest first, without embedding a query.

    All records are read, because stores list them in different orders.
    """
    joined = len(filters) > 1 and getattr(store, "filters_any", False)  # a timeline with many forks has many
    wanted = [{"$or": list(filters)}] if joined else filters
    found = [each for one in wanted async for each in items_under(store, namespace, one, refresh_ttl=False)]
    return sorted({each.key: each for each in found if is_own(each, namespace)}.values(), key=_age)[-limit:]


def _age(item: SearchItem) -> tuple[str, str, str, str]:
    """Sort key: the older record first."""
    order, at = (str(item.value.get(name) or "") for name in ("order", "at"))
    return order, at, item.created_at.isoformat(), item.key


class StoreBehind(BaseStore):
    """Stands for another store: its index, and what it says of its searches, such as `filters_any`, are that one's."""

    def __init__(self, store: BaseStore) -> None:
        self.store = store
        self.supports_ttl, self.ttl_config = store.supports_ttl, store.ttl_config

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations."""
        return self.store.batch(ops)


class JointReads(StoreBehind):
    """A store for functions that run side by side; their reads of one moment are one batch of the store behind it.

    Each batch costs its way to a thread and back, a transaction, or a round trip to a server. What one of the functions
    reads next waits for the others only as long as they have something to read at that moment, too. If the batch fails,
    all of them fail. For reads alone: a batch of LangGraph's does not order writes and reads.
    """

    def __init__(self, store: BaseStore) -> None:
        super().__init__(store)
        self._calls: list[tuple[list[Op], asyncio.Future[list[Result]]]] = []
        self._sending: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, store: BaseStore) -> Self:
        """Return a store whose reads are joined; the same one if they are already."""
        return store if isinstance(store, cls) else cls(store)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations together with those that others ask for at the same time."""
        loop = asyncio.get_running_loop()
        results: asyncio.Future[list[Result]] = loop.create_future()
        self._calls.append((list(ops), results))
        if len(self._calls) == 1:
            self._sending = loop.create_task(self._send())
        return await results

    async def _send(self) -> None:
        calls, waiting = self._calls, 0
        try:
            while waiting < len(calls):  # until nobody has added anything in a tick of the loop
                waiting = len(calls)
                await asyncio.sleep(0)
            self._calls = []
            done = iter(await self.store.abatch([op for ops, _ in calls for op in ops]))
        except BaseException as error:
            self._calls = [] if self._calls is calls else self._calls
            for _, results in calls:  # each caller gets the error, also that this was cancelled
                if not results.done():
                    results.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        for ops, results in calls:
            part = [next(done) for _ in ops]
            if not results.done():  # else its caller was cancelled
                results.set_result(part)


class TimedStore(StoreBehind):
    """Another store, whose async calls fail if it does not answer within so many seconds."""

    def __init__(self, store: BaseStore, seconds: float) -> None:
        super().__init__(store)
        self.seconds = seconds

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations; what was to be written may still be if this raises a StoreUnavailableError."""
        try:
            async with asyncio.timeout(self.seconds) as limit:
                return await self.store.abatch(ops)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise StoreUnavailableError(
                f"{type(self.store).__name__} did not answer within {self.seconds:g} seconds (store_timeout). Its "
                "database does not answer, or needs longer, such as for a first query; then give it more time."
            ) from error


class SyncStore(StoreBehind):
    """Another store as asynchronous code sees it, by its sync methods alone; see `refuse_own_loop`."""

    def __init__(self, store: BaseStore) -> None:
        refuse_own_loop(store, getattr(store, "_loop", None))
        super().__init__(store)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations in a thread, by the store's sync method."""
        return await in_own_thread(partial(self.store.batch, ops))


def sync_twin(function: Callable[P, Coroutine[Any, Any, ResultT]]) -> Callable[P, ResultT]:
    """Return a sync function that does what an asynchronous one does, with the sync methods of its argument `store`.

    So it works inside a running event loop, too, which it blocks meanwhile, as the store's sync methods do.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> ResultT:
        bound = signature.bind(*args, **kwargs)
        bound.arguments["store"] = SyncStore(bound.arguments["store"])
        return run_sync(function(*bound.args, **bound.kwargs))

    run.__name__ = f"{function.__name__}_sync"
    return run


def timed(store: Any, seconds: float) -> TimedStore | None:
    """Return a run's store with async methods and a time limit, None for None; what is no store is refused."""
    if not isinstance(store, BaseStore | None):
        raise StoreConfigError(f"store: got {store!r:.80}; expected a store, such as InMemoryStore(), or None.")
    return TimedStore(with_async_methods(store), seconds) if store is not None else None


def with_async_methods(store: StoreT) -> StoreT | SyncStore:
    """Return a store as it is, or a `SyncStore` of LangGraph's `SqliteStore`, which has sync methods alone.

    Of a store of others that has sync methods alone, make a `SyncStore` before it is passed to a graph.
    """
    sqlite = sys.modules.get("langgraph.store.sqlite.base")  # loaded if there is such a store; it loads numpy
    return SyncStore(store) if sqlite and isinstance(store, sqlite.SqliteStore) else store


def refuse_own_loop(owner: object, loop: object) -> None:
    """Raise an InvalidStateError for a sync call to what runs in the event loop that the call would block."""
    if loop is not None and loop is asyncio._get_running_loop():
        call = f"A sync call to {type(owner).__name__} inside its own event loop would wait for ever."
        ways = "the asynchronous functions here (recall, remember, claim, History), or a sync store and checkpointer"
        raise asyncio.InvalidStateError(f"{call} Use {ways}.")
