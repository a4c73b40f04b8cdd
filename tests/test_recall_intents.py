"""What a question asks for and what a message asks for good, on talk that nobody wrote for a benchmark."""

import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import EXCHANGES
from langgraph.store.memory import InMemoryStore
from scripted import say

from questbook.graphs.turn.turn import FORGOTTEN
from questbook.memory.ltm.config import LtmConfig
from questbook.memory.ltm.memories import remember_message
from questbook.memory.recall.intents import (
    asks_for_advice,
    asks_for_order,
    asks_for_summary,
    is_standing,
    off_record,
    prefers,
    standing_span,
)
from questbook.memory.timeline.records import may_know

talk = SimpleNamespace(**tomllib.loads(Path(__file__).with_name("everyday_talk.toml").read_text("utf-8")))


@pytest.mark.parametrize(
    ("finds", "yes", "no", "least"),
    [
        (is_standing, talk.STANDING, talk.NOT_STANDING, 0.95),
        (prefers, talk.PREFERENCES, talk.NO_PREFERENCES, 0.9),
        (asks_for_advice, talk.ADVICE, talk.NO_ADVICE, 0.9),
        (asks_for_order, talk.ORDER, f"{talk.PLAIN}\n{talk.SUMMARY}", 1.0),
        (asks_for_summary, talk.SUMMARY, f"{talk.PLAIN}\n{talk.ORDER}", 1.0),
    ],
)
def test_patterns_find_what_people_mean(finds, yes, no, least):
    found = [line for line in yes.splitlines() if finds(line)]
    wrong = [line for line in no.splitlines() if finds(line)]
    missed = [line for line in yes.splitlines() if line not in found]
    assert missed == []
    assert len(found) >= least * len([*found, *wrong]), wrong


def test_the_span_of_an_instruction_is_its_sentence():
    text = "Hi! I live in Oslo now. From now on please use Celsius. Thanks."
    start, end = standing_span(text)
    assert text[start:end].strip() == "From now on please use Celsius."
    assert standing_span("I live in Oslo.") is None


@pytest.mark.parametrize("text", ["From now on, don't use emojis.", "Going forward, do not round my numbers."])
def test_what_one_does_not_want_from_now_on_is_an_instruction_too(text):
    assert is_standing(text)


def test_what_is_pasted_in_the_middle_of_a_long_message_is_no_instruction():
    pasted = "The lamp is on the desk.\n" * 20
    assert not is_standing(f"Look at this manual.\n{pasted}Always unplug the lamp first.\n{pasted}What does it mean?")
    assert is_standing(f"Look at this manual.\n{pasted}Always quote it word for word.")


ASK = """
Don't remember this: my word is Zwiebel.
My PIN is zwiebel. Please don't remember that.
please do not store this
This is off the record: I hate my boss.
Off the record, I hate my boss.
Could you please not remember this?
I don't want you to remember any of this.
Forget what I just said.
Forget I said that.
Keep this out of your memory, please.
Never record what I say about Ann.
My sister is ill, but don't remember that please.
dont remember this
Don’t memorize this.
You should not keep a record of this.
Don't remember my address.
don't write this down: my PIN is zwiebel
Please don't write any of this down.
Don’t jot that down, please.
Let's keep this off the record: I hate my boss.
Let’s not write this down.
Going off the record, I hate my boss.
Let's go off the record. I hate my boss.
Can we go off the record? I hate my boss.
Could you keep this off the record?
I'd like to speak off the record: I hate my boss.
This is off the record, ok?
This stays off the record!
Don't remember this, okay?
Off the record, do you like my boss?
Don't write this down: who is the killer?
What follows is off the record.
I need to go off the record.
May we talk off the record?
"""
DO_NOT = """
I don't remember this place.
Do you not remember that?
Don't you remember this?
I whisper "don't remember this" to the guard.
I whisper “don't remember this” to the guard.
Why don't you remember that?
You don't remember this, do you?
They don't remember it.
I can't remember what I said.
Please remember this.
Forget this dungeon, let's go home.
We don't keep that many horses.
Don't forget this!
He told me to forget it.
The band is off the record label.
Don't keep my horse waiting.
Don't save that village.
Do not store that sword in the barn.
I can never remember what she said.
The record player is off.
It is off the record label.
Keep it off the record player!
Can we go off the record shelf?
He said off the record that the queen is ill.
Is that off the record?
I write this down: never trust a goblin.
Don't write your name down in blood.
Can we go off the road?
Let's keep this horse.
They don't write it down.
Don't remember that, do you?
Let's not keep that horse.
"""


@pytest.mark.parametrize("message", ASK.strip().splitlines())
def test_it_asks(message):
    assert off_record(message)


@pytest.mark.parametrize("message", [*DO_NOT.strip().splitlines(), ""])
def test_it_does_not_ask(message):
    assert not off_record(message)


def test_a_long_message_is_read_in_no_time():
    assert not off_record("please " * 20_000 + "now, " * 20_000)


async def test_such_a_message_is_not_remembered():
    store, config = InMemoryStore(), LtmConfig.of({"ltm_writes": {"min_message_length": 0}})
    assert await remember_message(store, "Miku", "Anon", "Don't remember this: my word is Zwiebel.", config) is None
    assert await remember_message(store, "Miku", "Anon", "My birthday is in May.", config) is not None
    assert "zwiebel" not in str(store._data).lower()


async def test_the_dungeon_master_keeps_that_the_turn_was_played_and_none_of_its_words(game):
    await game.begin()
    game.model.queue("quest", say("Maren nods and says that Zwiebel is a fine word."))
    await game.play("Don't remember this: my word is Zwiebel.")
    kept = {item.value["turn"]: item.value for item in game.store.search(EXCHANGES)}
    assert kept[2]["player"] == kept[2]["reply"] == FORGOTTEN
    assert "zwiebel" not in str(kept).lower()
    assert "sister" in kept[1]["player"]
    assert game.values["remembered_through"] == 2


@pytest.mark.parametrize(
    ("value", "viewer", "may"),
    [
        ({}, [], True), ({"kind": "secret"}, ["Mira"], False), ({"known_by": []}, [], True),
        ({"known_by": 7}, [], True), ({"known_by": ["Oda"]}, [], False),
        ({"known_by": ["Oda", " MIRA "]}, ["mira"], True), ({"known_by": "the player"}, [], True),
        ({"known_by": ["you"]}, [], True), ({"known_by": "Oda"}, ["Mira"], False),
    ],
)  # fmt: skip
def test_a_player_knows_what_is_no_secret_and_what_their_character_is_said_to_know(value, viewer, may):
    assert may_know(value, viewer) is may


@pytest.mark.parametrize(("after", "stands"), [(5, True), (6, False)])
def test_of_a_long_message_the_last_six_sentences_may_instruct(after, stands):
    text = f"{'It rains. ' * 20}Always answer in metric units. {'It snows. ' * after}"
    assert is_standing(text) is stands


def test_what_another_says_is_no_instruction():
    assert is_standing("Always answer in metric units.")
    assert not is_standing("Always answer in metric units, my mother says.")
