"""Play a game in child processes that are killed over and over; run as a script by test_kills.py.

    python kill_game.py HOME TURNS KILLS SEED

The children are forked from a process that has imported everything and opened nothing, so that a life costs
milliseconds. Each kills itself with SIGKILL at some point of its way (`_points`), or is killed from without at some
moment (one of eight); the next one goes on with what it finds. Each kill is a line of HOME/kills: the point's name. At
the end the game, as it stands, is written to HOME/end.json.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import random
import select
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import questbook.graphs.dungeon_master.graph
import questbook.graphs.reflect.trigger
from questbook import FaissStore
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.game import Game, open_game
from questbook.graphs.offline.storyteller import OfflineStoryteller  # noqa: F401 (imported once, before the forks)

WORDS = """\
I'm Mira, a halfling thief who grew up on the docks and wants her sister back.
look around
talk to Maren
I tell Maren Holt that the password of the smugglers is swordfish
go to the Drowned Cat
talk to the innkeeper
ask about the keeper
I sneak past the innkeeper
take the moon
go to Gull Quay
I find 1000 gold in my pocket
go to the Chandler's Shed
look around
take oil
inventory
talk to the chandler
ask about the lamp
go to Gull Quay
go to Lighthouse Hill
search
look at the door
I climb the wall
I sing a song about herons
rest
who was Pell?
What did I say is the password of the smugglers?
""".splitlines()
CONTEXT = Context.of(None, user="adventurer", seed=6, buffer_tokens=300, recall_tokens=400, reflection_importance=6)
AIMED = [
    f"{when} {point}"
    for point in (
        "recall", "run_quest", "ask in update_state", "update_state", "claim_to_keep in remember", "remember",
        "gather in reflect", "write in reflect", "reflect", "ask in condense", "condense",
    )
    for when in ("before", "after")
]  # fmt: skip
"""Points that are aimed at until each was hit, so that none is left to chance."""


def _log(home: Path, point: str) -> None:
    with (home / "kills").open("a") as log:
        log.write(f"{point}\n")


class Reaper:
    """Kills this process at the n-th point that it comes by, or at the first of some names; 0 and none: never."""

    def __init__(self, home: Path, left: int = 0, aims: frozenset[str] = frozenset()) -> None:
        self.home, self.left, self.aims = home, left, aims

    def __call__(self, point: str) -> None:
        self.left -= 1
        if self.left == 0 or point in self.aims:
            _log(self.home, point)
            os.kill(os.getpid(), signal.SIGKILL)


def _watched(reaper: Reaper, name: str, function: Any) -> Any:
    async def watched(*args: Any, **kwargs: Any) -> Any:
        reaper(f"before {name}")
        result = await function(*args, **kwargs)
        reaper(f"after {name}")
        return result

    return watched


def _points(reaper: Reaper) -> None:
    """Watch every node, every question to the model after the reply, and every write to disk."""
    build = questbook.graphs.dungeon_master.graph.build_graph

    def build_graph() -> Any:
        builder: Any = build()
        for name, spec in builder.nodes.items():
            spec.runnable.function = _watched(reaper, name, spec.runnable.function)
        return builder

    questbook.graphs.dungeon_master.graph.build_graph = build_graph
    inside = {
        "run_quest": ("questbook.graphs.turn.reply", "ask"),
        "update_state": ("questbook.graphs.turn.notes", "ask"),
        "remember": ("questbook.memory.timeline.timeline", "claim_to_keep"),
        "condense": ("questbook.graphs.turn.buffer", "ask"),
    }
    for node, (path, asked) in inside.items():
        module: Any = sys.modules[path]
        setattr(module, asked, _watched(reaper, f"{asked} in {node}", getattr(module, asked)))
    memories: Any = sys.modules["questbook.graphs.turn.recall"]
    memories.phrase_age = lambda *_, **__: "a while ago"  # a killed game takes longer, and the storyteller tells ages
    reflecting: Any = questbook.graphs.reflect.trigger
    for name, spec in reflecting._inline.builder.nodes.items():
        spec.runnable.function = _watched(reaper, f"{name} in reflect", spec.runnable.function)
    store: Any = FaissStore
    store.abatch = _watched(reaper, "the store", store.abatch)


async def _live(home: Path, turns: int, reaper: Reaper) -> None:
    _points(reaper)
    async with open_game(CONTEXT, FileHome(home)) as game:
        saver: Any = game.checkpointer
        for name in ("aput", "aput_writes"):
            setattr(saver, name, _watched(reaper, f"checkpointer.{name}", getattr(saver, name)))
        await game.load()
        if await game.has_unfinished_turn():
            async for _ in game.resume():
                pass
        while (turn := getattr(await game.saved_game(), "turn", 0)) < turns:
            (home / "turn.new").write_text(str(turn))
            (home / "turn.new").replace(home / "turn")  # at once: a kill may come at any moment
            async for _ in game.send(WORDS[turn % len(WORDS)]):
                pass
        (home / "end.json").write_text(json.dumps(await _end(game), default=str, indent=1, sort_keys=True))


async def _end(game: Game) -> dict[str, Any]:
    """Everything that a game has come to, without what is random or a time by its nature.

    Left out: ids of messages and tool calls, and so `opened_by`, a record's `messages` and the owners of claims; ids of
    checkpoints; `said_at`. (How long ago something was said is fixed, see `_points`.)
    """
    graph: Any = await game.load()
    state = (await graph.aget_state(game.config)).values
    told = [
        (message.type, message.text, message.name, [(c["name"], c["args"]) for c in getattr(message, "tool_calls", [])])
        for message in state["messages"]
    ]
    kept = {name: value for name, value in state.items() if name not in ("messages", "opened_by", "recalled")}
    stored: dict[str, Any] = {}
    for item in await graph.store.asearch((CONTEXT.user, CONTEXT.campaign), limit=100_000):
        if "claims" not in item.namespace:
            random_by_nature = ("messages", "checkpoint", "said_at")
            value = {name: said for name, said in item.value.items() if name not in random_by_nature}
            stored["/".join([*item.namespace, item.key])] = value
    claims = await graph.store.asearch((CONTEXT.user, CONTEXT.campaign, "claims"), limit=100_000)
    return {
        "messages": told,
        "state": kept,
        "stored": stored,
        "claims": sorted((item.namespace[-1], item.value["turn"], item.value["kept"]) for item in claims),
    }


def _life(home: Path, turns: int, reaper: Reaper, longest: float = 0.0) -> bool:
    """Fork a child and let it live, at most so many seconds; return whether it came to the end of the game."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            asyncio.run(_live(home, turns, reaper))
            status = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(status)
    handle = os.pidfd_open(child)
    try:
        if longest:
            select.select([handle], [], [], longest)
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    finally:
        os.close(handle)
    if os.WIFSIGNALED(status):
        if longest:
            _log(home, "from without")
        return False
    if os.WEXITSTATUS(status):
        raise SystemExit(f"A child failed with {os.WEXITSTATUS(status)}; what it said stands above.")
    return True


def main(home: Path, turns: int, kills: int, seed: int) -> None:
    """Play until the end of the game."""
    logging.disable(logging.WARNING)
    said = random.Random(seed)
    home.mkdir(parents=True, exist_ok=True)
    for file, empty in (("turn", "0"), ("kills", "")):
        (home / file).write_text(empty)
    for done in range(kills):
        # Lives are short while the game is ahead of the kills, and no node that is longer is passed then.
        ahead = int((home / "turn").read_text()) * kills >= done * turns
        aims = frozenset(AIMED) - set((home / "kills").read_text().splitlines())
        seconds, reaper = 0.0, Reaper(home, said.randint(1, 8 if ahead else 30), aims)
        if done % 4 == 3 and not ahead:  # a life by the clock may be many turns long on a fast machine
            reaper, seconds = Reaper(home, 0, aims), said.uniform(0.05, 0.25)
        if _life(home, turns, reaper, seconds):
            return
    _life(home, turns, Reaper(home))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
