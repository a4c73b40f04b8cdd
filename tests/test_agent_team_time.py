"""A team in time: forks, kills and checkpoints of the parent are its agents' too."""

import asyncio

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from scripted import call, say
from strict import STRICT, check_plain
from team import OVER, Team


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
