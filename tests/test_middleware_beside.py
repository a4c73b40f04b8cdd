"""Memory for agents of LangChain's beside what else such agents are made of: each exchange is remembered once."""

import asyncio
from typing import Annotated

import pytest
from answering import AGENT, THREAD, Answering, Talk, visible, written
from faulty_stores import Broken
from langchain.agents import create_agent
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
    ToolRetryMiddleware,
    before_agent,
    wrap_model_call,
)
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import InjectedToolCallId, tool
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Send
from pydantic import BaseModel
from scripted import call, say

from questbook import FactNotes, MemoryState, TimelineMemoryMiddleware
from questbook.graphs.middleware.state import open_turns, read_turns, result_of, with_words
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.timeline import list_visible
from questbook.notebooks.errors import DeclarationError


@tool
def paint(colour: str) -> str:
    """Paint the lamp."""
    if colour == "plaid":
        raise ValueError("There is no plaid.")
    return f"Painted {colour}."


def summarizing(**options):
    return SummarizationMiddleware(Answering(), summarizer=lambda messages: "They talked.", **options)


async def test_an_interrupt_and_a_resume_remember_once_in_another_process_too():
    saver, store = InMemorySaver(), InMemoryStore()
    asks = HumanInTheLoopMiddleware(interrupt_on={"paint": True})

    def process():
        return Talk(store, saver=saver, middleware=[asks], own_tools=[paint])

    first = process()
    await first.say("My lamp is red.")
    result = await first.say("Paint it blue.", None, say("", call("paint", colour="blue")))
    assert result["__interrupt__"]
    assert await first.sees() == ["My lamp is red."]
    second = process()
    second.model.answers += ["It is blue now."]
    await second.agent.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    assert await second.sees() == ["My lamp is red.", "Paint it blue."]
    assert len(written(store)) == 2
    [item] = [item for item in store.search(("ann", "agent~3a;agent", "exchanges")) if item.value["turn"] == 2]
    assert item.value["reply"] == "It is blue now."


async def test_a_turn_that_was_interrupted_and_left_is_remembered_by_the_next_one():
    asks = HumanInTheLoopMiddleware(interrupt_on={"paint": True})
    talk = Talk(middleware=[asks], own_tools=[paint])
    await talk.say("Paint it blue.", None, say("Shall I?", call("paint", colour="blue")))
    await talk.say("Never mind.")
    assert await talk.sees() == ["Paint it blue.", "Never mind."]


@pytest.mark.parametrize("first", [True, False], ids=["memory first", "summary first"])
async def test_a_summary_of_langchains_loses_no_turn_and_writes_none_twice(first):
    summary = summarizing(trigger=("messages", 5), keep=("messages", 3))
    talk = Talk(own_tools=[paint], **{"middleware" if first else "first": [summary]})
    said = [f"Lamp {number} is red." for number in range(6)]
    for number, words in enumerate(said):
        if number == 4:  # its own words are summarised in the middle of the turn
            talk.model.answers += [say("", call("paint", colour=str(n))) for n in range(4)]
        await talk.say(words)
    values = talk.values
    assert any("They talked." in message.text for message in values["messages"])
    assert written(talk.store) == said
    assert (values["turn"], values["due"]) == (6, [])
    items = talk.store.search(("ann", "agent~3a;agent", "exchanges"), limit=20)
    assert {item.value["turn"]: item.value["player"] for item in items} == dict(enumerate(said, 1))
    assert "Lamp 1 is red." in talk.model.system, "what left the messages is recalled"


async def test_an_unremembered_turn_that_is_summarised_is_not_lost():
    store = Broken()
    talk = Talk(store, middleware=[summarizing(trigger=("messages", 3), keep=("messages", 1))])
    store.error = ConnectionError("the line went dead")
    await talk.say("My lamp is red.")
    await talk.say("It is on the shelf.")
    store.error = None
    await talk.say("It is warm.")
    assert await talk.sees() == ["My lamp is red.", "It is on the shelf.", "It is warm."]


async def test_errors_of_tools_and_retries_of_the_model_remember_once():
    retries = [
        ToolRetryMiddleware(max_retries=1, initial_delay=0),
        ModelRetryMiddleware(max_retries=2, initial_delay=0),
    ]
    for order in ([*retries], []):
        talk = Talk(middleware=order, own_tools=[paint])
        result = await talk.say(
            "Paint it plaid.",
            None,
            *([ConnectionError("busy")] if order else []),
            say("", call("paint", shade="plaid")),
            "No.",
        )
        assert any(isinstance(message, ToolMessage) for message in result["messages"])
        assert await talk.sees() == ["Paint it plaid."]
        assert len(written(talk.store)) == 1


async def test_a_tool_that_raises_stops_the_run_and_the_next_turn_remembers_both():
    talk = Talk(own_tools=[paint])
    with pytest.raises(ValueError, match="no plaid"):
        await talk.say("Paint it plaid.", None, say("", call("paint", colour="plaid")))
    await talk.say("Then leave it.")
    assert await talk.sees() == ["Paint it plaid.", "Then leave it."]


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_run_that_other_middleware_ends_takes_no_earlier_turns_place(is_first):
    @before_agent(can_jump_to=["end"])
    def guard(state, runtime):
        if "stop" in state["messages"][-1].text:
            return {"messages": [AIMessage("I stop.")], "jump_to": "end"}
        return None

    talk = Talk(**{"first" if is_first else "middleware": [guard]})
    for words in ("My lamp is red.", "Please stop.", "Go on."):
        await talk.say(words)
    assert await talk.sees() == ["My lamp is red.", "Please stop.", "Go on."]
    assert len(written(talk.store)) == 3, "each once, on one branch"


async def test_runs_side_by_side_take_their_notes_with_the_model_that_answered_each():
    models = {"ann": Answering(), "bob": Answering()}

    @wrap_model_call
    async def choose(request, handler):
        return await handler(request.override(model=models[request.runtime.context["user"]]))

    memory = TimelineMemoryMiddleware(facts=FactNotes())
    agent = create_agent(
        Answering(), [], middleware=[choose, memory], checkpointer=InMemorySaver(), store=InMemoryStore()
    )
    runs = [
        agent.ainvoke(
            {"messages": [("user", f"I am {user}.")]}, {"configurable": {"thread_id": user}}, context={"user": user}
        )
        for user in models
    ]
    await asyncio.gather(*runs)
    for user, model in models.items():
        prompts = ["\n".join(message.text for message in prompt) for prompt in model.prompts]
        assert len(prompts) > 1, "the reply, and the notes"
        assert all(f"I am {user}." in prompt for prompt in prompts)


async def test_two_of_ours_in_one_agent_are_refused_with_what_to_do():
    class Second(TimelineMemoryMiddleware):
        """Has a name of its own, so that LangChain takes both."""

    talk = Talk(middleware=[Second(user="ann", agent_name="other")])
    with pytest.raises(DeclarationError, match="got two TimelineMemoryMiddleware"):
        await talk.say("Hello.")


class Colour(BaseModel):
    """A colour."""

    name: str


@pytest.mark.parametrize(
    ("options", "answer", "reply"),
    [
        ({}, say("", call("Colour", name="red")), '{"name": "red"}'),
        ({"tool_message_content": "Done."}, say("", call("Colour", name="red")), '{"name": "red"}'),
        ({}, say("I say red.", call("Colour", name="red")), 'I say red.\n\n{"name": "red"}'),
    ],
)
async def test_structured_output_is_remembered_as_its_text(options, answer, reply):
    other = answer.model_copy(deep=True)
    other.tool_calls[0]["args"] = {"name": "blue"}  # with the same id: some models count their calls in each turn
    store, model = InMemoryStore(), Answering(answers=[answer, other])
    agent = create_agent(
        model,
        [],
        middleware=[TimelineMemoryMiddleware(user="ann")],
        response_format=ToolStrategy(Colour, **options),
        checkpointer=InMemorySaver(),
        store=store,
    )
    for colour in ("red", "blue"):
        result = await agent.ainvoke({"messages": [("user", "Which colour?")]}, THREAD)
        assert result["structured_response"] == Colour(name=colour)
    assert sorted(replies(store)) == sorted([reply, reply.replace('"red"', '"blue"')])


def replies(store):
    return [item.value["reply"] for item in store.search(campaign_namespace("ann", AGENT, "exchanges"))]


async def test_a_result_that_could_not_be_written_is_written_by_the_next_turn():
    @tool(return_direct=True)
    def look() -> str:
        """Look."""
        return "It is red."

    talk = Talk(Broken(), own_tools=[look])
    talk.store.error = ConnectionError("gone")
    await talk.say("Which colour?", None, say("", call("look")))
    talk.store.error = None
    await talk.say("Thank you.")
    assert sorted(replies(talk.store)) == ["It is red.", "ok."]


@pytest.mark.parametrize(("named", "reply"), [((), "Blue."), (("paint",), "paint: Painted blue.\n\nBlue.")])
async def test_results_of_the_tools_that_are_named_are_remembered(named, reply):
    talk = Talk(own_tools=[paint], remember_tools=named, middleware=[ToolRetryMiddleware(max_retries=0)])
    calls = [say("", call("paint", colour="plaid")), say("", call("paint", colour="blue"))]
    await talk.say("Paint my lamp.", None, *calls, "Blue.")
    assert replies(talk.store) == [reply]


async def test_agents_of_one_send_are_all_seen_and_go_back_together():
    store, model, saver = InMemoryStore(), Answering(), InMemorySaver()

    def send(state):
        words = state["messages"][-1].text
        return [Send("agent", {**state, "messages": [HumanMessage(f"{words} {n}")]}) for n in range(3)]

    graph = StateGraph(Shared).add_node("agent", sharing(model)).add_node("last", sharing(model))
    graph = graph.add_conditional_edges(START, send, ["agent"]).add_edge("agent", "last")
    app = graph.compile(checkpointer=saver, store=store)

    async def speak(words, config=THREAD):
        await app.ainvoke({"messages": [HumanMessage(words)]}, config)
        return sorted(await visible(store, app.get_state(THREAD).values["timeline"]))

    first = [f"Lamp {n}" for n in range(3)]
    assert await speak("Lamp") == first
    before = app.get_state(THREAD).config
    assert await speak("Rose") == [*first, *(f"Rose {n}" for n in range(3))]
    assert await speak("Bell", before) == [*(f"Bell {n}" for n in range(3)), *first]
    await app.ainvoke({"messages": [HumanMessage("Which lamp?")]}, {"configurable": {"thread_id": "2"}})
    assert all(f"Lamp {n}" in model.system for n in range(3)), "another thread knows them as well"
    assert "Rose" not in model.system


async def test_a_subagent_leaves_the_outer_exchange_alone_though_it_has_the_middleware_too():
    inner = create_agent(Answering(answers=["Blue suits it."]), [], middleware=[TimelineMemoryMiddleware(user="ann")])

    @tool
    async def ask_the_painter(question: str) -> str:
        """Ask the painter."""
        return (await inner.ainvoke({"messages": [("user", question)]}))["messages"][-1].text

    talk = Talk(own_tools=[ask_the_painter])
    asks = say("", call("ask_the_painter", question="Which colour?"))
    result = await talk.say("Choose a colour for my lamp.", None, asks, "Blue.")
    assert "Blue suits it." in [message.text for message in result["messages"]]
    assert written(talk.store) == ["Choose a colour for my lamp."]


class Shared(MessagesState, MemoryState):
    """What agents in one parent know."""


def sharing(model, *tools):
    return create_agent(model, list(tools), middleware=[TimelineMemoryMiddleware(user="ann", shared=True)])


async def test_agents_that_hand_over_to_each_other_share_the_memory_that_their_parent_holds():
    @tool
    def hand_over(call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Hand over to the painter."""
        answer = ToolMessage("Handed over.", tool_call_id=call_id)
        return Command(goto="painter", graph=Command.PARENT, update={"messages": [answer]})

    store, desk, painter = InMemoryStore(), Answering(), Answering()
    builder = StateGraph(Shared).add_node("desk", sharing(desk, hand_over)).add_node("painter", sharing(painter))
    graph = builder.add_edge(START, "desk").compile(checkpointer=InMemorySaver(), store=store)

    async def speak(words, config=THREAD):
        return await graph.ainvoke({"messages": [HumanMessage(words)]}, config)

    await speak("My lamp is red.")
    before = graph.get_state(THREAD).config
    desk.answers += [say("", call("hand_over"))]
    painter.answers += ["I have painted it."]
    await speak("Paint my lamp blue.")
    assert written(store) == ["My lamp is red.", "Paint my lamp blue."]
    assert graph.get_state(THREAD).values["turn"] == 2
    await speak("Which colour has my lamp?", before)
    assert "blue" not in desk.system
    assert graph.get_state(THREAD).values["turn"] == 2


async def test_an_agent_that_its_parent_calls_twice_in_a_run_with_the_same_words_remembers_both():
    store, model = InMemoryStore(), Answering(answers=["First.", "Second."])
    builder = StateGraph(Shared)
    for name in ("one", "two"):
        builder.add_node(f"ask_{name}", lambda state: {"messages": [HumanMessage("Go on.")]})
        builder.add_node(name, sharing(model)).add_edge(f"ask_{name}", name)
    app = (
        builder.add_edge(START, "ask_one").add_edge("one", "ask_two").compile(checkpointer=InMemorySaver(), store=store)
    )
    await app.ainvoke({"messages": []}, {"configurable": {"thread_id": "1", "run_id": "of a server"}})
    assert written(store) == ["Go on.", "Go on."]
    assert sorted(replies(store)) == ["First.", "Second."]


async def test_a_run_that_a_servers_queue_brings_again_opens_no_second_turn():
    talk = Talk()
    for run, words in (("a", "Go on."), ("b", "Stop."), ("a", "Go on.")):
        await talk.say(words, {"configurable": {"thread_id": "1", "run_id": run}})
    assert written(talk.store) == ["Go on.", "Stop."]
    assert [message.text for message in talk.values["messages"]] == ["Go on.", "ok.", "Stop.", "ok."]
    await talk.say("Go on.", {"configurable": {"thread_id": "1", "run_id": "c"}})
    assert written(talk.store) == ["Go on.", "Go on.", "Stop."]


async def test_what_a_tool_returned_directly_is_remembered_as_its_text():
    @tool(return_direct=True)
    def look(colour: str) -> str:
        """Look."""
        return f"It is {colour} – “rødt”."

    talk = Talk(own_tools=[look])
    await talk.say("Which colour?", None, say("", call("look", colour="red")))
    assert replies(talk.store) == ["It is red – “rødt”."]


async def test_two_agents_in_a_row_remember_one_exchange_with_both_replies():
    store, (writer, editor) = InMemoryStore(), (Answering(answers=[reply]) for reply in ("A draft.", "A text."))
    builder = StateGraph(Shared).add_node("writer", sharing(writer)).add_node("editor", sharing(editor))
    graph = builder.add_edge(START, "writer").add_edge("writer", "editor")
    app = graph.compile(checkpointer=InMemorySaver(), store=store)
    await app.ainvoke({"messages": [HumanMessage("Write.")]}, THREAD)
    timeline = app.get_state(THREAD).values["timeline"]
    [item] = await list_visible(store, ("ann", "agent~3a;agent", "exchanges"), timeline)
    assert item.value["reply"] == "A draft.\n\nA text."


async def test_in_a_parent_that_holds_no_memory_nothing_is_remembered_and_a_notice_says_why(caplog):
    inner = create_agent(Answering(), [], middleware=[TimelineMemoryMiddleware(user="ann")])
    store = InMemoryStore()
    graph = StateGraph(MessagesState).add_node("agent", inner).add_edge(START, "agent")
    app = graph.compile(checkpointer=InMemorySaver(), store=store)
    for _ in range(2):
        result = await app.ainvoke({"messages": [HumanMessage("My lamp is red.")]}, THREAD)
    assert isinstance(result["messages"][-1], AIMessage)
    assert written(store) == []
    assert caplog.text.count("runs inside another graph") == 1, "it is said once"


@pytest.mark.slow  # deepagents takes seconds to import
async def test_a_deep_agent_remembers_each_exchange_once_and_goes_back():
    deepagents = pytest.importorskip("deepagents")
    store, model = InMemoryStore(), Answering()
    agent = deepagents.create_deep_agent(
        model, middleware=[TimelineMemoryMiddleware(user="ann")], checkpointer=InMemorySaver(), store=store
    )
    await agent.ainvoke({"messages": [("user", "My lamp is red.")]}, THREAD)
    before = agent.get_state(THREAD).config
    task = call("task", description="Find a brush.", subagent_type="general-purpose")
    model.answers += [say("", task), "A brush was found.", "It is blue."]
    await agent.ainvoke({"messages": [("user", "Paint my lamp blue.")]}, THREAD)
    assert written(store) == ["My lamp is red.", "Paint my lamp blue."]
    other = {"configurable": {"thread_id": "2"}}
    await agent.ainvoke({"messages": [("user", "Which colour has my lamp?")]}, before)
    await agent.ainvoke({"messages": [("user", "Which colour has my lamp?")]}, other)
    assert "My lamp is red." in model.system
    assert "blue" not in model.system.partition("<memories>")[2], "a new thread sees nothing that was taken back"


def turn(n, player="", reply="", **more):
    return {"turn": n, "opened_by": str(n), "player": player, "reply": reply} | more


def talked(*ids):
    """A conversation: a message of the person with each id, and its answer."""
    pairs = ([HumanMessage(f"say {n}", id=str(n)), AIMessage(f"answer {n}", id=f"a{n}")] for n in ids)
    return [message for pair in pairs for message in pair]


@pytest.mark.parametrize(
    ("messages", "last", "due", "opened"),
    [
        (talked(1), 0, [], (1, "1", [1])),
        (talked(1, 2, 3), 0, [], (3, "3", [1, 2, 3])),
        (talked(1, 2), 1, [], (2, "2", [2])),
        (talked(1, 2, 3), 1, [turn(1, "say 1", "answer 1")], (3, "3", [1, 2, 3])),
        (talked(1), 1, [turn(1)], (1, "1", [1])),
        (talked(1), 1, [], (1, "1", [1])),
        (talked(5, 6), 4, [], (5, "6", [5])),
        ([], 0, [], (0, "", [])),
        ([AIMessage("Welcome.", id="w")], 0, [], (0, "", [])),
    ],
)
def test_turns_are_numbered_by_the_messages_that_opened_them(messages, last, due, opened):
    found = open_turns(messages, last, str(last) if last else "", due)
    assert (found.turn, found.opened_by, [entry["turn"] for entry in found.due]) == opened
    assert all(entry["player"] for entry in found.due)


def test_what_has_left_the_messages_is_told_again_and_what_middleware_wrote_is_not():
    summary = HumanMessage("They talked.", id="s", additional_kwargs={"lc_source": "summarization"})
    due = [turn(1, "say 1", "answer 1"), turn(2, "say 2", "")]
    told = read_turns([summary, AIMessage("rest of 2", id="r"), *talked(3)], [*due, turn(3, "say 3")])
    assert [message.text for message in told] == ["say 1", "answer 1", "say 2", "rest of 2", "say 3", "answer 3"]
    assert [message.id for message in told[:3]] == ["1", "1-reply", "2"]
    told = read_turns([summary, *talked(3)], due)
    assert [message.text for message in told] == ["say 1", "answer 1", "say 2", "", "say 3", "answer 3"]
    assert [message.text for message in read_turns(talked(3), [turn(1)])] == ["say 3", "answer 3"], "it says nothing"
    told = read_turns(talked(3), [turn(3, "say 3", "answer 3", result="{}")])
    assert [message.text for message in told] == ["say 3", "answer 3", "{}"]


def test_words_of_due_turns_are_those_of_the_messages_as_long_as_they_tell():
    due = [turn(1, "old", "older"), turn(2)]
    assert with_words(talked(2), due) == [turn(1, "old", "older"), turn(2, "say 2", "answer 2")]


@pytest.mark.parametrize(
    ("last", "result"),
    [
        (AIMessage("Fine."), ""),
        (ToolMessage("done", tool_call_id="c"), '{"name": "rød"}'),
        (ToolMessage("done", tool_call_id="other"), "done"),
    ],
)
def test_a_run_that_ends_without_words_has_a_result(last, result):
    def asks(name):
        return AIMessage("", tool_calls=[{"name": "Colour", "args": {"name": name}, "id": "c"}])

    assert result_of([asks("blå"), asks("rød"), last], ["Colour"]) == result
    assert result_of([asks("rød"), ToolMessage("done", tool_call_id="c")], []) == "done", "it is no format"
    assert result_of([], ["Colour"]) == ""


def test_what_a_named_tool_found_is_among_the_words_of_a_due_turn():
    asks = AIMessage("", tool_calls=[{"name": "look_up", "args": {}, "id": "c"}], id="c1")
    found = ToolMessage("Seven geese.", tool_call_id="c", name="look_up")
    messages = [HumanMessage("How many?", id="1"), asks, found, AIMessage("7.", id="a1")]
    for tools, reply in ((["look_up"], "look_up: Seven geese."), (["other"], "7."), ([], "7.")):
        [opened] = open_turns(messages, 0, "", [], tools).due
        [kept] = with_words(messages, [turn(1)], tools)
        for words in (opened, kept):
            assert words["player"] == "How many?"
            assert words["reply"].startswith(reply)


async def test_a_turn_without_words_holds_up_no_other():
    talk = Talk()
    talk.model.answers += ["", "So it is.", "Yes."]
    picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    for said in (HumanMessage(picture), HumanMessage("The harbour is blue."), HumanMessage("The mill is red.")):
        await talk.agent.ainvoke({"messages": [said]}, THREAD)
    texts = [item.value["text"] for item in await talk.store.asearch(campaign_namespace("ann", AGENT, "exchanges"))]
    assert "The harbour is blue.\nSo it is." in texts
    assert len(texts) == 3
