"""The machine as a whole: modes, memory, dice, failures, both ways of calling it."""

import asyncio
import json
import uuid

import pytest
from conftest import MIRA
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from scripted import call, say

from graphs.dungeon_master.context import Context
from graphs.dungeon_master.graph import build_graph, graph
from graphs.errors import ModelError, PastUnknownError, SettingsError
from memory.namespaces import campaign_namespace
from notebooks import CharacterNotebook, PatchError

EXCHANGES = campaign_namespace("adventurer", "default", "exchanges")


def test_the_picture_is_the_design():
    nodes = {"build_character", "recall", "run_quest", "roll_dice", "update_state", "remember", "reflect", "condense"}
    drawn = graph.get_graph()
    assert set(drawn.nodes) == nodes | {"__start__", "__end__"}
    edges = {(edge.source, edge.target) for edge in drawn.edges}
    assert edges == {
        ("__start__", "build_character"),
        ("__start__", "recall"),
        ("build_character", "recall"),
        ("build_character", "__end__"),
        ("recall", "run_quest"),
        ("run_quest", "roll_dice"),
        ("roll_dice", "run_quest"),
        ("run_quest", "update_state"),
        ("update_state", "remember"),
        ("remember", "reflect"),
        ("reflect", "condense"),
        ("reflect", "__end__"),
        ("remember", "condense"),
        ("remember", "__end__"),
        ("condense", "__end__"),
    }
    assert graph.checkpointer is None
    assert graph.store is None


async def test_interview_then_quest_in_the_same_turn(game):
    game.model.queue("interview", say("A halfling! And what do you do?", call("CharacterNotebook", name="Mira")))
    await game.play("I'm Mira")
    assert game.values["character"]["name"] == "Mira"
    assert not game.model.asked("quest")
    rest = {key: value for key, value in MIRA.items() if key != "name"}
    game.model.queue("interview", say("", call("CharacterNotebook", **rest)))
    game.model.queue("quest", say("The docks are dark. What do you do?"))
    await game.play("a rogue of the docks")
    assert game.reply == "The docks are dark. What do you do?"
    assert game.values["turn"] == 2
    assert game.values["noted_through"] == 2
    assert len(game.model.asked("interview")) == 2
    assert len(game.model.asked("quest")) == 1
    assert len(game.model.asked("update")) == 1


async def test_a_complete_character_is_filled_by_the_rules(game):
    game.model.queue(
        "interview", say("", call("CharacterNotebook", **MIRA, abilities={"charisma": 15}, kit={"lute": 1}))
    )
    await game.play("I'm Mira")
    character, quest = game.values["character"], game.values["quest"]
    abilities = character["abilities"]
    assert abilities["charisma"] == 15, "what the player chose stays"
    assert abilities["dexterity"] == 14 + 2, "the best that is left of the array, and the halfling's bonus"
    assert character["hit_points"] == 8 + (abilities["constitution"] - 10) // 2
    assert quest["condition"] == {"hp": character["hit_points"], "max_hp": character["hit_points"], "conditions": {}}
    assert quest["inventory"] == character["kit"] == {"lute": 1}
    assert quest["gold"] > 0


async def test_a_page_completed_by_hand_opens_the_quest_too(game):
    await game.play("hello")
    await game.app.aupdate_state(game.config, {"character": MIRA})
    await game.play("I step into the light")
    assert not game.model.asked("interview")[1:]
    assert game.reply.startswith("The wind")
    assert game.values["character"]["hit_points"] == game.values["quest"]["condition"]["hp"] > 0


async def test_who_has_entered_does_not_enter_again(game):
    await game.begin()
    game.model.queue(
        "update", say("", call("StateNotebook", gold=500, condition={"hp": 2}, inventory={"dagger": None}))
    )
    await game.play("I fight")
    before = game.values["quest"]
    await game.app.aupdate_state(game.config, {"character": {"hit_points": None}})
    await game.play("I rest")
    assert game.values["character"]["hit_points"] == before["condition"]["max_hp"]
    await game.app.aupdate_state(game.config, {"character": {"goal": None}})
    game.model.queue("interview", say("", call("CharacterNotebook", goal="revenge")))
    await game.play("revenge")
    assert game.values["quest"] == before
    assert game.values["character"]["goal"] == "revenge"
    await game.app.aupdate_state(game.config, {"character": {"hit_points": 40}})
    await game.play("I train")
    assert game.values["quest"]["condition"] == before["condition"] | {"max_hp": 40}


async def test_a_page_completed_by_hand_keeps_what_was_written(game):
    await game.play("hello")
    await game.app.aupdate_state(game.config, {"character": MIRA | {"hit_points": 12, "kit": {"lute": 1}}})
    await game.play("I step into the light")
    assert game.values["quest"]["condition"] == {"hp": 12, "max_hp": 12, "conditions": {}}
    assert game.values["quest"]["inventory"] == {"lute": 1}


async def test_a_character_as_long_as_the_page_allows_can_enter(game):
    page = {**MIRA, "kit": {}}
    while len(CharacterNotebook.load(page).render()) < CharacterNotebook.LIMIT - 40:
        page["kit"][f"item {len(page['kit'])} of the long list"] = 1
    game.model.queue("interview", say("", call("CharacterNotebook", **page)))
    await game.play("I'm Mira, and I carry much")
    assert game.values["character"]["hit_points"]
    assert len(game.values["quest"]["inventory"]) == len(page["kit"])
    assert game.reply.startswith("The wind")


async def test_the_reply_is_what_a_turn_ends_with_in_the_interview_too(game):
    game.model.queue("interview", say("And your people?", call("CharacterNotebook", name="Bob")))
    await game.play("My name is Bob")
    assert game.reply == "And your people?"
    assert [m.type for m in game.values["messages"]] == ["human", "ai", "tool", "ai"]


async def test_what_is_secret_shows_in_no_notice(game):
    await game.begin()
    bad = say("", call("StateNotebook", secrets={"Maren": ["is the traitor"]}, gold="much"))
    game.model.queue("update", bad, bad)
    await game.play("I look")
    told = game.values["notices"][-1]["text"]
    assert "traitor" not in told
    assert "gold: got 'much'" in told
    assert "A secret did not fit." in told
    assert "traitor" in game.model.asked("update")[-1][-1].text, "the model is told all of it"


async def test_a_call_that_was_never_answered_does_not_stay_in_the_prompt(game):
    await game.begin()
    game.model.queue("quest", say("You hold your breath.", call("roll_dice", expression="1d20", reason="x")))
    stop = {"interrupt_before": ["roll_dice"]}
    await game.app.ainvoke({"messages": [HumanMessage("I sneak")]}, game.config, context=game.settings, **stop)
    assert game.next == ("roll_dice",)
    await game.play("No, I wait")
    prompt = game.model.asked("quest")[-1]
    assert "You hold your breath." in [m.text for m in prompt]
    assert not any(c["name"] == "roll_dice" for m in prompt if isinstance(m, AIMessage) for c in m.tool_calls)


@pytest.mark.parametrize(
    "edit",
    [
        {"quest": {"__overwrite__": {"gold": "x"}}},
        {"turn": "x"},
        {"summary": None},
        {"timeline": "x"},
        {"rolls": [1]},
        {"character": {"__overwrite__": 3}},
    ],
    ids=str,
)
@pytest.mark.parametrize("node", ["condense", "remember"])
async def test_an_edit_that_could_not_be_read_again_is_refused(game, edit, node):
    await game.begin()
    before = game.checkpointed
    with pytest.raises((ValueError, TypeError)):
        await game.app.aupdate_state(game.config, edit, as_node=node)
    assert game.checkpointed == before
    await game.play("I go on")
    assert game.values["turn"] == 2


async def test_one_call_before_the_reply_and_one_after(game):
    await game.begin()
    before = len(game.model.calls)
    await game.play("I look around")
    assert [job for job, _ in game.model.calls[before:]] == ["quest", "update"]


async def test_dice_are_rolled_by_the_engine_and_stand_in_state_before_they_are_told(game):
    await game.begin()
    asked = call("roll_dice", expression="1d20+3", reason="Stealth", dc=10)

    def tell(messages):
        rolled = json.loads(messages[-1].text)
        assert rolled["total"] == rolled["dice"][0]["values"][0][0] + 3
        return say(f"You rolled {rolled['total']}.")

    game.model.queue("quest", say("You hold your breath.", asked), tell)
    seen = []
    stream = game.app.astream(
        {"messages": [HumanMessage("I sneak")]}, game.config, context=game.settings, stream_mode="updates"
    )
    async for update in stream:
        seen += list(update)
    assert seen == ["recall", "run_quest", "roll_dice", "run_quest", "update_state", "remember"]
    [roll] = game.values["rolls"]
    assert roll["turn"] == 2
    assert roll["success"] == (roll["total"] >= 10)
    assert game.reply == f"You rolled {roll['total']}."
    assert '"rolls"' in game.model.asked("update")[-1][-1].text


async def test_bad_rolls_are_answered_with_what_is_wrong(game):
    await game.begin()
    game.model.queue(
        "quest",
        say(
            "",
            call("roll_dice", expression="1d20+3", reason="fine"),
            call("roll_dice", expression="9999d20", reason="too many"),
            call("roll_dice", reason="no expression"),
            call("roll_dice", expression="1d20", reason="luck", dc="high"),
            call("roll_dice", expression="2d6", reason="odd", advantage="advantage"),
            call("cast_fireball"),
        ),
        say("Done."),
    )
    await game.play("I do many things")
    results = [m for m in game.values["messages"] if isinstance(m, ToolMessage)][-6:]
    assert [m.status for m in results] == ["success", *["error"] * 5]
    assert "9999d20" in results[1].text
    assert "expression" in results[2].text
    assert "dc" in results[3].text
    assert "cast_fireball" in results[5].text
    assert len(game.values["rolls"]) == 1
    assert game.reply == "Done."


async def test_a_model_that_only_rolls_is_stopped(new_game):
    game = new_game(max_roll_rounds=2)
    await game.begin()
    game.model.queue("quest", *[say("", call("roll_dice", expression="1d6", reason="again")) for _ in range(3)])
    with pytest.raises(ModelError, match="keeps calling tools"):
        await game.play("I roll")
    assert len(game.values["rolls"]) == 2
    game.model.queue("quest", say("Enough."))
    await game.play(None)
    assert game.reply == "Enough."


async def test_a_model_that_keeps_calling_what_is_not_there_is_stopped(new_game):
    game = new_game(max_roll_rounds=3)
    await game.begin()
    game.model._stock["quest"] = say("", call("look_around"))
    with pytest.raises(ModelError, match="keeps calling tools"):
        await game.play("I look")
    assert len(game.model.asked("quest")) == 1 + 4


async def test_a_hundred_rolls_at_once_are_too_many(game):
    await game.begin()
    many = [call("roll_dice", expression="1d1000", reason="x") for _ in range(25)]
    game.model.queue("quest", say("", *many), say("", *many), say("Well."))
    await game.play("roll")
    totals = [roll["total"] for roll in game.values["rolls"]]
    assert len(totals) == 20
    assert len(set(totals)) > 17, "later rolls of a turn do not repeat the first"


async def test_seeded_dice_are_repeatable_and_unseeded_ones_are_not(new_game):
    async def totals(seed):
        game = new_game(seed=seed)
        game.config = {"configurable": {"thread_id": "same"}}
        await game.begin()
        game.model.queue("quest", say("", *[call("roll_dice", expression="10d100", reason="x") for _ in range(3)]))
        await game.play("roll")
        return [roll["total"] for roll in game.values["rolls"]]

    first = await totals(7)
    assert len(set(first)) == 3
    assert await totals(7) == first
    assert await totals(8) != first
    assert await totals(None) != await totals(None)


async def test_recall_finds_what_left_the_buffer_and_leaves_out_what_still_stands_in_it(new_game):
    game = new_game(buffer_tokens=400)
    await game.begin()
    game.model.queue("quest", say("Goran whispers: the password is swordfish."))
    await game.play("I ask Goran for the password")
    for number in range(12):
        game.model.queue("quest", say(f"Mile {number}. " + "The road goes on and on. " * 8))
        await game.play(f"I walk mile {number}")
    first_kept = game.values["turn"] - sum(isinstance(m, HumanMessage) for m in game.values["messages"]) + 1
    assert first_kept > 3
    await game.play("What was the password that Goran whispered?")
    prompt = game.model.asked("quest")[-1][0].text
    memories = prompt.split("\n<memories>\n")[1]
    assert "swordfish" in memories
    recalled = [json.loads(line) for line in memories.split("</memories>")[0].strip().splitlines()]
    assert all(memory["turn"] < first_kept for memory in recalled)
    assert [memory["turn"] for memory in recalled] == sorted(memory["turn"] for memory in recalled)
    assert {"turn", "age", "player", "reply"} <= set(recalled[0])
    assert "recalled" not in game.values, "what was recalled is for its turn only"


async def test_recall_keeps_to_its_budget(new_game):
    game = new_game(buffer_tokens=300, recall_tokens=150)
    await game.begin()
    for number in range(15):
        game.model.queue("quest", say(f"The heron of stone {number} looks at you. " + "It is old. " * 12))
        await game.play(f"I look at the heron {number}")
    prompt = game.model.asked("quest")[-1][0].text
    memories = prompt.split("\n<memories>\n")[1].split("</memories>")[0]
    assert 0 < len(memories) / 4 <= 150 * 1.1
    game.settings["recall_tokens"] = 0
    await game.play("heron")
    assert "\n<memories>\n" not in game.model.asked("quest")[-1][0].text


async def test_each_exchange_is_one_record_that_says_where_it_comes_from(game):
    await game.begin()
    await game.play("I look around")
    items = await game.store.asearch(EXCHANGES)
    assert sorted(item.value["turn"] for item in items) == [1, 2]
    [second] = [item for item in items if item.value["turn"] == 2]
    assert second.value["player"] == "I look around"
    assert second.value["reply"] == "The wind turns. What do you do?"
    assert second.value["thread"] == game.config["configurable"]["thread_id"]
    assert second.value["branch"] == game.values["timeline"][-1][0]
    assert second.key.startswith(second.value["branch"])


async def test_campaigns_and_users_do_not_see_each_other(new_game, model):
    first = new_game(buffer_tokens=200, user="a.b@c.d", campaign="../x")
    await first.begin()
    for number in range(6):
        model.queue("quest", say("The heron sings of swordfish. " * 12))
        await first.play(f"step {number}")
    other = new_game(buffer_tokens=200, user="a.b@c.d", campaign="")
    other.store = first.store
    other.app = build_graph().compile(checkpointer=other.saver, store=first.store)
    await other.begin()
    for number in range(6):
        model.queue("quest", say("Nothing but sand here. " * 12))
        await other.play(f"step {number}")
    await other.play("heron swordfish")
    assert "swordfish" not in model.asked("quest")[-1][0].text.split("\n<memories>\n")[1]


async def test_turns_are_folded_into_the_summary_when_the_buffer_is_full(new_game):
    game = new_game(buffer_tokens=400)
    await game.begin()
    for number in range(10):
        game.model.queue("quest", say(f"Mile {number}. " + "The road goes on and on. " * 8))
        await game.play(f"I walk mile {number}")
    asked = game.model.asked("condense")
    assert asked
    assert '"player": "I walk mile 0"' in "".join(messages[-1].text for messages in asked)
    assert game.values["summary"] == "They walked on."
    assert isinstance(game.values["messages"][0], HumanMessage)
    assert "They walked on." in game.model.asked("quest")[-1][0].text


async def test_if_the_summary_fails_sentences_stand_in_and_a_notice_says_so(new_game):
    game = new_game(buffer_tokens=400)
    game.model.queue("condense", RuntimeError("503"))
    await game.begin()
    for number in range(6):
        game.model.queue("quest", say(f"Mile {number} is long. " + "The road goes on and on. " * 10))
        await game.play(f"I walk mile {number}.")
    assert any(entry["node"] == "condense" for entry in game.values["notices"])
    assert "I walk mile 0." in "".join(m[0].text for m in game.model.asked("condense")[1:]) or (
        "I walk mile 0." in game.values["summary"]
    )


async def test_nothing_leaves_the_buffer_before_it_is_remembered(new_game):
    class Broken(InMemoryStore):
        broken = False

        async def abatch(self, ops):
            if self.broken:
                raise OSError("disk full")
            return await super().abatch(ops)

    game = new_game(buffer_tokens=300, recall_tokens=0)
    game.store = Broken()
    game.app = build_graph().compile(checkpointer=game.saver, store=game.store)
    await game.begin()
    game.store.broken = True
    for number in range(8):
        game.model.queue("quest", say(f"Mile {number}. " + "The road goes on. " * 12))
        await game.play(f"I walk mile {number}")
    assert sum(isinstance(m, HumanMessage) for m in game.values["messages"]) == 8, "all that was not written stays"
    assert game.values["remembered_through"] == 1
    assert "disk full" in game.values["notices"][-1]["text"]
    game.store.broken = False
    await game.play("I rest")
    assert game.values["remembered_through"] == 10
    assert len(await game.store.asearch(EXCHANGES, limit=50)) == 10
    assert sum(isinstance(m, HumanMessage) for m in game.values["messages"]) < 6


async def test_a_store_that_cannot_be_searched_costs_the_memories_not_the_reply(new_game):
    class Blind(InMemoryStore):
        blind = False

        async def abatch(self, ops):
            ops = list(ops)
            if self.blind and any(getattr(op, "query", None) for op in ops):
                raise OSError("index is gone")
            return await super().abatch(ops)

    game = new_game(buffer_tokens=300)
    game.store = Blind()
    game.app = build_graph().compile(checkpointer=game.saver, store=game.store)
    await game.begin()
    for number in range(8):
        game.model.queue("quest", say(f"Mile {number}. " + "The road goes on. " * 12))
        await game.play(f"I walk mile {number}")
    game.store.blind = True
    await game.play("I rest")
    assert game.reply.startswith("The wind turns")
    assert "index is gone" in game.values["notices"][-1]["text"]


async def test_a_new_thread_does_not_begin_anew_because_the_store_is_down(game):
    class Down(InMemoryStore):
        async def abatch(self, ops):
            raise OSError("no connection")

    game.app = build_graph().compile(checkpointer=game.saver, store=Down())
    with pytest.raises(PastUnknownError, match="no connection"):
        await game.play("hello")
    assert game.values["messages"][-1].text == "hello"


async def test_a_failed_reply_keeps_the_message_and_is_taken_up_again(game):
    await game.begin()
    game.model.queue("quest", ConnectionError("cut"))
    with pytest.raises(ModelError):
        await game.play("I open the chest")
    assert game.next == ("run_quest",)
    assert game.values["messages"][-1].text == "I open the chest"
    game.model.queue("quest", say("It is full of herons."))
    await game.play(None)
    assert game.reply == "It is full of herons."
    assert game.values["turn"] == 2
    assert len(await game.store.asearch(EXCHANGES)) == 2


async def test_what_was_recalled_is_found_again_when_a_turn_is_resumed(new_game):
    game = new_game(buffer_tokens=300)
    await game.begin()
    for number in range(10):
        game.model.queue("quest", say(f"The heron {number} sings. " + "La la la. " * 20))
        await game.play(f"I listen to heron {number}")
    game.model.queue("quest", ConnectionError("cut"))
    with pytest.raises(ModelError):
        await game.play("What did heron 1 sing?")
    await game.play(None)
    assert "\n<memories>\n" in game.model.asked("quest")[-1][0].text


async def test_a_turn_left_open_is_joined_by_the_next_message(game):
    await game.begin()
    game.model.queue("quest", ConnectionError("cut"))
    with pytest.raises(ModelError):
        await game.play("I open the chest")
    await game.play("I open it slowly")
    assert game.reply.startswith("The wind turns")
    records = {item.value["turn"]: item.value["player"] for item in await game.store.asearch(EXCHANGES)}
    assert set(records) == {1, 2}
    assert records[2] == "I open the chest\nI open it slowly"
    assert game.values["turn"] == 2


async def test_a_page_may_be_edited_by_a_person_and_is_checked(game):
    await game.begin()
    await game.app.aupdate_state(game.config, {"quest": {"inventory": {"silver key": 1}}})
    await game.play("I look in my bag")
    assert "silver key" in game.model.asked("quest")[-1][0].text
    with pytest.raises(PatchError, match=r"gold: got 'much'"):
        await game.app.aupdate_state(game.config, {"quest": {"gold": "much"}})
    assert game.values["quest"]["inventory"]["silver key"] == 1
    await game.app.aupdate_state(game.config, {"character": {"goal": None}})
    game.model.queue("interview", say("What do you want now?"))
    await game.play("I have changed")
    assert game.reply == "What do you want now?", "without a goal the interview goes on"


async def test_state_holds_json_and_survives_strict_msgpack(game, monkeypatch):
    await game.begin()
    saved = game.saver.get(game.config)["channel_values"]
    for name in ("character", "quest", "timeline", "rolls", "notices", "turn", "summary", "noted_through"):
        if name in saved:
            assert json.loads(json.dumps(saved[name])) == saved[name]


async def test_control_characters_and_lone_surrogates_are_dropped(game):
    await game.begin()
    await game.play("I say\x00 \x1b[31mhi\ud800 there\x7f ☃")
    player = [m for m in game.values["messages"] if isinstance(m, HumanMessage)][-1]
    assert player.text == "I say [31mhi there ☃"
    assert len(await game.store.asearch(EXCHANGES)) == 2


async def test_without_a_store_the_game_goes_on_and_says_so(model):
    app = build_graph().compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "x"}}
    model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
    out = await app.ainvoke({"messages": [HumanMessage("hi")]}, config, context={"model": "scripted"})
    assert out["messages"][-1].text.startswith("The wind")
    assert "No store" in out["notices"][0]["text"]


async def test_without_checkpointer_store_or_context(model):
    out = await build_graph().compile().ainvoke({"messages": [{"role": "user", "content": "hi"}]})
    assert out["messages"][-1].text == "And what else?"


def test_the_sync_api_works(model):
    app = build_graph().compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    config = {"configurable": {"thread_id": "x"}}
    model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
    out = app.invoke({"messages": [HumanMessage("hi")]}, config, context=Context(model="scripted"))
    assert out["messages"][-1].text.startswith("The wind")
    model.queue("quest", say("", call("roll_dice", expression="1d6", reason="x")), say("Six words of it are streamed."))
    stream = app.stream(
        {"messages": [HumanMessage("go")]}, config, context=Context(model="scripted"), stream_mode="messages"
    )
    tokens = [m.text for m, meta in stream if isinstance(m, AIMessage) and meta["langgraph_node"] == "run_quest"]
    assert "".join(tokens) == "Six words of it are streamed."
    assert len(tokens) >= 6
    assert [item.value["turn"] for item in app.store.search(EXCHANGES)] in ([1, 2], [2, 1])


async def test_the_sync_api_works_inside_a_running_loop(model):
    out = build_graph().compile().invoke({"messages": [HumanMessage("hi")]}, context={"model": "scripted"})
    assert out["messages"][-1].text == "And what else?"


def test_a_sync_failure_reaches_the_caller(model):
    model.queue("interview", ConnectionError("cut"))
    with pytest.raises(ModelError):
        build_graph().compile().invoke({"messages": [HumanMessage("hi")]}, context={"model": "scripted"})


async def test_only_the_reply_is_streamed_never_the_notes(game):
    await game.begin()
    game.model.queue("quest", say("One two three."))
    game.model.queue("update", say("secret notes about the mayor", call("StateNotebook", secrets={"mayor": "thief"})))
    heard, prompts = [], []
    stream = game.app.astream(
        {"messages": [HumanMessage("go")]}, game.config, context=game.settings, stream_mode=["messages", "custom"]
    )
    async for mode, event in stream:
        if mode == "messages" and isinstance(event[0], AIMessage):
            heard.append((event[1]["langgraph_node"], event[0].text))
        elif mode == "custom":
            prompts.append(event)
    assert "".join(text for node, text in heard if node == "run_quest") == "One two three."
    assert not any("mayor" in text for _, text in heard)
    [prompt] = prompts
    sections = {part["section"]: part for part in prompt["prompt"]}
    assert list(sections) == ["instructions", "character", "quest", "messages"]
    assert all(part["tokens"] > 0 for part in sections.values())


def test_settings_come_from_arguments_then_the_environment_then_defaults(monkeypatch):
    assert Context.of().model == "offline"
    monkeypatch.setenv("QUESTBOOK_MODEL", "openai:gpt-x")
    monkeypatch.setenv("QUESTBOOK_BUFFER_TOKENS", "1234")
    assert Context.of().model == "openai:gpt-x"
    assert Context.of(None, model="ollama:y", seed=None).model == "ollama:y"
    assert Context.of({"model": "z"}).buffer_tokens == 1234
    assert Context.of(Context(model="q")).model == "q"
    monkeypatch.setenv("QUESTBOOK_BUFFER_TOKENS", "many")
    monkeypatch.delenv("QUESTBOOK_BUFFER_TOKENS")
    with pytest.raises(SettingsError, match="no setting 'campain'"):
        Context.of({"campain": "x"})
    for wrong in ("str", 5, [1]):
        with pytest.raises(SettingsError, match="expected an object"):
            Context.of(wrong)
    monkeypatch.setenv("QUESTBOOK_BUFFER_TOKENS", "many")
    with pytest.raises(SettingsError, match=r"buffer_tokens \(QUESTBOOK_BUFFER_TOKENS\): got 'many'"):
        Context.of()


def test_every_setting_is_described_for_studio():
    schema = graph.get_context_jsonschema()
    assert set(schema["properties"]) == set(Context.model_fields)
    assert all(field.get("description") for field in schema["properties"].values())


async def test_a_parent_graphs_context_of_another_class_is_read_by_its_attributes(model):
    from types import SimpleNamespace

    given = SimpleNamespace(campaign="theirs", model="scripted", unrelated=3)
    assert Context.of(given).campaign == "theirs"


async def test_many_games_at_once_do_not_mix(new_game, model):
    async def one(number):
        game = new_game(campaign=f"c{number}")
        model_reply = await game.play(f"hello {number}")
        return [m.text for m in model_reply["messages"] if isinstance(m, HumanMessage)]

    heard = await asyncio.gather(*(one(number) for number in range(20)))
    assert heard == [[f"hello {number}"] for number in range(20)]


async def test_removing_a_message_by_hand_works(game):
    await game.begin()
    last = game.values["messages"][-1]
    await game.app.aupdate_state(game.config, {"messages": [RemoveMessage(last.id)]})
    assert last.id not in [m.id for m in game.values["messages"]]
    assert uuid.UUID(game.config["configurable"]["thread_id"])
