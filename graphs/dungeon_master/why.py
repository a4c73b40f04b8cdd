"""Provenance: which message set a field of a page (records say what turns `noted`), or left a memory or a fact."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore, SearchItem
from langgraph.types import StateSnapshot
from pydantic import BaseModel

from questbook.graphs.errors import ForgettingError, HistoryError
from questbook.graphs.forgetting.phrase import Phrase
from questbook.graphs.history.history import History
from questbook.graphs.history.view import Graph
from questbook.graphs.settings import Settings
from questbook.graphs.turn.player_view import is_secret
from questbook.graphs.turn.recall import FACTS
from questbook.memory.facts.fact import is_secret_record
from questbook.memory.facts.reflection import find_sources
from questbook.memory.facts.validity import keep_valid
from questbook.memory.store.any_store import items_under
from questbook.memory.timeline.namespaces import player_namespace
from questbook.memory.timeline.timeline import Segment, is_visible, record_key, remembered_timeline, sees
from questbook.notebooks import CharacterNotebook, Notebook, StateNotebook, by_engine, diff_patch
from questbook.notebooks.schema import fields_of
from questbook.types import JSON

MEMORY, FACT = "memory", "fact"


class Cause(NamedTuple):
    """A message that set a field, or that left a memory."""

    field: str  # dotted path of the field; "memory" for an exchange, "fact" for a fact
    value: Any  # the value that was set, None if the field was deleted; the text of a memory
    holds: bool  # whether the page still has the value, or the fact still holds, and nobody has changed it
    turns: tuple[int, int]  # first and last turn of the notes; the same, unless notes had to catch up
    turn: int  # the turn after which it was noted
    branch: str  # the branch of that turn
    player: str  # the player's words in it
    reply: str
    thread: str  # the thread that played it
    checkpoint: str  # the checkpoint at which it was noted
    said_at: str  # when, ISO 8601 in UTC
    drawn_from: tuple[str, ...] = ()  # sources of an insight that this line knows: texts, no secrets


async def why(
    graph: Graph, config: RunnableConfig, context: Settings | JSON, what: str, *, of_player: bool = True
) -> list[Cause]:
    """Return the messages of this line that set a field of a page, or left a memory; the newest first.

    Args:
        graph: The game, another graph of Questbook's, or an agent with `TimelineMemoryMiddleware`.
        config: Names the thread.
        context: The settings, or a mapping with them; an agent's `campaign` is "agent:" and its name.
        what: In the game, a field of the quest's page, such as `gold` or `people.Goran.attitude`, or a part of it
            (`people.Goran`, `people`), or of the character's page, such as `class`; of an agent, one of its pages or
            a field of it (`profile.home`, `home`). Other words are searched for in memories and facts.
        of_player: Whether it looks in what is known of the player from all campaigns, too.

    Raises:
        HistoryError: No turn of this line did, or it is a secret.
    """
    what = _whole_path(" ".join(what.split()))
    if is_secret(what):
        raise HistoryError(f"{what.split('.')[0]!r} is what only the dungeon master knows; nobody else may see why.")
    history = History(graph, config, context)
    now, context = await history.current_state(), history.context
    timeline = remembered_timeline(now.values)
    records = await visible_records(graph, context, timeline)
    pages = [page for page in _PAGES if page[0] in now.values]
    for channel, page_class, patch_of in pages:
        if what.split(".")[0].casefold() in _fields(page_class):
            page = page_class.load(now.values[channel]).as_json()
            patches = ((record, patch_of(record)) for record in reversed(records))
            field = what.casefold()
            if causes := [cause for record, patch in patches for cause in _set_by(record, patch, field, page)]:
                return causes
            origins = "it is as the game began, the rules worked it out, or a person changed it"
            raise HistoryError(f"No turn of this line noted {what!r}: {origins}.")
    others = now.values.keys() - {page[0] for page in _PAGES}
    kinds = {name: getattr(graph.channels.get(name), "typ", None) for name in others}
    own = {name: kind for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, Notebook)}
    if causes := await _own_causes(graph, now, own, what.casefold(), records):
        return causes
    names = [name for _, page_class, _ in pages for name in _fields(page_class)]
    fields = ", ".join([*names, *(f"{name}.{field}" for name in sorted(own) for field in _fields(own[name]))]) or "none"
    try:
        phrase = Phrase(what)
    except ForgettingError as error:
        problem = "is no field, and too short to be looked for in memories"
        raise HistoryError(f"{what!r} {problem}. Fields: {fields}.") from error
    memories = [record for record in reversed(records) if phrase.is_in(str(record.get("text", "")))]
    causes = [_cause(record, MEMORY, record["text"], holds=True) for record in memories]
    causes += await _fact_causes(history, phrase, timeline, records, of_player=of_player)
    if not causes:
        raise HistoryError(f"{what!r} is no field, and no memory of this line says it. Fields: {fields}.")
    return causes


async def _own_causes(
    graph: Graph, now: StateSnapshot, pages: Mapping[str, type[Notebook]], what: str, records: Sequence[JSON]
) -> list[Cause]:
    """Return the turns that set a field of an application's page, as checkpoints say, the newest first; no secrets."""
    top = what.split(".")[0]
    asked = {what if name == top else f"{name}.{what}": name for name in pages if top in (name, *_fields(pages[name]))}
    ends, causes = list[StateSnapshot](), list[Cause]()
    if asked:
        ends = [state async for state in ancestors(graph, now)]
    for record in reversed(records):
        before, after = pages_around(ends, record["turn"])
        own = record | {"noted": {"from": record["turn"], "through": record["turn"]}}
        for path, name in asked.items() if after else ():
            patch = diff_patch(*(pages[name].load(page.get(name)).as_json() for page in (before, after)))
            found = _set_by(own, {name: patch}, path, {name: pages[name].load(now.values[name]).as_json()})
            causes += [cause for cause in found if cause.field.split(".")[1] in _fields(pages[name])]
    return causes


async def ancestors(graph: Graph, state: StateSnapshot) -> AsyncIterator[StateSnapshot]:
    """Yield a state, and those that it was made from, the newest first."""
    yield state
    while state.parent_config is not None:
        yield (state := await graph.aget_state(state.parent_config))


def pages_around(states: Sequence[StateSnapshot], turn: int) -> tuple[JSON, JSON]:
    """Return the channels before a turn and at its end, before edits by a person; {} if they are gone."""
    of_turn = [state for state in states if state.values.get("turn") == turn]
    before = next((state.values for state in states if state.values.get("turn", 0) < turn), {})
    return before, next((s.values for s in of_turn if (s.metadata or {}).get("source") != "update"), {})


async def _fact_causes(
    history: History, phrase: Phrase, timeline: Sequence[Segment], records: Sequence[JSON], *, of_player: bool
) -> list[Cause]:
    store: Any = history.graph.store
    by_turn = {(record["branch"], record["turn"]): record for record in records}
    by_message = {message: record for record in records for message in record["messages"]}
    known = await facts_of(store, history.context, of_player=of_player)
    facts = [item for item in known if not is_secret_record(item.value) and is_visible(timeline, item.value)]
    matches = [item for item in facts if phrase.is_in(str(item.value.get("text", "")))]
    texts = {record_key(record["branch"], record["turn"], "exchange"): str(record.get("text")) for record in records}
    texts |= {item.key: str(item.value.get("text")) for item in facts}
    insights = [item for item in matches if item.value.get("cites")]
    namespace = history.context.campaign_namespace(FACTS)
    grounds = await find_sources(store, namespace, insights, timeline=timeline)
    valid = {item.key for item in await keep_valid(store, matches, timeline=timeline)}
    causes = []
    for item in sorted(matches, key=lambda item: (item.value["turn"], str(item.value.get("at"))), reverse=True):
        fact = item.value
        record = by_turn.get((fact.get("branch"), fact["turn"]))
        record = record or next((by_message[m] for m in fact.get("messages") or [] if m in by_message), {})
        words = {"player": record.get("player"), "reply": record.get("reply")}
        cause = _cause({"branch": ""} | fact | words, FACT, fact["text"], holds=item.key in valid)
        causes.append(cause._replace(drawn_from=tuple(texts[key] for key in grounds.get(item.key, ()) if key in texts)))
    return causes


async def facts_of(store: BaseStore, context: Settings, *, of_player: bool = True) -> list[SearchItem]:
    """Return all facts of the campaign, of every branch, and if asked for all of the player."""
    namespaces = [context.campaign_namespace(FACTS), *([player_namespace(context.user, FACTS)] if of_player else [])]
    return [item for namespace in namespaces async for item in items_under(store, namespace)]


async def visible_records(graph: Graph, context: Settings, timeline: Sequence[Segment]) -> list[JSON]:
    """Return the records of the turns that a timeline sees, by turn; a HistoryError says that there is no store."""
    if not isinstance(graph.store, BaseStore):
        raise HistoryError("The graph was compiled without a store, so the origin of memories is not known.")
    values = [item.value async for item in items_under(graph.store, context.campaign_namespace("exchanges"))]
    return sorted((v for v in values if sees(timeline, v["branch"], v["turn"])), key=lambda value: value["turn"])


def patched_values(patch: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the values that a merge patch sets, each with its path."""
    for key, value in patch.items():
        if isinstance(value, Mapping) and value:
            yield from patched_values(value, (*path, key))
        else:
            yield (*path, key), value


_PAGES: tuple[tuple[str, type[Notebook], Callable[[JSON], JSON]], ...] = (
    ("quest", StateNotebook, lambda record: (record.get("noted") or {}).get("patch") or {}),
    ("character", CharacterNotebook, lambda record: record.get("sheet") or {}),
)


def _whole_path(what: str) -> str:
    """Return the path of a part that is named by itself: condition.hp for hp."""
    for _, page, _ in _PAGES:
        for name in _fields(page):
            part = page.model_fields[name].annotation if name in page.model_fields else None
            if isinstance(part, type) and issubclass(part, BaseModel) and what.casefold() in part.model_fields:
                return f"{name}.{what.casefold()}"
    return what


def _fields(page: type[Notebook]) -> list[str]:
    """Return the fields that a person may ask for: neither secret nor kept by code alone."""
    return [name for name, field in fields_of(page).items() if name not in page.SECRET and not by_engine(field)]


def _set_by(record: JSON, patch: JSON, what: str, page: JSON) -> Iterator[Cause]:
    for path, value in patched_values(patch):
        field = ".".join(path).casefold()
        # Names may contain dots, so paths are compared as text.
        if field == what or field.startswith(f"{what}.") or (what.startswith(f"{field}.") and value is None):
            yield _cause(record, ".".join(path), value, holds=value_at(page, path) == value)


def value_at(page: Any, path: Sequence[str]) -> Any:
    """Return what a page says at a path; None if it has no such field."""
    for key in path:
        if not isinstance(page, Mapping) or key not in page:
            return None
        page = page[key]
    return page


def _cause(record: JSON, field: str, value: Any, *, holds: bool) -> Cause:
    turn, of_page = record["turn"], field.split(".")[0] in StateNotebook.model_fields
    turns = (record["noted"]["from"], record["noted"]["through"]) if of_page else (turn, turn)
    words: JSON = {name: record.get(name) or "" for name in ("player", "reply", "thread", "checkpoint", "said_at")}
    return Cause(field, value, holds, turns, turn, record["branch"], **words)
