"""The offline storyteller as a chat model: whatever it is asked, and on whatever page, it answers."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from storyteller_game import MIRA, ROLL, Game

from questbook import CharacterNotebook
from questbook.graphs.dungeon_master import prompts
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.prompts import interview_prompt, quest_prompt
from questbook.graphs.offline.storyteller import OfflineStoryteller
from questbook.graphs.offline.storyteller.engine import resolve
from questbook.graphs.offline.storyteller.language import saying
from questbook.graphs.offline.storyteller.model import summarize
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


def test_it_draws_no_conclusions_and_notes_only_what_it_has_a_tool_for():
    model, hello = OfflineStoryteller(), [SystemMessage("<missing>\nname\n</missing>"), HumanMessage("I'm Mira")]
    for tool in ("Questions", "Reflection"):
        answer = model.bind_tools([tool]).invoke([HumanMessage("What follows?")])
        assert (answer.text, answer.tool_calls) == ("nothing", [])
    assert model.invoke(hello).tool_calls == []
    [call] = model.bind_tools(["CharacterNotebook"]).invoke(hello).tool_calls
    assert call["args"] == {"name": "Mira"}
    turns = SystemMessage(
        '<quest>\nscene: "x"\n</quest>\n<turns>\n{"turn": 1, "player": "go on", "reply": ""}\n</turns>'
    )
    noted = model.bind_tools(["StateNotebook", "Facts"]).invoke([turns, HumanMessage("Note it.")])
    assert {call["name"] for call in noted.tool_calls} == {"StateNotebook", "Facts"}
    [alone] = model.bind_tools(["StateNotebook"]).invoke([turns, HumanMessage("Note it.")]).tool_calls
    assert alone["name"] == "StateNotebook"


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


@pytest.mark.parametrize(
    ("summary", "turns", "words", "told"),
    [
        ("", [{"turn": 1, "player": 'I say “hi” "so"', "reply": "So."}], 60, "Turn 1: You: “I say ‘hi’ 'so'” So."),
        ("", [{"player": "", "reply": " So  it is. "}], 60, "So it is."),
        ("", [{"turn": 1, "player": "", "reply": "Yes. " * 25}], 60, f"Turn 1: {'Yes. ' * 24}…"),
        ("A. " * 20, [], 5, "A. A. A. A. A."),
        ("Turn 1: you look", [{"turn": 2, "player": "", "reply": "Rain."}], 4, "Turn 2: Rain."),
        *[
            (f"Turn 1: {kept} it", [{"turn": 2, "player": "", "reply": "Rain."}], 4, f"Turn 1: {kept} it")
            for kept in ("remember", "told", "promise", "swear", "swore", "carve", "my", "name", "secret", "password")
        ],
        ("Mira came.\n\nTurn 1: you look", [], 2, "Mira came."),
    ],
)
def test_of_a_summary_the_oldest_goes_first_and_what_was_told_or_promised_last(summary, turns, words, told):
    assert summarize(summary, turns, words) == told


@pytest.mark.parametrize(
    ("page", "words", "told"),
    [
        ({"inventory": {"rope": 0, "axe": "two"}}, "use the rope", "You have no “rope” to hand"),
        ({"inventory": {"axe": "two"}}, "use the axe", "You have no “axe” to hand"),
        (
            {"people": ["x"], "quests": {"Q": "x"}, "clock": "noon", "facts": [1], "fallen": "x"},
            "wait",
            "It is noon now.",
        ),
        ({"condition": 3}, "how am I?", "You are whole: 10 of 10 hit points."),
        ({"condition": {"hp": 99, "max_hp": 20}}, "how am I?", "You are whole: 20 of 20 hit points."),
        ({"condition": {"hp": 19, "max_hp": 20}}, "how am I?", "You are scratched: 19 of 20"),
        ({"condition": {"hp": 9, "max_hp": 20}}, "how am I?", "You are hurt: 9 of 20"),
        ({"condition": {"hp": 4, "max_hp": 20}}, "how am I?", "You are on your last legs: 4 of 20"),
        ({"scene": ""}, "how am I?", "You are whole: 10 of 10 hit points."),
        *[({"condition": {"hp": hp}}, "how am I?", "last legs: 0 of 10") for hp in ([1], "x", float("inf"), 0)],
        ({"location": "the tavern"}, "where am I", "This is the Drowned Cat."),
        ({"location": "Nowhere"}, "where am I", "This is Gull Quay."),
        ({"secrets": {"tale": "lamp x"}}, "where am I", "This is Gull Quay."),
        ({"clock": {"day": -3, "time": "tea"}}, "how am I?", "It is morning of day 1"),
        ({"clock": {"day": 1_000_000, "time": "dusk"}}, "sleep", "It is dawn|dawn"),
        ({"people": {"Maren Holt": {"alive": False}}}, "look", "The quay|gulls|Ropes"),
    ],
)
def test_a_page_that_somebody_wrote_by_hand_is_read_generously(page, words, told):
    secrets = {"tale": "lamp 0", "beat": "x", "seen": "Gull Quay; Gull Quay x"}
    outcome = resolve({"scene": "x", "secrets": secrets} | page, {"name": "Mira"}, words, dice=False, seed=1)
    assert any(part in outcome.text for part in told.split("|")), outcome.text
    assert outcome.patch.get("clock", {}).get("day", 1) <= 1_000_000
    assert "Maren" not in outcome.text or "people" not in page or page["people"] == ["x"]


def test_without_a_tale_one_stays_until_one_takes_the_road():
    page = {"scene": "x", "location": "Nowhere"}
    deeds = (
        "I rest",
        "I stay here",
        "I talk to the priest",
        "I look around",
        "no",
        "search",
        "what do I do now?",
        "I sing",
    )
    for words in (*deeds, "I carve my name into the door", "Remember: the sea is green", "inventory", "..."):
        outcome = resolve(page, {}, words, seed=1)
        assert "tale" not in outcome.patch.get("secrets", {}), words
    assert outcome.text.endswith("The road lies open before you. What now?")
    carved = "I carve my name into the door"
    assert resolve(page, {}, carved).patch["scene"] == "stranger is at Nowhere."
    assert resolve({"scene": "x"}, {"name": "Mira Holt"}, carved).patch["scene"] == "Mira is at the road."
    for words in (
        "go on",
        "I leave",
        "I follow the rumour",
        "I take the road and see what comes",
        "I take the road for the next tale",
        "I'm ready",
        "onwards!",
    ):
        begun = resolve(page, {}, words, seed=1)
        assert begun.patch["secrets"]["tale"], words
        assert saying("again") not in begun.text


@pytest.mark.parametrize(
    "words", ["What's next?", "what next", "What happens next?", "And now?", "What is the next tale?"]
)
def test_who_asks_what_comes_next_hears_what_one_can_do(words):
    between = resolve({"scene": "x", "location": "Nowhere"}, {}, words, seed=1)
    assert "You could take the road for the next tale, rest, look around or" in between.text
    assert (between.patch, between.asks_memory) == ({}, None)
    assert "Or anything else: plain sentences do it." in Game().start("lamp").say(words)


def test_between_tales_people_are_where_they_were_and_memory_answers_and_the_way_heals():
    people = {"Brother Ald": {"role": "young priest", "last_seen": "Nowhere, day 2"}, "Bo": {"role": "smith"}}
    page = {
        "scene": "x",
        "location": "Nowhere",
        "people": people,
        "condition": {"hp": 3, "conditions": {"battered": "x"}},
    }
    assert "“Well”, says Brother Ald" in resolve(page, {}, "I talk to the priest").text
    assert "says Brother Ald" in resolve(page, {}, "I go to the priest").text
    assert "nothing new" in resolve(page, {}, "I ask the priest about the bridge").text
    assert "Brother Ald is still about" in resolve(page, {}, "look").text
    assert "Bo is not here" in resolve(page, {}, "I talk to Bo").text
    assert resolve(page, {}, "What happened to the charter?").asks_memory == "the charter"
    assert resolve(page, {}, "Is the troll dead?").asks_memory is not None
    rested, gone = (resolve(page, {"hit_points": 9}, words, dice=False) for words in ("I sleep", "I go on"))
    assert rested.patch["condition"] == gone.patch["condition"] == {"hp": 9, "conditions": {"battered": None}}
    assert saying("mended") in gone.text
    assert "tale" not in rested.patch["secrets"]


def test_the_oldest_is_struck_from_a_page_that_grows_too_long_but_no_open_quest():
    page = Game().start("lamp").page.as_json()
    page["facts"] = {f"F{n}": "f" for n in range(20)}
    page["quests"] |= {f"Q{n}": {"status": "done"} for n in range(9)} | {"open": {"status": "open"}}
    page["people"] = {f"P{n}": {} for n in range(12)} | page["people"]
    patch = resolve(page, MIRA, "wait", dice=False).patch
    assert [name for name, value in patch["facts"].items() if value is None] == [f"F{n}" for n in range(4)]
    assert patch["quests"] == {"Q0": None}
    assert [name for name, value in patch["people"].items() if value is None] == ["P0", "P1", "P2"]


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
    assert "tale" not in game.page.secrets
    game.say("go ashore")
    assert game.page.secrets["tale"]
    assert "Ruth" in game.page.people
    game.page = game.page.apply({"secrets": {"seen": "the deck; the hold 2"}}).page
    assert game.say("look")


def test_eight_thousand_characters_are_read_in_no_time():
    game = Game(seed=1)
    game.say("begin")
    for words in ("a " * 4000, "tall and " * 900, "my name is " * 700, "the " * 2000 + "dies", "x" * 8000):
        assert game.say(words)
