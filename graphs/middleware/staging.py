"""What the model changes in memory in the middle of a turn: staged in state until the turn has its place in the store.

A write that went to the store at once would be seen by a fork from before it. So a tool leaves it in the channel
`staged`, which goes back with the checkpoint, and `write_staged` writes it after the turn, on the turn's own place.
Records are never changed: an update is a new record and a judgement that the old one holds no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from langgraph.runtime import Runtime

from questbook.graphs.agent.context import Context
from questbook.graphs.middleware.recollection import facts_namespace
from questbook.graphs.turn.exchanges import origin_of
from questbook.graphs.turn.scope import visible_timeline
from questbook.graphs.turn.state import TurnState
from questbook.memory.facts.ledger import turn_position, write_judgements
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


async def write_staged(state: TurnState, staged: Sequence[JSON], runtime: Runtime[Context]) -> None:
    """Write what the tools changed in turns that have their place now; writing twice is writing once.

    Args:
        state: The thread's state, its turns remembered.
        staged: The changes: {"turn", "id", "action", "text", "of"}.
        runtime: The run's, with a store.
    """
    assert runtime.store is not None  # noqa: S101 (the turn has been remembered)
    facts, view = facts_namespace(runtime.context), visible_timeline(state, runtime)
    for turn in sorted({change["turn"] for change in staged}):
        changes = read_staged([change for change in staged if change["turn"] == turn])
        branch, origin = branch_of(state.timeline, turn), origin_of(runtime)
        texts = [{"text": text, "kind": "trait"} for text in changes.texts.values()]
        await note_facts(runtime.store, facts, texts, timeline=view, turn=turn, provenance=origin)
        place = {"at": turn_position(turn, _AFTER_FACTS), "turns": [turn, turn]}
        stamp = Stamp(branch, turn).to_json() | origin | place
        holds = record_key(branch, turn, "exchange")
        await write_judgements(runtime.store, facts, [(key, holds) for key in changes.ended], stamp)
