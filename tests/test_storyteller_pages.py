"""Questions that the two notebooks answer, after five turns, and what is remembered: what was said and done alone."""

import random
import re

import pytest
from program import questbook
from storyteller_game import MIRA, Game

from questbook.graphs.offline.storyteller.answers import Past, remember
from questbook.graphs.offline.storyteller.language import table
from questbook.graphs.offline.storyteller.scene import tale

PLAYED = ("I look around.", "I talk to Osric Fenn.", "I ask Osric about the ghost", "I search the place.", "I wait")
ANSWERS = {  # what answers which questions
    "You are Mira Holt.": "What is my name? | What is my name, again?",
    "You are a rogue.": "what's my class? | my class? | Hello! Remind me of my trade",
    "You are a halfling.": "So, what is my ancestry",
    "Mira Holt, a halfling rogue": "Who am I?",
    "You grew up on the docks.": "Where did I grow up?",
    "red hair": "What do I look like?",
    "get your sister back": "What is my goal?",
    "“The Mill That Ground at Midnight”": "What is my quest?",
    "find out who grinds at the empty mill": "What was I doing? | Remind me of my quest",
    "from Osric Fenn, a reeve": "Who gave me the quest? | Who gave it? | Who gave it to me? | Who sent me here?"
    " | From whom did I get the quest?",
    "(open)": "Which quests do I have?",
    "Osric Fenn (reeve)": "What have we done so far?",
    "You have learnt: ": "Tell me what happened so far",
    "This is Appledown Green.": "Where am I?",
    "2 × dagger": "What do I carry? | whats in my bag",
    "10 gold": "How much gold do I have?",
    "30 of 30 hit points": "How am I? | Am I hurt? | how many hit points do I have?",
    "You have met Osric Fenn (reeve)": "recap please",
    "day 1": "What day is it?",
    "Hesper Dray: old woman at the well": "Who have I met?",
}
QUESTIONS = {question: answer for answer, questions in ANSWERS.items() for question in questions.split(" | ")}
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


def test_several_questions_in_one_message_are_each_answered_in_their_order(played):
    asked = "What is my name? my class? my quest? who gave it? where did I grow up? what have we done so far?"
    parts = ["You are Mira Holt.", "You are a rogue.", "Your quest is", "came to you", "You grew up", "You have met"]
    more = "My name, class and quest, and who gave it? And where did I grow up? Recap, please! What do I carry?"
    for words, answers in ((asked, parts), (more, [*parts, "2 × dagger"])):
        told = played.say(words).split("\n\n")
        assert [part for part, answer in zip(answers, told, strict=True) if part not in answer] == [], told


@pytest.mark.parametrize(
    "asked", ["What is my name? Where am I?", "Where am I? What is my name?", "What is my name? Who is here?"]
)
def test_of_several_questions_the_pages_answer_theirs_and_the_story_the_others(played, asked):
    told = played.say(asked)
    place = "This is Appledown Green." if "Where" in asked else "Osric Fenn"
    assert told.startswith("You are Mira Holt.\n\n")
    assert place in told
    assert "You are" not in played.say("What is my name? I look around.")


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
    assert re.search(r"You could \w[^.]*, \w[^.]* or \w[^.]*\. Or anything else", game.say("What can I do?"))
    game.page = game.page.apply({"quests": {tale("mill").title: {"status": "done"}}}).page
    assert game.say("Who gave it?") == "You have no quest at the moment."


def test_a_game_through_a_pipe_answers_too(tmp_path):
    hero = "I'm Mira, a halfling rogue who grew up on the docks and wants her sister back."
    asked = [questions.split(" | ")[0] for questions in list(ANSWERS.values())[:10]]
    words = "\n".join([hero, "I look around.", "I wait", "I rest", "I search the place.", *asked])
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
