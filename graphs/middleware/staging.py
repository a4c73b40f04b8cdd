"""What the model changes in memory in the middle of a turn: staged in state until the turn has its place in the store.

A write that went to the store at once would be seen by a fork from before it. So a tool leaves it in the channel
`staged`, which goes back with the checkpoint, and `write_staged` writes it after the turn, on the turn's own place.
Records are never changed: an update is a new record and a judgement that the old one holds no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.types import Overwrite

from questbook.graphs.middleware.recollection import facts_namespace
from questbook.graphs.settings import NotingContext
from questbook.graphs.turn.scope import visible_timeline
from questbook.graphs.turn.state import TurnState, failure_notice
from questbook.graphs.turn.turn import origin_of
from questbook.memory.facts.validity import turn_position, write_judgements
from questbook.memory.facts.writing import note_facts
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import branch_of, record_key
from questbook.types import JSON

Action = Literal["create", "update", "delete", "end"]
ENDINGS = ("delete", "end")
"""Actions after which a memory holds no more, with none in its place; "delete" is what other libraries call it."""

_AFTER_FACTS = 900  # a judgement's place in its turn


class Staged(NamedTuple):
    """What a turn leaves of its changes.

    Attributes:
        texts: The new memories, by the id that the model knows them by.
        ended: Keys of records that hold no more, each with the id of the memory in its place; "" if none is.
    """

    texts: dict[str, str]
    ended: dict[str, str]


def read_staged(changes: Sequence[Mapping[str, str]]) -> Staged:
    """Put changes together: {"id", "action", "text", "of"}; `of` is what an update or a deletion is about."""
    texts, ended = dict[str, str](), dict[str, str]()
    for change in changes:
        about, own = change["of"], change["action"] not in ENDINGS
        if about in texts:  # of this turn: it was never written
            del texts[about]
            ended = {key: (change["id"] if own else "") if new == about else new for key, new in ended.items()}
        elif about:
            ended[about] = change["id"] if own else ""
        if own:
            texts[change["id"]] = change["text"]
    return Staged(texts, ended)


async def write_staged(state: Any, runtime: Runtime[NotingContext]) -> JSON:
    """Write what tools changed, once the turns have their places; a failure leaves it for the next turn.

    Writing twice is writing once. The channel `staged` holds the changes: {"turn", "id", "action", "text", "of"}.
    """
    if not state.staged or runtime.store is None or state.remembered_through < state.turn:
        return {}
    try:
        await _write(state, state.staged, runtime, runtime.store)
    except Exception as error:  # noqa: BLE001 (any store may be behind this; the reply must survive its failure)
        text = "What was to be kept of this turn was not written to memory; the next turn will write it."
        return {"notices": [failure_notice(state.turn, "manage_memory", text, error)]}
    return {"staged": Overwrite([])}


async def _write(state: TurnState, staged: Sequence[JSON], runtime: Runtime[NotingContext], store: BaseStore) -> None:
    facts, view = facts_namespace(runtime.context), visible_timeline(state, runtime)
    for turn in sorted({change["turn"] for change in staged}):
        changes = read_staged([change for change in staged if change["turn"] == turn])
        branch, origin = branch_of(state.timeline, turn), origin_of(runtime)
        texts = [{"text": text, "kind": "trait"} for text in changes.texts.values()]
        await note_facts(store, facts, texts, timeline=view, turn=turn, provenance=origin)
        place = {"at": turn_position(turn, _AFTER_FACTS), "turns": [turn, turn]}
        stamp = Stamp(branch, turn).to_json() | origin | place
        holds = record_key(branch, turn, "exchange")
        await write_judgements(store, facts, [(key, holds) for key in changes.ended], stamp)
