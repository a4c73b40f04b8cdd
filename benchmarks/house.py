"""How large the house is, and how much of it one message of a player crosses.

    python benchmarks/house.py                   this tree
    python benchmarks/house.py --root DIR        another tree, also one of version 0.1

The first table counts modules and lines (blank ones and docstrings included) by room. Then `questbook play` plays three
messages with the offline storyteller, seed 1, in this process, and the third is traced, in all threads, from the moment
at which the line is read until the next line is asked for. A file is crossed if a function of it runs. A call goes from
one file to another if the function's file is not that of the nearest function of these folders on the stack, so that a
node that LangGraph calls counts, too; awaiting something again is no call.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import io
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

FOLDERS = ("questbook", "notebooks", "memory", "graphs")
MESSAGES = (
    "I'm Mira, a halfling thief who grew up on the docks and wants her sister back.",
    "I look around.",
    "I ask whoever is here about my sister.",
)


class Trace:
    """Counts, while it is on, the files of a tree in which functions run, and the calls between them."""

    def __init__(self, root: Path) -> None:
        self.root, self.on = root, False
        self.files, self.calls = Counter[str](), Counter[tuple[str, str]]()
        self._names: dict[str, str] = {}

    def file_of(self, frame: FrameType) -> str:
        """Return the file's path below the root, without links; "" for other code and for a module's own lines."""
        code = frame.f_code
        if code.co_name == "<module>":
            return ""
        if (name := self._names.get(code.co_filename)) is None:
            path = Path(os.path.realpath(code.co_filename))
            name = str(path.relative_to(self.root)) if path.is_relative_to(self.root) else ""
            name = self._names[code.co_filename] = name if name.split(os.sep)[0] in FOLDERS else ""
        return name

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Take one event of the profiler."""
        if not self.on or event != "call" or not (file := self.file_of(frame)):
            return
        self.files[file] += 1
        if resumed(frame):
            return
        caller = frame.f_back
        while caller is not None and not self.file_of(caller):
            caller = caller.f_back
        if caller is not None and (origin := self.file_of(caller)) != file:
            self.calls[origin, file] += 1


def resumed(frame: FrameType) -> bool:
    """Return whether a coroutine or generator goes on after an await or a yield, and is not called."""
    waits = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
    return bool(frame.f_code.co_flags & waits) and frame.f_lasti > 6  # behind the instructions with which each begins


class Player(io.StringIO):
    """Standard input that says the messages, and switches the trace on for the last one."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace, self.left = trace, list(MESSAGES)

    @property
    def buffer(self) -> Player:
        """Return what is read for bytes."""
        return self

    def readline(self, *_: Any) -> bytes:  # type: ignore[override]
        """Return the next message."""
        self.trace.on = len(self.left) == 1
        return (self.left.pop(0) + "\n").encode() if self.left else b""


def play(root: Path) -> Trace:
    """Play the messages in this process; return the trace of the last one."""
    trace = Trace(root)
    name = "questbook.graphs.terminal.cli" if (root / "questbook").is_dir() else "graphs.terminal.cli"
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"QUESTBOOK_HOME": home, "NO_COLOR": "1"}
        screen = io.TextIOWrapper(io.BytesIO(), "utf-8")
        sys.stdin = Player(trace)
        threading.setprofile(trace)
        sys.setprofile(trace)
        try:
            with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
                status = importlib.import_module(name).main(["play", "--seed", "1"])
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            sys.stdin = sys.__stdin__
    if status or not trace.files:
        screen.seek(0)
        raise SystemExit(f"The game could not be played: {screen.read()[-500:]}")
    return trace


def rooms(root: Path) -> Iterator[tuple[str, int, int]]:
    """Yield each folder and each room of it with its modules and lines."""
    for folder in FOLDERS:
        paths = [path for path in (root / folder).rglob("*.py") if not path.is_symlink()]
        if folder == "questbook":
            paths = list((root / folder).glob("*.py"))
        parts = Counter[str]()
        lines = Counter[str]()
        for path in paths:
            inside = path.relative_to(root / folder).parts
            room = f"  {inside[0]}/" if len(inside) > 1 else "  (loose)"
            for name in (f"{folder}/", room):
                parts[name] += 1
                lines[name] += len(path.read_text("utf-8").splitlines())
        for name in sorted(parts, key=lambda name: (name.startswith(" "), name)):
            yield name, parts[name], lines[name]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).parent.parent, help="the tree to measure")
    parser.add_argument("--files", action="store_true", help="list the files that the message crosses")
    options = parser.parse_args()
    root = options.root.resolve()
    sys.path[0] = str(root)
    print(f"{'room':24}{'modules':>8}{'lines':>8}{'per module':>12}")
    total = Counter[str]()
    for name, modules, lines in rooms(root):
        print(f"{name:24}{modules:8}{lines:8}{lines / modules:12.0f}")
        if not name.startswith(" "):
            total.update(modules=modules, lines=lines)
    print(f"{'all':24}{total['modules']:8}{total['lines']:8}{total['lines'] / total['modules']:12.0f}")
    trace = play(root)
    crossed = Counter(file.split(os.sep)[0] for file in trace.files)
    print(f"\nOne message crosses {len(trace.files)} files: " + ", ".join(f"{n} {f}" for f, n in crossed.most_common()))
    print(f"Calls from one file to another: {trace.calls.total()} ({len(trace.calls)} pairs of files)")
    if options.files:
        for file, count in sorted(trace.files.items()):
            print(f"{count:8}  {file}")


if __name__ == "__main__":
    main()
