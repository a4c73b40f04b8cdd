"""`OpenCampaign`: a campaign that is open in this server, the turn that is being played, and those who watch.

A turn runs in a task of its own, so that a page that is closed or loaded again in mid-reply loses nothing.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import Any, NamedTuple

from questbook.graphs.errors import QuestbookError
from questbook.graphs.events import DiceRoll, Event, Memories, NodeStart, Notice, PromptReport, ReplyPiece
from questbook.graphs.interface.text import clean, work_text
from questbook.graphs.local.game import Game
from questbook.graphs.local.home import HomeError
from questbook.graphs.models.providers import GO_OFFLINE
from questbook.graphs.web.markdown import ComingText
from questbook.graphs.web.story import Undo
from questbook.memory.errors import StoreError
from questbook.types import JSON

_log = logging.getLogger(__name__)
_UPDATES_KEPT = 4000  # of a turn: a page that was away for longer loads the story again
_TICKETS_KEPT = 200
_UPKEEP_SECONDS = 900.0
_OTHER_MODEL = "choose another model under Settings, or tell whoever runs this page"
_AWAY = "The games cannot be reached at the moment. Your message is kept; try again."


class BusyError(QuestbookError):
    """A reply is coming, or too many campaigns are open; nothing was done."""


class StreamUpdate(NamedTuple):
    """Something that pages get: "turn", "piece", "dice", "work", "memories", "replied", "pages" and the like."""

    number: int  # counts the updates of the campaign, and is greater than those before it was opened
    kind: str
    data: JSON


class LiveTurn:
    """The turn that is being played, as far as it has come."""

    def __init__(self, player: str) -> None:
        self.player = player  # what they said; "" if the turn goes on after a stop
        self.pieces: dict[str, ComingText] = {}  # the reply so far, by message
        self.rolls: list[JSON] = []
        self.work = ""  # the node that runs
        self.is_told = False  # whether the checkpoint holds the whole reply, and the notes on it are being made
        self.is_over = False  # whether nothing more comes, since the turn was stopped or has failed
        self.kept = asyncio.Event()  # set when the checkpoint holds what the player said, or the turn is over
        self.refusal: QuestbookError | StoreError | None = None  # why it was not kept


class OpenCampaign:
    """A campaign that is open; `stack` is closed with it.

    If it `is_new`, it had not begun when it was opened. If it `is_preview`, too, it is only looked at, without a lock.
    """

    def __init__(self, game: Game, stack: AsyncExitStack, *, is_new: bool = False, is_preview: bool = False) -> None:
        self.game, self._stack, self.is_new, self.is_preview = game, stack, is_new, is_preview
        self.key = ("", "", "")  # graph, owner and name
        self.person = ""  # for whom it was opened
        self.hides = False  # whether only the log says what of the server has failed, and where it is
        self.live: LiveTurn | None = None  # the turn that is being played, noted, or has failed; None: none of them
        self.memories: list[JSON] | None = None  # what was recalled for the last turn; None: it is not known
        self.report: PromptReport | None = None  # what the model saw in it
        self.problem = ""  # why it failed
        self.undo: Undo | None = None  # the turn that was taken back last, and can come back
        # Greater than those of this campaign before, which pages still name; 0 on a page of one that has not begun.
        self.number = self._first = 0 if is_preview else int(time.time()) * 1000
        self.requests, self.used = 0, time.monotonic()  # how many use it, and when one did last
        self._is_ending = False
        self._updates: deque[StreamUpdate] = deque(maxlen=_UPDATES_KEPT)
        self._news, self._changing, self.record_lock = asyncio.Condition(), asyncio.Lock(), asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._upkeep: asyncio.Task[None] | None = None
        self._loading: asyncio.Task[Any] | None = None
        self._tickets: deque[tuple[str, str]] = deque(maxlen=_TICKETS_KEPT)

    @property
    def is_replying(self) -> bool:
        """Whether a reply is coming."""
        return self._task is not None and not self._task.done()

    @property
    def in_upkeep(self) -> bool:
        """Whether the notes on the last turn are being made; a message may be sent meanwhile."""
        return self._upkeep is not None and not self._upkeep.done()

    @property
    def is_working(self) -> bool:
        """Whether a reply is coming, or notes on one are being made."""
        return self.is_replying or self.in_upkeep

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs and no request uses it, so that it may be closed."""
        return not (self.requests or self.is_working)

    async def has_begun(self) -> bool:
        """Whether anything was played in it. If the home cannot say, it counts as begun: nothing of it is removed."""
        try:
            return await self.game.saved_game() is not None
        except HomeError as error:
            _log.warning("Whether campaign %r has begun cannot be read: %s", self.game.context.campaign, error)
            return True

    def work(self, node: str = "") -> str:
        """Return what a person waits for while a node runs; for the reply, if nothing is said of that node."""
        name = "the companion" if self.game.machine == "companion" else "the dungeon master"
        return work_text(node, name) or work_text("respond", name)

    def load_ahead(self) -> None:
        """Load the graph while the person reads."""
        self._loading = asyncio.create_task(self.game.load())

    async def play(self, events: AsyncGenerator[Event], player: str = "", *, is_kept: bool = False) -> None:
        """Begin to play a turn; return when the checkpoint holds what the player said.

        If it `is_kept` there already, this waits for nothing, and raises no refusal. Where the turn was refused, or
        stopped, before it was kept, that error is raised, and nothing of it is shown; a BusyError while a reply comes.
        """
        if self.is_replying:
            await events.aclose()
            raise BusyError("The reply to the last message is still coming. Wait for it, or stop it.")
        before, live = (self.live, self.problem, self.undo), LiveTurn(player)
        self.live, self.problem, self.undo = live, "", None
        if is_kept:
            live.kept.set()
        self._task = asyncio.create_task(self._play(events, live))
        await self._tell("turn", {"player": player, "work": self.work()})
        await live.kept.wait()
        if live.refusal is not None:
            self.live, self.problem, self.undo = before
            await self._tell("stopped", {})
            raise live.refusal

    async def say(self, text: str, ticket: str) -> None:
        """Begin to play a turn with a message of the player, after what is being changed; return when it is kept.

        A `ticket` of the form that has played this before plays nothing, so that a double click plays once.
        """
        async with self._changing:
            if not ticket or (ticket, text) not in self._tickets:
                await self.play(self.game.send(text), text)
                self._tickets.append((ticket, text))

    async def stop(self) -> None:
        """Stop the reply that is coming; what was said is kept, and waits until a person asks for the reply."""
        if self.is_replying:
            await _end(self._task)
            async with self._changing:
                if not self.is_replying:
                    await self.game.keep_stopped()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """While something is done: nothing else runs, and no other change. The upkeep gives way; a reply does not."""
        async with self._changing:
            if self.is_replying:
                raise BusyError("The reply to the last message is still coming. Wait for it, or stop it.")
            await self.game.finish()
            if self.live is not None and not self.live.is_over:
                self.live = None
            yield

    @asynccontextmanager
    async def change(self, *, is_same_line: bool = False) -> AsyncIterator[None]:
        """As `alone`; then tell those who watch. `is_same_line`: the story before the last turns shown is as it was."""
        async with self.alone():
            undo = self.undo
            yield
            if not is_same_line:
                self.live = None
                self._updates.clear()  # no stream sends words again that were forgotten
            self.memories, self.report, self.undo = None, None, None if self.undo is undo else self.undo
            await self._tell("pages", {"isSameLine": is_same_line})

    async def ask_again(self) -> None:
        """Let the streams of those who watch ask again whether they may."""
        await self._tell("shared", {})

    async def wait_for_reply(self, seconds: float) -> None:
        """Wait at most so many seconds for the reply that is coming."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=seconds)

    async def look_back(self) -> None:
        """Find out what was recalled in the last turn, and what the model saw, where no stream has told it."""
        number = self.number
        if self.report is None and not self.is_replying:
            events = await self.game.last_turn()
            for event in events if number == self.number else ():  # else it may be a turn that was taken back meanwhile
                self._keep(event)

    async def end_streams(self) -> None:
        """End the streams of those who watch."""
        async with self._news:
            self._is_ending = True
            self._news.notify_all()

    async def close(self) -> None:
        """Stop what runs, and close the campaign; of one that has not begun, no lock file stays."""
        await self.end_streams()
        await _end(self._task)
        await _end(self._upkeep)
        await self.close_game()

    async def close_game(self) -> None:
        """Close the game alone: streams go on, until the campaign has begun elsewhere."""
        if self._loading is not None:
            await asyncio.wait({self._loading})
        try:
            if self.is_new and not self.is_preview and not await self.has_begun():
                await self.game.home.forget_lock(self.game.thread_id)
        finally:
            self.is_new = False
            await self._stack.aclose()

    async def updates(self, after: int) -> AsyncIterator[StreamUpdate | None]:
        """Yield what happens after an update, as it happens; None first if some of it is no longer known."""
        after = self._first if self.is_new and not after else after
        while not self._is_ending:
            if not self.number - len(self._updates) <= after <= self.number:
                yield None
                after = self.number
            for update in [self._updates[place] for place in range(after - self.number, 0)]:
                after = update.number
                yield update
            async with self._news:
                while self.number <= after and not self._is_ending:
                    await self._news.wait()

    async def _play(self, events: AsyncGenerator[Event], live: LiveTurn) -> None:
        try:
            async with aclosing(events) as stream:
                async for event in stream:
                    if not isinstance(event, Notice):  # with durability "sync", no node begins before
                        live.kept.set()
                    if isinstance(event, NodeStart) and event.upkeep:
                        break
                    await self._show(event, live)
            live.is_told = True
            await self._tell("replied", {})
            self._upkeep = asyncio.create_task(self._wait_for_upkeep(live))
        except asyncio.CancelledError:
            await self._fail(live, None)
        except (QuestbookError, StoreError) as error:
            await self._fail(live, error)
        except Exception as error:  # noqa: BLE001 (a page must not wait for ever for a turn that has failed)
            _log.exception("A turn of %r failed", self.game.context.campaign)
            is_kept = live.kept.is_set()
            text = "Your message is kept; try again." if is_kept else "Your message was not kept; say it again."
            reason = "The turn failed; the server's log says why." if self.hides else f"The turn failed: {error}."
            await self._fail(live, QuestbookError(f"{reason} {text}"))
        finally:
            live.kept.set()  # also if nothing happened

    async def _fail(self, live: LiveTurn, error: QuestbookError | StoreError | None) -> None:
        """End a turn that was stopped, or that an error ended; who sent it is answered if it was not kept."""
        live.is_over = True
        if not live.kept.is_set() and not (error is None and await self._is_kept(live)):
            live.refusal = error or QuestbookError("It was stopped before anything of it was kept. Do it again.")
        elif error is None:
            await self._tell("stopped", {})
        else:
            hides = self.hides and isinstance(error, HomeError | StoreError)
            if hides:
                _log.warning("A turn of %r failed: %s", self.game.context.campaign, error)
            self.problem = _AWAY if hides else str(error).replace(GO_OFFLINE, _OTHER_MODEL)
            await self._tell("problem", {"text": self.problem})

    async def _is_kept(self, live: LiveTurn) -> bool:
        """Whether the checkpoint holds a message of which no event has come yet: two are written before the first."""
        with suppress(QuestbookError):
            saved = await self.game.saved_game()
            return saved is not None and saved.unanswered == live.player
        return False

    async def _show(self, event: Event, live: LiveTurn) -> None:
        self._keep(event)
        match event:
            case ReplyPiece(text, message):
                coming = live.pieces.setdefault(message, ComingText())
                before = sum(other.blocks for other in live.pieces.values() if other is not coming)
                if (shown := coming.add(text)) is not None:
                    after, html = shown
                    await self._tell("piece", {"after": before + after, "html": html})
            case DiceRoll(roll):
                live.rolls.append(roll)
                await self._tell("dice", roll)
            case Memories():
                await self._tell("memories", {})
            case PromptReport():
                await self._tell("prompt", {})
            case Notice(notice):
                await self._tell("notice", {"text": str(notice.get("text", ""))})
            case NodeStart(node):
                live.work = node
                await self._tell("work", {"text": self.work(node)})

    def _keep(self, event: Event) -> None:
        if isinstance(event, Memories):
            self.memories = event.memories
        elif isinstance(event, PromptReport):
            self.report = event

    async def _wait_for_upkeep(self, live: LiveTurn) -> None:
        await self.game.wait_for_upkeep(_UPKEEP_SECONDS)
        if self.live is not live:
            return  # the next message has begun another one, which ends with the pages as they are then
        self.live = None
        for event in self.game.unread_notices():
            await self._tell("notice", {"text": str(event.notice.get("text", ""))})
        await self._tell("pages", {"isSameLine": True})

    async def _tell(self, kind: str, data: JSON) -> None:
        async with self._news:
            self.number += 1
            shown = {name: clean(value) if isinstance(value, str) else value for name, value in data.items()}
            self._updates.append(StreamUpdate(self.number, kind, shown))
            self._news.notify_all()


async def _end(task: asyncio.Task[None] | None) -> None:
    if task is not None and not task.done():
        task.cancel()
        await asyncio.wait({task})
