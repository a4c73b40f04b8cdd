"""What is an answer and what is not: the interview notes what was said of the character, and no name gets an answer
but of those who bear it."""

from __future__ import annotations

import random

import pytest
from storyteller_game import Game, tell
from timing import cpu_seconds

from questbook.graphs.offline.storyteller.answers import Past, remember
from questbook.graphs.offline.storyteller.interview import REQUIRED, answer, is_talk, read
from questbook.graphs.offline.storyteller.language import load, table
from questbook.graphs.offline.storyteller.scene import keys, tale

ASKED = {
    "name": "What is your name?",
    "ancestry": "Of what ancestry are you?",
    "class": "What is your class: do you live by blade, spell, prayer or quick fingers?",
    "background": "What lies behind you? A word or two about your background will do. What is your background?",
    "goal": "What do you want, more than is good for you? What is your goal?",
}

NOTHING = """I'm tired|I am so tired|i'm tired|a bit hungry|I'm hungry and cold|bored|I feel sick
    |I'm fine, thanks|not bad|I go north|go north|north|I walk to the tavern|I will go north|look
    |look around|I open the door|I attack the goblin|I talk to the wizard|inventory|help|wait
    |Let's start|let's go|can we start?|start the game|I want to start|begin|hello|Hello there!|hi
    |good evening|nice to meet you|Hi, how are you?|what?|what|why?|what do you mean
    |who are you talking to?|where am I|I don't know|i dont know|I don't know yet, sorry|no idea
    |I'm not sure|not sure yet|ok|Ok.|yes|yes please|no|no thanks|no, thank you|nope|maybe
    |tell me more|Tell me more.|more|go on|continue|please continue|that's nice|I like it
    |this is fun|cool|lol|thanks|never mind|skip|later|I'd rather not say|I need a moment
    |I won't tell you|none of your business|who cares|hmm|…|give me an example|I changed my mind
    |my name is not important|call me later|whatever you say|sounds good
    |I'm waiting|cast fireball|roll for initiative|brb|both|neither|I eat bread
    |is that all?|ok, let's start|Well, I'm tired.|I shrug.|I nod to whoever is here.|I bow"""
NOT_WHAT_ONE_IS = """from London|I'm from London|from the north|I love cats|I like it here|running late|very tired
    |so tired|really hungry|kill goblins|open door|working on it|just looking|I hate orcs
    |I see an elf|I'm not an elf|I want to kill the wizard|my mother is an elf|hunting the wizard
    |drinking ale|too excited|we can't"""


def listed(text):
    return [" ".join(part.split()) for part in text.split("|")]


@pytest.mark.parametrize("asked", REQUIRED)
def test_greetings_moods_commands_and_talk_are_noted_as_nothing(asked):
    page = {"name": "Mira"} if asked != "name" else {}
    for words in listed(NOTHING):
        reply, after = tell(words, page, ASKED[asked])
        assert after == page, words
        assert "?" in reply.text, words
        assert not reply.tool_calls, words


@pytest.mark.parametrize("asked", ["ancestry", "class"])
def test_what_one_does_feels_or_comes_from_is_not_what_one_is(asked):
    for words in listed(NOT_WHAT_ONE_IS):
        _, page = tell(words, {"name": "Mira"}, ASKED[asked])
        assert not {"ancestry", "class"} & set(page), words
        assert page["name"] == "Mira", words


ANSWERS = [
    ("clockmaker", "ancestry", {"ancestry": "clockmaker"}),
    ("clockmaker", "class", {"class": "clockmaker"}),
    ("moonkin", "ancestry", {"ancestry": "moonkin"}),
    ("A moonkin!", "ancestry", {"ancestry": "moonkin"}),
    ("hm, a clockmaker", "class", {"class": "clockmaker"}),
    ("I'm a sad clown", "class", {"class": "sad clown"}),
    ("a talking cat", "ancestry", {"ancestry": "talking cat"}),
    ("I think I'm a changeling", "ancestry", {"ancestry": "changeling"}),
    ("beast master", "class", {"class": "beast master"}),
    ("sea captain", "class", {"class": "sea captain"}),
    ("son of fire", "ancestry", {"ancestry": "son of fire"}),
    ("I'm an elf from Rivermouth", "ancestry", {"ancestry": "elf", "background": "from Rivermouth"}),
    ("I want to be a wizard", "class", {"class": "wizard"}),
    ("yes, a halfling", "ancestry", {"ancestry": "halfling"}),
    ("Hello! I'm Mira", "name", {"name": "Mira"}),
    ("Will", "name", {"name": "Will"}),
    ("Old Kesh", "name", {"name": "Old Kesh"}),
    ("Jean-Luc", "name", {"name": "Jean-Luc"}),
    ("Hope Ashdown", "name", {"name": "Hope Ashdown"}),
    ("I go by Mina", "name", {"name": "Mina"}),
    ("I'm from London", "name", {"background": "from London"}),
    ("I'm from London", "ancestry", {"background": "from London"}),
    ("I'm from London.", "class", {"background": "from London"}),
    ("I am from London", "goal", {"background": "from London"}),
    ("from the docks", "background", {"background": "from the docks"}),
    ("London", "background", {"background": "London"}),
    ("I kept an inn until it burned", "background", {"background": "kept an inn until it burned"}),
    ("I sing in taverns", "background", {"background": "I sing in taverns"}),
    ("revenge", "goal", {"goal": "revenge"}),
    ("to see the sea", "goal", {"goal": "to see the sea"}),
    ("get my sister back", "goal", {"goal": "get my sister back"}),
    ("I want to buy a ship", "goal", {"goal": "want to buy a ship"}),
    ("I must enter the academy", "goal", {"goal": "must enter the academy"}),
    ("I look for my brother", "goal", {"goal": "look for my brother"}),
    ("take the throne back", "goal", {"goal": "take the throne back"}),
    ("I live in London", "goal", {"background": "live in London"}),
    ("I'm a halfling", "goal", {"ancestry": "halfling"}),
    ("I'm a dragon", "name", {}),
    ("kill the orc", "goal", {"goal": "kill the orc"}),
    ("revenge on the orc", "goal", {"goal": "revenge on the orc"}),
    ("I want to kill the wizard", "goal", {"goal": "want to kill the wizard"}),
]


@pytest.mark.parametrize(("words", "asked", "expected"), ANSWERS)
def test_what_answers_is_noted_as_it_was_said(words, asked, expected):
    _, page = tell(words, asked=ASKED[asked])
    assert page == expected


def test_where_one_is_from_is_noted_once_and_set_right_when_asked_to():
    page = {"name": "Mira", "background": "grew up on the docks"}
    assert tell("I'm from London", page, ASKED["class"])[1] == page
    _, after = tell("No, I'm from London", page, ASKED["class"])
    assert after == page | {"background": "from London"}


@pytest.mark.parametrize("asked", REQUIRED)
@pytest.mark.parametrize(
    "words", ["I'm tired", "I go north", "hello", "I don't know", "tell me more", "mumble the, of"]
)
def test_what_was_not_understood_is_asked_again_in_other_words_with_examples(words, asked):
    for seed in range(6):
        page = {field: "x" for field in REQUIRED if field != asked}
        reply, patch = answer(page=page, missing=[asked], words=words, asked=ASKED[asked], result="", seed=seed)
        if patch and words.startswith("mumble"):
            continue
        assert patch is None
        assert load("interview")["ideas"][asked] in reply
        assert ASKED[asked] not in reply
        assert reply.endswith("?")


UNENDING = (
    "very ",
    "i want to ",
    "so tired and ",
    "go on the ",
    "a bit ",
    "tired of all ",
    "ok ",
    "  ",
    "hello you ",
    "no ",
)


def test_an_unending_answer_is_read_in_no_time():
    def read_all():
        for part in UNENDING:
            words = part * (199 // len(part))
            for asked in REQUIRED:
                read(words, asked, {})
                read(part * (8000 // len(part)) + "x", asked, {})
            is_talk(words + "#")

    assert cpu_seconds(read_all, 5) < 5


NOBODY = "Zebedee Quill"


@pytest.mark.parametrize("key", keys())
@pytest.mark.parametrize(
    "words",
    [
        "I ask Zebedee Quill about the lamp",
        "ask Zebedee Quill about the bell, the mill, the merchant, the bridge and the masks",
        "talk to Zebedee Quill",
        "Hello Zebedee Quill!",
        "I talk with Zebedee Quill about everything",
        "tell Zebedee Quill about the lamp",
        "give 1 gold to Zebedee Quill",
        "persuade Zebedee Quill to help me",
        "threaten Zebedee Quill",
        "attack Zebedee Quill",
        "I tell Zebedee Quill that my mother's name is Isolde",
    ],
)
def test_nobody_answers_to_a_name_that_nobody_bears(key, words):
    game = Game(luck=15).start(key)
    before = game.page
    reply = game.say(words)
    assert reply in [text.replace("{called}", NOBODY) for text in table("strangers")]
    assert game.page == before
    assert game.told[-1]["rolls"] == []


def test_somebody_of_another_tale_is_nobody_in_this_one():
    game = Game(luck=15).start("bell")
    before = game.page
    assert "Maren Holt" in game.say("I ask Maren Holt about the lamp")
    assert game.page == before
    assert any(
        text.replace("{called}", "Tom Garrow") == game.say("ask Tom Garrow about the bell")
        for text in table("strangers")
    )


def test_who_is_known_from_the_page_is_known_and_not_here():
    game = Game(
        luck=15,
        character={"name": "Mira", "ancestry": "elf", "class": "bard", "background": "x", "goal": "find Isolde"},
    )
    game.start("bell")
    assert game.say("talk to Isolde") in [text.replace("{called}", "Isolde") for text in table("known_from_before")]
    game.page = game.page.apply({"people": {"Old Tobb": {"role": "drunk", "alive": False, "fate": "drowned"}}}).page
    assert "dead" in game.say("talk to Old Tobb") or "not here" in game.say("talk to Old Tobb")


@pytest.mark.parametrize("key", keys())
def test_everybody_of_the_tale_is_still_met_by_name_role_or_pronoun(key):
    told = tale(key)
    strange = [text.split("{called}")[-1] for text in table("strangers")]
    for person, name in told.names.items():
        for called in (
            name,
            name.split()[0],
            f"the {told['people'][person]['role'].title()}",
            "him",
            "everybody",
            "the Crowd",
        ):
            game = Game(luck=15).start(key)
            reply = game.say(f"Ask {called} about the news")
            assert not any(reply.endswith(text) for text in strange), (called, reply)


@pytest.mark.parametrize(
    ("words", "known", "noted"),
    [
        (
            "I was a soldier and now I tend a shrine",
            {"class": "cleric"},
            {"background": "was a soldier and now I tend a shrine"},
        ),
        ("I used to be a smuggler", {}, {"background": "used to be a smuggler"}),
        ("She was once a knight of the realm.", {"class": "bard"}, {"background": "was once a knight of the realm"}),
        ("I was a soldier", {"background": "grew up on the docks"}, {}),
    ],
)
def test_what_they_were_is_where_they_come_from_not_what_they_are(words, known, noted):
    for asked in ("class", ""):
        found = read(words, asked, known)
        assert {name: value for name, value in found.items() if name in ("class", "background")} == noted


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


def test_a_nod_is_no_no():
    game = Game(luck=15).start("inn")
    assert "shake your head" not in game.say("I nod.")
    assert "shake your head" in game.say("no")


def test_what_is_told_to_horses_that_are_not_here_is_heard_by_nobody():
    game = Game(luck=15).start("inn")
    reply = game.say("I tell the horses that I am cold")
    assert reply.startswith("Of the horses there is no sign here")
    assert "hears you out" not in reply
    assert "Ivor Brand" in game.say("I tell the barkeep that I am cold")
