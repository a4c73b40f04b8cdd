"""Archival memory: what an assistant put away on purpose, found again by meaning, words, tags and days.

An entry of a turn waits in state until the turn has its place on the timeline, so that what an abandoned future put
away is seen by nobody else; until then searches are given it beside the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langgraph.store.base import BaseStore, PutOp

from questbook.memory.archive.days import Days
from questbook.memory.archive.matching import matched
from questbook.memory.archive.page import Page, page_of
from questbook.memory.errors import BadQueryError
from questbook.memory.recall.query import Query
from questbook.memory.recall.recall import recall
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.seen import all_seen
from questbook.memory.timeline.timeline import Segment, branch_of, record_key

JSON = dict[str, Any]

MOST_CHARS = 20_000
"""Characters of one entry; longer ones could not be shown to a model in one piece."""
_RANKED = 64
_WAITING = "waiting "  # no key of a record holds a blank


def entry(text: str, tags: Iterable[str] = ()) -> JSON:
    """Make an entry of archival memory, without place and time.

    Raises:
        BadQueryError: The text is blank or longer than `MOST_CHARS`.
    """
    if not text.strip():
        raise BadQueryError("content: got a blank text; send what is to be kept.")
    if len(text) > MOST_CHARS:
        raise BadQueryError(f"content: has {len(text):,} characters of at most {MOST_CHARS:,}; send it in parts.")
    return {"kind": "archive", "text": text, "tags": sorted({tag.strip() for tag in tags if tag.strip()})}


def entry_ops(
    namespace: tuple[str, ...],
    entries: Sequence[Mapping[str, Any]],
    timeline: Sequence[Segment],
    turn: int,
    provenance: Mapping[str, Any],
) -> list[PutOp]:
    """Make the writes of a turn's entries; the turn has claimed its place.

    Args:
        namespace: Where the archive is.
        entries: What `entry` made, in order.
        timeline: The checkpoint's timeline.
        turn: The turn that put them away.
        provenance: Fields on where they come from: thread, checkpoint, said_at.
    """
    branch = branch_of(timeline, turn)
    return [
        PutOp(
            namespace,
            record_key(branch, turn, "archive", place),
            {**kept, **provenance, **Stamp(branch, turn).to_json()},
        )
        for place, kept in enumerate(entries)
    ]


async def search_archive(
    store: BaseStore | None,
    namespace: tuple[str, ...],
    query: str,
    *,
    timeline: Sequence[Segment],
    before: int | None = None,
    waiting: Sequence[JSON] = (),
    tags: Sequence[str] = (),
    every_tag: bool = False,
    days: Days | None = None,
    page: int = 1,
    size: int = 5,
) -> Page[JSON]:
    """Rank what this timeline put away by how well it fits; with a blank query the newest comes first.

    All entries that meet tags and days are on some page: those that wait and share words with the query, then the best
    fitting by meaning and words, then the rest by words, then the newest.

    Args:
        store: Any store; None: only what waits.
        namespace: Where the archive is.
        query: What to look for.
        timeline: Only what it may see is found.
        before: Only what was written before this turn: a turn under way has no place yet, and what stands under its
            number may be another's.
        waiting: Entries of turns that are not written yet, oldest first.
        tags: Only entries with one of these tags; case does not count.
        every_tag: Only entries with all of them.
        days: Only entries of these days.
        page: From 1.
        size: Entries on a page.

    Raises:
        BadQueryError: There is no such page.
    """
    seen = {item.key: dict(item.value) for item in await all_seen(store, namespace, timeline, before)} if store else {}
    seen |= {f"{_WAITING}{place}": dict(kept) for place, kept in enumerate(waiting)}
    wanted = {tag.strip().casefold() for tag in tags if tag.strip()}
    kept = {key: value for key, value in seen.items() if _tagged(value, wanted, every_tag) and _within(value, days)}
    newest = list(reversed(kept))
    if not query.strip():
        return page_of([kept[key] for key in newest], page, size)
    words = await matched({key: str(kept[key]["text"]) for key in kept}, query)
    best = await _best(store, namespace, query, timeline, before) if store else []
    ranked = {key: place for place, key in enumerate(best)}
    # What waits has no vector yet: its words alone say whether it fits, and if so it comes first, being the newest.
    order = sorted(
        newest,
        key=lambda key: (not (_waits(key) and words[key] > 0), ranked.get(key, len(ranked)), -words[key]),
    )
    return page_of([kept[key] for key in order], page, size)


async def _best(
    store: BaseStore, namespace: tuple[str, ...], query: str, timeline: Sequence[Segment], before: int | None
) -> list[str]:
    """Return the keys of the best fitting records, best first: the one place that knows how to ask for them."""
    found = await recall(store, namespace, Query(query, timeline=timeline, before=before, limit=_RANKED))
    return [record.key for record in found]


def _waits(key: str) -> bool:
    return key.startswith(_WAITING)


def _tagged(value: Mapping[str, Any], wanted: set[str], every: bool) -> bool:
    has = {str(tag).casefold() for tag in value.get("tags") or ()}
    return not wanted or (wanted <= has if every else bool(wanted & has))


def _within(value: Mapping[str, Any], days: Days | None) -> bool:
    return days is None or days.hold(str(value.get("said_at") or ""))
