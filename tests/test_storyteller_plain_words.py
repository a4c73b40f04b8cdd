"""Sentences as players write them: what they mean comes of them, and nothing worse."""

from __future__ import annotations

from storyteller_game import Game


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


def test_a_fact_between_other_sentences_is_heard_as_one():
    reply = Game(luck=15).start("bridge").say("I'll help you. My mother's name was Anneke; she kept a lighthouse.")
    assert "“My mother's name was Anneke”" in reply or "“My mother's name was Anneke.”" in reply


def test_anything_useful_is_what_lies_here():
    assert "You take the carter's whip." in Game(luck=15).start("bridge").say("I pick up anything useful")


def test_everything_is_looked_at_as_the_place():
    game = Game(luck=15).start("bridge")
    assert "Fulke Merrow stands on a crate" in game.say("I examine everything closely")


def test_a_lock_that_is_not_there_is_in_nobodys_pocket():
    game = Game(luck=2).start("inn")
    assert "catches your wrist" not in game.say("I pick the lock")
    assert "catches your wrist" in game.say("I pick the pilgrim's pocket")


def test_the_reward_is_remembered_as_the_gold_that_was_offered():
    assert "25 gold" in Game(luck=15).start("mill").say("What do I know about the reward?")
