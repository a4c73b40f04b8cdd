"""Reflected: how far a timeline has been reflected on, and which facts wait.

A reflection that is done leaves a record with its stamp, after everything else that it writes. So one that failed has
not been, and a fork from before it reflects for itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore, Item, PutOp

from questbook.memory.facts import marks
from questbook.memory.facts.facts import USUAL
from questbook.memory.facts.reflection import INSIGHT
from questbook.memory.store.any_store import items_under
from questbook.memory.timeline.timeline import Segment, record_key, visible

JSON = dict[str, Any]
Namespace = tuple[str, ...]

_ALL = 10_000  # reflections of a campaign that are read: one for each twenty turns or so


class Waiting(NamedTuple):
    """What has not been reflected on.

    Attributes:
        since: Last turn that was; 0 if none was.
        facts: The facts noted after it, the oldest first; no insights.
        importance: Their sum, each from 1 to 10.
    """

    since: int
    facts: list[Item]
    importance: int


async def waiting(
    store: BaseStore, facts: Namespace, reflections: Namespace, timeline: Sequence[Segment], through: int
) -> Waiting:
    """Return the facts of a timeline up to a turn that no reflection has covered.

    Args:
        store: Any store.
        facts: Where the facts are.
        reflections: Where it is kept which reflections were done.
        timeline: What can be seen.
        through: The last turn that counts.
    """
    done = await store.asearch(reflections, limit=_ALL)
    since = max((int(i.value["through"]) for i in done if marks.seen(timeline, i.value)), default=0)
    found: list[Item] = []
    for segment in visible(timeline, through + 1):
        after = segment | {"order": segment["order"] | {"$gt": f"{since:08}"}}
        found += [item async for item in items_under(store, facts, after)]
    unique = {item.key: item for item in found if not _is_insight(item.value)}
    ordered = sorted(unique.values(), key=lambda item: (str(item.value.get("at")), item.key))
    return Waiting(since, ordered, sum(importance_of(item.value) for item in ordered))


def done_op(reflections: Namespace, stamped: Mapping[str, Any], through: int, told: Mapping[str, Any]) -> PutOp:
    """Make the write that says that a timeline has been reflected on through a turn.

    Args:
        reflections: Where that is kept.
        stamped: The stamp of the turn that reflected.
        through: The last turn whose facts were reflected on.
        told: What came of it: keys, counts, notices.
    """
    key = record_key(str(stamped["branch"]), int(stamped["turn"]), "reflection")
    return PutOp(reflections, key, {**told, **stamped, "through": through}, index=False)


def importance_of(value: Mapping[str, Any]) -> int:
    """Return a record's importance, 1 to 10; 5 if it has none."""
    importance = value.get("importance")
    return importance if isinstance(importance, int) and 1 <= importance <= 10 else USUAL


def _is_insight(value: Mapping[str, Any]) -> bool:
    return value.get("kind") == INSIGHT or bool(value.get("cites"))
