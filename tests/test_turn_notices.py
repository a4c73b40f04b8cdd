"""What a person is told of errors: words of theirs, and nothing of what was put right."""

import re

import pytest
from conftest import MIRA
from fact_play import play
from scripted import call, malformed, say

JARGON = re.compile(
    r"StateNotebook|CharacterNotebook|Notebook|\bFacts\b|Person|instance of|dictionary|none that there is|\btool\b|"
    r"roll_dice|update_state|JSON|\bnode\b|channel|traceback|_\w+\(|questbook\.",
    re.I,
)
BAD_PAGE = call("StateNotebook", people={"Goran": "the smith"}, gold="much", condition={"max_hp": 99})
BAD_FACT = {"text": "", "kind": 7}


def texts(game):
    return [entry["text"] for entry in game.values["notices"]]


@pytest.mark.parametrize(
    "answer",
    [
        say("", BAD_PAGE),
        say("", call("NoSuchTool", gold=1)),
        malformed("StateNotebook", '{"gold": '),
        say("I would note that {gold: 7} and much more. " * 20),
        say("", call("Facts", facts=[BAD_FACT, 7, {"text": "Oda sings.", "kind": "song", "importance": "very"}])),
        say(""),
    ],
    ids=["page", "tool", "unreadable", "prose", "facts", "nothing"],
)
async def test_errors_of_the_notes_are_told_in_plain_words(game, answer):
    await game.begin()
    game.model.queue("update", *[answer] * 4)
    await game.play("I look around.")
    assert [text for text in texts(game) if JARGON.search(text)] == []


async def test_of_what_was_mended_nothing_is_told(game):
    await game.begin()
    before = texts(game)
    game.model.queue("update", say("", BAD_PAGE), say("", call("StateNotebook", gold=7)))
    await game.play("I count my gold.")
    await play(game, "I listen.", {"text": "Oda sings.", "kind": "song", "importance": "very", "mood": "sad"})
    assert game.values["quest"]["gold"] == 7
    assert texts(game) == before


async def test_a_note_of_the_interview_that_was_mended_is_not_told_and_another_in_plain_words(new_game):
    game = new_game()
    wrong = call("CharacterNotebook", **MIRA | {"level": 99})
    game.model.queue("interview", say("And?", wrong), say("", call("CharacterNotebook", **MIRA)))
    await game.play("I am Mira.")
    assert (game.values["character"]["name"], texts(game)) == (MIRA["name"], [])
    other = new_game()
    other.model.queue("interview", *[say("And?", wrong)] * 3)
    await other.play("I am Mira.")
    [told] = texts(other)
    assert not JARGON.search(told)
    assert "level" in other.values["notices"][0]["detail"]
