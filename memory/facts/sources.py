"""Sources: what insights rest on, and what falls with it.

An insight cites the records that it was drawn from. Drawn again from others, it is not written again; what it rests on
besides is a record of its own, the insight as it would have been written, so that nothing is changed that another
branch can see. If what the first one rests on is taken away, the other stands in its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore, Item, PutOp, SearchOp

from questbook.memory.facts import marks
from questbook.memory.store.any_store import AnyItem, search_all
from questbook.memory.timeline.timeline import Segment

JSON = dict[str, Any]
Namespace = tuple[str, ...]

SOURCES = "sources"
"""Last label of the namespaces, beside those of facts, where it is kept what insights rest on besides."""
_SAME = "same_as"
_ALL = 10_000  # further sources of one insight that are read


class Fallen(NamedTuple):
    """What falls with records that are taken away.

    Attributes:
        items: The insights that were drawn from them, those drawn from such insights, and further sources that were.
        instead: The writes by which insights that were drawn from something else as well stand in their place.
    """

    items: list[Item]
    instead: list[PutOp]


def further_op(facts: Namespace, key: str, insight: str, value: Mapping[str, Any]) -> PutOp:
    """Make the write that says that an insight was drawn again.

    Args:
        facts: Namespace of the facts.
        key: Key under which it would have been written.
        insight: Key of the insight that says the same.
        value: Its record, with stamp and `cites`.
    """
    return PutOp((*facts[:-1], SOURCES), key, {**value, _SAME: insight}, index=False)


async def sources(
    store: BaseStore,
    facts: Namespace,
    insights: Iterable[AnyItem],
    *,
    timeline: Sequence[Segment] | None = None,
    before: int | None = None,
) -> dict[str, list[str]]:
    """Return the keys of everything that insights rest on, as far as a timeline sees it, by the insight's key.

    Args:
        store: Any store.
        facts: Namespace of the facts.
        insights: The insights.
        timeline: What can be seen; None: everything.
        before: Only what was drawn before this turn.
    """
    asked = list(insights)
    place = (*facts[:-1], SOURCES)
    searches = [SearchOp(place, filter={_SAME: one.key}, limit=_ALL) for one in asked]
    results = await search_all(store, searches)
    found: dict[str, list[str]] = {}
    for one, items in zip(asked, results, strict=True):
        seen = [item.value for item in items if marks.seen(timeline, item.value, before)]
        cited = [one.value, *sorted(seen, key=lambda value: str(value.get("at")))]
        found[one.key] = list(dict.fromkeys(key for value in cited for key in value.get("cites") or []))
    return found


def fall(facts: Namespace, gone: Collection[str], known: Sequence[Item]) -> Fallen:
    """Find what rests on records that are taken away.

    Args:
        facts: Namespace of the facts.
        gone: Keys of the records.
        known: Insights and further sources, of every branch; what cites nothing is passed over.
    """
    keys = set(gone)
    items: list[Item] = []
    while more := [one for one in known if one.key not in keys and keys & set(one.value.get("cites") or [])]:
        items += more
        keys |= {one.key for one in more}
    insights = {one.key for one in known if one.key in keys and one.namespace == facts}
    left = [one for one in known if one.key not in keys and one.value.get(_SAME) in insights]
    instead: list[PutOp] = []
    heirs: dict[tuple[str, str], str] = {}
    for one in sorted(left, key=lambda item: (str(item.value.get("at")), item.key)):
        insight, branch = str(one.value[_SAME]), str(one.value.get("branch"))
        heir = heirs.setdefault((insight, branch), one.key)
        if heir == one.key:
            value = {name: part for name, part in one.value.items() if name != _SAME}
            instead += [PutOp(facts, one.key, value), PutOp(one.namespace, one.key, None)]
        else:
            instead.append(PutOp(one.namespace, one.key, {**one.value, _SAME: heir}, index=False))
    return Fallen(items, instead)
