"""Facts in the game: one call after the reply; what a store could not take in time is written later as what it was."""

import pytest
from conftest import MIRA
from fact_play import CONTEXT, FACTS, PLAYER, facts, known, notices, play, stored
from faulty_stores import Broken, Checking, Refusing
from forgetting_of import forgetting_of
from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from noted_facts import home
from page_play import turn
from scripted import call, malformed, say, sections_of

from questbook import CharacterNotebook, FaissStore, HashEmbeddings, note_facts
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.facts import noted_facts, read_new_facts, write_waiting_facts
from questbook.graphs.dungeon_master.retract import retract
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.dungeon_master.why import visible_records, why
from questbook.graphs.errors import ForgettingError, HistoryError, ModelError, PastUnknownError
from questbook.graphs.history.history import History
from questbook.memory.facts.fact import Fact
from questbook.memory.facts.validity import count_repetitions, keep_valid, text_digest
from questbook.memory.timeline.namespaces import campaign_namespace


async def test_the_page_and_the_facts_come_of_one_call_after_the_reply(mira):
    mira.model.calls.clear()
    mira.model.queue("quest", say("Goran, you hear, lives at the mill."))
    mira.model.queue("update", say("", call("StateNotebook", gold=3), call("Facts", facts=[home("the mill")])))
    await mira.play("I ask about Goran.")
    assert [job for job, _ in mira.model.calls] == ["quest", "update"]
    assert mira.values["quest"]["gold"] == 3
    [(key, value)] = (await stored(mira)).items()
    turn = mira.values["timeline"][-1]
    assert key == f"{turn[0]}-2-fact-0"
    said = [value[name] for name in ("text", "slot", "branch", "turn")]
    assert said == ["Goran lives at the mill.", "goran|home", turn[0], 2]
    assert set(value["messages"]) == {m.id for m in mira.values["messages"][-2:]}
    assert value["thread"] == mira.config["configurable"]["thread_id"]
    assert value["checkpoint"]
    assert value["said_at"]
    assert mira.values["facts"] == []


async def test_no_facts_are_no_oddity(mira):
    await play(mira, "I look around.")
    assert (await stored(mira), mira.values.get("facts", []), notices(mira)) == ({}, [], "")


async def test_oddities_are_notices_and_cost_no_second_call(mira):
    mira.model.calls.clear()
    await play(mira, "I ask.", home("the mill", importance="very"), {}, reply="Goran lives at the mill.")
    assert [job for job, _ in mira.model.calls] == ["quest", "update"]
    assert "An importance was no number" in notices(mira)
    assert "left out" in notices(mira)
    assert len(await stored(mira)) == 1


async def test_facts_that_are_no_json_are_asked_for_twice_more_and_cost_the_page_nothing(mira):
    broken = malformed("Facts", '{"facts": [')
    both = broken.model_copy(update={"tool_calls": [call("StateNotebook", gold=3)]})
    mira.model.queue("update", both, broken, broken)
    mira.model.calls.clear()
    await mira.play("I count my gold.")
    assert [job for job, _ in mira.model.calls] == ["quest", "update", "update", "update"]
    assert mira.values["quest"]["gold"] == 3
    assert "could not be read" in notices(mira)
    assert mira.values["noted_through"] == 2


async def test_talk_out_of_character_is_no_fact_of_the_world_whatever_the_model_says(mira):
    await play(mira, "I go on. OOC: spiders scare me", {"text": "Spiders scare people here.", "kind": "trait"})
    assert await stored(mira) == {}
    [value] = (await stored(mira, PLAYER)).values()
    assert value["kind"] == "preference"


async def test_what_the_player_claims_is_a_claim(mira):
    claim = {"text": "Mira found 1000 gold.", "subject": "Mira", "attribute": "find", "value": "1000 gold"}
    await play(mira, "I find 1000 gold!", claim, reply="You find dust.")
    [value] = (await stored(mira)).values()
    assert (value["kind"], value["claimed_by"]) == ("rumour", "Mira")


@pytest.mark.parametrize(
    ("said", "text", "reply", "kind"),
    [
        ("I grew up on the docks.", "Mira grew up on the docks.", "Oda shrugs.", "trait"),  # her sheet says so
        ("I sit in the Bent Nail.", "Mira sits in the Bent Nail.", "Oda shrugs.", "trait"),  # the quest's page
        ("I leap over a pit.", "Mira leapt over a pit.", "Oda shrugs.", "trait"),  # the dice
        ("I own a galleon.", "Mira owns a galleon.", "Your galleon waits.", "trait"),
        ("I own a galleon.", "Mira owns a galleon.", "Oda shrugs.", "rumour"),
        ("I rule a palace.", "Mira rules a palace.", "Oda shrugs.", "rumour"),
    ],
)
async def test_what_a_player_says_is_confirmed_by_sheet_page_dice_and_reply(mira, said, text, reply, kind):
    roll = say("", call("roll_dice", expression="1d20", reason="leap over a pit"))
    mira.queue(quest=[*([roll] if "pit" in said else []), say(reply)])
    mira.queue(update=facts({"text": text, "kind": "trait", "subject": "Mira", "value": said[2:-1]}))
    await mira.play(said)
    [value] = (await stored(mira)).values()
    assert (value["kind"], value["claimed_by"]) == (kind, "Mira" if kind == "rumour" else "")


@pytest.mark.slow
@pytest.mark.parametrize("error", [None, OSError("no connection")])
async def test_what_was_recalled_is_not_noted_again_as_new_also_if_the_store_fails_meanwhile(new_game, error):
    game = new_game(buffer_tokens=200, recall_tokens=2000)
    game.keep_in(Broken())
    await game.begin()
    await play(game, "I ask about Goran.", reply="Goran betrayed the ferryman at the old mill.")
    for n in range(8):
        await play(game, f"I walk mile {n}.", reply="The road goes on past hedges and ditches. " * 6)

    def answer(said, error):
        game.store.error = error
        return said

    again = facts({"text": "Goran betrayed the ferryman at the old mill.", "kind": "event"})
    game.model.queue("update", lambda _: answer(again, None))
    game.model.queue(
        "quest", lambda _: answer(say("You remember: Goran betrayed the ferryman at the old mill."), error)
    )
    await game.play("What did Goran do to the ferryman at the old mill?")
    memories = sections_of(game.model.asked("quest")[-1]).split("<memories>\n")[-1]
    assert "betrayed the ferryman" in memories, "else this test shows nothing"
    assert (await stored(game), "may be noted again" in notices(game)) == ({}, error is not None)


@pytest.mark.parametrize(("number", "echoes"), [(1, "a-1-exchange-0"), (2, "a-2-exchange-0"), (0, ""), (3, "")])
def test_a_memory_without_a_key_is_the_exchange_of_its_turn(number, echoes):
    state, told = DungeonState(turn=2, timeline=[("a", 2)]), {"text": "The old mill burned down.", "kind": "event"}
    memory = {"turn": number, "player": "I ask.", "reply": f"He nods. {told['text']}"}
    turns = [{"turn": 2, "player": "I ask.", "reply": told["text"]}]
    [fact] = read_new_facts(state, turns, [{"facts": [told]}], [memory]).facts
    assert fact["echoes"] == (echoes or text_digest(f"I ask.\n{memory['reply']}"))


async def test_whatever_the_model_sends_the_game_goes_on_and_every_record_is_sound(mira):
    odd = [
        {"facts": "Goran"}, {"facts": 7}, {}, {"facts": [[[]]]}, {"facts": {"text": "The lamp is lit."}},
        {"facts": [{"text": "\ud800\x00 lamp", "importance": [], "known_by": {"a": 1}}]}, {"text": "No list."},
        {"facts": [home("the mill", real_time="9999-12-31"), home("the inn", real_time="0000-00-00")]},
    ]  # fmt: skip
    for number, args in enumerate(odd):
        mira.model.queue("update", say("", call("Facts", **args)))
        await mira.play(f"I try thing {number}.", quest=say("The mill, the inn, the lamp."))
        assert mira.values["remembered_through"] == number + 2
    fields = set(Fact.model_fields) - {"of_person"}
    for value in (await stored(mira)).values():
        Fact.model_validate({name: value[name] for name in fields if name in value})
    assert "Goran lives at the inn." in await known(mira)
    assert "Goran lives at the mill." not in await known(mira)


async def test_the_offline_storyteller_hands_over_facts_too(new_game, monkeypatch):
    monkeypatch.undo()
    game = new_game(model="offline", seed=3)
    said = "I'm Mira, a halfling rogue from the docks; I want my sister back."
    for words in (said, "yes", "I look around", "I ask about the trouble here", "I ask who did it"):
        await game.play(words)
        if game.values["turn"] > 6:
            break
    found = (await stored(game)).values()
    assert {"trait", "secret"} <= {value["kind"] for value in found}
    assert all(value["text"] for value in found)


# Facts follow the checkpoint: forks, going back, forgetting; an abandoned turn is neither told nor believed.


async def test_what_is_known_of_the_player_does_not_rewind(mira):
    wish = {"text": "The player wants no spiders.", "kind": "preference", "about": "player"}
    await play(mira, "I enter. ((no spiders please))", wish)
    assert await stored(mira) == {}
    [value] = (await stored(mira, PLAYER)).values()
    assert (value["kind"], value["text"], "branch" in value) == ("preference", wish["text"], False)
    history = History(mira.app, mira.config, CONTEXT)
    await history.undo()
    await play(mira, "I enter. ((no spiders, please))", wish)
    config, context = await history.retry()
    mira.model.queue("update", facts(wish | {"text": "The player wants no spiders!"}))
    await mira.app.ainvoke(None, config, context=context, durability="sync")
    assert len(await stored(mira, PLAYER)) == 1


async def test_what_was_told_in_an_abandoned_future_is_new_when_it_is_told_again(mira):
    for _ in range(2):
        await play(mira, "I ask.", home("the mill"), reply="Goran lives at the mill.")
        assert await known(mira) == ["Goran lives at the mill."]
        await History(mira.app, mira.config, CONTEXT).undo()


async def test_retracting_a_turn_takes_its_facts_and_what_held_before_holds_again(mira):
    await play(mira, "I ask.", home("the mill"), reply="Goran lives at the mill.")
    wish = {"text": "The player likes riddles.", "kind": "preference", "about": "player"}
    await play(mira, "I ask again. ((I like riddles))", home("the inn"), wish, reply="Goran lives at the inn.")
    await play(mira, "And again.", home("the inn"), reply="Goran lives at the inn, yes.")
    done = await retract(mira.app, mira.config, CONTEXT, 3)
    assert done.facts == 2
    assert await known(mira) == ["Goran lives at the inn."], "turn 4 says so, too"
    assert await stored(mira, PLAYER) == {}
    await retract(mira.app, mira.config, CONTEXT, 4)
    assert await known(mira) == ["Goran lives at the mill."]
    places = await History(mira.app, mira.config, CONTEXT).turns()
    assert [place.turn for place in places] == [1, 2, 3, 4], "what is set aside is no turn"


async def test_retracting_a_turn_brings_back_what_it_ended_of_the_player(mira):
    for what in ("riddles", "songs"):
        taste = {"subject": "the player", "attribute": "taste", "value": what, "kind": "preference", "about": "player"}
        await play(mira, f"I go on. ((I like {what}))", {"text": f"The player likes {what}."} | taste)
    for number, holds in ((3, [("songs", True), ("riddles", False)]), (0, [("riddles", True)])):
        found = await why(mira.app, mira.config, CONTEXT, "player likes")
        assert [(cause.value.split()[-1][:-1], cause.holds) for cause in found] == holds
        if number:
            await retract(mira.app, mira.config, CONTEXT, number)


async def test_retracting_a_turn_takes_what_it_only_repeated(mira):
    for _ in range(3):
        await play(mira, "I ask.", home("the mill"), reply="Goran lives at the mill.")
    [key] = await stored(mira)
    assert await count_repetitions(mira.store, FACTS, [key]) == {key: 2}
    await retract(mira.app, mira.config, CONTEXT, 3)
    assert (await count_repetitions(mira.store, FACTS, [key]), list(await stored(mira))) == ({key: 1}, [key])


async def test_why_says_of_a_fact_whether_it_still_holds(mira):
    for where in ("mill", "inn"):
        await play(mira, "I ask.", home(f"the {where}"), reply=f"He lives at the {where}.")
    told = await why(mira.app, mira.config, CONTEXT, "Goran lives")
    assert [(cause.value[-4:], cause.holds) for cause in told] == [("inn.", True), ("ill.", False)]
    await History(mira.app, mira.config, CONTEXT).undo()
    [cause] = await why(mira.app, mira.config, CONTEXT, "Goran lives")
    assert (cause.value[-4:], cause.holds) == ("ill.", True), "what was taken back ends nothing"


async def test_what_was_noted_of_a_turn_is_told_a_player_without_secrets_rumours_and_claims():
    store, plain = InMemoryStore(), home("the mill")
    hidden = [{"text": "Oda is a thief.", "kind": "secret"}, {"text": "A dragon came.", "kind": "rumour"}]
    hidden.append({"text": "Bo will pay.", "kind": "promise", "claimed_by": "Bo"})
    await note_facts(store, FACTS, [plain, *hidden], timeline=[("a", 1)])
    await note_facts(store, FACTS, [{"text": "The mill burns."}], timeline=[("a", 2)])
    await note_facts(store, FACTS, [home("the inn")], timeline=[("a", 1), ("b", 2)])  # another future
    state = DungeonState(turn=3, timeline=[("a", 2)])
    assert await noted_facts(state, Runtime(context=CONTEXT, store=store), 1, 1) == {1: [plain["text"]]}


async def test_why_never_tells_a_secret(mira):
    secret = {"text": "Oda is the thief of the crown.", "kind": "secret"}
    noted = say("", call("StateNotebook", secrets={"Oda": "the thief"}), call("Facts", facts=[secret]))
    await mira.play("I look.", update=noted)
    assert len(await stored(mira)) == 1
    for what in ("secrets", "secrets.Oda", "Secrets.Oda", "thief of the crown"):
        with pytest.raises(HistoryError) as refused:
            await why(mira.app, mira.config, CONTEXT, what)
        assert "is the thief" not in str(refused.value)
        assert ("only the dungeon master knows" in str(refused.value)) is what.casefold().startswith("secrets")


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
    stood = [(turn, one["location"], one["day"]) for turn, one in sorted(found.items())]
    assert stood == [(1, "The Bent Nail", 1), (2, "the cellar", 1), (3, "the roof", 2), (4, "the inn", 2)]
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


async def test_what_the_player_told_in_turns_199_and_200_and_could_not_be_written_stands_in_that_order():
    store = InMemoryStore()
    told = []
    for number, town in ((199, "Paris"), (200, "Rome")):
        fact = {"text": f"The player lives in {town}.", "subject": "the player", "attribute": "home", "value": town}
        entry = {"turns": [number, number], "ordinal": 0, "echoes": "", "said": f"m{number}", "messages": []}
        told.append(entry | {"fact": fact | {"of_player": True}})
    origin = {"thread": "t", "checkpoint": "c", "said_at": "2026-11-21T10:00:00+00:00"}
    state, runtime = DungeonState(turn=200, facts=told), Runtime(context=CONTEXT, store=store)
    update = await write_waiting_facts(state, runtime, [("a", 200)], origin)
    assert (update["facts"], update["unreflected"]) == ([], 0), "what is known of the player is no matter of the story"
    found = await store.asearch(PLAYER, limit=9)
    assert sorted(item.value["at"] for item in found) == ["01795255200.99000", "01795255201.00000"]
    assert [item.value["value"] for item in await keep_valid(store, found)] == ["Rome"]


async def test_what_was_written_before_the_store_failed_counts_towards_a_reflection():
    class PlayerRefused(Checking):
        def check(self, ops):
            if any(isinstance(op, PutOp) and op.namespace == PLAYER for op in ops):
                raise ConnectionError("the line went dead")

    entry = {"turns": [2, 2], "ordinal": 0, "echoes": "", "said": "m2", "messages": []}
    facts = [
        entry | {"fact": {"text": "Goran lives at the mill.", "importance": 6}},
        entry | {"ordinal": 1, "fact": {"text": "The player likes geese.", "importance": 3, "of_player": True}},
    ]
    origin = {"thread": "t", "checkpoint": "c", "said_at": "2026-11-21T10:00:00+00:00"}
    state = DungeonState(turn=2, facts=facts, unreflected=10, character=CharacterNotebook.load(MIRA))
    store = PlayerRefused()
    update = await write_waiting_facts(state, Runtime(context=CONTEXT, store=store), [("a", 2)], origin)
    head = await store.aget(campaign_namespace("adventurer", "default", "head"), "head")
    for value in (update, head.value):
        assert (value["unreflected"], value["facts"]) == (16, facts[1:]), "also for a new session"


# A game whose store or model fails: what was said is kept, and the turn is taken up again.


async def test_a_new_thread_does_not_begin_anew_because_the_store_is_down(game):
    game.keep_in(Broken())
    game.store.error = OSError("no connection")
    with pytest.raises(PastUnknownError, match="no connection"):
        await game.play("hello")
    assert game.values["messages"][-1].text == "hello"


@pytest.mark.slow
async def test_what_was_recalled_is_found_again_when_a_turn_is_resumed(new_mira):
    game = await new_mira(buffer_tokens=300)
    for number in range(10):
        await game.play(f"I listen to heron {number}", quest=say(f"The heron {number} sings. " + "La la la. " * 20))
    game.model.queue("quest", ConnectionError("cut"))
    with pytest.raises(ModelError):
        await game.play("What did heron 1 sing?")
    await game.play(None)
    assert "\n<memories>\n" in sections_of(game.model.asked("quest")[-1])


async def test_forgetting_words_takes_the_facts_that_say_them_of_story_and_player(game, tmp_path):
    with FaissStore.open(tmp_path / "m.db") as store:
        game.keep_in(store)
        await game.begin()
        wish = {"text": "The player fears the silver heron.", "kind": "preference", "about": "player"}
        told = {"text": "The silver heron sleeps in the tower.", "subject": "silver heron", "kind": "trait"}
        await play(game, "I look. ((the silver heron scares me))", told, wish, home("the mill"), reply=told["text"])
        forgetting = forgetting_of(game.app, game.config, CONTEXT)
        found = await forgetting.find("silver heron")
        assert {told["text"], wish["text"]} <= {record["text"] for record in found.records}
        with pytest.raises(ForgettingError, match="InMemorySaver"):
            await forgetting.forget("silver heron")
        assert "heron" not in str([item.value for item in store.search((), limit=1000)])
        texts = {value["text"] for value in (await stored(game)).values()}
        assert texts == {"Goran lives at the mill.", "The [forgotten] sleeps in the tower."}
