"""Successors: what holds now, in the place of what held once.

Who asks by a name that only the old fact has, or in the words of the turn that told it, finds what was so then. That
fact holds no more and is left out, but what took its place may share no word with the question; so it is brought along,
also before an exchange that told what has changed since.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from langgraph.store.base import BaseStore, GetOp

from questbook.memory.facts.settled import Standing
from questbook.memory.facts.validity import holding, records, valid
from questbook.memory.recall.query import Recalled
from questbook.memory.store.any_store import get_all
from questbook.memory.timeline.timeline import Segment, record_key

JSON = dict[str, Any]
Namespace = tuple[str, ...]
Place = tuple[Namespace, str]
_Any = Recalled | Standing

_FIRST = 24  # memories, in their order, of which what took their place is looked for; more are seldom shown
_EXCHANGES = 8  # of those, exchanges whose facts are looked up
_FACTS = 4  # facts of one exchange that are; a turn seldom teaches more


async def with_successors(
    store: BaseStore, found: Sequence[Recalled], facts: Namespace, *, timeline: Sequence[Segment]
) -> list[Recalled]:
    """Return the records that hold, and in the place of those that do not what holds their slot now.

    Args:
        store: Any store.
        found: Records of any namespaces, best first.
        facts: Where the campaign's facts are.
        timeline: What can be seen.
    """
    told = await _told(store, [one for one in found if _is_exchange(one)][:_EXCHANGES], facts)
    every: list[_Any] = [*found, *(fact for some in told.values() for fact in some)]
    held = {_place(one) for one in await valid(store, every, timeline=timeline)}
    ended = [one for one in [*every[:_FIRST], *every[len(found) :]] if _place(one) not in held]
    now = await _successors(store, ended, timeline)
    kept: dict[Place, Recalled] = {}
    for one in found:
        olds: list[_Any] = [*told.get(one.key, []), one]
        for old in olds:
            place = _slot(old)
            if _place(old) in held or place not in now:
                continue
            new = now[place]
            kept.setdefault(
                _place(new),
                one._replace(key=new.key, value=new.value, namespace=new.namespace, question=None, folded=()),
            )
        if _place(one) in held:
            kept.setdefault(_place(one), one)
    return list(kept.values())


async def _told(store: BaseStore, exchanges: Sequence[Recalled], facts: Namespace) -> dict[str, list[Standing]]:
    """Return the facts that exchanges taught, by the exchange's key."""
    keys = {
        record_key(str(one.value["branch"]), int(one.value["turn"]), "fact", ordinal): one.key
        for one in exchanges
        for ordinal in range(_FACTS)
    }
    if not keys:
        return {}
    items = await get_all(store, [GetOp(facts, key, refresh_ttl=False) for key in keys])
    told: dict[str, list[Standing]] = defaultdict(list)
    for (key, exchange), item in zip(keys.items(), items, strict=True):
        if item is not None:
            told[exchange].append(Standing(facts, key, item.value))
    return told


async def _successors(store: BaseStore, ended: Sequence[_Any], timeline: Sequence[Segment]) -> dict[Place, Standing]:
    """Return what holds the slots of records that hold no more, as far as it does."""
    slots: dict[tuple[Namespace, bool], list[str]] = defaultdict(list)
    for one in (one for one in ended if one.value.get("slot")):
        slots[tuple(one.namespace), "branch" in one.value].append(str(one.value["slot"]))
    now: dict[Place, Standing] = {}
    for (space, rewinds), asked in slots.items():
        line = timeline if rewinds else None
        held = await holding(store, space, dict.fromkeys(asked), timeline=line)
        values = await records(store, space, [mark["fact"] for mark in held.values()])
        for slot, mark in held.items():
            if mark["fact"] in values:
                now[space, slot] = Standing(space, mark["fact"], values[mark["fact"]])
    standing = {_place(one) for one in await valid(store, list(now.values()), timeline=timeline)}
    return {place: one for place, one in now.items() if _place(one) in standing}


def _is_exchange(one: Recalled) -> bool:
    return one.value.get("kind") == "exchange" and "branch" in one.value and isinstance(one.value.get("turn"), int)


def _place(one: _Any) -> Place:
    return tuple(one.namespace), one.key


def _slot(one: _Any) -> Place:
    return tuple(one.namespace), str(one.value.get("slot") or "")
