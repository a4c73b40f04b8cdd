"""Sentences as players write them: what they mean comes of them, and nothing worse."""

from __future__ import annotations

import pytest
from storyteller_game import Game

from questbook.graphs.offline.storyteller.intent import read
from questbook.graphs.offline.storyteller.language import spoken


@pytest.mark.parametrize(
    ("words", "verb", "rest"),
    [
        ("Do I have a mask?", "inventory", ("", "")),
        ("do i still have my dagger", "inventory", ("", "")),
        ("I politely ask Joss about the bell", "ask", ("bell", "Joss")),
        ("I reply to Joss", "", ("I reply to Joss", "")),
        ("Shut up, you old hag", "feel", ("Shut up", "")),
        ("I shut the door", "use", ("door", "")),
        ("I keep fighting", "attack", ("", "")),
        ("I offer the troll 10 gold to leave", "bribe", ("10 gold", "troll")),
        ("I give the troll 10 gold", "give", ("10 gold", "troll")),
    ],
)
def test_a_sentence_is_read_as_it_is_meant(words, verb, rest):
    intent = read(words)
    assert (intent.verb, intent.what, intent.whom) == (verb, *rest)


def test_the_second_of_two_deeds_may_be_to_tell_somebody_something():
    intent = read("I go to the church and tell Joss what the widow said")
    assert (intent.verb, intent.then) == ("go", "tell Joss what the widow said")
    assert read("climb down and go back to the landing").then == "go back to the landing"


def test_climbing_down_leads_down():
    game = Game(luck=3).start("bell")
    game.say("I go to the church")
    assert game.say("I climb up to the belfry")
    assert game.page.location == "the Belfry"
    game.say("I climb down the ladder")
    assert game.page.location == "the Church"
    game.say("climb up")
    assert game.page.location == "the Belfry"


def test_going_over_to_somebody_is_meeting_them():
    assert "Widow Garrow" in Game(luck=15).start("bell").say("I go over to the widow").split(";")[0]


def test_who_is_called_absent_is_asked_nothing_and_nothing_is_cranked():
    game = Game(luck=15).start("bell")
    game.say("I go to the church")
    game.say("I go to the belfry")
    assert game.say("I politely ask Joss who stole the bell").startswith("Joss Hallow is not here.")


def test_a_fight_goes_on_with_him_and_a_bare_blow_falls_on_nobody_else():
    game = Game(luck=3).start("bell")
    assert game.say("I attack").startswith("You square up to the empty air.")
    for words in (
        "I punch the widow",
        "I attack",
        "I hit her again with my sword",
        "I keep fighting",
        "I cast fire bolt",
    ):
        reply = game.say(words)
        assert "Widow Garrow is barely scratched." in reply
        assert "the Widow Garrow" not in reply
        assert "The Widow Garrow" not in reply
    assert "barely scratched" not in game.say("I cast cure wounds on myself")
    assert "You raised your hand against me." in game.say("I talk to the widow")


def test_waiting_until_an_hour_waits_until_then():
    game = Game(luck=15).start("bell")
    game.say("I wait until nightfall")
    assert game.page.clock.time == "night"
    game.say("I wait")
    assert game.page.clock.time == "dawn"


def test_what_is_named_keeps_its_article():
    game = Game(luck=15).start("fair")
    assert "“the tavern”" in game.say("I go to the tavern")
    game.say("I go to the mask stall")
    assert game.say("I buy the heron mask").startswith("Nobody here sells “the heron mask”. The heron mask is here")


def test_a_bribe_costs_what_was_offered():
    game = Game(luck=20).start("bridge")
    game.say("I go to the bridge")
    gold = game.page.gold
    game.say("I offer the troll 7 gold to leave")
    assert game.page.gold == gold - 7
    assert "nothing between them" in game.say("I offer the troll 900 gold to leave")


def test_what_one_said_of_oneself_is_handed_back_in_grammar():
    assert spoken("tell Joss that I am angry and I'm here") == "tell Joss that you are angry and you're here"


def test_a_fact_between_other_sentences_is_heard_as_one():
    reply = Game(luck=15).start("bridge").say("I'll help you. My mother's name was Anneke; she kept a lighthouse.")
    assert "“My mother's name was Anneke”" in reply or "“My mother's name was Anneke.”" in reply


@pytest.mark.parametrize(
    ("words", "verb"),
    [
        ("I look around carefully", "look"),
        ("Where should I go first?", "help"),
        ("Who should I talk to?", "help"),
        ("What can I do for my sister?", "question"),
        ("I hum a song my mother taught me", "feel"),
        ("I shrug", "feel"),
        ("I nod and go to the mill", "go"),
    ],
)
def test_what_was_taken_for_something_else(words, verb):
    assert read(words).verb == verb


def test_anything_useful_is_what_lies_here():
    assert "You take the carter's whip." in Game(luck=15).start("bridge").say("I pick up anything useful")


@pytest.mark.parametrize(
    ("words", "verb"),
    [
        ("I raise an eyebrow", "feel"),
        ("I roll my eyes", "feel"),
        ("I roll for perception", "roll"),
        ("I set off", "go"),
        ("I set the cup down", "use"),
        ("Anyone here?", "look"),
        ("Can I see anything unusual?", "search"),
        ("I go back and ask the reeve about my parents", "flee"),
        ("what's the job?", "question"),
        ("who is here?", "look"),
        ("Look around, please.", "look"),
    ],
)
def test_turns_of_phrase(words, verb):
    assert read(words).verb == verb


def test_everything_is_looked_at_as_the_place():
    game = Game(luck=15).start("bridge")
    assert "Fulke Merrow stands on a crate" in game.say("I examine everything closely")


def test_a_goal_is_handed_back_as_a_goal():
    assert spoken("I'm looking for my lost axe") == "looking for your lost axe"
    assert spoken("I want my ring") == "your ring"


def test_a_lock_that_is_not_there_is_in_nobodys_pocket():
    game = Game(luck=2).start("inn")
    assert "catches your wrist" not in game.say("I pick the lock")
    assert "catches your wrist" in game.say("I pick the pilgrim's pocket")


def test_the_reward_is_remembered_as_the_gold_that_was_offered():
    assert "25 gold" in Game(luck=15).start("mill").say("What do I know about the reward?")
