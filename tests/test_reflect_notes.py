"""Facts that are noted in the background: once, on the turn's own branch, and not of what was taken back."""

import pytest
from answering import Talk, visible, written
from desk import Desk
from faulty_stores import Refusing
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from machines import home
from reflecting import Client, ask, conclude
from scripted import call, say

from questbook import FactNotes
from questbook.graphs.reflect.graph import build_graph
from questbook.graphs.turn import api_server
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.timeline import remember


def lives(*towns):
    return say("", call("Facts", facts=[home(town) for town in towns]))


def towns(messages):
    """Notes the towns that the prompt names."""
    named = [town for town in ("Oslo", "Rome") if town in messages[-1].text]
    return lives(*named) if named else say("no change")


class Background:
    """An agent of LangChain's on a server whose runs of `reflect` begin when the test says so."""

    def __init__(self, model, monkeypatch):
        self.model, self.client, self.saver = model, Client(), InMemorySaver()
        monkeypatch.setattr(api_server, "client", lambda: self.client)

    def talk(self, thread="1", store=None, **options):
        notes = FactNotes(noting="background", **options)
        config = {"configurable": {"thread_id": thread, "graph_id": "agent"}}
        talk = Talk(store, thread=config, facts=notes)
        talk.before = lambda: {"configurable": {**talk.state.config["configurable"], "graph_id": "agent"}}
        return talk

    async def run(self, store, *, again=False):
        """Do what the server does with the runs that wait, in their order."""
        waiting = self.client.made if again else self.client.made[-len(self.client.waiting) :]
        for thread, _, fields in list(waiting):
            own = {"configurable": {"thread_id": thread}}
            app = build_graph().compile(checkpointer=self.saver, store=store)
            await app.ainvoke(fields["input"], own, context=fields["context"], durability="sync")
            self.client.thread = {"status": "idle", "values": app.get_state(own).values}
        self.client.waiting.clear()


@pytest.fixture
def background(model, monkeypatch):
    return Background(model, monkeypatch)


async def test_facts_arrive_once_and_the_reply_waits_for_nothing(background):
    talk = background.talk()
    await talk.say("I live in Oslo.")
    assert (len(talk.model.prompts), await talk.sees("facts")) == (1, [])
    given = background.client.made[0][2]["input"]
    assert (given["note_from"], given["notes_only"], given["of_user"], given["thread"]) == (1, True, True, "1")
    background.model.queue("facts", lives("Oslo"))
    await background.run(talk.store)
    assert await talk.sees("facts") == ["The user lives in Oslo."]
    [fact] = talk.store.search(campaign_namespace("ann", "agent:agent", "facts"))
    assert (fact.value["turn"], fact.value["thread"], len(fact.value["messages"])) == (1, "1", 2)
    await background.run(talk.store, again=True)
    await talk.say("Where do I live?")
    assert "lives in Oslo" in talk.model.prompts[-1][0].text
    await background.run(talk.store)
    await talk.say("Bye.")
    assert talk.values["facts_through"] == 2
    asked = [prompt[-1].text for prompt in background.model.asked("facts")]
    assert ["I live in Oslo." in text for text in asked] == [True, False], "each turn was shown once"
    assert written(talk.store, "facts") == ["The user lives in Oslo."]


async def test_turns_that_wait_together_are_noted_each_once(background):
    talk = background.talk()
    for words in ("I live in Oslo.", "Hm.", "I was in Rome."):
        await talk.say(words)
    assert len(background.client.made) == 3, "no turn waits for the next one to be noted"
    background.model.queue("facts", towns, towns, towns)
    await background.run(talk.store)
    assert len(background.model.asked("facts")) == 3
    assert written(talk.store, "facts") == ["The user lives in Oslo.", "The user lives in Rome."]


async def test_a_fork_between_reply_and_notes_leaves_each_fact_on_its_own_branch(background):
    talk = background.talk()
    await talk.say("Hello.")
    before = talk.before()
    await talk.say("I live in Oslo.")
    first = talk.values["timeline"]
    await talk.say("I live in Rome.", before)
    assert talk.values["timeline"] != first
    background.model.queue("facts", towns, towns, towns)
    await background.run(talk.store)
    assert await talk.sees("facts") == ["The user lives in Rome."]
    assert await visible(talk.store, first, "facts") == ["The user lives in Oslo."]
    await talk.say("Where do I live?")
    assert "lives in Oslo" not in talk.model.prompts[-1][0].text


async def test_what_was_undone_before_it_was_noted_is_known_to_no_thread(background):
    talk = background.talk()
    await talk.say("Hello.")
    before = talk.before()
    await talk.say("I live in Oslo.")
    await talk.say("Good night.", before)  # the turn is taken back
    background.model.queue("facts", towns, towns, towns)
    await background.run(talk.store)
    assert written(talk.store, "facts") == ["The user lives in Oslo."], "of the branch that was left"
    other = background.talk("2", talk.store)
    for thread in (talk, other):
        await thread.say("Where do I live?")
        assert "Oslo" not in thread.model.prompts[-1][0].text
    assert await talk.sees("facts") == []


async def test_what_another_thread_noted_ends_where_a_later_turn_says_so(background):
    talk = background.talk()
    await talk.say("I live in Oslo.")
    background.model.queue("facts", lives("Oslo"), lives("Rome"))
    await background.run(talk.store)
    other = background.talk("2", talk.store)
    await other.say("I have moved to Rome.")
    await background.run(talk.store)
    third = background.talk("3", talk.store)
    await third.say("Where is my home?")
    memories = third.model.prompts[-1][0].text
    assert "The user lives in Rome." in memories
    assert "lives in Oslo" not in memories


async def test_nothing_is_noted_of_what_was_forgotten_or_is_private(background):
    talk = background.talk()
    await talk.say("I live in Oslo.")
    for item in talk.store.search(campaign_namespace("ann", "agent:agent", "exchanges")):
        talk.store.delete(item.namespace, item.key)
    await talk.say("Off the record: I live in Rome.")
    await background.run(talk.store)
    assert background.model.asked("facts") == []
    assert written(talk.store, "facts") == []


@pytest.mark.parametrize("fails", ["model", "store"])
async def test_a_failure_loses_nothing_and_is_told_by_the_next_turn(background, fails):
    talk = background.talk(store=Refusing())
    await talk.say("I live in Oslo.")
    background.model.queue("facts", ConnectionError("503") if fails == "model" else lives("Oslo"))
    talk.store.refused = "noted" if fails == "store" else ""
    await background.run(talk.store)
    talk.store.refused = ""
    await talk.say("Hm.")
    assert "What was said was not noted" in talk.values["notices"][-1]["text"]
    background.model.queue("facts", lives("Oslo"))
    await background.run(talk.store)
    assert written(talk.store, "facts") == ["The user lives in Oslo."]


async def test_a_turn_that_has_no_place_yet_is_noted_with_the_next_one(background):
    talk = background.talk(store=Refusing())
    talk.store.refused = "exchange"
    await talk.say("I live in Oslo.")
    assert background.client.made == []
    talk.store.refused = ""
    await talk.say("Hm.")
    background.model.queue("facts", towns, towns)
    await background.run(talk.store)
    assert written(talk.store, "facts") == ["The user lives in Oslo."]


async def test_a_run_that_notes_also_reflects(background):
    talk = background.talk(reflection="background", reflection_importance=5)
    await talk.say("I live in Oslo.")
    assert background.client.made[0][2]["input"]["notes_only"] is False
    background.model.queue("facts", lives("Oslo"))
    background.model.queue("question", ask())
    background.model.queue("conclude", conclude(("They love the north.", ["The user lives in Oslo."])))
    await background.run(talk.store)
    assert await talk.sees("facts") == ["The user lives in Oslo.", "They love the north."]
    other = background.talk("2", talk.store)
    await other.say("What do I love in the north?")
    assert "They love the north." in other.model.prompts[-1][0].text, "it carries the name of the thread it is of"


async def test_a_long_backlog_is_noted_in_portions(background):
    talk = background.talk()
    long = "It rains on the long road to the sea. " * 60
    await talk.say(f"I live in Oslo. {long}")
    await talk.say(f"I was in Rome. {long}")
    background.client.made = background.client.made[-1:]
    background.client.made[0][2]["context"]["buffer_tokens"] = 700
    background.client.waiting = background.client.waiting[-1:]
    background.model.queue("facts", towns, towns)
    await background.run(talk.store)
    assert len(background.model.asked("facts")) == 2
    assert written(talk.store, "facts") == ["The user lives in Oslo.", "The user lives in Rome."]


async def test_without_a_server_facts_are_noted_at_the_end_of_the_turn_and_it_says_so():
    desk = Desk(facts=True)
    desk.model.queue("facts", lives("Oslo"))
    said = {"messages": [("user", "I live in Oslo.")]}
    await desk.app.ainvoke(said, desk.config, context={"noting": "background"})
    assert "not in the background, because this program has no background" in desk.notices[-1]
    assert (desk.values["facts_through"], desk.values["unreflected"]) == (1, 6)


async def test_an_agent_of_build_agent_has_its_facts_noted_in_the_background(background):
    desk = Desk(facts=True, name="desk")
    desk.config["configurable"]["graph_id"] = "desk"
    context = {"noting": "background", "user": "ann", "model": "scripted", "reflection": "off"}
    await desk.app.ainvoke({"messages": [("user", "I live in Oslo.")]}, desk.config, context=context)
    background.model.queue("facts", lives("Oslo"))
    await background.run(desk.store)
    await desk.app.ainvoke({"messages": [("user", "Where do I live?")]}, desk.config, context=context)
    assert "The user lives in Oslo." in desk.prompts("reply")[-1]
    assert desk.values["facts_through"] == 1


async def note_of(store, turns, *, importance=150, **start):
    """Have the turns of a store noted from the first on."""
    context = {"model": "scripted", "user": "ann", "reflection_importance": importance}
    given = {"timeline": [("a", turns)], "turn": turns, "note_from": 1, "notes_only": True}
    return await build_graph().compile(store=store).ainvoke(given | start, context=context)


async def test_notes_catch_up_with_a_hundred_turns_and_with_a_last_one_that_says_nothing(model):
    store, said = InMemoryStore(), [{"player": f"I walk mile {n} of it.", "reply": "Well."} for n in range(1, 151)]
    await remember(store, campaign_namespace("ann", "default", "exchanges"), said, timeline=[("a", 1)], turn=1)
    done = await note_of(store, 151)
    asked = "".join(messages[-1].text for messages in model.asked("facts"))
    assert [f"mile {n} of" in asked for n in (50, 51, 52, 150)] == [False, True, True, True]
    assert done["note_from"] == 152, "the last turn has no words, and is done all the same"
    calls = len(model.calls)
    await note_of(store, 151)
    assert len(model.calls) == calls, "what was noted is not noted again"


@pytest.mark.parametrize("of_user", [True, False])
async def test_the_users_other_threads_see_what_is_noted_if_the_run_says_so(model, of_user):
    store = InMemoryStore()
    said = [{"player": "I live in Oslo.", "reply": "I see."}]
    await remember(store, campaign_namespace("ann", "default", "exchanges"), said, timeline=[("a", 1)], turn=1)
    model.queue("facts", lives("Oslo"))
    await note_of(store, 1, of_user=of_user, thread="t")
    [fact] = await store.asearch(campaign_namespace("ann", "default", "facts"))
    assert fact.value.get("scope") == ("user" if of_user else None)


@pytest.mark.parametrize(
    ("answer", "notes_only", "jobs"),
    [
        (ConnectionError("503"), False, ["facts"]), (ConnectionError("503"), True, ["facts"]),
        (lives("Oslo"), True, ["facts"]), (lives("Oslo"), False, ["facts", "question"]),
    ],
)  # fmt: skip
async def test_after_notes_that_failed_or_are_all_that_is_asked_for_nothing_is_reflected_on(
    model, answer, notes_only, jobs
):
    store = InMemoryStore()
    said = [{"player": "I live in Oslo.", "reply": "I see."}]
    await remember(store, campaign_namespace("ann", "default", "exchanges"), said, timeline=[("a", 1)], turn=1)
    model.queue("facts", answer)
    done = await note_of(store, 1, notes_only=notes_only, importance=1)
    assert [job for job, _ in model.calls] == jobs
    assert bool(done["failed"]) is isinstance(answer, Exception)
