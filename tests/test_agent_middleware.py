"""LangChain's middleware in `build_agent`: what works, what goes back with the checkpoint, what is refused."""

import asyncio
import json
import operator
from typing import Annotated

import pytest
from desk import AgentModel, CallbackNotebook, CustomerNotebook, Desk, TicketNotebook, note
from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    ExtendedModelResponse,
    HumanInTheLoopMiddleware,
    LLMToolSelectorMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
    after_agent,
    after_model,
    before_agent,
    before_model,
    dynamic_prompt,
    wrap_model_call,
    wrap_tool_call,
)
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from scripted import ScriptedModel, call, say

from questbook.graphs.agent import TeamState, as_node, build_agent
from questbook.graphs.agent.context import Context
from questbook.graphs.errors import ModelError
from questbook.graphs.events import STREAM_MODES, ReplyPiece, read_stream
from questbook.graphs.history.history import History
from questbook.graphs.middleware.memory import TimelineMemoryMiddleware
from questbook.notebooks import DeclarationError


def exchanges(desk):
    return [item.value for item in desk.store.search((), limit=100) if item.value.get("kind") == "exchange"]


def texts(desk):
    return [(message.type, message.text) for message in desk.values["messages"]]


def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


ASKED = say("Shall I?", call("send", to="Bob"))


def approving(**options):
    return Desk(TicketNotebook, tools=[send], middleware=[HumanInTheLoopMiddleware({"send": True}, **options)])


@pytest.mark.parametrize(
    ("decision", "result"),
    [
        ({"type": "approve"}, "sent to Bob"),
        ({"type": "reject", "message": "Not him."}, "Not him."),
        ({"type": "edit", "edited_action": {"name": "send", "args": {"to": "Eve"}}}, "sent to Eve"),
    ],
)
async def test_a_person_decides_on_a_call_and_the_turn_is_remembered_once(decision, result):
    desk = approving()
    desk.model.queue("reply", ASKED)
    said = {"messages": [("user", "Write to Bob.")]}
    stopped = await desk.app.ainvoke(said, desk.config, durability="sync")
    assert stopped["__interrupt__"][0].value["action_requests"][0]["name"] == "send"
    assert exchanges(desk) == []
    resumed = Command(resume={"decisions": [decision]})
    assert await desk.say(resumed, reply=say("Done."), update=note(problem="a letter")) == "Done."
    assert result in next(text for kind, text in texts(desk) if kind == "tool")
    assert [record["player"] for record in exchanges(desk)] == ["Write to Bob."]
    assert (desk.values["turn"], desk.values["ticket"]["problem"]) == (1, "a letter")
    assert len(desk.model.asked("reply")) == 2, "the model was asked once before the decision and once after it"


async def test_another_message_instead_of_a_decision_goes_on_and_calls_nothing():
    desk = approving()
    desk.model.queue("reply", ASKED)
    await desk.say("Write to Bob.")
    assert await desk.say("Never mind.", reply=say("All right.")) == "All right."
    assert not [m for m in desk.model.asked("reply")[-1] if m.type == "tool" or getattr(m, "tool_calls", [])]
    assert [record["player"] for record in exchanges(desk)] == ["Write to Bob.", "Never mind."]


async def test_what_a_person_decided_is_forgotten_by_a_fork_from_before():
    desk = approving()
    await desk.say("Hello.")
    before = desk.app.get_state(desk.config).config
    desk.model.queue("reply", ASKED)
    await desk.say("Write to Bob.")
    await desk.say(Command(resume={"decisions": [{"type": "approve"}]}), reply=say("It is sent to Bob."))
    await desk.say("What did you do?", config=before, reply=say("Nothing."))
    assert "Bob" not in desk.prompts("reply")[-1] + str(desk.model.asked("reply")[-1])
    assert "Bob" not in str(desk.values["messages"])


async def test_a_call_in_between_of_another_page_is_kept_beside_a_rejected_one():
    middleware = [HumanInTheLoopMiddleware({"send": True})]
    desk = Desk(CallbackNotebook, tools=[send], middleware=middleware)
    both = say("Hm.", call("send", to="Bob"), call("CallbackNotebook", day="Monday"))
    desk.model.queue("reply", both, say("Noted, not sent."))
    await desk.say("Write, and call on Monday.")
    await desk.say(Command(resume={"decisions": [{"type": "reject"}]}))
    assert desk.values["callback"]["day"] == "Monday"
    results = [message for message in desk.values["messages"] if isinstance(message, ToolMessage)]
    assert len(results) == len({result.tool_call_id for result in results}) == 2


async def test_a_failed_call_of_the_model_is_tried_again_by_the_providers_own_error():
    seen = []

    def lost(error):
        seen.append(type(error))
        return isinstance(error, ConnectionError)

    desk = Desk(middleware=[ModelRetryMiddleware(max_retries=2, initial_delay=0, retry_on=lost, on_failure="error")])
    desk.model.queue("reply", ConnectionResetError("gone"), ConnectionResetError("gone"), say("Here I am."))
    assert await desk.say("Hello?") == "Here I am."
    assert seen == [ConnectionResetError] * 2
    desk.model.queue("reply", *[ConnectionResetError("gone")] * 3)
    with pytest.raises(ModelError, match="gone"):
        await desk.say("Hello?")


async def test_another_model_answers_where_the_first_fails():
    other = AgentModel()
    other.queue("reply", say("I stand in."))
    desk = Desk(TicketNotebook, middleware=[ModelFallbackMiddleware(other)])
    desk.model.queue("reply", ConnectionResetError("gone"))
    assert await desk.say("Hello?", update=note(problem="none")) == "I stand in."
    assert desk.values["ticket"]["problem"] == "none", "notes are taken by the agent's own model"


async def test_a_prompt_that_is_too_long_is_shortened_and_not_tried_again_as_it_is():
    tried = []

    @wrap_model_call
    async def watch(request, handler):
        tried.append(len(request.messages))
        return await handler(request)

    desk = Desk(middleware=[ModelRetryMiddleware(max_retries=3, initial_delay=0), watch])
    for words in ("One.", "Two.", "Three."):
        await desk.say(words)
    tried.clear()
    desk.model.queue("reply", ValueError("maximum context length is 10 tokens"), say("I see."))
    assert await desk.say("Four.") == "I see."
    assert tried == [7, 1]


async def test_calls_of_the_model_have_a_limit_and_the_count_goes_back_with_the_checkpoint():
    desk = Desk(middleware=[ModelCallLimitMiddleware(thread_limit=2)])
    await desk.say("One.")
    fork = desk.app.get_state(desk.config).config
    await desk.say("Two.")
    assert "limit" in await desk.say("Three.")
    assert desk.values["remembered_through"] == 3, "the turn is remembered with what the middleware said"
    assert await desk.say("Another two.", config=fork, reply=say("Yes.")) == "Yes."
    assert desk.values["thread_model_call_count"] == 2


@pytest.mark.parametrize(("behaviour", "answers"), [("continue", 3), ("end", 2)])
async def test_calls_of_tools_have_a_limit(behaviour, answers):
    limit = ToolCallLimitMiddleware(tool_name="send", run_limit=1, exit_behavior=behaviour)
    desk = Desk(tools=[send], middleware=[limit])
    desk.model.queue("reply", ASKED, ASKED, say("I stop."))
    reply = await desk.say("Write to Bob, twice.")
    assert len(desk.model.asked("reply")) == answers
    assert ("I stop." if behaviour == "continue" else "limit") in reply
    assert [text for kind, text in texts(desk) if kind == "tool"].count("sent to Bob") == 1
    assert len(exchanges(desk)) == 1


async def test_a_tool_is_tried_again():
    times = []

    def flaky() -> str:
        """Look."""
        times.append(1)
        if len(times) < 3:
            raise RuntimeError("no luck")
        return "found"

    desk = Desk(tools=[flaky], middleware=[ToolRetryMiddleware(max_retries=2, initial_delay=0)])
    await desk.say("Look.", reply=[say("", call("flaky")), say("There.")])
    assert ("tool", "found") in texts(desk)

    def broken() -> str:
        """Look."""
        raise RuntimeError("no luck")

    @wrap_tool_call
    def watch(request, handler):
        return handler(request)

    desk = Desk(tools=[broken], middleware=[watch])
    await desk.say("Look.", reply=[say("", call("broken")), say("No.")])
    assert "no luck" in desk.notices[-1], "an error that nobody handles is the tool's answer"


async def test_personal_data_reaches_neither_model_nor_memory():
    desk = Desk(TicketNotebook, facts=True, middleware=[PIIMiddleware("email", strategy="redact")])
    await desk.say("I am ann@example.org.")
    await desk.say("What is my address?")
    assert "ann@example.org" not in str(desk.model.calls)
    assert "ann@example.org" not in str(exchanges(desk)) + str(desk.values)
    assert "[REDACTED_EMAIL]" in exchanges(desk)[0]["player"]


async def test_personal_data_is_kept_from_an_interview_as_well():
    desk = Desk(CustomerNotebook, middleware=[PIIMiddleware("email", strategy="redact")])
    await desk.say("I am ann@example.org.", fill=say("", call("CustomerNotebook", name="Ann", product="X100")))
    assert "ann@example.org" not in str(desk.model.calls) + str(desk.values)
    assert desk.values["customer"]["name"] == "Ann"


class Selecting(ScriptedModel):
    """Streams what it selects, as JSON."""

    def with_structured_output(self, schema, **_):
        return self | RunnableLambda(lambda message: json.loads(message.text))


async def test_a_model_selects_the_tools_and_its_words_are_not_in_the_stream():
    def refund() -> str:
        """Refund."""
        return "refunded"

    offered = []

    @wrap_model_call
    async def watch(request, handler):
        offered.append([tool.name if hasattr(tool, "name") else tool["function"]["name"] for tool in request.tools])
        return await handler(request)

    selector = Selecting().queue("condense", say('{"tools": ["send"]}'))
    desk = Desk(
        CallbackNotebook,
        tools=[send, refund],
        middleware=[LLMToolSelectorMiddleware(model=selector, max_tools=1), watch],
    )
    desk.model.queue("reply", say("I can send it."))
    streamed = [
        piece.text
        async for piece, _ in desk.app.astream(
            {"messages": [("user", "Write to Bob.")]}, desk.config, stream_mode="messages"
        )
        if piece.type in ("ai", "AIMessageChunk")
    ]
    assert selector.calls, "the selecting model was asked"
    assert "".join(streamed) == "I can send it."
    assert offered == [["send", "CallbackNotebook"]], "pages are always offered"


async def test_results_of_tools_leave_the_prompt_and_stay_in_the_state():
    edit = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=0)])
    desk = Desk(tools=[send], middleware=[edit])
    await desk.say("Write to Bob.", reply=[ASKED, say("Done.")])
    assert [m.text for m in desk.model.asked("reply")[-1] if m.type == "tool"] == ["[cleared]"]
    assert ("tool", "sent to Bob") in texts(desk)


async def test_a_list_of_things_to_do_is_kept_in_the_state_and_goes_back_with_it():
    desk = Desk(CallbackNotebook, middleware=[TodoListMiddleware()])
    await desk.say("Hello.")
    before = desk.app.get_state(desk.config).config
    todos = [{"content": "call Bob", "status": "pending"}]
    await desk.say("Plan.", reply=[say("", call("write_todos", todos=todos)), say("Planned.")])
    assert desk.values["todos"] == todos
    assert "write_todos" in str(desk.model.asked("reply")[-1][0].content), "its part of the system message"
    await desk.say("Hm.")
    assert desk.values["todos"] == todos
    await desk.say("Something else.", config=before)
    assert not desk.values.get("todos")


async def test_hooks_of_a_users_own_run_in_langchains_order_for_async_and_sync_callers():
    order = []

    class Own(AgentMiddleware):
        class State(AgentState):
            seen: int

        state_schema = State

        def before_agent(self, state, runtime):
            order.append("before_agent")

        def before_model(self, state, runtime):
            order.append("before_model")
            return {"seen": state.get("seen", 0) + 1}

        def wrap_model_call(self, request, handler):
            order.append(
                f"wrap {request.runtime.context.user} {request.state['seen']} {request.state['ticket']['status']}"
            )
            return handler(request.override(system_message=type(request.system_message)("Be brief.")))

        def wrap_tool_call(self, request, handler):
            order.append("wrap_tool_call")
            return handler(request)

        def after_model(self, state, runtime):
            order.append("after_model")

        def after_agent(self, state, runtime):
            order.append("after_agent")

    desk = Desk(TicketNotebook, tools=[send], middleware=[Own()])
    desk.model.queue("reply", ASKED, say("Done."), ASKED, say("Done."))
    model = ["before_model", "wrap adventurer {} open", "after_model"]
    turn = ["before_agent", *model, "wrap_tool_call", *model, "after_agent"]
    await desk.say("Write.")
    assert [name.format(n) for name, n in zip(turn, [1] * 5 + [2] * 4, strict=True)] == order
    assert desk.model.asked("reply")[-1][0].text == "Be brief."
    order.clear()
    await asyncio.to_thread(desk.app.invoke, {"messages": [("user", "Again.")]}, desk.config)
    assert [name.split()[0] for name in order] == [name.split()[0] for name in turn]


async def test_a_dynamic_prompt_and_a_short_cut():
    @dynamic_prompt
    def pirate(request):
        return f"{request.system_prompt}\nTalk like a pirate."

    @wrap_model_call
    def cached(request, handler):
        return AIMessage("From the cache.") if "again" in request.messages[-1].text else handler(request)

    desk = Desk(instructions="You help.", middleware=[pirate, cached])
    await desk.say("Hello.", reply=say("Arr."))
    system = desk.model.asked("reply")[-1][0].text
    assert "You help." in system
    assert system.endswith("Talk like a pirate.")
    assert await desk.say("Say it again.") == "From the cache."
    assert exchanges(desk)[-1]["reply"] == "From the cache."


async def test_a_hook_sends_the_model_back_or_ends_the_turn():
    @after_model(can_jump_to=["model"])
    def no_oaths(state, runtime):
        if "damn" in state["messages"][-1].text:
            return {"messages": [RemoveMessage(state["messages"][-1].id)], "jump_to": "model"}
        return None

    @before_agent(can_jump_to=["end"])
    def closed(state, runtime):
        if "night" in state["messages"][-1].text:
            return {"messages": [AIMessage("We are closed.")], "jump_to": "end"}
        return None

    @before_model
    def look(state, runtime):
        assert not state.get("jump_to")

    desk = Desk(middleware=[no_oaths, closed, look])
    assert await desk.say("Hello.", reply=[say("damn"), say("Good day.")]) == "Good day."
    stream = desk.app.astream({"messages": [("user", "It is night.")]}, desk.config, stream_mode=STREAM_MODES)
    words = "".join([event.text async for event in read_stream(stream) if isinstance(event, ReplyPiece)])
    assert words == "We are closed.", "what a hook says is part of the reply's stream"
    assert len(desk.model.asked("reply")) == 2
    assert [record["reply"] for record in exchanges(desk)] == ["Good day.", "We are closed."]


async def test_what_a_wrapper_writes_beside_the_answer_is_kept_of_the_last_try_alone():
    class Counting(AgentMiddleware):
        class State(AgentState):
            tries: Annotated[list[str], operator.add]

        state_schema = State

        async def awrap_model_call(self, request, handler):
            response = await handler(request)
            return ExtendedModelResponse(response, Command(update={"tries": [response.result[0].text]}))

    @wrap_model_call
    async def twice(request, handler):
        await handler(request)
        return await handler(request)

    desk = Desk(middleware=[twice, Counting()])
    await desk.say("Hello.", reply=[say("One."), say("Two.")])
    await desk.say("Hello.", reply=[say("Three."), say("Four.")])
    assert desk.values["tries"] == ["Two.", "Four."]


async def test_the_last_turn_is_played_again_from_where_the_model_was_asked():
    desk = Desk(middleware=[ModelCallLimitMiddleware(thread_limit=2)])
    await desk.say("Hello.", reply=say("One."))
    replay = await History(desk.app, desk.config, Context.of({"user": "adventurer", "campaign": "agent:agent"})).retry()
    desk.model.queue("reply", say("Two."))
    await desk.app.ainvoke(None, replay.config, context=replay.context)
    assert desk.values["messages"][-1].text == "Two."
    assert desk.values["thread_model_call_count"] == 1


async def test_the_reply_streams_word_for_word_through_middleware():
    desk = Desk(TicketNotebook, middleware=[ModelRetryMiddleware(), TodoListMiddleware()])
    desk.model.queue("reply", say("One two three four."))
    pieces = [
        piece.text
        async for piece, _ in desk.app.astream({"messages": [("user", "Count.")]}, desk.config, stream_mode="messages")
        if piece.type == "AIMessageChunk" and piece.text
    ]
    assert "".join(pieces) == "One two three four."
    assert len(pieces) > 2


@wrap_model_call
def several(request, handler):
    return handler(request).__class__(result=[AIMessage("a"), AIMessage("b")])


@before_model
def clear(state, runtime):
    return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]}


@after_agent
def speak(state, runtime):
    return {"messages": [HumanMessage("And then?")]}


@before_agent
def forge(state, runtime):
    return {"turn": 99}


@before_agent
def skip_notes(state, runtime):
    return {"noted": {"ticket": 99}}


@pytest.mark.parametrize(
    ("middleware", "problem"),
    [
        (clear, "clear.before_model removes messages of earlier turns.*buffer="),
        (speak, "speak.after_agent adds a message in the person's name"),
        (forge, "forge.before_agent writes the channel 'turn'"),
        (skip_notes, "skip_notes.before_agent writes the channel 'noted'"),
        (several, "expected one AIMessage"),
    ],
)
async def test_a_hook_that_would_break_the_turns_is_refused_by_name(middleware, problem):
    desk = Desk(middleware=[middleware])
    with pytest.raises(DeclarationError, match=problem):
        await desk.say("Hello.")


class Taken(AgentMiddleware):
    class State(AgentState):
        ticket: str

    state_schema = State


def write_todos() -> str:
    """Write."""
    return ""


@pytest.mark.parametrize(
    ("middleware", "problem"),
    [
        ([SummarizationMiddleware(ScriptedModel())], "SummarizationMiddleware does not work in build_agent.*buffer="),
        ([TimelineMemoryMiddleware(user="ann")], "has this memory already"),
        ([HumanInTheLoopMiddleware({"send": True}, interrupt_mode="per_call")], "per_call.*batched"),
        ([TodoListMiddleware(), TodoListMiddleware()], "Two tools cannot have one name|is there twice"),
        ([ModelRetryMiddleware(), ModelRetryMiddleware()], "ModelRetryMiddleware is there twice"),
        ([ModelRetryMiddleware], "expected an instance"),
        ([Taken()], "Taken has a channel 'ticket'"),
    ],
)
def test_what_cannot_work_is_refused_when_the_agent_is_built(middleware, problem):
    with pytest.raises(DeclarationError, match=problem):
        build_agent([TicketNotebook], middleware=middleware)


async def test_an_agent_of_a_team_keeps_what_its_middleware_and_its_facts_keep():
    model = AgentModel()
    agent = build_agent([], name="desk", model=model, facts=True, middleware=[TodoListMiddleware()])
    builder = StateGraph(TeamState)
    builder.add_node("desk", as_node(agent.compile()))
    builder.add_edge(START, "desk")
    app = builder.compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    config = {"configurable": {"thread_id": "t"}}
    todos = [{"content": "call Bob", "status": "pending"}]
    model.queue("reply", say("", call("write_todos", todos=todos)), say("Planned."))
    await app.ainvoke({"messages": [("user", "Plan.")]}, config)
    before = (await app.aget_state(config)).config
    await app.ainvoke({"messages": [("user", "Thanks.")]}, config)
    seat = (await app.aget_state(config)).values["seats"]["desk"]
    assert (seat["todos"], seat["facts_through"]) == (todos, 2)
    assert "Plan." not in model.asked("facts")[-1][-1].text, "each turn's facts are noted once"
    assert (await app.aget_state(before)).values["seats"]["desk"]["facts_through"] == 1


async def test_a_person_decides_on_a_call_of_an_agent_in_a_team():
    model, store = AgentModel(), InMemoryStore()
    agent = build_agent(
        [], name="desk", model=model, tools=[send], middleware=[HumanInTheLoopMiddleware({"send": True})]
    )
    builder = StateGraph(TeamState)
    builder.add_node("desk", as_node(agent.compile()))
    builder.add_edge(START, "desk")
    app = builder.compile(checkpointer=InMemorySaver(), store=store)
    config = {"configurable": {"thread_id": "t"}}
    model.queue("reply", ASKED, say("Done."))
    stopped = await app.ainvoke({"messages": [("user", "Write to Bob.")]}, config)
    assert stopped["__interrupt__"]
    values = await app.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    assert values["messages"][-1].text == "Done."
    assert len(model.asked("reply")) == 2
    kinds = [item.value.get("kind") for item in store.search((), limit=100)]
    assert kinds.count("exchange") == 1


async def test_an_agent_with_middleware_is_drawn_and_described_as_others():
    desk = Desk(
        CustomerNotebook, tools=[send], middleware=[TodoListMiddleware(), HumanInTheLoopMiddleware({"send": True})]
    )
    drawing = desk.app.get_graph().draw_mermaid()
    assert "HumanInTheLoopMiddleware" in drawing
    assert set(desk.app.get_input_jsonschema()["properties"]) == {"messages"}
    assert "todos" in desk.app.get_output_jsonschema()["properties"]
