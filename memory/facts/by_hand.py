"""Facts that a person writes by hand, outside of any turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from langgraph.store.base import BaseStore

from questbook.memory.facts.fact import Fact
from questbook.memory.facts.marks import Namespace, text_digest, turn_position
from questbook.memory.facts.writing import FactChanges, FactDraft, note_facts, write_facts
from questbook.memory.store.any_store import items_under
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import Segment, branch_of, record_key

BY_HAND = "hand"
"""What a record that a person wrote has in its field `by`."""

_AFTER_ALL = 950  # a fact's place in its turn: after what the turn taught and what was concluded in it


async def add_fact(
    store: BaseStore,
    namespace: Namespace,
    fact: Fact | Mapping[str, Any],
    *,
    timeline: Sequence[Segment] | None = None,
    said_at: datetime | None = None,
) -> FactChanges:
    """Write a fact by hand, as of the last turn of a timeline; a newer fact in its slot supersedes it, as always.

    Args:
        store: Any store; it should index the field `text`.
        namespace: Where the facts are: `(…, "facts")`.
        fact: The fact, or its fields; `text` is needed.
        timeline: The timeline that is to know it; None: the fact does not rewind, as what is known of a person.
        said_at: When it was written; the default is now.

    Returns:
        What was written: a new record, or a mark that the fact was said again.

    Raises:
        ValueError: A field is not valid.
    """
    at = (said_at or datetime.now(UTC)).astimezone(UTC)
    origin = {"by": BY_HAND, "said_at": at.isoformat(timespec="seconds")}
    if not timeline:
        return await note_facts(store, namespace, [fact], noted_at=at, provenance=origin)
    turn = timeline[-1][1]
    branch = branch_of(timeline, turn)
    stamp = Stamp(branch, turn).to_json()
    own = {name: stamp[name] for name in ("branch", "order")} | {"by": BY_HAND}
    ordinal = len([item async for item in items_under(store, namespace, own)])
    record = (fact if isinstance(fact, Fact) else Fact.model_validate(dict(fact))).record()
    position = {"at": turn_position(turn, _AFTER_ALL + ordinal), "turns": [turn, turn], "cites": [], "messages": []}
    key = record_key(branch, turn, f"{BY_HAND}.{text_digest(record['text'])}")  # of no fact that the turn may teach yet
    draft = FactDraft(key, record | stamp | origin | position)
    return await write_facts(store, namespace, [draft], timeline=timeline)
