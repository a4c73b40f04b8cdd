"""Cost: what a turn takes, and what it grows to."""

from __future__ import annotations

import bisect
import json
import random
import sqlite3
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from langchain_core.messages import convert_to_openai_messages
from tables import Asked, Tables

_TAKEN_BACK = 3  # turns


class Turn(NamedTuple):
    """What a turn took: CPU and wall ms, bytes of checkpoints, bytes of the store, prompt tokens, model calls."""

    ms: float
    wall: float
    checkpoint: int
    store: int
    tokens: int
    calls: int


Play = Callable[[str], Awaitable[None]]


def size_of(path: Path) -> int:
    """Return a database's bytes: its pages, also those that still stand in the -wal."""
    if not path.exists():
        return 0
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        pages = database.execute("PRAGMA page_count").fetchone()[0] * database.execute("PRAGMA page_size").fetchone()[0]
    database.close()
    return int(pages)


async def run(
    model: Tables,
    play: Play,
    turns: int,
    checkpoints: Path,
    store: Path | None = None,
    undo: Callable[[int], Awaitable[object]] | None = None,
    forks: int = 0,
) -> list[Turn]:
    """Play turns and measure each; after `forks` of them the last three are taken back and played again."""
    forked = set(random.Random(3).sample(range(_TAKEN_BACK + 2, turns), forks))
    found: dict[int, Turn] = {}
    turn = 0
    while turn < turns:
        turn += 1
        found[turn] = await measured(model, play, turn, checkpoints, store)
        if undo and turn in forked:
            forked.discard(turn)
            await undo(_TAKEN_BACK)
            turn -= _TAKEN_BACK
    return [found[turn] for turn in range(1, turns + 1)]


async def measured(model: Tables, play: Play, turn: int, checkpoints: Path, store: Path | None = None) -> Turn:
    """Play a turn and measure it."""
    model.turn[0] = turn
    calls, before = len(model.spent), (size_of(checkpoints), size_of(store) if store else 0)
    begun, wall = time.process_time(), time.perf_counter()
    await play(model.tale.player(turn))
    ms, wall = (time.process_time() - begun) * 1000, (time.perf_counter() - wall) * 1000
    grown = (size_of(checkpoints) - before[0], (size_of(store) if store else 0) - before[1])
    return Turn(ms, wall, *grown, sum(model.spent[calls:]), len(model.spent) - calls)


def shared_beginnings(calls: Iterable[Asked]) -> dict[str, float]:
    """Say, for each kind of call, how much of it is byte for byte the beginning of the one of its kind before it.

    A call is its tools and then its messages, as they are sent to OpenAI.

    Args:
        calls: Calls, oldest first.

    Returns:
        The mean share, 0 to 1, by the kind.
    """
    before: dict[str, bytes] = {}
    shares: dict[str, list[float]] = {}
    for job, tools, messages in calls:
        sent = json.dumps([tools, convert_to_openai_messages(messages)], ensure_ascii=False).encode()
        if job in before:
            last = before[job]
            same = bisect.bisect_left(
                range(min(len(sent), len(last))), True, key=lambda n: sent[: n + 1] != last[: n + 1]
            )
            shares.setdefault(job, []).append(same / len(sent))
        before[job] = sent
    return {job: statistics.fmean(of_job) for job, of_job in shares.items()}


class Cost(NamedTuple):
    """The cost of a turn: CPU and wall ms, KB of checkpoints and of the store, prompt tokens, model calls."""

    ms: float
    wall: float
    kb: float
    store_kb: float
    tokens: float
    calls: float


def cost(turns: Sequence[Turn], last: int, window: int) -> Cost:
    """Say what a turn costs in the window that ends at turn `last`."""
    taken = turns[max(0, last - window) : last]
    mean = {name: statistics.fmean(getattr(turn, name) for turn in taken) for name in Turn._fields}
    ms, wall = (statistics.median(getattr(turn, name) for turn in taken) for name in ("ms", "wall"))
    return Cost(ms, wall, mean["checkpoint"] / 1024, mean["store"] / 1024, mean["tokens"], mean["calls"])


CITED = (
    ("LangMem, inline manager", "2 (3 with a query model), the reply among them"),
    ("mem0, add(infer=True)", "1 for each exchange that is added, beside the reply's own"),
)
"""Model calls of others, from their code and documentation."""
