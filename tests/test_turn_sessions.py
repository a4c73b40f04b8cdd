"""Sessions: a new thread goes on from the campaign's head, and two threads never mix."""

import pytest
from conftest import EXCHANGES
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import GetOp
from langgraph.store.memory import InMemoryStore
from scripted import call, say, sections_of
from threads import beside

from questbook import CoreNotebook, StateNotebook, TimelineMemoryMiddleware, build_agent
from questbook.graphs.companion.graph import build_graph as build_companion
from questbook.graphs.dungeon_master.graph import build_graph as build_game
from questbook.graphs.errors import FatalModelError, InputError, SettingsError
from questbook.graphs.history.view import position_of
from questbook.graphs.local.databases import open_checkpointer
from questbook.graphs.reflect.graph import build_graph as build_reflection
from questbook.graphs.turn.player_view import PlayerView

MIRA = "I am Mira, a halfling thief who grew up on the docks and wants her sister back."


async def test_a_new_thread_goes_on_from_the_head_with_a_recap(mira):
    mira.model.queue(
        "update",
        say(
            "", call("StateNotebook", quests={"Find Lia": {"notes": "seen at the mill"}}, secrets={"Lia": "is a wolf"})
        ),
    )
    await mira.play("I ask about Lia")
    later = beside(mira)
    mira.model.queue("quest", say("The mill wheel turns."))
    await later.play("I look for Lia at the mill")
    assert len(mira.model.asked("interview")) == 1, "nobody is asked again who they are"
    texts = [message.text for message in later.values["messages"]]
    assert texts[1].startswith("**Previously on…**")
    assert "Find Lia: seen at the mill" in texts[1]
    assert "An inn at dusk." in texts[1]
    assert "wolf" not in texts[1]
    assert later.reply == "The mill wheel turns."
    assert position_of(await later.app.aget_state(later.config)).reply == later.reply, "the recap is no part of it"
    assert later.values["turn"] == 3
    assert later.values["timeline"] == [[mira.values["timeline"][0][0], 3]]
    prompt = mira.model.asked("quest")[-1]
    assert "seen at the mill" in sections_of(prompt)
    assert not any("Previously on" in message.text for message in prompt)
    memories = sections_of(prompt).split("\n<memories>\n")[1]
    assert "I ask about Lia" in memories, "what the other thread's buffer holds is recalled here"
    [record] = [item for item in await mira.store.asearch(EXCHANGES) if item.value["turn"] == 3]
    assert record.value["reply"] == "The mill wheel turns."


async def test_who_names_the_campaign_is_not_told_which_it_is(mira):
    for campaign, is_told in (("default", False), (None, True)):
        later = beside(mira)
        await later.play("I wait", campaign=campaign)
        [recap] = [message.text for message in later.values["messages"] if "Previously on" in message.text]
        assert ("goes on with the campaign “default”. For another game" in recap) is is_told


async def test_the_head_of_the_first_release_is_not_noted_again(mira):
    place = (*EXCHANGES[:-1], "head")
    head = (await mira.store.aget(place, "head")).value
    del head["noted_through"]
    await mira.store.aput(place, "head", head, index=False)
    await beside(mira).play("I look for Lia")
    told = mira.model.asked("update")[-1][-1].text
    assert "I look for Lia" in told
    assert "I want my sister back" not in told


async def test_what_was_said_to_a_new_thread_whose_first_run_failed_is_one_turn_with_what_is_said_next(mira):
    later = beside(mira)
    mira.model.queue("quest", FatalModelError("No such model."))
    with pytest.raises(FatalModelError):
        await later.play("My ring is called Glimmer.")
    mira.model.queue("quest", say("A fine ring."))
    await later.play("I look around.")
    assert later.values["turn"] == 2
    [record] = [item.value for item in await mira.store.asearch(EXCHANGES) if item.value["turn"] == 2]
    assert (record["player"], record["reply"]) == ("My ring is called Glimmer.\nI look around.", "A fine ring.")


async def test_two_threads_on_one_campaign_part_and_never_mix(mira):
    other = beside(mira)
    await other.play("I go left")
    await mira.play("I go right", quest=say("On the right there is a heron."))
    assert len({tuple(map(tuple, thread.values["timeline"])) for thread in (mira, other)}) == 2
    third = beside(mira)
    await third.play("where am I?")
    assert third.values["timeline"][0] == mira.values["timeline"][0]
    assert third.values["timeline"][-1][0] == mira.values["timeline"][-1][0], "the head is who last finished a turn"
    seen = [record.value["player"] for record in await mira.store.asearch(EXCHANGES, limit=20)]
    assert len(seen) == 4


async def test_the_first_message_run_again_does_not_take_over_its_own_future(mira):
    await mira.play("I strike the king", quest=say("The king dies."))
    first = next(s for s in mira.app.get_state_history(mira.config) if s.next == ("build_character",))
    await mira.app.ainvoke(None, first.config, context=mira.settings)
    assert len(mira.model.asked("interview")) == 2, "they are asked who they are, as at the first time"
    assert mira.values["turn"] == 1
    assert not mira.values["character"].get("name")


async def test_a_character_that_is_not_complete_yet_is_no_past_and_a_new_thread_begins_with_its_own(game):
    first = say("Where from?", call("CharacterNotebook", name="Bor"))
    await game.play("I'm Bor.", interview=first)
    other = beside(game)
    await other.play("Hello.", interview=say("Who are you?"))
    assert (other.values["turn"], other.values["character"].get("name", "")) == (1, "")
    assert [message.text for message in other.values["messages"]] == ["Hello.", "Who are you?"]


async def test_a_thread_that_went_on_from_the_head_does_so_again(mira):
    later = beside(mira)
    await later.play("I go left")
    await later.play("I fall")
    first = next(s for s in later.app.get_state_history(later.config) if s.next == ("build_character",))
    later.model.queue("quest", say("A bridge."))
    await later.app.ainvoke(None, first.config, context=later.settings)
    assert later.values["turn"] == 2
    assert "I fall" not in str(later.values["messages"])
    assert len(later.values["timeline"]) == 2


def test_a_recap_of_nothing_says_so():
    assert "nothing yet" in PlayerView().recap()
    page = StateNotebook().apply({"location": "the mill", "clock": {"time": "dusk"}}).page
    assert "You are at the mill (day 1, dusk)." in PlayerView.of({"summary": "They met.", "quest": page}).recap()


async def test_a_thread_stays_in_its_campaign(mira):
    before = mira.checkpointed
    for other, advice in (
        ({"campaign": "other"}, "Name 'default' again, or begin a new thread"),
        ({"user": "ann"}, "Begin a new thread"),
    ):
        with pytest.raises(InputError, match=rf"belongs to campaign 'default' of 'adventurer'.*{advice}"):
            await mira.play("I go on.", **other)
    assert mira.checkpointed == before
    assert not await mira.store.asearch(("ann",))
    await mira.play("I go on.")
    assert mira.values["turn"] == before["turn"] + 1


async def test_a_new_thread_notes_what_the_notes_of_the_last_one_did_not_get_to(mira):
    await mira.play("I look under the bed.", update=TimeoutError("no answer"), quest=say("You find ten crowns."))
    later = beside(mira)
    await later.play("I go down.", update=say("", call("StateNotebook", gold=10)))
    assert "ten crowns" in mira.model.asked("update")[-1][-1].text
    assert (later.values["noted_through"], later.values["quest"]["gold"]) == (3, 10)
    await later.play("I pay.")
    assert "ten crowns" not in mira.model.asked("update")[-1][-1].text


class Away(InMemoryStore):
    """Cannot read the records of earlier turns, which notes catch up with, while it is told so."""

    away = False

    async def abatch(self, ops):
        ops = list(ops)
        reads = [op for op in ops if isinstance(op, GetOp) and op.namespace == EXCHANGES and not op.refresh_ttl]
        if self.away and reads:
            raise OSError("the disk is away")
        return await super().abatch(ops)


async def test_what_cannot_be_read_of_the_last_thread_is_noted_when_it_can_be(game):
    game.keep_in(Away())
    await game.begin()
    await game.play("I look under the bed.", update=TimeoutError("no answer"), quest=say("You find ten crowns."))
    later, game.store.away = beside(game), True
    await later.play("I go down.")
    assert "the disk is away" in later.values["notices"][-1]["text"]
    assert later.values["noted_through"] == 1
    game.store.away = False
    await later.play("I pay.")
    assert "ten crowns" in game.model.asked("update")[-1][-1].text
    assert later.values["noted_through"] == 4


async def test_the_name_of_another_machines_campaign_is_refused_and_its_past_stays():
    """A game that is called as a companion's campaign is would go on with what the companion knows."""
    saver, store = InMemorySaver(), InMemoryStore()
    companion, game = (build().compile(checkpointer=saver, store=store) for build in (build_companion, build_game))
    hello, isle = {"messages": [("user", "My falcon is Quixanna.")]}, {"user": "ann", "campaign": "isle"}
    await companion.ainvoke(hello, {"configurable": {"thread_id": "1"}}, context=isle)
    taken = isle | {"campaign": "companion:isle"}
    with pytest.raises(SettingsError, match="'companion:isle' belongs to companion, and dungeon_master cannot go on"):
        await game.ainvoke(hello, {"configurable": {"thread_id": "2"}}, context=taken)
    values = await game.ainvoke(hello, {"configurable": {"thread_id": "2"}}, context=isle)
    assert values["turn"] == 1
    values = await companion.ainvoke(hello, {"configurable": {"thread_id": "3"}}, context=isle)
    assert values["turn"] == 2


async def _told(graph, thread, words, **context):
    """Say something on a thread; return what was added for the person, and the state."""
    config = {"configurable": {"thread_id": thread}}
    before = len((await graph.aget_state(config)).values.get("messages", []))
    values = await graph.ainvoke({"messages": [("user", words)]}, config, context=context)
    return "\n".join(message.text for message in values["messages"][before:] if message.type == "ai"), values


async def test_a_new_thread_that_names_no_campaign_says_which_it_goes_on_with_and_may_begin_a_new_game():
    graph = build_game().compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    await _told(graph, "one", MIRA, seed=3)
    told, values = await _told(graph, "two", "I look around.", seed=3)
    assert "“default”" in told
    assert "“new game”" in told
    assert values["turn"] == 2
    told, values = await _told(graph, "three", "New game!", seed=3)
    assert "“game three”" in told
    assert (values["turn"], values["character"].get("name"), values["campaign"][1]) == (1, "", "game three")
    told, values = await _told(graph, "three", MIRA.replace("Mira", "Bo"), seed=3)  # a thread stays in its campaign
    assert (values["turn"], values["character"]["name"], values["campaign"][1]) == (2, "Bo", "game three")
    assert "“game three”" not in told
    told, values = await _told(graph, "four", "new game", campaign="default", seed=3)
    assert values["campaign"][1] == "default", "what the caller names counts"
    assert "Previously on" in told
    assert "“default”" not in told
    with pytest.raises(InputError, match="belongs to campaign 'game three'"):
        await _told(graph, "three", "I look around.", campaign="default")


async def test_a_reflection_that_is_given_nothing_looks_back_from_where_the_campaign_was_played_last():
    store = InMemoryStore()
    graph = build_game().compile(checkpointer=InMemorySaver(), store=store)
    reflection = build_reflection().compile(checkpointer=InMemorySaver(), store=store)
    there = {"configurable": {"thread_id": "back"}}
    with pytest.raises(InputError, match="Nothing was played in campaign 'default'"):
        await reflection.ainvoke({}, there, context={})
    for number, words in enumerate([MIRA, "I look around.", "I wait."], 1):
        _, values = await _told(graph, "one", words, seed=3)
        done = await reflection.ainvoke({}, there, context={})
        assert (done["turn"], [list(s) for s in done["timeline"]]) == (number, [list(s) for s in values["timeline"]])
    given = {"timeline": [("main", 12)], "turn": 12}
    assert (await reflection.ainvoke(given, there, context={}))["turn"] == 12


@pytest.mark.parametrize("machine", ["dungeon_master", "companion", "agent", "middleware"])
async def test_a_run_that_a_killed_server_runs_again_after_its_end_plays_no_second_turn(tmp_path, machine):
    """LangGraph knows the run by its id in the checkpoint's metadata, which our checkpointer keeps."""
    store, context = InMemoryStore(), {"seed": 3, "model": "offline"}
    async with open_checkpointer(tmp_path / "c.db") as saver:
        if machine == "middleware":
            model, middleware = GenericFakeChatModel(messages=iter(["Hm."] * 9)), [TimelineMemoryMiddleware(user="ann")]
            graph, context = create_agent(model, middleware=middleware, checkpointer=saver, store=store), None
        elif machine == "agent":
            graph = build_agent([CoreNotebook], model="offline").compile(checkpointer=saver, store=store)
        else:
            build = build_game if machine == "dungeon_master" else build_companion
            graph = build().compile(checkpointer=saver, store=store)
        said = {"messages": [{"role": "user", "content": MIRA}]}
        runs = [{"configurable": {"thread_id": "t", "run_id": run}} for run in ("r", "r", "s")]
        ends = [await graph.ainvoke(said, run, context=context) for run in runs]
    assert [sum(message.type == "human" for message in end["messages"]) for end in ends] == [1, 1, 2]
    assert [end.get("turn", number) for end, number in zip(ends, (1, 1, 2), strict=True)] == [1, 1, 2]
    exchanges = [item for item in await store.asearch((), limit=50) if item.value.get("kind") == "exchange"]
    assert len(exchanges) == 2
