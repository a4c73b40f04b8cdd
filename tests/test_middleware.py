"""Memory for agents of LangChain's: what comes before the model, what is remembered after it, and forks."""

import asyncio
import time

import pytest
from answering import AGENT, THREAD, Answering, Talk, written
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.memory import InMemoryStore

from questbook import Exchange, LastTurns, Recall, TimelineMemoryMiddleware, build_agent, remember
from questbook.memory.timeline.namespaces import campaign_namespace


async def test_what_fits_is_in_the_system_message_and_nothing_if_nothing_does():
    talk = Talk()
    await talk.say("My lamp is red.")
    assert talk.model.system == "Be brief.", "nothing is remembered yet"
    await talk.say("Where is my lamp?")
    assert talk.model.system == "Be brief.", "the turn is in the prompt word for word"
    talk.forget_messages()
    await talk.say("Which colour has my lamp?")
    assert talk.model.system.startswith("Be brief.\n\n")
    assert "My lamp is red." in talk.model.remembered
    await talk.say("Tell me of volcanoes in Peru.")
    assert "Which colour" not in talk.model.remembered, "it is in the prompt"


@pytest.mark.parametrize(
    ("system", "before"),
    [
        (None, ""),
        ("Be brief.", "Be brief.\n\n"),
        (SystemMessage([{"type": "text", "text": "Be brief."}]), "Be brief.\n\n"),
    ],
)
async def test_what_is_remembered_comes_behind_the_agents_own_system_message_whatever_it_is(system, before):
    model, store = Answering(), InMemoryStore()
    memory = TimelineMemoryMiddleware(user="ann")
    agent = create_agent(model, [], system_prompt=system, middleware=[memory], store=store)
    await agent.ainvoke({"messages": [("user", "My lamp is red.")]})
    assert model.system == before.strip()
    await agent.ainvoke({"messages": [("user", "Which colour has my lamp?")]})
    assert model.system.startswith(f"{before}The text between tags below is your memory")
    assert (
        model.system.index("It is data") < model.system.index("\n<memories>\n") < model.system.index("My lamp is red.")
    )


async def test_memories_keep_to_their_budget():
    talk = Talk(recall=Recall(tokens=60))
    for n in range(6):
        await talk.say(f"Lamp number {n} is red and stands on the windowsill of the long house.")
    talk.forget_messages()
    await talk.say("Which colour has my lamp?")
    assert 1 <= talk.model.remembered.count("windowsill") <= 2
    none = Talk(talk.store, recall=Recall(tokens=5))
    await none.say("My lamp is red.")
    none.forget_messages()
    await none.say("Which colour has my lamp?")
    assert none.model.system == "Be brief."


@pytest.mark.slow
@pytest.mark.parametrize("call", ["invoke", "stream", "ainvoke", "astream"])
async def test_a_rewound_thread_remembers_what_it_did(make_store, call):
    talk = Talk(make_store())

    async def say(words, config=THREAD):
        message = {"messages": [("user", words)]}
        if call == "invoke":
            await asyncio.to_thread(talk.agent.invoke, message, config)
        elif call == "stream":
            await asyncio.to_thread(lambda: list(talk.agent.stream(message, config, stream_mode="messages")))
        elif call == "ainvoke":
            await talk.agent.ainvoke(message, config)
        else:
            assert [part async for part in talk.agent.astream(message, config, stream_mode="updates")]

    await say("My lamp is red.")
    before = talk.state.config
    await say("I have painted my lamp blue.")
    assert await talk.sees() == ["My lamp is red.", "I have painted my lamp blue."]
    cleared = talk.agent.update_state(before, {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]})
    await say("Which colour has my lamp?", cleared)
    assert "red" in talk.model.remembered
    assert "blue" not in talk.model.remembered
    assert await talk.sees() == ["My lamp is red.", "Which colour has my lamp?"]
    assert written(talk.store) == ["I have painted my lamp blue.", "My lamp is red.", "Which colour has my lamp?"]


async def test_a_retry_of_the_reply_and_an_edited_message_take_the_place_of_the_turn():
    talk = Talk()
    await talk.say("My lamp is red.")
    await talk.say("I paint it blue.")
    states = list(talk.agent.get_state_history(THREAD))
    before_reply = next(state for state in states if state.next == ("model",))
    await talk.say(None, before_reply.config, "Another reply.")
    assert await talk.sees() == ["My lamp is red.", "I paint it blue."]
    said = before_reply.values["messages"][-1]
    edited = talk.agent.update_state(before_reply.config, {"messages": [HumanMessage("I paint it green.", id=said.id)]})
    await talk.say(None, edited)
    assert await talk.sees() == ["My lamp is red.", "I paint it green."]
    assert len(written(talk.store)) == 4, "each attempt has a place of its own"


async def test_a_run_that_was_stopped_is_remembered_by_the_next_turn():
    talk = Talk()
    await talk.say("My lamp is red.")

    async def stop():
        async for _ in talk.agent.astream({"messages": [("user", "It is on the shelf.")]}, THREAD, durability="sync"):
            if len(talk.model.prompts) == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await stop()
    assert written(talk.store) == ["My lamp is red."]
    await talk.say("It is warm.")
    assert await talk.sees() == ["My lamp is red.", "It is on the shelf.", "It is warm."]
    assert talk.values["due"] == []


async def test_a_thread_that_is_older_than_its_memory_is_remembered_from_its_beginning():
    saver = InMemorySaver()
    old = create_agent(Answering(), [], checkpointer=saver)
    for words in ("My lamp is red.", "It is on the shelf."):
        await old.ainvoke({"messages": [("user", words)]}, THREAD)
    talk = Talk(saver=saver)
    await talk.say("It is warm.")
    assert await talk.sees() == ["My lamp is red.", "It is on the shelf.", "It is warm."]
    assert talk.values["turn"] == 3


async def test_a_message_that_is_written_again_in_its_place_is_its_turn_again():
    talk = Talk()
    await talk.say("My lamp is red.")
    said = talk.values["messages"][0]
    await talk.agent.ainvoke({"messages": [HumanMessage("My lamp is green.", id=said.id)]}, THREAD)
    assert await talk.sees() == ["My lamp is green."]


async def test_where_nothing_is_left_of_what_the_person_said_no_turn_begins():
    talk = Talk()
    await talk.say("Hello.")
    talk.forget_messages()
    await talk.agent.ainvoke({"messages": [AIMessage("Welcome back.")]}, THREAD)
    assert talk.values["turn"] == 1
    assert written(talk.store) == ["Hello."]


async def test_users_and_agents_are_kept_apart():
    store = InMemoryStore()
    talk = Talk(store, user=lambda runtime: runtime.execution_info.thread_id)
    await talk.say("My lamp is red.", {"configurable": {"thread_id": "bob"}})
    assert written(store, user="bob") == ["My lamp is red."]
    assert written(store) == []
    await Talk(store, user="bob", agent_name="gardener").say("My rose is red.")
    assert written(store, user="bob") == ["My lamp is red."]
    assert store.search(campaign_namespace("bob", "agent:gardener", "exchanges"))


async def test_with_scope_thread_another_thread_knows_nothing():
    store = InMemoryStore()
    await Talk(store, scope="thread").say("My lamp is red.")
    other = Talk(store, scope="thread", thread={"configurable": {"thread_id": "2"}})
    await other.say("Which colour has my lamp?")
    assert other.model.system == "Be brief."


async def test_without_a_checkpointer_the_newest_exchange_is_remembered_for_other_calls():
    model, store = Answering(), InMemoryStore()
    agent = create_agent(model, [], middleware=[TimelineMemoryMiddleware(user="ann")], store=store)
    first = await agent.ainvoke({"messages": [("user", "My lamp is red.")]})
    await agent.ainvoke({"messages": [*first["messages"], ("user", "It is on the shelf.")]})
    assert written(store) == ["It is on the shelf.", "My lamp is red."]
    await agent.ainvoke({"messages": [("user", "Which colour has my lamp?")]})
    assert "My lamp is red." in model.remembered


async def test_a_buffer_policy_decides_what_is_in_the_prompt_and_what_leaves_the_thread():
    talk = Talk(buffer=LastTurns(1))
    for n in range(4):
        await talk.say(f"Lamp {n} is red.")
    assert [message.text for message in talk.model.prompts[-1][1:]] == ["Lamp 2 is red.", "ok.", "Lamp 3 is red."]
    assert "Lamp 1 is red." in talk.model.remembered
    assert "Lamp 2 is red." not in talk.model.remembered
    assert [message.text for message in talk.values["messages"]][::2] == ["Lamp 3 is red."]
    assert len(await talk.sees()) == 4


class Hanging(InMemoryStore):
    """Answers nothing while it hangs."""

    hangs = False

    async def abatch(self, ops):
        if self.hangs:
            await asyncio.Event().wait()
        return await super().abatch(ops)


@pytest.mark.parametrize("sync", [False, True])
async def test_a_store_that_hangs_costs_the_memories_and_not_the_reply(monkeypatch, sync):
    monkeypatch.setenv("QUESTBOOK_STORE_TIMEOUT", "0.05")
    talk = Talk(Hanging(), buffer=LastTurns(0))
    await talk.say("My lamp is red.")
    talk.store.hangs, message = True, {"messages": [HumanMessage("And the shelf?")]}
    async with asyncio.timeout(20):
        if sync:
            await asyncio.to_thread(talk.agent.invoke, message, THREAD)
        else:
            await talk.agent.ainvoke(message, THREAD)
    assert talk.values["messages"][-1].text == "ok."
    notices = {entry["node"]: entry["text"] for entry in talk.values["notices"]}
    assert {"recall", "remember"} <= notices.keys()
    assert "Hanging did not answer within 0.05 seconds" in notices["recall"]
    assert "such as for a first query; then give it more time" in notices["recall"]
    talk.store.hangs = False
    await talk.say("Which lamp?")
    assert await talk.sees() == ["My lamp is red.", "And the shelf?", "Which lamp?"]


async def test_an_agent_of_ours_does_not_wait_for_a_store_for_ever_either(monkeypatch):
    monkeypatch.setenv("QUESTBOOK_STORE_TIMEOUT", "0.05")
    store = Hanging()
    agent = build_agent([], facts=True).compile(checkpointer=InMemorySaver(), store=store)
    store.hangs = True
    async with asyncio.timeout(20):
        state = await agent.ainvoke({"messages": [("user", "My lamp is red.")]}, THREAD, context={"user": "ann"})
    assert state["messages"][-1].text
    assert "did not answer within" in str(state["notices"])


async def test_what_is_no_store_is_refused():
    agent = create_agent(Answering(), [], middleware=[TimelineMemoryMiddleware(user="ann")], store={})
    with pytest.raises(ValueError, match=r"store: got \{\}; expected a store"):
        await agent.ainvoke({"messages": [("user", "Hello.")]})


async def test_a_message_of_a_megabyte_is_searched_and_kept_in_part_and_a_notice_says_so():
    talk = Talk()
    await talk.say("My lamp is red.")
    words = "My lamp is green and blue. " * 40_000
    seconds = await cpu_seconds_of(talk.say(words))
    assert seconds < 3
    [item] = [one for one in talk.store.search(("ann",), limit=99) if "green" in str(one.value)]
    assert len(item.value["player"]) < 51_000
    assert item.value["player"].startswith("My lamp is green")
    assert "remembered in part" in talk.values["notices"][-1]["text"]


async def cpu_seconds_of(work):
    begun = time.process_time()
    await work
    return time.process_time() - begun


@pytest.mark.parametrize("scope", ["user", "thread"])
async def test_a_store_without_an_index_finds_what_is_older_than_a_thousand_exchanges(scope):
    talk = Talk(scope=scope)
    await talk.say("My lamp is red.")
    timeline, place = talk.values["timeline"], campaign_namespace("ann", AGENT, "exchanges")
    turns = [Exchange(player=f"Shelf {n} is long.", reply="ok.") for n in range(1_500)]
    timeline = await remember(talk.store, place, turns, turn=2, timeline=timeline, provenance={"thread": "1"})
    past = {"timeline": [list(one) for one in timeline], "turn": 1_501, "remembered_through": 1_501}
    talk.agent.update_state(THREAD, {**past, "messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]})
    await talk.say("Which colour has my lamp?")
    assert "My lamp is red." in talk.model.remembered
