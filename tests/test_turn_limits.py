"""Numbers that a user feels: whoever changes one finds here a test that counts otherwise."""

import json
import math
from dataclasses import replace

import pytest
from companion_thread import Companion
from faulty_stores import Broken
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from scripted import call, say, sections_of

from questbook import CharacterNotebook, Notebook, StateNotebook, prune
from questbook.graphs.agent.spec import AgentContext
from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.dice import roll_dice
from questbook.graphs.dungeon_master.quest import recall_plan
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.errors import InputError
from questbook.graphs.terminal.cli import parser
from questbook.graphs.turn import sessions
from questbook.graphs.turn.notes import in_short
from questbook.graphs.turn.recall import Recall, Seen, known_of_person, memories_for, memory_tokens
from questbook.graphs.turn.reply import secret_phrases
from questbook.graphs.turn.scope import user_timeline
from questbook.graphs.turn.state import NOTICES, TurnState
from questbook.graphs.turn.turn import turns_to_note
from questbook.memory.ltm.config import SPELLING_DISTANCE
from questbook.memory.timeline.namespaces import campaign_namespace, player_namespace
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import record_key

EXCHANGES, FACTS = (campaign_namespace("adventurer", "default", name) for name in ("exchanges", "facts"))
PLAYER = player_namespace("adventurer", "facts")


def runtime(store=None, **settings):
    return Runtime(context=Context.of({"model": "scripted"} | settings), store=store)


def asking(turn=9, **channels):
    """Return the state of a thread whose buffer holds its last turn alone, all before it written."""
    values = {"messages": [HumanMessage("Zzz?", id="h")], "turn": turn, "timeline": [("a", turn)]}
    return DungeonState(**values | {"remembered_through": turn - 1} | channels)


async def stored(turns=(), facts=()):
    store = InMemoryStore()
    for turn in turns:
        value = {"player": f"I walk mile {turn}.", "reply": "The road goes on."} | Stamp("a", turn).to_json()
        await store.aput(EXCHANGES, record_key("a", turn, "exchange"), value | {"text": value["player"]})
    for number, (namespace, fact) in enumerate(facts):
        await store.aput(namespace, f"k{number}", {"at": f"{number:04}", "importance": 5} | fact)
    return store


def test_who_sets_nothing_has_the_budgets_limits_and_times_that_the_documents_name():
    tokens, turns = {"recall_tokens": 800, "summary_tokens": 400}, {"buffer_turns": 10, "summary_offset": 2}
    game = tokens | turns | {"model_timeout": 120, "update_timeout": 60, "max_roll_rounds": 4}
    assert Context().model_dump(include=set(game)) == game
    assert Recall() == Recall(800, 48)
    assert [context().max_tool_rounds for context in (CompanionContext, AgentContext)] == [6, 6]
    assert [page.LIMIT for page in (Notebook, CharacterNotebook, StateNotebook)] == [4000, 2500, 6000]
    assert [prune.__kwdefaults__["keep_turns"], parser().parse_args(["prune"]).keep_turns] == [50, 50]
    assert SPELLING_DISTANCE == 0.8


async def test_the_last_two_turns_are_in_the_prompt_of_a_new_session_whatever_is_said(mira):
    for number in range(1, 6):
        await mira.play(f"I listen to bird {number}.", quest=say(f"Bird {number} sings."))
    mira.config = {"configurable": {"thread_id": "another evening"}}
    await mira.play("Zzz?")
    told = sections_of(mira.model.asked("quest")[-1]).split("\n<memories>\n")[1].split("</memories>")[0]
    assert [json.loads(line)["turn"] for line in told.strip().splitlines()] == [5, 6]


async def test_they_share_half_of_the_budget():
    store = await stored(range(1, 9))
    for turn in (7, 8):
        key = record_key("a", turn, "exchange")
        long = {"player": "Go on. " * 400, "reply": "The road goes on. " * 400}
        await store.aput(EXCHANGES, key, (await store.aget(EXCHANGES, key)).value | long)
    found = await memories_for(asking(), runtime(store, recall_tokens=800), recall_plan)
    assert [memory["turn"] for memory in found] == [7, 8]
    assert 300 < sum(map(memory_tokens, found)) <= 400


async def test_wishes_the_last_turns_and_what_fits_the_message_keep_to_the_budget_together():
    wishes = [
        (PLAYER, {"kind": "preference", "text": f"The player wants no harm to animal {n:02}."}) for n in range(65)
    ]
    state = asking(60, messages=[HumanMessage("How many miles did I walk on the road?", id="h")])
    found = await memories_for(state, runtime(await stored(range(1, 60), wishes), recall_tokens=800), recall_plan)
    assert {memory["kind"] for memory in found} == {"exchange", "preference"}
    assert 700 < sum(map(memory_tokens, found)) <= 800


@pytest.mark.parametrize(("budget", "share", "most", "wanted"), [
    (800, 200, 48, 24), (200, 100, 48, 24), (60, 60, 48, 24), (40_000, 10_000, 48, 24), (40_000, 10_000, 999, 64),
])  # fmt: skip
async def test_64_wishes_fill_a_quarter_of_the_budget_and_100_tokens_of_a_small_one(budget, share, most, wanted):
    wishes = [
        (PLAYER, {"kind": "preference", "text": f"The player wants no harm to animal {n:02}."}) for n in range(65)
    ]

    async def plan(*given):
        return replace(await recall_plan(*given), options=Recall(budget, most))

    found = await memories_for(asking(), runtime(await stored(facts=wishes)), plan)
    [cost] = set(map(memory_tokens, found))
    assert len(found) == min(share // cost, wanted)


async def test_secrets_of_the_buffer_fill_a_quarter_of_the_budget():
    secret = {"kind": "secret"} | Stamp("a", 8).to_json()
    secrets = [(FACTS, secret | {"text": f"Oda hid key {n:02} under the old stone."}) for n in range(40)]
    before = [HumanMessage("I nod.", id="h8"), AIMessage("Hm.", id="a8"), *asking().messages]
    found = await memories_for(
        asking(messages=before), runtime(await stored(facts=secrets), recall_tokens=800), recall_plan
    )
    [cost] = set(map(memory_tokens, found))
    assert len(found) == 200 // cost


async def test_what_is_known_of_a_person_fills_an_eighth_of_the_budget_the_most_important_first(model):
    companion = Companion(model)
    shelves = [
        {"text": f"The user's shelf {n} is oak.", "subject": "the user", "kind": "trait", "importance": n}
        | {"attribute": f"shelf {n}", "value": "oak"}
        for n in range(1, 10)
    ]
    model.queue("facts", say("", call("Facts", facts=shelves)))
    await companion.say("My shelves are all oak.", recall_tokens=400)
    await companion.say("Zzz?", recall_tokens=400)
    told = sections_of(model.asked("companion")[-1]).split("\n<memories>\n")[1].split("\n</memories>")[0]
    lines = told.splitlines()
    assert len(lines) == 50 // math.ceil((len(lines[0]) + 1) / 4)
    assert "shelf 9 " in told


async def test_what_is_known_of_the_player_comes_in_every_game_where_the_message_is_about_it():
    about_them = {"kind": "trait", "text": "The player has a cat called Miso.", "subject": "the player"}
    store = await stored(facts=[(PLAYER, about_them)])
    for words, told in (("How is my cat Miso?", ["The player has a cat called Miso."]), ("I climb the wall.", [])):
        asked = asking(1, messages=[HumanMessage(words, id="h")])
        assert [memory["text"] for memory in await memories_for(asked, runtime(store), recall_plan)] == told


async def test_64_facts_of_a_person_are_read():
    fact = {"subject": "the user", "kind": "trait", "slot": "x"} | Stamp("a", 1).to_json()
    store = await stored(
        facts=[(FACTS, fact | {"text": f"The user owns ship {n}.", "slot": f"{n}"}) for n in range(65)]
    )
    assert len(await known_of_person(FACTS).read(store, Seen([("a", 9)], 9, 9, ""))) == 64


async def test_ten_calls_of_an_answer_are_done_and_the_last_20_rolls_and_10_notices_are_kept():
    calls = [call("roll_dice", expression="1d20", reason="climb") for _ in range(12)]
    state = DungeonState(messages=[HumanMessage("I climb."), AIMessage("", tool_calls=calls)], turn=1)
    update = await roll_dice(state, runtime())
    assert [message.status for message in update["messages"]] == ["success"] * 10 + ["error"] * 2
    rolls = DungeonState.model_fields["rolls"].metadata[0].from_checkpoint(update["rolls"])
    for _ in range(2):
        rolls.update([update["rolls"]])
    assert len(rolls.get()) == 30, "all of the turn"
    rolls.update([[update["rolls"][0] | {"turn": 2}]])
    assert [roll["turn"] for roll in rolls.get()] == [1] * 19 + [2]
    notices = NOTICES.from_checkpoint([])
    notices.update([[{"turn": n, "node": "x", "text": "y"} for n in range(12)]])
    assert [entry["turn"] for entry in notices.get()] == [*range(2, 12)]


async def test_an_interview_asks_the_model_three_times_in_a_turn_and_then_an_ordinary_question(game):
    await game.play("I'm Mira.", interview=[say("", call("CharacterNotebook", shoe_size=36))] * 9)
    assert len(game.model.asked("interview")) == 3
    assert game.reply == "Tell me more about your character: what is their name?"


async def test_notes_catch_up_with_100_turns_of_another_thread_and_cut_texts_to_2000_characters():
    store = await stored(range(1, 150))
    state = TurnState(messages=[HumanMessage("Now?", id="h")], turn=150, timeline=[("a", 150)])
    turns = await turns_to_note(state, runtime(store), 1)
    assert [turns[0]["turn"], turns[-1]["turn"], len(turns)] == [50, 150, 101]
    assert in_short({"turn": 1, "reply": "x" * 2000 + "y"})["reply"] == "x" * 1000 + " … " + "x" * 999 + "y"
    assert in_short({"turn": 1, "reply": "x" * 2000})["reply"] == "x" * 2000


@pytest.mark.parametrize("long", ["message", "reply"])
async def test_of_what_is_longer_than_50000_characters_the_turn_that_said_it_tells_that_it_is_kept_in_part(model, long):
    """Also if the store fails meanwhile, and a later turn writes it."""
    companion = Companion(model, store=Broken(), max_message_chars=60_000, max_reply_chars=60_000, facts=False)
    companion.settings["buffer_tokens"] = 100_000
    await companion.say("Hello.")
    companion.store.error = ConnectionError("down")
    text = f"{'a' * 37_500}b{'c' * 12_500}"
    said = {"message": "Good.", "reply": "Good."} | {long: text}
    await companion.say(said["message"], say(said["reply"]))
    companion.store.error = None
    await companion.say("y" * 50_000)
    told = [
        (entry["turn"], "50,000 characters is remembered in part" in entry["text"])
        for entry in companion.values["notices"]
    ]
    assert (2, True) in told
    assert [turn for turn, in_part in told if in_part] == [2]
    kept = companion.records("exchanges")[1]["player" if long == "message" else "reply"]
    assert kept == f"{'a' * 37_500} … {'c' * 12_500}", "three quarters of it are its beginning"
    assert text in [message.text for message in companion.values["messages"]], "the conversation has all of it"


@pytest.mark.parametrize(("given", "problem"), [
    ([HumanMessage("x" * 101)], r"has 101 characters; at most 100 can be read\. Send it in parts\."),
    ([HumanMessage(" \n\t")], r"The message is blank\. Say something\."),
    ([HumanMessage("Hi."), AIMessage("I see.")], r"of role 'user', but the last one has role 'ai'\. Send one\."),
    ([], r"of role 'user', but there is none\. Send one\."),
])  # fmt: skip
async def test_what_cannot_be_answered_is_refused_before_anything_is_kept_and_exactly_the_longest_message_is_not(
    model, given, problem
):
    companion = Companion(model, max_message_chars=100, facts=False)
    with pytest.raises(InputError, match=problem):
        await companion.say({"messages": given})
    assert await companion.store.alist_namespaces() == []
    assert await companion.say("x" * 100, say("So many.")) == "So many."
    assert companion.values["turn"] == 1


async def test_the_last_100_lives_of_a_thread_are_looked_at():
    store, view = InMemoryStore(), user_timeline((), Context(user="ann"), "t")
    for number in range(101):
        place, key = view.with_segments((), f"life{number}").head_place
        await store.aput(place, key, {"timeline": [["a", 1]]})
    assert len(await sessions._lives_of(store, view)) == 100


def test_a_secret_is_told_by_six_of_its_words_in_a_row():
    assert [len(phrase) for phrase in secret_phrases(["one two three four five six"])] == [6]
    assert secret_phrases(["one two three four five"]) == set()
