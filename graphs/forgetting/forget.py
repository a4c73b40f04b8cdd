"""Forgetting words, a campaign or a user: in the store and in the checkpoints, on every branch.

Records, checkpoints, pages, summaries and the campaign's head get "[forgotten]" in place of the words; ids and
structure stay. Insights that cite such a record are removed. A record that says nothing without the words ("No spiders,
please.") is removed only if the caller says so: a limit must not disappear unnoticed. Then the databases are written
again, so that no deleted byte stays in a file. If a run is stopped, the next one completes it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base import BaseStore, Item, PutOp
from langgraph.store.memory import InMemoryStore

from questbook.graphs.errors import UnreadableError
from questbook.graphs.forgetting.backends import compact, delete_threads, erasure_of
from questbook.graphs.forgetting.erasure import Erasure, own_thread
from questbook.graphs.forgetting.phrase import Phrase
from questbook.graphs.forgetting.suppression import Kind, SuppressionList, texts_in
from questbook.graphs.local.databases import open_store
from questbook.graphs.local.saved_game import thread_id_of, users_in
from questbook.graphs.turn.scope import HEADS
from questbook.graphs.turn.sessions import PASTS
from questbook.graphs.turn.turn import FORGOTTEN
from questbook.memory.facts.reflection import SOURCES, Dependents, find_dependents
from questbook.memory.facts.validity import text_digest
from questbook.memory.store.any_store import AnyItem, items_under, put_all, with_async_methods
from questbook.memory.timeline.namespaces import (
    campaign_namespace,
    characters_namespace,
    player_namespace,
    unescape_label,
)
from questbook.types import JSON

_PAGE = 500
_NO_WORDS = {"player": FORGOTTEN, "reply": FORGOTTEN}


class Matches(NamedTuple):
    """What holds some words: they are cut out of all of it.

    Of records that say nothing without the words, and of likes and limits of the person, the caller decides: they are
    removed, or they stay with "[forgotten]" in place of the words.
    """

    words: str
    records: list[JSON]  # records that say them, on every branch, each with its `line`
    emptied: list[JSON]  # those that the caller decides about
    insights: list[JSON]  # insights that cite such a record, or another such insight: removed, whatever they say
    items: int  # other items of the store, such as the campaign's head
    fields: list[str]  # dotted paths of the fields of the last state
    checkpoints: int  # checkpoints and pending writes
    playing: Sequence[str] = ()  # threads whose turn is still played: what it writes is cut when the turn ends

    def __bool__(self) -> bool:
        """Whether anything holds the words."""
        return bool(self.records or self.items or self.fields or self.checkpoints)


class Removal(NamedTuple):
    """What was removed or changed."""

    campaigns: list[str]  # names of the campaigns that were looked through
    threads: int = 0  # threads that were deleted, with all their checkpoints
    items: int = 0  # items of the store that were removed or had words cut out
    checkpoints: int = 0  # checkpoints and pending writes that had words cut out
    playing: Sequence[str] = ()  # as in `Matches`


async def forget(
    store: BaseStore,
    user: str,
    campaign: str | None = None,
    *,
    words: str | None = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    threads: Iterable[str] = (),
    remove: Callable[[JSON], bool] = lambda _: False,
) -> Removal:
    """Forget words, a campaign, or everything of a user, for good.

        await forget(store, "ann", "isle", words="the silver heron", checkpointer=saver)  # words, in one campaign
        await forget(store, "ann", words="the silver heron", checkpointer=saver)          # words, in all campaigns
        await forget(store, "ann", "isle", checkpointer=saver)                            # the whole campaign
        await forget(store, "ann", checkpointer=saver)                                    # everything of the user

    If the call is stopped, call it again. It waits for the end of turns that are played on the threads, because such a
    run has the words in its memory, and cuts again; a turn without a step for five minutes counts as stopped. A turn
    that calls this itself is not waited for: when it has ended, forget again. (The checkpointer of
    `questbook.graphs.local` cuts words again by itself, and nobody waits.)

    Store and checkpointer may be any; docs/forgetting.md says what stays in their files. What fails is an error, last.

    Args:
        store: Of it, the namespaces of the campaign, of the user and of the user's characters.
        user: Whose memories.
        campaign: The campaign, or whatever your app calls the second label of its namespaces; None: all of the user's.
        words: The words; case, white space and punctuation do not count. None: everything.
        checkpointer: Of it, the threads that records name and those with `user` and `campaign` in their metadata.
            None: only the store is looked through.
        threads: Further threads. They need `campaign`.
        remove: Asked for each record that says nothing without the words, and for likes and limits of the person:
            whether it is removed as a whole. By default it stays, with "[forgotten]" in place of the words.

    Raises:
        ForgettingError: The words are too short or part of a name that is needed (nothing was changed), or they could
            not be forgotten everywhere (the message says where).
        ValueError: An argument makes no sense, or threads were given without a campaign. Nothing was changed.
    """
    named = isinstance(user, str) and user and isinstance(campaign, str | None) and campaign != ""
    if not (named and isinstance(words, str | None)):
        raise ValueError(f"user, campaign, words: got {(user, campaign, words)!r:.120}; expected texts, none empty.")
    if isinstance(threads, str):
        raise ValueError(f"threads: got {threads!r:.80}; expected a list of ids.")
    if not callable(remove):
        raise ValueError(f"remove: got {remove!r:.80}; expected a function of a record.")
    if (threads := list(threads)) and campaign is None:
        raise ValueError("To forget in threads, say of which campaign they are.")
    forgetting = Forgetting(store, checkpointer, user, campaign or "", threads)
    if words is None:
        return await (forgetting.forget_campaign() if campaign is not None else forgetting.forget_user())
    names = [campaign] if campaign is not None else await forgetting.campaigns() or [""]
    campaigns, phrase = [forgetting.of_campaign(name) for name in names], Phrase(words)
    for each in campaigns:  # words that cannot be forgotten in one campaign are refused before another is changed
        await each.find(words)
    removals = [await each.cut_out(phrase, remove) for each in campaigns]
    items, checkpoints = sum(one.items for one in removals), sum(one.checkpoints for one in removals)
    await forgetting.compact(f"“{phrase.words}” was removed from the store ({items} items)", cut=True)
    return Removal(names, 0, items, checkpoints, [thread for one in removals for thread in one.playing])


class Forgetting:
    """Forgets in one campaign, or everything of its user; parameters, and what is refused, are those of `forget`."""

    def __init__(
        self,
        store: BaseStore,
        checkpointer: BaseCheckpointSaver[Any] | None,
        user: str,
        campaign: str,
        threads: Iterable[str] = (),
    ) -> None:
        self.store: BaseStore = with_async_methods(store)
        self.checkpointer, self.user, self.campaign = checkpointer, user, campaign
        self._space = partial(campaign_namespace, user, campaign)
        self._further_threads = set(threads)
        self._others: dict[str, tuple[bool, str]] = {}  # threads: whether they are another user's, and their campaign
        self._erasure = erasure_of(checkpointer)

    def of_campaign(self, campaign: str) -> Self:
        """Return the same for another campaign of the user."""
        return self if campaign == self.campaign else type(self)(self.store, self.checkpointer, self.user, campaign)

    async def find(
        self,
        words: str,
        shown: Sequence[str] = ("summary", "notices", "line"),
        sees: Callable[[JSON], bool] = lambda _: True,
    ) -> Matches:
        """Find everything of the campaign that holds words; the fields are of the pages and the channels `shown`.

        Of records, only those that `sees` allows, and what was drawn from them: none that a player must not see. Words
        that cannot be forgotten are refused as in `forget`.
        """
        phrase, items = Phrase(words), [item async for item in self._items()]
        for item in items:
            phrase.check_own(item.namespace[:2])
            phrase.check_own(item.namespace[2:], field=True)
        records = [item for item in items if _says(item, phrase) and sees(item.value)]
        drawn = self._drawn_from(records, items).items
        insights = [item for item in drawn if item.namespace[-1] != SOURCES and sees(item.value)]
        removed = {(item.namespace, item.key) for item in (*records, *drawn)}
        cut = [item for item in items if (item.namespace, item.key) not in removed and phrase.cut_item(item)]
        threads = await self.threads()
        fields = [path for thread in sorted(threads) for path in await self._fields(thread, phrase, shown)]
        lines = {(v.get("branch"), v.get("turn")): v["line"] for v in (item.value for item in items) if v.get("line")}
        return Matches(
            words=phrase.words,
            records=_by_turn(records, lines),
            emptied=_by_turn((item for item in records if phrase.empties(item.value)), lines),
            insights=_by_turn(insights, lines),
            items=len(cut) + len(drawn) - len(insights),
            fields=list(dict.fromkeys(fields)),
            checkpoints=await self._erasure.cut(threads, phrase, write=False) if self._erasure else 0,
        )

    async def forget(
        self, words: str, remove: Callable[[JSON], bool] = lambda _: False, *, completes: bool = True
    ) -> Matches:
        """Forget words, on every branch, as `forget` above; return what held them.

        The files are written again even if nothing holds the words any more: that completes a call that was stopped.
        Without `completes`, only one that has left its mark: it takes long, and others wait meanwhile.
        """
        matches, phrase = await self.find(words), Phrase(words)
        place = text_digest(f"{self.user}\n{self.campaign}")  # it says of nobody that they forgot
        mark = PutOp(("questbook:forgetting",), place, {"cut": True}, index=False)
        if matches and not completes:
            await self._write([mark])
        removal = await self.cut_out(phrase, remove)
        left = completes or await self.store.aget(mark.namespace, mark.key)
        if left or removal.items or removal.checkpoints:
            await self.compact(f"“{phrase.words}” was removed from the store ({removal.items} items)", cut=True)
            # A call that completes writes none: this would leave pages of others in the log of the file.
            await self._write([] if completes else [mark._replace(value=None)])
        return matches._replace(playing=removal.playing)

    async def cut_out(self, phrase: Phrase, remove: Callable[[JSON], bool]) -> Removal:
        """Take a phrase out of the checkpoints and the store, without writing their files again: see `compact`."""
        removal, again = Removal([self.campaign]), True
        async with self._noted("words", self.campaign, words=phrase.words):
            while again:
                threads = await self.threads()  # before the records go that name them
                before = await self._erasure.find_playing(threads) if self._erasure else []
                items, checkpoints = await self._cut_once(threads, phrase, remove)
                after = await self._erasure.find_playing(threads) if self._erasure and items + checkpoints else []
                # What is played has the words in its memory; what has ended may have written them behind this.
                waits = {*before, *after} - {own_thread()} if items or checkpoints else set[str]()
                if isinstance(self._erasure, Erasure) and self._erasure.comes_back:
                    quiet = threads.difference(before, after)
                    await self._erasure.leave_for_runs(quiet, after, (self.user, self.campaign), phrase)
                    waits -= {*after}
                if self._erasure:
                    await self._erasure.wait_for_end(waits)
                left = [thread for thread in after if thread not in waits]
                removal = Removal([self.campaign], 0, removal.items + items, removal.checkpoints + checkpoints, left)
                again = bool(waits)
        return removal

    async def _cut_once(self, threads: set[str], phrase: Phrase, remove: Callable[[JSON], bool]) -> tuple[int, int]:
        """Take a phrase out of what is saved now; return how many items and checkpoints held it."""
        checkpoints = await self._erasure.cut(threads, phrase) if self._erasure else 0
        items = [item async for item in self._items()]
        drawn = self._drawn_from([item for item in items if _says(item, phrase)], items)
        # First, because without the cited records nothing tells what was drawn from them.
        await self._write([*drawn.replacements, *_deleted(drawn.items)])
        changes = [writes async for item in self._items() if (writes := self._without(item, phrase, remove))]
        await self._write([write for writes in changes for write in writes])
        return len(drawn.items) + len(changes), checkpoints

    async def forget_campaign(self) -> Removal:
        """Remove everything of the campaign, and what the user's characters (`ltm_config`) remember of its threads."""
        async with self._noted("campaign", self.campaign):
            return await self._remove([self.campaign], (), f"Campaign {self.campaign!r} was removed")

    async def forget_user(self) -> Removal:
        """Remove everything of the user: all campaigns, and what is known of the user across them."""
        spaces = (player_namespace(self.user), characters_namespace(self.user))
        async with self._noted("user"):
            return await self._remove(await self.campaigns(), spaces, f"Everything of {self.user!r} was removed")

    async def texts(self) -> AsyncIterator[str]:
        """Yield every text of the campaign, in its items and in all checkpoints of its threads."""
        async for item in self._items():
            for text in texts_in([item.key, item.value]):
                yield text
        if (saver := self.checkpointer) is None:
            return
        for thread in await self.threads():
            async for saved in saver.alist({"configurable": {"thread_id": thread}}):
                for text in texts_in([saved.checkpoint["channel_values"], saved.pending_writes or []]):
                    yield text

    @asynccontextmanager
    async def _noted(self, kind: Kind, *campaign: str, words: str = "") -> AsyncIterator[None]:
        """Note what is forgotten before it is, for a run that is stopped, and after, for a backup begun meanwhile."""
        listed = SuppressionList.find()
        add = partial(listed.add, kind, self.user, *campaign, words=words) if listed else lambda: None
        await asyncio.to_thread(add)
        try:
            yield
        finally:
            await asyncio.to_thread(add)

    async def campaigns(self) -> list[str]:
        """Return the names of the user's campaigns, as the store and the checkpoints know them."""
        (user, player), (_, characters) = player_namespace(self.user), characters_namespace(self.user)
        spaces: list[tuple[str, ...]] = []
        while page := await self.store.alist_namespaces(prefix=(user,), limit=_PAGE, offset=len(spaces)):
            spaces += page
        in_store = {unescape_label(space[1]) for space in spaces if space[1:2] not in ((), (player,), (characters,))}
        in_checkpoints = set((await self._erasure.threads_of(self.user)).values()) if self._erasure else set[str]()
        return sorted(in_store | in_checkpoints)

    async def threads(self) -> set[str]:
        """Return the campaign's threads: those that its records name, and those whose checkpoints name the campaign."""
        items = items_under(self.store, self._space())
        named = {str(item.value["thread"]) async for item in items if item.value.get("thread")}
        for label in (PASTS, HEADS):  # a thread that has left no record has looked for a past, or for a page
            entered = items_under(self.store, self._space(label))
            named |= {str(item.value.get("thread") or item.key) async for item in entered}
        if self._erasure is not None:
            of_user = await self._erasure.threads_of(self.user)
            named |= {thread for thread, campaign in of_user.items() if campaign == self.campaign}
        own = {thread_id_of(self.user, self.campaign), *self._further_threads}
        return own | {thread for thread in named if not await self._is_of_another(thread)}

    async def _is_of_another(self, thread: str) -> bool:
        """Whether a thread is another user's or another campaign's.

        Records of anyone may name it, and those of a campaign that was imported or renamed by an earlier version may
        name the thread that it was copied from. Metadata say who has resumed a run.
        """
        if thread not in self._others:
            try:
                saved = await self._read_checkpoint(thread)
            except UnreadableError:  # its metadata can still say whose it is
                named = await self._erasure.threads_of(self.user) if self._erasure else {}
                if named.get(thread) != self.campaign:
                    raise
                return False
            values = saved.checkpoint["channel_values"] if saved else {}
            owner = values.get("thread_owner")
            users = {owner} if owner else users_in(saved.metadata, values) if saved else frozenset()
            self._others[thread] = bool(users - {self.user}), str((values.get("campaign") or ["", ""])[1])
        of_others, campaign = self._others[thread]
        return of_others or campaign not in ("", self.campaign)

    async def messages(self) -> set[str]:
        """Return what the user said in the campaign, as records and the threads' last states have it."""
        texts = {str(item.value.get("player", "")) async for item in items_under(self.store, self._space())}
        for thread in await self.threads():
            with suppress(UnreadableError):
                messages = (await self._values(thread)).get("messages", [])
                texts |= {message.text for message in messages if isinstance(message, HumanMessage)}
        return texts

    async def _remove(self, campaigns: Sequence[str], spaces: Sequence[tuple[str, ...]], done: str) -> Removal:
        threads, removed = 0, 0
        of_characters = [item async for item in items_under(self.store, characters_namespace(self.user))]
        for campaign in campaigns:
            own_threads = await self.of_campaign(campaign).threads()
            if self._erasure and not self._erasure.comes_back:
                await self._erasure.wait_for_end(own_threads - {own_thread()})
            items = [item async for item in items_under(self.store, campaign_namespace(self.user, campaign))]
            # What a character remembers of these threads; what was imported or written by hand names no thread.
            remembered = [item for item in of_characters if item.value.get("thread") in own_threads]
            # In this order, because the campaign's items name its threads: a stopped run can be repeated.
            await self._write(_deleted(remembered))
            if self.checkpointer is not None:
                threads += await delete_threads(self.checkpointer, own_threads)
            await self._write(_deleted(items))
            removed += len(items) + len(remembered)
        items = [item for space in spaces async for item in items_under(self.store, space)]
        await self._write(_deleted(items))
        await self.compact(done)
        return Removal(list(campaigns), threads, removed + len(items))

    def _without(self, item: Item, phrase: Phrase, remove: Callable[[JSON], bool]) -> list[PutOp]:
        """Return the writes that take a phrase out of an item; none if it does not hold it."""
        if _says(item, phrase) and phrase.empties(item.value) and remove(item.value):
            # The tree of turns needs to know that a turn was played, without a word of it.
            gaps = [gap_op(item)] if item.namespace == self._space("exchanges") else []
            return [*_deleted([item]), *(gap._replace(value=phrase.cut(gap.value) | _NO_WORDS) for gap in gaps)]
        if (cut := phrase.cut_item(item)) is None:
            return []
        key, value = cut
        moved = _deleted([item]) if key != item.key else []
        index: Literal[False] | None = None if isinstance(value.get("text"), str) else False
        return [*moved, PutOp(item.namespace, key, value, index=index)]

    def _drawn_from(self, records: Sequence[Item], items: Sequence[Item]) -> Dependents:
        return find_dependents(self._space("facts"), {item.key for item in records}, items)

    async def _fields(self, thread: str, phrase: Phrase, shown: Sequence[str]) -> list[str]:
        values = await self._values(thread)
        pages = [name for name, value in values.items() if isinstance(value, dict) and "version" in value]
        return [path for name in (*pages, *shown) if name in values for path in phrase.paths(values[name], name)]

    async def _values(self, thread: str) -> JSON:
        saved = await self._read_checkpoint(thread)
        return {} if saved is None else saved.checkpoint["channel_values"]

    async def _read_checkpoint(self, thread: str) -> CheckpointTuple | None:
        where: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        return await self.checkpointer.aget_tuple(where) if self.checkpointer else None

    async def _items(self) -> AsyncIterator[Item]:
        """Yield all items of the campaign, of the user and of the user's characters."""
        for space in (self._space(), player_namespace(self.user), characters_namespace(self.user)):
            async for item in items_under(self.store, space):
                yield item

    async def _write(self, writes: Sequence[PutOp]) -> None:
        for start in range(0, len(writes), _PAGE):
            await put_all(self.store, writes[start : start + _PAGE])

    async def compact(self, done: str, *, cut: bool = False) -> None:
        """Write the databases again (`questbook.graphs.forgetting.backends.compact`)."""
        await compact(self.store, self.checkpointer, self._erasure, done, cut=cut)


async def forget_left(saver: AsyncSqliteSaver, memory: Path, thread: str) -> None:
    """Forget what was left for the end of a thread's turn, which another program played while words were forgotten.

    If there is no `memory`, the file of the semantic store, only the checkpoints are looked through.
    """
    for user, campaign, words in await Erasure(saver).left_for(thread):
        exists = await asyncio.to_thread(memory.exists)
        async with open_store(memory) if exists else nullcontext(InMemoryStore()) as store:
            await Forgetting(store, saver, user, campaign, [thread]).forget(words)


def gap_op(exchange: AnyItem) -> PutOp:
    """Make the write that says, without the words of an exchange, that its turn was played."""
    names = ("branch", "turn", "after", "line", "thread", "checkpoint", "said_at", "location")
    gap = {name: exchange.value.get(name) for name in names} | _NO_WORDS
    return PutOp((*exchange.namespace[:-1], "gaps"), exchange.key, gap, index=False)


def _deleted(items: Iterable[Item]) -> list[PutOp]:
    return [PutOp(item.namespace, item.key, None) for item in items]


def _by_turn(items: Iterable[Item], lines: Mapping[tuple[Any, Any], str]) -> list[JSON]:
    """Return records in the order of turns, each with the line on which its turn was played; of the person: none."""
    values = [item.value for item in items]
    values = [{"line": lines.get((value.get("branch"), value.get("turn")), ""), **value} for value in values]
    return sorted(values, key=lambda value: (value.get("turn", 0), str(value.get("said_at", ""))))


def _says(item: Item, phrase: Phrase) -> bool:
    """Whether an item is a record that says the phrase; a phrase beside its text is only cut out."""
    texts = [item.value.get(name) for name in ("text", "player", "reply")]
    return isinstance(texts[0], str) and any(isinstance(text, str) and phrase.is_in(text) for text in texts)
