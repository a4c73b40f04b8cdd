"""What pruning leaves of a long game and of a long chat: bytes before and after, and the time that it takes.

    python benchmarks/pruning.py --turns 200 --forks 10     a minute
    python benchmarks/pruning.py                            2,000 turns with 100 forks (about twenty minutes)
    python benchmarks/pruning.py --only sqlite --turns 500

The game is the dungeon master as the terminal runs it, on a model of tables: so many times the last three turns are
taken back and played again. The chat is a graph of two nodes whose window holds the last 40 messages, of 300
characters, on LangGraph's `AsyncSqliteSaver`. It is forked as often, at random turns, by runs that begin
at an old checkpoint.

Everything is pruned with `keep_turns=50`. Afterwards each kept checkpoint is read: what differs from what it was before
is counted. Bytes are those of the database, times are by the clock. Each figure is one line `name: value unit`.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Annotated, Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent)]
warnings.filterwarnings("ignore", category=DeprecationWarning)

from cost import run, size_of  # noqa: E402
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver  # noqa: E402
from langgraph.graph import START, StateGraph  # noqa: E402
from tables import Tables, words  # noqa: E402
from typing_extensions import TypedDict  # noqa: E402

import questbook.graphs.models.chat_models  # noqa: E402
from questbook.graphs.dungeon_master.context import Context  # noqa: E402
from questbook.graphs.local.file_home import FileHome  # noqa: E402
from questbook.graphs.local.game import open_game  # noqa: E402
from questbook.graphs.pruning.prune import Pruned, prune  # noqa: E402

WINDOW = 40
CHARS = 300
THREAD: Any = {"configurable": {"thread_id": "chat"}}


class Chat(TypedDict, total=False):
    """A conversation."""

    messages: Annotated[list[str], lambda said, new: [*said, *new][-WINDOW:]]
    turn: int


def answer(state: Chat) -> Chat:
    return {"messages": [words(state["turn"], "reply", CHARS)]}


def close(state: Chat) -> Chat:
    return {"turn": state["turn"] + 1}


def figure(name: str, value: float, unit: str) -> None:
    print(f"{name}: {value:,.2f} {unit}" if isinstance(value, float) else f"{name}: {value:,} {unit}", flush=True)


async def values_of(saver: Any, thread: str) -> dict[tuple[str, str], int]:
    """Return a digest of each checkpoint of a thread: it is the same if nothing of it has changed."""
    checkpoints = saver.alist({"configurable": {"thread_id": thread}})
    return {
        (saved.config["configurable"]["checkpoint_ns"], saved.checkpoint["id"]): hash(str(saved.checkpoint))
        async for saved in checkpoints
    }


async def report(name: str, saver: Any, thread: str, size: Any) -> Pruned:
    """Prune, and print what became of it."""
    before, bytes_before = await values_of(saver, thread), await size()
    begun = time.perf_counter()
    would = await prune(saver, dry_run=True)
    dry, begun = time.perf_counter() - begun, time.perf_counter()
    done = await prune(saver, compact=False)
    seconds, begun = time.perf_counter() - begun, time.perf_counter()
    await prune(saver)  # nothing is left to delete; the file is made smaller
    compacting = time.perf_counter() - begun
    after = await values_of(saver, thread)
    figure(f"{name}_checkpoints_before", len(before), "checkpoints")
    figure(f"{name}_checkpoints_after", len(after), "checkpoints")
    figure(f"{name}_bytes_before", bytes_before / 1e6, "MB")
    figure(f"{name}_bytes_after", await size() / 1e6, "MB")
    figure(f"{name}_bytes_said_by_dry_run", would.bytes / 1e6, "MB")
    figure(f"{name}_dry_run", dry, "s")
    figure(f"{name}_prune", seconds, "s")
    figure(f"{name}_compact", compacting, "s")
    figure(f"{name}_kept_that_differ", sum(before[key] != digest for key, digest in after.items()), "checkpoints")
    return done


async def game(turns: int, forks: int, home: Path) -> None:
    model, place = Tables(), FileHome(home)
    questbook.graphs.models.chat_models.load_chat_model = lambda *_, **__: model  # type: ignore[assignment]
    place.locks.mkdir(parents=True)
    async with open_game(Context(model="tables", user="u", campaign="c", seed=1), place) as opened:

        async def play(text: str) -> None:
            async for _ in opened.send(text):
                pass

        async def undo(turns: int) -> None:
            await (await opened.history()).undo(turns)

        async def size() -> int:
            return size_of(place.checkpoints)

        await run(model, play, turns, place.checkpoints, place.memory, undo, forks)
        begun = time.perf_counter()
        await undo(1)
        figure("game_undo_before", time.perf_counter() - begun, "s")
        await report("game", opened.checkpointer, opened.thread_id, size)
        begun = time.perf_counter()
        await undo(1)
        figure("game_undo_after", time.perf_counter() - begun, "s")


async def chat(name: str, saver: Any, size: Any, turns: int, forks: int) -> None:
    builder = StateGraph(Chat)
    builder.add_node("answer", answer)
    builder.add_node("close", close)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "close")
    graph, dice = builder.compile(checkpointer=saver), random.Random(3)
    at, ends = set(dice.sample(range(2, turns), forks)), list[Any]()
    for turn in range(turns):
        config = dice.choice(ends) if turn in at else THREAD
        await graph.ainvoke({"messages": [words(turn, "player", CHARS)], "turn": turn}, config)
        ends.append((await graph.aget_state(THREAD)).config)
    await report(name, saver, "chat", size)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--forks", type=int, default=100)
    parser.add_argument("--only", choices=["game", "sqlite"])
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        if flags.only in (None, "game"):
            await game(flags.turns, flags.forks, home / "game")
        if flags.only in (None, "sqlite"):
            file = home / "chat.db"

            async def size() -> int:
                return size_of(file)

            async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
                await chat("sqlite", saver, size, flags.turns, flags.forks)


if __name__ == "__main__":
    asyncio.run(main())
