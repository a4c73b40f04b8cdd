"""retrieve: recall what answers the questions, and what may contradict what was noted."""

from __future__ import annotations

from functools import partial
from typing import Any

from langgraph.runtime import Runtime

from graphs.dungeon_master.context import Context
from graphs.reflect.failing import failing
from graphs.reflect.places import places_of
from graphs.reflect.prompts import within
from graphs.reflect.state import ReflectState
from memory.recall import recall
from memory.reflected import importance_of
from memory.reflection import Evidence
from memory.validity import valid

_ANSWERS = 12  # memories that are recalled for each question
_COMPARED = 12  # of the new facts, those that matter most, whose likes are looked for
_LIKES = 4  # each, itself among them


@failing("retrieve")
async def retrieve(state: ReflectState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Put together what the model is shown, in story order: the new facts, their likes, what answers the questions.

    Likes of a fact are what sounds like it and still holds: the other side of a contradiction is among them.
    """
    if state.facts is None or state.questions is None or runtime.store is None:
        return {}
    places = places_of(runtime.context)
    search = partial(
        recall,
        runtime.store,
        timeline=state.timeline,
        before=state.turn + 1,
        weights=runtime.context.weights.model_copy(update={"scoring": "sum"}),  # to reflect is not to use
        secrets=True,  # what is concluded of a secret is one
        valid=partial(valid, runtime.store, timeline=state.timeline),
    )
    answers, likes = list[Evidence](), list[Evidence]()
    for asked in state.questions:
        found = await search([places.exchanges, places.facts], asked, limit=_ANSWERS)
        answers += [Evidence(one.key, one.value) for one in found]
    chief = sorted(state.facts, key=lambda one: (-importance_of(one.value), one.key))[:_COMPARED]
    for fact in chief:
        found = await search(places.facts, str(fact.value["text"]), limit=_LIKES)
        likes += [Evidence(one.key, one.value) for one in found]
    unique = {one.key: one for one in [*state.facts, *likes, *answers]}
    kept = within(list(unique.values()), runtime.context.buffer_tokens)
    return {"evidence": sorted(kept, key=lambda one: (one.value.get("turn") or 0, str(one.value.get("at")), one.key))}
