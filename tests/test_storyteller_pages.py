"""Questions that the two notebooks answer, after five turns, and what is remembered: what was said and done alone."""

import random

import pytest
from program import questbook
from storyteller_game import MIRA, Game

from questbook.graphs.offline.storyteller.answers import Past, remember
from questbook.graphs.offline.storyteller.language import table

PLAYED = ("I look around.", "I talk to Osric Fenn.", "I ask Osric about the ghost", "I search the place.", "I wait")
QUESTIONS = {
    "What is my name?": "You are Mira Holt.",
    "what's my class?": "You are a rogue.",
    "So, what is my ancestry": "You are a halfling.",
    "Who am I?": "Mira Holt, a halfling rogue",
    "Where did I grow up?": "You grew up on the docks.",
    "What do I look like?": "red hair",
    "What is my goal?": "get your sister back",
    "What is my quest?": "“The Mill That Ground at Midnight”",
    "What was I doing?": "find out who grinds at the empty mill",
    "Who gave me the quest?": "from Osric Fenn, a reeve",
    "Which quests do I have?": "(open)",
    "What have we done so far?": "Osric Fenn (reeve)",
    "Tell me what happened so far": "You have learnt: ",
    "Where am I?": "This is Appledown Green.",
    "What do I carry?": "2 × dagger",
    "How much gold do I have?": "10 gold",
    "How am I?": "30 of 30 hit points",
    "Am I hurt?": "30 of 30 hit points",
    "how many hit points do I have?": "30 of 30 hit points",
    "whats in my bag": "2 × dagger",
    "What is my name, again?": "You are Mira Holt.",
    "Remind me of my quest": "find out who grinds",
    "Who sent me here?": "from Osric Fenn",
    "recap please": "You have met Osric Fenn (reeve)",
    "What day is it?": "day 1",
    "Who have I met?": "Hesper Dray: old woman at the well",
}
HERO = MIRA | {"name": "Mira Holt", "goal": "want to get my sister back", "appearance": "red hair"}


@pytest.fixture(scope="module")
def played():
    game = Game(luck=15, character=HERO).start("mill")
    for words in PLAYED:
        game.say(words)
    return game


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_pages_answer_and_nothing_happens(played, question):
    before = played.page
    assert QUESTIONS[question] in played.say(question)
    assert played.page.model_dump(exclude={"secrets", "scene"}) == before.model_dump(exclude={"secrets", "scene"})


def test_a_recap_tells_deeds_and_facts_and_no_questions(played):
    told = played.say("What have we done so far?")
    assert "You have learnt: " in told
    assert "?" not in told


def test_what_the_pages_do_not_say_is_not_known():
    game = Game(character={"name": "Bo", "ancestry": "elf", "class": "bard", "background": "London", "goal": "rest"})
    game.start("mill")
    assert game.say("Where am I from?") == "Where you come from: London."
    game.character = game.character.model_copy(update={"background": "from the salt mines"})
    assert game.say("Where do I come from?") == "You come from the salt mines."
    assert "You could ask around" in game.say("What do I look like?")


def test_a_game_through_a_pipe_answers_too(tmp_path):
    hero = "I'm Mira, a halfling rogue who grew up on the docks and wants her sister back."
    words = "\n".join([hero, "I look around.", "I wait", "I rest", "I search the place.", *QUESTIONS])
    run = questbook(tmp_path, "play", "--seed", "3", words=f"{words}\n")
    assert run.returncode == 0, run.stderr
    for told in (
        "You are Mira.",
        "You are a rogue.",
        "You grew up on the docks.",
        "Your quest is “",
        "came to you from ",
    ):
        assert told in run.stdout, told
    assert "has not come up" not in run.stdout


def recalled(subject, question, said, reply):
    """What is remembered where nothing was said and told but this."""
    return remember(subject, question, Past(exchanges=[(said, reply)]), random.Random(1))


@pytest.mark.parametrize("said", ["I attack Rolf Tanner!", "I attack Rolf Tanner."])
def test_a_quotation_keeps_the_mark_at_its_end(said):
    assert f"“{said}”" in recalled("Rolf Tanner", "What did I do to Rolf Tanner?", said, "He steps aside.")


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("I wait", "Nothing. You could look at the people, ask Rolf Tanner about the ringmaster or wait."),
        ("I wait", "You wait.\n\nDo you ask Rolf Tanner about the ringmaster, or go to the Mask Stall?"),
        ("ask Rolf the ringmaster", "You hold it up to the light: “ask Rolf the ringmaster”. Not a plan."),
    ],
)
def test_choices_held_out_and_words_handed_back_are_no_memories(said, reply):
    told = recalled("Rolf say about the ringmaster", "What had Rolf to do with the ringmaster?", f"{said}?", reply)
    assert "You could ask around, or go and look." in told


def test_who_said_nothing_of_it_is_not_quoted():
    game = Game(luck=15).start("fair")
    told = game.say("What did the baker say about the bread?")
    assert "what did the baker say about the bread" in told.casefold()
    assert not any(told.startswith(opening) for opening in table("remembered"))


def test_a_sentence_out_of_a_speech_keeps_its_quotation_marks():
    told = recalled("Ines", "What do I know about Ines?", "I wait", "“We came by ship. Ines sailed in autumn.”")
    assert told.endswith("It went like this (just now): “Ines sailed in autumn.”")


def test_what_was_asked_before_is_no_memory_and_a_quotation_is_closed():
    told = remember(
        "my secret word",
        "What is my secret word?",
        Past(summary="Turn 2: “What is my secret word?” It should be known. “My secret word is heron.” You say it."),
        random.Random(1),
    )
    assert "heron" in told
    assert "What is my secret word" not in told
    assert told.count("“") == told.count("”")
