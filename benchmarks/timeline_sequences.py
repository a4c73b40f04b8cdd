"""Random games on each store, with timelines and without: the part "sequences" of `benchmarks/timeline.py`."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import random
import sys
import tempfile
from collections import Counter
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from timeline_baseline import PlainWorld
from timeline_moves import World

import questbook.graphs.models.chat_models
from benchmarks.forkbench.stores import missing_for, open_empty

STORES = ("FaissStore", "InMemoryStore", "PostgresStore")
MOVES = 12


def opened(name: str, home: Path) -> AbstractAsyncContextManager[BaseStore]:
    """Open an empty store that searches texts."""
    return open_empty(name, home, ["text"])


async def play(kind: type[World], store: BaseStore, seed: int) -> Counter[str]:
    """Play one sequence; count what is wrong at its end."""
    world = kind(store, seed, campaign=f"{kind.__name__}{seed}")
    world.answered_by_model(lambda _, load: setattr(questbook.graphs.models.chat_models, "load_chat_model", load))
    choice, found = random.Random(seed), Counter[str]()
    await world.begin()
    for _ in range(MOVES):
        await world.step(choice)
    await world.promise(choice.choice(world.places))
    for place in world.places:
        found += await world.faults(place)
    found += world.prompts
    return found + Counter(promises=len(world.promises), broken=await world.broken(), places=len(world.places))


async def sequences(name: str, home: Path, count: int) -> dict[str, Counter[str]]:
    """Play the same sequences with timelines and without, on one store."""
    found = {"ours": Counter[str](), "plain": Counter[str]()}
    for first in range(0, count, 50):
        async with opened(name, home) as store:
            for seed in range(first, min(first + 50, count)):
                fresh = InMemoryStore(index=store.index_config) if isinstance(store, InMemoryStore) else store
                for label, kind in (("ours", World), ("plain", PlainWorld)):
                    found[label] += await play(kind, fresh, seed)
        print(f"  {name}: {min(first + 50, count)} of {count} sequences", file=sys.stderr, flush=True)
    return found


def _job(name: str, count: int, answers: Any) -> None:
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="timeline") as home:
        answers.put((name, asyncio.run(sequences(name, Path(home), count))))


def report_sequences(count: int) -> list[str]:
    """Play the sequences on all stores, two at a time."""
    names = [name for name in STORES if not missing_for(name)]
    for name in STORES:
        if reason := missing_for(name):
            print(f"{name} is left out: {reason}")
    context = multiprocessing.get_context("spawn")
    answers: Any = context.Queue()
    found: dict[str, dict[str, Counter[str]]] = {}
    waiting, running = list(names), 0
    while waiting or running:
        while waiting and running < 2:
            context.Process(target=_job, args=(waiting.pop(0), count, answers)).start()
            running += 1
        name, answer = answers.get()
        found[name] = answer
        running -= 1
    print(f"{count} sequences of {MOVES} moves on each store; the same moves on a plain remember-node")
    told = f"{'leaked':>10}{'missing':>10}{'twice':>10}{'outdated':>10}"
    print(f"{'store':<16}{'':>8}{told}{'same recall':>14}{'places':>10}")
    lines: list[str] = []
    for name in names:
        for label in ("ours", "plain"):
            c = found[name][label]
            same = 100 * (1 - c["broken"] / c["promises"])
            outdated = c["outdated"] if label == "ours" else "no facts"
            told = f"{c['leaked']:>10}{c['missing']:>10}{c['doubled']:>10}{outdated:>10}"
            print(f"{name:<16}{label:>8}{told}{same:>13.1f}%{c['places']:>10}")
            lines += [
                f"leaked, {name}, {label}: {c['leaked']} records",
                f"missing, {name}, {label}: {c['missing']} records",
                f"duplicates, {name}, {label}: {c['doubled']} records",
                *([f"outdated, {name}, {label}: {outdated} records"] if label == "ours" else []),
                f"identical recall, {name}, {label}: {same:.2f} %",
            ]
    return lines
