"""Claims, dreams, ifs and talk out of character are kept as what they are, whatever a model says."""

import pytest

from questbook.graphs.dungeon_master.facts import FactOrigin, classify_fact, split_aside
from questbook.memory.facts.fact import Fact


@pytest.mark.parametrize(
    ("text", "spoken", "aside"),
    [
        ("I open the door ((brb, phone))", "I open the door", "brb, phone"),
        ("((no spiders please)) I go on", "I go on", "no spiders please"),
        ("I wait. OOC: I must leave at nine", "I wait.", "I must leave at nine"),
        ("OOC: call me Ann", "", "call me Ann"), ("ooc: one\nI sit down.", "I sit down.", "one"),
        ("[OOC: slow down a bit] I nod.", "I nod.", "slow down a bit"),
        ("(OOC how long is this?) I nod.", "I nod.", "how long is this?"), ("((never closed", "", "never closed"),
        ("((brb,\nphone)) I go on", "I go on", "brb,\nphone"),
        ("I say (softly) hello.", "I say (softly) hello.", ""),
        ("I look for the book of Ooc.", "I look for the book of Ooc.", ""), ("", "", ""),
    ],
)  # fmt: skip
def test_talk_out_of_character_is_parted_from_play(text, spoken, aside):
    assert split_aside(text) == (spoken, aside)


def told(player="", aside="", reply=""):
    return FactOrigin(player, aside, reply, ["Mira Holt", "Mira"])


def fact(text, **fields):
    return Fact(**({"text": text, "kind": "event"} | fields))


HEIR = fact("Mira is the heir of Harrow.", kind="trait", subject="Mira")
BOASTS = told(player="I am the heir of Harrow!", reply="Oda shrugs.")
GALLEON = fact("Mira's aunt left her a galleon.", kind="trait", subject="Mira", value="a galleon")
GORANS = fact("Goran has a galleon.", kind="trait", subject="Goran", value="a galleon")
GOLD = fact("Mira found 1000 gold.", value="1000 gold", subject="Mira")
LAMPS = fact("Red lamps burn brightly.")


@pytest.mark.parametrize(
    ("what", "player", "reply"),
    [
        (HEIR, "I am the heir of Harrow!", "“Mira!” says Oda, and shrugs."),  # a name confirms nothing
        (GALLEON, "My aunt left me a galleon.", "Oda looks to the left and says nothing."),
        (GORANS, "Has Goran a galleon?", "“He has,” says Oda."),
        (GOLD, "I find 1000 gold under the bed.", "You look under the bed, and find dust, but no gold."),
        (LAMPS, "Red lamps!", "Nobody answers."),  # half of the words
    ],
)
def test_what_only_the_player_says_is_their_claim(what, player, reply):
    found = classify_fact(what, told(player, reply=reply))
    assert (found.kind, found.claimed_by) == ("rumour", "Mira Holt")
    queen = FactOrigin("I am a queen of the north.", "", "Oda shrugs.")
    assert classify_fact(fact("A queen of the north came."), queen).claimed_by == "the player", "who has no name yet"


@pytest.mark.parametrize(
    ("what", "origin"),
    [
        (fact("Goran lives at the mill.", kind="trait"), told(reply="Goran, it turns out, lives at the mill.")),
        (GALLEON, told(player="My aunt left me a galleon.", reply="Your galleon lies in the harbour.")),
        (fact("Mira bought a rope.", subject="Mira"), told("I buy a rope.", reply="You buy the rope for a crown.")),
        (GOLD, told(player="I find 1000 gold.", reply="You find 1000 gold, indeed.")),
        (LAMPS, told(player="Lamps!", reply="Nobody answers.")),
        (LAMPS, told(player="Red lamps!", reply="Something burns.")),
        (LAMPS, told(aside="red lamps please", reply="Nobody answers.")),
        (LAMPS, told(aside="red lamps burn", reply="Red lamps burn.")),  # the reply says as much of it
        (fact("…"), told(player="…", aside="…", reply="…")),
        (HEIR.model_copy(update={"claimed_by": "Oda"}), BOASTS),
        (HEIR.model_copy(update={"of_person": True}), BOASTS),
        (HEIR.model_copy(update={"kind": "promise"}), BOASTS),
        (fact("Goran hides a key.", kind="secret", claimed_by="Oda"), told(reply="Goran hides a key.")),
    ],
)
def test_what_the_dungeon_master_tells_or_is_judged_already_stays_as_it_is(what, origin):
    assert classify_fact(what, origin) == what


@pytest.mark.parametrize("kind", ["event", "trait", "secret", "promise", "rumour"])
def test_talk_out_of_character_is_never_of_the_world(kind):
    origin = told(player="I enter the cave.", aside="no spiders please, I hate them", reply="The cave is dark.")
    found = classify_fact(fact("There should be no spiders.", kind=kind), origin)
    assert (found.kind, found.of_person) == ("preference", True)
    assert classify_fact(LAMPS, told(aside="red lamps burn", reply="Nobody answers.")).kind == "preference"


@pytest.mark.parametrize(
    "text",
    [
        "Mira dreamt that the tower burned.", "If the bell rings, the lights come.", "Supposedly the tower burned.",
        "Goran would have sold the lamp.", "Oda imagined a ship in the bay.",
    ],
)  # fmt: skip
def test_dreams_and_ifs_are_rumours(text):
    assert classify_fact(fact(text), told(reply=text)).kind == "rumour"


def test_what_the_player_is_not_among_the_knowers_of_is_secret_and_their_own_claim_is_not():
    known, shown = fact("The lamp is a fake.", known_by=["Goran"]), told(reply="The lamp is a fake.")
    assert classify_fact(known, shown).kind == "secret"
    everybody = ["player", "player character", "The Party", "party", "you", "PC", "everyone", "Everybody", "all"]
    for knowers in (["Goran", "Mira"], ["the player"], ["mira holt"], ["Holt"], [], *([one] for one in everybody)):
        assert classify_fact(known.model_copy(update={"known_by": knowers}), shown).kind == "event"
    own = fact("Mira is a spy.", kind="secret", claimed_by="Mira")
    assert classify_fact(own, told(player="I am a spy.", reply="Oda nods.")).kind == "rumour"
