"""Where the player's lines come from: a keyboard with history and completion, or a pipe; and the history's file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from questbook.graphs.local.home import Home, HomeError
from questbook.graphs.terminal.screen import clean
from questbook.memory.timeline.privacy import off_record

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


def count_typed(path: Path, matches: Callable[[str], bool]) -> int:
    """Count the entries of a prompt history for which `matches` is true; a missing file has none.

    Raises:
        HomeError: The file cannot be read.
    """
    return sum(matches(_text(entry)) for entry in _entries(path))


def remove_typed(path: Path, matches: Callable[[str], bool]) -> int:
    """Remove the entries of a prompt history for which `matches` is true; return how many.

    A new file is written beside the old one and replaces it, so that the file is whole at any moment.

    Raises:
        HomeError: The file cannot be read or written.
    """
    entries = _entries(path)
    kept = [entry for entry in entries if not matches(_text(entry))]
    draft = path.with_name(f"{path.name}.part")
    try:
        draft.unlink(missing_ok=True)  # of a run that was stopped
        if len(kept) == len(entries):
            return 0
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(b"".join(line for entry in kept for line in entry))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise _unusable(path, error) from error
    return len(entries) - len(kept)


def _entries(path: Path) -> list[list[bytes]]:
    """Split a file of prompt_toolkit's into entries: a line "# when", then the lines of the entry, each after a "+"."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unusable(path, error) from error
    entries: list[list[bytes]] = [[]]
    for line in lines:
        if not line.startswith(b"+") and any(before.startswith(b"+") for before in entries[-1]):
            entries.append([])
        entries[-1].append(line)
    return [entry for entry in entries if entry]


def _text(entry: list[bytes]) -> str:
    lines = [line[1:] for line in entry if line.startswith(b"+")] or entry
    return b"".join(lines).decode("utf-8", "ignore").rstrip("\n")


def _unusable(path: Path, error: OSError) -> HomeError:
    return HomeError(f"Cannot use {path}: {error.strerror or error}. Correct its permissions, or remove it.")
