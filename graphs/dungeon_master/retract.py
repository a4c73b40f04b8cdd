"""Retracting: undo what was derived from one turn, and nothing else: fields of pages, the summary, memories.

What later turns or a person wrote over them is kept. The result is a new checkpoint, and one can go back to the state
before it. The turn's record moves to the namespace "retracted", where nothing is recalled from.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from langchain_core.messages import RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import Item, PutOp
from langgraph.types import Overwrite, StateSnapshot

from questbook.graphs.dungeon_master import prompts
from questbook.graphs.dungeon_master.why import ancestors, facts_of, pages_around, patched_values, visible_records
from questbook.graphs.errors import HistoryError
from questbook.graphs.history.history import History
from questbook.graphs.history.view import Graph, is_at
from questbook.graphs.settings import Settings
from questbook.graphs.turn.buffer import CONDENSE, fold, summarizer_of
from questbook.graphs.turn.notes import oldest_within
from questbook.graphs.turn.recall import FACTS
from questbook.graphs.turn.state import Turn, notice, turn_of
from questbook.graphs.turn.turn import public_turns
from questbook.memory.buffer.policies import ASIDE, split_turns, with_number
from questbook.memory.buffer.summary import extend_summary, extract
from questbook.memory.facts.reflection import SOURCES, find_dependents
from questbook.memory.facts.validity import heirs_of, removals_beside
from questbook.memory.store.any_store import items_under, put_all
from questbook.memory.timeline.namespaces import player_namespace
from questbook.memory.timeline.timeline import Segment, is_visible, record_key, remembered_timeline
from questbook.notebooks import Notebook, StateNotebook, diff_patch, merge_patch
from questbook.types import JSON

_LOST = "The checkpoints of turn {turn} are gone, so the pages stay as they are: correct them by hand."
_MOST_CALLS = 8  # of the model, for one summary; of older turns it gets the first sentences
_Page: TypeAlias = Mapping[str, Any]


class Retraction(NamedTuple):
    """What was undone."""

    turn: int
    player: str  # the player's words in it
    noted_with: list[int]  # other turns whose notes were made in the same patch, and were undone with it
    fields: list[str]  # paths of the page that were put back
    kept: list[str]  # paths that it had set and that later turns or a person have changed since; they are kept
    messages: int  # how many messages left the buffer
    facts: int  # how many facts of the story and of the player were removed
    summarised: bool  # whether the summary was written again


async def retract(graph: Graph, config: RunnableConfig, context: Settings | JSON, turn: int) -> Retraction:
    """Undo what was derived from a turn of this line; the arguments are as for `why`, and its number.

    Raises:
        HistoryError: There is no such turn on this line, or the last turn is not finished. Nothing was changed.
    """
    history = History(graph, config, context)
    now, context = await history.current_state(), history.context
    if now.next:
        raise HistoryError("The last turn is not finished: answer it first, or undo it; then retract.")
    timeline = remembered_timeline(now.values)
    records = await visible_records(graph, context, timeline)
    record = next((record for record in records if record["turn"] == turn), None)
    if record is None:
        known = f"{records[0]['turn']} to {records[-1]['turn']}" if records else "none yet"
        raise HistoryError(f"There is no turn {turn} on this line to retract; remembered turns: {known}.")

    in_game, lost = "quest" in now.values, False
    page = StateNotebook.load(now.values.get("quest")).as_json()
    fields, patched, noted_with = list[str](), list[str](), set[int]()
    for noted in filter(_has_patch, records):
        if not noted["noted"]["from"] <= turn <= noted["noted"]["through"]:
            continue
        patch = noted["noted"]["patch"]
        before, after = await _pages_around(graph, noted, records)
        later = [one["noted"]["patch"] for one in records if one["turn"] > noted["turn"] and _has_patch(one)]
        back = put_back(patch, before, after, page, later)
        page = StateNotebook.load(merge_patch(page, back)).as_json()
        fields += [".".join(path) for path, _ in patched_values(back)]
        patched += [".".join(path) for path, _ in patched_values(patch)]
        noted_with |= set(range(noted["noted"]["from"], noted["noted"]["through"] + 1)) - {turn}

    earlier = [one for one in split_turns(now.values["messages"], now.values["turn"]) if one.number < turn]
    gone = [m.id for m in now.values["messages"] if m.id in record["messages"] and m.name != ASIDE]
    # The turn before one that goes is marked with its number: those before it are counted from it.
    update: JSON = {"messages": [*map(with_number, earlier[-1:] if gone else ()), *map(RemoveMessage, gone)]}
    if in_game:
        waiting = [entry for entry in now.values.get("facts") or [] if not comes_from(entry, record)]
        update |= {"quest": Overwrite(page), "facts": waiting}
    else:
        changes, paths, lost = await _page_changes(graph, now, turn)
        update |= changes
        patched += paths
        fields = [".".join((channel, *path)) for channel, back in changes.items() for path, _ in patched_values(back)]
    texts = [f"Turn {turn} was retracted.", *([_LOST.format(turn=turn)] if lost else [])]
    in_summary = not gone or turn <= now.values.get("summarised_through", 0)
    if summarised := bool(in_summary and now.values.get("summary")):
        update["summary"], failure = await _summarise(_summarised_records(records, turn, now), context, in_game=in_game)
        texts += [failure] if failure else []
    update["notices"] = [notice(now.values["turn"], "retract", text) for text in texts]
    thread: RunnableConfig = {**config, "configurable": {"thread_id": config["configurable"]["thread_id"]}}
    node = "condense" if "condense" in graph.builder.nodes else None  # None: the node that wrote last
    await graph.aupdate_state(thread, update, as_node=node)
    await _archive_record(graph, context, record, now, update)
    facts = await _remove_facts(graph, context, record, timeline)
    kept = [field for field in patched if not any(field == f or field.startswith(f"{f}.") for f in fields)]
    return Retraction(turn, record["player"], sorted(noted_with), fields, kept, len(gone), facts, summarised)


def put_back(patch: _Page, before: _Page, after: _Page, now: _Page, later: Sequence[_Page]) -> JSON:
    """Return the merge patch that undoes a patch, except where something was written over it.

    The page was `before` and `after` the patch, and is `now`; `later` are the patches of later turns.
    """
    back: JSON = {}
    for key, value in patch.items():
        since = [other[key] for other in later if key in other]
        current, patched = now.get(key), after.get(key)
        if isinstance(value, Mapping) and isinstance(current, Mapping):
            if key not in before and current == patched and not since:
                back[key] = None
            elif all(isinstance(other, Mapping) for other in since):
                inner = put_back(value, before.get(key) or {}, patched or {}, current, since)
                back |= {key: inner} if inner else {}
        elif not since and current == patched and current != before.get(key):
            back[key] = before.get(key)
    return back


async def _pages_around(graph: Graph, record: JSON, records: Sequence[JSON]) -> tuple[JSON, JSON]:
    patch = record["noted"]["patch"]
    if record.get("checkpoint"):
        where = {"thread_id": record["thread"], "checkpoint_ns": "", "checkpoint_id": record["checkpoint"]}
        after = await graph.aget_state({"configurable": where})
        before = await graph.aget_state(after.parent_config) if after.parent_config else after
        if before.values:
            pages = [StateNotebook.load(state.values.get("quest")).as_json() for state in (before, after)]
            if diff_patch(*pages) == patch:
                return pages[0], pages[1]
    page = StateNotebook().as_json()
    for earlier in records:
        if earlier["turn"] < record["turn"] and _has_patch(earlier):
            page = merge_patch(page, earlier["noted"]["patch"])
    return page, merge_patch(page, patch)


async def _page_changes(graph: Graph, now: StateSnapshot, turn: int) -> tuple[JSON, list[str], bool]:
    """Return by channel the patches that undo what a turn changed on an app's pages; its paths; if it is not known."""
    before, after = pages_around([state async for state in ancestors(graph, now)], turn)
    pages = {name: page for name, page in now.values.items() if isinstance(page, dict) and "version" in page}
    changes, paths = JSON(), list[str]()
    for channel, page in pages.items() if after else ():
        there = (values.get(channel) or {"version": page["version"]} for values in (before, after))
        was, patched = (one.as_json() if isinstance(one, Notebook) else one for one in there)  # before its first change
        patch = diff_patch(was, patched)
        paths += [".".join((channel, *path)) for path, _ in patched_values(patch)]
        changes |= {channel: back} if (back := put_back(patch, was, patched, page, [])) else {}
    return changes, paths, bool(pages) and not after


def _has_patch(record: JSON) -> bool:
    return bool((record.get("noted") or {}).get("patch"))


def _summarised_records(records: Sequence[JSON], without: int, now: StateSnapshot) -> list[JSON]:
    """Return the records of the turns in the summary: they left the buffer, or were folded into it before that."""
    records = [record for record in records if record["turn"] != without]
    buffered = {message.id for message in now.values["messages"]}
    first = min((r["turn"] for r in records if buffered & set(r["messages"])), default=float("inf"))
    return [r for r in records if r["turn"] < first or r["turn"] <= now.values.get("summarised_through", 0)]


async def _summarise(records: Sequence[JSON], context: Settings, *, in_game: bool) -> tuple[str, str]:
    """Summarise turns from their records, in portions of a buffer's size; return the summary, and what failed."""
    left, portions = public_turns(turn_of(record["turn"], record) for record in records), list[list[Turn]]()
    while left:
        portions.append(oldest_within(left, context.buffer_tokens))
        left = left[len(portions[-1]) :]
    early = [sentence for portion in portions[:-_MOST_CALLS] for turn in portion for sentence in extract(turn)]
    summary, failed = extend_summary("", early, context.summary_tokens) if early else "", ""
    for portion in portions[-_MOST_CALLS:]:
        summarizer = summarizer_of(context, prompts.CONDENSE if in_game else CONDENSE)
        summary, failure = await fold(summary, portion, context, summarizer)
        failed = failure or failed
    return summary, failed


async def _archive_record(graph: Graph, context: Settings, record: JSON, now: StateSnapshot, update: JSON) -> None:
    store: Any = graph.store
    key = record_key(record["branch"], record["turn"], "exchange")
    exchanges, retracted, head = (context.campaign_namespace(n) for n in ("exchanges", "retracted", "head"))
    writes = [PutOp(retracted, key, record, index=False), PutOp(exchanges, key, None)]
    item = await store.aget(head, "head")
    if item is not None and is_at(now, item.value):
        changed = {"quest": update["quest"].value, "facts": update["facts"]} if "quest" in update else {}
        changed["summary"] = update.get("summary", item.value["summary"])
        writes.append(PutOp(head, "head", item.value | changed, index=False))
    await put_all(store, writes)


async def _remove_facts(graph: Graph, context: Settings, record: JSON, timeline: Sequence[Segment]) -> int:
    """Remove the facts that came from a turn, with its marks, so that what held before holds again; return how many."""
    store: Any = graph.store
    archive = context.campaign_namespace("unlearned")
    items: list[Item] = list(await facts_of(store, context))
    facts = [item for item in items if comes_from(item.value, record, timeline)]
    namespace, sources = (context.campaign_namespace(name) for name in (FACTS, SOURCES))
    items += [item async for item in items_under(store, sources)]
    exchange = record_key(record["branch"], record["turn"], "exchange")
    dependents = find_dependents(namespace, {exchange, *(item.key for item in facts)}, items)
    told, facts = facts, [*facts, *dependents.items]
    writes = [PutOp(archive, item.key, item.value, index=False) for item in facts if "branch" in item.value]
    writes += [PutOp(item.namespace, item.key, None) for item in facts]
    gone = {item.key for item in facts}

    def goes(mark: JSON) -> bool:
        return comes_from(mark, record, timeline)

    for place in (namespace, player_namespace(context.user, FACTS)):
        writes += await removals_beside(store, place, gone, goes)
        here = {item.key: item.value for item in told if item.namespace == place}
        writes += await heirs_of(store, place, here, goes) if here else []
    await put_all(store, [*writes, *dependents.replacements])
    return sum(item.namespace[-1] != SOURCES for item in facts)


def comes_from(fact: JSON, record: JSON, timeline: Sequence[Segment] = ()) -> bool:
    """Whether a fact or a mark came from a turn, alone or with others, and the timeline sees it."""
    if not is_visible(timeline, fact):
        return False
    if "messages" in fact:
        return bool(set(fact["messages"]) & set(record["messages"]))
    first, last = fact.get("turns") or (fact["turn"], fact["turn"])
    return bool(first <= record["turn"] <= last)
