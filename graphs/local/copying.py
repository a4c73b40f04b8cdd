"""`copy_home`: all games of a home brought into another one, file to database or back, and compared both ways.

What is there already and the same is passed over, so a copy that was stopped goes on where it was. Secrets of the page
and what was typed at a prompt stay where they are. Vectors are made again by the other home's embedder.
"""

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import BaseStore, GetOp, PutOp, SearchItem

from questbook.graphs.errors import QuestbookError
from questbook.graphs.local.checkpointer import config_of
from questbook.graphs.local.home import Home
from questbook.graphs.local.saved_game import OWNER
from questbook.graphs.local.saved_game import HomeCheckpointer as _Saver
from questbook.memory.store.any_store import get_all, put_all
from questbook.memory.timeline.namespaces import read_label
from questbook.types import storable

_BATCH = 200  # records that are written together
_SERDE = JsonPlusSerializer()
_WORD = re.compile(r"\\.|(\w+)")  # in what `repr` returns; an escape is no word
_MARKS = {"", "forgotten", "removed"}  # what `forget` leaves in the place of words
_MOST_NAMED = 12  # in a message
_NEVER = datetime.min.replace(tzinfo=UTC)
_Key: TypeAlias = tuple[str, str]  # namespace and id of a checkpoint
_Place: TypeAlias = tuple[tuple[str, ...], str]  # namespace and key of a record


class CopyError(QuestbookError):
    """A copy is not the same as what was copied; the message says where. What is there stays."""


@dataclass
class CopyReport:
    """How far a copy has come: so many of all `threads` and their checkpoints, and records."""

    threads: int = 0
    of_threads: int = 0
    checkpoints: int = 0
    records: int = 0
    written: int = 0  # checkpoints and records that were not there or older, and records that were removed there
    others: Sequence[str] = ()  # users whom only the other home knows


async def copy_home(source: Home, target: Home) -> AsyncIterator[CopyReport]:
    """Copy every thread and record; yield the report, always the same, after each checkpoint and some records.

    Each campaign is held while it is copied. If someone plays on afterwards, a second copy brings what has changed.
    What was changed in the other home, or it alone has of a user whom both know, is a CopyError.
    """
    done, places, copied = CopyReport(), set[_Place](), set[_Place]()
    async with (
        source.keep_open(), target.keep_open(), source.open_checkpointer() as theirs,
        target.open_checkpointer() as ours, source.open_store() as their_store, target.open_store() as our_store,
    ):  # fmt: skip
        async for batch in _batches(their_store):
            places |= {_checked(item) for item in batch}
            yield done
        threads, there = dict(await theirs.newest_of_threads()), dict(await ours.newest_of_threads())
        users = {read_label(path[0]) for path, _ in places} | {names.get("user") or "" for names in threads.values()}
        alone = {thread: names.get("user") or "" for thread, names in there.items() if thread not in threads}
        only = [f"thread {thread} of {user!r}" for thread, user in alone.items() if user in {*users, ""}]
        gone, others = await _compare_back(our_store, places, users, only)
        done.of_threads, done.others = len(threads), sorted({*alone.values(), *others} - users)
        for thread in threads:
            busy = f"Thread {thread} is being played: end that, and copy again."
            async with source.hold(thread, busy), target.hold(thread, busy):
                async for _ in _copy_thread(theirs, ours, thread, done):
                    yield done
            done.threads += 1
        await put_all(our_store, [PutOp(item.namespace, item.key, None) for item in gone])
        done.written += len(gone)
        async for batch in _batches(their_store):
            done.written += await _copy_records(our_store, batch)
            done.records += len(batch)
            copied |= {(item.namespace, item.key) for item in batch}
            yield done
        now = {(item.namespace, item.key) async for batch in _batches(their_store) for item in batch}
        if copied - now or places & (now - copied):  # where some are removed, the next batch begins too late
            raise CopyError("Records were removed here meanwhile: copy again.")
        yield done


async def _compare_back(
    store: BaseStore, places: set[_Place], users: set[str], only: list[str]
) -> tuple[list[SearchItem], set[str]]:
    """Return the users' records that an earlier copy has brought and that are not here any more, and the other users.

    What is younger than all of its campaign that was brought is a CopyError, as is what `only` names.
    """
    alone, brought, others = list[SearchItem](), dict[tuple[str, ...], datetime](), set[str]()
    async for batch in _batches(store):
        for item in batch:
            campaign, user = item.namespace[:2], read_label(item.namespace[0])
            if (item.namespace, item.key) in places:
                brought[campaign] = max(brought.get(campaign, _NEVER), item.created_at)
            elif user in users:
                alone.append(item)
            else:
                others.add(user)
    only += [_name(item) for item in alone if item.updated_at > brought.get(item.namespace[:2], _NEVER)]
    if only:
        problem = f"Only there, {len(only):,} in all: {', '.join(only[:_MOST_NAMED])}. Nothing was copied"
        hint = "If it was forgotten here, forget it there; else bring it here first (questbook export, import)"
        raise CopyError(f"{problem}. {hint}. Then copy again.")
    return alone, others


async def _copy_thread(theirs: _Saver, ours: _Saver, thread: str, done: CopyReport) -> AsyncIterator[None]:
    """Copy a thread, as a whole if checkpoints there are older; yield after each that is read or written."""
    at: Any = {"configurable": {"thread_id": thread}}
    wanted, known, versions = dict[_Key, bytes](), dict[_Key, bytes](), dict[_Key, dict[str, Any]]()
    async for here in theirs.alist(at):
        wanted[_key(here)] = await asyncio.to_thread(_digest, here)
        versions[_key(here)] = here.checkpoint["channel_versions"]
        done.checkpoints += 1
        yield
    async for there in ours.alist(at):
        known[_key(there)] = await asyncio.to_thread(_digest, there)
        is_same = known[_key(there)] == wanted.get(_key(there))
        if not is_same and not [here async for here in theirs.alist(there.config) if _is_older(there, here)]:
            problem = f"Thread {thread} was played on there or changed there, or pruned here. Nothing of it was copied"
            raise CopyError(f"{problem}. Delete it in one of both places, and copy again.")
        yield
    if not known.items() <= wanted.items():
        await ours.adelete_thread(thread)
        known.clear()
    for place, name in sorted(wanted.keys() - known.keys()):
        async for here in theirs.alist(config_of((thread, place), name)):
            config: Any = here.parent_config or {"configurable": {"thread_id": thread, "checkpoint_ns": place}}
            before = versions.get((place, config["configurable"].get("checkpoint_id", "")), {})
            now = here.checkpoint["channel_versions"]
            changed = {channel: version for channel, version in now.items() if before.get(channel) != version}
            owner = here.metadata.get(OWNER)
            ours.log_in = (lambda owner=owner: owner) if owner else None  # which a checkpointer alone may write
            copied = await ours.aput(config, here.checkpoint, here.metadata, changed)
            await ours.aput_all_writes(copied, here.pending_writes or [])
        done.written += 1
        yield
    ours.log_in, known = None, {}
    async for there in ours.alist(at):
        known[_key(there)] = await asyncio.to_thread(_digest, there)
        yield
    if known != wanted:
        raise CopyError(f"Thread {thread} says something else there than here. Delete it there, and copy again.")


def _is_older(there: CheckpointTuple, here: CheckpointTuple) -> bool:
    """Whether no task wrote to a checkpoint there alone, and it lacks no words that this one has, but marks."""
    words = [Counter(_WORD.findall(repr((s.checkpoint["channel_values"], s.metadata)))) for s in (there, here)]
    tasks = [{task for task, *_ in saved.pending_writes or []} for saved in (there, here)]
    return (words[1] - words[0]).keys() <= _MARKS and tasks[0] <= tasks[1]


async def _batches(store: BaseStore) -> AsyncIterator[list[SearchItem]]:
    offset = 0
    while batch := await store.asearch((), limit=_BATCH, offset=offset, refresh_ttl=False):
        yield batch
        offset += len(batch)


async def _copy_records(store: BaseStore, batch: list[SearchItem]) -> int:
    """Write the records that are not there, or there as they were before; return how many."""
    gets = [GetOp(item.namespace, item.key, refresh_ttl=False) for item in batch]
    puts = [
        PutOp(item.namespace, item.key, item.value, None if isinstance(item.value.get("text"), str) else False)
        for item, there in zip(batch, await get_all(store, gets), strict=True)
        if there is None or (there.value != storable(item.value) and there.updated_at < item.updated_at)
    ]
    await put_all(store, puts)
    for item, there in zip(batch, await get_all(store, gets), strict=True):
        if there is None or there.value != storable(item.value):
            problem = f"R{_name(item)[1:]} is not the same there as here, and was changed there last"
            raise CopyError(f"{problem}. Delete or correct it in one of both places, and copy again.")
    return len(puts)


def _checked(item: SearchItem) -> _Place:
    """Return where a record is; a number in it that JSON has no word for is a CopyError."""
    for field, value in item.value.items():
        try:
            json.dumps(value, allow_nan=False)
        except ValueError as error:
            problem = f"R{_name(item)[1:]}: got {value!r:.80} as {field!r}, expected finite numbers. Nothing was copied"
            raise CopyError(f"{problem}. Delete or correct it, and copy again.") from error
    return item.namespace, item.key


def _digest(saved: CheckpointTuple) -> bytes:
    channels = sorted(saved.checkpoint["channel_values"].items())
    writes = sorted((task, channel, repr(value)) for task, channel, value in saved.pending_writes or [])
    notes = json.dumps([_key(saved), dict(saved.metadata)], sort_keys=True, default=str)
    said = (notes.encode(), _SERDE.dumps_typed(channels)[1], _SERDE.dumps_typed(writes)[1])
    return hashlib.sha256(b"".join(said)).digest()


def _key(saved: CheckpointTuple) -> _Key:
    return str(saved.config["configurable"].get("checkpoint_ns", "")), str(saved.checkpoint["id"])


def _name(item: SearchItem) -> str:
    return f"record {item.key!r} in {'/'.join(item.namespace)!r}"
