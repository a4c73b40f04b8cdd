"""Rewinding and forking a game: the checkpoint alone decides what is remembered."""

from langchain_core.messages import HumanMessage
from scripted import say

from graphs.dungeon_master.recall import memories_for
from memory.namespaces import campaign_namespace
from memory.timeline import visible

EXCHANGES = campaign_namespace("adventurer", "default", "exchanges")


async def seen(game, config=None):
    """What the checkpoint may see, as (turn, reply)."""
    state = game.app.get_state(config or game.config).values
    found = [
        (item.value["turn"], item.value["reply"])
        for segment in visible([tuple(part) for part in state["timeline"]])
        for item in await game.store.asearch(EXCHANGES, filter=segment, limit=100)
    ]
    return sorted(found)


async def turn(game, words, reply, config=None):
    game.model.queue("quest", say(reply))
    await game.app.ainvoke(
        {"messages": [HumanMessage(words)]} if words else None, config or game.config, context=game.settings
    )
    return game.app.get_state(game.config).config


async def test_a_rewound_game_does_not_know_the_abandoned_future(game):
    await game.begin()
    two = await turn(game, "I go in", "You are inside.")
    died = await turn(game, "I fight", "You die.")
    await turn(game, "ghostly wails", "Nobody hears.")
    lived = await turn(game, "I flee", "You live.", two)
    await turn(game, "I rest", "You sleep.")
    assert [reply for _, reply in await seen(game)][1:] == ["You are inside.", "You live.", "You sleep."]
    assert [reply for _, reply in await seen(game, died)][1:] == ["You are inside.", "You die."]
    assert [reply for _, reply in await seen(game, lived)][1:] == ["You are inside.", "You live."]
    again = await turn(game, "I curse", "The dead curse.", died)
    assert [reply for _, reply in await seen(game, again)][1:] == ["You are inside.", "You die.", "The dead curse."]
    assert len(await game.store.asearch(EXCHANGES, limit=100)) == 7, "each future keeps its own"


async def test_a_reply_told_again_from_the_middle_of_a_turn_is_another_future(game):
    await game.begin()
    first = await turn(game, "I knock", "Nobody answers.")
    middle = next(s for s in game.app.get_state_history(game.config) if s.next == ("run_quest",))
    second = await turn(game, None, "A dog barks.", middle.config)
    assert (2, "Nobody answers.") in await seen(game, first)
    assert (2, "A dog barks.") in await seen(game, second)
    assert (2, "Nobody answers.") not in await seen(game, second)
    assert len(await seen(game, second)) == 2


async def test_an_edited_message_is_another_future(game):
    await game.begin()
    first = await turn(game, "I knock", "Nobody answers.")
    before = next(s for s in game.app.get_state_history(game.config) if s.next == ("recall",))
    edited = await game.app.aupdate_state(
        before.config, {"messages": [HumanMessage("I sing", id=before.values["messages"][-1].id)]}, as_node="__start__"
    )
    second = await turn(game, None, "A dog howls.", edited)
    assert [reply for _, reply in await seen(game, first)][1:] == ["Nobody answers."]
    assert [reply for _, reply in await seen(game, second)][1:] == ["A dog howls."]


async def test_running_the_remembering_node_again_writes_nothing_new(game):
    await game.begin()
    await turn(game, "I knock", "Nobody answers.")
    before = next(s for s in game.app.get_state_history(game.config) if s.next == ("remember",))
    for _ in range(3):
        await game.app.ainvoke(None, before.config, context=game.settings)
    assert len(await game.store.asearch(EXCHANGES, limit=100)) == 2
    assert len(game.app.get_state(game.config).values["timeline"]) == 1


async def test_the_same_checkpoint_recalls_the_same_whatever_happened_since(new_game):
    game = new_game(buffer_tokens=200)
    await game.begin()
    for number in range(8):
        await turn(game, f"I ask for heron {number}", f"Heron {number} sings. " + "La. " * 40)
    here = game.app.get_state(game.config)

    async def recalled():
        from types import SimpleNamespace

        from graphs.dungeon_master.context import Context
        from graphs.dungeon_master.state import DungeonState

        runtime = SimpleNamespace(store=game.store, context=Context.of(game.settings))
        state = DungeonState.model_validate(here.values)
        return [(memory["turn"], memory["reply"]) for memory in await memories_for(state, runtime)]

    first = await recalled()
    assert first
    for number in range(8):
        await turn(game, f"heron heron heron {number}", f"Heron heron {number}. " + "Heron. " * 40)
    assert await recalled() == first
