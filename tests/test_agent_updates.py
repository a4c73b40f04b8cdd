"""How the pages of an agent are written (once, every turn, every n turns, on demand), and the application's tools."""

from datetime import date
from enum import Enum
from typing import Any, Self

import pytest
from desk import KNOWN, CallbackNotebook, CustomerNotebook, Desk, MoodNotebook, TicketNotebook, note
from langchain_core.messages import ToolMessage
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from pydantic import field_validator, model_validator
from scripted import call, say, sections_of

from questbook import Notebook, PatchError
from questbook.memory.buffer.policies import LastTurns
from questbook.memory.timeline.namespaces import campaign_namespace


class Mood(Enum):
    CALM = "calm"


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
    assert "MoodNotebook: page <mood>, turns 1 to 3" in sections_of(told)
    assert desk.values["mood"]["mood"] == "tired"
    assert len(desk.values["messages"]) == 2, "what is noted may leave the buffer, and not before"
    for words in ("four", "five", "six"):
        await desk.say(words)
    assert len(desk.model.asked("update")) == 2


async def test_a_page_of_every_third_turn_whose_first_update_failed_is_tried_again_in_the_next_turn():
    desk = Desk(MoodNotebook)
    for words in ("one", "two", "three"):
        await desk.say(words, update=[ConnectionError("cut")] if words == "three" else [])
    assert "were not updated; the next turn will catch up" in desk.notices[-1]
    await desk.say("four", update=say("", call("MoodNotebook", mood="calm")))
    assert [words in desk.model.asked("update")[-1][-1].text for words in ("one", "four")] == [True, True]
    assert (desk.values["mood"]["mood"], desk.values["noted"]) == ("calm", {"mood": 4})
    await desk.say("five")
    assert len(desk.model.asked("update")) == 2
    await desk.say("six")
    assert len(desk.model.asked("update")) == 3, "the rhythm stays the same"


async def test_pages_that_are_due_in_the_same_turn_are_one_question():
    desk = Desk(TicketNotebook, MoodNotebook)
    await desk.say("one")
    await desk.say("two")
    both = say("", call("TicketNotebook", problem="leaks"), call("MoodNotebook", mood="cross"))
    await desk.say("three", update=both)
    assert len(desk.model.asked("update")) == 3
    assert (desk.values["ticket"]["problem"], desk.values["mood"]["mood"]) == ("leaks", "cross")
    due = desk.prompts("update")[-1]
    assert "TicketNotebook: page <ticket>, turns 3 to 3, " in due
    assert "MoodNotebook: page <mood>, turns 1 to 3, " in due


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


async def test_a_patch_that_does_not_fit_three_times_keeps_the_page_and_the_next_turn_catches_up():
    desk = Desk(TicketNotebook, MoodNotebook)
    await desk.say("one")
    await desk.say("two")
    wrong = say("", call("TicketNotebook", colour="red"), call("MoodNotebook", mood="cross"))
    await desk.say("three", update=[wrong, *[say("", call("TicketNotebook", colour="blue"))] * 2])
    assert desk.values["ticket"]["problem"] == ""
    assert desk.values["mood"]["mood"] == "cross", "the other page's patch stands"
    assert desk.values["noted"] == {"ticket": 2, "mood": 3}
    assert "the next turn will catch up (ticket). TicketNotebook was left as it is. colour" in desk.notices[-1]
    await desk.say("four", update=note(problem="leaks"))
    assert "TicketNotebook: page <ticket>, turns 3 to 4" in desk.prompts("update")[-1]
    assert desk.values["noted"] == {"ticket": 4, "mood": 3}
    assert desk.values["ticket"]["problem"] == "leaks"


async def test_of_a_secret_nothing_is_in_notices_and_log_if_the_whole_page_or_its_own_code_refuses(caplog):
    class PlotNotebook(Notebook):
        """The plot."""

        SECRET = frozenset({"plot"})
        plot: str = "the butler"
        doors: int = 0
        most: int = 0

        @field_validator("plot")
        @classmethod
        def _known(cls, plot: str) -> str:
            return {"the butler": plot}[plot]

        @model_validator(mode="after")
        def _counted(self) -> Self:
            if self.doors > self.most:
                raise ValueError("more doors than there are")
            return self

    desk = Desk(PlotNotebook)
    for patch, why in (
        ({"doors": 3}, "A secret did not fit."),  # a page's own rules may quote what they refuse
        ({"plot": "the cook"}, "PlotNotebook raised KeyE"),
    ):
        assert await desk.say("Hello", update=[say("", call("PlotNotebook", **patch))] * 3) == "I see."
        assert why in desk.notices[-1]
        assert why in caplog.text
    with pytest.raises(PatchError, match="plot: expected text"):
        desk.app.update_state(desk.config, {"plot": {"plot": ["the cook"]}})
    assert "the butler" not in str(desk.values["notices"]) + caplog.text
    assert "the cook" not in str(desk.values["notices"]) + caplog.text


async def test_what_a_pages_own_code_raises_does_not_end_the_turn_and_is_told():
    class AgeNotebook(Notebook):
        """How old."""

        ages: dict[Mood, int] = {}
        born: dict[date, str] = {}
        size: str = ""

        @field_validator("size")
        @classmethod
        def _known(cls, size: str) -> str:
            return {"": "", "big": "L"}[size]

    desk = Desk(AgeNotebook)
    good = call("AgeNotebook", ages={"calm": 3}, born={"2026-05-01": "Ann"})
    await desk.say("Hello", update=[say("", good, call("AgeNotebook", size="odd")), say("no change")])
    assert (
        "AgeNotebook was left as it is. AgeNotebook raised KeyError: 'odd'." in desk.model.asked("update")[1][-1].text
    )
    await desk.say("Again")
    assert 'ages: {"calm": 3}\nborn: {"2026-05-01": "Ann"}' in desk.prompts("reply")[-1]
    assert desk.notices == []


async def test_what_never_fits_does_not_keep_later_turns_from_being_noted():
    desk = Desk(TicketNotebook)
    for number in range(12):
        told = say("", call("TicketNotebook", colour="red", problem=f"number {number}"))
        await desk.say(f"It is number {number} of many. " * 100, update=[told] * 3)
    assert desk.values["ticket"]["problem"] == "number 11"
    assert any("It is number 11" in asked[-1].text for asked in desk.model.asked("update"))
    assert desk.values["noted"]["ticket"] >= 6
    assert len(desk.values["messages"]) < 14
    assert any("what does not fit is left out" in notice for notice in desk.notices)


async def test_what_did_not_fit_once_is_asked_about_again_however_long_its_turns_are():
    desk = Desk(MoodNotebook)
    wrong = say("", call("MoodNotebook", temper="cross"))
    for number in range(3):
        await desk.say(f"It is number {number} of many. " * 300, update=[wrong] * 3 if number == 2 else [])
    assert "the next turn will catch up (mood)" in desk.notices[-1]
    await desk.say("four", update=say("", call("MoodNotebook", mood="cross")))
    assert "It is number 0" in desk.model.asked("update")[-1][-1].text
    assert desk.values["mood"]["mood"] == "cross"


async def test_a_call_that_is_no_pages_is_told_and_nothing_said_of_catching_up():
    desk = Desk(TicketNotebook)
    wrong = say("", call("TicketNotebook", problem="leaks"), call("CallbackNotebook", day="Monday"))
    await desk.say("one", update=[wrong, *[say("", call("CallbackNotebook", day="Monday"))] * 2])
    assert (desk.values["ticket"]["problem"], desk.values["noted"]) == ("leaks", {"ticket": 1})
    assert desk.notices == [
        "A call that is no page's was not done; no later turn will come back to it. There is no tool "
        "'CallbackNotebook'; the only one is TicketNotebook."
    ]


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
    assert "There is no tool 'refund'; there are CallbackNotebook, order_status." in desk.values["messages"][-2].text


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


async def test_a_tools_patch_that_does_not_fit_is_left_out_and_its_answer_says_why_also_of_a_second_one():
    class PlotNotebook(Notebook):
        """What nobody may know."""

        SECRET = frozenset({"plot"})
        plot: dict[str, int] = {}

    def write(runtime: ToolRuntime, problem: str, plot: Any) -> Command:
        """Note the problem."""
        answer = ToolMessage("noted", tool_call_id=runtime.tool_call_id)
        return Command(update={"ticket": {"problem": problem}, "plot": {"plot": plot}, "messages": [answer]})

    desk = Desk(TicketNotebook, PlotNotebook, tools=[write])
    calls = [call("write", problem="x" * size, plot=plot) for size, plot in ((150, {}), (400, {}), (9, {"Zed": "ab"}))]
    assert await desk.say("It leaks", reply=[say("", *calls), say("Sorry.")]) == "Sorry."
    assert (desk.values["ticket"]["problem"], desk.values["plot"]["plot"]) == ("x" * 9, {})
    texts = [message.text for message in desk.values["messages"] if message.type == "tool"]
    assert texts[0] == "noted"
    assert texts[1].startswith("TicketNotebook was left as it is. TicketNotebook would render to 4")
    assert texts[2] == "PlotNotebook was left as it is. A secret did not fit."
    assert [text.partition(".")[0] for text in desk.notices] == ["write failed"] * 2
    assert not {"Zed", "ab"} & set(str(desk.values["notices"]).split("'"))


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


async def test_of_one_answer_ten_calls_are_made_and_the_others_told_so():
    made = []

    def look(number: int) -> str:
        """Look."""
        made.append(number)
        return f"seen {number}"

    desk = Desk(tools=[look], remember_tools=["look"])
    await desk.say("Look.", reply=[say("", *(call("look", number=n) for n in range(13))), say("Done.")])
    assert sorted(made) == [*range(10)]
    results = [message.text for message in desk.values["messages"] if isinstance(message, ToolMessage)]
    assert [f"seen {n}" for n in range(10)] == results[:10]
    assert len(results) == 13
    assert all("more than 10 calls at once" in text for text in results[10:])
    [item] = desk.store.search(campaign_namespace("adventurer", "agent:agent", "exchanges"))
    assert item.value["reply"] == "\n\n".join([*(f"look: seen {n}" for n in range(10)), "Done."])
