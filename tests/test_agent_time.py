"""An agent that is rewound, forked, killed, retried: its pages are those of the checkpoint it stands on."""

import asyncio
import uuid

import pytest
from desk import KNOWN, CallbackNotebook, CustomerNotebook, Desk, MoodNotebook, TicketNotebook
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, RetryPolicy, interrupt
from scripted import call, say

from questbook.graphs.agent import Mode
from questbook.graphs.errors import HistoryError, InputError
from questbook.graphs.events import STREAM_MODES, NodeEnd, ReplyPiece, read_stream
from questbook.graphs.history.history import History
from questbook.memory.timeline.namespaces import campaign_namespace


def note(**fields):
    return say("", call("TicketNotebook", **fields))


async def end_of(desk, turn):
    async for state in desk.app.aget_state_history(desk.config):
        if state.values.get("turn") == turn and not state.next:
            return state.config
    raise AssertionError(f"turn {turn} never ended")


async def test_a_fork_sees_the_old_page_and_none_of_the_abandoned_future():
    desk = Desk(TicketNotebook, MoodNotebook, CallbackNotebook)
    await desk.say("It leaks", update=note(problem="leaks"))
    await desk.say("It is the xylophone valve", update=note(problem="xylophone valve", steps={"1": "turn it"}))
    await desk.say("Monday", reply=say("Monday.", call("CallbackNotebook", day="Monday")), update=note(status="waits"))
    await desk.say("No, it burns", config=await end_of(desk, 1), update=note(problem="burns"))
    assert desk.values["ticket"] == {"version": 1, "problem": "burns", "status": "open", "steps": {}}
    assert (desk.values["callback"]["day"], desk.values["turn"], desk.values["noted"]) == ("", 2, {"ticket": 2})
    await desk.say("Which xylophone valve?")
    seen = "\n".join(m.text for m in desk.model.asked("reply")[-1][:-1])
    assert "burns" in seen
    assert "xylophone" not in seen
    stored = await desk.store.asearch(campaign_namespace("adventurer", "agent:agent", "exchanges"))
    assert sorted(item.value["turn"] for item in stored) == [1, 2, 2, 3, 3], "both futures stand"


MODES = (Mode("greet", "Greet them.", fills=CustomerNotebook), Mode("solve", "Solve it."))


async def test_what_a_mode_of_ones_own_said_is_told_again():
    desk = Desk(CustomerNotebook, TicketNotebook, modes=MODES)
    context = desk.builder.context_schema.of()
    await desk.say("Ann, X100: it leaks", fill=KNOWN, reply=say("Turn it off."), update=note(problem="leaks"))
    for line, reply in ((None, "Close the valve."), ("solo", "Call a plumber.")):
        if line:
            await History(desk.app, desk.config, context).name_line(line)
        config, again = await History(desk.app, desk.config, context).retry()
        desk.model.queue("reply", say(reply))
        await desk.app.ainvoke(None, config, context=again, durability="sync")
        assert (desk.values["messages"][-1].text, desk.values["turn"]) == (reply, 1)
        assert desk.values.get("line", "main") == (line or "main")
    desk.model.queue("reply", say("One more thing."))
    await desk.say("and now?")
    config, again = await History(desk.app, desk.config, context).retry(dice=True)
    desk.model.queue("reply", say("Nothing more."))
    await desk.app.ainvoke(None, config, context=again, durability="sync")
    assert (desk.values["messages"][-1].text, desk.values["turn"]) == ("Nothing more.", 2)


async def test_what_modes_of_ones_own_say_is_told_as_it_comes_and_what_other_nodes_make_the_model_say_is_not():
    desk = Desk(CustomerNotebook, TicketNotebook, modes=MODES)
    desk.model.queue("fill", KNOWN)
    desk.model.queue("reply", say("Turn it off."))
    desk.model.queue("update", say("a note to nobody", call("TicketNotebook", problem="leaks")))
    given = {"messages": [HumanMessage("Ann, X100: it leaks")]}
    stream = desk.app.astream(given, desk.config, stream_mode=STREAM_MODES)
    events = [event async for event in read_stream(stream)]
    assert "".join(event.text for event in events if isinstance(event, ReplyPiece)) == "Turn it off."
    assert [event.node for event in events if isinstance(event, NodeEnd) and event.spoke] == ["greet", "solve"]


@pytest.mark.parametrize("scope", ["user", "thread"])
async def test_nobody_goes_from_a_thread_of_an_agent_into_another(scope):
    desk = Desk(scope=scope)
    other = Desk(saver=desk.saver, store=desk.store, scope=scope)
    for words in ("It leaks", "It burns"):
        await desk.say(words)
    for words in ("The zebra is here", "The zebra is gone", "The zebra is back"):
        await other.say(words)
    there = History(other.app, other.config, {})
    await there.name_line("zebra")
    here = History(desk.app, desk.config, {})
    await here.undo()
    await here.go("main")
    assert [turn.player for turn in await here.turns()] == ["It leaks", "It burns"]
    assert [desk.values["turn"], "zebra" in str(desk.values)] == [2, False]
    for where in ("zebra", "3"):
        with pytest.raises(HistoryError, match="There is no"):
            await here.go(where)
    assert [turn.turn for turn in await there.turns()] == [1, 2, 3]


async def test_a_thread_begins_with_a_checkpointer_that_lists_nothing():
    class Plain(InMemorySaver):
        list = BaseCheckpointSaver.list
        alist = BaseCheckpointSaver.alist

    desk = Desk(saver=Plain())
    for words in ("It leaks", "It burns"):
        await desk.say(words)
    assert desk.values["turn"] == 2
    await asyncio.to_thread(desk.app.invoke, {"messages": [HumanMessage("It rains")]}, desk.config)
    assert desk.values["turn"] == 3


async def test_a_run_from_a_checkpoint_that_is_gone_is_refused_to_another_user():
    desk = Desk()
    await desk.say("It leaks")
    gone = {"configurable": desk.config["configurable"] | {"checkpoint_id": str(uuid.uuid4()), "user": "bob"}}
    with pytest.raises(InputError, match="belongs to campaign 'agent:agent' of 'adventurer'"):
        await desk.say("Whose is it?", config=gone)


async def test_a_run_that_is_killed_during_an_update_goes_on_there_and_counts_once():
    desk = Desk(TicketNotebook, CallbackNotebook)
    await desk.say("hi", reply=say("Hello.", call("CallbackNotebook", calls=1)))

    def killed(_):
        running.cancel()
        return note(problem="never seen")

    desk.model.queue("reply", say("Where?", call("CallbackNotebook", calls=2)))
    desk.model.queue("update", killed)
    running = asyncio.ensure_future(desk.say("It leaks"))
    with pytest.raises(asyncio.CancelledError):
        await running
    state = desk.app.get_state(desk.config)
    assert state.next == ("update_pages",)
    assert state.values["messages"][-1].text == "Where?", "the reply is kept"
    assert state.values["ticket"]["problem"] == ""
    await desk.say(None, update=note(problem="leaks"))
    assert desk.values["ticket"]["problem"] == "leaks"
    assert desk.values["callback"]["calls"] == 2
    assert len(desk.model.asked("reply")) == 2
    stored = await desk.store.asearch(campaign_namespace("adventurer", "agent:agent", "exchanges"))
    assert [item.value["reply"] for item in stored] == ["Hello.", "Where?"]


async def test_langgraphs_retry_policy_retries_a_reply_within_the_turn():
    desk = Desk(TicketNotebook)
    policy = RetryPolicy(max_attempts=3, initial_interval=0.001, jitter=False)
    desk.app = desk.builder.set_node_defaults(retry_policy=policy).compile(checkpointer=desk.saver, store=desk.store)
    failing = [RuntimeError("overloaded"), RuntimeError("overloaded"), say("Where?")]
    assert await desk.say("It leaks", reply=failing, update=note(problem="leaks")) == "Where?"
    assert len(desk.model.asked("reply")) == 3
    assert [m.type for m in desk.values["messages"]] == ["human", "ai"]
    assert desk.values["ticket"]["problem"] == "leaks"


async def test_a_tool_that_waits_for_a_person_goes_on_with_their_answer_and_writes_once():
    def refund(amount: int) -> str:
        """Pay money back, once a person has agreed."""
        return "refunded" if interrupt({"approve": amount}) else "refused"

    desk = Desk(CallbackNotebook, tools=[refund])
    both = say("", call("CallbackNotebook", calls=1), call("refund", amount=3))
    desk.model.queue("reply", both, say("Done."))
    waiting = await desk.app.ainvoke({"messages": [HumanMessage("My money?")]}, desk.config)
    assert waiting["__interrupt__"][0].value == {"approve": 3}
    with pytest.raises(InputError, match="belongs to"):  # and their message does not end what waits
        await desk.app.ainvoke({"messages": [HumanMessage("Mine!")]}, desk.config, context={"user": "bob"})
    assert await desk.say(Command(resume=True)) == "Done."
    assert [m.text for m in desk.values["messages"] if m.type == "tool"] == ["Noted.", "refunded"]
    assert desk.values["callback"]["calls"] == 1
