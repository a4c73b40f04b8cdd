"""Questions that the two notebooks answer: who one is, what one is about, what has happened, after five turns."""

import pytest
from program import questbook
from storyteller_game import MIRA, Game

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
        "” came to you from ",
    ):
        assert told in run.stdout, told
    assert "has not come up" not in run.stdout
