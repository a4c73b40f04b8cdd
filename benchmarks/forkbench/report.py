"""The run: the same games on each memory, each on its stores, and a table of what was wrong."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
import multiprocessing
import platform
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore

from benchmarks.forkbench.adapters import load_adapter
from benchmarks.forkbench.adapters.adapter import Adapter
from benchmarks.forkbench.bench import Bench
from benchmarks.forkbench.game import KINDS, Game
from benchmarks.forkbench.stores import missing_for, open_empty
from benchmarks.forkbench.worlds import ToldWorld, World

Faults = dict[str, Counter[str]]
"""What was wrong, by kind of operation."""
MEASURES = ("leaked", "missing", "twice", "outdated")
TOGETHER = 40  # games on one store, before an empty one is taken
SOURCES = ("told", "textworld")


class Job(NamedTuple):
    """Games on one memory and one store."""

    adapter: str
    store: str
    sources: tuple[str, ...]
    games: int
    kinds: tuple[str, ...] = KINDS


async def play(adapter: Adapter, store: BaseStore, source: str, kind: str, seed: int) -> Counter[str]:
    """Play one game, of a user that no other game has; return what was wrong."""
    world: World
    if source == "textworld":
        from benchmarks.forkbench.textworld import game

        world = game(seed).copy()
    else:
        world = ToldWorld()
    user = (
        "u" + hashlib.sha256(f"{adapter.name} {source} {kind} {seed} {time.monotonic_ns()}".encode()).hexdigest()[:16]
    )
    bench = Bench(store, user, seed)
    return await Game(adapter.build(bench), bench, world, kind, seed).play()


async def play_all(job: Job) -> Faults:
    """Play a job's games: the sources in turn, and of each the kinds."""
    adapter, faults = load_adapter(job.adapter), defaultdict[str, Counter[str]](Counter)
    seeds = iter(range(job.games))
    with tempfile.TemporaryDirectory(prefix="forkbench") as home:
        while some := list(itertools.islice(seeds, TOGETHER)):
            async with open_empty(job.store, Path(home)) as store:
                for number in some:
                    seed, turn = divmod(number, len(job.sources))
                    kind = job.kinds[seed % len(job.kinds)]
                    faults[kind] += await play(adapter, store, job.sources[turn], kind, seed)
                    faults[kind]["games"] += 1
            print(f"  {adapter.name}, {job.store}: {some[-1] + 1} games", file=sys.stderr, flush=True)
    return dict(faults)


def _work(number: int, job: Job, answers: Any) -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    try:
        answers.put((number, asyncio.run(play_all(job))))
    except BaseException as error:  # the others go on
        answers.put((number, f"{type(error).__name__}: {error}"))
        raise


def play_jobs(jobs: Sequence[Job], processes: int) -> Iterator[tuple[Job, Faults | str]]:
    """Play jobs in processes of their own, so many at a time; yield each with its faults, or why it broke off."""
    context = multiprocessing.get_context("spawn")
    answers: Any = context.Queue()
    waiting, running = list(enumerate(jobs)), 0
    while waiting or running:
        while waiting and running < processes:
            number, job = waiting.pop(0)
            context.Process(target=_work, args=(number, job, answers)).start()
            running += 1
        number, answer = answers.get()
        running -= 1
        yield jobs[number], answer


def jobs_of(
    names: Sequence[str], stores: Sequence[str], sources: Sequence[str], games: int, kinds: tuple[str, ...]
) -> list[Job]:
    """Return what there is to play; print what is left out, and why."""
    jobs = []
    if "textworld" in sources and find_spec("textworld") is None:
        print("TextWorld's games are left out: textworld is not installed (pip install --group textworld).")
        sources = [source for source in sources if source != "textworld"]
    without = {store: reason for store in stores if (reason := missing_for(store))}
    for store, reason in without.items():
        print(f"{store} is left out: it needs {reason}.")
    for name in names:
        adapter = load_adapter(name)
        if adapter.missing:
            print(f"{adapter.name} is left out: {adapter.missing} is not installed (pip install --group peers).")
            continue
        usable = [store for store in stores if store in adapter.stores and store not in without]
        jobs += [Job(name, store, tuple(sources), games, kinds) for store in usable]
    return jobs


def report(found: Sequence[tuple[Job, Faults]]) -> list[str]:
    """Print the tables; return each figure as a line `name: value unit`."""
    whole: dict[tuple[str, str], Faults] = {}
    for job, faults in found:
        sums = whole.setdefault((job.adapter, job.store), defaultdict(Counter))
        for kind, counts in faults.items():
            sums[kind] += counts
    lines = []
    print(f"\n{date.today().isoformat()}, Python {platform.python_version()}, {platform.machine()}")  # noqa: DTZ011
    print(
        f"{'':<26}{'store':<15}{'games':>6}{'prompts':>8}"
        + "".join(f"{name:>9}" for name in MEASURES)
        + "  same recall  with other threads'"
    )
    for (name, store), faults in whole.items():
        adapter, total = load_adapter(name), sum(faults.values(), Counter())
        same, whole_same = (100 * (1 - total[name] / max(total["promises"], 1)) for name in ("broken", "moved"))
        cells = "".join(f"{total[measure]:>9}" for measure in MEASURES)
        recall = f"{same:>11.1f} %{whole_same:>19.1f} %"
        print(f"{adapter.name:<26}{store:<15}{total['games']:>6}{total['prompts']:>8}{cells}{recall}")
        of = f"{adapter.name}, {store}"
        lines += [f"{measure}, {of}: {total[measure]} faults" for measure in MEASURES]
        lines += [f"same recall, {of}: {same:.1f} %", f"same recall with other threads', {of}: {whole_same:.1f} %"]
    for measure in MEASURES:
        print(f"\n{measure}, by kind of operation")
        print(f"{'':<26}{'store':<15}" + "".join(f"{kind:>10}" for kind in KINDS))
        for (name, store), faults in whole.items():
            cells = "".join(f"{faults.get(kind, Counter())[measure]:>10}" for kind in KINDS)
            print(f"{load_adapter(name).name:<26}{store:<15}{cells}")
    print()
    for name in dict.fromkeys(name for name, _ in whole):
        adapter = load_adapter(name)
        note = f"; {adapter.note}" if adapter.note else ""
        print(f"{adapter.name}: {adapter.package} {adapter.version}, after {adapter.doc}{note}.")
    total_games = sum(counts["games"] for faults in whole.values() for counts in faults.values())
    return [*lines, f"games played: {total_games} games"]
