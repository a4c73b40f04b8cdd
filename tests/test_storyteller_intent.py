"""Sentences as players write them, and what the storyteller takes them for."""

import pytest

from questbook.graphs.offline.storyteller import language
from questbook.graphs.offline.storyteller.intent import read
from questbook.graphs.offline.storyteller.language import as_said, spoken

READ = """
    I look around carefully | look
    Look around, please. | look
    Anyone here? | look
    who is here? | look
    Can I see anything unusual? | search
    Where should I go first? | help
    Who should I talk to? | help
    What can I do for my sister? | question
    what's the job? | question
    Who attacked me? | recall
    Do I have a mask? | inventory
    do i still have my dagger | inventory
    I hum a song my mother taught me | feel
    I shrug | feel
    I raise an eyebrow | feel
    I roll my eyes | feel
    Shut up, you old hag | feel | Shut up
    I roll for perception | roll
    I nod and go to the mill | go
    I sigh and go to the mill | go
    Ok, I go north | go
    ok, so I would like to quietly go north | go
    Yes, I take the oil | take | oil
    no, I go back | flee
    Ok, let's go to the mill | go | mill
    Sure. | feel | Sure
    I shout, I am so angry | feel
    I sigh and smile | feel | sigh
    mumble, bow and dance | feel | bow
    xyzzy it and inventory |
    How much gold do I have? | inventory
    I write a song |
    I carve a bird into the door | carve
    I name my dog Rex | carve
    My name is Bo? | question
    the password is heron? | question
    where can I go? | ways
    Where do I go now? | ways
    which ways are there? | ways
    What is my armor class? | armour
    What do I do now? | help
    swing my staff at the pike | attack | pike | staff
    I walk around | look
    go through what I carry | inventory
    do you know the keeper? | question
    suddenly I find a sword | claim | a sword
    I find my way home | search
    say hello to Tobb please! | talk | | Tobb
    I tell Rolf not to worry | plant | not to worry | Rolf
    go to the quay and listen | go | quay | | listen
    look and look at the sea | look | | |
    I set off | go
    Which door? I open the left one and go | go
    go and talk to Tobb | go
    rest and recover | rest
    I go back and ask the reeve about my parents | flee | | | ask the reeve about my parents
    I shut the door | use | door
    I set the cup down | use
    I reply to Joss |
    I politely ask Joss about the bell | ask | bell | Joss
    talk to Maren and ask about the keeper | ask
    I keep fighting | attack | | |
    I attack again | attack | | |
    attack the troll once more! | attack | troll
    search again | search | | |
    I search the shed one more time | search | shed
    take the rope against the wall | take | rope against the wall
    take the rope and the oil | take | | |
    give the ring and the letter to Tobb | give
    I offer the troll 10 gold to leave | bribe | 10 gold | troll
    I give the troll 10 gold | give | 10 gold | troll
    Remember: take the oil and go to the quay | plant
    take the oil and go to the quay | take | | | go to the quay
    I light the lamp, then I look at the sea. | use | | | look at the sea
    look at the boats. Search the room. | look | | | Search the room
    take the bread and butter and leave | take | | | leave
    climb down and go back to the landing | climb | | | go back to the landing
    search yet again | search | | |
    search one more time | search | | |
    attack the troll once again | attack | troll
    look, please! | look | | |
    take his ring | take | ring
    take her ring | take | ring
    take their ring | take | ring
    take that ring | take | ring
    take this ring | take | ring
    take some rings | take | rings
    stare at the sea | look | sea
    what do I know about whether the bell rang? | recall | the bell rang
    do I know if the bell rang? | recall | the bell rang
    what do I remember of when he came | recall | he came
    do you remember how we met | recall | we met
    what do I know about who stole it | recall | stole it
    what do I remember that he said | recall | he said
    wait and go north | wait | | | go north
    rest and go north | rest | | | go north
    flee and search the shed | flee | | | search the shed
    drop the rope and go north | drop | rope | | go north
    buy the rope and go north | buy | rope | | go north
    show the ring to Bo and go north | give | ring | Bo | go north
    force the door and go in | force | door | | go in
    climb up and look | climb | | | look
    climb over and look | climb | | | look
    go in and look | go | | | look
    go out and look | go | | | look
    go across and look | go | | | look
    take the rope and persuade Bo | take | rope | | persuade Bo
    take the rope and threaten Bo | take | rope | | threaten Bo
    take the rope and sneak out | take | rope | | sneak out
    take the rope and pick the lock | take | rope | | pick the lock
    take the rope and cast light | take | rope | | cast light
    take the rope and listen | take | rope | | listen
    take the rope and my name is Bo | take | rope | | my name is Bo
    I bow and smile and nod and sit and stand and walk and eat and go north | go
    I shrug, and my inventory | feel | shrug
    I carve a fish |
    I carve on the wall | carve
    where can I find the key? | question
    what is here? | look
    I level up! | claim | that
    Let us go to the tent. | go | tent
    Let us talk to Bo | talk | | Bo
    Let me go to the tent | go | tent
    Let Bo know that I am here | plant | I am here | Bo
    ok, lets go to the tent | go | tent
    Im going to the tent | go | tent
    I gotta go to the tent | go | tent
    I wanna go to the tent | go | tent
    "Who owns this fair?" I ask Bo. | ask | Who owns this fair | Bo
    I ask Bo: Who owns this fair? | ask | Who owns this fair | Bo
    I ask, "What can I do?" | help
    "I will help you," I say. | plant | I will help you
    "Hello!" I say. | talk
    "Hello," I say to Bo. | talk | | Bo
    "Yes," I say. | feel | Yes
    “Thank you,” I say. | feel | Thank
    I say: "Tell me about the bell." | ask | bell
    “I will help you”, I say to Bo. | plant | I will help you | Bo
    I say to Bo: I will help you | plant | I will help you | Bo
    I say to Bo, "I will help you." | plant | I will help you | Bo
    Bo, give me some gold | ask | gold | Bo
    give me a torch | ask | torch
    whats your name | question
    What is it like here? | look
    what's your name | question
    i dont know what to do | help
    I go to the church and tell Joss what the widow said | go | | | tell Joss what the widow said
"""


@pytest.mark.parametrize("line", [line.strip() for line in READ.strip().splitlines()])
def test_a_sentence_is_read_as_it_is_meant(line):
    """A line has the words, the verb, and, where they are given, what, whom, and what is to come after it."""
    words, verb, *rest = (part.strip() for part in line.split("|"))
    intent = read(words)
    assert intent.verb == verb
    assert all(
        not part or part == said for part, said in zip(rest, (intent.what, intent.whom, intent.then), strict=False)
    )
    if len(rest) < 3:
        assert intent.then == "", "it was one thing"


def test_of_a_long_message_the_beginning_is_read():
    assert read("go north " + "x" * 700).what == "north " + "x" * (600 - len("go north "))
    assert read(" . , ") == ("silence", "", "", ". ,", "")


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        ("tell Joss that I am angry and I'm here", "tell Joss that you are angry and you're here"),
        ("I'm looking for my lost axe", "looking for your lost axe"),
        ("I want my ring", "your ring"),
        ("wishes my axe!", "your axe"),
        *[(f"{wish} my axe", "your axe") for wish in ("I would like", "needs", "I need", "hope", "seeks", "I want")],
        ("I was here, I’m mine. me myself", "you were here, you’re yours. you yourself"),
        ("that friend of mine went into the old mine", "that friend of yours went into the old mine"),
        ("x" * 200, "x" * 160),
        ("I want to " + "know the stars " * 12, "to" + " know the stars" * 10 + " know"),
        ("I really have to find my brother. He left us.", "to find your brother"),
        ("I'd like to see St. Ives", "to see St. Ives"),
        ("I’ll kill the king!", "kill the king"),
    ],
)
def test_what_one_said_of_oneself_is_handed_back_in_grammar(goal, said):
    assert spoken(goal) == said


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("I ask Ivor about the hammer.", "the hammer"),
        ("I ask Ivor about my father's hammer", "your father's hammer"),
        ("ask about hammers", "hammers"),
    ],
)
def test_what_is_asked_about_keeps_its_article(said, named):
    bare = said.rstrip(".").split("about ")[1].removeprefix("the ").removeprefix("my ")
    assert as_said(bare, said) == named


RINGS = {"x": "ring", "y": "old ring", "z": "old ring"}


@pytest.mark.parametrize(
    ("function", "arguments", "result"),
    [
        ("series", ([],), ""),
        ("series", (["a"],), "a"),
        ("series", (["a", "b", "c"], "or"), "a, b or c"),
        ("article", ("",), ""),
        ("article", ("oil",), "an oil"),
        ("article", ("Axe",), "an Axe"),
        ("article", ("urn",), "an urn"),
        ("article", ("ring",), "a ring"),
        ("article", ("pins",), "some pins"),
        ("article", ("glass",), "a glass"),
        *[("article", (f"{word} ring",), f"{word} ring") for word in ("a", "an", "The", "some", "your", "his", "her")],
        ("lower", ("Find It.",), "find It"),
        ("upper", ("find It",), "Find It"),
        ("neat", (" “a   b”!; ",), "a b"),
        ("as_said", ("axe", "give our axe"), "your axe"),
        *[("as_said", ("axe", f"give {word} axe"), f"{word} axe") for word in ("a", "the", "his", "her", "their")],
        ("as_said", ("axe", "the axes"), "axe"),
        ("as_said", ("", "the "), ""),
        *[("stem", (word,), stem) for word, stem in (("ladies", "lady"), ("ties", "tie"), ("bus", "bus"))],
        *[("stem", (word,), stem) for word, stem in (("glass", "glass"), ("rings", "ring"), ("gas", "gas"))],
        ("match", ("old rings", RINGS, RINGS), "y"),
        ("match", ("cat", RINGS, RINGS), None),
        ("match", ("the", ["the"]), None),
        ("match", ("ring cat", ["x", "ring"], {"x": "ring cat", "ring": "ring cat"}), "ring"),
        ("short", ("Maren Holt",), "Maren"),
        ("short", ("Old Tobb",), "Old Tobb"),
        ("short", ("",), ""),
        ("calls", ("tobb", "Old Tobb"), True),
        ("calls", ("old", "Old Tobb"), False),
        ("calls", ("holt", "Maren Holt"), False),
        ("roots", ("What is the ring of Mira’s rings?",), ["ring", "mira"]),
        ("roots", ("the coins dad hid, and wells",), ["gold", "father", "hide", "well"]),
        ("fill", ({"{a}": ["{a}{b}", 1]}, {"a": "x"}), {"x": ["x{b}", 1]}),
        ("entries", ({1: 2},), [("1", 2)]),
        ("entries", (["a"],), []),
    ],
)
def test_phrases_are_put_together_and_compared_as_people_do(function, arguments, result):
    assert getattr(language, function)(*arguments) == result


def test_a_past_form_answers_to_its_word():
    assert {"kick", "hope", "rob"} <= language.bases(["kicked", "hoped", "robbed"])
    assert language.bases(["red", "need"]) == {"red", "need"}
