"""An agent that notes facts: what holds, in all threads of the user, and what is concluded from it."""

from desk import Desk, TicketNotebook
from langgraph.store.memory import InMemoryStore
from scripted import call, say

from questbook.memory.timeline.namespaces import campaign_namespace

FACTS = campaign_namespace("adventurer", "agent:agent", "facts")


def fact(value, text):
    return say("", call("Facts", facts=[{"text": text, "subject": "the user", "attribute": "home", "value": value}]))


async def test_facts_are_noted_after_the_reply_and_known_in_other_threads_as_they_hold_now():
    store = InMemoryStore()
    first, other = Desk(facts=True, store=store), Desk(facts=True, store=store)
    await first.say("I live in Oslo.", facts=fact("Oslo", "The user lives in Oslo."))
    await other.say("Where do I live?")
    assert "The user lives in Oslo." in other.prompts("reply")[-1]
    await other.say("I have moved to Rome.", facts=fact("Rome", "The user lives in Rome."))
    before = first.app.get_state(first.config).config
    await first.say("What is my address?")
    prompt = first.prompts("reply")[-1]
    assert "The user lives in Rome." in prompt
    assert "The user lives in Oslo." not in prompt.split("<memories>\n")[1]
    await first.say("I have moved to Bonn.", facts=fact("Bonn", "The user lives in Bonn."))
    await first.say("Where is my home?", config=before)  # a fork from before it
    new = Desk(facts=True, store=store)
    await new.say("Where do I live?")
    for desk in (first, new):
        assert "The user lives in Rome." in desk.prompts("reply")[-1]
        assert "Bonn" not in desk.prompts("reply")[-1]


async def test_enough_facts_are_reflected_on():
    desk = Desk(facts=True)
    question = say("", call("Questions", questions=["Where is the user at home?"]))
    insight = {"text": "The user moves often.", "cites": [1], "importance": 6}
    desk.model.queue("question", question)
    desk.model.queue("conclude", say("", call("Reflection", insights=[insight], contradictions=[])))
    desk.model.queue("facts", fact("Oslo", "The user lives in Oslo."))
    context = {"user": "adventurer", "reflection_importance": 3}
    await desk.app.ainvoke({"messages": [("user", "I live in Oslo.")]}, desk.config, context=context)
    kinds = {item.value["kind"]: item.value["text"] for item in await desk.store.asearch(FACTS)}
    assert kinds["insight"] == "The user moves often."
    assert desk.values["unreflected"] == 0


async def test_without_facts_no_model_is_asked_for_any_and_there_are_no_settings_of_reflections():
    desk = Desk(TicketNotebook)
    await desk.say("I live in Oslo.")
    assert desk.model.asked("facts") == []
    assert "reflection" not in desk.builder.context_schema.model_fields
    assert "learn" not in desk.app.nodes
