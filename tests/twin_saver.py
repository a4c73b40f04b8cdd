"""A checkpointer that writes everything to LangGraph's own as well, and compares whatever is read."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from postgres import migrated_database
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from questbook.graphs.local.checkpoint_tables import compressing_serializer
from questbook.graphs.local.checkpointer import Checkpointer
from questbook.graphs.local.postgres_checkpointer import PostgresCheckpointer

_OF_RUNS = "json_extract(CAST(metadata AS TEXT), '$.run_id') IN (SELECT value FROM json_each(?))"


class _Both:
    """Ours, with LangGraph's beside it; `theirs` is that one."""

    theirs: Any

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        checkpoint = copy.deepcopy(checkpoint)  # LangGraph gives messages their ids while it is written
        saved = await super().aput(config, checkpoint, metadata, new_versions)
        assert await self.theirs.aput(config, checkpoint, metadata, new_versions) == saved
        return saved

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        writes = copy.deepcopy(writes)
        await super().aput_writes(config, writes, task_id, task_path)
        await self.theirs.aput_writes(config, writes, task_id, task_path)

    async def aget_tuple(self, config: Any) -> Any:
        saved = await super().aget_tuple(config)
        assert saved == await self.theirs.aget_tuple(config)
        return saved

    async def alist(self, config: Any, **how: Any) -> AsyncIterator[Any]:
        saved = [one async for one in super().alist(config, **how)]
        assert saved == [one async for one in self.theirs.alist(config, **how)]
        for one in saved:
            yield one

    async def aget_delta_channel_history(self, **what: Any) -> Any:
        history = await super().aget_delta_channel_history(**what)
        assert history == await self.theirs.aget_delta_channel_history(**what)
        return history

    async def adelete_thread(self, thread_id: str) -> None:
        await super().adelete_thread(thread_id)
        await self.theirs.adelete_thread(thread_id)


class Twins(_Both, Checkpointer):
    """On SQLite."""

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await super().adelete_for_runs(run_ids)
        runs, database = (json.dumps(list(run_ids)),), self.theirs.conn
        keys = f"SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints WHERE {_OF_RUNS}"
        await database.execute(f"DELETE FROM writes WHERE (thread_id, checkpoint_ns, checkpoint_id) IN ({keys})", runs)
        await database.execute(f"DELETE FROM checkpoints WHERE {_OF_RUNS}", runs)
        await database.commit()


class PostgresTwins(_Both, PostgresCheckpointer):
    """On PostgreSQL; what is alike is what is read, since LangGraph's has nothing that rolls runs back."""

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await super().adelete_for_runs(run_ids)
        async with self.theirs._cursor() as cursor:
            of_runs, runs = "metadata->>'run_id' = ANY(%s)", (list(run_ids),)
            keys = f"SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints WHERE {of_runs}"
            await cursor.execute(
                f"DELETE FROM checkpoint_writes WHERE (thread_id, checkpoint_ns, checkpoint_id) IN ({keys})", runs
            )
            await cursor.execute(f"DELETE FROM checkpoints WHERE {of_runs}", runs)


@asynccontextmanager
async def open_postgres_twins() -> AsyncIterator[PostgresTwins]:
    ours, other = await asyncio.to_thread(migrated_database), await asyncio.to_thread(migrated_database)
    pool: Any = AsyncConnectionPool(ours, kwargs={"autocommit": True, "row_factory": dict_row}, open=False)
    async with pool as own, AsyncPostgresSaver.from_conn_string(other) as theirs:
        twins = PostgresTwins(own, serde=compressing_serializer())
        twins.theirs = theirs
        yield twins


@asynccontextmanager
async def open_twins(directory: Path) -> AsyncIterator[Twins]:
    async with (
        aiosqlite.connect(directory / "ours.db") as connection,
        AsyncSqliteSaver.from_conn_string(str(directory / "theirs.db")) as theirs,
    ):
        twins = Twins(connection, serde=compressing_serializer())
        twins.theirs = theirs
        await twins.setup()
        await theirs.setup()
        yield twins


async def assert_each_value_is_listed(saver: Any) -> None:
    """Every value is listed by a checkpoint, and every value that is listed is there."""
    if isinstance(saver, PostgresTwins):  # a value that is missing is no state's; what is over, pruning finds
        return
    listed = await saver.conn.execute_fetchall(
        "SELECT DISTINCT json_each.value FROM checkpoints, json_each(checkpoints.blobs)"
    )
    assert set(listed) == set(await saver.conn.execute_fetchall("SELECT id FROM checkpoint_blobs"))
