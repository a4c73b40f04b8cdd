"""gather: find the facts that were noted since the last reflection, and whether they matter enough."""

from __future__ import annotations

from typing import Any

from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.reflect.failing import failing
from questbook.graphs.reflect.places import places_of
from questbook.graphs.reflect.prompts import within
from questbook.graphs.reflect.state import ReflectState
from questbook.memory.facts.reflection import Evidence, find_backlog, importance_of
from questbook.memory.facts.validity import keep_valid


@failing("gather")
async def gather(state: ReflectState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Sum up what is not reflected on. Below the threshold nothing is gathered, and the reflection ends here."""
    fresh: dict[str, Any] = {"facts": None, "questions": None, "evidence": None, "concluded": None, "written": []}
    fresh |= {"failed": "", "pending": 0}
    if runtime.store is None or not state.timeline:
        return fresh
    context, through = runtime.context, state.through or state.turn
    places = places_of(context)
    found = await find_backlog(runtime.store, places.facts, places.reflections, state.timeline, through)
    fresh |= {"pending": found.importance, "reflected_through": found.since}
    if found.importance < context.reflection_importance:
        return fresh
    holding = await keep_valid(runtime.store, found.facts, timeline=state.timeline)
    first = sorted(holding, key=lambda item: (-importance_of(item.value), str(item.value.get("at")), item.key))
    kept = within([Evidence(item.key, item.value) for item in first], context.buffer_tokens // 2)
    head = await runtime.store.aget(places.head, "head")
    name = str(((head.value if head else {}).get("character") or {}).get("name") or "")
    return fresh | {"facts": kept, "viewer": [name] if name else []}
