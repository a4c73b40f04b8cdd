"""What the companion recalls by itself: nothing that has nothing to do with the message."""

import pytest
from companion_thread import Companion
from langgraph.store.memory import InMemoryStore
from scripted import call, say, sections_of

from questbook.memory.embeddings.embedders import HashEmbeddings

SAID = ["My cat Miso sleeps on the keyboard.", "I bake sourdough bread.", "The tram to work was late again."]


async def told(model, **settings):
    store = InMemoryStore(index={"dims": 512, "embed": HashEmbeddings(), "fields": ["text"]})
    talk = Companion(model, store=store, buffer="turns", buffer_turns=0, **settings)
    model._stock["companion"] = say("Ah.")
    for words in SAID:
        await talk.say(words)
    return talk


def recalled(talk):
    prompt = sections_of(talk.model.asked("companion")[-1])
    return [words for words in SAID if words in prompt]


async def test_what_shares_a_word_or_its_spelling_comes_and_the_rest_does_not(model):
    talk = await told(model)
    await talk.say("How is Miso?")
    assert SAID[0] in recalled(talk)
    await talk.say("Zurich, 1987?")
    assert recalled(talk) == []
    await talk.say("Sourdoughbread!")
    assert SAID[1] in recalled(talk)


async def test_what_was_said_at_the_time_that_is_named_comes(model):
    talk = await told(model)
    await talk.say("Anything from today?")
    assert set(recalled(talk)) == set(SAID)


@pytest.mark.parametrize("settings", [{"max_cosine_distance": 2.0}, {"weights": {"scoring": "generative_agents"}}])
async def test_settings_that_say_otherwise_hold(model, settings):
    talk = await told(model, **settings)
    await talk.say("Zurich, 1987?")
    assert recalled(talk) == SAID


async def test_a_withheld_turn_is_neither_recalled_nor_listed(model):
    talk = await told(model)
    await talk.say("Don't remember this: I forgot my keys.")
    await talk.say("What have you forgotten today?")
    assert "[forgotten]" not in sections_of(model.asked("companion")[-1])
    today = call("conversation_search_date", start_date="today", end_date="today")
    await talk.say("List it.", say("", today), say("There."))
    assert "of 4" in talk.results[-1].text
    assert "[forgotten]" not in talk.results[-1].text
