"""The nodes before the reply by themselves: what is recalled for a turn, and how each call for dice is answered."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from letters import Letters
from scripted import call

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.dice import roll_dice
from questbook.graphs.dungeon_master.graph import route_tools
from questbook.graphs.dungeon_master.quest import buffered_secrets, player_wishes, recall_plan
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.recall import Seen, memories_for, memory_lines, memory_tokens, within_budget
from questbook.memory.timeline.namespaces import campaign_namespace, player_namespace
from questbook.memory.timeline.records import Stamp
from questbook.notebooks import StateNotebook

FACTS, LORE, EXCHANGES, ACCESSES = (
    campaign_namespace("adventurer", "default", name) for name in ("facts", "lore", "exchanges", "accesses")
)


def runtime(store=None, **settings):
    return Runtime(context=Context.of({"model": "scripted", "seed": 7} | settings), store=store)


# What is recalled.


def asking(words, turn=9, **channels):
    """Return the state of a thread whose buffer holds turn 9 alone, all before it written."""
    messages = [HumanMessage(words, id="h")]
    values = {"messages": messages, "turn": turn, "timeline": [("a", turn)], "remembered_through": turn - 1}
    return DungeonState(**values | channels)


@pytest.fixture
def store():
    return InMemoryStore(index={"embed": Letters(), "dims": Letters.dims, "fields": ["text"]})


async def know(store, key, text, turn=2, namespace=FACTS, branch="a", **value):
    stamp = Stamp(branch, turn).to_json() if namespace == FACTS else {}
    await store.aput(namespace, key, {"kind": "event", "text": text} | value | stamp)


async def keys(state, store, **settings):
    return [memory["key"] for memory in await memories_for(state, runtime(store, **settings), recall_plan)]


async def test_memories_cost_no_more_than_the_setting_and_are_48_at_most(store):
    for n in range(60):
        await know(store, f"{n:02}", f"Goran forged sword {n} in the valley.", turn=1 + n % 8)
    state = asking("What did Goran forge?")
    few = await memories_for(state, runtime(store, recall_tokens=200), recall_plan)
    assert 150 < count_tokens_approximately([memory_lines(few)]) <= 200 + 3, "a message takes three more"
    assert len(await memories_for(state, runtime(store, recall_tokens=9000), recall_plan)) == 48
    assert await memories_for(state, runtime(store, recall_tokens=0), recall_plan) == []
    assert [memory["turn"] for memory in few] == sorted(memory["turn"] for memory in few)


async def test_only_what_this_timeline_wrote_before_the_buffer_is_recalled(store):
    for key, turn, branch in (("seen", 7, "a"), ("buffered", 8, "a"), ("unwritten", 9, "a"), ("elsewhere", 2, "b")):
        await know(store, key, f"Goran forged the {key} sword.", turn=turn, branch=branch)
    before = [HumanMessage("I nod.", id="h8"), AIMessage("Hm.", id="a8")]
    state = asking("What did Goran forge?", messages=[*before, *asking("What did Goran forge?").messages])
    assert await keys(state, store) == ["seen"]
    late = state.model_copy(update={"remembered_through": 6})
    for turn in (7, 8):
        await know(store, f"secret {turn}", "Goran forged a lie.", turn=turn, kind="secret")
    assert await keys(late, store) == [], "the store could not take turn 7: what is there is another future's"
    first = asking("What did Goran forge?", turn=1, remembered_through=0)
    assert await keys(first, store) == []


async def test_the_scene_helps_where_the_words_say_little(store):
    for n in range(30):
        await know(store, f"{n}", f"Oda {n} sells apples.")
    await know(store, "tower", "Isolde hid in the Silver Tower.")
    state = asking("I ask her again.", quest=StateNotebook(scene="Before the Silver Tower of Isolde."))
    assert "tower" in await keys(state, store, recall_tokens=60)


async def test_what_another_name_says_of_whom_the_question_names_is_recalled(store):
    for n in range(30):
        await know(store, f"{n}", f"The miller saw heron number {n} fly.")
    await know(store, "alias", "The Heron is Goran.", subject="the Heron", attribute="name", value="Goran")
    await know(store, "deed", "Goran poisoned a well.")
    assert "deed" in await keys(asking("What do I know of the Heron?"), store, recall_tokens=300)


async def test_what_is_far_from_the_words_can_be_left_out(store):
    await know(store, "near", "What did Goran forge")
    await know(store, "far", "zzzzzzzz Goran")
    state = asking("What did Goran forge?")
    assert set(await keys(state, store)) == {"near", "far"}
    assert await keys(state, store, max_cosine_distance=0.2) == ["near"]


async def test_a_secret_is_recalled_and_in_the_buffer_it_is_there_once(store):
    await know(store, "old", "Goran poisoned the well.", kind="secret")
    await know(store, "new", "Goran poisoned the king.", turn=8, kind="secret")
    before = [HumanMessage("I nod.", id="h8"), AIMessage("Hm.", id="a8")]
    state = asking("Whom did Goran poison?", messages=[*before, *asking("Whom did Goran poison?").messages])
    assert await keys(state, store) == ["old", "new"]


def seen(timeline, since):
    return Seen(timeline, since, 9, "")


async def test_secrets_of_the_buffer_begin_with_its_first_turn_and_end_with_the_last_written(store):
    for turn in range(1, 6):
        await know(store, f"{turn}", "Goran lied.", turn=turn, kind="secret")

    def cost(record):
        return memory_tokens({"turn": record.value["turn"], "kind": "secret", "text": record.text})

    for since, last, turns in ((3, 4, [3, 4]), (4, 4, [4]), (5, 4, []), (-1, 2, [1, 2])):
        found = within_budget(await buffered_secrets(store, seen([("a", last)], since), FACTS), 1000, cost)
        assert [record.value["turn"] for record in found] == turns
    exact = within_budget(await buffered_secrets(store, seen([("a", 5)], 1), FACTS), 2 * cost(found[0]), cost)
    assert [record.value["turn"] for record in exact] == [4, 5], "to the last token"


# Dice.


def rolling(*calls, earlier=()):
    messages = [HumanMessage("I climb."), *earlier, AIMessage("", tool_calls=list(calls))]
    return DungeonState(messages=messages, turn=3, timeline=[("a", 3)])


def d20(**arguments):
    return call("roll_dice", **{"expression": "1d20", "reason": "climb"} | arguments)


async def test_each_call_is_answered_in_order_with_a_roll_or_what_was_wrong():
    calls = [d20(dc=10, advantage="advantage"), call("fly", height=3), d20(dc=100), d20(reason=None, dc=1)]
    state = rolling(*calls)
    update = await roll_dice(state, runtime())
    assert [message.tool_call_id for message in update["messages"]] == [made["id"] for made in calls]
    assert [message.status for message in update["messages"]] == ["success", "error", "error", "success"]
    wrong = [message.text for message in update["messages"][1:3]]
    assert "There is no tool 'fly'; there are roll_dice, keep_secret" in wrong[0]
    assert wrong[1].startswith("roll_dice: dc: got 100;")
    first, second = update["rolls"]
    assert {name: first[name] for name in ("turn", "dc", "advantage", "reason")} == {
        "turn": 3, "dc": 10, "advantage": "advantage", "reason": "climb"}  # fmt: skip
    assert len(first["dice"][0]["values"]) == 2
    assert first["text"].startswith("1d20 with advantage = (")
    assert (second["reason"], second["dc"]) == ("", 1)
    assert "turn" not in update["messages"][0].text, "the model sees the roll, not the bookkeeping"


async def test_seeded_dice_go_on_where_the_turns_last_answer_was():
    three = (await roll_dice(rolling(d20(), d20(), d20()), runtime()))["rolls"]
    one = [AIMessage("", tool_calls=[d20()]), ToolMessage("5", tool_call_id="x")]
    later = (await roll_dice(rolling(d20(), d20(), earlier=one), runtime()))["rolls"]
    assert [roll["total"] for roll in later] == [roll["total"] for roll in three[1:]]
    assert len({roll["total"] for roll in three}) > 1
    other = await roll_dice(rolling(d20(), d20(), d20()), runtime(seed=8))
    assert [roll["total"] for roll in other["rolls"]] != [roll["total"] for roll in three]


async def test_a_reply_without_calls_rolls_nothing():
    state = rolling()
    assert await roll_dice(state, runtime()) == {"messages": [], "rolls": []}
    assert route_tools(state) == "update_state"
    assert route_tools(rolling(d20())) == "roll_dice"


async def test_what_the_player_does_not_want_comes_along_whatever_the_message_says(store):
    player = player_namespace("adventurer", "facts")
    await know(store, "limit", "The player wants no harm to animals.", namespace=player, kind="preference")
    assert await keys(asking("I count my coins."), store) == ["limit"]


async def test_of_too_many_wishes_those_that_matter_most_come_along():
    store, player = InMemoryStore(), player_namespace("adventurer", "facts")
    for number, importance in enumerate((9, 2, 5, 5)):
        value = {"kind": "preference", "text": f"Wish {number}.", "importance": importance, "at": f"{number}"}
        await store.aput(player, f"k{number}", value)

    def cost(record):
        return memory_tokens({"kind": "preference", "text": record.text})

    async def texts(budget):
        return [record.text for record in within_budget(await player_wishes(store, seen([], 1), player), budget, cost)]

    assert await texts(1000) == ["Wish 1.", "Wish 2.", "Wish 3.", "Wish 0."]
    one = memory_tokens({"kind": "preference", "text": "Wish 0."})
    assert await texts(3 * one) == ["Wish 2.", "Wish 3.", "Wish 0."]
    assert await texts(one - 1) == []
