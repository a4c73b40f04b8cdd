"""Copies from thread to thread: what was gone to can be taken back, told again, edited, retracted and forgotten."""

import uuid

import pytest
from conftest import EXCHANGES
from desk import CustomerNotebook, Desk, TicketNotebook, note
from page_play import turn
from program import questbook, sit_down
from scripted import say
from threads import MIRA, beside, history, play_in_studio, run, told, two_threads

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.graph import build_graph
from questbook.graphs.dungeon_master.retract import retract
from questbook.graphs.history.history import History
from questbook.graphs.local.game import open_game
from questbook.graphs.local.homes import find_home
from questbook.graphs.local.saved_game import list_campaigns


@pytest.fixture
async def two(game):
    return await two_threads(game)


def entered(game, *others):
    return history(game).enter([other.config["configurable"]["thread_id"] for other in others])


async def test_the_turn_with_which_the_other_thread_joined_is_written_anew_on_the_turn_before(two):
    first, other = two
    await history(other).undo()
    third = beside(first)
    assert await entered(third, other, first)
    await history(first).go("main")
    await history(first).undo()
    for game in (third, first):
        assert game.values["turn"] == 4
        if game is third:
            await history(game).name_line("solo")
        config, message = await history(game).last_message()
        assert message == "Deed 4"
        game.model.queue("quest", say("Wiser."))
        await run(game, {"messages": [("user", "Deed 4, wiser")]}, config)
        assert [game.values["turn"], told(game)[-1], game.values["quest"]["gold"]] == [4, "Deed 4, wiser", 3]
        assert "Deed 4" not in told(game)
        assert "Deed 4\n" not in str(game.model.asked("quest")[-1])
        assert game.values.get("line", "main") == ("solo" if game is third else "main")


async def test_a_copy_of_a_copy_is_told_again_and_written_anew(two):
    first, other = two
    await history(first).go("main")
    await turn(first, "Deed 6", gold=6)
    await history(first).undo()
    config, context = await history(first).retry()
    first.model.queue("quest", say("Told anew."))
    await run(first, None, config, context)
    assert [first.values["turn"], first.reply, told(first)[-1]] == [5, "Told anew.", "Deed 5"]
    await history(first).go(other.values["timeline"][-1][0])
    assert told(first)[-1] == "Deed 6"
    await history(first).undo()
    config, _ = await history(first).last_message()
    first.model.queue("quest", say("Another way."))
    await run(first, {"messages": [("user", "Deed 5, wiser")]}, config)
    assert told(first) == [*told(other)[:-1], "Deed 5, wiser"]
    assert first.values["turn"] == 5


async def test_what_was_retracted_or_edited_on_a_copy_stays_so_for_who_comes_back(two):
    first, _ = two
    await history(first).go("main")
    await retract(first.app, first.config, Context.of(first.settings), 5)
    await history(first).write({"quest": {"objective": "hail"}})
    await history(first).go("2")
    assert first.values["turn"] == 2
    await history(first).go("main")
    assert first.values["turn"] == 5
    assert "Deed 5" not in told(first)
    assert first.values["quest"].get("gold") != 5
    assert first.values["quest"]["objective"] == "hail"


async def test_the_campaign_is_entered_with_the_name_the_edits_and_the_retractions_of_where_it_was_left(two):
    first, other = two
    await history(other).name_line("solo")
    await history(other).write({"quest": {"objective": "hail"}})
    third = beside(first)
    assert await entered(third, first, other)
    assert [third.values["line"], third.values["quest"]["objective"], third.values["turn"]] == ["solo", "hail", 5]
    await history(other).undo()
    await retract(other.app, other.config, Context.of(other.settings), 4)
    fourth = beside(first)
    assert await entered(fourth, first, other)
    assert fourth.values["quest"] == other.values["quest"]
    assert told(fourth) == told(other)
    assert "Deed 4" not in told(fourth)


async def test_the_campaign_is_entered_as_the_thread_has_it_on_which_it_was_left(two):
    first, other = two
    await history(first).go("main")
    await history(other).write({"quest": {"objective": "hail"}})  # both are at turn 5
    third = beside(first)
    assert await entered(third, first, other)
    assert [third.values["turn"], third.values["quest"]["objective"]] == [5, "hail"]
    unnamed = beside(first)
    assert await entered(unnamed), "the records say where it was left, too"
    assert [unnamed.values["turn"], told(unnamed)] == [5, told(other)]
    lost = beside(first)
    [(space, key)] = [(i.namespace, i.key) for i in first.store.search(EXCHANGES) if i.value["turn"] == 5]
    first.store.delete(space, key)
    assert not await entered(lost)
    assert not lost.values


async def test_a_thread_whose_only_message_was_taken_back_is_nowhere_to_enter(game):
    game.model.queue("interview", ConnectionError("cut"))
    with pytest.raises(Exception, match="cut"):
        await game.play("I'm Mira.")
    await history(game).take_back()
    assert not await entered(beside(game), game)


async def test_a_campaign_whose_last_turns_are_in_no_checkpoint_is_not_entered_where_another_thread_ended(two):
    first, other = two
    await other.saver.adelete_thread(other.config["configurable"]["thread_id"])
    third = beside(first)
    assert not await entered(third, other, first)
    assert not third.values
    await turn(third, "Deed 6", gold=6)
    assert third.values["turn"] == 6, "its first message takes over what was left"


async def test_undo_to_where_a_thread_joined_is_what_it_took_over(two):
    first, other = two
    await history(other).write({"quest": {"objective": "hail"}, "summary": "It hails."})
    third = beside(first)
    await turn(third, "Deed 6", scene="six")
    await history(other).write({"quest": {"objective": "sun"}, "summary": "It shines."})
    await history(third).undo()
    assert third.values["summary"] == "It hails."
    assert [third.values["turn"], third.values["quest"]["objective"], told(third)[-1]] == [5, "hail", "Deed 5"]
    await history(third).write({"quest": {"objective": "snow"}})
    await turn(third, "Deed 6, again", scene="seven")
    await history(third).undo()
    assert [third.values["turn"], third.values["quest"]["objective"]] == [5, "snow"], "what was changed since stands"


async def test_an_interview_that_was_left_in_studio_goes_on_and_is_forgotten_with_its_campaign(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTBOOK_HOME", str(tmp_path))
    await play_in_studio(["I am somebody called Zanzibarra"], str(uuid.uuid4()), "one")
    assert "Zanzibarra" in sit_down(tmp_path, "/sheet\n", "--campaign", "one")
    assert questbook(tmp_path, "forget", "--campaign", "one", "--yes").returncode == 0
    async with open_game(Context.of(None, model="offline")) as game:
        assert await list_campaigns(game.checkpointer, "adventurer") == []
    assert not [file.name for file in tmp_path.rglob("*") if file.is_file() and b"Zanzibarra" in file.read_bytes()]


@pytest.mark.slow
async def test_a_thread_that_only_went_somewhere_is_forgotten_with_the_words(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTBOOK_HOME", str(tmp_path))
    played, went = str(uuid.uuid4()), {"configurable": {"thread_id": str(uuid.uuid4())}}
    await play_in_studio([MIRA, "My ring is called Glimmerling."], played)
    async with find_home().open_checkpointer() as saver, find_home().open_store() as store:
        graph = build_graph().compile(checkpointer=saver, store=store)
        await History(graph, went, Context.of(None, model="offline", campaign="isle")).go("main")
    await play_in_studio(["I walk on"], played)
    assert "Glimmerling" not in questbook(tmp_path, "forget", "Glimmerling", "--campaign", "isle", "--yes").stderr
    assert questbook(tmp_path, "forget", "--campaign", "isle", "--yes").returncode == 0
    async with find_home().open_checkpointer() as saver:
        assert [found async for found in saver.alist(None)] == []


async def test_an_agents_thread_is_no_campaign_and_is_not_entered(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTBOOK_HOME", str(tmp_path))
    async with find_home().open_checkpointer() as saver, find_home().open_store() as store:
        desk = Desk(CustomerNotebook, TicketNotebook, saver=saver, store=store)
        await desk.say("Ann, X100: it leaks", fill=say("Who are you?"), update=note(problem="leaks"))
        _, campaign = (await desk.app.aget_state(desk.config)).values["campaign"]
    async with open_game(Context.of(None, model="offline", campaign=campaign)) as game:
        assert await list_campaigns(game.checkpointer, "adventurer") == []
        assert not await game.enter()
