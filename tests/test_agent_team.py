"""Agents in one parent graph: handing over, a page that they share, and forks and kills of the parent."""

import asyncio
from typing import Annotated

import pytest
from desk import AgentModel, CallbackNotebook, CustomerNotebook, TicketNotebook
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Send
from scripted import call, say, sections_of, words_of
from strict import STRICT, check_plain
from team import OVER, DeskState, Team, VisitsNotebook, VisitsState

from questbook import Notebook, TeamState
from questbook.graphs.agent import as_node, build_agent
from questbook.graphs.dungeon_master.graph import build_graph as build_dungeon_master
from questbook.graphs.errors import InputError
from questbook.graphs.reflect.graph import build_graph as build_reflect
from questbook.graphs.turn.state import patches
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.notebooks.errors import DeclarationError


async def test_an_agent_hands_over_and_the_other_answers_in_the_same_turn_with_the_shared_page():
    team = Team()
    await team.say("Call me Monday", sales=[say("I will.", call("CallbackNotebook", day="Monday"))])
    assert await team.say("My invoice?", sales=[OVER], billing=[say("It is paid.")]) == "It is paid."
    prompt = team.models["billing"].asked("reply")[0]
    assert '<callback>\nday: "Monday"' in prompt[0].text
    assert words_of(prompt) == ["My invoice?"], "its conversation is its own"
    texts = [m.text for m in team.values["messages"]]
    assert texts == ["Call me Monday", "I will.", "My invoice?", "It is paid."]
    tool = team.app.get_graph(xray=False).edges
    assert {(e.source, e.target) for e in tool} >= {("sales", "billing"), ("billing", "sales")}


async def test_who_hands_over_takes_notes_first():
    team = Team()
    team.models["sales"].queue("update", say("", call("TicketNotebook", problem="invoice")))
    over = say("One moment.", call("CallbackNotebook", day="Friday"), call("hand_over", to="billing"))
    await team.say("My invoice?", sales=[over], billing=[say("Paid.")])
    assert [m.text for m in team.values["messages"]] == ["My invoice?", "One moment.", "Paid."]
    assert team.values["callback"]["day"] == "Friday"
    assert team.values["seats"]["sales"]["ticket"]["problem"] == "invoice"
    assert team.values["seats"]["billing"]["ticket"]["problem"] == "", "what is not shared is each one's own"
    stored = await team.store.asearch(campaign_namespace("adventurer", "agent:sales", "exchanges"))
    assert [item.value["reply"] for item in stored] == ["One moment."]


async def test_who_hands_over_is_not_asked_again_though_another_call_did_not_fit():
    team = Team()
    over = say("One moment.", call("CallbackNotebook", month="May"), call("hand_over", to="billing"))
    await team.say("My invoice?", sales=[over], billing=[say("Paid.")])
    assert [m.text for m in team.values["messages"]] == ["My invoice?", "One moment.", "Paid."]
    assert len(team.models["sales"].asked("reply")) == 1


@pytest.mark.parametrize("whom", ["legal", ["billing"], {"name": "billing"}, None, 1])
@pytest.mark.slow
async def test_what_is_no_colleague_cannot_be_handed_over_to(whom):
    team = Team()
    wrong = say("", call("hand_over", to=whom))
    assert await team.say("Sue them", sales=[wrong, say("I cannot.")]) == "I cannot."
    results = [m for m in team.models["sales"].asked("reply")[-1] if m.type == "tool"]
    assert "there are billing" in results[0].text


async def test_a_tool_may_hand_over_as_langgraph_swarm_does_and_ends_the_agent_at_once():
    def transfer_to_billing() -> Command:
        """Hand over to billing."""
        return Command(goto="billing", graph=Command.PARENT, update={"callback": {"day": "Monday"}})

    builder, models = StateGraph(DeskState), {"sales": AgentModel(), "billing": AgentModel()}
    for name, tools in (("sales", [transfer_to_billing]), ("billing", [])):
        notebooks = [CallbackNotebook, TicketNotebook]
        agent = build_agent(notebooks, name=name, model=models[name], shared=[CallbackNotebook], tools=tools)
        builder.add_node(name, as_node(agent.compile()), destinations=("billing", END))
    builder.add_edge(START, "sales")
    app, config = builder.compile(checkpointer=InMemorySaver()), {"configurable": {"thread_id": "t"}}
    models["sales"].queue("reply", say("", call("transfer_to_billing")))
    models["billing"].queue("reply", say("Paid."))
    told = await app.ainvoke({"messages": [HumanMessage("My invoice?")]}, config)
    assert told["messages"][-1].text == "Paid."
    assert '<callback>\nday: "Monday"' in sections_of(models["billing"].asked("reply")[0])
    assert models["sales"].asked("update") == [], "no notes were taken"
    await app.ainvoke({"messages": [HumanMessage("And a lamp?")]}, config)
    assert words_of(models["sales"].asked("reply")[-1])[-1] == "And a lamp?"
    models["sales"].queue("reply", say("", call("transfer_to_billing")))
    context = {"max_tool_rounds": 1}
    told = await app.ainvoke({"messages": [HumanMessage("My refund?")]}, config, context=context)
    assert told["messages"][-1].text == "I see.", "in the last round that is allowed, too"


async def test_settings_of_the_parents_run_are_the_agents_too():
    team = Team()
    await team.app.ainvoke({"messages": [HumanMessage("hi")]}, team.config, context={"user": "ann"})
    assert len(await team.store.asearch(campaign_namespace("ann", "agent:sales", "exchanges"))) == 1


async def test_agents_may_hand_a_person_to_and_fro():
    team = Team()
    back = say("", call("hand_over", to="sales"))
    assert await team.say("Whose?", sales=[OVER, say("Mine.")], billing=[back]) == "Mine."
    assert [m.text for m in team.values["messages"]] == ["Whose?", "Mine."]


def test_a_team_serves_callers_without_an_event_loop():
    team = Team()
    team.models["sales"].queue("reply", OVER)
    team.models["billing"].queue("reply", say("Paid.", call("CallbackNotebook", calls=1)))
    values = team.app.invoke({"messages": [HumanMessage("My invoice?")]}, team.config)
    assert values["messages"][-1].text == "Paid."
    assert values["callback"]["calls"] == 1


async def test_a_parent_without_seats_and_an_agent_with_a_checkpointer_are_refused():
    class Bare(MessagesState):
        visits: Annotated[VisitsNotebook, patches(VisitsNotebook)]

    agent = build_agent([VisitsNotebook], name="sales", model=AgentModel(), shared=[VisitsNotebook])
    builder = StateGraph(Bare)
    builder.add_node("sales", as_node(agent.compile()))
    builder.add_edge(START, "sales")
    with pytest.raises(InputError, match="derive it from TeamState"):
        await builder.compile().ainvoke({"messages": [HumanMessage("go")]})
    with pytest.raises(
        DeclarationError, match=r"'agent:sales' has a checkpointer of its own.*Compile it without a checkpointer"
    ):
        as_node(agent.compile(checkpointer=True))


def inside(graph, how, checkpointer):
    """A graph whose node is another one, or calls it, with settings or without, or calls it in a tool."""

    def ask() -> str:
        config = {"configurable": {"user": "ann", "model": "offline"}} if how == "settings" else None
        return graph.invoke({"messages": [HumanMessage("My lamp is red.")]}, config)["messages"][-1].text

    def node(state: MessagesState) -> MessagesState:
        said = tool("ask", description="Ask.")(ask).invoke({}) if how == "tool" else ask()
        return {"messages": [AIMessage(said)]}

    builder = StateGraph(MessagesState).add_node("desk", graph if how == "node" else node).add_edge(START, "desk")
    return builder.compile(checkpointer=checkpointer, store=InMemoryStore())


@pytest.mark.parametrize("how", ["node", "call", "settings", "tool"])
@pytest.mark.parametrize("machine", ["agent", "dungeon_master"])
async def test_inside_a_graph_that_keeps_nothing_of_it_a_machine_is_refused(how, machine):
    built = build_agent([], model=AgentModel()) if machine == "agent" else build_dungeon_master()
    options = {"config": {"configurable": {"thread_id": "1", "user": "ann", "model": "offline"}}}
    for saver in (None, InMemorySaver()):
        app = inside(built.compile(checkpointer=saver), how, InMemorySaver())
        with pytest.raises(DeclarationError, match=rf"{machine}.* keeps nothing .*as_node\(…\).*checkpointer=True"):
            await app.ainvoke({"messages": [HumanMessage("Hello.")]}, **options)
    for own, saver in ((True, InMemorySaver()), (False, InMemorySaver()), (None, None)):
        await inside(built.compile(checkpointer=own), how, saver).ainvoke(
            {"messages": [HumanMessage("Hi.")]}, **options
        )


async def test_a_node_without_a_message_to_answer_is_refused():
    team = Team()
    for messages in ([], [AIMessage("Hello.")]):
        with pytest.raises(InputError, match=r"There is no message of role 'user' to answer\. Send one"):
            await team.app.ainvoke({"messages": messages}, {"configurable": {"thread_id": "new"}})


@pytest.mark.parametrize("name", [{}, {"name": "sales"}])
async def test_two_agents_of_one_name_never_share_a_conversation_silently(name):
    model, builder = AgentModel(), StateGraph(VisitsState)
    for node in ("sales", "billing"):
        agent = build_agent([VisitsNotebook], model=model, shared=[VisitsNotebook], **name)
        builder.add_node(node, as_node(agent.compile()))
    builder.add_edge(START, "sales").add_edge("sales", "billing")
    with pytest.raises(
        DeclarationError, match=r"is the node '\w+': expected one name for both.* build_agent\(…, name='"
    ):
        await builder.compile().ainvoke({"messages": [HumanMessage("go")]})
    with pytest.raises(DeclarationError, match="is the node"):
        builder.compile().invoke({"messages": [HumanMessage("go")]})


async def test_a_shared_page_that_one_agent_has_filled_is_not_asked_for_by_the_other():
    class AskedState(TeamState):
        customer: Annotated[CustomerNotebook, patches(CustomerNotebook, bounded=False)]

    builder, models = StateGraph(AskedState), {"sales": AgentModel(), "billing": AgentModel()}
    for name, others in (("sales", {"billing": "invoices"}), ("billing", {})):
        page = CustomerNotebook
        agent = build_agent([page], name=name, model=models[name], shared=[page], handoffs=others)
        builder.add_node(name, as_node(agent.compile()), destinations=("billing", END))
    builder.add_edge(START, "sales")
    app, config = builder.compile(checkpointer=InMemorySaver()), {"configurable": {"thread_id": "t"}}
    asked = await app.ainvoke({"messages": [HumanMessage("hello")]}, config)
    assert asked["messages"][-1].text == "Who are you?"
    models["sales"].queue("fill", say("", call("CustomerNotebook", name="Ann", product="X100")))
    models["sales"].queue("reply", OVER)
    models["billing"].queue("reply", say("Hello Ann."))
    told = await app.ainvoke({"messages": [HumanMessage("Ann, X100. My invoice?")]}, config)
    assert told["messages"][-1].text == "Hello Ann."
    assert models["billing"].asked("fill") == []


async def test_an_entry_that_an_empty_page_has_and_that_was_deleted_does_not_come_back():
    class StepsNotebook(Notebook):
        steps: dict[str, str] = {"greet": "say hello"}

    builder, model = StateGraph(TeamState).add_edge(START, "sales"), AgentModel()
    builder.add_node("sales", as_node(build_agent([StepsNotebook], name="sales", model=model).compile()))
    model.queue("update", say("", call("StepsNotebook", steps={"greet": None})))
    model.queue("reply", say("ok"), say("ok"))
    app, config = builder.compile(checkpointer=InMemorySaver()), {"configurable": {"thread_id": "t"}}
    for words in ("hi", "go on"):
        values = await app.ainvoke({"messages": [HumanMessage(words)]}, config)
        assert values["seats"]["sales"]["steps"]["steps"] == {}


def one_more(messages):
    """Note a call and its caller, as totals of the page in view, as models are told to."""
    counted = [line for line in messages[0].text.splitlines() if line.startswith("calls: ")]
    total = int(counted[0].removeprefix("calls: ")) + 1
    return say("Noted.", call("VisitsNotebook", calls=total, callers={messages[-1].text: "called"}))


def parallel(names, runs):
    builder = StateGraph(VisitsState)
    models = {name: AgentModel() for name in names}
    for name in names:
        models[name].queue("reply", *[one_more] * runs)
        agent = build_agent([VisitsNotebook], name=name, model=models[name], shared=[VisitsNotebook])
        builder.add_node(name, as_node(agent.compile()))

    def fan_out(state):
        given = {"visits": state["visits"], "seats": {}}
        return [
            Send(name, given | {"messages": [HumanMessage(f"{name} {run}", id=f"{name}-{run}")]})
            for name in names
            for run in range(runs)
        ]

    builder.add_conditional_edges(START, fan_out, names)
    return builder.compile(checkpointer=InMemorySaver())


@pytest.mark.slow
async def test_200_parallel_increments_of_two_agents_are_200():
    app, config = parallel(["sales", "billing"], 100), {"configurable": {"thread_id": "t"}}
    values = await app.ainvoke({"messages": [HumanMessage("go")]}, config)
    assert (values["visits"]["calls"], len(values["visits"]["callers"])) == (200, 200)
    assert app.get_state(config).values["visits"] == values["visits"]


async def test_parallel_writers_may_pass_the_limit_together_and_the_page_can_still_be_shortened():
    class ShortNotebook(VisitsNotebook):
        CHANNEL = "visits"
        LIMIT = 60

    class ShortState(TeamState):
        visits: Annotated[ShortNotebook, patches(ShortNotebook, bounded=False)]

    builder = StateGraph(ShortState)
    model = AgentModel()
    agent = build_agent([ShortNotebook], name="sales", model=model, shared=[ShortNotebook])
    builder.add_node("sales", as_node(agent.compile()))
    page = {"visits": {}, "seats": {}}
    builder.add_conditional_edges(
        START, lambda state: [Send("sales", page | {"messages": [HumanMessage(w, id=w)]}) for w in "ab"], ["sales"]
    )
    app = builder.compile()
    model.queue("reply", *[lambda m: say("ok", call("ShortNotebook", callers={m[-1].text: "x" * 30}))] * 2)
    values = await app.ainvoke({"messages": [HumanMessage("go")]})
    assert sorted(values["visits"]["callers"]) == ["a", "b"]
    assert len(ShortNotebook.load(values["visits"]).render()) > 60


async def test_a_shared_page_is_still_checked(caplog):
    """No edge of this parent reads the state, so LangGraph shows the channel nothing before it saves."""
    app = parallel(["sales"], 1)
    config = {"configurable": {"thread_id": "t"}}
    await app.ainvoke({"messages": [HumanMessage("go")]}, config)
    before = app.get_state(config).values
    app.update_state(config, {"visits": {"calls": "many"}, "seats": 3}, as_node="sales")
    assert app.get_state(config).values == before
    assert "calls: got 'many'" in caplog.text


async def test_the_parents_fork_takes_pages_and_every_agents_conversation_back():
    team = Team()
    await team.say("one", sales=[say("One.", call("CallbackNotebook", day="Monday", calls=1))])
    first = team.app.get_state(team.config).config
    await team.say("the xylophone", sales=[OVER], billing=[say("X.", call("CallbackNotebook", day="Friday", calls=5))])
    await team.say("two", config=first)
    prompt = "\n".join(m.text for m in team.models["sales"].asked("reply")[-1])
    assert "xylophone" not in prompt
    assert "One." in prompt
    assert (team.values["callback"]["day"], team.values["callback"]["calls"]) == ("Monday", 1)
    assert "billing" not in team.values["seats"]
    await team.say("and you?", sales=[OVER], billing=[say("Hm.")])
    assert "xylophone" not in "\n".join(m.text for m in team.models["billing"].asked("reply")[-1])


async def test_a_parent_that_is_killed_goes_on_in_the_agent_and_counts_once(tmp_path):
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        team = Team(saver)

        def killed(_):
            running.cancel()
            return say("never heard")

        both = [say("", call("CallbackNotebook", calls=1)), killed]
        running = asyncio.ensure_future(team.say("Call me", sales=both))
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await team.say(None, sales=[say("I will.")]) == "I will."
        values = (await team.app.aget_state(team.config)).values
        assert values["callback"]["calls"] == 1
        assert len(team.models["sales"].asked("reply")) == 3, "what was done before the kill was not done again"


async def test_state_holds_json_and_messages_and_survives_strict_msgpack():
    team = Team(InMemorySaver(serde=STRICT))
    await team.say("My invoice?", sales=[OVER], billing=[say("Paid.", call("CallbackNotebook", day="Monday"))])
    await team.say("And mine?")
    saved = team.app.checkpointer.get(team.config)["channel_values"]
    seats = saved.pop("seats")
    assert {"messages", "callback"} <= set(saved)
    check_plain(saved)
    for seat in seats.values():
        check_plain(seat)
    assert [m.text for m in seats["billing"]["messages"] if m.type == "human"] == ["My invoice?"]
    assert seats["sales"]["turn"] == 2


def test_what_cannot_be_a_node_is_refused_with_what_can():
    other = StateGraph(MessagesState).add_node("a", lambda _: {}).add_edge(START, "a").compile()
    for wrong in (other, build_dungeon_master(), build_reflect().compile(), "dungeon_master"):
        with pytest.raises(DeclarationError, match="expected a compiled graph of Questbook's") as refused:
            as_node(wrong)
        assert "build_agent" in str(refused.value)
    for saver in (True, InMemorySaver()):
        with pytest.raises(DeclarationError, match="'dungeon_master' has a checkpointer of its own"):
            as_node(build_dungeon_master().compile(checkpointer=saver))
