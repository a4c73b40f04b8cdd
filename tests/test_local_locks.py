"""Several programs on one data directory: what one opens, forgets or examines costs no other one a turn."""

import asyncio
import signal
from argparse import Namespace
from contextlib import AsyncExitStack

import pytest
from beside import WORDS, count_rows, keeps_wal, play, start_beside
from langgraph.checkpoint.base import empty_checkpoint

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.forgetting.erasure import files_with
from questbook.graphs.forgetting.phrase import Phrase
from questbook.graphs.interface.forgetting import forget_words
from questbook.graphs.local.campaign_file import export_campaign
from questbook.graphs.local.databases import create_database
from questbook.graphs.local.doctor import problem_of
from questbook.graphs.local.game import open_game
from questbook.graphs.local.homes import find_home
from questbook.graphs.terminal.homes import doctor
from questbook.memory.timeline.namespaces import campaign_namespace

CAMPAIGN = Context(model="offline", user="ann", seed=6, campaign="mine-0")


def context(campaign):
    return CAMPAIGN.model_copy(update={"campaign": campaign})


async def turn_and_problem(home, campaign):
    """Return how far a campaign has come, by its checkpoints, and what is wrong with it."""
    async with open_game(context(campaign), home) as game:
        saved = await game.saved_game()
        return (saved.turn if saved else 0), await problem_of(game)


async def test_checkpoints_of_two_savers_outlive_another_process_that_ends(home):
    async with find_home().open_checkpointer() as saver, find_home().open_checkpointer():

        async def put(number):
            where = {"configurable": {"thread_id": str(number), "checkpoint_ns": ""}}
            await saver.aput(where, empty_checkpoint(), {}, {})

        await put(0)
        assert await asyncio.to_thread(count_rows, home.checkpoints, "checkpoints") == 1
        assert home.checkpoints.with_name("checkpoints.db-wal").exists(), "deleted under an open saver"
        for number in range(1, 21):
            await put(number)
        assert await asyncio.to_thread(count_rows, home.checkpoints, "checkpoints") == 21
    assert count_rows(home.checkpoints, "checkpoints") == 21


async def forget(home):
    async with open_game(CAMPAIGN, home) as game:
        await forget_words(game, "halfling")


async def look_at_campaigns_and_export(home):
    async with open_game(context("another"), home) as other, open_game(CAMPAIGN, home) as game:
        await other.saved_game()
        await export_campaign(game, home.path / "mine.zip")


async def open_the_store_again(home):
    async with home.open_store() as store:
        await store.asearch(campaign_namespace("ann", "mine-0"), query="Maren")


@pytest.mark.slow
@pytest.mark.parametrize(
    "look",
    [
        lambda home: asyncio.to_thread(create_database, home.checkpoints),
        lambda home: asyncio.to_thread(create_database, home.memory),
        lambda home: asyncio.to_thread(files_with, home.path, Phrase("halfling")),
        lambda home: doctor(CAMPAIGN, Namespace(mend=False)),
        look_at_campaigns_and_export,
        open_the_store_again,
        forget,
    ],
)
async def test_a_look_at_a_home_that_is_open_here_keeps_its_locks(home, look):
    async with open_game(CAMPAIGN, home) as game:
        async for _ in game.send(WORDS[0]):
            pass
        for file in (home.checkpoints, home.memory):
            assert await asyncio.to_thread(keeps_wal, file)
        await look(home)
        for file in (home.checkpoints, home.memory):
            assert await asyncio.to_thread(keeps_wal, file), file.name


@pytest.mark.slow
async def test_doctor_and_forgetting_while_another_process_plays_cost_it_nothing(home, capsys):
    with start_beside(home.path, "mine", 2, 4, 1) as other:
        assert [other.stdout.readline() for _ in range(2)] == ["mine-0 1\n", "mine-1 1\n"]
        await play(home, "here", 1, 1)
        await forget(home)
        await doctor(CAMPAIGN, Namespace(mend=False))
        _, errors = await asyncio.to_thread(other.communicate, None, 120)
        assert other.returncode == 0, errors
    for name in ("mine-0", "mine-1"):
        assert await turn_and_problem(home, name) == (4, "")


async def play_beside(home, campaigns, turns):
    """Let two processes play on a fresh home at once; return each campaign's last turn and what is wrong with it."""
    others = [start_beside(home.path, name, campaigns, turns, 0) for name in ("a", "b")]
    for other in others:
        _, errors = await asyncio.to_thread(other.communicate, None, 390)
        assert other.returncode == 0, errors
    names = [f"{side}-{number}" for side in ("a", "b") for number in range(campaigns)]
    return [await turn_and_problem(home, name) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("turns", [1, pytest.param(2, marks=pytest.mark.slow)])
async def test_two_processes_on_a_fresh_home_lose_no_turn(home, turns):
    assert await play_beside(home, 3, turns) == [(turns, "")] * 6


@pytest.mark.slow
async def test_a_killed_process_loses_no_turn_after_another_one_has_ended(home):
    with start_beside(home.path, "mine", 2, 99, 1) as other:
        assert [other.stdout.readline() for _ in range(2)] == ["mine-0 1\n", "mine-1 1\n"]
        async with AsyncExitStack() as stack:
            game = await stack.enter_async_context(open_game(context("here"), home))
            async for _ in game.send(WORDS[0]):
                pass
        said = [other.stdout.readline() for _ in range(6)]
        other.send_signal(signal.SIGKILL)
        said += other.stdout.readlines()
        other.wait(20)
    turns = dict(line.split() for line in said)
    assert int(turns["mine-0"]) >= 4
    for name, last in turns.items():
        turn, problem = await turn_and_problem(home, name)
        assert (turn >= int(last), problem) == (True, "")
    assert await turn_and_problem(home, "here") == (1, "")
