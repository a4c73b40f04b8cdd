"""Threads of one campaign: each can go where another has been, and leaves that one as it was."""

import uuid

import pytest
from page_play import turn
from program import sit_down, start
from scripted import say
from threads import MIRA, checkpoints, history, play_in_studio, told, two_threads

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.graph import build_graph
from questbook.graphs.errors import HistoryError, InputError
from questbook.graphs.history.history import History
from questbook.graphs.local.game import open_game
from questbook.graphs.local.homes import find_home
from questbook.graphs.local.saved_game import list_campaigns, thread_id_of
from questbook.memory.store.any_store import items_under


@pytest.fixture
async def two(game):
    return await two_threads(game)


async def test_a_thread_goes_to_the_end_of_what_another_has_played(two):
    first, other = two
    before = checkpoints(other)
    state = await history(first).go("main")
    assert state.values["turn"] == first.values["turn"] == 5
    assert first.values["quest"] == other.values["quest"]
    assert told(first) == told(other)
    await turn(first, "I sing", gold=60)
    await turn(other, "I weep", gold=61)
    assert first.values["timeline"] != other.values["timeline"]
    assert len({told(first)[-1], told(other)[-1]}) == 2
    assert checkpoints(other)[-len(before) :] == before


async def test_what_is_copied_from_another_thread_says_whose_it_is_and_what_the_caller_says_of_it(two):
    first, _ = two
    config = {**first.config, "metadata": {"tenant": "inn"}}
    await History(first.app, config, Context.of(first.settings)).go("main")
    said = first.app.get_state(first.config).metadata
    assert [said["tenant"], said["user"], said["campaign"], said["source"]] == ["inn", "adventurer", "default", "fork"]


async def test_undo_goes_back_to_turns_that_another_thread_played(two):
    first, other = two
    before = checkpoints(first)
    await history(other).undo(3)
    assert other.values["turn"] == 2
    assert other.values["quest"]["gold"] == 2
    assert told(other)[-1] == "Deed 2"
    await history(other).undo()
    assert other.values["turn"] == 1
    await turn(other, "Another road", gold=77)
    assert "Deed" not in str(other.model.asked("quest")[-1])
    assert checkpoints(first) == before
    assert first.values["quest"]["gold"] == 3
    with pytest.raises(HistoryError, match="no turn 3"):
        await history(other).go("3")


async def test_the_turn_that_one_has_come_to_can_be_told_again_and_rewritten_here(two):
    first, other = two
    await history(first).go("main")
    before = checkpoints(other)
    config, context = await history(first).retry()
    assert config["configurable"]["thread_id"] == first.config["configurable"]["thread_id"]
    first.model.queue("quest", say("Told anew."))
    await first.app.ainvoke(None, config, context=context, durability="sync")
    assert first.reply == "Told anew."
    assert told(first)[-1] == "Deed 5"
    await history(first).go("5")
    config, message = await history(first).last_message()
    assert message == "Deed 5"
    first.model.queue("quest", say("A wiser deed."))
    await first.app.ainvoke({"messages": [("user", "Deed 5, wiser")]}, config, context=context, durability="sync")
    assert [first.values["turn"], first.reply, told(first)[-1]] == [5, "A wiser deed.", "Deed 5, wiser"]
    assert "Deed 5" not in told(first)[:-1]
    assert checkpoints(other) == before
    assert told(other)[-1] == "Deed 5"


async def test_places_on_two_threads_are_compared(two):
    first, _ = two
    found = await history(first).difference("main")
    assert {place.turn for place in found.only_before} == {4, 5}
    assert not found.only_after
    assert "gold" in str(found.pages).lower()


async def test_what_a_deleted_thread_played_is_told_to_be_gone_and_nothing_moves(two):
    first, other = two
    first.saver.delete_thread(other.config["configurable"]["thread_id"])
    before = checkpoints(first)
    with pytest.raises(HistoryError, match=r"which thread .* wrote, are gone"):
        await history(first).go("main")
    assert checkpoints(first) == before
    assert first.values["turn"] == 3


async def test_after_a_copy_whose_thread_was_deleted_one_goes_back_as_far_as_there_is_something(two):
    first, other = two
    await history(first).go("main")
    first.saver.delete_thread(other.config["configurable"]["thread_id"])
    with pytest.raises(HistoryError, match="turn 4"):
        await history(first).undo()
    await history(first).undo(2)
    assert first.values["turn"] == 3


@pytest.mark.slow
async def test_a_campaign_that_was_only_played_in_studio_is_listed_and_opened_where_it_was_left(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTBOOK_HOME", str(tmp_path))
    thread = str(uuid.uuid4())
    left = await play_in_studio([MIRA, "look around", "My ring is called Glimmer."], thread)
    async with open_game(Context.of(None, model="offline", campaign="isle")) as game:
        [saved] = await list_campaigns(game.checkpointer, "adventurer")
        assert (saved.campaign, saved.turn, saved.thread_id) == ("isle", 3, thread)
    opened = sit_down(
        tmp_path, "/quest\n/branches\n/why scene\nWhat is my ring called?\n/undo 3\n", "--campaign", "isle"
    )
    assert opened.startswith("**Previously on…**")
    assert "● you are here" in opened
    assert "on thread" in opened
    assert "Glimmer" in opened
    assert "Back at the end of turn 1." in opened
    async with open_game(Context.of(None, model="offline", campaign="isle")) as game:
        [saved] = await list_campaigns(game.checkpointer, "adventurer")
        assert saved.thread_id == thread_id_of("adventurer", "isle")
        graph = await game.load()
        there = await graph.aget_state({"configurable": {"thread_id": thread}})
        assert there.values["timeline"] == left["timeline"]


async def test_rewind_knows_what_was_only_played_in_studio(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTBOOK_HOME", str(tmp_path))
    await play_in_studio([MIRA, "look around"], str(uuid.uuid4()))
    rewound = start(tmp_path, "rewind", "--to", "1", "--campaign", "isle")
    assert rewound.stdout.decode().startswith("Back at the end of turn 1. “I'm Mira,")


async def test_where_the_checkpoints_are_elsewhere_the_first_message_still_goes_on_from_the_head(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTBOOK_HOME", str(tmp_path))
    thread = str(uuid.uuid4())
    await play_in_studio([MIRA, "look around"], thread)
    async with find_home().open_checkpointer() as saver:
        await saver.adelete_thread(thread)
    async with open_game(Context.of(None, model="offline", campaign="isle")) as game:
        assert not await game.enter()
        assert await game.saved_game() is None
        async for _ in game.send("look around"):
            pass
        saved = await game.saved_game()
        assert (saved.turn, saved.character.name) == (3, "Mira")


async def test_a_run_from_a_checkpoint_that_is_not_there_takes_no_thread_out_of_its_campaign(home):
    async with home.open_checkpointer() as saver, home.open_store() as store:
        graph = build_graph().compile(checkpointer=saver, store=store)
        where = {"thread_id": str(uuid.uuid4())}
        for words in ("new game", MIRA):
            given = {"messages": [{"role": "user", "content": words}]}
            await graph.ainvoke(given, {"configurable": where}, context={"model": "offline", "seed": 1})
        campaign = (await graph.aget_state({"configurable": where})).values["campaign"]
        assert campaign[1] != "default"
        gone = {"configurable": where | {"checkpoint_id": str(uuid.uuid4())}}
        with pytest.raises(InputError, match="This thread belongs to campaign 'game "):
            await graph.ainvoke({"messages": [{"role": "user", "content": "I look around."}]}, gone)
        assert [item.value async for item in items_under(store, ("adventurer", "default"))] == []
