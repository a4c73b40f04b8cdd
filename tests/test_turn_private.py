"""A turn that is not to be remembered: nothing is derived from it, in either graph, and the talk at hand has it."""

import pytest
from companion_thread import Companion
from fake_terminal import FakeTerminal
from langchain_core.messages import HumanMessage
from scripted import call, say
from stored_bytes import contents

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.retract import retract
from questbook.graphs.errors import ModelError
from questbook.graphs.history.history import History
from questbook.graphs.turn.turn import FORGOTTEN
from questbook.memory.store.faiss_store import FaissStore

ASIDE = "Don't remember this: my word is zwiebel."


def prompts(model, job):
    return ["\n".join(str(m.content) for m in messages) for messages in model.asked(job)]


async def test_notes_that_catch_up_pass_it_over(mira):
    await mira.play("I count my coins.", update=[ModelError("down"), say("", call("StateNotebook", gold=7))])
    assert mira.values["noted_through"] == 1
    await mira.play(ASIDE)
    told = prompts(mira.model, "update")[-1]
    assert "I count my coins." in told
    assert "zwiebel" not in told
    assert (mira.values["quest"]["gold"], mira.values["noted_through"]) == (7, 3)


async def test_the_interview_notes_nothing_of_it(game):
    noted = say("Very well.", call("CharacterNotebook", personality="her word is zwiebel"))
    await game.play(ASIDE, interview=noted)
    assert "zwiebel" not in str(game.values["character"])
    assert game.reply == "Very well."
    await game.begin()
    assert game.values["character"]["name"] == "Mira"
    kept = [item.value for item in game.store.search(("adventurer", "default", "exchanges"), limit=10)]
    assert sorted(value["player"][:5] for value in kept) == sorted([FORGOTTEN[:5], "I'm M"])


@pytest.mark.parametrize("buffer", ["summary", "tokens"])
async def test_the_dungeon_masters_summary_does_not_tell_of_it(new_mira, buffer):
    game = await new_mira(buffer=buffer, summary_offset=0, buffer_tokens=200)
    await game.play("I ask the ferryman for his name.", condense=(say(f"Summary {number}.") for number in range(20)))
    before = game.values.get("summary")
    await game.play(ASIDE, quest=say("A fine word, zwiebel, says the ferryman." + " The river runs on." * 40))
    if buffer == "summary":
        assert game.values["summary"] == before, "nothing else was left to tell"
    await game.play("I step on the boat. " + "It creaks and sways. " * 20)
    await game.play("I step ashore.")
    assert game.values["summarised_through"] >= 3
    asked = "".join(prompts(game.model, "condense"))
    assert "I ask the ferryman" in asked
    assert "zwiebel" not in asked + game.values["summary"] + str(game.values["messages"])


async def test_a_summary_that_is_made_anew_after_a_retraction_passes_it_over(new_mira):
    game = await new_mira(buffer="summary", summary_offset=0)
    for words in ("I steal a boat.", ASIDE, "I row."):
        await game.play(words)
    made = len(game.model.asked("condense"))
    await retract(game.app, game.config, Context.of(game.settings), 2)
    anew = prompts(game.model, "condense")[made:]
    assert "I row." in "".join(anew)
    assert FORGOTTEN not in "".join(anew)


async def test_another_future_of_the_turn_is_noted_and_this_one_stays_unnoted(mira):
    await mira.play(ASIDE)
    history = History(mira.app, mira.config, Context.of(mira.settings))
    config, _ = await history.last_message()
    mira.model.queue("update", say("", call("StateNotebook", gold=3)))
    again = {"messages": [HumanMessage("I find my purse.")]}
    await mira.app.ainvoke(again, config, context=mira.settings, durability="sync")
    assert mira.values["quest"]["gold"] == 3
    kept = [item.value for item in mira.store.search(("adventurer", "default", "exchanges"), limit=10)]
    branches = {value["branch"]: value["player"] for value in kept if value["turn"] == 2}
    assert sorted(branches.values()) == ["I find my purse.", FORGOTTEN]
    await history.go(next(branch for branch, said in branches.items() if said == FORGOTTEN))
    assert mira.values["quest"].get("gold") != 3
    assert "zwiebel" in str(mira.values["messages"])
    assert "zwiebel" not in str(mira.store._data)


async def test_the_companion_is_offered_no_tool_that_notes_and_is_refused_one_all_the_same(model):
    talk = Companion(model)
    await talk.say("My name is Ann.", say("Hello Ann.", call("core_memory_append", label="human", content="Name: Ann")))
    notes = [
        call("core_memory_append", label="human", content="word zwiebel"),
        call("core_memory_replace", label="human", old_content="Ann", new_content="Ann zwiebel"),
        call("core_memory_rethink", label="human", new_content="word zwiebel"),
        call("core_memory_insert", label="human", content="word zwiebel"),
        call("archival_memory_insert", content="word zwiebel"),
    ]
    assert await talk.say(ASIDE, say("Noted!", *notes), say("I keep nothing of it.")) == "I keep nothing of it."
    assert talk.human == "Name: Ann"
    assert talk.values["archived"] == []
    assert talk.records("archive") == []
    assert [result.status for result in talk.results[-5:]] == ["error"] * 5
    assert "asked that this not be remembered" in talk.results[-1].text
    assert 'asked: "not to remember this turn;' in prompts(model, "companion")[-1]
    assert [value["player"] for value in talk.records("exchanges")] == ["My name is Ann.", FORGOTTEN]
    await talk.say(
        "Forget what I just said.", say("Gone.", call("core_memory_remove", label="human", content="Name: Ann"))
    )
    assert talk.human == "", "to take something out is no note of it"


async def test_the_companions_searches_and_summary_do_not_find_it(model):
    talk = Companion(model, buffer="summary", summary_offset=0)
    model.queue("condense", say("They talked of boats."))
    await talk.say("I like boats.")
    await talk.say(ASIDE, say("zwiebel, I hear."))
    assert talk.values["summary"] == "They talked of boats."
    assert talk.values["summarised_through"] == 2
    await talk.say("And the sea.")
    asked = "".join(prompts(model, "condense"))
    assert "And the sea." in asked
    assert "zwiebel" not in asked
    searches = [call("conversation_search", query="word zwiebel"), call("archival_memory_search", query="word zwiebel")]
    await talk.say("What is my word?", say("", *searches), say("I do not know."))
    assert "zwiebel" not in "".join(result.text.replace('"word zwiebel"', "") for result in talk.results)
    assert "zwiebel" not in str(talk.store._data)


async def test_offline_the_companion_says_that_it_keeps_nothing():
    talk = Companion()
    await talk.say("My name is Ann.")
    assert "keep nothing:" in await talk.say("Please don't remember that I like absinthe.")
    assert talk.human == "The user's name is Ann."
    assert "absinthe" not in str(talk.store._data)


async def test_no_byte_of_it_is_in_the_stores_files(model, tmp_path):
    path = tmp_path / "store" / "memory.db"
    path.parent.mkdir()
    async with FaissStore.open(path) as store:
        talk = Companion(model, store=store, buffer="summary", summary_offset=0)
        noting = say("Zwiebelkuchen!", call("archival_memory_insert", content="Zwiebelkuchen"))
        words = "Off the record: Zwiebelkuchen."
        for said, *answers in (("Hello.",), (words, noting, say("Zwiebelkuchen, then.")), ("Go on.",)):
            await talk.say(said, *answers)
    found = contents(path.parent)
    assert any(b"exchange" in data for data in found.values())
    assert [name for name, data in found.items() if b"zwiebelkuchen" in data.lower()] == []


@pytest.mark.slow
def test_the_history_of_the_prompt_does_not_keep_it(tmp_path):
    terminal = FakeTerminal.play(tmp_path, door="chat")
    terminal.expect("A new companion begins")
    terminal.enter("Don't remember this: Zwiebelkuchen")
    terminal.expect("keep nothing:")
    terminal.enter("I like tea")
    terminal.expect("I note")
    terminal.leave()
    typed = next(tmp_path.rglob("history")).read_text("utf-8")
    assert "I like tea" in typed
    assert "Zwiebelkuchen" not in typed
