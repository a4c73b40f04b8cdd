"""Archival memory: texts that an assistant stored on purpose, found again by meaning, words, tags and days.

An entry waits in state until its turn has claimed its place on the timeline, so that other branches never see what an
abandoned turn stored. Until then a search takes the waiting entries beside those in the store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from langgraph.store.base import BaseStore, PutOp

from questbook.memory.archive.results import Days, Page, cut_page, score_words
from questbook.memory.errors import BadQueryError
from questbook.memory.recall.query import Query
from questbook.memory.recall.recall import recall
from questbook.memory.store.any_store import put_all
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import Segment, branch_of, list_visible, record_key
from questbook.types import JSON

MAX_CHARS = 20_000
"""Characters of one entry; a longer one could not be shown to a model in one piece."""

_RECALLED = 64  # entries that are ranked by meaning too
_WAITING = "waiting "  # begins the key of a waiting entry; no key of a record has a blank


@dataclass(frozen=True)
class ArchiveQuery:
    """What to search archival memory for."""

    text: str = ""  # what to look for; blank: the newest entries first
    tags: Sequence[str] = ()  # only entries with one of these tags; case does not count
    every_tag: bool = False  # only entries with all of the tags
    days: Days | None = None  # only entries of these days; None: of all days
    page: int = 1  # page of the results, from 1
    size: int = 5  # results on a page

    def matches(self, entry: Mapping[str, Any]) -> bool:
        """Whether an entry has the tags and is of one of the days."""
        required = {tag.strip().casefold() for tag in self.tags if tag.strip()}
        tags = {str(tag).casefold() for tag in entry.get("tags") or ()}
        if required and not (required <= tags if self.every_tag else required & tags):
            return False
        return self.days is None or self.days.contains(str(entry.get("said_at") or ""))


def new_entry(text: str, tags: Iterable[str] = ()) -> JSON:
    """Return an entry of archival memory, without its turn and time.

    Raises:
        BadQueryError: The text is blank or longer than `MAX_CHARS`.
    """
    if not text.strip():
        raise BadQueryError("content: got a blank text; send the text to keep.")
    if len(text) > MAX_CHARS:
        raise BadQueryError(f"content: has {len(text):,} characters of at most {MAX_CHARS:,}; send it in parts.")
    return {"kind": "archive", "text": text, "tags": sorted({tag.strip() for tag in tags if tag.strip()})}


def entry_writes(
    namespace: tuple[str, ...],
    entries: Sequence[Mapping[str, Any]],
    timeline: Sequence[Segment],
    turn: int,
    provenance: Mapping[str, Any],
) -> list[PutOp]:
    """Return the writes of a turn's entries, made by `new_entry`; the turn has claimed its place.

    `provenance` are fields that say where they come from: thread, checkpoint, said_at.
    """
    branch = branch_of(timeline, turn)
    common = {**provenance, **Stamp(branch, turn).to_json()}
    return [
        PutOp(namespace, record_key(branch, turn, "archive", number), {**entry, **common})
        for number, entry in enumerate(entries)
    ]


async def add_entry(
    store: BaseStore,
    namespace: tuple[str, ...],
    text: str,
    tags: Iterable[str] = (),
    *,
    timeline: Sequence[Segment],
) -> str:
    """Store an entry by hand, as of the last turn of a timeline; return its key. The same text is stored once.

    Raises:
        BadQueryError: The text is blank or longer than `MAX_CHARS`.
    """
    entry, turn = new_entry(text, tags), timeline[-1][1]
    branch, at = branch_of(timeline, turn), datetime.now(UTC)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    key = record_key(branch, turn, f"hand.{digest}")  # of no entry that the turn itself may store yet
    origin = {"by": "hand", "said_at": at.isoformat(timespec="seconds")}
    await put_all(store, [PutOp(namespace, key, entry | Stamp(branch, turn).to_json() | origin)])
    return key


def waiting_entries(waiting: Iterable[Mapping[str, Any]]) -> dict[str, JSON]:
    """Return entries of turns that are not written yet by the keys that searches give them until then."""
    return {f"{_WAITING}{number}": dict(entry) for number, entry in enumerate(waiting)}


async def search_archive(
    store: BaseStore | None,
    namespace: tuple[str, ...],
    query: ArchiveQuery,
    *,
    timeline: Sequence[Segment],
    before: int | None = None,
    waiting: Sequence[JSON] = (),
) -> Page[JSON]:
    """Return a page of all entries that match the query's tags and days, each with its key, the best fitting first.

    First come waiting entries that share words with the text, then the best by meaning and words, then the others by
    words, and of equals the newest. Only what earlier turns than `before` wrote is searched: a turn in progress has no
    place yet, and what is in the store under its number may be another branch's. Without a store only the waiting
    entries are.

    Raises:
        BadQueryError: There is no such page.
    """
    items = await list_visible(store, namespace, timeline, before) if store else []
    entries: dict[str, JSON] = {item.key: dict(item.value) for item in items} | waiting_entries(waiting)
    entries = {key: {**entry, "key": key} for key, entry in entries.items()}
    matches = {key: entry for key, entry in reversed(entries.items()) if query.matches(entry)}  # the newest first
    if not query.text.strip():
        return cut_page(list(matches.values()), query.page, query.size)
    words = await score_words({key: str(entry["text"]) for key, entry in matches.items()}, query.text)
    by_meaning = Query(query.text, timeline=timeline, before=before, limit=_RECALLED)
    hits = await recall(store, namespace, by_meaning) if store else []
    ranks = {hit.key: rank for rank, hit in enumerate(hits)}

    def order(key: str) -> tuple[bool, int, float]:
        # A waiting entry has no vector yet: its words alone say whether it fits, and if so it is the newest.
        first = key.startswith(_WAITING) and words[key] > 0
        return not first, ranks.get(key, len(ranks)), -words[key]

    return cut_page([matches[key] for key in sorted(matches, key=order)], query.page, query.size)
