"""Everything that the terminal shows: in colour for a person, plain for a program."""

import os
import signal
import sys
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from questbook.graphs.events import DiceRoll, Event, NodeStart, Notice, ReplyPiece
from questbook.graphs.interface.text import clean, one_line, work_text
from questbook.types import JSON

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_PLAIN_WIDTH = 100
_MOST_READABLE = 100


def say(text: str, width: int = 0) -> None:
    """Print what a command of the shell did; with a width, as one line of so many characters after its indent."""
    indent = text[: len(text) - len(text.lstrip())]
    print(indent + one_line(text, width) if width else text)  # noqa: T201


def complain(text: str) -> None:
    """Print what is wrong, on one line of standard error."""
    sys.stdout.flush()
    print(f"questbook: {one_line(text)}", file=sys.stderr)  # noqa: T201


async def ask(lines: Sequence[str], question: str = "Forget it for ever?") -> bool:
    """Show lines on what will be gone for ever, and ask for a yes; return whether it came."""
    print(*lines, sep="\n")  # noqa: T201
    is_main = threading.current_thread() is threading.main_thread()  # no other may say what Ctrl-C does
    handler = signal.signal(signal.SIGINT, signal.default_int_handler) if is_main else None
    try:
        print(f"{question} Type yes: ", end="", flush=True)  # noqa: T201
        answer = sys.stdin.readline()  # here: a thread that reads could not be ended by Ctrl-C
    except KeyboardInterrupt:
        answer = ""
    finally:
        if is_main:
            signal.signal(signal.SIGINT, handler or signal.SIG_DFL)
    if not answer.endswith("\n"):
        print()  # noqa: T201
    return is_yes(answer)


def is_yes(answer: str) -> bool:
    """Whether a person has agreed."""
    return answer.strip().casefold() in ("y", "yes")


def notice_text(event: Notice) -> str:
    """Return what a person should know of; where a page changed, with the command that shows it."""
    text, page = str(event.notice.get("text", "")), event.notice.get("page")
    return f"{text} /{page} shows all of it." if page else text


class Screen:
    """The terminal, where `name` answers.

    `live`: a person looks, so there are colours, a spinner, text that is drawn while it comes. Otherwise replies, dice
    and the answers of commands go to standard output, and everything else to standard error.
    """

    def __init__(self, *, live: bool, name: str = "the dungeon master") -> None:
        self.live, self.name = live, name
        self._console: Console | None = None

    @property
    def console(self) -> "Console":
        """The rich console, made when it is first needed; a piped game needs none."""
        if self._console is None:
            from rich.console import Console

            # Some programs say COLUMNS=0 where they do not know; rich would draw nothing.
            no_sizes = {name for name in ("COLUMNS", "LINES") if not os.environ.get(name, "").strip("0").isdecimal()}
            environment = {name: value for name, value in os.environ.items() if name not in no_sizes}
            width = None if self.live or "COLUMNS" in environment else _PLAIN_WIDTH
            as_it_is: Any = dict.fromkeys(("markup", "emoji", "highlight"), False)
            no_color = None if self.live else True
            self._console = Console(width=width, no_color=no_color, _environ=environment, **as_it_is)
        return self._console

    def heading(self, text: str) -> None:
        """Show a greeting."""
        self._note(clean(text), "bold")

    def say(self, text: str) -> None:
        """Show a note about the game."""
        self._note(clean(text), "dim")

    def complain(self, text: str) -> None:
        """Show what went wrong, on one line."""
        self._note(one_line(text), "red")

    def answer(self, text: str, style: str = "") -> None:
        """Show what a command answers."""
        if self.live:
            self.console.print(clean(text), style=style)
        else:
            _write(clean(text) + "\n")

    def blank(self) -> None:
        """Leave a line free for a person."""
        if self.live:
            self.console.print()

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: str = "") -> None:
        """Show a table; two columns without headings are a page: label and text. `right` is the column of numbers."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        heads = any(columns)
        table = Table(show_header=heads, box=box.SIMPLE if heads else None, pad_edge=False, padding=(0, 2, 0, 0))
        for position, name in enumerate(columns):
            label = position == 0 and not heads
            look: Any = {"style": "cyan" if label else "", "justify": "right" if name and name == right else "left"}
            # A thread id that is cut opens nothing.
            table.add_column(Text(one_line(name)), no_wrap=label, overflow="fold", **look)
        for row in rows:
            table.add_row(*(Text(clean(cell)) for cell in row))
        self.answer(one_line(title), style="bold")
        self.draw(table)

    def draw(self, picture: "RenderableType") -> None:
        """Show something that rich draws; for a program, without colours and without blanks at line ends."""
        if self.live:
            self.console.print(picture)
            self.console.print()
        else:
            with self.console.capture() as drawn:
                self.console.print(picture)
            _write("".join(line.rstrip() + "\n" for line in drawn.get().splitlines()) + "\n")

    def tell(self, text: str) -> None:
        """Show a reply that was told before."""
        reply = self.reply()
        reply.show(ReplyPiece(text, ""))
        reply.close()

    def reply(self) -> "LiveReply | PlainReply":
        """Begin to show a turn."""
        is_drawn = self.live and not self.console.is_dumb_terminal
        return LiveReply(self.console, self.name) if is_drawn else PlainReply(self)

    def _note(self, text: str, style: str) -> None:
        if self.live:
            self.console.print(text, style=style)
        else:
            sys.stdout.flush()
            sys.stderr.write(one_line(text) + "\n")
            sys.stderr.flush()


class PlainReply:
    """A turn as plain text: tokens as they come, dice and notices on lines of their own."""

    def __init__(self, screen: Screen) -> None:
        self._screen, self._has_text = screen, False
        self._message: str | None = None
        self._open = False  # the last line has text and no end yet
        self._begins = True  # nothing was shown since the message began, or since dice or a notice

    def show(self, event: Event) -> None:
        """Show what happened."""
        if isinstance(event, ReplyPiece):
            if event.message != self._message and self._has_text:
                self._end_line()
                _write("\n")
            self._begins, self._message = self._begins or event.message != self._message, event.message
            if text := clean(event.text).lstrip("\n") if self._begins else clean(event.text):
                _write(text)
                self._open, self._has_text, self._begins = not text.endswith("\n"), True, False
        elif isinstance(event, DiceRoll):
            self._end_line()
            _write(f"[dice] {dice_line(event.roll)}\n")
            self._has_text = True
        elif isinstance(event, Notice):
            self._end_line()
            self._screen.say(notice_text(event))

    def close(self) -> None:
        """End the last line, and leave one free below the turn."""
        self._end_line()
        if self._has_text:
            _write("\n")
        sys.stdout.flush()

    def _end_line(self) -> None:
        if self._open:
            _write("\n")
            self._open = False
        self._begins = True


class LiveReply:
    """A turn in colour: finished paragraphs as markdown, and below them the one that is still coming."""

    def __init__(self, console: "Console", name: str) -> None:
        from rich.live import Live

        self._console, self._name, self._text = console, name, ""
        self._message: str | None = None
        self._live = Live(console=console, transient=True, refresh_per_second=12)
        self._wait("Your message is sent…")
        self._live.start()

    def show(self, event: Event) -> None:
        """Show what happened."""
        if isinstance(event, ReplyPiece):
            if event.message != self._message:
                self._finish_paragraph()
                self._message = event.message
            self._text += event.text
            whole, self._text = split_paragraphs(self._text)
            self._print(whole)
            if self._text.strip():
                self._live.update(_Story(markdown(self._text), is_tail=True))
        elif isinstance(event, DiceRoll):
            self._finish_paragraph()
            success = None if event.roll.get("foe") else event.roll.get("success")
            style = "bold yellow" if success is None else "bold green" if success else "bold red"
            self._console.print(f"⚅ {dice_line(event.roll)}", style=style)
            self._console.print()
        elif isinstance(event, Notice):
            self._finish_paragraph()
            self._console.print(one_line(notice_text(event)), style="dim")
        elif isinstance(event, NodeStart) and (work := work_text(event.node, self._name)):
            self._finish_paragraph()
            self._wait(work)

    def close(self) -> None:
        """Show the rest."""
        self._finish_paragraph()
        self._live.stop()

    def _finish_paragraph(self) -> None:
        self._print(self._text)
        self._text = ""

    def _print(self, text: str) -> None:
        if text.strip():
            self._live.update("", refresh=True)  # or the paragraph would be there twice
            self._console.print(_Story(markdown(text)))
            self._console.print()

    def _wait(self, text: str) -> None:
        from rich.spinner import Spinner

        self._live.update(Spinner("dots", text, style="cyan"), refresh=True)


class _Story:
    """A part of the story, with one blank line between its blocks and none around them; if `is_tail`, its last lines.

    Rich begins a list or a quote with a blank line, and leaves two after a rule.
    """

    def __init__(self, inner: "RenderableType", *, is_tail: bool = False) -> None:
        self._inner, self._is_tail = inner, is_tail

    def __rich_console__(self, console: "Console", options: Any) -> Iterable[Any]:
        from rich.segment import Segment

        # Readable, and with room for the "^C" that a terminal writes at the cursor.
        width = max(20, min(console.width - 4, _MOST_READABLE))
        rows = console.render_lines(self._inner, options.update(width=width, height=None), pad=False)
        full = ["".join(segment.text for segment in row).strip() != "" for row in rows]
        end = len(rows) - full[::-1].index(True) if True in full else 0
        lines = [row for at, row in enumerate(rows[:end]) if full[at] or (at and full[at - 1])]
        for line in lines[-max(3, console.height - 2) if self._is_tail else 0 :]:
            yield from line
            yield Segment.line()


def markdown(text: str) -> "RenderableType":
    """Render what a model wrote. Links show their address, and nothing in the text can control the terminal."""
    from rich.markdown import Markdown

    return Markdown(clean(text).strip(), hyperlinks=False)


def split_paragraphs(text: str) -> tuple[str, str]:
    """Return the finished paragraphs, and the one that is still coming."""
    end = text.rfind("\n\n")
    if end < 0 or text[:end].count("```") % 2:  # within a block of code
        return "", text
    return text[:end], text[end:]


def dice_line(roll: JSON) -> str:
    """Return one line on what was rolled, and for what."""
    reason = one_line(str(roll.get("reason") or ""))
    result = str(roll.get("text") or f"{roll.get('expression', '')} = {roll.get('total', '')}")
    result = one_line(result).replace("~~", "~")
    return f"{reason}: {result}" if reason else result


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
