"""Provenance: which message set a field of the quest's page, or left a memory or a fact.

Each turn's record carries the patch that its notes made on the page (`noted`), so the answer is read, not guessed; the
checkpoint's timeline says which records count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore, SearchItem

from questbook.graphs.dungeon_master.facts import FACTS
from questbook.graphs.errors import HistoryError
from questbook.graphs.forgetting.phrase import Phrase
from questbook.graphs.history.history import History
from questbook.graphs.history.view import Graph
from questbook.graphs.settings import Settings
from questbook.graphs.turn.player_view import is_secret
from questbook.memory.facts.fact import is_secret_record
from questbook.memory.facts.sources import find_sources
from questbook.memory.facts.validity import keep_valid
from questbook.memory.store.any_store import items_under
from questbook.memory.timeline.namespaces import campaign_namespace, player_namespace
from questbook.memory.timeline.timeline import Segment, is_visible, record_key, sees
from questbook.notebooks import StateNotebook

JSON = dict[str, Any]
MEMORY, FACT = "memory", "fact"
_ABSENT = object()


class Cause(NamedTuple):
    """A message that set a field, or that a memory is made of.

    Attributes:
        field: Dotted path of the field; "memory" for an exchange, "fact" for a fact.
        value: What it was set to, None if it was deleted; of a memory, its text.
        stands: Whether the page still says so, or the fact still holds. What does not was changed later, by a turn or
            by a person.
        turns: First and last turn that the notes were made of; the same, unless notes had to catch up.
        turn: The turn after which it was noted.
        branch: The branch of that turn.
        player: What the player said in it.
        reply: What was answered.
        thread: The thread that played it.
        checkpoint: The checkpoint at which it was noted.
        said_at: When, ISO 8601 in UTC.
        drawn_from: What an insight rests on, as far as this line knows it: texts of facts and exchanges, no secrets.
    """

    field: str
    value: Any
    stands: bool
    turns: tuple[int, int]
    turn: int
    branch: str
    player: str
    reply: str
    thread: str
    checkpoint: str
    said_at: str
    drawn_from: tuple[str, ...] = ()


async def why(graph: Graph, config: RunnableConfig, context: Settings, what: str) -> list[Cause]:
    """Say which messages of this line set a field of the quest's page, or left a memory; the newest first.

    Args:
        graph: The dungeon master, compiled with checkpointer and store.
        config: Names the thread.
        context: The settings.
        what: A field, such as `gold` or `people.Goran.attitude`, or what lies above it (`people.Goran`, `people`);
            anything else is looked for in the words of memories and facts.

    Raises:
        HistoryError: No turn of this line did, or only the dungeon master may know.
    """
    what = " ".join(what.split())
    if is_secret(what):
        raise HistoryError(f"{what.split('.')[0]!r} is what only the dungeon master knows; nobody is told why.")
    now = await History(graph, config, context).current_state()
    timeline: list[Segment] = [(branch, turn) for branch, turn in now.values["timeline"]]
    records = await visible_records(graph, context, timeline)
    if what.split(".")[0].casefold() in StateNotebook.model_fields:
        page = StateNotebook.load(now.values["quest"]).as_json()
        causes = [cause for record in reversed(records) for cause in _set_by(record, what.casefold(), page)]
        if not causes:
            raise HistoryError(
                f"No turn of this line noted {what!r}: it stands as the story began, or a person wrote it."
            )
        return causes
    phrase = Phrase(what)
    causes = [_cause(record, MEMORY, record["text"], stands=True) for record in reversed(records)
              if phrase.is_in(str(record.get("text", "")))]  # fmt: skip
    causes += await _facts_that_say(graph, context, phrase, timeline, records)
    if not causes:
        fields = ", ".join(name for name in StateNotebook.model_fields if name != "version")
        raise HistoryError(f"{what!r} is no field, and no memory of this line says it. Fields: {fields}.")
    return causes


async def _facts_that_say(
    graph: Graph, context: Settings, phrase: Phrase, timeline: Sequence[Segment], records: Sequence[JSON]
) -> list[Cause]:
    """Return the turns that left facts which say a phrase, the newest first; never what is secret."""
    store: Any = graph.store
    told = {(record["branch"], record["turn"]): record for record in records}
    by_message = {message: record for record in records for message in record["messages"]}
    known = [
        one
        for one in await facts_of(store, context)
        if not is_secret_record(one.value) and is_visible(timeline, one.value)
    ]
    seen = [item for item in known if phrase.is_in(str(item.value.get("text", "")))]
    texts = {record_key(record["branch"], record["turn"], "exchange"): str(record.get("text")) for record in records}
    texts |= {item.key: str(item.value.get("text")) for item in known}
    insights = [item for item in seen if item.value.get("cites")]
    place = campaign_namespace(context.user, context.campaign, FACTS)
    grounds = await find_sources(store, place, insights, timeline=timeline)
    holding = {item.key for item in await keep_valid(store, seen, timeline=timeline)}
    causes = []
    for item in sorted(seen, key=lambda item: (item.value["turn"], str(item.value.get("at"))), reverse=True):
        fact = item.value
        said = told.get((fact.get("branch"), fact["turn"]))
        said = said or next((by_message[m] for m in fact.get("messages") or [] if m in by_message), {})
        words = {"player": said.get("player"), "reply": said.get("reply")}
        cause = _cause({"branch": ""} | fact | words, FACT, fact["text"], stands=item.key in holding)
        causes.append(cause._replace(drawn_from=tuple(texts[key] for key in grounds.get(item.key, ()) if key in texts)))
    return causes


async def facts_of(store: BaseStore, context: Settings) -> list[SearchItem]:
    """Return all facts of the campaign, of every branch, and all of the player."""
    places = campaign_namespace(context.user, context.campaign, FACTS), player_namespace(context.user, FACTS)
    return [item for place in places async for item in items_under(store, place)]


async def visible_records(graph: Graph, context: Settings, timeline: Sequence[Segment]) -> list[JSON]:
    """Return the records of the turns that a timeline sees, by turn.

    Raises:
        HistoryError: The graph has no store.
    """
    if not isinstance(graph.store, BaseStore):
        raise HistoryError("The graph was compiled without a store, so nothing says where anything came from.")
    namespace = campaign_namespace(context.user, context.campaign, "exchanges")
    found = [item.value async for item in items_under(graph.store, namespace)]
    return sorted((v for v in found if sees(timeline, v["branch"], v["turn"])), key=lambda value: value["turn"])


def leaves(patch: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Go through the values that a merge patch sets, each with its path."""
    for key, value in patch.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _set_by(record: JSON, what: str, page: JSON) -> Iterator[Cause]:
    for path, value in leaves((record.get("noted") or {}).get("patch") or {}):
        field = ".".join(path).casefold()
        # Names may hold dots, so paths are compared as they are written.
        if field == what or field.startswith(f"{what}.") or (what.startswith(f"{field}.") and value is None):
            now = _at(page, path)
            stands = now is _ABSENT if value is None else now == value
            yield _cause(record, ".".join(path), value, stands=stands)


def _at(page: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        if not isinstance(page, Mapping) or key not in page:
            return _ABSENT
        page = page[key]
    return page


def _cause(record: JSON, field: str, value: Any, *, stands: bool) -> Cause:
    noted = record["noted"] if field not in (MEMORY, FACT) else {"from": record["turn"], "through": record["turn"]}
    return Cause(
        field=field,
        value=value,
        stands=stands,
        turns=(noted["from"], noted["through"]),
        turn=record["turn"],
        branch=record["branch"],
        player=record.get("player") or "",
        reply=record.get("reply") or "",
        thread=record.get("thread") or "",
        checkpoint=record.get("checkpoint") or "",
        said_at=record.get("said_at") or "",
    )
