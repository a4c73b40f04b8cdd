"""The memories of a character: messages, each with its speaker and time, remembered and recalled.

Records are not changed by a chat: a message that is said again is a record of its own, and duplicates become one
memory when they are recalled. A record with a branch and turn is visible to the timelines that descend from it. A
person looks through memories, and adds, edits and deletes them, on every branch at once.
"""

import asyncio
import hashlib
import logging
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypedDict, Unpack

from langgraph.store.base import BaseStore, Item, PutOp, SearchItem, SearchOp

from questbook.memory.embeddings.embedders import HashEmbeddings, embedder_of
from questbook.memory.errors import NoSuchMemoryError, StoreConfigError
from questbook.memory.ltm.config import SPELLING_DISTANCE, LtmConfig
from questbook.memory.recall.intents import off_record
from questbook.memory.store.any_store import AnyItemT, is_own, items_under, newest_items, put_all, search_all
from questbook.memory.text.words import essence, group_duplicates, put_similar_last
from questbook.memory.timeline.namespaces import character_namespace, characters_namespace, unescape_label
from questbook.memory.timeline.records import Record, Stamp
from questbook.memory.timeline.timeline import Timeline, is_visible, shown_key

MEMORIES = "memories"
SESSIONS = "sessions"
EVERYONE = "*"  # a character whose memories all characters of the user share: the extension's legacy mode

_FIRST_CANDIDATES = 64  # several times what is recalled, since duplicates become one
_MAX_CANDIDATES = 4096  # if most of the nearest may not be recalled
_MIN_PREFIX = 4  # characters of a key that are enough to name it
_BREAKS = re.compile(r"(?:\r\n?|\n)+")  # for the embedder all the same, as in the extension

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CharacterMemory(Record):
    """A message that a character remembers, as a record; with a branch and turn only if a graph wrote it."""

    kind: str = "memory"
    session: str = ""  # in which it was said, as a thread's id; "" if unknown
    by: str = ""  # what wrote it: "ltm" for an import, "hand" for a person; "" for a chat


class RecalledMemory(NamedTuple):
    """A memory that was recalled; it may be several messages with the same content."""

    key: str  # of the latest of them
    text: str
    speaker: str
    said_at: str  # ISO 8601; "" if it is unknown
    distance: float  # the smallest cosine distance, 0 to 2, to the user's message
    times: int = 1  # how often it was said


def memory_key(speaker: str, text: str, said_at: str) -> str:
    """Return a memory's default key: the same for the same message by the same speaker at the same time."""
    return hashlib.sha256("\0".join((speaker, text, said_at)).encode("utf-8", "surrogatepass")).hexdigest()[:20]


def strip_speaker(text: str, speaker: str) -> str:
    """Remove the "Name: " that chat models like to begin a message with, and blank lines after the first in a row."""
    text = re.sub(r"\n{3,}", "\n\n", text.replace("\r\n", "\n").strip())
    if speaker and (header := re.match(rf"{re.escape(speaker)}:\s+", text, re.IGNORECASE)):
        text = text[header.end() :]
    return text


class Origin(TypedDict, total=False):
    """Where a message comes from; every key may be left out."""

    user: str | None  # who has the character; None: all users share it
    said_at: datetime | None  # the default is now; without an offset it is UTC
    session: str | None  # as a thread's id; for `visible: next_session`
    stamp: Mapping[str, Any] | None  # fields that are copied into the record: `Stamp.to_json`, provenance
    key: str | None  # the record's, if the caller has one that makes writing idempotent; the default is `memory_key`


async def remember_message(
    store: BaseStore, character: str, speaker: str, text: str, config: LtmConfig | None = None, **origin: Unpack[Origin]
) -> str | None:
    """Remember a message, if it is long enough and does not ask to be left out; return its key, or None.

    The character that remembers it need not be its speaker. The caller leaves out the reply to a message that asks to
    be left out (`off_record`). A record that the store has is not written again.
    """
    write = memory_write(character, speaker, text, config, **origin)
    if write is None:
        return None
    if await store.aget(write.namespace, write.key) is None:
        await put_all(store, [write])
    return write.key


def memory_write(
    character: str, speaker: str, text: str, config: LtmConfig | None = None, **origin: Unpack[Origin]
) -> PutOp | None:
    """Return the write of `remember_message`, for a batch of the caller's; it replaces a record with the same key."""
    config, text = config or LtmConfig(), strip_speaker(text, speaker)
    if not text or len(text) < config.ltm_writes.min_message_length or off_record(text):
        return None
    at = _time(origin.get("said_at"))
    memory = CharacterMemory(text=text, speaker=speaker, session=origin.get("session") or "", stamp=Stamp(said_at=at))
    namespace = character_namespace(character, MEMORIES, user=origin.get("user"))
    value = {**(origin.get("stamp") or {}), **memory.to_json()}
    return PutOp(namespace, origin.get("key") or memory_key(speaker, text, at), value, index=["text"])


def _time(said_at: datetime | None) -> str:
    said = said_at or datetime.now(UTC)
    if not isinstance(said, datetime):
        raise ValueError(f"said_at: got {said!r:.80}; expected a datetime, such as datetime.now(UTC).")
    return (said if said.tzinfo else said.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="seconds")


async def recall_messages(
    store: BaseStore,
    character: str,
    message: str,
    config: LtmConfig | None = None,
    *,
    user: str | None = None,
    session: str | None = None,
    timeline: Timeline | None = None,
    in_prompt: Collection[str] = (),
) -> list[RecalledMemory]:
    """Recall the memories nearest to the user's message, the nearest first; duplicates are one memory.

    In a store without vectors, distances are measured by spelling, over its first thousand memories; there a distance
    that the settings do not set is `SPELLING_DISTANCE`. The session is the current one, for `visible: next_session`. Of
    memories with a branch and turn, the timeline decides; what is `in_prompt` already is not recalled.
    """
    reads, message = (config or LtmConfig()).ltm_reads, _BREAKS.sub("\n\n", message.strip())
    if not message or not reads.num_memories_to_fetch:
        return []
    excluded = {essence(text) for text in (*in_prompt, message)}

    def may_recall(value: Mapping[str, Any]) -> bool:
        if not is_visible(timeline, value):
            return False
        if reads.visible == "next_session" and session is not None and value.get("session") == session:
            return False
        return essence(str(value.get("text", ""))) not in excluded

    namespaces = [character_namespace(name, MEMORIES, user=user) for name in (character, EVERYONE)]
    most = max(_MAX_CANDIDATES, reads.num_memories_to_fetch)
    limit, near_before = min(max(_FIRST_CANDIDATES, 4 * reads.num_memories_to_fetch), most), 0
    while True:
        candidates = await _measure(store, namespaces, message, limit)
        is_set = "max_cosine_distance" in reads.model_fields_set
        reach = SPELLING_DISTANCE if candidates.by_spelling and not is_set else reads.max_cosine_distance
        near = [(distance, item) for distance, item in candidates.measured if distance < reach]
        memories = _merge_duplicates([(distance, item) for distance, item in near if may_recall(item.value)])
        # A wider search can add something only if this one found more than the one before.
        last = not candidates.may_be_more or len(near) <= near_before or limit >= most
        if last or len(memories) >= reads.num_memories_to_fetch:
            return put_similar_last(memories, lambda memory: memory.text)[: reads.num_memories_to_fetch]
        limit, near_before = min(4 * limit, most), len(near)


def _merge_duplicates(near: Sequence[tuple[float, SearchItem]]) -> list[RecalledMemory]:
    memories = []
    for group in group_duplicates(near, lambda hit: str(hit[1].value.get("text", ""))):
        item = max((item for _, item in group), key=lambda item: (str(item.value.get("said_at", "")), item.key))
        fields = {name: str(item.value.get(name) or "") for name in ("text", "speaker", "said_at")}
        distance = min(distance for distance, _ in group)
        memories.append(RecalledMemory(item.key, distance=distance, times=len(group), **fields))
    return sorted(memories, key=lambda memory: (memory.distance, memory.key))


class _Candidates(NamedTuple):
    measured: list[tuple[float, SearchItem]]  # with their distances
    may_be_more: bool  # a search with a higher limit may find more
    by_spelling: bool


async def _measure(store: BaseStore, namespaces: Sequence[tuple[str, ...]], message: str, limit: int) -> _Candidates:
    """Search memories, at most `limit` of each namespace, and measure how far they are from the message."""
    results = await search_all(store, [SearchOp(namespace, query=message, limit=limit) for namespace in namespaces])
    items = [item for hits in results for item in hits]
    if any(item.score is not None for item in items):
        measured = [(1.0 - item.score, item) for item in items if item.score is not None]
        may_be_more = any(len(hits) >= limit for hits in results)
        return _Candidates(measured, may_be_more, getattr(embedder_of(store), "fusion_weight", 1.0) < 1)
    if not items:
        return _Candidates([], False, True)
    _log.info("%s makes no vectors: memories are measured by spelling", type(store).__name__)
    items = [item for namespace in namespaces for item in await newest_items(store, namespace, [{}])]
    texts = [message, *(str(item.value.get("text", "")) for item in items)]
    query, *vectors = await asyncio.to_thread(HashEmbeddings().embed_documents, texts)
    cosines = [sum(a * b for a, b in zip(query, vector, strict=True)) for vector in vectors]
    return _Candidates([(1.0 - cosine, item) for cosine, item in zip(cosines, items, strict=True)], False, True)


async def list_characters(store: BaseStore, user: str | None = None) -> dict[str, int]:
    """Return the characters of a user, or those that all users share, that have memories, and how many each has."""
    place = characters_namespace(user)
    namespaces = [item.namespace async for item in items_under(store, place)]
    memories = [namespace[len(place)] for namespace in namespaces if namespace[len(place) + 1 :] == (MEMORIES,)]
    return dict(sorted(Counter(map(unescape_label, memories)).items()))


async def list_memories(store: BaseStore, namespace: tuple[str, ...]) -> list[SearchItem]:
    """Return all memories of a namespace, the latest first."""
    items = [item async for item in items_under(store, namespace) if is_own(item, namespace)]
    return sorted(items, key=lambda item: (str(item.value.get("said_at", "")), item.key), reverse=True)


async def add_memory(
    store: BaseStore, character: str, text: str, speaker: str, user: str | None = None, said_at: datetime | None = None
) -> str:
    """Add a memory of any length, which must not be empty, to a character, or to `EVERYONE`; return its key."""
    at = _time(said_at)
    key = memory_key(speaker, _require_text(text), at)
    memory = CharacterMemory(text=text.strip(), speaker=speaker, stamp=Stamp(said_at=at), by="hand")
    namespace = character_namespace(character, MEMORIES, user=user)
    await put_all(store, [PutOp(namespace, key, memory.to_json(), index=["text"])])
    return key


async def edit_memory(store: BaseStore, namespace: tuple[str, ...], key: str, text: str) -> str:
    """Change what a memory says, on every branch; an import does not bring the old words back. Return its whole key.

    The memory is found as by `find_memory`; an empty text is a StoreConfigError.
    """
    item = await find_memory(store, namespace, key)
    changed = {"text": _require_text(text).strip(), "edited_at": datetime.now(UTC).isoformat(timespec="seconds")}
    await put_all(store, [PutOp(namespace, item.key, {**item.value, **changed}, index=["text"])])
    return item.key


async def delete_memories(store: BaseStore, namespace: tuple[str, ...], keys: Sequence[str]) -> list[Item]:
    """Delete memories, found as by `find_memory`, on every branch, if all are found; return them."""
    items = [await find_memory(store, namespace, key) for key in dict.fromkeys(keys)]
    await put_all(store, [PutOp(namespace, item.key, None) for item in items])
    return items


async def delete_character(store: BaseStore, character: str, user: str | None = None) -> int:
    """Delete everything that a character remembers, with when it was talked to; return how many memories."""
    places = [character_namespace(character, kind, user=user) for kind in (MEMORIES, SESSIONS)]
    memories, sessions = [[item async for item in items_under(store, place)] for place in places]
    await put_all(store, [PutOp(item.namespace, item.key, None) for item in [*memories, *sessions]])
    return len(memories)


async def find_memory(store: BaseStore, namespace: tuple[str, ...], key: str) -> Item:
    """Return the memory with this key, or the only one whose key begins so; none or several are a NoSuchMemoryError."""
    if (item := await store.aget(namespace, key)) is not None:
        return item
    return pick_memory(await list_memories(store, namespace), key)


def pick_memory(items: Sequence[AnyItemT], key: str) -> AnyItemT:
    """Return the one of some memories that `find_memory` would find."""
    if same := [item for item in items if item.key == key]:
        return same[0]
    begins = [item for item in items if item.key.startswith(key) or shown_key(item.key).startswith(key)]
    matches = begins if len(key) >= _MIN_PREFIX else []
    if len(matches) == 1:
        return matches[0]
    many = f"{len(matches)} memories have keys that begin with {key!r}"
    wrong = many if matches else f"No memory has the key {key!r}"
    whole = f"give a whole key, or at least {_MIN_PREFIX} characters of its beginning, as a list or search shows them"
    raise NoSuchMemoryError(f"{wrong}; {whole}.")


def _require_text(text: str) -> str:
    if not text.strip():
        raise StoreConfigError("A memory needs words: the text is empty.")
    return text
