"""Retracting: undoing what was derived from one turn, and nothing else.

A turn that should never have been (a lie, an injection, a slip) leaves traces: fields of the page, sentences of the
summary, a memory. Provenance says which. What later turns, or a person, wrote over them stands. The outcome is a new
checkpoint, so Studio shows it, and the state before it can be gone back to; the turn's record is kept aside, under
"retracted", where nothing is recalled from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import RemoveMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import Item, PutOp
from langgraph.types import Overwrite, StateSnapshot

from questbook.graphs.dungeon_master import prompts
from questbook.graphs.dungeon_master.facts import FACTS
from questbook.graphs.dungeon_master.forgetting.provenance import facts_of, leaves, visible_records
from questbook.graphs.errors import HistoryError
from questbook.graphs.history.history import History
from questbook.graphs.history.view import Graph
from questbook.graphs.settings import Settings
from questbook.graphs.turn.buffer import fold, summarizer_of
from questbook.graphs.turn.turn import notice, public_turns
from questbook.memory.buffer.summary import extend_summary
from questbook.memory.buffer.turns import ASIDE
from questbook.memory.facts.marks import JUDGEMENTS, MARKS
from questbook.memory.facts.sources import SOURCES, find_dependents
from questbook.memory.store.any_store import items_under, put_all
from questbook.memory.timeline.namespaces import campaign_namespace, player_namespace
from questbook.memory.timeline.timeline import Segment, is_visible, record_key
from questbook.notebooks import StateNotebook, diff_patch, merge_patch, render_value

JSON = dict[str, Any]
_MOST_CALLS = 8  # of the model, for one summary; what is older goes in by its first sentences


class Retracted(NamedTuple):
    """What was undone.

    Attributes:
        turn: The turn.
        player: What the player had said in it.
        noted_with: Other turns whose notes were made in the same patch, and went with it.
        fields: Paths of the page that were put back.
        standing: Paths that it had set and that later turns or a person have changed since; they stand.
        messages: How many messages left the buffer.
        facts: How many facts were noted of it, of the story and of the player, and are known no more.
        summarised: Whether the summary was made anew.
    """

    turn: int
    player: str
    noted_with: list[int]
    fields: list[str]
    standing: list[str]
    messages: int
    facts: int
    summarised: bool


async def retract(graph: Graph, config: RunnableConfig, context: Settings, turn: int) -> Retracted:
    """Undo what was derived from a turn of this line.

    Args:
        graph: The dungeon master, compiled with checkpointer and store.
        config: Names the thread.
        context: The settings.
        turn: Its number.

    Raises:
        HistoryError: There is no such turn on this line, or the last turn is not finished. Nothing was changed.
    """
    now = await History(graph, config, context).current_state()
    if now.next:
        raise HistoryError("The last turn is not finished: answer it first, or undo it; then retract.")
    timeline: list[Segment] = [(branch, reached) for branch, reached in now.values["timeline"]]
    records = await visible_records(graph, context, timeline)
    found = next((record for record in records if record["turn"] == turn), None)
    if found is None:
        known = f"{records[0]['turn']} to {records[-1]['turn']}" if records else "none yet"
        raise HistoryError(f"There is no turn {turn} on this line to retract; remembered turns: {known}.")

    page = StateNotebook.load(now.values["quest"]).as_json()
    fields, touched, noted_with = list[str](), list[str](), set[int]()
    for noting in [record for record in records if _covers(record, turn)]:
        patch = noting["noted"]["patch"]
        before, after = await _around(graph, noting, records)
        later = [record["noted"]["patch"] for record in records if record["turn"] > noting["turn"] and _notes(record)]
        back = put_back(patch, before, after, page, later)
        page = StateNotebook.load(merge_patch(page, back)).as_json()
        fields += [".".join(path) for path, _ in leaves(back)]
        touched += [".".join(path) for path, _ in leaves(patch)]
        noted_with |= set(range(noting["noted"]["from"], noting["noted"]["through"] + 1)) - {turn}

    rest = [record for record in records if record is not found]
    gone = [m.id for m in now.values["messages"] if m.id in found["messages"] and m.name != ASIDE]
    update: JSON = {"quest": Overwrite(page), "messages": [RemoveMessage(id) for id in gone]}  # noqa: A001
    update["facts"] = [entry for entry in now.values.get("facts") or [] if not _taught(entry, found)]
    notices = [notice(now.values["turn"], "retract", f"Turn {turn} was retracted.")]
    told_of = not gone or turn <= now.values.get("summarised_through", 0)
    if summarised := bool(told_of and now.values.get("summary")):
        update["summary"], failure = await _summary(_folded(rest, now), context)
        notices += [notice(now.values["turn"], "retract", failure)] if failure else []
    thread: RunnableConfig = {**config, "configurable": {"thread_id": config["configurable"]["thread_id"]}}
    await graph.aupdate_state(thread, {**update, "notices": notices}, as_node="condense")
    await _set_aside(graph, context, found, now, update)
    facts = await _unlearn(graph, context, found, timeline)
    standing = [field for field in touched if not any(field == f or field.startswith(f"{f}.") for f in fields)]
    return Retracted(turn, found["player"], sorted(noted_with), fields, standing, len(gone), facts, summarised)


def put_back(
    patch: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any], now: Mapping[str, Any],
    later: Sequence[Any],
) -> JSON:  # fmt: skip
    """Return the merge patch that undoes a patch, as far as nothing has been written over it.

    Args:
        patch: What was done.
        before: The page before it.
        after: The page after it.
        now: The page as it stands.
        later: Patches that later turns made.
    """
    back: JSON = {}
    for key, value in patch.items():
        since = [other[key] for other in later if isinstance(other, Mapping) and key in other]
        there, made = now.get(key), after.get(key)
        if isinstance(value, Mapping) and isinstance(there, Mapping):
            if key not in before and there == made and not since:
                back[key] = None
            elif all(isinstance(other, Mapping) for other in since):
                inner = put_back(value, before.get(key) or {}, made or {}, there, since)
                back |= {key: inner} if inner else {}
        elif not since and there == made and there != before.get(key):
            back[key] = before.get(key)
    return back


async def _around(graph: Graph, record: JSON, records: Sequence[JSON]) -> tuple[JSON, JSON]:
    """Return the page before and after a record's notes: from the checkpoints; where they are gone, from patches."""
    patch = record["noted"]["patch"]
    if record.get("thread") and record.get("checkpoint"):
        where = {"thread_id": record["thread"], "checkpoint_ns": "", "checkpoint_id": record["checkpoint"]}
        after = await graph.aget_state({"configurable": where})
        before = await graph.aget_state(after.parent_config) if after.parent_config else after
        if after.values and before.values:
            pages = [StateNotebook.load(state.values.get("quest")).as_json() for state in (before, after)]
            if diff_patch(*pages) == patch:
                return pages[0], pages[1]
    page = StateNotebook().as_json()
    for earlier in records:
        if earlier["turn"] < record["turn"] and _notes(earlier):
            page = merge_patch(page, earlier["noted"]["patch"])
    return page, merge_patch(page, patch)


def _notes(record: JSON) -> bool:
    return bool((record.get("noted") or {}).get("patch"))


def _covers(record: JSON, turn: int) -> bool:
    return _notes(record) and record["noted"]["from"] <= turn <= record["noted"]["through"]


def _folded(records: Sequence[JSON], now: StateSnapshot) -> list[JSON]:
    """Return the records of the turns that the summary tells of: they left the buffer, or are folded in already."""
    buffered = {message.id for message in now.values["messages"]}
    first = min((r["turn"] for r in records if buffered & set(r["messages"])), default=now.values["turn"] + 1)
    return [r for r in records if r["turn"] < first or r["turn"] <= now.values.get("summarised_through", 0)]


async def _summary(records: Sequence[JSON], context: Settings) -> tuple[str, str]:
    """Summarise turns from their records, a buffer's worth at a time as `condense` does; also say what failed."""
    portions: list[list[JSON]] = [[]]
    room = context.buffer_tokens
    for record in public_turns(records):
        told = {"turn": record["turn"], "player": record["player"], "reply": record["reply"]}
        room -= (cost := count_tokens_approximately([render_value(told)]))
        if room < 0 and portions[-1]:
            portions.append([])
            room = context.buffer_tokens - cost
        portions[-1].append(told)
    early = [f"{turn['player']}. {turn['reply']}" for portion in portions[:-_MOST_CALLS] for turn in portion]
    summary = extend_summary("", early, context.summary_tokens) if early else ""
    failed = ""
    for portion in filter(None, portions[-_MOST_CALLS:]):
        summary, failure = await fold(summary, portion, context, summarizer_of(context, prompts.CONDENSE))
        failed = failure or failed
    return summary, failed


async def _set_aside(graph: Graph, context: Settings, record: JSON, now: StateSnapshot, update: JSON) -> None:
    """Take the record out of recall, on every branch that saw it, and correct the campaign's head if it is here."""
    store: Any = graph.store
    key = record_key(record["branch"], record["turn"], "exchange")
    kept, aside, head = (
        campaign_namespace(context.user, context.campaign, n) for n in ("exchanges", "retracted", "head")
    )
    writes = [PutOp(aside, key, record, index=False), PutOp(kept, key, None)]
    if (found := await store.aget(head, "head")) is not None:
        value = found.value
        here = [list(segment) for segment in now.values["timeline"]]
        if value["turn"] == now.values["turn"] and [list(segment) for segment in value["timeline"]] == here:
            changed = {"quest": update["quest"].value, "facts": update["facts"]}
            changed["summary"] = update.get("summary", value["summary"])
            writes.append(PutOp(head, "head", value | changed, index=False))
    await store.abatch(writes)


async def _unlearn(graph: Graph, context: Settings, record: JSON, timeline: Sequence[Segment]) -> int:
    """Set aside the facts that were noted of a turn, with the marks that it left: what held before holds again."""
    store: Any = graph.store
    aside = campaign_namespace(context.user, context.campaign, "unlearned")
    known: list[Item] = list(await facts_of(store, context))
    facts = [item for item in known if _taught(item.value, record, timeline)]
    place, further = (campaign_namespace(context.user, context.campaign, name) for name in (FACTS, SOURCES))
    known += [item async for item in items_under(store, further)]
    exchange = record_key(record["branch"], record["turn"], "exchange")
    fallen = find_dependents(place, {exchange, *(item.key for item in facts)}, known)
    facts += fallen.items
    writes = [PutOp(aside, item.key, item.value, index=False) for item in facts if "branch" in item.value]
    writes += [PutOp(item.namespace, item.key, None) for item in facts]
    gone = {item.key for item in facts}
    for place in (campaign_namespace(context.user, context.campaign, MARKS), player_namespace(context.user, MARKS)):
        async for item in items_under(store, place):
            if item.value["fact"] in gone or _taught(item.value, record, timeline):
                writes.append(PutOp(item.namespace, item.key, None))
    async for item in items_under(store, campaign_namespace(context.user, context.campaign, JUDGEMENTS)):
        if gone & {item.value["fact"], item.value["ended"]}:
            writes.append(PutOp(item.namespace, item.key, None))
    await put_all(store, [*writes, *fallen.replacements])
    return sum(item.namespace[-1] != SOURCES for item in facts)


def _taught(fact: JSON, record: JSON, timeline: Sequence[Segment] = ()) -> bool:
    """Whether a turn, alone or with others, taught a fact, or left a mark, that can be seen from here."""
    if not is_visible(timeline, fact):
        return False
    if "messages" in fact:
        return bool(set(fact["messages"]) & set(record["messages"]))
    first, last = fact.get("turns") or (fact["turn"], fact["turn"])
    return bool(first <= record["turn"] <= last)
