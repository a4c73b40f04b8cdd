"""build_agent: each update policy, the modes, the tools and the prompt of an agent made of notebooks."""

from typing import Literal

import pytest
from conftest import MIRA
from desk import AgentModel, CallbackNotebook, CustomerNotebook, Desk, MoodNotebook, TicketNotebook
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from scripted import call, malformed, say

from graphs.agent import Mode, Recall, build_agent
from graphs.dungeon_master import prompts as dungeon
from graphs.errors import InputError, ModelError
from memory.buffer_policies import LastTurns, Summary
from memory.namespaces import campaign_namespace
from notebooks import CharacterNotebook, DeclarationError, Notebook, PatchError, StateNotebook, every_turn

KNOWN = say("", call("CustomerNotebook", name="Ann", product="X100"))


def note(**fields):
    return say("", call("TicketNotebook", **fields))


async def test_once_an_interview_fills_the_page_and_the_same_turn_goes_on():
    desk = Desk(CustomerNotebook, TicketNotebook)
    assert await desk.say("Hello, it leaks") == "Who are you?"
    assert desk.values["mode"] == "fill_customer"
    assert "<missing>\nname, product\n</missing>" in desk.prompts("fill")[-1]
    told = say("And the product?", call("CustomerNotebook", name="Ann"))
    assert await desk.say("I'm Ann", fill=told) == "And the product?"
    assert await desk.say("X100", fill=KNOWN, reply=say("Thanks. Where does it leak?")) == "Thanks. Where does it leak?"
    assert desk.values["customer"] == {"version": 1, "name": "Ann", "product": "X100"}
    assert "<customer>" in desk.prompts("reply")[-1]
    assert '"player": "Hello, it leaks"' in desk.model.asked("update")[-1][-1].text, "what was said meanwhile is noted"
    await desk.say("Below")
    assert len(desk.model.asked("fill")) == 3, "once means once"


async def test_once_what_does_not_fit_is_asked_for_again_and_told():
    desk = Desk(CustomerNotebook)
    wrong = say("Hm.", call("CustomerNotebook", surname="Bell"))
    await desk.say("Ann Bell", fill=[wrong, KNOWN])
    assert desk.values["customer"]["name"] == "Ann"
    assert any("surname: there is no such field" in notice for notice in desk.notices)


async def test_every_turn_the_page_is_patched_after_the_reply():
    desk = Desk(TicketNotebook)
    await desk.say("It leaks", update=note(problem="leaks", steps={"1": "close the tap"}))
    await desk.say("Done", update=note(steps={"1": None, "2": "call us"}))
    await desk.say("Thanks")
    assert desk.values["ticket"] == {"version": 1, "problem": "leaks", "status": "open", "steps": {"2": "call us"}}
    assert [job for job, _ in desk.model.calls] == ["reply", "update"] * 3
    assert "<ticket>" in desk.prompts("reply")[1]
    assert desk.values["noted"] == {"ticket": 3}


async def test_every_n_turns_the_page_takes_account_of_all_turns_since():
    desk = Desk(MoodNotebook, buffer=LastTurns(1))
    for words in ("one", "two"):
        await desk.say(words)
    assert desk.model.asked("update") == []
    await desk.say("three", update=say("", call("MoodNotebook", mood="tired")))
    told = desk.model.asked("update")[-1]
    assert [words in told[-1].text for words in ("one", "two", "three")] == [True] * 3
    assert "MoodNotebook: page <mood>, turns 1 to 3" in told[0].text
    assert desk.values["mood"]["mood"] == "tired"
    assert len(desk.values["messages"]) == 2, "what is noted may leave the buffer, and not before"
    for words in ("four", "five", "six"):
        await desk.say(words)
    assert len(desk.model.asked("update")) == 2


async def test_pages_that_are_due_in_the_same_turn_are_one_question():
    desk = Desk(TicketNotebook, MoodNotebook)
    await desk.say("one")
    await desk.say("two")
    both = say("", call("TicketNotebook", problem="leaks"), call("MoodNotebook", mood="cross"))
    await desk.say("three", update=both)
    assert len(desk.model.asked("update")) == 3
    assert (desk.values["ticket"]["problem"], desk.values["mood"]["mood"]) == ("leaks", "cross")
    assert (
        "TicketNotebook: page <ticket>, turns 3 to 3\nMoodNotebook: page <mood>, turns 1 to 3"
        in desk.prompts("update")[-1]
    )


async def test_on_demand_the_model_writes_with_its_reply():
    desk = Desk(CallbackNotebook)
    assert await desk.say("Monday?", reply=say("Monday it is.", call("CallbackNotebook", day="Monday"))) == (
        "Monday it is."
    )
    assert desk.values["callback"]["day"] == "Monday"
    assert [job for job, _ in desk.model.calls] == ["reply"], "an edit beside the answer costs no second question"
    silent = say("", call("CallbackNotebook", day="Tuesday"))
    assert await desk.say("Tuesday", reply=[silent, say("Moved.")]) == "Moved."
    assert "<callback>" in desk.prompts("reply")[-1].split("- What stands")[0], "its place is before the instructions"


async def test_on_demand_a_call_that_does_not_fit_goes_back_and_is_told():
    desk = Desk(CallbackNotebook)
    wrong = say("Noted.", call("CallbackNotebook", month="May"))
    await desk.say("May", reply=[wrong, say("Which day?")])
    results = [m for m in desk.values["messages"] if isinstance(m, ToolMessage)]
    assert results[0].status == "error"
    assert "month: there is no such field" in results[0].text
    assert ["month: there is no such field" in notice for notice in desk.notices] == [True]
    assert desk.values["callback"]["day"] == ""


async def test_a_patch_that_does_not_fit_twice_keeps_the_page_and_the_next_turn_catches_up():
    desk = Desk(TicketNotebook, MoodNotebook)
    await desk.say("one")
    await desk.say("two")
    wrong = say("", call("TicketNotebook", colour="red"), call("MoodNotebook", mood="cross"))
    await desk.say("three", update=[wrong, say("", call("TicketNotebook", colour="blue"))])
    assert desk.values["ticket"]["problem"] == ""
    assert desk.values["mood"]["mood"] == "cross", "the other page's patch stands"
    assert desk.values["noted"] == {"ticket": 2, "mood": 3}
    assert "the next turn will catch up (ticket). TicketNotebook was left as it is. colour" in desk.notices[-1]
    await desk.say("four", update=note(problem="leaks"))
    assert "TicketNotebook: page <ticket>, turns 3 to 4" in desk.prompts("update")[-1]
    assert desk.values["noted"] == {"ticket": 4, "mood": 3}
    assert desk.values["ticket"]["problem"] == "leaks"


async def test_a_call_that_is_no_pages_is_told_and_nothing_said_of_catching_up():
    desk = Desk(TicketNotebook)
    wrong = say("", call("TicketNotebook", problem="leaks"), call("CallbackNotebook", day="Monday"))
    await desk.say("one", update=[wrong, say("", call("CallbackNotebook", day="Monday"))])
    assert (desk.values["ticket"]["problem"], desk.values["noted"]) == ("leaks", {"ticket": 1})
    assert desk.notices == [
        "A call that is no page's was not done; no later turn will come back to it. There is no tool "
        "'CallbackNotebook'; the only one is TicketNotebook."
    ]


async def test_an_update_that_fails_never_costs_the_reply():
    desk = Desk(TicketNotebook)
    assert await desk.say("It leaks", reply=say("Where?"), update=RuntimeError("the line is down")) == "Where?"
    assert "The pages (ticket) were not updated; the next turn will catch up." in desk.notices[-1]
    await desk.say("Below", update=note(problem="leaks below"))
    assert "turns 1 to 2" in desk.prompts("update")[-1]


async def test_a_full_page_and_arguments_that_are_no_json_are_refused():
    desk = Desk(TicketNotebook)
    long = note(problem="x" * 400)
    await desk.say("one", update=[long, malformed("TicketNotebook", '{"prob')])
    assert desk.values["ticket"]["problem"] == ""
    assert "no JSON object" in desk.notices[-1]
    assert "would render to" in desk.model.asked("update")[-1][-1].text


async def test_pages_stand_where_they_are_declared_to():
    class LastNotebook(TicketNotebook):
        PLACE = "last"

    desk = Desk(CallbackNotebook, LastNotebook, instructions="You are the desk.")
    await desk.say("hi")
    first, *_, last = desk.model.asked("reply")[0]
    assert first.text.startswith("<callback>")
    assert first.text.index("</callback>") < first.text.index("You are the desk.")
    assert last.text == '<last>\nstatus: "open"\n</last>'


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


async def test_the_dungeon_masters_pages_and_modes_are_such_a_description():
    game = Desk(
        CharacterNotebook,
        StateNotebook,
        modes=[
            Mode("build_character", dungeon.INTERVIEW, fills=CharacterNotebook),
            Mode("run_quest", dungeon.QUEST),
        ],
    )
    assert await game.say("hello") == "Who are you?"
    scene = say("", call("StateNotebook", scene="An inn at dusk.", secrets={"host": "a spy"}))
    mira = say("", call("CharacterNotebook", **MIRA))
    assert await game.say("I'm Mira", fill=mira, reply=say("An inn. What now?"), update=scene) == "An inn. What now?"
    assert game.values["quest"]["scene"] == "An inn at dusk."
    await game.say("I look")
    assert "<quest>" in game.prompts("reply")[-1]
    assert dungeon.QUEST in game.prompts("reply")[-1]


async def test_tools_of_the_application_are_called_and_the_model_asked_again():
    def order_status(number: int) -> str:
        """Look up an order."""
        if number == 13:
            raise RuntimeError("no luck")
        return f"order {number} was sent"

    desk = Desk(CallbackNotebook, tools=[order_status])
    both = say("Let me see.", call("CallbackNotebook", day="Monday"), call("order_status", number=7))
    assert await desk.say("My order?", reply=[both, say("It was sent.")]) == "It was sent."
    assert [m.text for m in desk.values["messages"] if isinstance(m, ToolMessage)] == ["Noted.", "order 7 was sent"]
    assert desk.values["callback"]["day"] == "Monday"
    await desk.say("And 13?", reply=[say("", call("order_status", number=13)), say("I cannot see it.")])
    assert "order_status failed" in desk.notices[-1]
    unknown = [say("", call("refund", number=7)), say("I may not.")]
    await desk.say("Refund me", reply=unknown)
    assert "There is no refund" in desk.values["messages"][-2].text


async def test_a_tool_of_the_application_may_patch_a_page_and_read_the_state():
    def book(day: str, runtime: ToolRuntime) -> Command:
        """Book a call."""
        before = runtime.state["callback"]["calls"]
        told = ToolMessage(f"Booked, the {before + 1}.", tool_call_id=runtime.tool_call_id)
        return Command(update={"messages": [told], "callback": {"day": day, "calls": {"$add": 1}}})

    desk = Desk(CallbackNotebook, tools=[book])
    said = [say("One moment.", call("book", day="Monday"), call("CallbackNotebook", calls=4)), say("Booked.")]
    assert await desk.say("Monday", reply=said) == "Booked."
    assert desk.values["callback"] == {"version": 1, "day": "Monday", "calls": 5}
    kinds = [m.type for m in desk.model.asked("reply")[-1]]
    assert kinds == ["system", "human", "ai", "tool", "tool"]


async def test_rounds_of_tools_are_bounded():
    def look(what: str) -> str:
        """Look."""
        return what

    desk = Desk(tools=[look])
    again = [say("Hm.", call("look", what="x")) for _ in range(7)]
    assert await desk.say("go", reply=again) == "Hm."
    assert len(desk.model.asked("reply")) == 6


async def test_a_tool_that_commands_in_the_last_round_is_answered_and_the_model_told_to_end():
    def book(day: str, runtime: ToolRuntime) -> Command:
        """Book a call."""
        told = ToolMessage(f"Booked for {day}.", tool_call_id=runtime.tool_call_id)
        return Command(update={"messages": [told], "callback": {"day": day}})

    desk = Desk(CallbackNotebook, tools=[book])
    rounds = [say("", call("book", day=str(day))) for day in range(1, 7)]
    desk.model.queue("reply", *rounds, say("Done."))
    assert await desk.say("Book all week") == "Done."
    told = [m.text for m in desk.model.asked("reply")[-1] if m.type == "tool"]
    assert told == [
        *(f"Booked for {day}." for day in range(1, 6)),
        "Booked for 6.\nNo more tools in this turn: answer now.",
    ]
    assert desk.values["callback"]["day"] == "6"


async def test_the_buffer_policy_decides_what_stands_in_the_prompt():
    desk = Desk(buffer=LastTurns(1))
    for words in ("one", "two", "three"):
        await desk.say(words)
    assert [m.text for m in desk.model.asked("reply")[-1] if m.type == "human"] == ["two", "three"]
    desk = Desk(buffer=Summary(1), recall=Recall(tokens=0))
    for words in ("one apple", "two pears", "three plums"):
        await desk.say(words)
    assert "one apple" in desk.prompts("reply")[-1].split("<summary>\n")[1]


async def test_what_left_the_buffer_is_recalled_as_far_as_it_may():
    for tokens, found in ((400, True), (0, False)):
        desk = Desk(buffer=LastTurns(0), recall=Recall(tokens=tokens))
        await desk.say("My lamp is called Lumen")
        await desk.say("nothing much")
        await desk.say("What is my lamp called?")
        assert ("<memories>\n" in desk.prompts("reply")[-1]) is found


async def test_a_new_thread_goes_on_from_the_pages_of_the_last():
    desk = Desk(CustomerNotebook, TicketNotebook)
    await desk.say("Ann, X100", fill=KNOWN, update=note(problem="leaks"))
    again = Desk(CustomerNotebook, TicketNotebook, store=desk.store)
    await again.say("me again")
    assert again.model.asked("fill") == []
    assert again.values["ticket"]["problem"] == "leaks"
    assert again.values["turn"] == 2


async def test_agents_of_other_names_do_not_share_memories():
    desk = Desk(TicketNotebook)
    await desk.say("It leaks", update=note(problem="leaks"))
    other = Desk(TicketNotebook, store=desk.store, name="other")
    await other.say("hi")
    assert other.values["turn"] == 1
    assert other.values["ticket"]["problem"] == ""


@pytest.mark.parametrize("name", ["default", "companion"])
async def test_an_agent_called_as_a_game_or_an_assistant_is_another_one(name):
    desk = Desk(TicketNotebook, name=name)
    await desk.say("It leaks")
    assert await desk.store.asearch(campaign_namespace("adventurer", name)) == []
    assert len(await desk.store.asearch(campaign_namespace("adventurer", f"agent:{name}", "exchanges"))) == 1


async def test_edits_by_hand_are_patches_and_checked():
    desk = Desk(TicketNotebook, CallbackNotebook)
    await desk.say("It leaks", update=note(problem="leaks"))
    desk.app.update_state(desk.config, {"ticket": {"status": "closed"}})
    assert desk.values["ticket"]["problem"] == "leaks"
    with pytest.raises(PatchError, match="steps: got 3"):
        desk.app.update_state(desk.config, {"ticket": {"steps": 3}})
    assert desk.values["ticket"]["status"] == "closed"


def test_the_state_is_typed_and_a_caller_sends_messages():
    app = build_agent([TicketNotebook, CustomerNotebook]).compile()
    out = app.get_output_jsonschema()
    assert out["properties"]["ticket"]["$ref"].endswith("TicketNotebook")
    assert out["$defs"]["TicketNotebook"]["properties"]["steps"]["type"] == "object"
    assert list(app.get_input_jsonschema()["properties"]) == ["messages"]


async def test_only_what_is_said_to_the_person_is_streamed():
    desk = Desk(CustomerNotebook, TicketNotebook, CallbackNotebook)
    desk.model.queue("fill", KNOWN)
    desk.model.queue("reply", say("", call("CallbackNotebook", day="Monday")), say("Monday it is."))
    desk.model.queue("update", say("I note that it leaks.", call("TicketNotebook", problem="leaks")))
    stream = desk.app.astream({"messages": [("user", "Ann")]}, desk.config, stream_mode=["messages", "custom"])
    parts = [part async for part in stream]
    chunks = [data[0] for mode, data in parts if mode == "messages" and data[0].type == "AIMessageChunk"]
    assert "".join(chunk.text for chunk in chunks) == "Monday it is."
    told = [data for mode, data in parts if mode == "custom"]
    assert [prompt["node"] for prompt in told] == ["fill_customer", "respond", "respond"]
    assert {"section", "tokens", "text"} <= set(told[-1]["prompt"][0]), "what the model saw can be shown"


def test_callers_without_an_event_loop_are_served():
    desk = Desk(TicketNotebook, CallbackNotebook)
    desk.model.queue("reply", say("Monday.", call("CallbackNotebook", day="Monday")))
    desk.model.queue("update", note(problem="leaks"))
    out = desk.app.invoke({"messages": [("user", "hi")]}, desk.config)
    assert out["messages"][-1].text == "Monday."
    assert (out["ticket"]["problem"], out["callback"]["day"]) == ("leaks", "Monday")


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
    out = await app.ainvoke({"messages": [("user", "hi")]}, config, context={"model": "scripted:big", "user": "ann"})
    assert out["messages"][-1].text == "Another."


async def test_input_that_cannot_be_answered_is_refused_before_anything_is_kept():
    desk = Desk(TicketNotebook)
    with pytest.raises(InputError, match="blank"):
        await desk.say("  ")
    assert desk.model.calls == []


class Loud(Notebook):
    UPDATE = every_turn
    volume: Literal["low", "high"] = "low"


@pytest.mark.parametrize(
    ("description", "said"),
    [
        ({"notebooks": [Loud, Loud]}, "Loud is given twice"),
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
        ({"name": "desk:2"}, "name: got 'desk:2'; expected a name without a colon"),
        ({"name": " "}, "name: got ' '"),
        ({"recall": 0.5}, "recall: got 0.5; expected Recall(…), such as Recall(tokens=400)"),
        ({"recall": Recall}, "recall: got <class"),
        ({"buffer": "turns"}, "buffer: got 'turns'; expected a policy of memory.buffer_policies, such as LastTurns(6)"),
        ({"buffer": LastTurns}, "buffer: got <class"),
        ({"shared": [Loud]}, "shared: Loud is none of the notebooks"),
    ],
)
def test_a_description_that_makes_no_sense_is_refused_when_it_is_built(description, said):
    with pytest.raises(DeclarationError) as error:
        build_agent(**{"notebooks": [], **description})
    assert said in str(error.value)


@pytest.mark.parametrize("channel", ["messages", "summary", "recall", "missing", "mode"])
def test_a_notebook_cannot_be_called_as_something_that_every_agent_has(channel):
    page = type("OwnNotebook", (Notebook,), {"__module__": __name__, "CHANNEL": channel})
    with pytest.raises(DeclarationError, match=f"OwnNotebook: every agent has something called '{channel}' already"):
        build_agent([page])


def test_two_tools_cannot_have_one_name():
    def TicketNotebook(text: str) -> str:  # noqa: N802
        """Do something else."""
        return text

    import desk

    with pytest.raises(DeclarationError, match="Two tools cannot have one name: 'TicketNotebook'"):
        build_agent([desk.TicketNotebook], tools=[TicketNotebook])


async def test_of_a_turn_that_is_not_to_be_remembered_nothing_is_noted_anywhere():
    desk = Desk(CustomerNotebook, TicketNotebook, CallbackNotebook, buffer=Summary(0))
    secret = "My name is Zelda, but don't remember this."
    known = say("I will not.", call("CustomerNotebook", name="Zelda", product="X1"))
    await desk.say(secret, fill=known)
    assert desk.values["customer"]["name"] == ""
    await desk.say("Ann, X100", fill=KNOWN)
    assert "Zelda" not in desk.model.asked("update")[-1][-1].text
    wrong = say("", call("CallbackNotebook", day="Zelda's day"))
    await desk.say(secret, reply=[wrong, say("As you like.")])
    assert desk.values["callback"]["day"] == ""
    assert len(desk.model.asked("update")) == 1, "there is nothing to be noted"
    assert desk.values["noted"] == {"ticket": 3}
    await desk.say("And now?")
    rule = "What the person asked you not to remember you never note, in no later turn either."
    assert all(rule in prompt for job in ("fill", "reply") for prompt in desk.prompts(job))
    assert "Zelda" not in desk.values["summary"]
    stored = await desk.store.asearch(campaign_namespace("adventurer", "agent:agent", "exchanges"))
    assert "Zelda" not in str([item.value for item in stored])


async def test_without_a_model_the_offline_assistant_interviews_and_says_what_it_is():
    desk = Desk(CustomerNotebook, TicketNotebook, model="offline")
    assert await desk.say("Hello, it leaks") == "Please tell me your name."
    assert await desk.say("Ann Bell") == "Please tell me your product."
    assert "built-in offline assistant" in await desk.say("X100")
    assert desk.values["customer"] == {"version": 1, "name": "Ann Bell", "product": "X100"}
    assert "built-in offline assistant" in await desk.say("My name is Bob")
    assert desk.values["notices"] == []


async def test_the_offline_assistant_tells_what_was_wrong_with_an_answer():
    class AgeNotebook(CustomerNotebook):
        REQUIRED = ("age",)
        age: int | None = None

    desk = Desk(AgeNotebook, model="offline")
    await desk.say("Hello")
    await desk.say("very old")
    assert "unable to parse string as an integer" in desk.values["messages"][-2].text
    assert desk.values["messages"][-1].text == "Thank you."
    assert "age: got 'very old'" in desk.notices[-1]
