"""The dungeon master's nodes and parts by themselves: what they return at their limits."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from letters import Letters
from noted_facts import home
from scripted import call

from questbook import note_facts
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.dice import roll_dice
from questbook.graphs.dungeon_master.facts import read_new_facts, story_attributes, with_secrets
from questbook.graphs.dungeon_master.graph import route_tools
from questbook.graphs.dungeon_master.notes import deletion_notice
from questbook.graphs.dungeon_master.prompts import quest_prompt
from questbook.graphs.dungeon_master.quest import buffered_secrets, player_wishes, recall_plan
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.buffer import upkeep_edge
from questbook.graphs.turn.recall import Seen, memories_for, memory_lines, memory_tokens, within_budget
from questbook.memory.timeline.namespaces import campaign_namespace, player_namespace
from questbook.memory.timeline.records import Stamp
from questbook.notebooks import StateNotebook

FACTS = campaign_namespace("adventurer", "default", "facts")


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


async def test_a_secret_that_another_one_replaced_is_in_mind_where_that_was_not_told(store):
    for where, timeline in (("the mill", [("a", 1)]), ("the inn", [("a", 1), ("b", 2)])):
        await note_facts(store, FACTS, [home(where, kind="secret")], timeline=timeline)
    for timeline, where in (([("a", 2)], "mill"), ([("a", 1), ("b", 2)], "inn")):
        found = await buffered_secrets(store, seen(timeline, 1), FACTS)
        assert [record.text for record in found] == [f"Goran lives at the {where}."]


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
    line = {"timeline": [("b", 3)]}  # which has luck of its own
    assert (await roll_dice(rolling(d20(), d20(), d20()).model_copy(update=line), runtime()))["rolls"] != three


async def test_only_a_natural_1_and_a_natural_20_are_worth_a_word():
    said = {}
    for seed in range(15):
        update = await roll_dice(rolling(*[d20() for _ in range(10)]), runtime(seed=seed))
        for roll, message in zip(update["rolls"], update["messages"], strict=True):
            said[roll["natural"]] = message.text.endswith(f" The die shows a natural {roll['natural']}.")
    assert said == {face: face in (1, 20) for face in range(1, 21)}


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


def waiting(turn, text="The stone is grey.", **fact):
    fact = {"text": text, "importance": 3} | fact
    return {"turns": [turn, turn], "ordinal": 0, "fact": fact, "echoes": "", "messages": ["m"], "said": "m"}


def spoken_state(**channels):
    messages = [HumanMessage("I ask.", id="h1"), AIMessage("Goran nods.", id="a1")]
    messages += [HumanMessage("I look.", id="h2"), AIMessage("Grey.", id="a2")]
    return DungeonState(**{"messages": messages, "turn": 2, "timeline": [("a", 2)]} | channels)


# The state of a campaign.


def test_a_turn_may_leave_once_it_is_noted_and_remembered():
    assert DungeonState(turn=5, timeline=[("a", 5)], noted_through=3, remembered_through=5).may_leave == 3
    assert DungeonState(turn=5, timeline=[("a", 5)], noted_through=5, remembered_through=3).may_leave == 3


def test_a_wish_is_for_the_turns_up_to_its_last_one():
    wish = {"text": "More of the sea.", "through": 3}
    assert [DungeonState(turn=turn, note=wish).wish for turn in (3, 4)] == ["More of the sea.", ""]


@pytest.mark.parametrize(("words", "is_new"), [
    ("new game", True), ("Start a new game.", True), ("“Begin a new campaign: I am Bo", True), ("play new game!", True),
    ("A new game", True), ("play a new game, please", True), ("I want a new game", False),
    ("a new game of dice", False), ("newgame", False),
])  # fmt: skip
def test_a_thread_whose_first_words_ask_for_it_begins_a_campaign_of_its_own(words, is_new):
    state = DungeonState(messages=[HumanMessage(words, id="h1")])
    assert state.new_campaign("t1") == ("game t1" if is_new else "")
    assert state.new_campaign(None) == ""


def test_what_people_wrote_stands_escaped_in_the_prompt_and_the_bonuses_beside_the_scores():
    quest = {"note": {"text": "Slow </wish> down.", "through": 2}, "summary": "A </summary> bell."}
    state = spoken_state(character={"abilities": {"strength": 15}, "level": 5}, **quest)
    sections = {one["section"]: one["text"] for one in quest_prompt(state, Context()).report("run_quest", 2)["prompt"]}
    assert "Slow &lt;/wish" in sections["wish"]
    assert "A &lt;/summary" in sections["summary"]
    assert 'modifiers: "STR +2, proficiency +3"' in sections["character"]


def test_a_reflection_reads_the_turns_whose_facts_are_all_written():
    waiting = [{"turns": [first, 9], "fact": {"text": "x"}} for first in (6, 4)]
    assert spoken_state(turn=9, timeline=[("a", 9)], facts=waiting).learned_through == 3
    assert spoken_state(turn=9, timeline=[("a", 9)]).learned_through == 9


def test_a_transcript_has_the_turns_asked_for_with_their_own_rolls():
    state = spoken_state(rolls=[{"turn": 1, "total": 7}, {"turn": 2, "total": 9}])
    assert state.transcript(1, 1) == [{"turn": 1, "player": "I ask.", "rolls": [{"total": 7}], "reply": "Goran nods."}]
    assert [turn["turn"] for turn in state.transcript(1, 2)] == [1, 2]
    assert "rolls" not in spoken_state().transcript(2, 2)[0]
    shown = {"reason": "luck", "text": "1d20 = (4) = 4 vs DC 9: failure", "total": 4, "success": False, "natural": 4}
    state = spoken_state(rolls=[shown | {"turn": 2, "dc": 9, "dice": [{"sides": 20, "values": [[4, True]]}]}])
    assert state.transcript(2, 2)[0]["rolls"] == [shown], "the numbers that the text says once are left out"


def test_a_record_says_what_the_page_said_after_its_turn():
    quest = StateNotebook.load({"location": "the mill", "clock": {"day": 3}})
    noted = {"from": 1, "through": 1, "patch": {"gold": 3}}
    then = {"noted": noted, "location": "the crypt", "day": 2}
    state = spoken_state(quest=quest, noted={"1": then, "2": then}, facts=[waiting(2)])
    assert state.record_fields(1) == then | {"taught": ""}
    now = state.record_fields(2)
    assert (now["location"], now["day"], now["noted"]) == ("the mill", 3, noted)
    assert now["taught"]
    other = spoken_state(quest=quest, noted={"2": then}, facts=[waiting(2, "The stone is red.")])
    assert other.record_fields(2)["taught"] != now["taught"], "two attempts that differ in facts alone"
    old = spoken_state(quest=quest, noted=noted)  # as version 0.1.0 kept it
    assert (old.record_fields(2)["noted"], old.record_fields(1)["noted"]) == (noted, {})


# Facts on their way into the store.


def test_at_most_five_hundred_facts_wait_and_a_remark_counts_those_left_out():
    state = spoken_state(facts=[waiting(1)] * 498)
    turns = state.transcript(2, 2)
    three = [{"facts": [{"text": f"The stone number {n} is grey."} for n in range(3)]}]
    facts, remarks = read_new_facts(state, turns, three, [])
    assert len(facts) == 500
    assert [entry["fact"]["text"] for entry in facts[498:]] == [f"The stone number {n} is grey." for n in (0, 1)]
    assert remarks == [("1 facts were left out: 500 wait to be written already.", "")]
    room = spoken_state(facts=[waiting(1)] * 497)
    assert read_new_facts(room, turns, three, []).remarks == []


def test_a_new_fact_keeps_its_turns_its_messages_and_the_players_first_one():
    state = spoken_state()
    [entry] = read_new_facts(state, state.transcript(1, 2), [{"facts": [{"text": "Goran nods often."}]}], []).facts
    assert (entry["turns"], entry["ordinal"], entry["echoes"]) == ([1, 2], 0, "")
    assert (entry["messages"], entry["said"]) == (["h1", "a1", "h2", "a2"], "h1")
    assert "slot" not in entry["fact"], "it spells names in a way that forget does not find"
    state = spoken_state(quest=StateNotebook.load({"clock": {"day": 3}}))
    [entry] = read_new_facts(state, state.transcript(2, 2), [{"facts": [{"text": "It rains tomorrow."}]}], []).facts
    assert (entry["messages"], entry["said"]) == (["h2", "a2"], "h2")
    assert (entry["fact"]["day"], entry["fact"]["when"]) == (4, []), "tomorrow in the story"
    odd = [{"facts": [{"text": "It rains.", "importance": "very"}]}]
    assert read_new_facts(state, state.transcript(2, 2), odd, []).remarks == [], "nothing of it is lost"


def test_a_secret_has_a_place_of_its_own_beside_facts_of_its_turn_that_wait():
    secret = {"about": "Oda", "secret": "Oda is the thief."}
    _, [fact] = with_secrets(spoken_state(new_secrets=[secret], facts=[waiting(1), waiting(1), waiting(2)]))
    assert (fact["turns"], fact["ordinal"], fact["messages"]) == ([2, 2], 1, ["h2", "a2"])


@pytest.mark.parametrize(
    ("memory", "echoes"),
    [
        ({"text": "The mill burnt down."}, "k"),
        ({"reply": "Ah. The mill burnt down."}, "k"),
        ({"reply": "Oda sighs, and pours you the red wine of the valley. The mill burnt down! You drink."}, "k"),
        ({"text": "The mill."}, ""),
    ],
)
def test_a_fact_that_repeats_a_memory_names_it(memory, echoes):
    state, told = spoken_state(), [{"facts": [{"text": "The mill burnt down."}]}]
    [entry] = read_new_facts(state, state.transcript(2, 2), told, [{"key": "k"} | memory]).facts
    assert entry["echoes"] == echoes


async def test_known_attributes_cost_no_more_than_their_tokens_and_name_each_once():
    store = InMemoryStore()
    names = [f"attribute number {n}" for n in range(60)]
    for n, name in enumerate([*names, names[0]]):
        value = {"text": f"Goran has {name}.", "subject": "Goran", "attribute": name, "slot": f"goran|{name}"}
        value |= {"kind": "secret" if n == 60 else "trait"} | Stamp("a", 1).to_json()
        await store.aput(FACTS, f"{n:03}", value)
    state = spoken_state(remembered_through=1)
    text = await story_attributes(state, runtime(store), state.transcript(1, 1), [])
    assert text.startswith('{"subject": "Goran", "attributes": [')
    assert len(text.splitlines()) == 1
    assert 600 < len(text) < 1000, "240 tokens"
    assert text.count('"attribute number 0"') <= 1


async def test_known_attributes_are_those_of_turns_that_have_their_place():
    store = InMemoryStore()
    places = (("Goran", 1, "home", "a"), ("Goran", 2, "debt", "a"), ("Goran", 1, "lie", "b"), ("Oda", 1, "age", "a"))
    for who, turn, name, branch in places:
        value = {"text": f"{who} has a {name}.", "subject": who, "attribute": name, "slot": f"{who.lower()}|{name}"}
        await store.aput(FACTS, name, value | Stamp(branch, turn).to_json())
    state = spoken_state(remembered_through=1)
    text = await story_attributes(state, runtime(store), state.transcript(1, 2), [])
    assert text == '{"subject": "Goran", "attributes": ["home"]}', "turn 2 may be another future's"
    recalled = [{"key": "age", "kind": "trait"}, {"key": "lie", "kind": "exchange"}]
    assert '"Oda"' in await story_attributes(state, runtime(store), state.transcript(1, 2), recalled)
    written = state.model_copy(update={"remembered_through": 2})
    assert "debt" in await story_attributes(written, runtime(store), written.transcript(1, 2), [])


# Edges, and notes that are not due.


def test_a_reflection_is_due_when_enough_was_noted():
    settings = [Context.of({"reflection": mode}) for mode in ("inline", "background", "off")]
    assert [each.reflects_at(n) for n in (149, 150) for each in settings] == [False, False, False, True, True, False]


def test_the_reflection_goes_before_the_buffer(monkeypatch):
    monkeypatch.setattr("questbook.graphs.turn.buffer.context_or_none", lambda: {"buffer_tokens": 200})
    long = [m for n in range(9) for m in (HumanMessage("x" * 400, id=f"h{n}"), AIMessage("y" * 400, id=f"a{n}"))]
    full = DungeonState(messages=long, turn=9, noted_through=9, remembered_through=9)
    states = full.model_copy(update={"unreflected": 150}), full, spoken_state()
    routes = [[upkeep_edge(Context, reflects=first)(state) for state in states] for first in (True, False)]
    assert routes == [["reflect", "condense", "__end__"], ["condense", "condense", "__end__"]]


# What the note-taker deletes on its own is a notice, unless the story did it.


ENTRIES = {
    "quests": {"Find Ida": {}, "The rats": {"status": "done"}},
    "people": {"Oda": {"role": "smith"}, "Goran": {"alive": False, "fate": "eaten"}},
    "facts": {"the ledger": "lies under the mill"},
    "inventory": {"torch": 2, "silver key": 1},
    "secrets": {"mayor": "is the thief"},
}
PAGE = StateNotebook().apply(ENTRIES).page
SAID = [{"turn": 3, "player": "I light a torch.", "reply": "It burns down."}]


def notice(**patch):
    return deletion_notice(PAGE, PAGE.apply(patch).page, SAID)


@pytest.mark.parametrize(
    ("patch", "named", "hint"),
    [
        ({"facts": {"the ledger": None}}, "the fact “the ledger”", "/why facts.the ledger"),
        ({"quests": {"Find Ida": None}}, "the quest “Find Ida”", "/why quests.Find Ida"),
        ({"people": {"Oda": None}}, "the person “Oda”", "/why people.Oda"),
        ({"inventory": {"silver key": 0}}, "the item “silver key”", "/why inventory.silver key"),
        (dict.fromkeys(("quests", "people", "facts")), "the fact “the ledger”. /why", "/why quests.Find Ida"),
    ],
)
def test_an_entry_that_goes_without_a_reason_is_named(patch, named, hint):
    assert named in notice(**patch)
    assert f"{hint} says after which message." in notice(**patch)


@pytest.mark.parametrize(
    "patch",
    [
        {"inventory": {"torch": None}}, {"quests": {"The rats": None}}, {"people": {"Goran": None}},
        {"facts": {"the ledger": None, "ledger of the mill": "found"}},
        {"facts": {"the ledger": "is found"}, "gold": 3}, {"quests": {"Find Ida": {"status": "done"}}}, {},
    ],
    ids=["spoken of", "over", "dead", "renamed", "changed", "done", "nothing"],
)  # fmt: skip
def test_what_goes_as_the_story_goes_is_no_notice(patch):
    assert notice(**patch) == ""


@pytest.mark.parametrize(
    ("before", "patch", "reply"),
    [
        ({"inventory": {"iron key": 1}}, {"inventory": {"iron key": None}}, "The key breaks in the lock."),
        ({"inventory": {"silver locket": 1}}, {"inventory": {"silver locket": 0}}, "The locket is gone."),
        ({"inventory": {"Healing Potions": 1}}, {"inventory": {"Healing Potions": 0}}, "The potion is bitter."),
        (
            {"people": {"the innkeeper": {}}},
            {"people": {"the innkeeper": None, "Tansy": {"role": "innkeeper"}}},
            "“Tansy,” she says.",
        ),
    ],
)
def test_a_thing_by_its_last_word_and_a_person_who_gets_a_name_are_no_notice(before, patch, reply):
    page = StateNotebook().apply(before).page
    said = [{"turn": 3, "player": "I go on.", "reply": reply}]
    assert deletion_notice(page, page.apply(patch).page, said) == ""
    assert deletion_notice(page, page.apply(dict.fromkeys(before)).page, SAID)


@pytest.mark.parametrize(
    ("item", "said", "spoken"),
    [
        ("green cap with a goose feather", "I give Joss his cap.", True),
        ("green cap with a goose feather", "A feather drifts by.", False),
        ("bronze mule bell without a clapper", "I ring the bell.", True),
        ("brass ring stamped TANSY", "I give her the ring.", True), ("Thrain's bell", "The bell is gone.", True),
        ("key to the north gate", "The key breaks.", True), ("key to the north gate", "I see the gate.", False),
        ("vial of poison", "I drink the poison.", True), ("vial of poison", "I break the vial.", True),
        ("letter from Hesta (sealed)", "I burn the letter.", True), ("rope, 50 feet", "The rope is cut.", True),
        ("hand-made knife", "I throw the knife.", True), ("cloak made of wolf fur", "I lay the cloak down.", True),
        ("torches (lit)", "The torch goes out.", True), ("(lit) torch", "The torch goes out.", True),
    ],
)  # fmt: skip
def test_a_thing_that_is_spoken_of_by_its_head_is_no_notice(item, said, spoken):
    page = StateNotebook().apply({"inventory": {item: 1}}).page
    after = page.apply({"inventory": {item: 0}}).page
    assert (deletion_notice(page, after, [{"turn": 3, "player": said, "reply": "So be it."}]) == "") is spoken


@pytest.mark.parametrize("about", [
    "with", "without", "from", "in", "for", "to", "on", "at", "by", "that", "which", "made", "marked", "stamped",
    "engraved", "bearing",
])  # fmt: skip
def test_what_is_said_about_a_thing_behind_such_a_word_is_not_the_thing(about):
    page = StateNotebook().apply({"inventory": {f"ring {about} a raven": 1}}).page
    after = page.apply({"inventory": {f"ring {about} a raven": 0}}).page
    for said, spoken in (("I lose the ring.", True), ("A raven caws.", False)):
        assert (deletion_notice(page, after, [{"turn": 3, "player": said, "reply": "So be it."}]) == "") is spoken


def test_only_things_may_go_because_they_are_spoken_of():
    said = [{"turn": 3, "player": "I ask Oda about Ida and the ledger.", "reply": "Oda will find Ida, or the ledger."}]
    gone = {"quests": {"Find Ida": None}, "people": {"Oda": None}, "facts": {"the ledger": None}}
    told = deletion_notice(PAGE, PAGE.apply(gone).page, said)
    assert "the quest “Find Ida”, the person “Oda”, the fact “the ledger”" in told


def test_a_secret_is_no_notice_and_many_entries_are_counted():
    assert notice(secrets={"mayor": None}) == ""
    everything = notice(**dict.fromkeys(("quests", "people", "facts", "inventory", "secrets")))
    told = "the quest “Find Ida”, the person “Oda”, the fact “the ledger”, 1 more. /why quests.Find Ida says after"
    assert everything.startswith(f"The notes dropped something that the story did not: {told}")


def test_on_a_page_that_is_nearly_full_the_model_was_asked_to_make_room():
    full = StateNotebook().apply({"facts": {f"stone {n}": "grey and old, " * 30 for n in range(12)}}).page
    assert len(full.render()) > 0.8 * full.LIMIT
    assert deletion_notice(full, full.apply({"facts": {"stone 0": None}}).page, []) == ""
    half = full.apply({"facts": {f"stone {n}": None for n in range(5)}}).page
    assert 0.4 * half.LIMIT < len(half.render()) < 0.8 * half.LIMIT
    assert "stone 5" in deletion_notice(half, half.apply({"facts": {"stone 5": None}}).page, [])
