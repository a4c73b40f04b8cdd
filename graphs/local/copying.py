"""`copy_home`: all games of a home brought into another one, file to database or back, and compared at the end.

What is there already and the same is passed over, so a copy that was stopped goes on where it was. Secrets of the page
and what was typed at a prompt stay where they are. Vectors are made again by the other home's embedder.
"""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import BaseStore, GetOp, PutOp, SearchItem

from questbook.graphs.errors import QuestbookError
from questbook.graphs.local.home import Home
from questbook.graphs.local.saved_game import OWNER, HomeCheckpointer
from questbook.memory.store.any_store import get_all, items_under, put_all
from questbook.types import JSON

_BATCH = 200  # records that are written together
_SERDE = JsonPlusSerializer()


class CopyError(QuestbookError):
    """A copy is not the same as what was copied; the message says where. What is there stays."""


class CopyReport(NamedTuple):
    """How far a copy has come: so many of all `threads` and their checkpoints, and records."""

    threads: int
    of_threads: int
    checkpoints: int
    records: int
    written: int  # checkpoints and records that were not there


async def copy_home(source: Home, target: Home) -> AsyncIterator[CopyReport]:
    """Copy every thread and record; yield after each thread and after some records, the whole at the end.

    Each campaign is held while it is copied. If someone plays on afterwards, a second copy brings what is new.
    Where the other home says something else, that is a CopyError.
    """
    done = CopyReport(0, 0, 0, 0, 0)
    async with source.keep_open(), target.keep_open():
        async with source.open_checkpointer() as theirs, target.open_checkpointer() as ours:
            threads = [thread for thread, _ in await theirs.newest_of_threads()]
            done = done._replace(of_threads=len(threads))
            for thread in threads:
                busy = f"Thread {thread} is being played: end that, and copy again."
                async with source.hold(thread, busy), target.hold(thread, busy):
                    copied, written = await _copy_thread(theirs, ours, thread)
                threads_done, checkpoints = done.threads + 1, done.checkpoints + copied
                done = done._replace(threads=threads_done, checkpoints=checkpoints, written=done.written + written)
                yield done
        async with source.open_store() as theirs_store, target.open_store() as ours_store:
            async for batch in _batches(theirs_store):
                written = await _copy_records(ours_store, batch)
                done = done._replace(records=done.records + len(batch), written=done.written + written)
                yield done


async def _copy_thread(theirs: HomeCheckpointer, ours: HomeCheckpointer, thread: str) -> tuple[int, int]:
    """Copy a thread; return how many checkpoints it has, and how many were written."""
    at: Any = {"configurable": {"thread_id": thread}}
    tuples = sorted([saved async for saved in theirs.alist(at)], key=_key)
    wanted, there = await asyncio.to_thread(_digest, tuples), {_key(saved) async for saved in ours.alist(at)}
    if there - {_key(saved) for saved in tuples}:
        problem = f"Thread {thread} was played on there: it has checkpoints that are not here."
        raise CopyError(f"{problem} Nothing of it was copied. Delete it in one of both places, and copy again.")
    versions = {_key(saved): saved.checkpoint["channel_versions"] for saved in tuples}
    written = 0
    for saved in tuples:
        if _key(saved) in there:
            continue
        where: JSON = {"thread_id": thread, "checkpoint_ns": _key(saved)[0]}
        parent = (saved.parent_config or {"configurable": {}})["configurable"].get("checkpoint_id")
        before = versions.get((_key(saved)[0], parent or ""), {})
        now = saved.checkpoint["channel_versions"]
        changed = {name: version for name, version in now.items() if before.get(name) != version}
        owner = saved.metadata.get(OWNER)
        ours.log_in = (lambda owner=owner: owner) if owner else None  # which a checkpointer alone may write
        config: Any = {"configurable": where | ({"checkpoint_id": parent} if parent else {})}
        copied = await ours.aput(config, saved.checkpoint, saved.metadata, changed)
        await ours.aput_all_writes(copied, saved.pending_writes or [])
        written += 1
    ours.log_in = None
    there_now = sorted([saved async for saved in ours.alist(at)], key=_key)
    if await asyncio.to_thread(_digest, there_now) != wanted:
        raise CopyError(f"Thread {thread} says something else there than here. Delete it there, and copy again.")
    return len(tuples), written


async def _batches(store: BaseStore) -> AsyncIterator[list[SearchItem]]:
    batch: list[SearchItem] = []
    async for item in items_under(store, (), refresh_ttl=False):
        batch.append(item)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


async def _copy_records(store: BaseStore, batch: list[SearchItem]) -> int:
    """Write the records that are not there, or there as they were before; return how many."""
    gets = [GetOp(item.namespace, item.key, refresh_ttl=False) for item in batch]
    known = await get_all(store, gets)
    missing = [
        item
        for item, there in zip(batch, known, strict=True)
        if there is None or (there.value != item.value and there.updated_at < item.updated_at)
    ]
    puts = [
        PutOp(item.namespace, item.key, item.value, None if isinstance(item.value.get("text"), str) else False)
        for item in missing
    ]
    await put_all(store, puts)
    for item, there in zip(batch, await get_all(store, gets), strict=True):
        if there is None or there.value != item.value:
            problem = f"Record {item.key!r} in {'/'.join(item.namespace)!r} is not the same there as here"
            raise CopyError(f"{problem}. Was the campaign played in both? Delete one, and copy again.")
    return len(missing)


def _digest(tuples: list[CheckpointTuple]) -> bytes:
    total = hashlib.sha256()
    for saved in tuples:
        channels = sorted(saved.checkpoint["channel_values"].items())
        writes = sorted((task, channel, repr(value)) for task, channel, value in saved.pending_writes or [])
        notes = json.dumps([_key(saved), dict(saved.metadata)], sort_keys=True, default=str)
        total.update(notes.encode() + _SERDE.dumps_typed(channels)[1] + _SERDE.dumps_typed(writes)[1])
    return total.digest()


def _key(saved: CheckpointTuple) -> tuple[str, str]:
    return str(saved.config["configurable"].get("checkpoint_ns", "")), str(saved.checkpoint["id"])
