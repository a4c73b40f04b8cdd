"""`Memories`: what an app, or the person themselves, does with what is remembered; `SyncMemories` for sync callers."""

import asyncio
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore, PutOp
from pydantic import ValidationError

from questbook.graphs.dungeon_master.retract import Retraction, comes_from, retract
from questbook.graphs.dungeon_master.why import Cause, why
from questbook.graphs.errors import InputError
from questbook.graphs.forgetting.forget import Forgetting, gap_op
from questbook.graphs.history.history import sync_graph, sync_method
from questbook.graphs.history.view import Graph
from questbook.graphs.memories.lines import RECORDS, items_beside, line_write, lines_of_threads, read_line, with_past
from questbook.graphs.turn.scope import HEAD, HEADS
from questbook.memory.facts.fact import BY_HAND, INSIGHT, KINDS, MAX_TEXT, Fact, is_secret_record
from questbook.memory.facts.reflection import SOURCES, find_dependents
from questbook.memory.facts.validity import heirs_of, keep_valid, removals_beside, text_digest
from questbook.memory.facts.writing import add_fact
from questbook.memory.ltm.memories import pick_memory
from questbook.memory.store.any_store import AnyItem, SyncStore, get_values, items_under, put_all, with_async_methods
from questbook.memory.store.faiss_store import FaissStore
from questbook.memory.timeline.namespaces import campaign_namespace, escape_label, player_namespace, team_namespace
from questbook.memory.timeline.records import WITHHELD, has_expired, has_metadata, read_time
from questbook.memory.timeline.timeline import Timeline, UserTimeline, as_of, is_visible, read_heads, read_timeline
from questbook.types import JSON, check_choice, check_json, check_type

_PAGE = 500  # writes of one batch
_STAMP = ("kind", "branch", "turn", "order", "said_at", "thread", "scope")  # of a secret, what is shown
_KINDS = ("exchange", INSIGHT, "archive")  # all other kinds are facts


class MemoryRecord(NamedTuple):
    """One thing that is remembered."""

    key: str
    # "exchange"; of a fact "event", "trait", "promise", "preference", "rumour", "secret"; "insight"; "archive".
    kind: str
    text: str  # what it says; "" of a secret, unless secrets were asked for
    # "ended": something else took its place; "elsewhere": only given-up branches, or other threads' own, know it.
    status: Literal["holds", "ended", "expired", "elsewhere"]
    since: str  # when it was said or written, ISO 8601; "" if unknown
    said: str  # the person's words of the turn that it comes from; "" if nobody said it, or the exchange is gone
    messages: tuple[str, ...]  # ids of the messages that it comes from
    thread: str  # "" if unknown
    turn: int  # 0: none
    namespace: tuple[str, ...]  # where it is kept
    value: JSON  # the whole record, as it is stored: `subject`, `attribute`, `metadata`, `data`, `expires`, `by` …


class _Place(NamedTuple):
    """The memory of one agent or campaign, of a person or of a team: its namespace, and what sees it; None: all."""

    space: tuple[str, ...]
    timeline: Timeline | None


# Inside the class `list` is its method.
_Records: TypeAlias = list[MemoryRecord]
_Lines: TypeAlias = list[str]


class Memories:
    """What is remembered of a user, by one agent or by all, or what a team shares.

        memories = Memories(store, "ann", agent="support")
        for memory in await memories.list(holding=True):
            print(memory.since, memory.text, memory.said)
        await memories.correct(memory.key, "Ann lives in Bergen.", value="Bergen")
        await memories.delete(memory.key)

    Which branch counts: with `config` that of the thread's state (or of the checkpoint that it names), with `timeline`
    that one; without them, of each thread where it last wrote (its head), as new threads see it.

    Args:
        source: A store, or a graph that was compiled with one.
        user: Whose memories.
        agent: Only those of the agent with this name (`TimelineMemoryMiddleware(agent_name=…)`, `build_agent(name=…)`).
        campaign: Only those of this campaign, or whatever an app calls the second label of its namespaces.
        player: Only what is known of the user in all games, and belongs to no thread.
        team: In place of a user: what the users of a team share, which belongs to no thread.
        config: Names a thread, of the graph.
        timeline: A timeline, such as a state's in the middle of a turn.
        secrets: Whether what only a game's dungeon master knows is shown, too.

    Raises:
        InputError: The arguments do not go together; the message says which.
        NoSuchMemoryError: Of a method that takes keys: no memory has one, or several have.
    """

    def __init__(
        self,
        source: BaseStore | Graph,
        user: str = "",
        *,
        agent: str | None = None,
        campaign: str | None = None,
        player: bool = False,
        team: str | None = None,
        config: RunnableConfig | None = None,
        timeline: Timeline | None = None,
        secrets: bool = False,
    ) -> None:
        self.graph = source if isinstance(source, CompiledStateGraph) else None
        store = self.graph.store if self.graph else source
        if not isinstance(store, BaseStore):
            raise InputError(f"source: got {source!r:.80}; expected a store, or a graph compiled with one.")
        if bool(user) == bool(team) or not isinstance(user or team, str):
            raise InputError(f"Whose memories? Got user={user!r:.40} and team={team!r:.40}; expected one of them.")
        if wrong := [name for name in (agent, campaign) if not isinstance(name, str | None)]:
            raise InputError(f"agent, campaign: got {wrong[0]!r:.40}; expected a name.")
        if sum([agent is not None, campaign is not None, player, bool(team)]) > 1:
            raise InputError("Give one of agent, campaign, player and team, or none of them.")
        if config is not None and (self.graph is None or timeline is not None):
            raise InputError("config names a thread: give a graph as source, and no timeline.")
        if config is not None and "thread_id" not in config.get("configurable", {}):
            raise InputError(f"config: got {config!r:.80}; expected {{'configurable': {{'thread_id': …}}}}.")
        campaign = campaign if agent is None else f"agent:{agent}"
        if campaign is None and (config is not None or timeline is not None):
            raise InputError("A thread belongs to one agent or campaign: name it.")
        self.store, self.user, self.campaign, self.team = with_async_methods(store), user, campaign, team
        self._player, self._config, self._timeline, self._secrets = player, config, timeline, secrets
        self._own_space = team_namespace(team) if team else (escape_label(user),)

    async def list(
        self,
        *,
        holding: bool | None = None,
        kind: str | None = None,
        thread: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        words: str = "",
    ) -> _Records:
        """Return what is remembered, the latest first.

        Only what holds, or what does not (`holding`), is of a kind (as in `MemoryRecord`, or "fact": of all kinds of
        facts), what a thread taught, what was said from `since` on and before `until` (a time without an offset is
        UTC), was written with all of this metadata, and has these words; case does not count.

        Raises:
            InputError: The thread is another user's, or no thread has left a head, so that one has to be named.
        """
        try:
            named = (("holding", holding, bool), ("thread", thread, str), ("words", words, str))
            for name, value, type_ in (*named, ("since", since, datetime), ("until", until, datetime)):
                check_type(name, value, type_ | None, f"a {type_.__name__}, or None")
            check_choice("kind", kind, None, "fact", *_KINDS, *KINDS)
            check_json("metadata", metadata)
        except ValueError as error:
            raise InputError(str(error)) from error
        start, end = (time and (time if time.tzinfo else time.replace(tzinfo=UTC)) for time in (since, until))

        def fits(memory: MemoryRecord) -> bool:
            at, is_fact = read_time(memory.since), memory.kind not in _KINDS
            return (
                holding in (None, memory.status == "holds")
                and (kind is None or memory.kind == kind or (kind == "fact" and is_fact))
                and thread in (None, memory.thread)
                and (start is None or (at is not None and at >= start))
                and (end is None or (at is not None and at < end))
                and has_metadata(memory.value, metadata)
                and (words or "").casefold() in memory.text.casefold()
            )

        return [memory for place in await self._places() for memory in await self._read(place) if fits(memory)]

    async def get(self, key: str) -> MemoryRecord:
        """Return a memory by its key, or by the beginning of it, at least four characters."""
        return pick_memory(await self.list(), key)

    async def add(self, fact: Fact | Mapping[str, Any] | str) -> MemoryRecord:
        """Write a fact by hand: of an agent as of the last turn of the thread, or of the user's newest one; return it.

        If it is known already, return what says so.

        Raises:
            InputError: It is not clear to which agent, no turn is finished that it belongs to, or a field is not valid.
        """
        if self.campaign is None and not (self._player or self.team):
            raise InputError("Name the agent or campaign to add to, or give player=True, or a team.")
        [place], thread = await self._places(), ""
        if place.timeline is not None:
            seen = [memory for memory in await self._read(place) if memory.status != "elsewhere"]
            thread = next((memory.thread for memory in seen), "")
        return await self._add(place, thread, fact)

    async def correct(self, key: str, text: str, /, **fields: Any) -> MemoryRecord:
        """Put a fact by hand in the place of another one, which holds no more; return the new one.

        It has the subject, attribute, metadata and time to live of the old one, unless `fields` say others, and names
        it (`corrects`). It goes back with the thread of the old one.

        Raises:
            InputError: It is no fact that this view sees (what was said stays said), or a field is not valid.
        """
        old = await self.get(key)
        if old.kind in ("exchange", "archive") or old.status == "elsewhere":
            problem = "no fact" if old.kind in ("exchange", "archive") else "on another branch"
            raise InputError(f"{old.key} cannot be corrected: it is {problem}.")
        kept = ("subject", "attribute", "importance", "metadata", "expires", "known_by")
        kind = old.kind if old.kind in ("event", "trait", "promise", "preference", "secret") else "trait"
        own = {name: old.value[name] for name in kept if old.value.get(name)} | {"kind": kind}
        place = next(place for place in await self._places() if place.space == old.namespace[:-1])
        return await self._add(place, old.thread, own | {"text": text} | fields, replaces=old)

    async def delete(self, *keys: str) -> _Records:
        """Delete memories for good, on every branch; return them. All of them are found, or nothing is changed.

        With an exchange go the facts that it taught, unless they were said again, and with each the conclusions that
        rest on it. What a deleted fact had ended holds again. The messages of a thread stay: `retract` takes its turn
        out, `forget` the words.
        """
        memories, places = await self.list(), await self._places()
        chosen = {memory.key: memory for memory in (pick_memory(memories, key) for key in keys)}
        named, turns = set(chosen), [memory for memory in chosen.values() if memory.kind == "exchange"]

        def goes(record: JSON) -> bool:
            lines = ((turn, [(str(turn.value["branch"]), turn.turn)]) for turn in turns)
            return any(comes_from(record, {"messages": m.messages, "turn": m.turn}, line) for m, line in lines)

        chosen |= {one.key: one for one in memories if one.kind not in _KINDS and goes(one.value)}
        for place in places:
            here = [memory for memory in chosen.values() if memory.namespace[:-1] == place.space]
            taught = {memory.key: memory.value for memory in here if memory.key not in named}
            heirs = await heirs_of(self.store, (*place.space, "facts"), taught, goes) if taught else []
            if here:
                await self._remove(place.space, here, heirs)
        store = self.store.store if isinstance(self.store, SyncStore) else self.store
        if isinstance(store, FaissStore):
            await asyncio.to_thread(store.compact)
        return list(chosen.values())

    async def export_lines(self, /, **which: Any) -> _Lines:
        """Return memories as JSON lines, with all that says whether they hold; `which` are the arguments of `list`.

        Secrets are left out, unless they were asked for.
        """
        lines: Sequence[JSON] = []
        memories = [memory for memory in await self.list(**which) if self._secrets or memory.kind != "secret"]
        own = len(self._own_space)
        for space, timeline in await self._places():
            here = [memory for memory in memories if memory.namespace[:-1] == space]
            beside = await items_beside(self.store, space, {memory.key for memory in here}) if here else []
            records: Sequence[AnyItem] = [*here, *beside]
            part = [{"place": one.namespace[own:], "key": one.key, "value": one.value} for one in records]
            plain = part and timeline and not isinstance(timeline, UserTimeline)
            lines = [*lines, *(lines_of_threads(space[own:], timeline, part) if plain and timeline else part)]
        return [json.dumps(line, ensure_ascii=False) for line in lines]

    async def import_lines(self, lines: Iterable[str]) -> int:
        """Write memories of `export_lines`, of this user or another, this store or another; return how many are new.

        What is there already stays as it is. With an agent or campaign, all are written to that one. New threads of an
        agent of scope "user" see them, and an assistant that has no turn yet; a game is moved with its campaign's file.

        Raises:
            InputError: A line is not what `export_lines` writes, a turn is here already and is another one, or nobody
                here would know them; the message says which. Nothing was imported.
        """
        read = [read_line(line, number) for number, line in enumerate(lines, 1) if line.strip()]
        of_player = {line["place"][0] == "player" for line in read}
        if of_player and (of_player == {False} if self._player else self.campaign is not None and of_player == {True}):
            whose = "an agent or campaign: name it" if self._player else "the player: import them as such (--player)"
            raise InputError(f"Memories of {whose}. Nothing was imported.")
        for line in read:
            first, second = (*line["place"], "")[:2]
            if (second in RECORDS) == bool(self.team) and (self.team or first in RECORDS):
                raise InputError(f"Memories of a {'user' if self.team else 'team'}: name it. Nothing was imported.")
            if self.campaign is not None and first != "player":
                line["place"][0] = escape_label(self.campaign)
        writes = [line_write(line, self._own_space) for line in read]
        known = await get_values(self.store, [(write.namespace, write.key) for write in writes])
        for write in writes:
            old, value = known.get((write.namespace, write.key), {}), write.value or {}
            said, own = (one.get("messages") or one.get("said_at") or one.get("text") for one in (old, value))
            if old.get("kind") == "exchange" and said != own:
                taken = f"Thread {old.get('thread')!r:.80} is here already, with other words in turn {old.get('turn')}"
                raise InputError(f"{taken}. Nothing was imported: import it for another agent, campaign or user.")
        read = [line for line, write in zip(read, writes, strict=True) if (write.namespace, write.key) not in known]
        for first in set[str]() if self.team else {line["place"][0] for line in read}:
            read = await with_past(self.store, (*self._own_space, first), read)
        for start in range(0, len(read), _PAGE):
            await put_all(self.store, [line_write(line, self._own_space) for line in read[start : start + _PAGE]])
        return sum(line["place"][-1] in RECORDS for line in read)

    async def why(self, what: str) -> Sequence[Cause]:
        """Return the messages that taught what has some words, as `questbook.why`; `config` names a thread."""
        return await why(*self._thread(), what)

    async def retract(self, turn: int) -> Retraction:
        """Undo what was derived from a turn of the thread that `config` names, as `questbook.retract`."""
        return await retract(*self._thread(), turn)

    def _thread(self) -> tuple[Graph, RunnableConfig, JSON]:
        if self.graph is None or self._config is None:
            raise InputError("This asks for a thread: give Memories the graph, and config={'configurable': …}.")
        return self.graph, self._config, {"user": self.user, "campaign": self.campaign}

    async def _places(self) -> Sequence[_Place]:
        if self.team:
            return [_Place(team_namespace(self.team), None)]
        lasting = [_Place(player_namespace(self.user), None)]
        if self._player:
            return lasting
        names = [self.campaign] if self.campaign is not None else None
        every = names or await Forgetting(self.store, None, self.user, "").campaigns()
        spaces = [campaign_namespace(self.user, name) for name in every]
        return [*[_Place(space, await self._timeline_of(space)) for space in spaces], *([] if names else lasting)]

    async def _timeline_of(self, space: tuple[str, ...]) -> Timeline:
        if self._timeline is not None:
            return self._timeline
        heads, head = (*space, HEADS), (*space, HEAD)
        of_user = bool(await self.store.asearch(heads, limit=1, refresh_ttl=False))
        segments, thread = read_timeline({}), ""
        if self.graph is not None and self._config is not None:
            values = (await self.graph.aget_state(self._config)).values
            thread = self._config["configurable"]["thread_id"]
            owner = values.get("thread_owner") or (values.get("campaign") or [""])[0]
            if owner not in ("", self.user):
                raise InputError(f"Thread {thread!r:.80} belongs to {owner!r:.80}, not to {self.user!r:.80}.")
            segments = as_of(read_timeline(values), int(values.get("remembered_through", sys.maxsize)))
        elif not of_user:
            item = await self.store.aget(head, HEAD, refresh_ttl=False)
            said = (*space, RECORDS[0]) if self.campaign is not None and item is None else ()
            if said and await self.store.asearch(said, limit=1, refresh_ttl=False):
                problem = f"No thread of {space[1]!r:.80} has left a head"
                hint = "name a thread, Memories(graph, …, config=…), or give its timeline"
                raise InputError(f"{problem}, so the store does not say which branch counts: {hint}.")
            segments = read_timeline(item.value) if item is not None else []
        return UserTimeline(segments, thread=thread, heads=heads, fallback=(head, HEAD)) if of_user else segments

    async def _read(self, place: _Place) -> _Records:
        spaces = [(*place.space, label) for label in RECORDS]
        every = [item for space in spaces async for item in items_under(self.store, space, refresh_ttl=False)]
        items = [item for item in every if not item.value.get(WITHHELD)]
        await read_heads(self.store, place.timeline, (item.value for item in items))
        here = [item for item in items if is_visible(place.timeline, item.value)]
        valid = {item.key for item in await keep_valid(self.store, here, timeline=place.timeline)}
        seen = {item.key for item in here}
        exchanges = {(i.value.get("branch"), i.value.get("turn")): i.value for i in items if i.namespace == spaces[0]}
        memories: _Records = []
        for item in items:
            value, hidden = item.value, is_secret_record(item.value) and not self._secrets
            of_turn = exchanges.get((value.get("branch"), value.get("turn")), {})
            status = "holds" if item.key in valid else "expired" if has_expired(value) else "ended"
            memories.append(
                MemoryRecord(
                    key=item.key,
                    kind=str(value.get("kind") or "exchange"),
                    text="" if hidden else str(value.get("text") or ""),
                    status=status if item.key in seen else "elsewhere",  # type: ignore[arg-type]  # one of the four
                    since=str(value.get("said_at") or value.get("real_time") or ""),
                    said="" if hidden or value.get("by") or value.get("cites") else str(of_turn.get("player") or ""),
                    messages=tuple(value.get("messages") or ()),
                    thread=str(value.get("thread") or ""),
                    turn=int(value.get("turn") or 0),
                    namespace=tuple(item.namespace),
                    value={name: value[name] for name in _STAMP if name in value} if hidden else value,
                )
            )
        return sorted(memories, key=lambda memory: (memory.since, memory.turn, memory.key), reverse=True)

    async def _add(
        self, place: _Place, thread: str, fact: Fact | Mapping[str, Any] | str, *, replaces: MemoryRecord | None = None
    ) -> MemoryRecord:
        fact, timeline = _checked(fact), place.timeline
        if isinstance(timeline, UserTimeline) and thread != timeline.thread:
            beside = replaces or next((one for one in await self._read(place) if one.thread == thread), None)
            if beside is not None:
                await read_heads(self.store, timeline, [beside.value])
                head = timeline.head_of(timeline.other_thread(thread, str(beside.value["branch"]), beside.turn))
                timeline = UserTimeline(head, thread=thread, heads=timeline.heads, fallback=timeline.fallback)
        if timeline is not None and not timeline:
            problem = f"No turn of {place.space[1]!r:.80} is finished yet"
            raise InputError(f"{problem}, so there is nothing to add to: begin it first.")
        space = (*place.space, "facts")
        changes = await add_fact(self.store, space, fact, timeline=timeline, replaces=replaces.key if replaces else "")
        key = next(iter([*changes.new, *changes.repetitions.values()]), "")  # none: it was written by this hand before
        end = key or f"-{BY_HAND}.{text_digest(fact.text)}-0"
        return next(one for one in await self._read(place) if one.key.endswith(end))

    async def _remove(self, space: tuple[str, ...], memories: Sequence[MemoryRecord], heirs: Sequence[PutOp]) -> None:
        facts, gone = (*space, "facts"), {memory.key for memory in memories}
        known = [i for label in ("facts", SOURCES) async for i in items_under(self.store, (*space, label))]  # fmt: skip
        dependents = find_dependents(facts, gone, known)
        gone |= {item.key for item in dependents.items}
        gaps = [gap_op(memory) for memory in memories if memory.kind == "exchange"]
        beside = await removals_beside(self.store, facts, gone)
        removed: Sequence[AnyItem] = [*memories, *dependents.items]
        deletions = [PutOp(one.namespace, one.key, None) for one in removed]
        # What rests on them first: without the records nothing tells what that is.
        await put_all(self.store, [*dependents.replacements, *beside, *heirs, *gaps, *reversed(deletions)])


def _checked(fact: Fact | Mapping[str, Any] | str) -> Fact:
    """Return a fact without white space around its text; an InputError says which field is not valid."""
    fields: JSON = {"text": fact} if isinstance(fact, str) else dict(fact)
    if isinstance(text := fields.get("text"), str) and not 0 < len(text := text.strip()) <= MAX_TEXT:
        raise InputError(f"The text of a fact: got {text!r:.60}. Write 1 to {MAX_TEXT:,} characters.")
    try:
        return Fact.model_validate(fields | {"text": text})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        problem = f"{'.'.join(map(str, first['loc']))}: got {first['input']!r:.60}; {first['msg']}"
        raise InputError(f"{problem}. Nothing was changed.") from error


class SyncMemories:
    """What is remembered of a user or a team: `Memories` with sync methods of the same names and arguments.

    The one behind it is `memories`. Where checkpointer or store belong to the event loop that is running, an
    asyncio.InvalidStateError says so.
    """

    def __init__(self, source: BaseStore | Graph, user: str = "", **options: Any) -> None:
        if isinstance(source, CompiledStateGraph):
            source = sync_graph(source)
        elif isinstance(source, BaseStore):
            source = SyncStore(source)
        self.memories = self._behind = Memories(source, user, **options)

    list = sync_method(Memories.list)
    get = sync_method(Memories.get)
    add = sync_method(Memories.add)
    correct = sync_method(Memories.correct)
    delete = sync_method(Memories.delete)
    export_lines = sync_method(Memories.export_lines)
    import_lines = sync_method(Memories.import_lines)
    why = sync_method(Memories.why)
    retract = sync_method(Memories.retract)
