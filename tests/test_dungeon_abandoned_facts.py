"""The turn after going back: what the abandoned turn of the same number had noted is neither told nor believed."""

import pytest
from fact_play import play
from langchain_core.messages import HumanMessage
from scripted import say, sections_of

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.history.history import History

MILL = {"text": "Goran lives in the mill.", "kind": "trait", "subject": "Goran", "attribute": "home", "value": "mill"}
CRYPT = MILL | {"text": "Goran lives in the crypt now.", "value": "crypt"}
WELL = {"text": "Queen Isolde poisoned the well.", "kind": "secret", "importance": 5}


async def go_back(game, way, base):
    if way == "undo":
        await History(game.app, game.config, Context.of(None, model="scripted")).undo(1)
        return game.config
    return base.config


@pytest.mark.parametrize("way", ["undo", "old config"])
@pytest.mark.parametrize("buffered", [0, 6])
async def test_the_prompt_after_going_back_knows_nothing_of_the_abandoned_turn(new_game, way, buffered):
    game = new_game(buffer="turns", buffer_turns=buffered)
    await game.begin()
    await play(game, "I ask of Goran.", MILL, reply="Goran lives in the mill.")
    base = game.app.get_state(game.config)
    await play(game, "I kill the king.", WELL, CRYPT, reply="Goran moves into the crypt.")
    config = await go_back(game, way, base)
    for words in ("Where does Goran live, in the mill?", "And who poisoned the well?"):
        game.model.queue("quest", say("Nothing happens."))
        await game.app.ainvoke({"messages": [HumanMessage(words)]}, config, context=game.settings)
        prompt = sections_of(game.model.asked("quest")[-1])
        assert "Isolde" not in prompt
        assert "crypt" not in prompt
        assert buffered or "mill" not in words or "lives in the mill" in prompt
        config = game.config


async def test_a_secret_of_the_buffer_is_told_once(new_game):
    game = new_game(buffer="turns", buffer_turns=1)
    await game.begin()
    home = CRYPT | {"kind": "secret"}
    await play(game, "I ask of Goran.", MILL | {"kind": "secret"}, reply="He smiles.")
    await play(game, "I ask again.", home, reply="He smiles again.")
    await play(game, "Where is the home of Goran, the mill or the crypt?", reply="Who knows.")
    assert sections_of(game.model.asked("quest")[-1]).count("lives in the crypt now") == 1
