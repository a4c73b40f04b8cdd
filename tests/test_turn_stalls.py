"""Nothing blocks the event loop in a turn: other players' pieces of a reply wait for each of its callbacks."""

import asyncio
import gc
import sys
import time
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

import tables

import questbook.graphs.models.chat_models
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.game import open_game

LONGEST = 0.05
"""Seconds of the thread's CPU time: on a busy machine a callback takes longer, and not more of that."""
REPLY, TURNS = 5_000, 12


class Streaming(tables.Tables):
    """A model whose pieces come one by one, as over a network."""

    async def _astream(self, *args, **kwargs):
        async for piece in super()._astream(*args, **kwargs):
            await asyncio.sleep(0)
            yield piece


@pytest.fixture
def stalls(monkeypatch):
    """Callbacks of event loops, each with its CPU time, without what Python's collector needs for all of pytest."""
    found, run = [], asyncio.Handle._run

    def watched(handle):
        begun = time.thread_time()
        run(handle)
        if (took := time.thread_time() - begun) > LONGEST:
            found.append((round(took, 3), repr(handle)))

    monkeypatch.setattr(asyncio.Handle, "_run", watched)
    gc.collect()
    gc.freeze()
    yield found
    gc.unfreeze()


async def test_no_callback_of_a_turn_with_a_long_reply_blocks_the_event_loop(tmp_path, monkeypatch, stalls):
    model = Streaming()
    monkeypatch.setattr(tables, "REPLY_CHARS", REPLY)
    monkeypatch.setattr(questbook.graphs.models.chat_models, "load_chat_model", lambda *_, **__: model)
    home = FileHome(tmp_path / "home")
    home.locks.mkdir(parents=True)
    async with open_game(Context(model="tables", user="u", campaign="c", seed=1), home) as game:
        for turn in range(1, TURNS + 1):
            model.turn[0] = turn
            async for _ in game.send(model.tale.player(turn)):
                pass
            if turn == 2:  # the interview and the first turn of the quest load what is used first
                stalls.clear()
        saved = await game.saved_game()
    assert len(saved.last_reply) > 0.9 * REPLY
    assert saved.values["summarised_through"] > 0, "every node but a reflection has run"
    assert stalls == []
