"""Exchanges in the game: written as records, recalled once they left the buffer, folded into the summary."""

import json

from conftest import EXCHANGES
from langchain_core.messages import HumanMessage
from scripted import say, sections_of


async def test_recall_finds_what_left_the_buffer_and_leaves_out_what_still_stands_in_it(new_game):
    game = new_game(buffer_tokens=400)
    await game.begin()
    game.model.queue("quest", say("Goran whispers: the password is swordfish."))
    await game.play("I ask Goran for the password")
    await game.walk(12)
    first_kept = game.values["turn"] - sum(isinstance(m, HumanMessage) for m in game.values["messages"]) + 1
    assert first_kept > 3
    await game.play("What was the password that Goran whispered?")
    prompt = sections_of(game.model.asked("quest")[-1])
    memories = prompt.split("\n<memories>\n")[1]
    assert "swordfish" in memories
    recalled = [json.loads(line) for line in memories.split("</memories>")[0].strip().splitlines()]
    assert all(memory["turn"] < first_kept for memory in recalled)
    assert [memory["turn"] for memory in recalled] == sorted(memory["turn"] for memory in recalled)
    assert {"turn", "age", "player", "reply"} <= set(recalled[0])
    assert "recalled" not in game.values, "what was recalled is for its turn only"


async def test_recall_keeps_to_its_budget(new_game):
    game = new_game(buffer_tokens=300, recall_tokens=150)
    await game.begin()
    for number in range(15):
        game.model.queue("quest", say(f"The heron of stone {number} looks at you. " + "It is old. " * 12))
        await game.play(f"I look at the heron {number}")
    prompt = sections_of(game.model.asked("quest")[-1])
    memories = prompt.split("\n<memories>\n")[1].split("</memories>")[0]
    assert 0 < len(memories) / 4 <= 150 * 1.1
    game.settings["recall_tokens"] = 0
    await game.play("heron")
    assert "\n<memories>\n" not in sections_of(game.model.asked("quest")[-1])


async def test_each_exchange_is_one_record_that_says_where_it_comes_from(game):
    await game.begin()
    await game.play("I look around")
    items = await game.store.asearch(EXCHANGES)
    assert sorted(item.value["turn"] for item in items) == [1, 2]
    [second] = [item for item in items if item.value["turn"] == 2]
    assert second.value["player"] == "I look around"
    assert second.value["reply"] == "The wind turns. What do you do?"
    assert second.value["thread"] == game.config["configurable"]["thread_id"]
    assert second.value["branch"] == game.values["timeline"][-1][0]
    assert second.key.startswith(second.value["branch"])


async def test_campaigns_and_users_do_not_see_each_other(new_game, model):
    first = new_game(buffer_tokens=200, user="a.b@c.d", campaign="../x")
    await first.begin()
    for number in range(6):
        model.queue("quest", say("The heron sings of swordfish. " * 12))
        await first.play(f"step {number}")
    other = new_game(buffer_tokens=200, user="a.b@c.d", campaign="")
    other.keep_in(first.store)
    await other.begin()
    for number in range(6):
        model.queue("quest", say("Nothing but sand here. " * 12))
        await other.play(f"step {number}")
    await other.play("heron swordfish sand")
    assert "swordfish" not in sections_of(model.asked("quest")[-1]).split("\n<memories>\n")[1]


async def test_turns_are_folded_into_the_summary_when_the_buffer_is_full(new_game):
    game = new_game(buffer_tokens=400)
    await game.begin()
    await game.walk(10)
    asked = game.model.asked("condense")
    assert asked
    assert '"player": "I walk mile 0"' in "".join(messages[-1].text for messages in asked)
    assert game.values["summary"] == "They walked on."
    assert isinstance(game.values["messages"][0], HumanMessage)
    assert "They walked on." in sections_of(game.model.asked("quest")[-1])


async def test_if_the_summary_fails_sentences_stand_in_and_a_notice_says_so(new_game):
    game = new_game(buffer_tokens=400)
    game.model.queue("condense", RuntimeError("503"))
    await game.begin()
    for number in range(6):
        game.model.queue("quest", say(f"Mile {number} is long. " + "The road goes on and on. " * 10))
        await game.play(f"I walk mile {number}.")
    assert any(entry["node"] == "condense" for entry in game.values["notices"])
    assert "Mile 0 is long." in "".join(m[0].text for m in game.model.asked("condense")[1:]) or (
        "Mile 0 is long." in game.values["summary"]
    )
