"""What the store could not take in time, turns and facts, is written later as what it was, on its own timeline."""

import pytest
from fact_play import CONTEXT, PLAYER, facts, known, notices, play, stored
from faulty_stores import Broken, Refusing
from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from noted_facts import home
from page_play import turn
from scripted import say, sections_of

from questbook import HashEmbeddings
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.facts import write_waiting_facts
from questbook.graphs.dungeon_master.retract import retract
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.dungeon_master.why import visible_records, why
from questbook.graphs.errors import ModelError, PastUnknownError
from questbook.graphs.history.history import History
from questbook.memory.facts.validity import keep_valid
from questbook.memory.timeline.namespaces import campaign_namespace

EMBED = HashEmbeddings()


@pytest.fixture
async def late(game):
    game.keep_in(Refusing(index={"embed": EMBED, "dims": EMBED.dims, "fields": ["text"]}))
    await game.begin()
    game.store.refused = "exchange"
    await turn(game, "I dig", gold=700, location="the cellar", facts={"the chest": "was full"})
    await turn(game, "I climb", gold=690, location="the roof", clock={"day": 2})
    assert "was not written to memory" in game.values["notices"][-1]["text"]
    game.store.refused = ""
    await turn(game, "I rest", location="the inn")
    game.args = (game.app, game.config, Context.of(game.settings))
    return game


async def records(game):
    found = await visible_records(game.app, game.args[2], [tuple(segment) for segment in game.values["timeline"]])
    return {record["turn"]: record for record in found}


async def test_each_record_says_where_the_story_stood_then_and_what_was_noted(late):
    found = await records(late)
    assert {turn: (one["location"], one["day"]) for turn, one in found.items()} == {
        1: ("The Bent Nail", 1),
        2: ("the cellar", 1),
        3: ("the roof", 2),
        4: ("the inn", 2),
    }
    assert [found[n]["noted"]["patch"].get("gold") for n in (2, 3, 4)] == [700, 690, None]
    assert set(late.values["noted"]) >= {"4"}


async def test_it_is_known_why_a_field_is_what_it_is_and_the_late_turn_can_be_retracted(late):
    assert [cause.turn for cause in await why(*late.args, "gold")] == [3, 2]
    await retract(*late.args, 2)
    quest = late.values["quest"]
    assert (quest["facts"], quest["gold"], quest["location"]) == ({}, 690, "the inn")


async def test_turns_that_wait_no_more_leave_the_state(late):
    await turn(late, "I wake")
    assert set(late.values["noted"]) == {"5"}


async def test_a_late_turn_stays_on_the_branch_whose_place_it_had_claimed(late):
    assert {branch for branch, _ in late.values["timeline"]} == {late.values["timeline"][0][0]}


async def test_what_is_undone_takes_the_notes_of_its_turn_with_it(game):
    game.keep_in(Refusing())
    await game.begin()
    game.store.refused = "exchange"
    await turn(game, "I dig", gold=700)
    history = History(game.app, game.config, Context.of(game.settings))
    await history.undo(1)
    game.store.refused = ""
    await turn(game, "I sing", gold=3)
    game.args = (game.app, game.config, Context.of(game.settings))
    assert [one["noted"]["patch"].get("gold") for one in (await records(game)).values()] == [None, 3]


async def test_a_checkpoint_of_the_first_release_goes_on(mira):
    await turn(mira, "I dig", gold=700)
    state = mira.app.get_state(mira.config).values
    old = {"from": 2, "through": 2, "patch": {"gold": 700}}
    await mira.app.aupdate_state(
        mira.config, {"noted": old, "remembered_through": 1, "turn": state["turn"]}, as_node="update_state"
    )
    await mira.app.ainvoke(None, mira.config, context=mira.settings, durability="sync")
    await turn(mira, "I rest", gold=699)
    assert set(mira.values["noted"]) == {"3"}
    mira.args = (mira.app, mira.config, Context.of(mira.settings))
    assert [one["noted"]["patch"].get("gold") for one in (await records(mira)).values()][-1] == 699


@pytest.fixture
async def refused(game):
    """A game whose store refuses facts, and has refused one."""
    game.keep_in(Refusing())
    await game.begin()
    game.store.refused = "fact"
    await play(game, "I ask.", home("the mill"), reply="Goran lives at the mill.")
    return game


@pytest.mark.slow
async def test_five_hundred_facts_at_once_are_all_written_some_each_turn(mira):
    many = [{"text": f"The stone number {n} is {'red' if n % 2 else 'grey'}."} for n in range(500)]
    told = " ".join(fact["text"] for fact in many)
    await play(mira, "I read the stones.", *many, reply=told)
    assert len(mira.values["facts"]) == 500 - 64
    assert "436 more follow" in notices(mira)
    for _ in range(7):
        await play(mira, "I go on.")
    assert mira.values["facts"] == []
    assert {value["turn"] for value in (await stored(mira)).values()} == {2}
    assert len(await stored(mira)) == 500


async def test_facts_that_cannot_be_written_stay_in_state_until_they_are(refused):
    assert await stored(refused) == {}
    assert [entry["fact"]["text"] for entry in refused.checkpointed["facts"]] == ["Goran lives at the mill."]
    assert "1 facts were not written" in notices(refused)
    assert refused.values["remembered_through"] == 2, "the turn itself is remembered"
    refused.store.refused = ""
    await play(refused, "I wait.")
    assert refused.values["facts"] == []
    [value] = (await stored(refused)).values()
    assert value["turn"] == 2


async def test_a_new_thread_writes_what_the_last_one_could_not(refused):
    refused.store.refused = ""
    other = {"configurable": {"thread_id": "another"}}
    await refused.app.ainvoke({"messages": [HumanMessage("I go on.")]}, other, context=refused.settings)
    assert [value["turn"] for value in (await stored(refused)).values()] == [2]


async def test_sessions_of_one_turn_hand_on_no_fact_that_is_written(mira):
    for session in range(3):
        geese = {"text": f"The player likes {session} geese.", "about": "player", "kind": "preference"}
        mira.model.queue("update", facts({"text": f"The stone number {session} is grey."}, geese))
        thread = {"configurable": {"thread_id": f"session {session}"}}
        said = HumanMessage(f"I go on. ((I like {session} geese.))")
        await mira.app.ainvoke({"messages": [said]}, thread, context=mira.settings)
        head = await mira.store.aget(campaign_namespace("adventurer", "default", "head"), "head")
        assert head.value["facts"] == []
        assert len(await stored(mira)) == len(await stored(mira, PLAYER)) == session + 1


async def test_a_new_thread_writes_no_fact_of_a_turn_that_was_retracted(refused):
    await retract(refused.app, refused.config, CONTEXT, 2)
    refused.store.refused = ""
    other = {"configurable": {"thread_id": "another"}}
    await refused.app.ainvoke({"messages": [HumanMessage("I go on.")]}, other, context=refused.settings)
    assert await stored(refused) == {}


@pytest.mark.parametrize("first", ["written", "refused"])
async def test_a_turn_that_is_noted_anew_while_it_cannot_be_written_is_another_future(game, first):
    game.keep_in(Refusing())
    await game.begin()
    game.store.refused = "exchange" if first == "refused" else ""
    await play(game, "I ask.", home("the mill"), reply="He shrugs.")
    one = game.app.get_state(game.config).config
    reply = next(state.config for state in game.app.get_state_history(game.config) if state.next == ("update_state",))
    game.store.refused = "exchange"
    game.model.queue("update", facts(home("the crypt")))
    await game.app.ainvoke(None, reply, context=game.settings, durability="sync")
    other = game.app.get_state(game.config).config
    game.store.refused = ""
    for future, where in ((one, "the mill"), (other, "the crypt")):
        await game.app.ainvoke({"messages": [HumanMessage("I wait.")]}, future, context=game.settings)
        assert await known(game) == [f"Goran lives at {where}."]


async def test_without_a_store_facts_do_not_pile_up(game):
    game.keep_in(None)
    await game.begin()
    await play(game, "I ask.", home("the mill"), reply="Goran lives at the mill.")
    assert game.values["facts"] == []


async def test_what_the_player_told_in_turns_99_and_100_and_could_not_be_written_stands_in_that_order():
    store = InMemoryStore()
    told = [
        {"turns": [turn, turn], "ordinal": 0, "echoes": "", "said": f"m{turn}", "messages": []}
        | {
            "fact": {
                "text": f"The player lives in {town}.",
                "subject": "the player",
                "attribute": "home",
                "value": town,
                "of_player": True,
            }
        }
        for turn, town in ((99, "Paris"), (100, "Rome"))
    ]
    origin = {"thread": "t", "checkpoint": "c", "said_at": "2026-11-21T10:00:00+00:00"}
    state, runtime = DungeonState(turn=100, facts=told), Runtime(context=CONTEXT, store=store)
    assert (await write_waiting_facts(state, runtime, [("a", 100)], origin))["facts"] == []
    found = await store.asearch(PLAYER, limit=9)
    assert len(found) == 2
    assert [item.value["value"] for item in await keep_valid(store, found)] == ["Rome"]


async def test_what_was_written_before_the_store_failed_counts_towards_a_reflection():
    class PlayerRefused(InMemoryStore):
        async def abatch(self, ops):
            ops = list(ops)
            if any(isinstance(op, PutOp) and op.namespace == PLAYER for op in ops):
                raise ConnectionError("the line went dead")
            return await super().abatch(ops)

    entry = {"turns": [2, 2], "ordinal": 0, "echoes": "", "said": "m2", "messages": []}
    facts = [
        entry | {"fact": {"text": "Goran lives at the mill.", "importance": 6}},
        entry | {"ordinal": 1, "fact": {"text": "The player likes geese.", "importance": 3, "of_player": True}},
    ]
    origin = {"thread": "t", "checkpoint": "c", "said_at": "2026-11-21T10:00:00+00:00"}
    state = DungeonState(turn=2, facts=facts, unreflected=10)
    update = await write_waiting_facts(state, Runtime(context=CONTEXT, store=PlayerRefused()), [("a", 2)], origin)
    assert update["unreflected"] == 16
    assert update["facts"] == facts[1:]


# A game whose store or model fails: what was said is kept, and the turn is taken up again.


async def test_a_new_thread_does_not_begin_anew_because_the_store_is_down(game):
    game.keep_in(Broken())
    game.store.error = OSError("no connection")
    with pytest.raises(PastUnknownError, match="no connection"):
        await game.play("hello")
    assert game.values["messages"][-1].text == "hello"


async def test_what_was_recalled_is_found_again_when_a_turn_is_resumed(new_mira):
    game = await new_mira(buffer_tokens=300)
    for number in range(10):
        await game.play(f"I listen to heron {number}", quest=say(f"The heron {number} sings. " + "La la la. " * 20))
    game.model.queue("quest", ConnectionError("cut"))
    with pytest.raises(ModelError):
        await game.play("What did heron 1 sing?")
    await game.play(None)
    assert "\n<memories>\n" in sections_of(game.model.asked("quest")[-1])
