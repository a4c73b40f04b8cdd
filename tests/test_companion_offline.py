"""The offline assistant: it greets, notes, corrects and answers without a model."""

import pytest
from companion_thread import Companion


@pytest.fixture
def offline():
    return Companion()


async def test_offline_it_greets_notes_corrects_and_answers(offline):
    assert "We have not talked before" in await offline.say("Hello")
    await offline.say("My name is Ann and I like tea.")
    assert offline.human == "The user's name is Ann.\nThe user likes tea."
    assert await offline.say("Hi!") == "Hello, Ann! We last spoke just now."
    await offline.say("My name is Anna.")
    assert offline.human == "The user likes tea.\nThe user's name is Anna."
    assert await offline.say("What is my name?") == "Your name is Anna."
    await offline.say("Forget that I like tea")
    assert offline.human == "The user's name is Anna."


async def test_offline_it_answers_from_what_was_said_and_says_when_it_does_not_know(offline):
    assert "archival memory" in await offline.say("archive: The boiler was mended by Olsen in March.")
    assert "mended by Olsen" in await offline.say("Who mended the boiler?")
    assert "I do not know" in await offline.say("What is the capital of France?")
    assert "built-in offline assistant" in await offline.say("Who are you?")


@pytest.mark.parametrize("question", ["what's my dog called?", "What is my dog's name?", "What's the name of my dog?"])
async def test_a_name_is_asked_for_in_many_ways(offline, question):
    await offline.say("I have a dog named Pixel")
    assert await offline.say(question) == "Pixel is your dog."


async def test_a_quotation_ends_with_one_full_stop(offline):
    await offline.say("archive: The boiler was mended by Olsen in March.")
    assert (await offline.say("Who mended the boiler?")).endswith("March.”")


async def test_offline_summaries_are_made_too(offline):
    offline.settings |= {"buffer": "summary", "summary_offset": 0}
    await offline.say("My name is Ann.")
    assert "My name is Ann" in offline.values["summary"]
    assert offline.values["notices"] == []
