"""Facts follow the checkpoint: forks, going back, forgetting; an abandoned turn is neither told nor believed."""

import json

import pytest
from fact_play import CONTEXT, PLAYER, facts, known, play, stored
from forgetting_of import forgetting_of
from noted_facts import home
from scripted import call, say

from questbook import FaissStore
from questbook.graphs.dungeon_master.retract import retract
from questbook.graphs.dungeon_master.why import why
from questbook.graphs.errors import ForgettingError, HistoryError
from questbook.graphs.history.history import History


async def test_what_is_known_of_the_player_does_not_rewind(game):
    await game.begin()
    wish = {"text": "The player wants no spiders.", "kind": "preference", "about": "player"}
    await play(game, "I enter. ((no spiders please))", wish)
    assert await stored(game) == {}
    [value] = (await stored(game, PLAYER)).values()
    assert (value["kind"], value["text"], "branch" in value) == ("preference", wish["text"], False)
    history = History(game.app, game.config, CONTEXT)
    await history.undo()
    await play(game, "I enter. ((no spiders, please))", wish)
    config, context = await history.retry()
    game.model.queue("update", facts(wish | {"text": "The player wants no spiders!"}))
    await game.app.ainvoke(None, config, context=context, durability="sync")
    assert len(await stored(game, PLAYER)) == 1


async def test_retracting_a_turn_takes_its_facts_and_what_held_before_holds_again(game):
    await game.begin()
    await play(game, "I ask.", home("the mill"), reply="Goran lives at the mill.")
    wish = {"text": "The player likes riddles.", "kind": "preference", "about": "player"}
    await play(game, "I ask again. ((I like riddles))", home("the inn"), wish, reply="Goran lives at the inn.")
    await play(game, "And again.", home("the inn"), reply="Goran lives at the inn, yes.")
    done = await retract(game.app, game.config, CONTEXT, 3)
    assert done.facts == 2
    assert await known(game) == ["Goran lives at the mill."]
    assert await stored(game, PLAYER) == {}
    places = await History(game.app, game.config, CONTEXT).turns()
    assert [place.turn for place in places] == [1, 2, 3, 4], "what is set aside is no turn"


async def test_forgetting_words_takes_the_facts_that_say_them_of_story_and_player(game, tmp_path):
    with FaissStore.open(tmp_path / "m.db") as store:
        game.keep_in(store)
        await game.begin()
        wish = {"text": "The player fears the silver heron.", "kind": "preference", "about": "player"}
        told = {"text": "The silver heron sleeps in the tower.", "subject": "silver heron", "kind": "trait"}
        await play(game, "I look. ((the silver heron scares me))", told, wish, home("the mill"), reply=told["text"])
        forgetting = forgetting_of(game.app, game.config, CONTEXT)
        found = await forgetting.find("silver heron")
        assert {told["text"], wish["text"]} <= {record["text"] for record in found.records}
        with pytest.raises(ForgettingError, match="InMemorySaver"):
            await forgetting.forget("silver heron")
        left = store.search((), limit=1000)
        assert "heron" not in json.dumps([item.value for item in left])
        texts = {v["text"] for v in (await stored(game)).values()}
        assert texts == {"Goran lives at the mill.", "The [forgotten] sleeps in the tower."}


async def test_why_never_tells_a_secret(game):
    await game.begin()
    secret = {"text": "Oda is the thief of the crown.", "kind": "secret"}
    game.model.queue(
        "update", say("", call("StateNotebook", secrets={"Oda": "the thief"}), call("Facts", facts=[secret]))
    )
    await game.play("I look.")
    assert len(await stored(game)) == 1
    for what in ("secrets", "secrets.Oda", "Secrets.Oda", "thief of the crown"):
        with pytest.raises(HistoryError) as refused:
            await why(game.app, game.config, CONTEXT, what)
        assert "is the thief" not in str(refused.value)
