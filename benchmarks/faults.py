"""What breaks under players, and what comes of it: processes, database, connections, disk, clock, models, versions.

    python benchmarks/faults.py --quick               a few of each
    python benchmarks/faults.py                       100 kills, 5 or 20 of the others
    python benchmarks/faults.py --only kill cut

Two processes of `questbook web` serve one home, and players play on meanwhile as those of `load.py` do; whose process
does not answer goes to the other one. For each fault: how often it came (no more of it after `--limit`), turns that
were played, and the seconds from its end (a kill: from the kill) until all whom it concerned were shown their page, and
had played a turn to its end. For a kill these are the players of the killed process, whose campaigns the other one
takes over. `stuck` is a turn that did not come to its end in two minutes. What a process took and the story has not
afterwards is `lost`, what is there twice `doubled`, a word of another player anywhere `foreign`, and so is a page of
another's campaign; a story that cannot be read at the end is `unreadable`. Nothing leaves this machine.

- kill: SIGKILL of a process at any moment; it is started again. On PostgreSQL and on files.
- database: PostgreSQL is stopped (in turn: all sessions ended, or as in a crash), and started a second later.
- cut: all sessions are ended by PostgreSQL; a proxy cuts all connections and refuses new ones for a second; it passes
  nothing on for two seconds and then cuts.
- disk: the disk of the home is full for three seconds (a tmpfs; needs root). PostgreSQL is started again if it ended.
- clock: the clock of a process is set back by an hour (`time.time`), and the other process is killed.
- model: of the model's answers most are 429, 503, nothing at all, a stream that falls silent, is cut, or ends politely
  in the middle, for four seconds each.
- versions: a database that a newer version made, whose tables this one may read, and may not; a rolling upgrade from
  the version of `--old`, and back, in which one process after the other ends well and comes back as the other version;
  and on files the version of `--older` and this one take turns in one campaign. A turn that the older one refuses,
  since it does not know a newer version's files, is not played; all others must be in the story.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent), str(Path(__file__).parents[1] / "tests")]

from database import Database  # noqa: E402
from fake_openai import FakeOpenAI, cut, hang, hang_midstream, status  # noqa: E402
from fault_scene import Proxy, Scene, scene, small_disk  # noqa: E402
from loopback_model import ENVIRONMENT, Loopback  # noqa: E402
from page_players import ROOT, Player, campaign_of, page, sentence, user_of, word_of  # noqa: E402

_MUST_BE_0 = ("lost", "doubled", "foreign", "stuck", "unreadable")
_DOWN_SECONDS = 1.0
_OLD = "3376a2ed"  # the first commit with databases and tokens of an issuer
_OLDER = "f12a73ef"  # of the day of 0.2.1, which knows files alone
_CLOCK = """
import signal, time

_back, _time, _time_ns = [0], time.time, time.time_ns
time.time = lambda: _time() - _back[0]
time.time_ns = lambda: _time_ns() - _back[0] * 10**9
signal.signal(signal.SIGUSR1, lambda *_: _back.__setitem__(0, 3600))
"""


class Outcome(NamedTuple):
    """What came of a fault."""

    counts: Counter[str]
    opens: list[float]
    waits: list[float]


class Extent(NamedTuple):
    """How many play while something breaks, how often it does, and after how many seconds no more of it comes."""

    players: int
    times: int
    seconds: float


Faults = AsyncIterator[tuple[str, Outcome]]


async def _broken(
    home: str, extent: Extent, fault: Callable[[Scene, Proxy | None, int], Awaitable[None]], **options: Any
) -> Outcome:
    async with scene(home, extent.players, **options) as (shown, proxy):
        ends = time.monotonic() + extent.seconds
        for number in range(extent.times):
            if time.monotonic() > ends:
                break
            await asyncio.sleep(random.random())
            await fault(shown, proxy, number)
    return Outcome(shown.counts, shown.opens, shown.waits)


async def kill(extent: Extent) -> Faults:
    """Kill a process, now this one and now that."""

    async def fault(shown: Scene, _: Proxy | None, number: int) -> None:
        victim = shown.processes[number % 2]
        concerned = shown.at(victim)
        since = time.monotonic()
        victim.end(signal.SIGKILL)
        await shown.goes_on(since, concerned)
        await victim.start()

    for home in ("postgres", "sqlite"):
        yield f"kill, {home}", await _broken(home, extent, fault)


async def database(extent: Extent) -> Faults:
    """Stop PostgreSQL and start it again."""

    async def fault(shown: Scene, _: Proxy | None, number: int) -> None:
        assert shown.database is not None
        await asyncio.to_thread(shown.database.stop, "immediate" if number % 2 else "fast")
        await asyncio.sleep(_DOWN_SECONDS)
        await asyncio.to_thread(shown.database.start)
        await shown.goes_on(time.monotonic())

    yield "database stopped", await _broken("postgres", extent, fault)


async def cut_off(extent: Extent) -> Faults:
    """Cut connections in three ways."""

    async def ended(shown: Scene, _: Proxy | None, __: int) -> None:
        assert shown.database is not None
        await asyncio.to_thread(shown.database.cut)
        await shown.goes_on(time.monotonic())

    async def dropped(shown: Scene, proxy: Proxy | None, _: int) -> None:
        assert proxy is not None
        await proxy.drop(_DOWN_SECONDS)
        await shown.goes_on(time.monotonic())

    async def silent(shown: Scene, proxy: Proxy | None, _: int) -> None:
        assert proxy is not None
        await proxy.go_silent(2 * _DOWN_SECONDS)
        await shown.goes_on(time.monotonic())

    for name, fault in (("sessions ended", ended), ("connections cut", dropped), ("connections silent", silent)):
        yield name, await _broken("postgres", extent, fault)


async def disk(extent: Extent) -> Faults:
    """Fill the disk of the home for a while."""
    for home, megabytes in (("sqlite", 64), ("postgres", 400)):
        with small_disk(megabytes) as place:
            if place is None:
                print(f"# disk full, {home}: not measured, since this user may not mount a small disk")
                return

            async def fault(shown: Scene, _: Proxy | None, __: int, place: Path = place) -> None:
                with (place / "filler").open("wb", buffering=0) as filler, suppress(OSError):
                    while True:
                        filler.write(bytes(2**16))
                await asyncio.sleep(3 * _DOWN_SECONDS)
                (place / "filler").unlink()
                if shown.database is not None and not shown.database.is_running():
                    shown.counts["because PostgreSQL ended"] += 1
                    await asyncio.to_thread(shown.database.start)
                await shown.goes_on(time.monotonic())

            yield f"disk full, {home}", await _broken(home, extent, fault, parent=place)


async def clock(extent: Extent) -> Faults:
    """Set the clock of one process back, and let it take over what the other one has played."""

    async def fault(shown: Scene, _: Proxy | None, number: int) -> None:
        late, victim = (shown.processes[(number + place) % 2] for place in (0, 1))
        assert late.process is not None
        late.process.send_signal(signal.SIGUSR1)
        concerned = shown.at(victim)
        since = time.monotonic()
        victim.end(signal.SIGKILL)
        await shown.goes_on(since, concerned)
        if not all(player.number_shown < (time.time() - 1800) * 1000 for player in concerned):
            raise RuntimeError("The clock was not set back.")  # an open campaign counts from the time
        await asyncio.sleep(1)
        late.end(signal.SIGKILL)  # and both have the right time again
        await victim.start()
        await late.start()

    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "sitecustomize.py").write_text(_CLOCK)
        for home in ("postgres", "sqlite"):
            outcome = await _broken(home, extent, fault, environment={"PYTHONPATH": directory})
            yield f"clock set back, {home}", outcome


class Storm(Loopback):
    """The loopback model, of whose answers most are bad while `bad` says which."""

    bad: Any = None

    def __call__(self, body: dict[str, Any]) -> Any:
        """Answer a request, or do not."""
        good = super().__call__(body)
        return self.bad() if self.bad is not None and random.random() < 0.7 else good


async def model(extent: Extent) -> Faults:
    """Let the model refuse, hang, and break off."""
    now = {"headers": {"Retry-After": "0"}}
    kinds = {
        "429": lambda: status(429, **now), "503": lambda: status(503, **now), "model hangs": hang,
        "model falls silent": hang_midstream, "stream cut": cut, "stream half-closed": lambda: cut(politely=True),
    }  # fmt: skip
    for name, bad in kinds.items():
        storm = Storm(0.02)

        async def fault(shown: Scene, _: Proxy | None, __: int, storm: Storm = storm, bad: Any = bad) -> None:
            storm.bad = bad
            await asyncio.sleep(4 * _DOWN_SECONDS)
            storm.bad = None
            await shown.goes_on(time.monotonic())

        with FakeOpenAI(storm) as server:
            short = {"QUESTBOOK_MODEL_TIMEOUT": "2", "QUESTBOOK_UPDATE_TIMEOUT": "3"}
            environment = ENVIRONMENT | short | {"OPENAI_BASE_URL": server.url}
            outcome = await _broken("postgres", extent, fault, environment=environment)
        outcome.counts["foreign"] += storm.counts["foreign"]
        yield name, outcome


async def versions(extent: Extent, old: str, older: str) -> Faults:
    """Let two versions use one home: `old` in a rolling upgrade and back, `older` in turns."""
    yield "a newer database", await _newer_database()
    async with _checkout(old) as tree:

        async def fault(shown: Scene, _: Proxy | None, number: int) -> None:
            changed = shown.processes[number % 2]
            concerned = shown.at(changed)
            await asyncio.to_thread(changed.end, signal.SIGTERM)
            changed.tree = ROOT if number // 2 % 2 else tree
            await changed.start()
            await shown.goes_on(time.monotonic(), concerned)

        for home in ("postgres", "sqlite"):
            whole = extent._replace(times=max(extent.times, 4))  # both become the older one, and this one again
            yield f"rolling upgrade from {old} and back, {home}", await _broken(home, whole, fault)
    async with _checkout(older) as tree:
        yield f"two versions, sqlite, {older}", await _in_turns(tree.parent, tree, max(extent.times, 2))


@asynccontextmanager
async def _checkout(commit: str) -> AsyncIterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory) / "old"
        await asyncio.to_thread(_git, "worktree", "add", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            await asyncio.to_thread(_git, "worktree", "remove", "--force", str(tree))


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True)


async def _newer_database() -> Outcome:
    """Count as stuck a start that should have been refused, and one that should not; the errors say which."""
    counts = Counter[str]()
    with Database() as server, tempfile.TemporaryDirectory() as directory:
        url = await server.new()
        for number, (oldest, may_read) in enumerate((("1", True), ("99", False))):
            change = "UPDATE questbook_meta SET value = %s WHERE key = %s"
            for key, value in (("schema", "99"), ("oldest_reader", oldest)):
                server.execute(change, value, key, name=url.partition("?")[0].rpartition("/")[2])
            process = page(Path(directory), Path(directory) / f"log{number}", {"QUESTBOOK_DATABASE": url})
            player = Player(0, ["http://127.0.0.1:9"], counts)
            try:
                await process.start()
                player.urls = [process.url]
                has_played = await player.play(1, time.monotonic() + 60) is not None
            except RuntimeError:
                has_played = False
            finally:
                process.end()
                await player.close()
            counts["turns"] += has_played
            counts["faults"] += 1
            is_named = b"A newer Questbook made the tables" in process.log.read_bytes() or any(
                "newer Questbook" in name for name in counts
            )
            counts["stuck"] += has_played != may_read or (not may_read and not is_named)
    return Outcome(counts, [], [])


async def _in_turns(place: Path, tree: Path, times: int) -> Outcome:
    """Let both versions play a campaign in turns, through a pipe; the page of this one then shows the story."""
    counts = Counter[str]()
    keep = {name: value for name, value in os.environ.items() if not name.startswith("QUESTBOOK")}
    home = place / "home"
    home.mkdir()
    player = Player(0, ["http://127.0.0.1:9"], counts)
    for turn in range(1, 2 * times + 1):
        version = tree if turn % 2 else ROOT
        done = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "questbook.graphs.terminal", "play",
            "--campaign", campaign_of(0), cwd=version,
            env=keep | {"PYTHONPATH": str(version), "QUESTBOOK_HOME": str(home), "QUESTBOOK_USER": user_of(0)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        _, problem = await done.communicate(f"{sentence(0, turn)}\n".encode())
        counts["faults"] += 1
        if not done.returncode:
            counts["turns"] += 1
            player.told.append(word_of(0, turn))
        else:  # an older version may refuse what it does not know, and must say so
            counts[f"because {problem.decode().strip()[-110:]}"] += 1
            counts["refused" if b"newer version" in problem else "stuck"] += 1
    process = await page(home, place / "log").start()
    player.urls = [process.url]
    try:
        await player.check()
    finally:
        process.end()
        await player.close()
    return Outcome(counts, [], [])


KINDS = ("kill", "database", "cut", "disk", "clock", "model", "versions")


async def measure(arguments: argparse.Namespace) -> dict[str, Outcome]:
    short = 1 if arguments.quick else 5
    often = Extent(arguments.players, 2 if arguments.quick else 20, arguments.limit)
    seldom = often._replace(times=short)
    all_of = {
        "kill": kill(often._replace(times=5 if arguments.quick else 100)),
        "database": database(often),
        "cut": cut_off(often),
        "disk": disk(seldom),
        "clock": clock(seldom),
        "model": model(seldom),
        "versions": versions(seldom, arguments.old, arguments.older),
    }
    outcomes: dict[str, Outcome] = {}
    for kind, faults in all_of.items():
        if arguments.only and kind not in arguments.only:
            continue
        async for name, outcome in faults:
            outcomes[name] = outcome
            said = [f"{number} times {text}" for text, number in outcome.counts.most_common() if " " in text and number]
            print(f"# {row(name, outcome)} {'; '.join(said[:6])}", flush=True)
    return outcomes


def row(name: str, outcome: Outcome) -> str:
    counts, *took = outcome
    seconds = " | ".join(f"{median(each):.2f}, {max(each):.2f}" if each else "–" for each in took)
    faults = " | ".join(str(counts[each]) for each in _MUST_BE_0)
    return f"| {name} | {counts['faults']} | {counts['turns']:,} | {seconds} | {faults} |"


def table(outcomes: dict[str, Outcome]) -> None:
    seconds = "s to a page: median, most | s to a turn: median, most"
    print(f"\n| fault | times | turns | {seconds} | {' | '.join(_MUST_BE_0)} |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, outcome in outcomes.items():
        print(row(name, outcome))
    print()
    for name, (counts, *took) in outcomes.items():
        key = "faults_" + "_".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
        print(f"{key}_times: {counts['faults']} times")
        print(f"{key}_turns: {counts['turns']} turns")
        for each, seconds in zip(("page", "turn"), took, strict=True):
            if seconds:
                print(f"{key}_{each}_median: {median(seconds):.2f} s")
                print(f"{key}_{each}_most: {max(seconds):.2f} s")
        for each in (*_MUST_BE_0, "tracebacks"):
            print(f"{key}_{each}: {counts[each]} faults")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="5 kills, 1 or 2 of the others")
    parser.add_argument("--players", type=int, default=4)
    parser.add_argument("--only", nargs="+", choices=KINDS, help="only these faults")
    parser.add_argument("--limit", type=float, default=1200.0, help="seconds in which a fault comes (default: 1200)")
    parser.add_argument("--old", default=_OLD, help=f"a version that knows databases, a commit (default: {_OLD})")
    parser.add_argument("--older", default=_OLDER, help=f"a version for files alone, a commit (default: {_OLDER})")
    outcomes = asyncio.run(measure(parser.parse_args()))
    table(outcomes)
    if any(outcome.counts[each] for outcome in outcomes.values() for each in _MUST_BE_0):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
