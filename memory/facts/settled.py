"""Settled: facts that a reflection found to be contradicted in free text, which hold no more.

Slots part what contradicts itself word for word (`questbook.memory.facts.validity`); "Oda never leaves the mill" and
"Oda was seen at the fair" need a judge. A judgement is a record of its own with the stamp of the turn that reflected,
and no fact is touched, so that a timeline from before it goes on believing. It is found by a key of fact and branch. A
timeline may have a hundred branches, and hardly any fact is ever judged; so a note without branch, the same whoever
writes it, says of which facts there is a judgement at all. To ask of a hundred facts whether they hold is two batches
of reads, and no search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore, GetOp, PutOp, SearchOp

from questbook.memory.facts import marks
from questbook.memory.store.any_store import AnyItem, get_all, search_all
from questbook.memory.timeline.timeline import Segment

JSON = dict[str, Any]
Namespace = tuple[str, ...]
Place = tuple[Namespace, str]
"""Namespace and key of a fact."""

SETTLED = "settled"
_JUDGED = "judged"
_ALL = 10_000  # judgements that are read where no timeline says which branches to ask
_NEVER = frozenset({"exchange", "lore"})  # kinds that nothing contradicts: they were said, or stand in a book


class Standing(NamedTuple):
    """A record by its place, where a store's item is not at hand."""

    namespace: Namespace
    key: str
    value: JSON


async def settle(
    store: BaseStore, namespace: Namespace, judged: Sequence[tuple[str, str]], stamped: Mapping[str, Any]
) -> list[str]:
    """Write that facts hold no more.

    Args:
        store: Any store.
        namespace: Where the facts are: `(…, "facts")`. Judgements go beside it.
        judged: Pairs of keys: of the fact that ends, and of the one that holds instead.
        stamped: The stamp, `at` and `turns` of the turn that judged.

    Returns:
        Keys of the facts that end by it. What has been judged on this branch before is passed over.
    """
    place, branch = _place_of(namespace), str(stamped["branch"])
    pairs = dict(reversed(judged))  # the first judgement of a fact counts
    keys = {ended: _key(ended, branch) for ended in pairs}
    if not keys:
        return []
    found = await get_all(store, [GetOp(place, key) for key in keys.values()])
    new = [ended for ended, item in zip(keys, found, strict=True) if item is None]
    # The note comes first: without a judgement it says nothing, but a judgement without it would not be found.
    writes = [PutOp(_judged_of(namespace), marks.digest(ended), {"judged": True}, index=False) for ended in pairs]
    writes += [
        PutOp(place, keys[ended], {"ended": ended, "fact": pairs[ended], **stamped}, index=False) for ended in new
    ]
    await store.abatch(writes)
    return new


async def settled(
    store: BaseStore, found: Iterable[AnyItem], *, timeline: Sequence[Segment] | None = None, before: int | None = None
) -> dict[Place, int]:
    """Return which of some records hold no more, each with the turn at which that was judged.

    Args:
        store: Any store.
        found: Records of any namespaces; exchanges, lore and what carries no branch are passed over.
        timeline: What can be seen; None: everything.
        before: Take account only of what was judged before this turn.
    """
    facts = {
        (tuple(one.namespace), one.key): int(one.value.get("turn", 0))
        for one in found
        if "branch" in one.value and one.value.get("kind", "exchange") not in _NEVER
    }
    if timeline is None:
        return await _settled_anywhere(store, facts, before)
    notes = await get_all(
        store, [GetOp(_judged_of(space), marks.digest(key), refresh_ttl=False) for space, key in facts]
    )
    asked = [
        (place, GetOp(_place_of(place[0]), _key(place[1], branch), refresh_ttl=False))
        for (place, turn), note in zip(facts.items(), notes, strict=True)
        if note is not None
        for branch, through in timeline
        if through >= turn
    ]
    items = await get_all(store, [op for _, op in asked])
    ends: dict[Place, int] = {}
    for (place, _), item in zip(asked, items, strict=True):
        if item is not None and marks.seen(timeline, item.value, before):
            turn = int(item.value["turn"])
            ends[place] = min(turn, ends.get(place, turn))
    return ends


async def _settled_anywhere(store: BaseStore, facts: Mapping[Place, int], before: int | None) -> dict[Place, int]:
    spaces = list(dict.fromkeys(namespace for namespace, _ in facts))
    if not spaces:
        return {}
    searches = [SearchOp(_place_of(space), limit=_ALL) for space in spaces]
    results = await search_all(store, searches)
    ends: dict[Place, int] = {}
    for space, items in zip(spaces, results, strict=True):
        for item in items:
            place, turn = (space, item.value["ended"]), int(item.value["turn"])
            if place in facts and marks.seen(None, item.value, before):
                ends[place] = min(turn, ends.get(place, turn))
    return ends


def _place_of(facts: Namespace) -> Namespace:
    return (*facts[:-1], SETTLED)


def _judged_of(facts: Namespace) -> Namespace:
    return (*facts[:-1], _JUDGED)


def _key(ended: str, branch: str) -> str:
    return f"{marks.digest(ended)}-{branch}"
