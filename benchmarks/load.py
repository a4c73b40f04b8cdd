"""Many players at once over HTTP: turns a second, waiting, CPU and bytes a turn, and what may never happen.

    python benchmarks/load.py                                  200 players of 20 turns: at most 2 hours
    python benchmarks/load.py --players 10 --turns 5           some minutes
    python benchmarks/load.py --homes postgres --processes 4 --models offline --peers none

Ours is `questbook web`, as a person starts it. Each player is a user of their own, signed in with a token, and has a
campaign; after each turn they ask for another player's, and nothing of it may be shown. The peer is a bare graph of
MessagesState on LangGraph's own checkpointer (`bare_graph.py`), served in the same run. Both play on files (SQLite,
and FAISS for ours) and on PostgreSQL, in one process and in four, to which campaigns are hashed; with a model that
costs nothing, and with one on this machine that begins to answer after 300 ms. A player loads the page, says something,
reads the stream to the end of the notes, and goes on at once: no pauses, so that what is measured is what the processes
can do. A player for whom a process has no place (it opens 200) tries again after a second; this is counted as
`full`, and its waiting is part of the turn. The limits of one address and of one person are lifted, since all come from
one address. In each row turns begin for at most five minutes (`--limit`), and those that have begun may end; a row that
was cut off says how many turns were not played.

Times are of the whole run, first turns and the making of characters included. CPU is that of the processes, and of all
of PostgreSQL's. Bytes are what the home grew by, write-ahead logs of SQLite included and PostgreSQL's not. Afterwards
each player's story, pages and last prompt are read: a turn that a process took and the story has not is `lost`, one
that is there twice `doubled`; a word of another player in a stream, on a page or in a prompt is `foreign`, and so is
any page of another's campaign that is shown. Nothing leaves this machine. The last lines are `name: value unit`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent), str(Path(__file__).parents[1] / "tests")]

import httpx  # noqa: E402
import psutil  # noqa: E402
from database import Database, name_in, size_of  # noqa: E402
from loopback_model import ENVIRONMENT  # noqa: E402
from page_players import Player, Process, Timed, TurnFailedError, foreign_words, page, sentence, word_of  # noqa: E402

MODELS = {"offline": 0.0, "300ms": 0.3}
_HERE = Path(__file__).parent
_CHECKED_AT_ONCE = 8
_CHECK_SECONDS = 120.0
_MUST_BE_0 = ("errors", "lost", "doubled", "foreign")
_CALLED = {"ours": "**ours**", "bare": "bare graph", "sqlite": "files", "postgres": "PostgreSQL"}


class Setup(NamedTuple):
    """What is measured: whose program, on which home, in how many processes, with which model."""

    who: str
    home: str
    processes: int
    model: str

    @property
    def key(self) -> str:
        """How its figures are called."""
        return f"load_{self.who}_{self.home}_{self.processes}_{self.model}"


class Measured(NamedTuple):
    """What came of it; seconds, bytes."""

    turns: list[Timed]
    seconds: float
    cpu: float
    database_cpu: float
    bytes: int
    memory: int  # of the process that has most, after the last turn
    counts: Counter[str]


class BarePlayer:
    """A player of the bare graph."""

    def __init__(self, number: int, url: str, counts: Counter[str]) -> None:
        self.number, self.url, self.counts = number, url, counts
        self.told: list[str] = []
        self.web = httpx.AsyncClient(verify=False, timeout=120)  # there is no TLS

    async def play(self, turn: int, until: float) -> Timed | None:
        """Play a turn; None if the time is over, or after an error."""
        if time.monotonic() > until:
            return None
        began, first = time.perf_counter(), 0.0
        asked = {"thread": f"p{self.number}", "text": sentence(self.number, turn)}
        try:
            async with self.web.stream("POST", f"{self.url}/say", json=asked) as answer:
                self.told.append(word_of(self.number, turn))
                async for line in answer.aiter_lines():
                    first = first or time.perf_counter() - began
                    self.counts["foreign"] += foreign_words(line, self.number)
                    if line == "event: pages":
                        now = time.perf_counter() - began
                        return Timed(first, now, now)
        except httpx.HTTPError as error:
            self.counts[f"because {error!r}"] += 1
            return None
        self.counts["because the stream ended"] += 1
        return None

    async def check(self) -> None:
        """Count the turns that are lost or doubled."""
        said = (await self.web.get(f"{self.url}/story", params={"thread": f"p{self.number}"})).json()
        times = [sum(word in text for text in said) for word in self.told]
        self.counts["lost"] += times.count(0)
        self.counts["doubled"] += sum(count - 1 for count in times if count)

    async def close(self) -> None:
        """Close its connections."""
        await self.web.aclose()


@asynccontextmanager
async def loopback(seconds: float, counts: Counter[str]) -> AsyncIterator[dict[str, str]]:
    """Run the model in a process of its own; yield the variables by which it is reached."""
    if not seconds:
        yield {}
        return
    program = await asyncio.create_subprocess_exec(
        sys.executable, str(_HERE / "loopback_model.py"), str(seconds),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert program.stdout is not None
    try:
        url = (await program.stdout.readline()).decode().strip()
        yield ENVIRONMENT | {"OPENAI_BASE_URL": url}
    finally:
        said, _ = await program.communicate(b"")  # which closes its input
        counted = json.loads(said or "{}")
        counts["foreign"] += counted.get("foreign", 0)
        counts["calls"] = counted.get("calls", 0)


async def measure(setup: Setup, players: int, turns: int, limit: float, database: Database | None) -> Measured:
    """Play, and look at what came of it."""
    counts = Counter[str]()
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary) / "home"
        home.mkdir()
        place = "" if database is None else await (database.new() if setup.who == "ours" else database.new_bare())
        async with loopback(MODELS[setup.model], counts) as model:
            processes = [_process(setup, number, home, place, model) for number in range(setup.processes)]
            try:
                for process in processes:
                    await process.start()
                done = await _play(setup, processes, players, turns, limit, database, place, home, counts)
                counts["tracebacks"] = sum(len(process.tracebacks()) for process in processes)
            finally:
                for process in processes:
                    process.end()
        counts["errors"] = sum(number for name, number in counts.items() if name.startswith("because"))
    return done


def _process(setup: Setup, number: int, home: Path, place: str, model: dict[str, str]) -> Process:
    log = home.parent / f"log{number}"
    if setup.who == "ours":
        return page(home, log, model | ({"QUESTBOOK_DATABASE": place} if place else {}))
    name = model.get("QUESTBOOK_MODEL", "offline")
    return Process([str(_HERE / "bare_graph.py"), place or str(home), name], log, model)


async def _play(
    setup: Setup, processes: Sequence[Process], players: int, turns: int, limit: float,
    database: Database | None, place: str, home: Path, counts: Counter[str],
) -> Measured:  # fmt: skip
    urls = [process.url for process in processes]
    people: list[Player] | list[BarePlayer]
    if setup.who == "ours":
        people = [Player(number, urls[number % len(urls) :][:1], counts, players) for number in range(players)]
    else:
        people = [BarePlayer(number, urls[number % len(urls)], counts) for number in range(players)]

    def used() -> tuple[float, float, int]:
        size = size_of(home) if database is None else database.size(name_in(place))
        return sum(process.cpu() for process in processes), database.cpu() if database else 0.0, size

    timed: list[Timed] = []

    async def evening(player: Player | BarePlayer, until: float) -> None:
        for turn in range(1, turns + 1):
            if (one := await player.play(turn, until)) is None:
                counts["not played"] += turns + 1 - turn
                return
            timed.append(one)

    before, began, own = await asyncio.to_thread(used), time.monotonic(), time.process_time()
    await asyncio.gather(*(evening(player, began + limit) for player in people))
    seconds, own = time.monotonic() - began, time.process_time() - own
    after = await asyncio.to_thread(used)
    memory = max(process.memory() for process in processes)
    counts["client's CPU, ms a turn"] = round(1000 * own / max(len(timed), 1))
    at_once = asyncio.Semaphore(_CHECKED_AT_ONCE)
    await asyncio.gather(*(_check(player, at_once) for player in people))
    cpu, database_cpu, size = (later - sooner for later, sooner in zip(after, before, strict=True))
    return Measured(timed, seconds, cpu, database_cpu, int(size), memory, counts)


async def _check(player: Player | BarePlayer, at_once: asyncio.Semaphore) -> None:
    async with at_once:
        until = time.monotonic() + _CHECK_SECONDS
        while True:
            try:
                await player.check()
                break
            except (TurnFailedError, httpx.HTTPError) as error:  # it has no place for a moment
                if time.monotonic() > until:
                    player.counts[f"because a story could not be read: {error}"] += 1
                    break
                await asyncio.sleep(0.5)
        await player.close()


def of(values: Sequence[float], share: float) -> float:
    """Return a percentile of values; 0 if there are none."""
    return sorted(values)[min(round(share * len(values)), len(values) - 1)] if values else 0.0


def row(setup: Setup, done: Measured) -> str:
    """Return a row of the table, p50 / p95 / p99."""
    waits = [" / ".join(f"{of(values, p):.2f}" for p in (0.5, 0.95, 0.99)) for values in zip(*done.turns, strict=True)]
    number = max(len(done.turns), 1)
    cut = f", cut off: {done.counts['not played']:,} not played" if done.counts["not played"] else ""
    cells = [
        _CALLED[setup.who], _CALLED[setup.home], setup.processes, setup.model, f"{len(done.turns):,}{cut}",
        f"{len(done.turns) / done.seconds:.1f}", *(waits or 3 * ["–"]), f"{1000 * done.cpu / number:.0f}",
        f"{1000 * done.database_cpu / number:.0f}", f"{done.bytes / number / 1024:.1f}", f"{done.memory / 2**20:.0f}",
        ", ".join(str(done.counts[name]) for name in _MUST_BE_0),
    ]  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def table(all_of: dict[Setup, Measured]) -> None:
    """Print a table, p50 / p95 / p99."""
    print("\n| | home | processes | model | turns | turns/s | s to the first token | s to the reply's end", end="")
    print(" | s to the notes' end | CPU ms a turn | PostgreSQL's | KB a turn | MB a process", end="")
    print(" | errors, lost, doubled, foreign |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for setup, done in all_of.items():
        print(row(setup, done))


def figures(setup: Setup, done: Measured) -> None:
    """Print a line for each figure."""
    number = max(len(done.turns), 1)
    print(f"{setup.key}_turns: {len(done.turns)} turns")
    print(f"{setup.key}_rate: {len(done.turns) / done.seconds:.2f} turns/s")
    for name, values in zip(Timed._fields, zip(*done.turns, strict=True), strict=False):
        for share in (50, 95, 99):
            print(f"{setup.key}_{name}_p{share}: {of(values, share / 100):.3f} s")
    print(f"{setup.key}_cpu: {1000 * done.cpu / number:.1f} ms")
    print(f"{setup.key}_database_cpu: {1000 * done.database_cpu / number:.1f} ms")
    print(f"{setup.key}_kilobytes: {done.bytes / number / 1024:.1f} KB")
    print(f"{setup.key}_memory: {done.memory / 2**20:.0f} MB")
    for name in (*_MUST_BE_0, "not played", "full", "tracebacks", "asked for others"):
        unit = "times" if name in ("full", "asked for others") else "faults"
        print(f"{setup.key}_{name.replace(' ', '_')}: {done.counts[name]} {unit}")


async def measure_all(arguments: argparse.Namespace) -> dict[Setup, Measured]:
    all_of: dict[Setup, Measured] = {}
    who = ["ours", *([] if arguments.peers == "none" else ["bare"])]
    for setup in map(Setup._make, product(who, arguments.homes, arguments.processes, arguments.models)):
        size = (setup, arguments.players, arguments.turns, arguments.limit)
        if setup.home == "postgres":
            with Database() as database:
                done = await measure(*size, database)
        else:
            done = await measure(*size, None)
        all_of[setup] = done
        said = ", ".join(f"{name}: {number}" for name, number in done.counts.items() if number)
        print(f"# {row(setup, done)} {done.seconds:.0f} s; {said}", flush=True)
    return all_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--players", type=int, default=200)
    parser.add_argument("--turns", type=int, default=20, help="of each player (default: 20)")
    parser.add_argument("--homes", nargs="+", choices=("sqlite", "postgres"), default=["sqlite", "postgres"])
    parser.add_argument("--processes", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--models", nargs="+", choices=tuple(MODELS), default=list(MODELS))
    parser.add_argument("--peers", choices=("bare", "none"), default="bare")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds in which turns begin (default: 300)")
    arguments = parser.parse_args()
    print(f"# {psutil.cpu_count()} cores, load average before: {psutil.getloadavg()[0]:.1f}", flush=True)
    all_of = asyncio.run(measure_all(arguments))
    table(all_of)
    print()
    for setup, done in all_of.items():
        figures(setup, done)
    if any(done.counts[name] for done in all_of.values() for name in _MUST_BE_0):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
