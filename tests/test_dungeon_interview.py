"""The interview in the game: how a character is completed, by whomever, and enters the quest once."""

import pytest
from conftest import MIRA
from scripted import call, malformed, say

from questbook import CharacterNotebook, PatchError
from questbook.graphs.dungeon_master import prompts
from questbook.graphs.dungeon_master.interview import begin_tool, complete
from questbook.graphs.dungeon_master.sheet import ancestry_said
from questbook.graphs.events import STREAM_MODES, ReplyPiece, read_stream


async def test_interview_then_quest_in_the_same_turn(game):
    game.model.queue("interview", say("A halfling! And what do you do?", call("CharacterNotebook", name="Mira")))
    said = {"messages": [("user", "I'm Mira")]}
    stream = game.app.astream(said, game.config, context=game.settings, stream_mode=STREAM_MODES)
    shown = [event.text async for event in read_stream(stream) if isinstance(event, ReplyPiece)]
    assert "".join(shown) == "A halfling! And what do you do?"
    assert game.values["character"]["name"] == "Mira"
    assert not game.model.asked("quest")
    rest = {key: value for key, value in MIRA.items() if key != "name"}
    game.model.queue("interview", say("", call("CharacterNotebook", **rest)))
    await game.play("a rogue of the docks", quest=say("The docks are dark. What do you do?"))
    assert game.reply == "The docks are dark. What do you do?"
    assert game.values["turn"] == 2
    assert game.values["noted_through"] == 2
    assert len(game.model.asked("interview")) == 2
    assert len(game.model.asked("quest")) == 1
    [noted] = game.model.asked("update")
    assert "I'm Mira" not in noted[-1].text, "the page of the quest is noted of its own turns"
    assert prompts.OPENING in [message.text for message in game.model.asked("quest")[-1]]


async def test_a_complete_character_is_filled_by_the_rules(game):
    game.model.queue(
        "interview", say("", call("CharacterNotebook", **MIRA, abilities={"charisma": 15}, kit={"lute": 1}))
    )
    await game.play("I'm Mira")
    character, quest = game.values["character"], game.values["quest"]
    abilities = character["abilities"]
    assert abilities["charisma"] == 15, "what the player chose stays"
    assert abilities["dexterity"] == 14 + 2, "the best that is left of the array, and the halfling's bonus"
    assert character["hit_points"] == 8 + (abilities["constitution"] - 10) // 2
    assert quest["condition"] == {"hp": character["hit_points"], "max_hp": character["hit_points"], "conditions": {}}
    assert quest["inventory"] == character["kit"] == {"lute": 1}
    assert quest["gold"] == 20


async def test_a_page_completed_by_hand_opens_the_quest_too(game):
    await game.play("hello")
    await game.app.aupdate_state(game.config, {"character": MIRA})
    await game.play("I step into the light")
    assert not game.model.asked("interview")[1:]
    assert game.reply.startswith("The wind")
    assert game.values["character"]["hit_points"] == game.values["quest"]["condition"]["hp"] > 0


async def test_who_has_entered_does_not_enter_again(mira):
    mira.model.queue(
        "update", say("", call("StateNotebook", gold=500, condition={"hp": 2}, inventory={"dagger": None}))
    )
    await mira.play("I fight")
    before = mira.values["quest"]
    await mira.app.aupdate_state(mira.config, {"character": {"hit_points": None}})
    await mira.play("I rest")
    assert mira.values["character"]["hit_points"] == before["condition"]["max_hp"]
    await mira.app.aupdate_state(mira.config, {"character": {"goal": None}})
    await mira.play("revenge", interview=say("", call("CharacterNotebook", goal="revenge")))
    assert mira.values["quest"] == before
    assert mira.values["character"]["goal"] == "revenge"
    await mira.app.aupdate_state(mira.config, {"character": {"hit_points": 40}})
    await mira.play("I train")
    assert mira.values["quest"]["condition"] == before["condition"] | {"max_hp": 40}


async def test_a_character_as_long_as_the_page_allows_can_enter(game):
    page = {**MIRA, "kit": {}}
    while len(CharacterNotebook.load(page).render()) < CharacterNotebook.LIMIT - 40:
        page["kit"][f"item {len(page['kit'])} of the long list"] = 1
    await game.play("I'm Mira, and I carry much", interview=say("", call("CharacterNotebook", **page)))
    assert game.values["character"]["hit_points"] == 9
    assert len(game.values["quest"]["inventory"]) == len(page["kit"])
    assert game.reply.startswith("The wind")


def test_what_is_filled_in_leaves_the_room_that_the_rules_need():
    page = {**MIRA, "goal": "", "kit": {}}
    while len(CharacterNotebook.load(page).render()) < CharacterNotebook.LIMIT - 150:
        page["kit"][f"item {len(page['kit'])} of the long list"] = 1
    filled, _ = complete(CharacterNotebook.load(page), {"goal": "to see the sea, " * 12})
    assert (filled.complete, len(filled.render()) <= CharacterNotebook.LIMIT) == (True, True)


async def test_the_reply_is_what_a_turn_ends_with_in_the_interview_too(game):
    await game.play("My name is Bob", interview=say("And your people?", call("CharacterNotebook", name="Bob")))
    assert game.reply == "And your people?"
    assert [m.type for m in game.values["messages"]] == ["human", "ai", "tool", "ai"]


@pytest.mark.parametrize("last", [call("CharacterNotebook", goal=MIRA["goal"]), call("BeginAdventure", goal="gold")])
async def test_the_calls_of_the_interview_are_in_no_prompt_of_a_later_turn(game, last):
    most = {name: text for name, text in MIRA.items() if name != "goal"}
    await game.play("I am Mira.", interview=say("What do you want?", call("CharacterNotebook", **most)))
    await game.play("My sister.", interview=say("", last), quest=say("The inn is loud."))
    [first] = game.model.asked("quest")
    assert first[-1].text == "The page is complete. Open the adventure now."
    await game.play("I look around.")
    for prompt in (game.model.asked("interview")[1], game.model.asked("quest")[1]):
        assert not [m for m in prompt[:-1] if m.type == "tool" or getattr(m, "tool_calls", None)]
    assert [m.type for m in game.model.asked("quest")[1]] == ["system", "human", "ai", "human", "ai", "human"]
    assert [m.text for m in game.values["messages"] if m.type == "tool"][-1] == first[-1].text, "people can see it"


async def test_a_roll_whose_call_has_the_id_of_a_call_of_the_interview_stays_in_later_prompts(game):
    """A model may number its calls anew in each answer."""
    await game.play("I am Mira.", interview=say("", call("CharacterNotebook", **MIRA) | {"id": "call_1"}))
    roll = call("roll_dice", expression="1d20", reason="luck") | {"id": "call_1"}
    await game.play("I jump.", quest=[say("", roll), say("You land.")])
    await game.play("I look around.")
    told = [message.text for message in game.model.asked("quest")[-1] if message.type == "tool"]
    assert len(told) == 1
    assert told[0].startswith("luck: 1d20 = ")


async def test_a_refused_note_that_is_answered_in_words_is_not_asked_again(game):
    await game.play("I'm Mira.", interview=[say("Who?", call("CharacterNotebook", level="high")), say("Sorry!")])
    prompts = [str(prompt) for prompt in game.model.asked("interview")]
    assert len(prompts) == len(set(prompts)) == 2
    assert game.reply == "Who?"
    assert "could be noted" in game.values["notices"][-1]["text"]


async def test_a_model_that_fails_while_it_mends_a_note_takes_back_nothing_that_was_said_and_noted(game):
    told = say("Hello, Mira! And what do you do?", call("CharacterNotebook", name="Mira", level="high"))
    await game.play("I'm Mira.", interview=[told, ConnectionError("the line is down")])
    assert game.reply == "Hello, Mira! And what do you do?"
    assert game.values["character"]["name"] == "Mira"
    assert "Not all that you said could be noted" in game.values["notices"][-1]["text"]
    assert "the line is down" in game.values["notices"][-1]["detail"]


async def test_an_ancestry_that_a_person_changed_by_hand_stays(game):
    await game.play(
        "I want to be a dwarf!", interview=say("And your name?", call("CharacterNotebook", ancestry="dwarf"))
    )
    await game.app.aupdate_state(game.config, {"character": {"ancestry": "Elf"}})
    await game.play("My name is Mira.")
    assert (game.values["character"]["ancestry"], game.values["notices"]) == ("Elf", [])


async def test_the_narrator_is_given_what_the_character_adds_to_rolls(new_mira):
    mira = await new_mira()
    mira.app.update_state(mira.config, {"character": {"level": 5, "abilities": {"strength": 8, "dexterity": 17}}})
    await mira.play("I climb.")
    prompt = mira.model.asked("quest")[-1][0].text
    assert 'modifiers: "STR -1, DEX +3, ' in prompt
    assert 'proficiency +3"' in prompt


async def test_calls_that_failed_leave_the_prompt(game):
    wrong = call("CharacterNotebook", name="Mira", level="very high")
    more = call("CharacterNotebook", shoe_size=36)
    game.model.queue("interview", say("Who are you?", wrong), say("", call("CharacterNotebook", name="Mira"), more))
    await game.play("I'm Mira.", interview=say("", call("CharacterNotebook", ancestry="elf")))
    assert game.values["character"]["name"] == "Mira"
    assert game.reply == "Who are you?"
    assert "very high" in str(game.model.asked("interview")[1]), "the model hears of it at once"
    await game.play("An elf.")
    prompt = str([m.model_dump() for m in game.model.asked("interview")[-1]])
    assert "very high" not in prompt
    assert "shoe_size" not in prompt
    assert "Mira" in prompt
    called = [c["id"] for m in game.values["messages"] if m.type == "ai" for c in m.tool_calls]
    answered = [m.tool_call_id for m in game.values["messages"] if m.type == "tool"]
    assert called == answered


async def test_the_model_may_decide_that_the_character_is_done_and_the_player_is_told_what_was_filled_in(game):
    said = call("CharacterNotebook", name="Mira", alignment="chaotic good")
    await game.play("I'm Mira, and I lean to chaotic good.", interview=say("And where are you from?", said))
    begin = call("BeginAdventure", name="Nobody", ancestry="elf", background="x" * 999, goal="to find the sea")
    await game.play("Enough, begin!", interview=say("", begin))
    page = game.values["character"]
    assert page["name"] == "Mira", "what the player said stays"
    assert page["alignment"] == "chaotic good"
    assert (page["ancestry"], page["goal"]) == ("elf", "to find the sea")
    assert page["class"] == "fighter", "what the model left open has something that fits anybody"
    assert 0 < len(page["background"]) < 100, "what did not fit too"
    told = game.values["notices"][-1]["text"]
    for field in ("ancestry", "class", "background", "goal"):
        assert f"{field}: {page[field]}" in told
    assert "Mira" not in told
    assert game.values["quest"]["condition"]["max_hp"] == page["hit_points"] == 12
    assert game.reply.startswith("The wind turns"), "the quest opens in the same turn"
    assert begin_tool()["function"]["parameters"]["additionalProperties"] is False, "what is no field is refused"


async def test_a_call_to_begin_that_cannot_be_read_begins_nothing(game):
    broken = malformed("BeginAdventure", '{"name": "Mi')
    await game.play("Enough, begin!", interview=[broken, say("Who are you?")])
    assert (game.reply, game.values["character"]["class"]) == ("Who are you?", "")


def test_what_is_filled_in_keeps_what_is_known_and_goes_by_the_players_word_before_the_models():
    page, told = complete(CharacterNotebook.load({"name": "Bo"}), {"name": "Al", "ancestry": "human"}, "Dwarf")
    assert (page.name, page.ancestry) == ("Bo", "Dwarf")
    assert told.startswith("What you left open was filled in for you: ancestry: Dwarf; class: fighter; background: ")
    assert complete(page, {"name": "Al"}, "Elf") == (page, ""), "nothing is missing"


def test_who_leaves_all_of_it_open_plays_a_human_fighter():
    page, told = complete(CharacterNotebook(), {})
    assert not page.missing
    assert "ancestry: human; class: fighter; background: " in told


async def test_nothing_is_filled_in_off_the_record_and_both_prompts_know_the_alignment(game):
    await game.play("Don't remember this: begin.", interview=[say("And?", call("BeginAdventure", goal="gold"))] * 3)
    assert not game.values["character"].get("goal")
    await game.begin()
    assert "alignment" in game.model.asked("interview")[-1][0].text
    assert "alignment" in game.model.asked("quest")[-1][0].text


@pytest.mark.parametrize(
    ("said", "ancestry"),
    [
        ("I'm a dwarf.", "Dwarf"),
        ("dwarf", "Dwarf"),
        ("Make me a stout old gnome!", "Gnome"),
        ("I'm Mira, a halfling thief", "Halfling"),
        ("An elf killed my mother. I’m a tiefling.", "Tiefling"),
        ("My father was killed by an orc; I am a human ranger", "Human"),
        ("I was betrayed by an elf, and I'm hunted by an orc", None),
        ("I am not an elf, I am a dwarf", "Dwarf"),
        ("I'm no dwarf, I'm human.", "Human"),
        ("Not a dwarf but a gnome", "Gnome"),
        ("not an elf", None),
        ("Borin, dwarf, fighter, from the mines", "Dwarf"),
        ("I'm Borin, dwarf of the iron hills, a fighter", "Dwarf"),
        ("Name: Borin\nRace: dwarf\nClass: fighter", "Dwarf"),
        ("Tom, no elf, a fighter, who hates elves, dwarves and orcs", None),
    ],
)
def test_the_ancestry_is_taken_from_what_players_say_of_themselves(said, ancestry):
    assert ancestry_said(["Hello.", said]) == ancestry


async def test_other_words_for_a_field_are_understood(game):
    noted = {
        "Race": "dwarf",
        "job": "cleric",
        "Name": "Bo",
        "morals": "stern",
        "backstory": "a mine",
        "motivation": "gold",
    }
    game.model.queue("interview", say("", call("CharacterNotebook", **noted)))
    await game.play("I'm Bo.")
    page = game.values["character"]
    fields = ("name", "ancestry", "class", "background", "goal", "alignment")
    assert [page[field] for field in fields] == ["Bo", "dwarf", "cleric", "a mine", "gold", "stern"]
    assert not game.values["notices"]


def test_a_field_that_is_sent_under_two_names_is_refused():
    with pytest.raises(PatchError, match="race: there is no such field"):
        CharacterNotebook().apply({"race": "dwarf", "ancestry": "elf"})


@pytest.mark.parametrize("tool", ["CharacterNotebook", "BeginAdventure"])
async def test_a_dwarf_does_not_become_a_human(game, tool):
    game.model.queue("interview", say("And your name?"))
    await game.play("I want to be a dwarf!")
    game.model.queue("interview", say("", call(tool, **{**MIRA, "ancestry": "human"})))
    await game.play("Mira. Let us begin.")
    assert game.values["character"]["ancestry"] == "Dwarf"
    assert any("Dwarf" in entry["text"] for entry in game.values["notices"])
