"""Who is spoken to answers, and to what was asked; who is told to do something is not told a secret."""

from __future__ import annotations

import pytest
from storyteller_game import Game

from questbook.graphs.offline.storyteller.intent import read


def test_somebody_asked_for_a_name_gives_their_own():
    game = Game(luck=15).start("bridge")
    for words, name in (
        ("What's your name?", "Fulke Merrow"),
        ("I ask him what his name is", "Fulke Merrow"),
        ("go to the bridge", "Gnarl"),
        ("What's your name, troll?", "Gnarl"),
        ("Who are you and what do you want?", "Gnarl"),
    ):
        assert name in game.say(words)


def test_what_is_asked_of_somebody_is_answered_by_them_and_not_from_memory():
    game = Game(luck=15).start("bridge")
    game.say("go to the bridge")
    assert "“A tenth of the toll, by charter." in game.say("Why are you sitting here?")
    assert "Gnarl" in game.say("Have you seen my brother?")


@pytest.mark.parametrize("words", ["What's going on here?", "what's the matter here?", "I ask Rolf what happened"])
def test_what_is_the_matter_is_told_by_who_is_here(words):
    assert "“She tried on a mask" in Game(luck=15).start("fair").say(words)


def test_a_question_about_the_players_own_goes_to_memory():
    game = Game(luck=15).start("fair")
    game.say("My brother wore a silver ring.")
    assert "My brother wore a silver ring." in game.say("What ring did my brother wear?")
    assert "get her sister back" in game.say("What do I want?")
    assert "Rolf Tanner: bailiff" in game.say("Who have I met so far?")
    assert read("Who attacked me?").verb == "recall"
    assert read("What should I do next?").verb != "recall"


def test_a_clause_is_not_handed_back_as_a_topic():
    game = Game(luck=15).start("bridge")
    for _ in range(6):
        reply = game.say("What happened to Fulke?")
        assert "What happened" not in reply
        assert "happened to" not in reply


def test_who_is_told_to_do_something_is_told_no_fact():
    game = Game(luck=15).start("fair")
    for _ in range(3):
        reply = game.say("I tell Rolf to wait for me here")
        assert "wait for you here" in reply.casefold()
        assert "to wait for me" not in reply
    assert "not to worry" in game.say("I tell Rolf not to worry")


def test_what_is_told_to_somebody_absent_is_not_heard_by_who_is_here():
    game = Game(luck=15).start("fair")
    game.say("I go to the mask stall")
    assert "Perpetua" not in game.say("I tell Rolf that my ring is gone").split(". It will keep.")[0]
    assert "what Rolf said" in game.say("I tell Perpetua what Rolf said")


def test_what_is_asked_of_nobody_by_name_is_asked_of_who_is_here():
    reply = Game(luck=15).start("fair").say("I ask who is in charge here.")
    assert "Rolf Tanner" in reply.split("\n\n")[0]
    assert "“I ask who" not in reply
