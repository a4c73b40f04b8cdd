"""`PostgresCheckpointer`: LangGraph's saver for PostgreSQL, but a message is written once, not with each list of them.

`messages` is the largest channel and changes several times in a turn. Its blob is a list of digests; the messages are
blobs of a channel of their own, by digest, in the same thread and namespace. Everything else is as LangGraph has it.
"""

import asyncio
import json
import math
import tomllib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from hashlib import blake2b
from importlib.resources import files
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint import base
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.postgres.base import SELECT_SQL
from psycopg import Error
from psycopg.errors import UndefinedTable
from psycopg.types.json import Jsonb
from psycopg_pool import PoolClosed, PoolTimeout

from questbook.graphs.errors import InputError
from questbook.graphs.local.checkpointer import config_of, deleted, is_unfinished, needs_parent, place_of, writes_of
from questbook.graphs.local.home import HomeError
from questbook.graphs.local.saved_game import OWNER, HomeCheckpointer, check_caller, is_of_another
from questbook.graphs.turn.clock import keep_ids_after
from questbook.types import JSON

MESSAGES, PART = "messages", "messages/part"
LISTED = "listed"  # type of a blob of digests
_DIGEST_BYTES = 12
_PAGE = 64  # checkpoints that are read at once
_SHORT = 100  # characters of a text that is written with each checkpoint, not once by itself
SQL: JSON = tomllib.loads(files("questbook.graphs.local").joinpath("postgres.toml").read_text("utf-8"))
"""Statements, also those of `PostgresHome`; "TABLES" add to LangGraph's tables what is looked up here."""
_PARTS = SQL["PARTS"].format(LISTED=LISTED, MESSAGES=MESSAGES, PART=PART)
_SELECT = SELECT_SQL.replace(") as pending_writes", _PARTS)
_LASTS = SQL["LASTS"].replace("{OF_USER}", SQL["OF_USER"])


def without_tables(name: str) -> str:
    """Return what to do with a database that has no tables of ours."""
    return f"The {name} has no tables of this version yet: run `questbook migrate`, then again."


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Raise a HomeError for each error of the database that is called so."""
    try:
        yield
    except UndefinedTable as error:
        raise HomeError(without_tables(name)) from error
    except (Error, PoolTimeout, PoolClosed) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise HomeError(f"Cannot use the {name}: {reason:.300}. What was played so far is kept.") from error


class PostgresCheckpointer(AsyncPostgresSaver, HomeCheckpointer):
    """`AsyncPostgresSaver` that writes each message once, whose ids only grow, and which can roll runs back.

    It does what `Checkpointer` does, and raises what that raises; a HomeError if the database cannot be used, which is
    called `name` in it.
    """

    SELECT_SQL = _SELECT
    aprune = HomeCheckpointer.aprune  # LangGraph's knows nothing of a message's own blob

    def __init__(self, conn: Any, *, serde: Any = None, name: str = "database") -> None:
        super().__init__(conn, serde=serde)
        self.name = name
        self._held: dict[tuple[str, ...], tuple[str, Sequence[Any], asyncio.Future[bool]]] = {}  # writes, by task
        self._parts: tuple[tuple[str, str, str], frozenset[str]] | None = None  # digests of a checkpoint's messages

    async def setup(self) -> None:
        """Do nothing: `PostgresHome.migrate` makes the tables."""

    async def aget_tuple(self, config: RunnableConfig) -> base.CheckpointTuple | None:
        """Return a checkpoint; ids made after this are greater than those of its thread."""
        place = place_of(config)
        await self.check_thread(place[0])
        saved = await super().aget_tuple(config)
        if saved is None:
            return None
        newest = (await self._row(SQL["NEWEST"], *place))["id"] if base.get_checkpoint_id(config) else None
        keep_ids_after(newest or saved.checkpoint["id"])
        return saved

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 (LangGraph's name)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[base.CheckpointTuple]:
        """Return checkpoints, the newest first, without those of others. See `AsyncPostgresSaver.alist`.

        That one holds the saver's lock while somebody reads; here it is free, and a thread is read in pages.
        """
        others: dict[str, bool] = {}
        while limit is None or limit > 0:
            most = min(limit or _PAGE, _PAGE) if config else limit
            page = [saved async for saved in super().alist(config, filter=filter, before=before, limit=most)]
            for saved in page:
                thread = str(saved.config["configurable"]["thread_id"])
                if thread not in others:
                    others[thread] = self.log_in is not None and is_of_another(await self._began(thread), self.caller())
                if not others[thread]:
                    yield saved
            if most is None or len(page) < most:
                return
            before, limit = page[-1].config, None if limit is None else limit - most

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: base.Checkpoint,
        metadata: base.CheckpointMetadata,
        new_versions: base.ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint, as `Checkpointer.aput` does, and with it what the step before it wrote."""
        place, parent = place_of(config), base.get_checkpoint_id(config)
        notes: JSON = {**base.get_serializable_checkpoint_metadata(config, metadata)}
        notes.pop(OWNER, None)
        if self.log_in:  # whose the thread is, is who began it, not who writes now
            began = await self._began(place[0])
            check_caller(place[0], began, self.caller())
            owner = self.caller() if began is None else began.get(OWNER)
            notes.update({OWNER: owner} if owner else {})
        if notes.get("source") == "input" and parent and (run := str(notes.get("run_id") or "")):
            await self._refuse_repeated(place, parent, run)
        values = checkpoint["channel_values"]
        inline = {name: value for name, value in values.items() if _is_inline(value)}
        known = self._parts[1] if self._parts and self._parts[0] == (*place, parent) else frozenset[str]()
        listed = self._digests(values.get(MESSAGES)) if MESSAGES in new_versions else {}
        long = [name for name in new_versions if name not in inline]
        new = [digest for digest in listed if digest not in known]
        rows = [(name, str(new_versions[name]), *self._dump(name, values, listed)) for name in long]
        rows += [(PART, digest, *self.serde.dumps_typed(listed[digest])) for digest in new]
        own = {**checkpoint, "channel_values": inline}
        columns = list(map(list, zip(*rows, strict=True))) or [[], [], [], []]
        row = (*place, checkpoint["id"], parent, Jsonb(own), Jsonb(notes))
        held, saved = [self._held.pop(task) for task in [*self._held] if task[:2] == place], False
        named = "".join(f"held{number} AS ({statement}), " for number, (statement, *_) in enumerate(held))
        before = [value for _, each, _ in held for value in each]
        before += [needs_parent(parent, checkpoint, new_versions), *place]
        try:  # all in one statement, so that all or nothing is saved
            saved = bool(await self.rows(SQL["PUT"].format(held=named), *before, *place, *columns, *row))
        finally:
            for *_, is_saved in held:
                if not is_saved.done():  # else its caller was cancelled
                    is_saved.set_result(saved)
        if not saved:
            raise deleted(place[0])
        self._parts = (*place, checkpoint["id"]), frozenset(listed) if MESSAGES in new_versions else known
        return config_of(place, checkpoint["id"])

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save pending writes, but none of a caller to what is no state (`Checkpointer.aput_writes`)."""
        if not (writes := writes_of(task_id, writes)):
            return
        place = place_of(config)
        await self.check_thread(place[0])
        encoded = enumerate((channel, *self.serde.dumps_typed(value)) for channel, value in writes)
        columns = zip(*((base.WRITES_IDX_MAP.get(row[0], at), *row) for at, row in encoded), strict=True)
        does = SQL["AGAIN"] if all(channel in base.WRITES_IDX_MAP for channel, _ in writes) else "NOTHING"
        task = (*place, str(config["configurable"]["checkpoint_id"]), task_id, task_path)
        while task in self._held:  # what a task wrote first counts
            async with self.lock:
                await asyncio.sleep(0)
        is_saved: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._held[task] = held = SQL["PUT_WRITES"] + does, (*task, *map(list, columns), place[0]), is_saved
        try:
            async with self.lock:  # LangGraph asks for the checkpoint when the one before is saved,
                pass
            for _ in range(4):  # and the step has ended: some ticks later
                await asyncio.sleep(0)
        finally:
            if is_held := self._held.get(task) is held:
                del self._held[task]
        if is_held or not await is_saved:
            await self.rows(held[0], *held[1])

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete the checkpoints, values and pending writes of a thread."""
        await self.check_thread(str(thread_id))
        self._parts = None
        await super().adelete_thread(thread_id)

    async def aget_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Any:  # noqa: D102
        await self.check_thread(place_of(config)[0])
        return await super().aget_delta_channel_history(config=config, channels=channels)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that runs wrote, and the pending writes on them, as `Checkpointer` does."""
        rows, caller = await self.rows(SQL["OF_RUNS"], [str(run) for run in run_ids]), self.caller()
        if caller is not None:
            threads = {row["thread_id"] for row in rows}
            owners = {name: (await self._began(name) or {}).get(OWNER, caller) for name in threads}
            rows = [row for row in rows if owners[row["thread_id"]] == caller]
        pairs = [row["thread_id"] for row in rows], [row["checkpoint_id"] for row in rows]
        async with self._cursor() as cursor, cursor.connection.transaction():
            for table in ("checkpoint_writes", "checkpoints"):
                await cursor.execute(SQL["DELETE_CHOSEN"].format(table), pairs)

    async def newest_of_threads(self, user: str | None = None) -> list[tuple[str, JSON]]:  # noqa: D102
        if user is None:
            rows = await self.rows(SQL["ALL"])
        else:  # a run in Studio names no user in its metadata
            rows = [row for name in dict.fromkeys((user, "")) for row in await self.rows(_LASTS, name, name)]
        by_thread = {row["thread_id"]: row for row in rows}
        newest = sorted(by_thread.values(), key=lambda row: str(row["checkpoint_id"]), reverse=True)
        return [(str(row["thread_id"]), row["metadata"]) for row in newest]

    async def first(self, thread: str) -> tuple[str, JSON] | None:  # noqa: D102
        rows = await self.rows(SQL["FIRST"], thread)
        return (str(rows[0]["checkpoint_id"]), rows[0]["metadata"]) if rows else None

    async def show_threads(self, names: Mapping[str, str]) -> None:  # noqa: D102
        async with self._cursor() as cursor, cursor.connection.transaction():
            for name, own in names.items():
                for statement in SQL["SHOW"]:
                    await cursor.execute(statement, {"name": name, "own": own})

    async def _began(self, thread: str) -> JSON | None:
        first = await self.first(thread)
        return first and first[1]

    async def _refuse_repeated(self, place: tuple[str, str], parent: str, run: str) -> None:
        last = (await self._row(SQL["OF_RUN"], *place, run))["id"]
        if not last or parent == (await self._row(SQL["NEWEST"], *place))["id"]:
            return
        saved = await super().aget_tuple(config_of(place, last))
        if saved and not is_unfinished(saved.checkpoint):
            raise InputError(f"Run {run} has ended, and its turn is in the thread: it is not played once more.")

    def _digests(self, messages: Any) -> dict[str, Any]:
        """Return messages by their digests; none if one comes twice, or if they are no list."""
        if not isinstance(messages, list):
            return {}
        dump = getattr(self.serde, "serde", self.serde).dumps_typed  # what is written is compressed, too
        named = {blake2b(dump(message)[1], digest_size=_DIGEST_BYTES).hexdigest(): message for message in messages}
        return named if len(named) == len(messages) else {}

    def _dump(self, name: str, values: Mapping[str, Any], listed: Mapping[str, Any]) -> tuple[str, bytes | None]:
        """Return type and bytes of a channel; of one that has been emptied: "empty"."""
        if name == MESSAGES and listed:
            return LISTED, json.dumps(list(listed)).encode()
        return self.serde.dumps_typed(values[name]) if name in values else ("empty", None)

    async def _load_checkpoint_tuple(self, value: Any) -> base.CheckpointTuple:
        lists, others = list[Any](), list[Any]()
        for row in value["channel_values"] or []:
            (lists if bytes(row[1]) == LISTED.encode() else others).append(row)
        saved = await super()._load_checkpoint_tuple({**value, "channel_values": others})
        if lists:
            parts = {bytes(name).decode(): (bytes(kind).decode(), data) for name, kind, data in value["parts"] or []}
            digests = json.loads(bytes(lists[0][2]))
            try:
                messages = [self.serde.loads_typed(parts[digest]) for digest in digests]
            except KeyError as error:
                raise ValueError("Messages of the checkpoint are missing in checkpoint_blobs.") from error
            saved.checkpoint["channel_values"][MESSAGES] = messages
            where = saved.config["configurable"]
            self._parts = (where["thread_id"], where["checkpoint_ns"], saved.checkpoint["id"]), frozenset(digests)
        return saved

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[Any]:
        with explained(self.name):
            async with super()._cursor(pipeline=pipeline) as cursor:
                yield cursor

    async def rows(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows of a statement as dicts."""
        async with self._cursor() as cursor:
            await cursor.execute(statement, values)
            rows: list[Any] = await cursor.fetchall() if cursor.description else []
            return rows

    async def _row(self, statement: str, *values: Any) -> Any:
        return (await self.rows(statement, *values))[0]


def _is_inline(value: Any) -> bool:
    """Whether a value is part of its checkpoint: a short one that JSON in PostgreSQL holds as it is."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return len(value) <= _SHORT and value.isascii() and "\0" not in value
    return value is None or isinstance(value, int)
