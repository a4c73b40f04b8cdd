"""Tools of the application in an agent's replies."""

from desk import CallbackNotebook, Desk, TicketNotebook
from langchain_core.messages import ToolMessage
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from scripted import call, say


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
    assert "There is no tool 'refund'" in desk.values["messages"][-2].text


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


async def test_the_state_in_a_tool_is_that_of_the_checkpoint_with_every_page_as_json():
    seen = []

    def look(runtime: ToolRuntime) -> str:
        """Look."""
        seen.append(runtime.state)
        assert runtime.store is desk.store
        return "ok"

    desk = Desk(CallbackNotebook, TicketNotebook, tools=[look])
    await desk.say("Hello", reply=[say("", call("look")), say("Yes?")])
    assert isinstance(seen[0], dict)
    assert seen[0]["ticket"] == TicketNotebook().as_json(), "nothing is written on it yet"
    again = [say("Hm.", call("CallbackNotebook", day="Monday"), call("look")), say("", call("look")), say("Done.")]
    await desk.say("On Monday", reply=again)
    assert [state["callback"]["day"] for state in seen] == ["", "", "Monday"], "as it was when the model called"
    assert set(desk.values) - set(seen[-1]) <= {"notices", "noted", "summarised_through"}


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
