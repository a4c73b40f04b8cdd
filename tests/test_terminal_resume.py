"""A game that is taken up again: the last scene, and what was recalled and asked for it."""

import pytest
from conftest import MIRA
from scripted import call, say

from questbook.graphs.companion.context import Context as CompanionContext
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.embedded.game import open_game
from questbook.graphs.terminal.chat import COMPANION
from questbook.graphs.terminal.commands import run_command
from questbook.graphs.terminal.play import DUNGEON_MASTER
from questbook.graphs.terminal.screen import Screen
from questbook.graphs.terminal.slash_command import Terminal

GAME = Context.of(None, model="scripted", user="adventurer", campaign="isle", buffer_tokens=300)
TALK = CompanionContext.of(None, model="scripted", user="adventurer", campaign="isle", buffer_tokens=300)


async def answers(game, partner, capsys, *lines, live=()):
    terminal = Terminal(game, Screen(live=False), partner)
    for event in live:
        terminal.keep(event)
    said = []
    for line in lines:
        capsys.readouterr()
        await run_command(terminal, line)
        said.append("".join(capsys.readouterr()))
    return said


COMMANDS = ("/memories", "/prompt messages", "/prompt instructions", "/prompt memories")


@pytest.mark.slow
@pytest.mark.parametrize(("context", "partner"), [(GAME, DUNGEON_MASTER), (TALK, COMPANION)], ids=["game", "chat"])
async def test_memories_and_prompt_of_the_last_turn_are_known_after_a_restart(model, capsys, context, partner):
    async with open_game(context, machine=partner.machine) as game:
        model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
        for number in range(12):
            reply = say(f"The heron {number} sings. " + "La la la. " * 20)
            model.queue("quest", reply)
            model.queue("companion", reply)
            events = [event async for event in game.send(f"I listen to heron {number}.")]
        model.queue("quest", say("It sang of the sea."))
        model.queue("companion", say("It sang of the sea."))
        events = [event async for event in game.send("What did heron 1 sing?")]
        asked = len(model.calls)
        before = await answers(game, partner, capsys, *COMMANDS, live=events)
    assert "heron 1 " in before[0]
    async with open_game(context, machine=partner.machine) as game:
        after = await answers(game, partner, capsys, *COMMANDS)
        assert len(model.calls) == asked
        assert (await game.saved_game()).turn == 13
    assert after == before


async def test_in_the_interview_too_and_with_the_summary_of_now(model, capsys):
    async with open_game(GAME) as game:
        [event async for event in game.send("I am somebody.")]
    async with open_game(GAME) as game:
        memories, prompt, summary = await answers(
            game, DUNGEON_MASTER, capsys, "/memories", "/prompt messages", "/prompt summary"
        )
    assert "there is none yet" in memories
    assert "I am somebody." in prompt
    assert "Nothing has left the conversation yet." in summary
