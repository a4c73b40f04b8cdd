"""How large the house is, how it holds together, and how much of it one message of a player crosses.

    python benchmarks/house.py                   this tree
    python benchmarks/house.py --root DIR        another tree, also one of version 0.1
    python benchmarks/house.py --list            and name the modules, files and functions that are counted
    python benchmarks/house.py --budgets         print rooms.toml with the lines of today

The first table counts modules and lines (blank ones and docstrings included) by room, beside the room's budget in
`rooms.toml`, which tests/test_architecture.py holds. Below it: modules that one module alone imports (the public API
and rooms' `__init__` do not count as importers), public names, functions longer than 60 lines.

Then `questbook play` plays three messages with the offline storyteller, seed 1, in this process, and the third is
traced, in all threads, from the moment at which the line is read until the next line is asked for. A file is crossed if
a function of it runs. A call goes from one file to another if the function's file is not that of the nearest function
of these folders on the stack, so that a node that LangGraph calls counts, too; awaiting something again is no call. The
way of `update_state` is the sequence of files in which functions begin while that node runs; a return is a step to a
file where it was before.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import inspect
import io
import os
import sys
import tempfile
import threading
import tomllib
import warnings
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

FOLDERS = ("questbook", "notebooks", "memory", "graphs")
MESSAGES = (
    "I'm Mira, a halfling thief who grew up on the docks and wants her sister back.",
    "I look around.",
    "I ask whoever is here about my sister.",
)
LONGEST = 60
"""Lines of a function, its docstring included."""


class Trace:
    """Counts, while it is on, the files of a tree in which functions run, and the calls between them."""

    def __init__(self, root: Path) -> None:
        self.root, self.on = root, False
        self.files, self.calls = Counter[str](), Counter[tuple[str, str]]()
        self.way: list[str] = []
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
        if file not in self.way[-1:] and within(frame, "update_state"):
            self.way.append(file)
        caller = frame.f_back
        while caller is not None and not self.file_of(caller):
            caller = caller.f_back
        if caller is not None and (origin := self.file_of(caller)) != file:
            self.calls[origin, file] += 1


def resumed(frame: FrameType) -> bool:
    """Return whether a coroutine or generator goes on after an await or a yield, and is not called."""
    waits = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
    return bool(frame.f_code.co_flags & waits) and frame.f_lasti > 6  # behind the instructions with which each begins


def within(frame: FrameType | None, function: str) -> bool:
    """Return whether a function of this name is on the stack."""
    while frame is not None and frame.f_code.co_name != function:
        frame = frame.f_back
    return frame is not None


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


def sources(root: Path, folder: str) -> list[Path]:
    """Return the Python files of a folder, without those behind the links in `questbook/`."""
    if folder == "questbook":
        return sorted([*(root / folder).glob("*.py"), *(root / folder).glob("*.pyi")])
    return sorted(path for path in (root / folder).rglob("*.py") if not path.is_symlink())


def rooms(root: Path) -> dict[str, tuple[int, int]]:
    """Return modules and lines of each room: "memory.store", "graphs" for what lies loose in it, "tests"."""
    parts, lines = Counter[str](), Counter[str]()
    for folder in (*FOLDERS, "tests"):
        for path in sources(root, folder):
            inside = path.relative_to(root / folder).parts
            room = f"{folder}.{inside[0]}" if len(inside) > 1 and folder in ("memory", "graphs") else folder
            parts[room] += 1
            lines[room] += len(path.read_text("utf-8").splitlines())
    return {room: (parts[room], lines[room]) for room in sorted(parts)}


def budgets(root: Path) -> dict[str, int]:
    """Return the lines that each room may have."""
    file = root / "benchmarks" / "rooms.toml"
    return tomllib.loads(file.read_text("utf-8")) if file.exists() else {}


@cache
def tree_of(path: Path) -> ast.Module:
    """Return a file's syntax tree."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        return ast.parse(path.read_text("utf-8"))


def modules_of(root: Path) -> dict[str, Path]:
    """Return the product's modules by the name under which they are imported."""
    prefix = "questbook." if (root / "questbook").is_dir() else ""
    return {
        prefix + ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for folder in FOLDERS[1:]
        for path in sources(root, folder)
    }


def imports_of(path: Path, modules: dict[str, Path]) -> dict[str, str]:
    """Return the names that a file imports, each with its module: `from x import y` is x.y where that is a module."""
    found: dict[str, str] = {}
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                found[f"{base}.{alias.name}"] = full if (full := f"{base}.{alias.name}") in modules else base
    return found


def importers(root: Path) -> dict[str, set[str]]:
    """Return the modules that import each module; what a room's `__init__` passes on is traced to its module."""
    modules = modules_of(root)
    doors = {name: path for name, path in modules.items() if path.name == "__init__.py"}
    passed = {
        f"{door}.{name.rpartition('.')[2]}": home
        for door, path in doors.items()
        for name, home in imports_of(path, modules).items()
    }
    by = defaultdict(set)
    for module in modules.keys() - doors.keys():
        for name, home in imports_of(modules[module], modules).items():
            by[passed.get(name, home)].add(module)
    return {name: by[name] - {name} for name in modules.keys() - doors.keys()}


def public_names(root: Path) -> int:
    """Return how many names `questbook` has, as type checkers see it."""
    files = [path for path in sources(root, "questbook") if path.stem == "__init__"]
    nodes = [node for path in files for node in ast.walk(tree_of(path)) if isinstance(node, ast.ImportFrom)]
    return sum(len(node.names) for node in nodes if (node.module or "").startswith("questbook."))


def long_functions(root: Path) -> dict[str, int]:
    """Return the functions of the product that are too long, as "graphs/web/app.py:create_app", with their lines."""
    return {
        f"{path.relative_to(root)}:{node.name}": length
        for path in modules_of(root).values()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (length := (node.end_lineno or 0) - node.lineno + 1) > LONGEST
    }


def print_rooms(root: Path) -> None:
    """Print the first table."""
    allowed, total = budgets(root), Counter[str]()
    print(f"{'room':24}{'modules':>8}{'lines':>8}{'budget':>8}{'per module':>12}")
    for name, (modules, lines) in rooms(root).items():
        print(f"{name:24}{modules:8}{lines:8}{allowed.get(name, ''):>8}{lines / modules:12.0f}")
        if name != "tests":
            total.update(modules=modules, lines=lines, budget=allowed.get(name, 0))
    per = total["lines"] / total["modules"]
    print(f"{'product':24}{total['modules']:8}{total['lines']:8}{total['budget']:8}{per:12.0f}")


def print_shape(root: Path, *, listed: bool) -> None:
    """Print what holds the modules together."""
    single = {name: by for name, by in importers(root).items() if len(by) == 1}
    long = long_functions(root)
    print(f"\nModules that one module alone imports: {len(single)}")
    for name, by in sorted(single.items()) if listed else ():
        print(f"    {name}  by {', '.join(by)}")
    print(f"Public names: {public_names(root)}")
    print(f"Functions of more than {LONGEST} lines: {len(long)}")
    for name, length in sorted(long.items()) if listed else ():
        print(f"{length:8}  {name}")


def print_message(trace: Trace, *, listed: bool) -> None:
    """Print what one message crosses."""
    crossed = Counter(file.split(os.sep)[0] for file in trace.files)
    print(f"\nOne message crosses {len(trace.files)} files: " + ", ".join(f"{n} {f}" for f, n in crossed.most_common()))
    print(f"Calls from one file to another: {trace.calls.total()} ({len(trace.calls)} pairs of files)")
    visited = len(set(trace.way))
    print(f"The way of update_state: {visited} files, {len(trace.way) - visited} returns")
    for file, count in sorted(trace.files.items()) if listed else ():
        print(f"{count:8}  {file}")


def main() -> None:
    """Print what the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).parent.parent, help="the tree to measure")
    parser.add_argument("--list", action="store_true", help="name what is counted")
    parser.add_argument("--budgets", action="store_true", help="print rooms.toml with the lines of today, and end")
    options = parser.parse_args()
    root = options.root.resolve()
    if options.budgets:
        print("# Lines that each room may have: benchmarks/house.py prints them, tests/test_architecture.py holds them")
        print("\n".join(f'"{name}" = {lines}' for name, (_, lines) in rooms(root).items()))
        return
    sys.path[0] = str(root)
    print_rooms(root)
    print_shape(root, listed=options.list)
    print_message(play(root), listed=options.list)


if __name__ == "__main__":
    main()
