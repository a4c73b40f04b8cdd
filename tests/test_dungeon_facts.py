"""Facts in the game: one call after the reply, whatever the model sends, and whose facts they are."""

import pytest
from fact_play import CONTEXT, PLAYER, facts, known, notices, play, stored
from forgetting_of import forgetting_of
from noted_facts import home
from scripted import call, malformed, say, sections_of

from questbook import FaissStore
from questbook.graphs.dungeon_master.retract import retract
from questbook.graphs.dungeon_master.why import why
from questbook.graphs.errors import ForgettingError, HistoryError
from questbook.graphs.history.history import History
from questbook.memory.facts.fact import Fact


async def test_the_page_and_the_facts_come_of_one_call_after_the_reply(game):
    await game.begin()
    game.model.calls.clear()
    game.model.queue("quest", say("Goran, you hear, lives at the mill."))
    game.model.queue("update", say("", call("StateNotebook", gold=3), call("Facts", facts=[home("the mill")])))
    await game.play("I ask about Goran.")
    assert [job for job, _ in game.model.calls] == ["quest", "update"]
    assert game.values["quest"]["gold"] == 3
    [(key, value)] = (await stored(game)).items()
    turn = game.values["timeline"][-1]
    assert key == f"{turn[0]}-2-fact-0"
    assert {name: value[name] for name in ("text", "slot", "branch", "turn")} == {
        "text": "Goran lives at the mill.",
        "slot": "goran|home",
        "branch": turn[0],
        "turn": 2,
    }
    assert set(value["messages"]) == {m.id for m in game.values["messages"][-2:]}
    assert value["thread"] == game.config["configurable"]["thread_id"]
    assert value["checkpoint"]
    assert value["said_at"]
    assert game.values["facts"] == []


async def test_no_facts_are_no_oddity(game):
    await game.begin()
    await play(game, "I look around.")
    assert (await stored(game), game.values.get("facts", []), notices(game)) == ({}, [], "")


async def test_oddities_are_notices_and_cost_no_second_call(game):
    await game.begin()
    game.model.calls.clear()
    await play(game, "I ask.", home("the mill", importance="very"), {}, reply="Goran lives at the mill.")
    assert [job for job, _ in game.model.calls] == ["quest", "update"]
    assert "An importance was no number" in notices(game)
    assert "left out" in notices(game)
    assert len(await stored(game)) == 1


async def test_facts_that_are_no_json_are_asked_for_twice_more_and_cost_the_page_nothing(game):
    await game.begin()
    broken = malformed("Facts", '{"facts": [')
    both = broken.model_copy(update={"tool_calls": [call("StateNotebook", gold=3)]})
    game.model.queue("update", both, broken, broken)
    game.model.calls.clear()
    await game.play("I count my gold.")
    assert [job for job, _ in game.model.calls] == ["quest", "update", "update", "update"]
    assert game.values["quest"]["gold"] == 3
    assert "could not be read" in notices(game)
    assert game.values["noted_through"] == 2


async def test_talk_out_of_character_is_no_fact_of_the_world_whatever_the_model_says(game):
    await game.begin()
    await play(game, "I go on. OOC: spiders scare me", {"text": "Spiders scare people here.", "kind": "trait"})
    assert await stored(game) == {}
    [value] = (await stored(game, PLAYER)).values()
    assert value["kind"] == "preference"


async def test_what_the_player_claims_is_a_claim(game):
    await game.begin()
    claim = {"text": "Mira found 1000 gold.", "subject": "Mira", "attribute": "find", "value": "1000 gold"}
    await play(game, "I find 1000 gold!", claim, reply="You find dust.")
    [value] = (await stored(game)).values()
    assert (value["kind"], value["claimed_by"]) == ("rumour", "Mira")


async def test_what_was_recalled_is_not_noted_again_as_new(new_game):
    game = new_game(buffer_tokens=200, recall_tokens=2000)
    await game.begin()
    await play(game, "I ask about Goran.", reply="Goran betrayed the ferryman at the old mill.")
    for n in range(8):
        await play(game, f"I walk mile {n}.", reply="The road goes on past hedges and ditches. " * 6)
    game.model.queue("update", facts({"text": "Goran betrayed the ferryman at the old mill.", "kind": "event"}))
    game.model.queue("quest", say("You remember: Goran betrayed the ferryman at the old mill."))
    await game.play("What did Goran do to the ferryman at the old mill?")
    memories = sections_of(game.model.asked("quest")[-1]).split("<memories>\n")[-1]
    assert "betrayed the ferryman" in memories, "else this test shows nothing"
    assert await stored(game) == {}


async def test_whatever_the_model_sends_the_game_goes_on_and_every_record_is_sound(game):
    await game.begin()
    odd = [
        {"facts": "Goran"}, {"facts": 7}, {}, {"facts": [[[]]]}, {"facts": {"text": "The lamp is lit."}},
        {"facts": [{"text": "\ud800\x00 lamp", "importance": [], "known_by": {"a": 1}}]}, {"text": "No list."},
        {"facts": [home("the mill", real_time="9999-12-31"), home("the inn", real_time="0000-00-00")]},
    ]  # fmt: skip
    for number, args in enumerate(odd):
        game.model.queue("update", say("", call("Facts", **args)))
        game.model.queue("quest", say("The mill, the inn, the lamp."))
        await game.play(f"I try thing {number}.")
        assert game.values["remembered_through"] == number + 2
    fields = set(Fact.model_fields) - {"of_person"}
    for value in (await stored(game)).values():
        Fact.model_validate({name: value[name] for name in fields if name in value})
    assert "Goran lives at the inn." in await known(game)
    assert "Goran lives at the mill." not in await known(game)


async def test_the_offline_storyteller_hands_over_facts_too(new_game, monkeypatch):
    monkeypatch.undo()
    game = new_game(model="offline", seed=3)
    said = "I'm Mira, a halfling rogue from the docks; I want my sister back."
    for words in (said, "yes", "I look around", "I ask about the trouble here", "I ask who did it"):
        await game.play(words)
        if game.values["turn"] > 6:
            break
    found = (await stored(game)).values()
    assert {"trait", "secret"} <= {value["kind"] for value in found}
    assert all(value["text"] for value in found)


# Facts follow the checkpoint: forks, going back, forgetting; an abandoned turn is neither told nor believed.


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
        assert "heron" not in str([item.value for item in store.search((), limit=1000)])
        texts = {value["text"] for value in (await stored(game)).values()}
        assert texts == {"Goran lives at the mill.", "The [forgotten] sleeps in the tower."}
