"""Record a real game at a terminal as an animated SVG: `python docs/recording.py` writes docs/recording.svg.

The program runs in a pseudo-terminal. A terminal emulator (pyte) reads what it writes, colours included, and the screen
after each answer becomes one frame. The picture holds its own styles and loads nothing.
"""

from __future__ import annotations

import fcntl
import html
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from itertools import groupby
from pathlib import Path

import pyte

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "recording.svg"
LINES = [
    "I'm Mira, a halfling thief who grew up on the docks and wants her sister back.",
    "I search for tracks.",
    "I go to Lighthouse Hill.",
    "I climb the ivy.",
    "/undo 2",
    "What do I know about the ivy?",
    "/branches",
    "/sheet",
]
SEED = "6"
COLUMNS, ROWS = 100, 30
_WIDTH, _HEIGHT = 8.4, 19  # of a character, in pixels
_SECONDS = 4.5  # a frame is shown
_QUIET = 1.2  # seconds without output: the answer is complete
_COLOURS = {
    "default": "#d4d4d8",
    "black": "#3f3f46",
    "red": "#f87171",
    "green": "#4ade80",
    "brown": "#fbbf24",
    "blue": "#60a5fa",
    "magenta": "#e879f9",
    "cyan": "#22d3ee",
    "white": "#fafafa",
    "brightblack": "#a1a1aa",
    "brightred": "#fca5a5",
    "brightgreen": "#86efac",
    "brightbrown": "#fde047",
    "brightblue": "#93c5fd",
    "brightmagenta": "#f0abfc",
    "brightcyan": "#67e8f9",
    "brightwhite": "#ffffff",
}
_FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_LABEL = "A game in the terminal: a character is made, dice fall, a memory is recalled, two turns are taken back"

Cell = tuple[str, str, bool]  # character, colour, bold


def record(lines: list[str]) -> list[list[list[Cell]]]:
    """Play the lines at a terminal; return the screen after each answer, row by row."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    frames = []
    with tempfile.TemporaryDirectory() as home:
        terminal, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("QUESTBOOK_")}
        environment |= {"QUESTBOOK_HOME": home, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
        environment["QUESTBOOK_EMBEDDINGS"] = "hash"  # the same on each machine, and no advice on others
        command = [sys.executable, "-m", "questbook.graphs.terminal", "play", "--seed", SEED]
        game = subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside, env=environment)  # noqa: S603
        os.close(inside)
        try:
            _read(terminal, stream, first=20)
            for line in lines:
                os.write(terminal, line.encode() + b"\r")
                _read(terminal, stream)
                frames.append(_rows(screen))
        finally:
            game.kill()
            game.wait()
            os.close(terminal)
    return frames


def _read(terminal: int, stream: pyte.ByteStream, first: float = 10) -> None:
    """Feed the emulator until the program has been quiet for a while; answer its question where the cursor is."""
    deadline, patience = time.monotonic() + 60, first
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], patience)
        if not ready:
            return
        chunk = os.read(terminal, 65536)
        if b"\x1b[6n" in chunk:
            os.write(terminal, f"\x1b[{stream.listener.cursor.y + 1};{stream.listener.cursor.x + 1}R".encode())
        stream.feed(chunk)
        patience = _QUIET


def _rows(screen: pyte.Screen) -> list[list[Cell]]:
    rows = []
    for number in range(ROWS):
        row = [screen.buffer[number][column] for column in range(COLUMNS)]
        rows.append([(cell.data, _COLOURS.get(cell.fg, f"#{cell.fg}"), bool(cell.bold)) for cell in row])
    return rows


def drawn(frames: list[list[list[Cell]]]) -> str:
    """Draw frames that follow each other for ever; who prefers no motion sees the last one."""
    width, height = round(COLUMNS * _WIDTH + 40), ROWS * _HEIGHT + 62
    total, share = _SECONDS * len(frames), 100 / len(frames)
    style = [
        f"text{{font-family:{_FONT};font-size:14px;white-space:pre}}",
        ".b{font-weight:700}.f{visibility:hidden;animation:" + f"show {total}s step-end infinite" + "}",
        f"@keyframes show{{0%{{visibility:visible}}{share:.3f}%{{visibility:hidden}}}}",
        "@media (prefers-reduced-motion:reduce){.f{animation:none}.f:last-of-type{visibility:visible}}",
    ]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{_LABEL}">',
        "<style>" + "".join(style) + "</style>",
        f'<rect width="{width}" height="{height}" rx="10" fill="#18181b"/>',
        *(
            f'<circle cx="{x}" cy="22" r="6" fill="{fill}"/>'
            for x, fill in ((22, "#f87171"), (42, "#fbbf24"), (62, "#4ade80"))
        ),
        f'<text x="{width / 2}" y="27" text-anchor="middle" fill="#a1a1aa">questbook play</text>',
    ]
    for number, rows in enumerate(frames):
        parts.append(f'<g class="f" style="animation-delay:{number * _SECONDS - total}s">')
        parts += [line for at, row in enumerate(rows) for line in _line(row, 58 + at * _HEIGHT)]
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def _line(row: list[Cell], y: float) -> list[str]:
    texts, column = [], 0
    for (colour, bold), cells in groupby(row, key=lambda cell: cell[1:]):
        run = "".join(cell[0] for cell in cells)
        if run.strip():
            lead = len(run) - len(run.lstrip())
            text, x = run.strip(), 20 + (column + lead) * _WIDTH
            weight = ' class="b"' if bold else ""
            length = f'textLength="{len(text) * _WIDTH:.1f}" lengthAdjust="spacingAndGlyphs"'
            texts.append(f'<text x="{x:.1f}" y="{y}"{weight} fill="{colour}" {length}>{html.escape(text)}</text>')
        column += len(run)
    return texts


if __name__ == "__main__":
    PICTURE.write_text(drawn(record(LINES)), "utf-8")
