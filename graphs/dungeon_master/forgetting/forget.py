"""Forgetting: remove words, a campaign or a player from everything that is kept.

Undo and branches lose nothing, which is their point; forgetting is the opposite. Words leave every branch: records
that say them are removed with their words and vectors; checkpoints, pages, summaries and the campaign's head say
"[forgotten]" in their place, ids and structure stay, and the game plays on. Then the databases are compacted, so that
no deleted byte stays in a file. Each step can be done again, and a run that was stopped is completed by the next.

Out of reach is what others keep: a model's provider, backups, logs, the shell's own history, what the file system
leaves on freed blocks of the disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore, Item, PutOp
from langgraph.store.memory import InMemoryStore

from questbook.graphs.dungeon_master.facts import FACTS
from questbook.graphs.embedded.home import Home
from questbook.graphs.embedded.saved_game import thread_id_of
from questbook.graphs.errors import ForgettingError
from questbook.graphs.forgetting.erasure import Erasure, delete_threads, files_with
from questbook.graphs.forgetting.phrase import Phrase
from questbook.graphs.forgetting.prompt_history import entries_that, remove_entries
from questbook.graphs.settings import Settings
from questbook.graphs.turn.sessions import PASTS
from questbook.graphs.turn.turn import FORGOTTEN
from questbook.memory.facts.sources import SOURCES, Dependents, find_dependents
from questbook.memory.store.any_store import items_under, put_all
from questbook.memory.store.faiss_store import FaissStore
from questbook.memory.timeline.namespaces import (
    campaign_namespace,
    characters_namespace,
    player_namespace,
    unescape_label,
)
from questbook.types import JSON

_PAGE = 500
_LINES = "lines"  # the last label of the namespace whose keys are names that people gave
_SHOWN = ("character", "quest", "core", "archived", "summary", "notices", "rolls", "line")
Graph = CompiledStateGraph[Any, Any, Any, Any]


class Findings(NamedTuple):
    """Everything with some words, or what was removed.

    Attributes:
        words: The words.
        records: The records that say them, of every branch: removed as a whole.
        insights: Insights without the words that cite such a record, or an insight that does: removed as well.
        items: Count of other things in the store with the words: the campaign's head, names of lines, notes on where a
            record came from. The words are cut out.
        fields: Dotted paths of the current pages and the summary with the words. The words are cut out.
        checkpoints: Count of checkpoints and pending writes with the words. The words are cut out.
        typed_lines: Count of entries of the prompt's history with the words: removed.
        files: After forgetting, the files in which the words can still be read: because another campaign says them,
            or because they are words of the file's own structure. A word of three letters can be there by chance.
    """

    words: str
    records: list[JSON]
    insights: list[JSON]
    items: int
    fields: list[str]
    checkpoints: int
    typed_lines: int
    files: Sequence[str] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing has the words."""
        return not (self.records or self.items or self.fields or self.checkpoints or self.typed_lines)


class Removal(NamedTuple):
    """What was removed with a campaign or a player.

    Attributes:
        campaigns: Names of the campaigns.
        threads: How many threads, with all their checkpoints.
        items: How many records and other things in the store.
        typed_lines: How many entries of the prompt's history.
    """

    campaigns: list[str]
    threads: int
    items: int
    typed_lines: int


def by_turn(items: Iterable[Item]) -> list[JSON]:
    """Return the values of items, by turn."""
    values = [item.value for item in items]
    return sorted(values, key=lambda value: (value.get("turn", 0), str(value.get("said_at", ""))))


class Forgetting:
    """Forgets in one campaign, or all of a player's. The caller makes sure that nobody plays it at the same time.

    Args:
        graph: The dungeon master, compiled with checkpointer and store.
        config: Names a thread of the campaign.
        context: The settings: user and campaign.
        home: Directory with a terminal's prompt history and locks; None: there is none.
    """

    def __init__(self, graph: Graph, config: RunnableConfig, context: Settings, home: Home | None = None) -> None:
        self.graph, self.config, self.context, self.home = graph, config, context, home

    async def find(self, text: str) -> Findings:
        """Find everything of the campaign with the words of `text`, on every branch. Nothing is changed.

        Raises:
            ForgettingError: The words cannot be forgotten: too short, or words that the game itself is built on.
        """
        phrase = Phrase(text)
        known = [item async for item in self._items()]
        for item in known:
            phrase.check_own(list(item.namespace))
        records = [item for item in known if self._says(item, phrase)]
        dependents = self._dependents(known, phrase)
        removed = {(item.namespace, item.key) for item in (*records, *dependents.items)}
        notes = [item for item in dependents.items if item.namespace[-1] == SOURCES]
        cut = [i for i in known if (i.namespace, i.key) not in removed and self._cut(i, phrase)]
        values = (await self.graph.aget_state(self.config)).values
        shown = {name: values[name] for name in _SHOWN if name in values}
        fields = [path for name, value in shown.items() for path in phrase.places(value, name)]
        erasure = self._erasure()
        return Findings(
            words=phrase.words,
            records=by_turn(records),
            insights=by_turn(item for item in dependents.items if item not in notes),
            items=len(cut) + len(notes),
            fields=fields,
            checkpoints=await erasure.holding(await self._threads(), phrase) if erasure else 0,
            typed_lines=entries_that(self.home.prompt_history, phrase.is_in) if self.home else 0,
        )

    async def forget(self, text: str) -> Findings:
        """Forget the words of `text`, on every branch and in every file; return what had them.

        Called again, also after it was stopped, it does the rest. It compacts the files even if nothing has the words
        any more.

        Raises:
            ForgettingError: The words cannot be forgotten, or not everywhere: with another checkpointer than
                AsyncSqliteSaver only the store is cleaned. The message says what was and what was not done.
        """
        findings, phrase = await self.find(text), Phrase(text)
        threads = await self._threads()  # before the records go that name them
        if (erasure := self._erasure()) is not None:
            await erasure.cut(threads, phrase)
        items = [item async for item in self._items()]
        dependents = self._dependents(items, phrase)
        # First: once the cited records are gone, nothing names the insights that depend on them.
        await self._write(
            [*dependents.replacements, *(PutOp(item.namespace, item.key, None) for item in dependents.items)]
        )
        items = [item async for item in self._items()]
        cuts = [writes for item in items if (writes := self._removal_ops(item, phrase))]
        await self._write([write for writes in cuts for write in writes])
        if self.home is not None:
            await asyncio.to_thread(remove_entries, self.home.prompt_history, phrase.is_in)
        await self._compact(erasure, f"“{phrase.words}” was removed from the store ({len(cuts)} items)", cut=True)
        files = await asyncio.to_thread(files_with, self.home.path, phrase) if self.home else ()
        return findings._replace(files=files)

    async def forget_campaign(self) -> Removal:
        """Remove everything of the campaign: threads, records, head, lines, what was typed in it.

        Also what a character of the user remembers of its talks (`ltm_config`).

        Raises:
            ForgettingError: The checkpointer cannot delete threads; the message says what was done.
        """
        removed = await self._remove([self.context.campaign])
        await self._compact(self._erasure(), f"Campaign {self.context.campaign!r} was removed")
        return removed

    async def campaigns(self) -> list[str]:
        """Name every campaign of the user, as the store and the checkpoints know them."""
        (user, player), (_, characters) = player_namespace(self.context.user), characters_namespace(self.context.user)
        spaces: list[tuple[str, ...]] = []
        while page := await self._store().alist_namespaces(prefix=(user,), limit=_PAGE, offset=len(spaces)):
            spaces += page
        erasure = self._erasure()
        run = set((await erasure.threads_of(self.context.user)).values()) if erasure else set[str]()
        return sorted(
            {unescape_label(space[1]) for space in spaces if space[1:2] not in ((), (player,), (characters,))} | run
        )

    async def forget_player(self) -> Removal:
        """Remove everything of the user: all campaigns, and what is known of the player across them.

        When no game of anybody is left, the prompt's whole history goes too.

        Raises:
            ForgettingError: The checkpointer cannot delete threads; the message says what was done.
        """
        removed, erasure = await self._remove(await self.campaigns()), self._erasure()
        places = (player_namespace(self.context.user), characters_namespace(self.context.user))
        known = [item for place in places async for item in self._items_under(place)]
        await self._write([PutOp(item.namespace, item.key, None) for item in known])
        if self.home is not None and erasure is not None and await erasure.nothing_left():
            typed = await asyncio.to_thread(remove_entries, self.home.prompt_history, bool)
            removed = removed._replace(typed_lines=removed.typed_lines + typed)
        await self._compact(erasure, f"Everything of {self.context.user!r} was removed")
        return removed._replace(items=removed.items + len(known))

    async def _remove(self, campaigns: Sequence[str]) -> Removal:
        thread_count, item_count, typed = 0, 0, 0
        character_memories = [item async for item in self._items_under(characters_namespace(self.context.user))]
        for name in campaigns:
            campaign = self if name == self.context.campaign else self._for_campaign(name)
            threads = await campaign._threads()
            items = [item async for item in campaign._items_under(campaign_namespace(self.context.user, name))]
            # A character's memories of these threads; imported or handwritten ones name no thread.
            memories = [item for item in character_memories if item.value.get("thread") in threads]
            # In this order, because the store's items name what is to be removed: stopped, it can start again.
            messages = {str(item.value.get("player", "")) for item in items} | await campaign._player_messages(threads)
            if self.home is not None:
                typed += await asyncio.to_thread(remove_entries, self.home.prompt_history, messages.__contains__)
            await self._write([PutOp(item.namespace, item.key, None) for item in memories])
            thread_count += await delete_threads(self.graph.checkpointer, threads)
            await self._write([PutOp(item.namespace, item.key, None) for item in items])
            for lock in [self.home.lock_of(thread) for thread in threads] if self.home else []:
                lock.unlink(missing_ok=True)
            item_count += len(items) + len(memories)
        return Removal(list(campaigns), thread_count, item_count, typed)

    def _for_campaign(self, campaign: str) -> Forgetting:
        thread: RunnableConfig = {"configurable": {"thread_id": thread_id_of(self.context.user, campaign)}}
        return Forgetting(self.graph, thread, self.context.model_copy(update={"campaign": campaign}), self.home)

    async def _player_messages(self, threads: Iterable[str]) -> set[str]:
        """Return the player's last messages on threads: not all of them need have become records."""
        texts = set[str]()
        for thread in threads:
            values = (await self.graph.aget_state({"configurable": {"thread_id": thread}})).values
            messages: list[BaseMessage] = values.get("messages", [])
            texts |= {message.text for message in messages if isinstance(message, HumanMessage)}
        return texts

    async def _threads(self) -> set[str]:
        """Return the campaign's threads: those that its records name, and those whose checkpoints name the campaign."""
        campaign = campaign_namespace(self.context.user, self.context.campaign)
        named = {str(item.value["thread"]) async for item in self._items_under(campaign) if item.value.get("thread")}
        named |= {thread_id_of(self.context.user, self.context.campaign), str(self.config["configurable"]["thread_id"])}
        # A thread that is still in its interview has no record; but it has looked for a past.
        pasts = campaign_namespace(self.context.user, self.context.campaign, PASTS)
        named |= {item.key async for item in self._items_under(pasts)}
        if (erasure := self._erasure()) is not None:
            run = await erasure.threads_of(self.context.user)
            named |= {thread for thread, campaign in run.items() if campaign == self.context.campaign}
        return named

    def _removal_ops(self, item: Item, phrase: Phrase) -> list[PutOp]:
        """Return the writes that take a phrase out of an item; none if it does not hold it."""
        if self._says(item, phrase):
            return [PutOp(item.namespace, item.key, None), *self._gap_ops(item, phrase)]
        if (cut := self._cut(item, phrase)) is None:
            return []
        key, value = cut
        moved = [PutOp(item.namespace, item.key, None)] if key != item.key else []
        index: Literal[False] | None = None if isinstance(value.get("text"), str) else False
        return [*moved, PutOp(item.namespace, key, value, index=index)]

    def _gap_ops(self, item: Item, phrase: Phrase) -> list[PutOp]:
        """Keep that the turn was played, without a word of it: the tree of what was played must not fall apart."""
        gaps = campaign_namespace(self.context.user, self.context.campaign, "gaps")
        if item.namespace != campaign_namespace(self.context.user, self.context.campaign, "exchanges"):
            return []
        where = ("branch", "turn", "after", "line", "thread", "checkpoint", "said_at", "location")
        kept = {name: item.value.get(name) for name in where}
        value = kept if (cut := phrase.cut(kept)) is kept else cut
        return [PutOp(gaps, item.key, value | {"player": FORGOTTEN, "reply": FORGOTTEN}, index=False)]

    def _dependents(self, known: Sequence[Item], phrase: Phrase) -> Dependents:
        """Return the records that depend on those that say a phrase, whatever their own words."""
        facts = campaign_namespace(self.context.user, self.context.campaign, FACTS)
        cited = {item.key for item in known if self._says(item, phrase)}
        return find_dependents(facts, cited, known)

    @staticmethod
    def _says(item: Item, phrase: Phrase) -> bool:
        """Whether an item is a memory whose text says the phrase; with the phrase in other fields it is not removed."""
        texts = [item.value.get(name) for name in ("text", "player", "reply")]
        return isinstance(texts[0], str) and any(isinstance(text, str) and phrase.is_in(text) for text in texts)

    @staticmethod
    def _cut(item: Item, phrase: Phrase) -> tuple[str, JSON] | None:
        value, key = phrase.cut(item.value), item.key
        if item.namespace[-1] == _LINES:
            key = phrase.cut_text(key)
        else:
            phrase.check_own(key)
        return None if value is item.value and key == item.key else (key, value)

    async def _items(self) -> AsyncIterator[Item]:
        """Go through everything that the store has of the campaign, of the player and of the player's characters."""
        for place in (
            campaign_namespace(self.context.user, self.context.campaign),
            player_namespace(self.context.user),
            characters_namespace(self.context.user),
        ):
            async for item in self._items_under(place):
                yield item

    def _items_under(self, place: tuple[str, ...]) -> AsyncIterator[Item]:
        return items_under(self._store(), place)

    async def _write(self, writes: Sequence[PutOp]) -> None:
        for start in range(0, len(writes), _PAGE):
            await put_all(self._store(), writes[start : start + _PAGE])

    async def _compact(self, erasure: Erasure | None, done: str, *, cut: bool = False) -> None:
        """Compact the files; raise a ForgettingError that names what cannot be done here, and what was done."""
        left: list[str] = []
        store = self._store()
        if isinstance(store, FaissStore):
            await asyncio.to_thread(store.compact)
        elif not isinstance(store, InMemoryStore):
            left.append(
                f"{type(store).__name__} may keep deleted rows in its files until it is vacuumed, by its own means"
            )
        if erasure is not None:
            await erasure.compact()
        elif cut:
            left.append(
                f"the checkpoints of {type(self.graph.checkpointer).__name__} were not touched and may still hold it: "
                "only those of AsyncSqliteSaver can be changed; delete the threads there"
            )
        if left:
            raise ForgettingError(f"{done}, but {'; '.join(left)}.")

    def _erasure(self) -> Erasure | None:
        try:
            return Erasure(self.graph.checkpointer)
        except ForgettingError:  # said at the end, with what could be done
            return None

    def _store(self) -> BaseStore:
        if not isinstance(self.graph.store, BaseStore):
            raise ForgettingError("The graph was compiled without a store. Nothing was changed.")
        return self.graph.store
