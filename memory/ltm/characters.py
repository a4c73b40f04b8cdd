"""What a character remembers of what was said: messages, each with who said it and when, in a store.

Records are never changed: a message that is said again is a record of its own, and what is alike is put together when
it is recalled. A record may carry the branch and turn that wrote it; it is then seen by timelines that descend from it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypedDict, Unpack

from langgraph.store.base import BaseStore, PutOp, SearchItem, SearchOp

from questbook.memory.embeddings.embedders import HashEmbeddings, embedder_of
from questbook.memory.ltm.config import SPELLING_DISTANCE, LtmConfig, LtmReads
from questbook.memory.store.any_store import newest_items, search_all
from questbook.memory.text.wording import essence, group_duplicates, put_similar_last
from questbook.memory.timeline.namespaces import character_namespace
from questbook.memory.timeline.privacy import off_record
from questbook.memory.timeline.timeline import Segment, is_visible

MEMORIES = "memories"
EVERYONE = "*"
"""Stands for a character whose memories all characters of the user have: the extension's legacy mode."""

_CANDIDATES = 64  # looked at first: several times what is shown, since what is alike is put together
_MOST = 4096  # looked at, where most of what is near may not be seen
_BREAKS = re.compile(r"(?:\r\n?|\n)+")  # all of a length for the embedder, as in the extension

_log = logging.getLogger(__name__)


class Memory(NamedTuple):
    """One memory that was recalled.

    Attributes:
        key: Its key in the store; of several that say the same, the latest.
        text: What was said, whole.
        speaker: Who said it.
        said_at: When, ISO 8601; "" if that is unknown.
        distance: Cosine distance to the message, 0 to 2; of several, the smallest.
        times: How often it was said.
    """

    key: str
    text: str
    speaker: str
    said_at: str
    distance: float
    times: int = 1


def memory_key(speaker: str, text: str, said_at: str) -> str:
    """Return the key of a memory that has no other: the same message by the same speaker at the same time is one."""
    told = "\0".join((speaker, text, said_at)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(told).hexdigest()[:20]


def memory_record(speaker: str, text: str, said_at: str, **more: Any) -> dict[str, Any]:
    """Return the record of a memory: the fields that this module reads, and any more."""
    return {"kind": "memory", "text": text, "speaker": speaker, "said_at": said_at, **more}


def spoken(text: str, speaker: str) -> str:
    """Return what was said, without the "Name: " that chat models like to put before it.

    Only at the very beginning: elsewhere it is part of what was said. Newlines in a row are two at the most.
    """
    text = re.sub(r"\n{3,}", "\n\n", text.replace("\r\n", "\n").strip())
    if speaker and (header := re.match(rf"{re.escape(speaker)}:\s+", text, re.IGNORECASE)):
        text = text[header.end() :]
    return text


class Origin(TypedDict, total=False):
    """Whose a message is and where it comes from; everything may be left out.

    Attributes:
        user: Whose character it is; None: one for all users.
        said_at: When it was said; the default is now. Without an offset it is taken as UTC.
        session: Which session it belongs to, as a thread's id; for `visible: next_session`.
        stamp: Fields that go into the record as they are: `questbook.memory.timeline.timeline.stamp`, provenance.
        key: The record's key, if the caller has one by which writing twice is writing once; the default follows from
            speaker, text and time.
    """

    user: str | None
    said_at: datetime | None
    session: str | None
    stamp: Mapping[str, Any] | None
    key: str | None


async def remember_message(
    store: BaseStore,
    character: str,
    speaker: str,
    text: str,
    config: LtmConfig | None = None,
    **origin: Unpack[Origin],
) -> str | None:
    """Remember a message, if it is long enough and does not ask to be left out.

    A reply to a message that asks to be left out is the caller's to leave out (`off_record`). A record that stands is
    not written again.

    Args:
        store: Any store; its index should cover the field `text`.
        character: Whose memory it is; not necessarily who said it.
        speaker: Who said it.
        text: What was said.
        config: The settings; the default is the extension's example.
        **origin: As `Origin` says.

    Returns:
        The key under which it stands; None if it is not remembered.
    """
    write = memory_op(character, speaker, text, config, **origin)
    if write is None:
        return None
    if await store.aget(write.namespace, write.key) is None:
        await store.abatch([write])
    return write.key


def memory_op(
    character: str, speaker: str, text: str, config: LtmConfig | None = None, **origin: Unpack[Origin]
) -> PutOp | None:
    """Make the write by which a message is remembered, to go in one batch with others; None if it is not remembered.

    The arguments are those of `remember_message`. The write replaces a record that stands under its key.
    """
    config = config or LtmConfig()
    text = spoken(text, speaker)
    if not text or len(text) < config.ltm_writes.min_message_length or off_record(text):
        return None
    when = origin.get("said_at") or datetime.now(UTC)
    at = (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="seconds")
    value = {**(origin.get("stamp") or {}), **memory_record(speaker, text, at, session=origin.get("session"))}
    place = character_namespace(character, MEMORIES, user=origin.get("user"))
    return PutOp(place, origin.get("key") or memory_key(speaker, text, at), value, index=["text"])


async def memories_for(
    store: BaseStore,
    character: str,
    message: str,
    config: LtmConfig | None = None,
    *,
    user: str | None = None,
    session: str | None = None,
    timeline: Sequence[Segment] | None = None,
    besides: Collection[str] = (),
) -> list[Memory]:
    """Recall what fits the user's message, the nearest first; what says the same is one memory.

    Args:
        store: Any store. One that makes no vectors is measured by spelling, over its first thousand memories.
        character: Whose memories.
        message: What the user says now, and nothing else.
        config: The settings; the default is the extension's example. A distance that they do not name is the
            extension's, or `SPELLING_DISTANCE` where memories are measured by spelling.
        user: Whose character it is; None: one for all users.
        session: The session that is going on, for `visible: next_session`.
        timeline: Of records that carry a branch and turn, only those that it sees. None: all.
        besides: Messages that stand in the prompt anyway, as the buffer's; they are not recalled.
    """
    reads = (config or LtmConfig()).ltm_reads
    message = _BREAKS.sub("\n\n", message.strip())
    if not message or not reads.num_memories_to_fetch:
        return []
    shown = {essence(text) for text in (*besides, message)}

    def visible(value: Mapping[str, Any]) -> bool:
        if not is_visible(timeline, value):
            return False
        if reads.visible == "next_session" and session is not None and value.get("session") == session:
            return False
        return essence(str(value.get("text", ""))) not in shown

    places = [character_namespace(name, MEMORIES, user=user) for name in (character, EVERYONE)]
    limit, before = max(_CANDIDATES, 4 * reads.num_memories_to_fetch), 0
    while True:
        found, full, by_spelling = await _measured(store, places, message, limit)
        near = [(far, item) for far, item in found if far < _reach(reads, by_spelling=by_spelling)]
        memories = _together([(far, item) for far, item in near if visible(item.value)])
        # Further out there is more only if the last step found more.
        if len(memories) >= reads.num_memories_to_fetch or not full or len(near) <= before or limit >= _MOST:
            return put_similar_last(memories, lambda memory: memory.text)[: reads.num_memories_to_fetch]
        limit, before = 4 * limit, len(near)


def _reach(reads: LtmReads, *, by_spelling: bool) -> float:
    """Return the distance within which memories are recalled: as the settings say, or what fits the measure."""
    told = "max_cosine_distance" in reads.model_fields_set or not by_spelling
    return reads.max_cosine_distance if told else SPELLING_DISTANCE


def _together(near: Sequence[tuple[float, SearchItem]]) -> list[Memory]:
    memories = []
    for group in group_duplicates(near, lambda hit: str(hit[1].value.get("text", ""))):
        item = max((item for _, item in group), key=lambda item: (str(item.value.get("said_at", "")), item.key))
        told = {name: str(item.value.get(name, "")) for name in ("text", "speaker", "said_at")}
        memories.append(Memory(item.key, distance=min(far for far, _ in group), times=len(group), **told))
    return sorted(memories, key=lambda memory: (memory.distance, memory.key))


async def _measured(
    store: BaseStore, places: Sequence[tuple[str, ...]], message: str, limit: int
) -> tuple[list[tuple[float, SearchItem]], bool, bool]:
    """Return candidates with their distance, whether there may be more, and whether they are measured by spelling."""
    searches = [SearchOp(place, query=message, limit=limit) for place in places]
    results = await search_all(store, searches)
    items = [item for hits in results for item in hits]
    if any(item.score is not None for item in items):
        measured = [(1.0 - item.score, item) for item in items if item.score is not None]
        by_spelling = isinstance(embedder_of(store), HashEmbeddings)
        return measured, any(len(hits) >= limit for hits in results), by_spelling
    if not items:
        return [], False, True
    _log.info("%s makes no vectors: memories are measured by spelling", type(store).__name__)
    taken = [item for place in places for item in await newest_items(store, place, [{}])]
    return await asyncio.to_thread(_by_spelling, taken, message), False, True


def _by_spelling(items: Sequence[SearchItem], message: str) -> list[tuple[float, SearchItem]]:
    embedder = HashEmbeddings()
    query = embedder.embed_query(message)
    vectors = embedder.embed_documents([str(item.value.get("text", "")) for item in items])
    return [
        (1.0 - sum(a * b for a, b in zip(query, vector, strict=True)), item)
        for vector, item in zip(vectors, items, strict=True)
    ]
