"""retrieve: recall what answers the questions, and what may contradict what was noted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, SearchItem

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.reflect.failing import failing
from questbook.graphs.reflect.places import places_of
from questbook.graphs.reflect.prompts import within
from questbook.graphs.reflect.state import ReflectState
from questbook.memory.facts.reflection import Evidence
from questbook.memory.facts.validity import keep_valid
from questbook.memory.recall.candidates import Scope, candidates
from questbook.memory.recall.query import Query
from questbook.memory.recall.recall import recall
from questbook.memory.text.wording import content_stems

_ANSWERS = 12  # memories that are recalled for each question
_NEAR = 12  # records that are looked through for likes of a new fact, itself and other new facts among them
_LIKES = 3  # of each


@failing("retrieve")
async def retrieve(state: ReflectState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Put together what the model is shown, in story order: the new facts, their likes, what answers the questions.

    Likes of a fact are what sounds like it and still holds: the other side of a contradiction is among them. Where not
    all fits, the nearest like of each fact goes before the answers, and these before further likes.
    """
    if state.facts is None or state.questions is None or runtime.store is None:
        return {}
    places = places_of(runtime.context)
    answers = list[Evidence]()
    for asked in state.questions:
        found = await recall(
            runtime.store,
            [places.exchanges, places.facts],
            Query(
                asked,
                timeline=state.timeline,
                before=state.turn + 1,
                limit=_ANSWERS,
                weights=runtime.context.weights.model_copy(update={"scoring": "sum"}),  # to reflect is not to use
                secrets=True,  # what is concluded of a secret is one
                refine=partial(keep_valid, runtime.store, timeline=state.timeline),
            ),
        )
        answers += [Evidence(one.key, one.value) for one in found]
    likes = await _likes(runtime.store, places.facts, state, state.facts)
    nearest = [one for found in likes for one in found[:1]]
    further = [one for found in likes for one in found[1:]]
    unique = {one.key: one for one in [*state.facts, *nearest, *answers, *further]}
    kept = within(list(unique.values()), runtime.context.buffer_tokens)
    return {"evidence": sorted(kept, key=lambda one: (one.value.get("turn") or 0, str(one.value.get("at")), one.key))}


async def _likes(
    store: BaseStore, namespace: tuple[str, ...], state: ReflectState, facts: Sequence[Evidence]
) -> list[list[Evidence]]:
    """Return for each new fact the earlier ones that sound most like it and hold: one batch, however many facts."""
    texts = [str(one.value["text"]) for one in facts]
    scope = Scope(namespace, state.timeline, state.turn + 1)
    [found] = await candidates(store, [scope], texts, [_NEAR] * len(texts))
    known = {one.key for one in facts}
    earlier = [
        [item for item in _ranked(text, items) if item.key not in known]
        for text, items in zip(texts, found, strict=True)
    ]
    every = {item.key: item for items in earlier for item in items}
    holding = {item.key for item in await keep_valid(store, list(every.values()), timeline=state.timeline)}
    return [[Evidence(i.key, i.value) for i in items if i.key in holding][:_LIKES] for items in earlier]


def _ranked(text: str, items: Sequence[SearchItem]) -> list[SearchItem]:
    """Return what shares a word with a text by how many, if the store cannot rank; else its own order."""
    if any(item.score is not None for item in items):
        return list(items)
    words = content_stems(text)
    shared = [(len(words & content_stems(str(item.value.get("text", "")))), item) for item in items]
    best = sorted(shared, key=lambda one: (-one[0], one[1].key))
    return [item for count, item in best if count][:_NEAR]
