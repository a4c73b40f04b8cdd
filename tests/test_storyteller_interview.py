"""The interview: what is read out of free sentences, and that nothing else is."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from storyteller_game import INTERVIEWER, tell

from questbook import CharacterNotebook
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.prompts import interview_prompt
from questbook.graphs.dungeon_master.state import DungeonState

SENTENCES = [
    ("I'm Mira, a halfling thief who grew up on the docks and wants her sister back", "", {
        "name": "Mira", "ancestry": "halfling", "class": "thief", "background": "grew up on the docks",
        "goal": "wants her sister back"}),
    ("My name is Borin Stonehand. I am a dwarf cleric. I was raised in the mines and I seek my father's anvil.", "", {
        "name": "Borin Stonehand", "ancestry": "dwarf", "class": "cleric", "background": "was raised in the mines",
        "goal": "seek my father's anvil"}),
    ("I am a tall elf ranger named Sylas, raised by wolves, hunting the orc who killed my mother", "", {
        "name": "Sylas", "ancestry": "elf", "class": "ranger", "appearance": "tall", "background": "raised by wolves",
        "goal": "hunting the orc who killed my mother"}),
    ("Name: Kara\nRace: tiefling\nClass: warlock\nBackground: acolyte\nGoal: break the pact", "", {
        "name": "Kara", "ancestry": "tiefling", "class": "warlock", "background": "acolyte", "goal": "break the pact"}),
    ("Hi! I want to be Brannoc, a dwarven cleric from the salt mines who wants to find out who killed his kin.", "", {
        "name": "Brannoc", "ancestry": "dwarf", "class": "cleric", "background": "from the salt mines",
        "goal": "wants to find out who killed his kin"}),
    ("I want to play a grumpy dwarf cleric named Durn", "", {
        "name": "Durn", "ancestry": "dwarf", "class": "cleric", "personality": "grumpy"}),
    ("My character is a tiefling rogue", "", {"ancestry": "tiefling", "class": "rogue"}),
    ("I want to be the most feared captain of the coast", "What is your goal?", {
        "goal": "want to be the most feared captain of the coast"}),
    ("Lysandra. Half-elf bard.", "", {"name": "Lysandra", "ancestry": "Half-elf", "class": "bard"}),
    ("A human fighter called Gareth Stone, ex-soldier, looking for a deserter", "", {
        "name": "Gareth Stone", "ancestry": "human", "class": "fighter", "background": "ex-soldier",
        "goal": "looking for a deserter"}),
    ("call me Ash", "", {"name": "Ash"}),
    ("mira", "What is your name?", {"name": "Mira"}),
    ("elf wizard", "Of what ancestry are you?", {"ancestry": "elf", "class": "wizard"}),
    ("I'm a sentient mushroom", "Of what ancestry are you?", {"ancestry": "sentient mushroom"}),
    ("thief", "What is your class?", {"class": "thief"}),
    ("She grew up on the docks", "What is your background?", {"background": "grew up on the docks"}),
    ("revenge", "What is your goal?", {"goal": "revenge"}),
    ("I want to get my sister back", "What is your goal?", {"goal": "want to get my sister back"}),
    ("She is tall with red hair", "What is your name?", {"appearance": "tall with red hair"}),
    ("I'm shy but stubborn", "What is your name?", {"personality": "shy, stubborn"}),
    ("I hate orcs", "Of what ancestry are you?", {"personality": "hate orcs"}),
    ("I'm Tobin, a dwarf cleric raised in a mine, and I want to find my brother.", "", {
        "name": "Tobin", "ancestry": "dwarf", "class": "cleric", "background": "raised in a mine",
        "goal": "want to find my brother"}),
    ("A dwarf smith who lost his forge to a dragon", "", {
        "ancestry": "dwarf", "class": "smith", "background": "lost his forge to a dragon"}),
    ("I am Tarn. I'm a half-orc monk, I was found on the temple steps, and I want to know who my parents were.", "", {
        "name": "Tarn", "ancestry": "half-orc", "class": "monk", "background": "was found on the temple steps",
        "goal": "want to know who my parents were"}),
    ("Kira, tiefling sorcerer, exiled noble, seeks revenge on her brother", "", {
        "name": "Kira", "ancestry": "tiefling", "class": "sorcerer", "background": "exiled noble",
        "goal": "seeks revenge on her brother"}),
    ("I'm Ole, a gnome wizard. My sister taught me to read the stars.", "", {
        "name": "Ole", "ancestry": "gnome", "class": "wizard",
        "background": "My sister taught me to read the stars"}),
]  # fmt: skip


@pytest.mark.parametrize(("words", "asked", "expected"), SENTENCES)
def test_a_sentence_becomes_just_what_it_says(words, asked, expected):
    reply, page = tell(words, asked=asked)
    assert page == expected
    assert reply.text


def test_a_correction_corrects_and_leaves_the_rest():
    _, page = tell("actually my name is Mina", {"name": "Mira", "ancestry": "halfling"}, "What is your class?")
    assert page == {"name": "Mina", "ancestry": "halfling"}


def test_what_is_left_to_chance_is_drawn_and_said():
    reply, page = tell("surprise me", {"name": "Mira"}, "Of what ancestry are you?")
    assert CharacterNotebook.load(page).complete
    assert page["name"] == "Mira"
    assert page["ancestry"] in reply.text


def test_the_reply_asks_for_what_is_missing_and_helps():
    reply, _ = tell("I'm Mira, a halfling")
    assert "class" in reply.text
    reply, _ = tell("what can I be?", {"name": "Mira"}, "Of what ancestry are you?")
    assert "dwarf" in reply.text
    assert "wizard" in reply.text


def test_after_the_tool_has_answered_it_asks_on_and_speaks_of_errors():
    for result, word in (("Noted.", "?"), ("CharacterNotebook was left as it is. level: got 99", "level")):
        reply, _ = tell("I'm Mira")
        state = DungeonState(
            messages=[HumanMessage("I'm Mira"), reply, ToolMessage(result, tool_call_id=reply.tool_calls[0]["id"])],
            character=CharacterNotebook(name="Mira"),
        )
        prompt = interview_prompt(state, Context()).messages
        after = INTERVIEWER.invoke(prompt)
        assert word in after.text
        assert not after.tool_calls


def test_one_question_is_asked_at_a_time_and_the_second_time_the_answer_is_taken_as_it_is():
    first, _ = tell("hello")
    assert first.text.count("?") == 1
    words = "something between a heron and a door"
    again, page = tell(words, {"name": "Mira"}, "Of what ancestry are you?")
    assert (page, again.tool_calls) == ({"name": "Mira"}, [])
    _, page = tell(words, {"name": "Mira"}, again.text)
    assert page == {"name": "Mira", "ancestry": words}
