"""What was said and done is answered with what was said and done, and not with what was only asked or held out."""

from __future__ import annotations

import random

import pytest
from storyteller_game import Game

from questbook.graphs.offline.storyteller.answers import Past, remember
from questbook.graphs.offline.storyteller.language import table


def recalled(subject, question, said, reply):
    """What is remembered where nothing was said and told but this."""
    return remember(subject, question, Past(exchanges=[(said, reply)]), random.Random(1))


def test_what_somebody_said_is_told_with_their_words():
    game = Game(luck=15).start("bell")
    game.say("I ask Widow Garrow about her son")
    game.say("I go to the church")
    game.say("I ask Joss about the bell")
    assert "He said the lights looked lonely." in game.say("what did the widow say about her son?")
    assert "It went like this (2 turns ago): “Slept like the dead." in game.say("What did Joss say about the bell?")
    assert "Slept like the dead." in game.say("what did the sexton tell me?")
    assert "Slept like the dead." in game.say("What did she say?")


@pytest.mark.parametrize("said", ["I attack Rolf Tanner!", "I attack Rolf Tanner."])
def test_a_quotation_keeps_the_mark_at_its_end(said):
    assert f"“{said}”" in recalled("Rolf Tanner", "What did I do to Rolf Tanner?", said, "He steps aside.")


def test_who_spoke_need_not_be_named_but_nobody_else_may_be():
    game = Game(luck=15).start("fair")
    game.say("I ask Rolf about his sister")
    game.say("I go to the mask stall")
    game.say("I talk to the mask seller")
    game.say("I say to her: Who took the memories of these people?")
    assert "“It's the glue." in game.say("What did Perpetua tell me about the masks?")
    told = game.say("What did Rolf say about the ringmaster?")
    assert "She tried on a mask" in told
    assert "the glue" not in told


def test_words_of_the_players_own_are_not_what_somebody_told():
    game = Game(luck=15).start("bridge")
    game.say("I tell Fulke that I'll do it for fifty gold")
    assert "said aloud" not in game.say("What did Fulke tell me?")


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


@pytest.mark.parametrize("question", ["what did I take?", "did I eat the mask?", "What did I give Rolf?"])
def test_what_the_player_never_did_is_not_remembered(question):
    game = Game(luck=15).start("fair")
    game.say("I go to the mask stall")
    game.say("I look at the masks")
    assert game.say(question).startswith("You think it over, and remember nothing of the kind.")


def test_what_the_player_did_is_remembered():
    game = Game(luck=15).start("fair")
    game.say("I go to the mask stall")
    game.say("I take the heron mask")
    game.say("I go back")
    assert "I take the heron mask" in game.say("what did I take?")


def test_who_said_nothing_of_it_is_not_quoted():
    game = Game(luck=15).start("fair")
    told = game.say("What did the baker say about the bread?")
    assert "what did the baker say about the bread" in told.casefold()
    assert not any(told.startswith(opening) for opening in table("remembered"))


def test_a_sentence_out_of_a_speech_keeps_its_quotation_marks():
    told = recalled("Ines", "What do I know about Ines?", "I wait", "“We came by ship. Ines sailed in autumn.”")
    assert told.endswith("It went like this (just now): “Ines sailed in autumn.”")


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ("I tell them that my real parents left me a silver locket", "What did my parents leave me?"),
        ("I tell them that my uncle robbed the abbey of Thule", "What did my uncle rob?"),
        ("I tell them that my cousin hoped for snow", "What did my cousin hope for?"),
    ],
)
def test_what_is_asked_for_in_another_tense_is_remembered(told, asked):
    game = Game(luck=15).start("inn")
    game.say(told)
    game.say("I look around")
    assert told in game.say(asked)
