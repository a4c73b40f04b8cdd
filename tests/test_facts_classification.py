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
        ("OOC: call me Ann", "", "call me Ann"),
        ("ooc: one\nI sit down.", "I sit down.", "one"),
        ("[OOC: slow down a bit] I nod.", "I nod.", "slow down a bit"),
        ("(OOC how long is this?) I nod.", "I nod.", "how long is this?"),
        ("((never closed", "", "never closed"),
        ("I say (softly) hello.", "I say (softly) hello.", ""),
        ("I look for the book of Ooc.", "I look for the book of Ooc.", ""),
        ("", "", ""),
    ],
)
def test_talk_out_of_character_is_parted_from_play(text, spoken, aside):
    assert split_aside(text) == (spoken, aside)


def told(player="", aside="", reply=""):
    return FactOrigin(player, aside, reply, ["Mira Holt", "Mira"])


def fact(text, **fields):
    return Fact(**({"text": text, "kind": "event"} | fields))


def test_what_the_dungeon_master_tells_is_a_fact():
    found = fact("Goran lives at the mill.", kind="trait")
    assert classify_fact(found, told(reply="Goran, it turns out, lives at the mill.")) == found


def test_what_only_the_player_says_is_their_claim():
    found = classify_fact(
        fact("Mira is the heir of Harrow.", kind="trait", subject="Mira"),
        told(player="I am the heir of Harrow!", reply="Oda shrugs."),
    )
    assert (found.kind, found.claimed_by) == ("rumour", "Mira Holt")


def test_what_only_the_player_says_of_themself_is_a_claim_though_other_words_of_it_are_told():
    heirloom = fact("Mira's aunt left her a galleon.", kind="trait", subject="Mira", value="a galleon")
    reply = "Oda looks to the left and says nothing."
    assert classify_fact(heirloom, told(player="My aunt left me a galleon.", reply=reply)).claimed_by == "Mira Holt"
    confirmed = told(player="My aunt left me a galleon.", reply="Your galleon lies in the harbour.")
    assert classify_fact(heirloom, confirmed) == heirloom
    asked = fact("Goran has a galleon.", kind="trait", subject="Goran", value="a galleon")
    assert (
        classify_fact(asked, told(player="Has Goran a galleon?", reply="“He has,” says Oda.")).claimed_by == "Mira Holt"
    )


def test_a_number_that_only_the_player_names_is_their_claim():
    found = classify_fact(
        fact("Mira found 1000 gold.", value="1000 gold", subject="Mira"),
        told(player="I find 1000 gold under the bed.", reply="You look under the bed, and find dust, but no gold."),
    )
    assert (found.kind, found.claimed_by) == ("rumour", "Mira Holt")


def test_what_the_dungeon_master_confirms_is_no_claim():
    found = fact("Mira bought a rope.", subject="Mira")
    assert classify_fact(found, told(player="I buy a rope.", reply="You buy the rope for a crown.")) == found


@pytest.mark.parametrize("kind", ["event", "trait", "secret", "promise", "rumour"])
def test_talk_out_of_character_is_never_of_the_world(kind):
    found = classify_fact(
        fact("There should be no spiders.", kind=kind),
        told(player="I enter the cave.", aside="no spiders please, I hate them", reply="The cave is dark."),
    )
    assert (found.kind, found.of_person) == ("preference", True)


@pytest.mark.parametrize(
    "text",
    [
        "Mira dreamt that the tower burned.",
        "If the bell rings, the lights come.",
        "Goran would have sold the lamp.",
        "Oda imagined a ship in the bay.",
        "Supposedly the tower burned.",
    ],
)
def test_dreams_and_ifs_are_rumours(text):
    assert classify_fact(fact(text), told(reply=text)).kind == "rumour"


def test_what_the_player_is_not_among_the_knowers_of_is_secret():
    known = fact("The lamp is a fake.", known_by=["Goran"])
    assert classify_fact(known, told(reply="The lamp is a fake.")).kind == "secret"
    for knowers in (["Goran", "Mira"], ["the player"], ["mira holt"], []):
        shared = known.model_copy(update={"known_by": knowers})
        assert classify_fact(shared, told(reply="The lamp is a fake.")).kind == "event"


def test_what_the_player_claims_is_no_secret_to_them():
    found = classify_fact(
        fact("Mira is a spy.", kind="secret", claimed_by="Mira"), told(player="I am a spy.", reply="Oda nods.")
    )
    assert found.kind == "rumour"


def test_half_of_the_words_make_a_claim_and_more_than_half_an_aside():
    lamp = fact("Red lamps burn brightly.")
    assert classify_fact(lamp, told(player="Red lamps!", reply="Nobody answers.")).claimed_by == "Mira Holt"
    assert classify_fact(lamp, told(player="Lamps!", reply="Nobody answers.")) == lamp
    assert classify_fact(lamp, told(player="Red lamps!", reply="Something burns.")) == lamp
    assert classify_fact(lamp, told(aside="red lamps please", reply="Nobody answers.")) == lamp
    assert classify_fact(lamp, told(aside="red lamps burn", reply="Nobody answers.")).kind == "preference"
    both = told(aside="red lamps burn", reply="Red lamps burn.")
    assert classify_fact(lamp, both) == lamp, "the reply says as much of it"


def test_a_claim_of_nobody_known_is_the_players():
    origin = FactOrigin("I am a queen of the north.", "", "Oda shrugs.")
    assert classify_fact(fact("A queen of the north came."), origin).claimed_by == "the player"


def test_what_is_claimed_already_or_about_the_player_stays_as_it_is():
    spoken = told(player="I am the heir of Harrow!", reply="Oda shrugs.")
    for fields in ({"claimed_by": "Oda"}, {"of_person": True, "kind": "trait"}, {"kind": "promise"}):
        heir = fact("Mira is the heir of Harrow.", **fields)
        assert classify_fact(heir, spoken) == heir
    oda_knows = fact("Goran hides a key.", kind="secret", claimed_by="Oda")
    assert classify_fact(oda_knows, told(reply="Goran hides a key.")) == oda_knows


def test_a_number_that_the_reply_says_too_is_no_claim():
    gold = fact("Mira found 1000 gold.", value="1000 gold", subject="Mira")
    assert classify_fact(gold, told(player="I find 1000 gold.", reply="You find 1000 gold, indeed.")) == gold


def test_a_fact_without_a_word_is_what_the_model_says():
    dots = fact("…")
    assert classify_fact(dots, told(player="…", aside="…", reply="…")) == dots
