"""Nothing blocks the event loop in a turn: other players' pieces of a reply wait for each of its callbacks."""

import asyncio
import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

import tables
from fake_openai import FakeOpenAI
from honest_model import honest_answer
from postgres import migrated_database
from web_server import MIRA, Visitor, address_of

import questbook.graphs.models.chat_models
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.game import open_game

ROOT = Path(__file__).parent.parent
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


WATCHED = """
import asyncio, sys, time
from questbook.graphs.terminal.cli import main
run = asyncio.Handle._run
def watched(handle):
    begun = time.thread_time()
    run(handle)
    if (took := time.thread_time() - begun) > float(sys.argv[-1]):
        print(f"{took:.3f} s: {handle!r}", file=sys.stderr, flush=True)
asyncio.Handle._run = watched
main(sys.argv[1:-1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("home", ["files", "postgres"])
def test_no_callback_of_the_page_blocks_the_event_loop_from_the_first_turn_on(home, tmp_path):
    database = "" if home == "files" else migrated_database()
    with FakeOpenAI(honest_answer) as model:
        places = {"QUESTBOOK_HOME": str(tmp_path), "QUESTBOOK_DATABASE": database, "PYTHONPATH": str(ROOT)}
        model = {"QUESTBOOK_MODEL": "openai:gpt-4o-mini", "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test"}
        command = [sys.executable, "-c", WATCHED, "web", "--no-browser", "--port", "0", str(LONGEST)]
        with (tmp_path / "stalls").open("w+") as stalls:
            page = subprocess.Popen(
                command, env=os.environ | places | model, stdout=subprocess.PIPE, stderr=stalls, text=True
            )
            url = address_of(page)
            stalls.truncate(0)  # nobody waits while it starts
            with Visitor(url) as visitor:
                for words in (MIRA, "look around", "talk to Maren", "go on", "go to the Drowned Cat", "go on"):
                    visitor.say(words)
            page.terminate()
            page.wait(30)
            stalls.seek(0)
            assert stalls.read().strip("\0") == ""
