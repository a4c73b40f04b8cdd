"""Questbook as a program that reads lines through a pipe, and the pages that it leaves."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

from postgres import database_of

from questbook import CharacterNotebook, StateNotebook
from questbook.graphs.local.homes import home_at
from questbook.graphs.local.saved_game import thread_id_of
from questbook.graphs.terminal.cli import main

Run = subprocess.CompletedProcess[bytes]
ROOT = Path(__file__).parent.parent


def start(home: Path, *arguments: str, words: str | bytes = b"", **environment: str) -> Run:
    """Run the command line to its end on some lines: in this process, in a thread and an environment of its own."""
    streams = [io.TextIOWrapper(io.BytesIO(data), "utf-8") for data in (_bytes(words), b"", b"")]
    with (
        patch.dict(os.environ, _environment(home, environment), clear=True),
        patch.multiple(sys, stdin=streams[0], stdout=streams[1], stderr=streams[2]),
        patch("questbook.graphs.terminal.cli.signal.signal"),
        ThreadPoolExecutor(1) as thread,
    ):
        status = thread.submit(main, arguments).result(110)
    for stream in streams[1:]:
        stream.flush()
    output, errors = (stream.buffer.getvalue() for stream in streams[1:])
    return subprocess.CompletedProcess(arguments, status, output, errors)


def start_process(home: Path, *arguments: str, words: str | bytes = b"", **environment: str) -> Run:
    """The same in a process of its own, where that is what is checked."""
    return subprocess.run(
        [sys.executable, "-m", "questbook.graphs.terminal", *arguments],
        input=_bytes(words),
        capture_output=True,
        timeout=110,
        check=False,
        env=_environment(home, environment),
    )


def _bytes(words: str | bytes) -> bytes:
    return words.encode() if isinstance(words, str) else words


def _environment(home: Path, more: dict[str, str]) -> dict[str, str]:
    kept = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "QUESTBOOK_HOME": str(home)}
    return kept | {"QUESTBOOK_DATABASE": database_of(Path(home))} | more


def questbook(home: Path, *arguments: str, words: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """The same, with what it wrote as text."""
    run = start(home, *arguments, words=words, **environment)
    return subprocess.CompletedProcess(run.args, run.returncode, run.stdout.decode(), run.stderr.decode())


def play(home: Path, words: str | bytes, *flags: str, **environment: str) -> Run:
    return start(home, "play", "--seed", "1", *flags, words=words, **environment)


def sit_down(home: Path, words: str, *flags: str, **environment: str) -> str:
    """One sitting, in which nothing goes wrong: what was told in it."""
    run = start(home, "play", *flags, words=words, **environment)
    assert run.returncode == 0, run.stderr.decode()
    assert b"Traceback" not in run.stderr
    return run.stdout.decode()


def one_line_of(run: Run) -> str:
    """The one line in which the program says what is wrong."""
    assert b"Traceback" not in run.stderr
    lines = run.stderr.decode().strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def pages(home: Path) -> tuple[CharacterNotebook, StateNotebook, dict[str, Any]]:
    """Read the pages as the last checkpoint holds them, with the saver and the notebooks."""

    async def last() -> Any:
        async with home_at(database_of(home) or str(home), home).open_checkpointer() as saver:
            return await saver.aget({"configurable": {"thread_id": thread_id_of("adventurer", "default")}})

    found = asyncio.run(last())
    values = found["channel_values"]
    return CharacterNotebook.load(values["character"]), StateNotebook.load(values["quest"]), values
