"""Noting: facts go into the store once, by any number of wordings, on whatever timeline.

What is like a record that holds becomes a mark that it was said again; what says otherwise of the same slot becomes a
record of its own that holds from then on. No record that stands is ever changed, and keys follow from where a fact was
said, so that noting twice is noting once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore, PutOp, SearchItem, SearchOp

from questbook.memory.facts import marks
from questbook.memory.facts.likeness import alike
from questbook.memory.facts.settled import Standing, settled
from questbook.memory.facts.validity import holding, records, valid
from questbook.memory.store.any_store import newest_items, put_all, search_all
from questbook.memory.text.wording import content_stems, is_negated, numbers_in
from questbook.memory.timeline.timeline import Segment, visible

JSON = dict[str, Any]
Namespace = tuple[str, ...]

_NEAR = 8  # records that are compared with each fact
_WIDE = 32  # records that are looked through for such, before each branch is searched by itself


class Note(NamedTuple):
    """A fact on its way into the store.

    Attributes:
        key: Its key, the same whenever the same turn notes it.
        value: Its record, with stamp and `at`.
        echoes: Key of a record that was recalled for the turn and says the same; "" if none does.
    """

    key: str
    value: JSON
    echoes: str = ""


class Noted(NamedTuple):
    """What became of facts.

    Attributes:
        new: Keys of the records that were written.
        again: For each fact that was known, its key and that of the record that it strengthened.
        ended: Keys of the records that hold no more.
    """

    new: list[str]
    again: dict[str, str]
    ended: list[str]


async def note(
    store: BaseStore, namespace: Namespace, notes: Sequence[Note], *, timeline: Sequence[Segment] | None = None
) -> Noted:
    """Write facts into a store, each once.

    Args:
        store: Any store; it should index the field `text`.
        namespace: Where facts are: `(…, "facts")`. Marks go beside it.
        notes: The facts, in the order in which they were said. A note whose key stands is passed over.
        timeline: What the turn sees; None: everything.

    Returns:
        What became of them. All writes of a turn are one batch (`any_store.put_all`): whatever the
        store or its embedder raises, nothing of that turn was written by a store that writes a batch as a whole; with
        any, the same call completes it.
    """
    standing = await records(store, namespace, [one.key for one in notes])
    fresh = sorted((one for one in notes if one.key not in standing), key=lambda one: str(one.value["at"]))
    done = Noted([], {}, [])
    # Facts of several turns wait only after failures; what held at each of those turns is another question.
    for _, said in groupby(fresh, key=lambda one: one.value.get("turn")):
        await _note(store, namespace, list(said), timeline, done)
    return done


async def _note(
    store: BaseStore,
    namespace: Namespace,
    fresh: Sequence[Note],
    timeline: Sequence[Segment] | None,
    done: Noted,
) -> None:
    """Write what one turn said, as what it was then, and add it to what is done."""
    near = await _like(store, namespace, fresh, timeline)
    slots = list(dict.fromkeys(one.value["slot"] for one in fresh if one.value["slot"]))
    held = await _holding(store, namespace, slots, timeline, fresh)
    known, marked, written = dict[str, JSON](), list[PutOp](), list[PutOp]()
    for one, candidates in zip(fresh, near, strict=True):
        slot = one.value["slot"]
        holder = held.get(slot)
        target = ""
        if holder is not None and _says_no_more(one.value, holder[1]):
            target = holder[0]
        target = target or next((key for key in candidates if key not in done.ended), "")
        target = target or next((k for k, v in known.items() if k not in done.ended and alike(one.value, v)), "")
        if not target and one.echoes and holder is None:
            target = one.echoes
        if target:
            done.again[one.key] = target
            marked.append(marks.mark(namespace, "again", marks.digest(target), one.key, one.value))
            continue
        done.new.append(one.key)
        known[one.key] = one.value
        written.append(PutOp(namespace, one.key, one.value))
        if slot:
            marked.append(marks.mark(namespace, "holds", marks.digest(slot), one.key, one.value))
            if holder is not None:
                done.ended.append(holder[0])
            held[slot] = (one.key, one.value)
    # Marks first: a fact that stands is passed over when this is called again, so its mark must stand by then.
    await put_all(store, [*marked, *written])


def _says_no_more(new: JSON, old: JSON) -> bool:
    """Whether a fact says of a slot what is known of it; one that says more takes its place."""
    if alike(new, old):
        return True
    less, more = content_stems(new["value"]), content_stems(str(old.get("value", "")))
    same = numbers_in(new["value"]) == numbers_in(str(old.get("value", ""))) and is_negated(new["text"]) == is_negated(
        old["text"]
    )
    return bool(less) and less <= more and same


async def _holding(
    store: BaseStore,
    namespace: Namespace,
    slots: Sequence[str],
    timeline: Sequence[Segment] | None,
    fresh: Sequence[Note],
) -> dict[str, tuple[str, JSON]]:
    """Return what held each slot before: key and record. What was forgotten or judged wrong leaves it empty."""
    at = str(fresh[0].value["at"])
    last = await holding(store, namespace, slots, timeline=timeline, at=at, without={one.key for one in fresh})
    facts = await records(store, namespace, [mark["fact"] for mark in last.values()])
    standing = [Standing(namespace, key, value) for key, value in facts.items()]
    for _, key in await settled(store, standing, timeline=timeline):
        del facts[key]
    return {slot: (mark["fact"], facts[mark["fact"]]) for slot, mark in last.items() if mark["fact"] in facts}


async def _like(
    store: BaseStore, namespace: Namespace, notes: Sequence[Note], timeline: Sequence[Segment] | None
) -> list[list[str]]:
    """Return for each note the keys of the records that say the same and hold, the nearest first."""
    found = await _candidates(store, namespace, [str(one.value["text"]) for one in notes], timeline)

    def earlier(item: SearchItem, one: Note) -> bool:
        return item.key != one.key and _at(item) <= str(one.value["at"])

    like = [
        [item for item in items if earlier(item, one) and alike(one.value, item.value, item.score)]
        for one, items in zip(notes, found, strict=True)
    ]
    every = list({item.key: item for items in like for item in items}.values())
    # Late facts are compared with what held then. Those of a player, which no timeline bounds, come in order of time.
    before = None if timeline is None else int(notes[0].value["turn"]) + 1
    holding = (
        {item.key for item in await valid(store, every, timeline=timeline, before=before)} if every else set[str]()
    )
    return [[item.key for item in items if item.key in holding] for items in like]


async def _candidates(
    store: BaseStore, namespace: Namespace, texts: Sequence[str], timeline: Sequence[Segment] | None
) -> list[list[SearchItem]]:
    # Without a filter first: while most of what is there can be seen, that is what costs a store least.
    segments: list[JSON] = [{}] if timeline is None else visible(timeline)
    wide = await _searched(store, namespace, texts, [{}], _WIDE)
    found = [[item for item in items if marks.seen(timeline, item.value)] for items in wide]
    short = [n for n, items in enumerate(found) if len(items) < _NEAR and len(wide[n]) >= _WIDE]
    if short:
        narrow = await _searched(store, namespace, [texts[n] for n in short], segments, _NEAR)
        for n, items in zip(short, narrow, strict=True):
            found[n] = items
    ranked = getattr(store, "ranks_words", False) or any(item.score is not None for items in found for item in items)
    if any(found) and not ranked:
        every = await newest_items(store, namespace, segments)
        ranked = [{item.key: item for item in [*items, *every]} for items in found]
        found = [list(items.values()) for items in ranked]
    return found


async def _searched(
    store: BaseStore, namespace: Namespace, texts: Sequence[str], filters: Sequence[JSON], limit: int
) -> list[list[SearchItem]]:
    searches = [SearchOp(namespace, filter=only or None, limit=limit, query=text) for text in texts for only in filters]
    results = await search_all(store, searches)
    width = len(filters)
    joined = [[item for items in results[n : n + width] for item in items] for n in range(0, len(results), width)]
    return [sorted(items, key=lambda item: (-(item.score or 0.0), item.key)) for items in joined]


def _at(item: SearchItem) -> str:
    return str(item.value.get("at") or marks.at(int(item.value.get("turn") or 0), 0))
