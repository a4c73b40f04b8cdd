"""Going back, trying again, and moving between lines: all of it checkpoints."""

import pytest
from scripted import call, say

from graphs.dungeon_master.context import Context
from graphs.dungeon_master.history import History, resend
from graphs.errors import HistoryError


@pytest.fixture
async def story(game):
    """A game of four turns: the beginning, then three."""
    await game.begin()
    for number in (2, 3, 4):
        game.model.queue("quest", say(f"Reply {number}."))
        game.model.queue("update", say("", call("StateNotebook", gold=number)))
        await game.play(f"Deed {number}")
    game.history = History(game.app, game.config, Context.of(game.settings))
    return game


async def test_undo_brings_back_the_pages_and_the_words(story):
    state = await story.history.undo()
    assert state.values["turn"] == 3
    assert story.values["quest"]["gold"] == 3
    assert story.reply == "Reply 3."
    story.model.queue("quest", say("Another road."))
    await story.play("Deed 4, differently")
    assert story.values["turn"] == 4
    assert "Deed 4\n" not in str(story.model.asked("quest")[-1])
    await story.history.undo(3)
    assert story.values["turn"] == 1


async def test_undo_of_undone_turns_goes_further_back(story):
    await story.history.undo()
    await story.history.undo()
    assert story.values["turn"] == 2


@pytest.mark.parametrize(("turns", "says"), [(0, "from 1"), (-1, "from 1"), (4, "no turn 0"), (99, "no turn -95")])
async def test_there_is_no_going_back_before_the_beginning(story, turns, says):
    with pytest.raises(HistoryError, match=says):
        await story.history.undo(turns)
    assert story.values["turn"] == 4


async def test_undo_takes_back_a_turn_that_failed(story):
    story.model.queue("quest", ConnectionError("cut"))
    with pytest.raises(Exception, match="cut"):
        await story.play("Deed 5")
    await story.history.undo()
    assert story.next == ()
    assert story.values["turn"] == 4
    assert story.reply == "Reply 4."


async def test_retry_tells_the_turn_in_new_words_with_the_same_dice(story):
    roll = call("roll_dice", expression="1d20", reason="luck")
    story.model.queue("quest", say("", roll), say("You fail."))
    await story.play("Deed 5")
    fell = story.values["rolls"]
    config, context = await story.history.retry()
    assert context.seed != story.history.context.seed
    story.model.queue("quest", say("You fail beautifully."))
    await story.app.ainvoke(None, config, context=context)
    assert story.reply == "You fail beautifully."
    assert story.values["rolls"] == fell
    assert story.values["turn"] == 5
    config, context = await story.history.retry(dice=True)
    story.model.queue("quest", say("", call("roll_dice", expression="100d100", reason="luck")), say("You win."))
    await story.app.ainvoke(None, config, context=context)
    assert story.reply == "You win."
    assert [r["total"] for r in story.values["rolls"]] != [r["total"] for r in fell]
    assert len(story.values["rolls"]) == 1


async def test_a_message_can_be_written_anew(story):
    config, said = await story.history.before_last()
    assert said == "Deed 4"
    story.model.queue("quest", say("Better."))
    await story.app.ainvoke(resend("Deed 4, but wiser"), config, context=story.settings)
    assert [m.text for m in story.values["messages"]][-2:] == ["Deed 4, but wiser", "Better."]
    assert story.values["turn"] == 4


async def test_lines_have_names_that_follow_the_play(story):
    await story.history.undo(2)
    await story.history.name("the dark road")
    story.model.queue("quest", say("It is dark."))
    await story.play("Into the dark")
    assert story.values["line"] == "the dark road"
    await story.history.go("main")
    assert story.reply == "Reply 4."
    assert story.values.get("line", "main") == "main"
    assert story.values["quest"]["gold"] == 4
    await story.history.go("the dark road")
    assert story.reply == "It is dark."
    places = await story.history.places()
    played = sorted((place.turn, place.line) for place in places)
    assert played == [(1, "main"), (2, "main"), (3, "main"), (3, "the dark road"), (4, "main")]
    assert len({place.branch for place in places}) == 2
    await story.history.go("2")
    assert story.reply == "Reply 2."


async def test_a_named_line_can_be_gone_to_before_anything_is_played_on_it(story):
    await story.history.undo(2)
    await story.history.name("later")
    await story.history.go("main")
    await story.history.go("later")
    assert story.values["turn"] == 2
    assert story.values["line"] == "later"


@pytest.mark.parametrize("name", ["", "  ", "x" * 61, "main"])
async def test_a_line_needs_a_name_of_its_own(story, name):
    with pytest.raises(HistoryError):
        await story.history.name(name)


async def test_what_is_not_there_is_said_with_what_there_is(story):
    with pytest.raises(HistoryError, match="Lines: main"):
        await story.history.go("nowhere")
    with pytest.raises(HistoryError, match="no line, branch or turn '77'"):
        await story.history.go("77")


async def test_going_somewhere_writes_no_record_twice(story):
    before = {(place.branch, place.turn, place.said_at) for place in await story.history.places()}
    for where in ("2", "main", "3", "main"):
        await story.history.go(where)
    assert {(place.branch, place.turn, place.said_at) for place in await story.history.places()} == before
