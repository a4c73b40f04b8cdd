"""The offline storyteller as a chat model: whatever it is asked, and on whatever page, it answers."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from storyteller_game import MIRA, ROLL, Game

from questbook import CharacterNotebook
from questbook.graphs.dungeon_master import prompts
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.prompts import interview_prompt, quest_prompt
from questbook.graphs.offline.storyteller import OfflineStoryteller
from questbook.graphs.offline.storyteller.scene import tale
from questbook.graphs.turn.buffer import summary_prompt


def test_without_dice_and_without_sections_there_is_still_a_story():
    model = OfflineStoryteller()
    quest = '<character>\nname: "Mira"\n</character>\n\n<quest>\nscene: "A room."\n</quest>'
    dice = model.bind_tools([ROLL])
    for asked in (
        model.invoke([SystemMessage(quest), HumanMessage("search the room")]),
        dice.invoke([SystemMessage(quest), HumanMessage([{"type": "text", "text": "attack"}])]),
        dice.invoke([HumanMessage("look")]),
        dice.invoke([SystemMessage(quest), HumanMessage("look"), AIMessage("You look.")]),
        dice.invoke([SystemMessage(quest)]),
        model.invoke([HumanMessage("hello")]),
        model.invoke("hello"),
    ):
        assert asked.text.strip()
        assert not asked.tool_calls


def test_a_roll_that_failed_is_not_asked_for_again():
    game = Game().start("lamp")
    game.say("go north")
    game.messages.append(HumanMessage("climb the ivy"))
    model = game.model.bind_tools([ROLL])
    prompt = quest_prompt(game.state(), Context()).messages
    call = model.invoke(prompt)
    roll = {"expression": "1d20", "reason": "Athletics to climb the ivy to the gallery", "dc": 11}
    assert call.tool_calls[0]["args"] == roll
    answer = ToolMessage("There is no such expression.", tool_call_id=call.tool_calls[0]["id"], name="roll_dice")
    told = model.invoke([*prompt, call, answer])
    assert told.text.startswith("Hand over hand, leaf over leaf")
    assert not told.tool_calls


async def test_streaming_and_async_say_the_same_as_invoke():
    game = Game().start("lamp")
    game.say("go north")
    for words in ("look", "climb the ivy"):
        game.messages.append(HumanMessage(words))
        prompt = quest_prompt(game.state(), Context()).messages
        model = game.model.bind_tools([ROLL])
        whole = model.invoke(prompt)
        streamed = AIMessageChunk("")
        chunks = list(model.stream(prompt))
        for chunk in chunks:
            streamed += chunk
        slowly = AIMessageChunk("")
        async for chunk in model.astream(prompt):
            slowly += chunk
        for other in (streamed, slowly, await model.ainvoke(prompt)):
            assert other.content == whole.content
            assert other.tool_calls == whole.tool_calls
        assert len(chunks) > 2


def test_a_summary_keeps_what_was_told_and_keeps_to_its_limit():
    reply = "Mud takes an interest in your boots. A crow looks at you."
    turns = [{"turn": n, "player": "look", "reply": reply} for n in range(40)]
    turns[3] = {"turn": 3, "player": "Remember: the password is swordfish", "reply": "It will keep."}
    prompt = summary_prompt("Mira came <by boat> to Gullhaven.", turns, 100, prompts.CONDENSE)
    told = OfflineStoryteller().invoke(prompt)
    assert "swordfish" in told.text
    assert "<by boat>" in told.text
    assert len(told.text.split()) <= 60


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=200))
def test_any_words_at_all_get_an_answer(words):
    game = Game(seed=1)
    game.messages.append(AIMessage("Welcome. What is your name?"))
    game.character = CharacterNotebook()
    game.messages.append(HumanMessage(words))
    model = game.model.bind_tools([CharacterNotebook.tool()])
    said = model.invoke(interview_prompt(game.state(), Context()).messages)
    for call in said.tool_calls:
        game.character.apply(call["args"], by_model=True)
    assert said.text.strip()
    game.character, game.messages = CharacterNotebook.load(MIRA), []
    game.say(".")
    assert game.say(words or " ").strip()


def test_the_adventure_opens_in_the_turn_that_completes_the_character():
    game = Game(seed=4)
    game.turn = 1
    call = {"name": "CharacterNotebook", "args": {"goal": "to get her sister back"}, "id": "c1", "type": "tool_call"}
    game.messages = [
        HumanMessage("to get her sister back"),
        AIMessage("Then we are ready, Mira.", tool_calls=[call]),
        ToolMessage("The page is complete. Open the adventure now.", tool_call_id="c1", name="CharacterNotebook"),
    ]
    prompt = quest_prompt(game.state(), Context()).messages
    opened = game.model.bind_tools([ROLL]).invoke(prompt)
    assert "sister" in opened.text
    reply = f"Then we are ready, Mira.\n{opened.text}"
    game.note([{"turn": 1, "player": "to get her sister back", "reply": reply}])
    assert game.page.scene
    assert game.page.location in tale(game.page.secrets["tale"].split()[0])["places"]
    assert game.page.inventory == {"rope": 1, "dagger": 2}
    assert game.page.condition.hp == 30


def test_a_page_that_another_model_wrote_is_gone_on_with():
    game = Game(page={"scene": "A storm at sea.", "location": "The Gannet", "people": {"Ruth": {"role": "captain"}}})
    assert "captain" in game.say("who is Ruth?")
    game.say("climb the mast")
    assert game.page.secrets["tale"]
    assert "Ruth" in game.page.people
    game.page = game.page.apply({"secrets": {"seen": "the deck; the hold 2"}}).page
    assert game.say("look")


def test_eight_thousand_characters_are_read_in_no_time():
    game = Game(seed=1)
    game.say("begin")
    for words in ("a " * 4000, "tall and " * 900, "my name is " * 700, "the " * 2000 + "dies", "x" * 8000):
        assert game.say(words)
