"""build_agent: the modes, the prompt, the ways to run of an agent made of notebooks; what a description may not say."""

from typing import Literal

import desk
import pytest
from desk import KNOWN, AgentModel, CallbackNotebook, CustomerNotebook, Desk, TicketNotebook, note
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime
from scripted import call, say, words_of

from questbook import FactNotes, Notebook, every_turn
from questbook.graphs.agent import Mode, Recall, build_agent
from questbook.graphs.agent.nodes import tools_of
from questbook.graphs.errors import ModelError, SettingsError
from questbook.graphs.turn.pages import update_pages
from questbook.memory.buffer.policies import LastTurns, RunningSummary
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.notebooks.errors import DeclarationError, NotebookError


async def test_pages_stand_where_they_are_declared_to():
    class LastNotebook(TicketNotebook):
        PLACE = "last"

    desk = Desk(CallbackNotebook, LastNotebook, instructions="You are the desk.")
    await desk.say("hi")
    first, last = desk.model.asked("reply")[0]
    assert first.text.startswith("<callback>")
    assert first.text.index("</callback>") < first.text.index("You are the desk.")
    assert last.text == '<last>\nstatus: "open"\n</last>\n\n<message>\nhi\n</message>'


async def test_modes_are_tried_in_order_and_hold_for_the_turn():
    desk = Desk(
        CustomerNotebook,
        TicketNotebook,
        modes=[
            Mode("greet", "Greet them.", fills=CustomerNotebook),
            Mode("close", "Say goodbye.", when=lambda state: state.ticket.status == "solved"),
            Mode("solve", "Solve it."),
        ],
    )
    assert {"greet", "close", "solve"} <= set(desk.app.get_graph().nodes)
    await desk.say("hi")
    assert "Greet them." in desk.prompts("fill")[-1]
    await desk.say("Ann, X100", fill=KNOWN, update=note(status="solved"))
    assert "Solve it." in desk.prompts("reply")[-1]
    assert desk.values["mode"] == "solve"
    await desk.say("Works!", update=note(status="open"))
    assert "Say goodbye." in desk.prompts("reply")[-1]
    await desk.say("Oh no")
    assert desk.values["mode"] == "solve"


def test_the_state_is_typed_and_a_caller_sends_messages():
    app = build_agent([TicketNotebook, CustomerNotebook]).compile()
    out = app.get_output_jsonschema()
    assert out["properties"]["ticket"]["$ref"].endswith("TicketNotebook")
    assert out["$defs"]["TicketNotebook"]["properties"]["steps"]["type"] == "object"
    assert list(app.get_input_jsonschema()["properties"]) == ["messages"]


async def test_it_runs_without_store_and_checkpointer_and_without_any_notebook():
    app = build_agent([], model=AgentModel(), instructions="Be brief.").compile()
    out = await app.ainvoke({"messages": [("user", "hi")]})
    assert out["messages"][-1].text == "I see."
    assert "No store" in out["notices"][0]["text"]


async def test_a_chat_model_that_cannot_call_tools_serves_where_none_are_asked_for():
    model = GenericFakeChatModel(messages=iter([AIMessage("Hello."), AIMessage("Hello again.")]))
    desk = Desk(TicketNotebook, model=model)
    assert await desk.say("hi") == "Hello."
    assert "cannot call tools, and is asked to call TicketNotebook" in desk.notices[-1]
    desk = Desk(CallbackNotebook, model=model)
    with pytest.raises(ModelError, match=r"GenericFakeChatModel.*cannot call tools"):
        await desk.say("hi")


async def test_the_model_may_be_named_when_the_agent_is_built_or_when_it_runs(model):
    app = build_agent([], model="scripted:small").compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    model.queue("condense", say("A scripted hello."))
    out = await app.ainvoke({"messages": [("user", "hi")]}, config)
    assert out["messages"][-1].text == "A scripted hello."
    model.queue("condense", say("Another."))
    out = await app.ainvoke(
        {"messages": [("user", "hi")]}, config, context={"model": "scripted:big", "user": "adventurer"}
    )
    assert out["messages"][-1].text == "Another."


async def test_without_a_model_the_offline_assistant_interviews_and_says_what_it_is():
    desk = Desk(CustomerNotebook, TicketNotebook, model="offline")
    assert await desk.say("Hello, it leaks") == "Please tell me your name."
    assert await desk.say("Ann Bell") == "Please tell me your product."
    assert "built-in offline assistant" in await desk.say("X100")
    assert desk.values["customer"] == {"version": 1, "name": "Ann Bell", "product": "X100"}
    assert await desk.say("My name is Bob") == "I note: Your name is Bob."
    assert desk.values["notices"] == []


async def test_the_offline_assistant_tells_what_was_wrong_with_an_answer():
    class AgeNotebook(CustomerNotebook):
        REQUIRED = ("age",)
        age: int | None = None

    desk = Desk(AgeNotebook, model="offline")
    await desk.say("Hello")
    await desk.say("very old")
    assert desk.values["messages"][-2].text == "very old", "the call that failed is not in the conversation"
    assert desk.values["messages"][-1].text == "Thank you."
    assert "age: got 'very old'" in desk.values["notices"][-1]["detail"]


async def test_the_buffer_policy_decides_what_stands_in_the_prompt():
    desk = Desk(buffer=LastTurns(1))
    for words in ("one", "two", "three"):
        await desk.say(words)
    assert words_of(desk.model.asked("reply")[-1]) == ["two", "three"]
    desk = Desk(buffer=RunningSummary(1), recall=Recall(tokens=0))
    for words in ("one apple", "two pears", "three plums"):
        await desk.say(words)
    assert "one apple" in desk.prompts("reply")[-1].split("<summary>\n")[1]


@pytest.mark.parametrize("name", ["default", "companion"])
async def test_an_agent_called_as_a_game_or_an_assistant_is_another_one(name):
    desk = Desk(TicketNotebook, name=name)
    await desk.say("It leaks")
    assert await desk.store.asearch(campaign_namespace("adventurer", name)) == []
    assert len(await desk.store.asearch(campaign_namespace("adventurer", f"agent:{name}", "exchanges"))) == 1


async def test_a_page_is_not_written_in_a_turn_that_is_not_to_be_remembered():
    desk = Desk(CallbackNotebook)
    wrong = say("", call("CallbackNotebook", day="Zelda's day"))
    await desk.say("My name is Zelda, but don't remember this.", reply=[wrong, say("As you like.")])
    assert desk.values["callback"]["day"] == ""
    await desk.say("And now?")
    rule = "What the person asked you not to remember you never note, in no later turn either."
    assert all(rule in prompt for prompt in desk.prompts("reply"))


async def test_a_prompt_has_the_agents_instructions_those_of_the_mode_and_how_to_write_a_page_but_not_in_private():
    desk = Desk(CallbackNotebook, instructions=" Be brief. ", modes=[Mode("help", "Help them.")])
    await desk.say("hi")
    await desk.say("Don't remember this: I am Ann.")
    open_turn, private = (asked[0].text for asked in desk.model.asked("reply"))
    writes = "When the person says something that belongs on page <callback> (CallbackNotebook), call the tool"
    for text in (open_turn, private):
        assert "Be brief.\n\nHelp them.\n\n- The text between tags is your memory." in text
    assert writes in open_turn
    assert writes not in private


async def test_an_interview_is_told_which_page_it_fills_by_which_tool_and_what_is_missing():
    desk = Desk(CustomerNotebook, instructions="Be brief.")
    await desk.say("hi")
    [prompt] = desk.prompts("fill")
    assert "get to know what belongs on page <customer>" in prompt
    assert "call the tool CustomerNotebook with just that" in prompt
    assert "<missing>\nname, product\n</missing>" in prompt
    assert prompt.index("Be brief.") < prompt.index("Before anything else")


class Loud(Notebook):
    UPDATE = every_turn
    volume: Literal["low", "high"] = "low"


class OwnMood(Notebook):
    """How they feel, after every turn."""

    UPDATE = every_turn
    CHANNEL = "mood"
    mood: str = ""


class SharedLoud(Loud):
    SCOPE = "user"


@pytest.mark.parametrize(
    ("description", "said"),
    [
        ({"notebooks": [Loud, Loud]}, "Loud is given twice"),
        ({"notebooks": Loud}, "expected a list of classes"),
        ({"modes": [Mode("a"), Mode("b")]}, "Mode 'a' always applies, so 'b' behind it never would"),
        ({"modes": [Mode("a", when=bool), Mode("a")]}, "Two modes cannot have one name: 'a'"),
        ({"modes": [Mode("fill", fills=Loud)], "notebooks": [Loud]}, "whose UPDATE is once (none)"),
        ({"modes": [Mode("recall")]}, "Mode 'recall': the agent has something of that name already"),
        ({"modes": [Mode("summary")]}, "Mode 'summary': the agent has something of that name already"),
        ({"modes": [Mode("not a name")]}, "Mode 'not a name': expected a name of letters"),
        (
            {"modes": [Mode("a", fills=CustomerNotebook, when=bool)], "notebooks": [CustomerNotebook]},
            "it has `fills` and `when`",
        ),
        (
            {
                "modes": [Mode("a", fills=CustomerNotebook), Mode("b", fills=CustomerNotebook)],
                "notebooks": [CustomerNotebook],
            },
            "Mode 'b': an earlier one fills CustomerNotebook already",
        ),
        ({"instructions": 3}, "instructions: got 3; expected a text."),
        ({"modes": ["help"]}, "modes: got ('help',); expected a list of modes, such as [Mode('help')]."),
        ({"modes": Mode("help")}, "modes: got Mode(name='help'"),
        ({"modes": None}, "modes: got None; expected a list of modes"),
        ({"notebooks": None}, "notebooks: got None; expected a list of classes, such as [MyNotebook]."),
        ({"modes": [Mode("ticket")], "notebooks": [desk.TicketNotebook]}, "Mode 'ticket': the agent has something of"),
        ({"modes": [Mode("begin")]}, "Mode 'begin': the agent has something of that name already"),
        ({"modes": [Mode("respond", when=bool)]}, "Two modes cannot have one name: 'respond'"),
        (
            {"modes": [Mode("a", fills=CustomerNotebook)]},
            "Mode 'a' fills CustomerNotebook: expected one of the agent's",
        ),
        (
            {"modes": [Mode("a"), Mode("b", fills=CustomerNotebook)], "notebooks": [CustomerNotebook]},
            "Mode 'a' always applies, so 'b' behind it never would. Put it last, or say in `when` where it applies.",
        ),
        *(
            ({"handoffs": handoffs}, f"handoffs: got {handoffs!r}; expected node to when, such as {{'billing': 'an inv")
            for handoffs in ({"billing": ""}, {"": "an invoice"}, {1: "an invoice"}, ["billing"])
        ),
        ({"facts": "yes"}, "facts: got 'yes'; expected True or False"),
        ({"scope": "all"}, "scope: got 'all'; expected 'thread', 'user' or 'campaign'."),
        ({"shared": "x"}, "shared: got 'x'; expected a list of the notebooks"),
        ({"model": ""}, "model: got ''; expected a chat model, or its name"),
        ({"remember_tools": "search"}, "remember_tools: got 'search'; expected names of tools"),
        ({"remember_tools": ["dirct"]}, "remember_tools: got 'dirct'; expected names of its tools (hand_over)."),
        ({"tools": [StructuredTool.from_function(print, return_direct=True)]}, "tools: print has return_direct, but"),
        ({"modes": [Mode(5)]}, "Mode 5: expected a name of letters, digits and underscores."),
        ({"modes": [Mode("a", fills="x")]}, "Mode 'a' fills x: expected one of the agent's notebooks"),
        ({"modes": [Mode("a", when=True)]}, "Mode 'a': when: got True; expected a function of the state."),
        ({"modes": [Mode("a", instructions=5)]}, "Mode 'a': instructions: got 5; expected a text."),
        ({"name": "desk:2"}, "name: got 'desk:2'; expected a name without a colon"),
        ({"name": " "}, "name: got ' '"),
        ({"recall": 0.5}, "recall: got 0.5; expected Recall(…), such as Recall(tokens=400)"),
        ({"recall": Recall}, "recall: got <class"),
        ({"buffer": "turns"}, "buffer: got 'turns'; expected a buffer policy, such as LastTurns(6)"),
        ({"buffer": LastTurns}, "buffer: got <class"),
        ({"shared": [Loud]}, "shared: Loud is none of the notebooks"),
        (
            {"shared": [SharedLoud], "notebooks": [SharedLoud]},
            "shared: SharedLoud has SCOPE 'user', so the store shares it with all threads already. Leave it out of "
            "`shared`, or give it the scope 'thread'.",
        ),
    ],
)
def test_a_description_that_makes_no_sense_is_refused_when_it_is_built(description, said):
    with pytest.raises(DeclarationError) as error:
        build_agent(**{"notebooks": [], **description})
    assert said in str(error.value)


@pytest.mark.parametrize("channel", [
    "messages", "mode", "begin", "recall", "use_tools", "update_pages", "remember", "learn", "reflect", "condense",
    "instructions", "summary", "memories", "missing", "due", "turns", "words", "transcript", "written", "opener",
    "refusals", "unreflected", "learned_through",
])  # fmt: skip
def test_a_notebook_cannot_be_called_as_something_that_every_agent_has(channel):
    page = type("OwnNotebook", (Notebook,), {"__module__": __name__, "CHANNEL": channel})
    taken = f"every agent has something called '{channel}' already. Set its CHANNEL to another name."
    with pytest.raises(DeclarationError, match=f"OwnNotebook: {taken}"):
        build_agent([page])


def test_notebooks_come_in_any_iterable():
    pages = {"loud": Loud}
    for notebooks in (pages.values(), (page for page in pages.values())):
        assert "loud" in build_agent(name="desk", notebooks=notebooks).compile().channels


def test_two_tools_cannot_have_one_name():
    def TicketNotebook(text: str) -> str:  # noqa: N802
        """Do something else."""
        return text

    def hand_over(to: str) -> str:
        """Hand over."""
        return to

    for tools in ([TicketNotebook], [hand_over]):
        with pytest.raises(DeclarationError, match=f"Two tools cannot have one name: '{tools[0].__name__}'"):
            build_agent([desk.TicketNotebook], tools=tools)


def test_an_agent_has_an_interview_for_each_page_filled_once_and_a_last_mode_that_answers():
    spec = build_agent([CustomerNotebook], modes=[Mode("help", when=bool)]).state_schema.SPEC
    assert [mode.name for mode in spec.all_modes()] == ["fill_customer", "help", "respond"]
    assert [mode.name for mode in build_agent([], modes=[Mode("help")]).state_schema.SPEC.all_modes()] == ["help"]
    own = build_agent([CustomerNotebook], modes=[Mode("meet", fills=CustomerNotebook)]).state_schema.SPEC
    assert [mode.name for mode in own.all_modes()] == ["meet", "respond"]
    known = "'gone' any more; there are fill_customer, help, respond. Begin a new turn."
    with pytest.raises(DeclarationError, match=known):
        spec.named("gone")


@pytest.mark.parametrize(
    ("parts", "tools"),
    [
        ({}, []),
        ({"notebooks": [desk.TicketNotebook]}, []),
        ({"notebooks": [desk.CallbackNotebook]}, ["CallbackNotebook"]),
        ({"handoffs": {"billing": "an invoice", "sales": "a wish"}}, ["hand_over"]),
    ],
)
def test_what_may_be_called_in_a_reply_follows_from_what_the_agent_has(parts, tools):
    builder = build_agent(**{"notebooks": [], **parts})
    spec = builder.state_schema.SPEC
    offered = tools_of(spec)
    assert [tool["function"]["name"] for tool in offered] == tools
    assert spec.has_tools is bool(tools) is ("use_tools" in builder.nodes)
    assert [tool["function"]["name"] for tool in tools_of(spec, private=True)] == [
        name for name in tools if name == "hand_over"
    ], "of a private turn no page is written"
    if tools == ["hand_over"]:
        function = offered[0]["function"]
        assert function["parameters"]["properties"]["to"]["enum"] == ["billing", "sales"]
        assert function["parameters"]["required"] == ["to"]
        assert "billing: an invoice; sales: a wish" in function["description"]


def test_a_run_has_the_agents_name_in_traces():
    builder = build_agent([], name="desk")
    assert builder.compile().name == "desk"
    assert builder.compile(name="other").name == "other"


def test_an_agents_settings_have_its_name_its_model_and_what_it_says_of_facts():
    notes = FactNotes(reflection="background", reflection_importance=9)
    settings = build_agent([], name="desk", model="openai:gpt-9", facts=notes).context_schema
    context = settings.of({"user": "ann"})
    assert (context.campaign, context.model, context.reflection) == ("agent:desk", "openai:gpt-9", "background")
    assert (context.reflection_importance, context.noting, context.CHAT_MODEL) == (9, "inline", None)
    names = {"tale": "agent:desk:tale", "agent:desk": "agent:desk", "agent:desk:tale": "agent:desk:tale"}
    assert {name: settings.of({"campaign": name}).campaign for name in names} == names
    for wrong in ({"campaign": "x" * 201}, {"model": ""}, {"reflection_importance": 0}, {"max_tool_rounds": 21}):
        with pytest.raises(SettingsError, match=next(iter(wrong))):
            settings.of(wrong)
    assert settings.of({"max_tool_rounds": 20, "campaign": "x" * 200}).max_tool_rounds == 20

    class Named(GenericFakeChatModel):
        model_name: str = "gpt-9"

    for made, label in ((Named(messages=iter(())), "gpt-9"), (GenericFakeChatModel(messages=iter(())), None)):
        context = build_agent([], model=made).context_schema.of({"user": "ann"})
        assert (context.model, context.CHAT_MODEL) == (label or "GenericFakeChatModel", made)
    other = build_agent([], facts=True).context_schema.of({"user": "ann"})
    assert (other.reflection, other.reflection_importance) == ("inline", 150)


def test_the_state_of_an_agent_says_what_it_is_and_puts_back_what_lies_ahead():
    builder = build_agent(
        [CustomerNotebook, TicketNotebook, CallbackNotebook], name="desk", buffer=LastTurns(3), scope="thread",
        tools=[StructuredTool.from_function(print)], remember_tools=["print"], facts=True,
    )  # fmt: skip
    state = builder.state_schema
    said = state.MACHINE, state.SCOPE, state.BUFFER, state.INTERVIEW, state.REMEMBERED_TOOLS
    assert said == ("agent:desk", "thread", LastTurns(3), {"CustomerNotebook"}, {"print"})
    at_three = {"turn": 3, "timeline": [["a", 3]]}
    ahead = state.model_validate(at_three | {"noted": {"ticket": 9}, "remembered_through": 9})
    assert (ahead.noted, ahead.remembered_through) == ({"ticket": 3}, 3)
    assert {channel for channel, _ in ahead.refusals} == {"noted", "remembered_through"}
    for noted, remembered, leaves in ((1, 2, 1), (2, 1, 1), (0, 3, 0)):
        values = at_three | {"noted": {"ticket": noted} if noted else {}, "remembered_through": remembered}
        assert state.model_validate(values).may_leave == leaves, "what is noted and remembered"
    asked = build_agent([CallbackNotebook]).state_schema.model_validate(at_three | {"remembered_through": 2})
    assert asked.may_leave == 2, "a page that is written on demand holds nothing back"
    head = state.model_validate(at_three | {"noted": {"ticket": 2}, "facts_through": 1, "unreflected": 7}).head_fields()
    assert (head["noted"], head["facts_through"], head["unreflected"]) == ({"ticket": 2}, 1, 7)


def update_of(desk, state, **settings):
    context = desk.builder.context_schema.of({"user": "ann"} | settings)
    return update_pages(state, Runtime(context=context, store=desk.store))


async def test_pages_are_brought_up_to_date_from_the_oldest_turn_that_one_of_them_lacks_in_portions():
    desk = Desk(TicketNotebook, OwnMood)
    said = [f"Word {n}. {'And so on. ' * 300}" for n in (1, 2, 3)]
    messages = [
        message for n, text in enumerate(said) for message in (HumanMessage(text, id=f"{n}"), AIMessage("Yes."))
    ]
    at_three = {"messages": messages, "turn": 3, "timeline": [("a", 3)], "remembered_through": 3}
    state = desk.builder.state_schema(**at_three, noted={"ticket": 2, "mood": 1})
    desk.model.queue("update", say("", call("OwnMood", mood="cross")))
    assert await update_of(desk, state) == {
        "noted": {"ticket": 3, "mood": 3}, "mood": {"mood": "cross"}, "notices": [],
    }  # fmt: skip
    assert [text in desk.model.asked("update")[0][-1].text for text in said] == [False, True, True]
    lines = "TicketNotebook: page <ticket>, turns 3 to 3, {}\nOwnMood: page <mood>, turns 2 to 3, {}"
    assert lines.format(state.ticket.fullness, state.mood.fullness) in desk.prompts("update")[0]
    state.window = {"model": "AgentModel", "tokens": 1_000}
    assert (await update_of(desk, state))["noted"] == {"ticket": 2, "mood": 2}, "the rest with the next turn"
    assert "TicketNotebook: page" not in desk.prompts("update")[1], "which is not due in turn 2"
    private = {"messages": [HumanMessage("Don't remember this: 4711.", id="p")], "noted": {"ticket": 3, "mood": 3}}
    hushed = {"turn": 4, "timeline": [("a", 4)]}
    state = desk.builder.state_schema(**at_three | private | hushed)
    assert await update_of(desk, state) == {"noted": {"ticket": 4, "mood": 4}}
    assert len(desk.model.asked("update")) == 2


def test_the_limit_of_a_page_that_others_write_too_does_not_hold_at_each_write():
    """Two that each fit may pass it together, and LangGraph saves both."""
    short = {"UPDATE": every_turn, "LIMIT": 30, "__annotations__": {"text": str}, "text": "", "__module__": __name__}
    own, shared, users = (
        type(name, (Notebook,), short | more)
        for name, more in (("Own", {}), ("Shared", {"SCOPE": "thread"}), ("Users", {"SCOPE": "user"}))
    )
    builder = build_agent([own, shared, users], shared=[shared])
    spec = builder.state_schema.SPEC
    assert [spec.is_shared(page) for page in (own, shared, users)] == [False, True, True]
    channels = builder.compile().channels
    for page in (shared, users):
        channels[page.channel()].from_checkpoint({}).copy().update([{"text": "x" * 60}])
    with pytest.raises(NotebookError):
        channels[own.channel()].from_checkpoint({}).copy().update([{"text": "x" * 60}])


async def test_an_answer_that_failed_has_what_was_recalled_when_its_turn_is_run_again():
    desk = Desk(TicketNotebook, buffer=LastTurns(1))
    await desk.say("The pump of my boat leaks at the blue valve.")
    for words in ("hi", "hello"):
        await desk.say(words)
    with pytest.raises(ModelError):
        await desk.say("Which valve of the pump leaks?", reply=ConnectionError("cut"))
    await desk.say(None)
    failed, again = desk.prompts("reply")[-2:]
    assert "leaks at the blue valve" in failed
    assert "leaks at the blue valve" in again
