"""What a turn costs as a campaign grows: CPU time, checkpoint bytes, prompt tokens and model calls, beside others.

    python benchmarks/turn_cost.py --quick       under two minutes: 200 turns of ours, 100 of the others
    python benchmarks/turn_cost.py               2,000 turns of ours, 500 of the others (about a quarter of an hour)
    python benchmarks/turn_cost.py --only ours --turns 5000 --forks 50

Ours is the dungeon master as the terminal runs it (`questbook.graphs.local.game`: SQLite checkpoints, FaissStore,
default settings), all nodes at work: dice every fourth turn; notes on the quest's page, two facts and one exchange
into the store every turn; the buffer folded into the summary when it is full; a reflection with three questions and
two insights whenever one is due. The others are graphs as their documentation shows them, on AsyncSqliteSaver as it
comes; "our bare steps" is a graph of ours whose nodes do nothing but ask the model, which shows LangGraph's own part.
All are answered by one model of tables: replies of 600 characters to messages of about 80, no network.

Time is the process's CPU time (all threads), which other work on the machine hardly changes: the median turn of a
window. Bytes are what the database has grown by, and tokens what all prompts of the turn came to (four characters each,
`count_tokens_approximately`), both the mean of the window, so that what happens every tenth turn counts. Windows end at
turn 100 and at the last turn. A game of 1,000 turns or more is then also played by turns with a new one, in the
same process, at its turns 101 to 130, one of 5,000 also at 501 to 530: how fast the machine is by then makes no
difference. The beginning that a call shares is the part of it, tools and messages as OpenAI gets them, that is byte for
byte the beginning of the call of the same kind before it: the mean of the last calls. With `--forks`, ours is taken
back three turns so many times, at random turns, and goes on from there. Most others send the whole history, so that
their cost goes up with every turn, and the whole run's with its square: they are run for fewer turns. Each figure is
one line `name: value unit`.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent)]
warnings.filterwarnings("ignore", category=DeprecationWarning)

from cost import CITED, Play, Turn, cost, measured, run, shared_beginnings, size_of  # noqa: E402
from peers import PEERS, peer  # noqa: E402
from tables import DICE_EVERY, Tables  # noqa: E402

import questbook.graphs.models.chat_models  # noqa: E402
from questbook.graphs.dungeon_master.context import Context  # noqa: E402
from questbook.graphs.local.file_home import FileHome  # noqa: E402
from questbook.graphs.local.game import Game, open_game  # noqa: E402

_NEAREST = "SummarizationMiddleware"
"""The other one whose prompt does not grow either: what ours costs beside it depends little on the machine."""
_YOUNG = (100, 500)
"""Turns of young games, beside which one at least ten times as long is played on: a machine may get slower in a run."""
_BY_TURNS = 30


@asynccontextmanager
async def _opened(home: Path) -> AsyncIterator[tuple[Game, FileHome, Play]]:
    """Open the dungeon master as the terminal does."""
    place = FileHome(home)
    place.locks.mkdir(parents=True)
    async with open_game(Context(model="tables", user="u", campaign="c", seed=1), place) as game:

        async def play(text: str) -> None:
            async for _ in game.send(text):
                pass

        yield game, place, play


async def ours(model: Tables, turns: int, home: Path, forks: int) -> list[Turn]:
    """The dungeon master as the terminal runs it; `forks` times three turns are taken back and played again."""
    questbook.graphs.models.chat_models.load_chat_model = lambda *_, **__: model  # type: ignore[assignment]
    async with _opened(home) as (game, place, play):

        async def undo(turns: int) -> None:
            await (await game.history()).undo(turns)

        played = await run(model, play, turns, place.checkpoints, place.memory, undo, forks)
        saved = await game.saved_game()
        if saved is None or saved.turn != turns or saved.values["noted_through"] != turns:
            raise SystemExit(f"The game did not get through its {turns} turns: {saved}")
        told = Counter(model.jobs)
        for job, share in shared_beginnings(model.asked).items():
            if job in ("roll_dice", "StateNotebook"):
                call = "narrator" if job == "roll_dice" else "noting"
                print(f"turn_cost_ours_{call}_call_shared_beginning: {100 * share:.1f} %")
        for at in (at for at in _YOUNG if played and len(played) >= 10 * at):
            async with _opened(home.with_name(f"young{at}")) as (_, young, play_young):
                await run(model, play_young, at, young.checkpoints)
                times = await _by_turns(model, [(play_young, at, young), (play, turns, place)])
            print(f"turn_cost_ours_ms_of_turn_{at}_by_turns: {times[1] / times[0]:.2f} times", flush=True)
            turns += _BY_TURNS
    jobs = {"roll_dice": "reply and rolls", "StateNotebook": "notes", "": "summary", "CharacterNotebook": "interview"}
    jobs |= {"Questions": "questions of a reflection", "Reflection": "its conclusions"}
    calls = ", ".join(f"{jobs.get(job, job)} {count / saved.turn:.2f}" for job, count in told.items())
    noted = [notice["text"] for notice in saved.values["notices"] if notice["turn"] > 1]
    print(f"# ours: the quest's page has {len(saved.quest.render()):,} characters of {saved.quest.LIMIT:,}", end="")
    print(f"; notices: {noted}" if noted else "")
    print(f"# ours: model calls a turn over the whole game: {calls}")
    return played


async def _by_turns(model: Tables, games: Sequence[tuple[Play, int, FileHome]]) -> list[float]:
    """Play games by turns, each from its turn on; return the median CPU ms of each."""
    times: list[list[float]] = [[] for _ in games]
    for further in range(1, _BY_TURNS + 1):
        for (play, turn, place), of_one in zip(games, times, strict=True):
            of_one.append((await measured(model, play, turn + further, place.checkpoints)).ms)
    return [statistics.median(of_one) for of_one in times]


def table(names: Sequence[str], measured: dict[str, list[Turn]], window: int) -> None:
    print("\n| | turns | CPU ms | checkpoint KB | store KB | prompt tokens | model calls |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        turns = measured[name]
        for last in sorted({min(100, len(turns)), len(turns)}):
            c = cost(turns, last, window)
            figures = f"{c.ms:.1f} | {c.kb:.1f} | {c.store_kb:.1f} | {c.tokens:,.0f} | {c.calls:.2f}"
            print(f"| {name} | {last:,} | {figures} |")


def figures(name: str, turns: Sequence[Turn], window: int) -> None:
    at, last = min(100, len(turns)), len(turns)
    first, then = cost(turns, at, window), cost(turns, last, window)
    key = name.replace("'", "").replace(" ", "_")
    for field, unit in (("ms", "ms"), ("kb", "KB"), ("tokens", "tokens"), ("calls", "calls")):
        print(f"turn_cost_{key}_{field}_turn_{at}: {getattr(first, field):.2f} {unit}")
        if last != at:
            print(f"turn_cost_{key}_{field}_turn_{last}: {getattr(then, field):.2f} {unit}")
            print(f"turn_cost_{key}_{field}_growth: {getattr(then, field) / getattr(first, field):.3f} times")


async def measure(arguments: argparse.Namespace) -> dict[str, list[Turn]]:
    turns_of = dict[str, list[Turn]]()
    for name in ["ours", *PEERS]:
        if arguments.only and name not in arguments.only:
            continue
        turns = arguments.turns if name == "ours" else arguments.peer_turns
        with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
            begun, home = time.perf_counter(), Path(directory) / "home"
            model = Tables()
            if name == "ours":
                turns_of[name] = await ours(model, turns, home, arguments.forks)
            else:
                turns_of[name] = await peer(PEERS[name], model, turns, home)
            size = size_of(home / "checkpoints.db") / 2**20
        print(f"# {name}: {size:,.0f} MB of checkpoints at its end, {time.perf_counter() - begun:.0f} s", flush=True)
    return turns_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=2000, help="turns of ours (default: 2,000)")
    parser.add_argument("--forks", type=int, default=0, help="times that ours is taken back three turns (default: 0)")
    parser.add_argument("--peer-turns", type=int, default=500, help="turns of the others (default: 500)")
    parser.add_argument("--quick", action="store_true", help="200 and 100 turns")
    parser.add_argument("--only", nargs="+", choices=["ours", *PEERS], help="run only these")
    parser.add_argument("--directory", help="where to put the databases meanwhile (default: the system's)")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.turns, arguments.peer_turns = 200, 100
    window = min(50, arguments.turns // 2, arguments.peer_turns // 2)
    measured = asyncio.run(measure(arguments))
    print(f"\nWindows of {window} turns. Counted here: the model's calls in a turn; dice every {DICE_EVERY}th turn.")
    table(list(measured), measured, window)
    print("\nModel calls of others, cited from their code and documentation, not measured here:")
    for name, calls in CITED:
        print(f"| {name} | {calls} |")
    print()
    for name, turns in measured.items():
        figures(name, turns, window)
    if {"ours", _NEAREST} <= measured.keys():
        ms, of_peer = (cost(measured[name], len(measured[name]), window).ms for name in ("ours", _NEAREST))
        print(f"turn_cost_ours_ms_of_{_NEAREST}: {ms / of_peer:.2f} times")


if __name__ == "__main__":
    main()
