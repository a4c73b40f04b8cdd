"""The loop of a game: a line from the keyboard or a pipe, a turn of the graph, and again. `play` runs it."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, contextmanager, nullcontext, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from questbook.graphs.errors import FatalModelError, HistoryError, InputError, ModelError
from questbook.graphs.events import Event, NodeStart, Notice
from questbook.graphs.interface.text import clean, one_line, quote
from questbook.graphs.local.databases import minilm_hint
from questbook.graphs.local.doctor import problem_of
from questbook.graphs.local.game import open_game
from questbook.graphs.local.home import Home, HomeError
from questbook.graphs.local.homes import find_home
from questbook.graphs.settings import OFFLINE, Settings
from questbook.graphs.terminal import slash_commands as slash
from questbook.graphs.terminal.screen import Screen, notice_text
from questbook.graphs.terminal.travel import TRAVEL
from questbook.memory.recall.intents import off_record

if TYPE_CHECKING:
    from questbook.graphs.local.saved_game import SavedGame


class Pipe:
    """Lines of a script or another program."""

    live = False  # whether a person types them: they can be asked again, and a failed turn does not end the program

    async def line(self, words: str = "") -> str:  # noqa: ARG002
        """Return the next line, cleaned; in it a person finds some words already, to change them.

        Raises:
            EOFError: There are no more lines.
            KeyboardInterrupt: A person pressed Ctrl-C; it holds what they had typed.
        """
        raw = sys.stdin.buffer.readline()
        if not raw:
            raise EOFError
        return clean(raw.decode("utf-8", "ignore")).rstrip("\n")

    async def above(self, show: Callable[[], None]) -> None:
        """Show something above the line that a person is typing."""
        show()

    def silenced(self) -> AbstractContextManager[None]:
        """While a reply is drawn, keep what a person types ahead out of the picture; it is read later."""
        return nullcontext()


class Keyboard(Pipe):
    """A person at a terminal; `commands` has each command with the words that may follow it, for completion."""

    live = True

    def __init__(self, home: Home, commands: Mapping[str, Iterable[str]]) -> None:
        from prompt_toolkit import PromptSession  # a pipe needs none of it
        from prompt_toolkit.completion import CompleteEvent, Completer, Completion
        from prompt_toolkit.document import Document
        from prompt_toolkit.history import FileHistory
        from prompt_toolkit.output import ColorDepth

        class Commands(Completer):
            def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002
                words = document.text_before_cursor.split(" ")
                if not words[0].startswith("/") or len(words) > 2:
                    return
                for choice in commands if len(words) == 1 else commands.get(words[0], ()):
                    if choice.startswith(words[-1]):
                        yield Completion(choice, -len(words[-1]))

        class TypedHistory(FileHistory):
            def store_string(self, string: str) -> None:
                # The arrow keys still have it until the program ends. `/forget WORDS` would keep the words.
                if not off_record(string) and string.lower().split()[:1] != ["/forget"]:
                    super().store_string(clean(string))  # a lone surrogate cannot be written

        path = home.prompt_history
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise HomeError(f"Cannot use {path}: {error.strerror or error}. Move it away.") from error
        history, depth = TypedHistory(str(path)), ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None
        options: Any = {"completer": Commands(), "complete_while_typing": True, "color_depth": depth}
        self._session = PromptSession[str](history=history, **options)

    async def line(self, words: str = "") -> str:  # noqa: D102
        # At the prompt Ctrl-C is a key. As a signal it stops a reply (`play`).
        try:
            return clean(await self._session.prompt_async("> ", default=words, handle_sigint=False))
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._session.default_buffer.text) from None

    async def above(self, show: Callable[[], None]) -> None:  # noqa: D102
        from prompt_toolkit.application import run_in_terminal

        await run_in_terminal(show)

    @contextmanager
    def silenced(self) -> Iterator[None]:
        """Switch off the terminal's echo; Ctrl-C still stops the reply."""
        try:
            import termios
        except ImportError:  # not a POSIX terminal: it echoes
            yield
            return
        before = termios.tcgetattr(sys.stdin)
        quiet = before[3] & ~termios.ECHO | termios.NOFLSH  # the second: Ctrl-C does not take what was typed ahead
        termios.tcsetattr(sys.stdin, termios.TCSANOW, [*before[:3], quiet, *before[4:]])
        try:
            yield
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


_BARE = {"undo": "/undo", "retry": "/retry", "help": "/help", "quit": "/quit", "exit": "/quit"}
"""Words that a newcomer means as a command, and that hardly anybody says in a story."""
_SCENE_WIDTH = 200
_LOOK_SECONDS = 1.5  # that a look at the pages waits for the notes on the last turn


async def play(context: Settings, flags: argparse.Namespace, partner: slash.Partner | None = None) -> None:
    """Do `questbook play`: play a campaign until the player leaves or the input ends.

    The flag `live` says whether a person sits at a terminal; otherwise the lines come from a pipe. Without a partner
    the player talks with the dungeon master. After an error, what was played is kept, and so is the last message.
    """
    live, home, partner = flags.live, find_home(), partner or DUNGEON_MASTER
    hint = await minilm_hint(home, context.embeddings, only_first=True) if live else ""
    async with open_game(context, home, partner.machine, holds=True) as game:
        source = Keyboard(home, {name: each.words for name, each in partner.commands.items()}) if live else Pipe()
        await GameLoop(slash.Terminal(game, Screen(live=live, name=partner.name), partner), source, hint).run()


class GameLoop:
    """Plays turn after turn, with lines from `source`; `hint` is shown with the greeting."""

    def __init__(self, terminal: slash.Terminal, source: Pipe, hint: str) -> None:
        self._terminal, self._source, self._hint = terminal, source, hint
        self._partner, self._game, self._screen = terminal.partner, terminal.game, terminal.screen
        self._reply: asyncio.Task[Any] | None = None
        self._has_begun = False  # whether anything of the turn has happened

    async def run(self) -> None:
        """Greet, answer a message that was left without a reply, and play."""
        ahead = _meanwhile(self._load_ahead) if self._source.live else nullcontext()
        async with self._interruptible(), ahead:
            saved = await self._game.saved_game()
            if entered := saved is None and await self._game.enter():
                saved = await self._game.saved_game()
            self._greet(saved)
            if problem := await problem_of(self._game):
                self._screen.complain(problem)
            if entered and "/recap" in self._partner.commands:
                await self._follow(await slash.run_command(self._terminal, "/recap"))
            if saved and saved.unanswered is not None:
                self._screen.say(f"Your last message has no reply yet: {quote(saved.unanswered, 80)}")
                if saved.is_stopped:
                    self._screen.say("You stopped it: /retry answers it, or say something else in its place.")
                else:
                    await self._turn(self._game.resume())
            interrupted = False
            while True:
                try:
                    line = await self._next_line()
                except EOFError:
                    break
                except KeyboardInterrupt as typed:
                    if interrupted and not str(typed):
                        break
                    self._screen.say("Ctrl-C again quits, and so do Ctrl-D and /quit; /help lists the commands.")
                    interrupted = True
                    continue
                interrupted = False
                if not await self._take(line):
                    break
            if self._source.live:
                await self._finish_notes()
                self._screen.say(self._partner.goodbye)

    async def _next_line(self) -> str:
        """Return the next line; meanwhile, tell above it what the upkeep of the last turn has noted."""

        async def tell_when_noted() -> None:
            await self._game.wait_for_upkeep(self._game.context.update_timeout)
            if notices := self._game.unread_notices():
                await self._source.above(lambda: self._say_notices(notices))

        async with _meanwhile(tell_when_noted) if self._source.live else nullcontext():
            return await self._source.line()

    def _say_notices(self, notices: Iterable[Notice]) -> None:
        for event in notices:
            self._screen.say(notice_text(event))

    async def _take(self, line: str) -> bool:
        """Do what a line asks for; return False to end the program."""
        if not line.strip():
            if self._source.live:
                self._screen.say(self._partner.blank)
        elif line.lstrip().startswith("/"):
            if (name := line.split()[0].lower()) != "/quit":
                await self._wait_for_upkeep(name)
            return await self._follow(await slash.run_command(self._terminal, line))
        elif self._source.live and (command := _BARE.get(line.strip().lower())):
            self._screen.say(f"The command is {command}. To say it in the story, write it with a full stop.")
        elif not self._terminal.is_too_long(line):
            await self._turn(self._game.send(line))
        return True

    async def _wait_for_upkeep(self, name: str) -> None:
        """Wait a moment for the upkeep of the last turn; a command that changes something has it give way."""
        command = self._partner.commands.get(name)
        if command is None or not command.looks:
            await self._game.finish()
        elif await self._game.wait_for_upkeep(_LOOK_SECONDS):
            self._screen.say("The notes on the last turn are still being made; the pages are as they were before.")
        self._say_notices(self._game.unread_notices())

    async def _finish_notes(self) -> None:
        """Let the notes on the last turn be made, unless the player presses Ctrl-C; then the next turn makes them."""
        if not await self._game.wait_for_upkeep(_LOOK_SECONDS):
            return
        self._screen.say("The notes on the last turn are still being made. Ctrl-C leaves without them.")
        self._reply = asyncio.create_task(self._game.wait_for_upkeep(self._game.context.update_timeout))
        await asyncio.wait({self._reply})

    async def _follow(self, then: slash.Outcome) -> bool:
        """Do what follows a command; return False to end the program."""
        while isinstance(then, slash.Ask):
            try:
                line = await self._source.line(then.words)
            except (EOFError, KeyboardInterrupt):
                line = ""
            then = await slash.outcome_of(self._terminal, then.answered(line.strip()))
        if isinstance(then, slash.Play):
            await self._turn(then.events)
        return not isinstance(then, slash.Quit)

    async def _turn(self, events: AsyncGenerator[Event]) -> None:
        self._screen.blank()
        self._terminal.clear()
        self._has_begun, self._reply = False, asyncio.create_task(self._show(events))
        try:
            with self._source.silenced():
                await self._reply
        except asyncio.CancelledError:
            own = asyncio.current_task()
            if not self._reply.cancelled() or (own is not None and own.cancelling()):
                raise
            await self._say_what_is_kept()
        except (InputError, HistoryError) as error:
            self._screen.complain(str(error))
        except ModelError as error:
            if error.fatal or not self._source.live:
                raise FatalModelError(f"{error} Your message is kept: the next start answers it.") from error
            self._screen.complain(f"{error} Your message is kept; /retry answers it.")
        finally:
            self._reply = None

    async def _show(self, events: AsyncGenerator[Event]) -> None:
        reply = self._screen.reply()
        try:
            async with aclosing(events) as stream:
                async for event in stream:
                    self._has_begun = True
                    self._terminal.keep(event)
                    reply.show(event)
                    if isinstance(event, NodeStart) and event.upkeep and self._source.live:
                        break  # the player goes on; a script waits for the notes
        finally:
            reply.close()

    async def _say_what_is_kept(self) -> None:
        if await self._game.keep_stopped():
            self._screen.say("Stopped. Your message is kept; /retry answers it, or say something else in its place.")
        elif not self._has_begun:
            self._screen.say("Stopped before anything was sent; the up arrow brings your words back.")
        else:
            self._screen.say("Stopped. The reply is kept; the notes on it are made with the next turn.")

    def _greet(self, saved: "SavedGame | None") -> None:
        context = self._game.context
        if context.model.strip().lower() == OFFLINE:
            self._screen.say(self._partner.offline)
        if self._hint:
            self._screen.say(self._hint)
        if self._source.live:
            self._partner.greet(saved, context, self._screen)

    @asynccontextmanager
    async def _interruptible(self) -> AsyncIterator[None]:
        """While a person plays, let Ctrl-C stop the reply that is coming, and nothing else."""
        if not self._source.live:
            yield
            return
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):  # a platform without such handlers: Ctrl-C ends the game
            loop.add_signal_handler(signal.SIGINT, lambda: self._reply and self._reply.cancel())
        try:
            yield
        finally:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(signal.SIGINT)

    async def _load_ahead(self) -> None:
        await asyncio.sleep(0.1)  # the prompt is drawn first
        await asyncio.to_thread(import_module, "rich.markdown")
        await self._game.load()


@asynccontextmanager
async def _meanwhile(work: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Do some work until something else is done; what goes wrong with it, the next turn reports."""
    task = asyncio.create_task(work())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()


def _greet(saved: "SavedGame | None", context: Settings, screen: Screen) -> None:
    if saved is None or saved.turn == 0:
        screen.heading(f"Welcome to Questbook. A new campaign begins: {one_line(context.campaign, 60)}.")
        how = "Say it in your own words: a name, a people, a calling, where they come from and what they want."
        screen.say(f"Who do you want to play? {how} /help lists the commands.")
        return
    name = saved.character.name or "someone without a name yet"
    screen.heading(f"{one_line(context.campaign, 60)}, turn {saved.turn}: you are {one_line(name, 60)}.")
    place, scene = saved.quest.location, saved.quest.scene
    place = "" if place.casefold() in scene.casefold() else place  # the scene often says where
    if where := [one_line(part, _SCENE_WIDTH) for part in (place, scene) if part]:
        screen.say(" – ".join(where))
    if saved.last_reply:
        screen.blank()
        screen.tell(saved.last_reply)
    elif not where:
        screen.say("The adventure is about to begin.")


DUNGEON_MASTER = slash.Partner(
    machine="dungeon_master",
    name="the dungeon master",
    commands=slash.GAME | TRAVEL | slash.ALWAYS,
    blank="Say what your character does, or /help.",
    offline="The built-in offline storyteller leads the game. "
    "For a language model: questbook play --model openai:gpt-4.1-mini, with OPENAI_API_KEY set. "
    "On a page in your browser: questbook web (make web).",
    goodbye="The campaign is kept. Until next time!",
    again="in other words, with the same dice.",
    greet=_greet,
)
