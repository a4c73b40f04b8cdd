"""Other programs on the same files: one that looks and ends, and ones that play; run as a script, it plays.

    python beside.py HOME NAME CAMPAIGNS TURNS ROUNDS

plays campaigns NAME-0, NAME-1, …: all open at once, a turn of each in a round, and prints a line for each turn; or, if
ROUNDS is 0, each to its end, two open at a time.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.game import open_game

_LOOK = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
print(database.execute("SELECT count(*) FROM " + sys.argv[2]).fetchone()[0])
database.close()
"""
WORDS = ("I'm Mira, a halfling thief who grew up on the docks and wants her sister back.", "look around", "go on")


def keeps_wal(file: Path) -> bool:
    """Whether the -wal is still there after another program has opened a database and ended.

    SQLite deletes it when the last program closes the file, which it knows by the locks of the others.
    """
    wal = file.with_name(file.name + "-wal")
    assert wal.exists(), "nothing is open here"
    count_rows(file, "sqlite_master")
    return wal.exists()


def count_rows(file: Path, table: str) -> int:
    """Return how many rows another program, which opens a database and ends, finds in a table."""
    command = [sys.executable, "-I", "-S", "-c", _LOOK, str(file), table]
    return int(subprocess.run(command, check=True, timeout=60, capture_output=True).stdout)


def run_beside(code: str, *arguments: object) -> str:
    """Run a program of ours to its end in another process; return what it printed."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def start_beside(*arguments: object, file: str = __file__) -> subprocess.Popen[str]:
    """Start this module as a program, or with `-c` some code, that the test talks with line by line."""
    command = [sys.executable, file, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


async def play(home: FileHome, name: str, campaigns: int, turns: int) -> None:
    """Play campaigns that are all open at once."""
    async with AsyncExitStack() as stack:
        games = [
            await stack.enter_async_context(
                open_game(Context(model="offline", user="ann", seed=6, campaign=f"{name}-{number}"), home)
            )
            for number in range(campaigns)
        ]
        for turn in range(turns):
            for game in games:
                async for _ in game.send(WORDS[min(turn, len(WORDS) - 1)]):
                    pass
                print(game.context.campaign, turn + 1, flush=True)


async def play_in_turn(home: FileHome, name: str, campaigns: int, turns: int) -> None:
    """Play campaigns, two at a time: while one is open, others are opened and closed."""
    limit = asyncio.Semaphore(2)

    async def play_one(number: int) -> None:
        settings = Context(model="offline", user="ann", seed=6, campaign=f"{name}-{number}")
        async with limit, open_game(settings, home) as game:
            for turn in range(turns):
                async for _ in game.send(WORDS[min(turn, len(WORDS) - 1)]):
                    pass

    await asyncio.gather(*(play_one(number) for number in range(campaigns)))


if __name__ == "__main__":
    directory, own_name, count, last, in_rounds = sys.argv[1:]
    home = FileHome(Path(directory))
    home.locks.mkdir(mode=0o700, parents=True, exist_ok=True)
    asyncio.run((play if int(in_rounds) else play_in_turn)(home, own_name, int(count), int(last)))
