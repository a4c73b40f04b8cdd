"""Core memory and facts do not disagree in silence: the prompt says what of core memory a fact has ended."""

from companion_thread import Companion
from scripted import call, say, sections_of

from questbook import keep_valid, note_facts

FACTS = ("adventurer", "companion", "facts")


async def test_the_prompt_says_which_section_is_older_than_a_fact(model):
    thread = Companion(model, core={"human": "Ann lives in Oslo.", "persona": "I am friendly."})
    await thread.say("Hello.", say("Hello, Ann."))

    async def noted(where, turn):
        home = {"text": f"The user lives in {where}.", "subject": "the user", "attribute": "home", "value": where}
        timeline = [tuple(segment) for segment in thread.values["timeline"]]
        await note_facts(thread.store, FACTS, [home], timeline=timeline, turn=turn)

    await noted("Oslo", 1)
    await thread.say("I have news.", say("Tell me."))
    assert '"says"' not in sections_of(model.asked("companion")[-1])
    await noted("Bergen", 2)
    await thread.say("Where do I live?", say("In Bergen."))
    outdated = sections_of(model.asked("companion")[-1]).partition("<outdated>\n")[2].partition("</outdated>")[0]
    assert '"section": "human"' in outdated
    assert '"says": "The user lives in Oslo."' in outdated
    assert '"now": "The user lives in Bergen."' in outdated
    assert "persona" not in outdated


async def test_a_sentence_to_the_offline_companion_ends_a_fact():
    thread = Companion()
    await thread.say("My car is a Volvo.")
    assert await thread.say("What is my car?") == "Your car is a Volvo."
    assert await thread.say("Forget my car.") == "I take this as over: Your car is a Volvo."
    assert "Volvo" not in await thread.say("What is my car?")
    assert "Volvo" not in str(await holding(thread))


async def test_the_offline_companion_says_that_it_cannot_tell_what_else_has_ended():
    thread = Companion()
    for words in ("I sold my boat.", "We broke up.", "Forget my boat."):
        assert "tell me what to forget" in await thread.say(words)


async def test_a_note_of_a_model_ends_a_fact(model):
    thread = Companion(model)
    car = {"text": "The user's car is a Volvo.", "subject": "the user", "attribute": "car", "value": "a Volvo"}
    model.queue("facts", say("", call("Facts", facts=[car])))
    await thread.say("My car is a Volvo.", say("Nice."))
    assert await holding(thread) == ["The user's car is a Volvo."]
    gone = {"text": "The user's car.", "subject": "the user", "attribute": "vehicle", "ends": True}
    model.queue("facts", say("", call("Facts", facts=[gone])))
    await thread.say("Forget my car.", say("Done."))
    assert await holding(thread) == []


async def holding(thread):
    timeline = [tuple(segment) for segment in thread.values["timeline"]]
    items = thread.store.search(FACTS, limit=99)
    return [item.value["text"] for item in await keep_valid(thread.store, items, timeline=timeline)]
