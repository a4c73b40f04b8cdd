"""Sources: the records that an insight rests on, and which insights go when a source is removed.

An insight cites the records that it was drawn from. If it is drawn again from other records, it is not written again;
the second drawing is a record of its own beside the facts, so that nothing is changed that another branch can see. When
the sources of the first one are removed, the second one takes its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from langgraph.store.base import BaseStore, Item, PutOp, SearchOp

from questbook.memory.facts.marks import ALL_MARKS, Namespace
from questbook.memory.store.any_store import AnyItem, search_all
from questbook.memory.timeline.timeline import Segment, is_visible, read_heads
from questbook.types import JSON

SOURCES = "sources"
"""Last label of the namespaces, beside those of facts, that hold second drawings of insights."""
_SAME_AS = "same_as"


class Dependents(NamedTuple):
    """What rests on records that are removed.

    Attributes:
        items: Insights drawn from them, insights drawn from such insights, and second drawings of either kind.
        replacements: The writes by which second drawings from other sources take the place of removed insights.
    """

    items: list[Item]
    replacements: list[PutOp]


def second_drawing_op(facts: Namespace, key: str, insight: str, value: Mapping[str, object]) -> PutOp:
    """Make the write that says that an insight was drawn again.

    Args:
        facts: Namespace of the facts.
        key: Key under which the second drawing would have been written as an insight.
        insight: Key of the insight that says the same.
        value: Its record, with stamp and `cites`.
    """
    return PutOp((*facts[:-1], SOURCES), key, {**value, _SAME_AS: insight}, index=False)


async def find_sources(
    store: BaseStore,
    facts: Namespace,
    insights: Iterable[AnyItem],
    *,
    timeline: Sequence[Segment] | None = None,
    before: int | None = None,
) -> dict[str, list[str]]:
    """Return the keys of all records that insights rest on, by the insight's key.

    Args:
        store: Any store.
        facts: Namespace of the facts.
        insights: The insights.
        timeline: The timeline that asks; None: everything is visible.
        before: Only drawings from before this turn.
    """
    asked = list(insights)
    namespace = (*facts[:-1], SOURCES)
    searches = [SearchOp(namespace, filter={_SAME_AS: insight.key}, limit=ALL_MARKS) for insight in asked]
    results = await search_all(store, searches)
    await read_heads(store, timeline, (item.value for items in results for item in items))
    sources: dict[str, list[str]] = {}
    for insight, items in zip(asked, results, strict=True):
        drawings = [item.value for item in items if is_visible(timeline, item.value, before)]
        drawings = [insight.value, *sorted(drawings, key=lambda value: str(value.get("at")))]
        sources[insight.key] = list(dict.fromkeys(key for value in drawings for key in value.get("cites") or []))
    return sources


def find_dependents(facts: Namespace, removed: Collection[str], known: Sequence[Item]) -> Dependents:
    """Find what rests on records that are removed.

    Args:
        facts: Namespace of the facts.
        removed: Keys of the records.
        known: Insights and second drawings of every branch. Records that cite nothing are skipped.
    """
    keys = set(removed)
    items: list[Item] = []
    while resting := [item for item in known if item.key not in keys and keys & set(item.value.get("cites") or [])]:
        items += resting
        keys |= {item.key for item in resting}
    insights = {item.key for item in known if item.key in keys and item.namespace == facts}
    drawings = [item for item in known if item.key not in keys and item.value.get(_SAME_AS) in insights]
    replacements: list[PutOp] = []
    heirs: dict[tuple[str, str], str] = {}  # by insight and branch: the first second drawing becomes the insight
    for item in sorted(drawings, key=lambda item: (str(item.value.get("at")), item.key)):
        insight, branch = str(item.value[_SAME_AS]), str(item.value.get("branch"))
        heir = heirs.setdefault((insight, branch), item.key)
        if heir == item.key:
            value: JSON = {name: part for name, part in item.value.items() if name != _SAME_AS}
            replacements += [PutOp(facts, item.key, value), PutOp(item.namespace, item.key, None)]
        else:
            replacements.append(PutOp(item.namespace, item.key, {**item.value, _SAME_AS: heir}, index=False))
    return Dependents(items, replacements)
