"""Where the player's lines come from: a keyboard with history and completion, or a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol

from questbook.graphs.interface.text import clean
from questbook.graphs.local.home import Home, HomeError
from questbook.memory.recall.intents import off_record

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession


class Input(Protocol):
    """A source of lines.

    Attributes:
        live: Whether a person types them: they can be asked again, and a failed turn does not end the program.
    """

    live: bool

    async def line(self, words: str = "") -> str:
        """Return the next line, cleaned.

        Args:
            words: What the line holds already, for a person to change.

        Raises:
            EOFError: There are no more lines.
            KeyboardInterrupt: The person pressed Ctrl-C.
        """

    def silenced(self) -> AbstractContextManager[None]:
        """While a reply is drawn, keep what is typed ahead out of the picture; it is read later."""


class Pipe:
    """Lines of a script or another program."""

    live = False

    async def line(self, words: str = "") -> str:  # noqa: ARG002
        """Return the next line; bytes that are not UTF-8 are dropped."""
        raw = sys.stdin.buffer.readline()
        if not raw:
            raise EOFError
        return clean(raw.decode("utf-8", "ignore")).rstrip("\n")

    def silenced(self) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()


class Keyboard:
    """A person at a terminal.

    Args:
        home: Keeps the history.
        commands: Each command with the words that may follow it, for completion.
    """

    live = True

    def __init__(self, home: Home, commands: Mapping[str, Iterable[str]]) -> None:
        self._commands = commands
        self._session = self._open(home)

    async def line(self, words: str = "") -> str:
        """Ask for a line."""
        # At the prompt Ctrl-C is a key. As a signal it stops a reply (`play`).
        return clean(await self._session.prompt_async("> ", default=words, handle_sigint=False))

    @contextmanager
    def silenced(self) -> Iterator[None]:
        """Switch off the terminal's echo; Ctrl-C still stops the reply."""
        try:
            import termios
        except ImportError:  # not a POSIX terminal: it echoes
            yield
            return
        before = termios.tcgetattr(sys.stdin)
        quiet = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
        termios.tcsetattr(sys.stdin, termios.TCSANOW, quiet)
        try:
            yield
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)

    def _open(self, home: Home) -> PromptSession[str]:
        from prompt_toolkit import PromptSession  # a pipe needs none of it
        from prompt_toolkit.completion import CompleteEvent, Completer, Completion
        from prompt_toolkit.document import Document
        from prompt_toolkit.history import FileHistory
        from prompt_toolkit.output import ColorDepth

        commands = self._commands

        class Commands(Completer):
            def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002
                words = document.text_before_cursor.split(" ")
                if not words[0].startswith("/") or len(words) > 2:
                    return
                choices = commands if len(words) == 1 else commands.get(words[0], ())
                for choice in choices:
                    if choice.startswith(words[-1]):
                        yield Completion(choice, -len(words[-1]))

        class TypedHistory(FileHistory):
            def store_string(self, string: str) -> None:
                if not off_record(string):  # the arrow keys still have it until the program ends
                    super().store_string(clean(string))  # a lone surrogate cannot be written

        path = home.prompt_history
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise HomeError(f"Cannot use {path}: {error.strerror or error}. Move it away.") from error
        return PromptSession(
            history=TypedHistory(str(path)),
            completer=Commands(),
            complete_while_typing=True,
            color_depth=ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None,
        )
