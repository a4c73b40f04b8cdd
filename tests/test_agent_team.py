"""Two agents in one parent graph: handing over, and what no team can be made of."""

from typing import Annotated

import pytest
from desk import AgentModel, CallbackNotebook, TicketNotebook
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command
from scripted import call, say, sections_of, words_of
from team import OVER, DeskState, Team, VisitsNotebook, VisitsState

from questbook.graphs.agent import as_node, build_agent
from questbook.graphs.errors import InputError
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


@pytest.mark.parametrize("whom", ["legal", ["billing"], {"name": "billing"}, None, 1])
async def test_what_is_no_colleague_cannot_be_handed_over_to(whom):
    team = Team()
    wrong = say("", call("hand_over", to=whom))
    assert await team.say("Sue them", sales=[wrong, say("I cannot.")]) == "I cannot."
    results = [m for m in team.models["sales"].asked("reply")[-1] if m.type == "tool"]
    assert "hand_over to billing" in results[0].text


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
