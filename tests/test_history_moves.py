"""Going back, trying again, and moving between lines: all of it checkpoints."""

import re

import pytest
from conftest import EXCHANGES
from langchain_core.messages import HumanMessage
from scripted import call, say
from threads import beside
from threads import history as history_of

from questbook.graphs.errors import HistoryError, InputError
from questbook.graphs.history.history import History
from questbook.graphs.history.view import Position, position_of


@pytest.fixture
async def story(game):
    """A game of four turns: the beginning, then three."""
    await game.begin()
    for number in (2, 3, 4):
        game.model.queue("quest", say(f"Reply {number}."))
        game.model.queue("update", say("", call("StateNotebook", gold=number)))
        await game.play(f"Deed {number}")
    game.history = history_of(game)
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
    await story.history.undo(2)
    await story.history.undo()
    assert story.values["turn"] == 1


@pytest.mark.parametrize(
    ("turns", "says"), [(0, "from 1"), (-1, "from 1"), (4, "but 3 can"), (99, "turn 4, so 99 turns")]
)
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
    story.model.queue("quest", ConnectionError("cut"))
    with pytest.raises(Exception, match="cut"):
        await story.play("Deed 5")
    with pytest.raises(InputError):
        await History(story.app, story.config, {**story.settings, "user": "eve"}).take_back()
    assert story.next == ("run_quest",), "a stranger takes nothing back"
    await story.history.undo(2)
    assert story.reply == "Reply 3.", "the one that failed is the first of the two"


async def test_a_thread_and_a_number_of_turns_are_needed(story):
    for config in (None, {}, {"configurable": {}}, {"configurable": {"thread_id": ""}}):
        with pytest.raises(InputError, match=r"config: got .*; expected the thread, such as"):
            History(story.app, config, story.settings)
    for turns in ("2", None, 1.5, True, 0):
        with pytest.raises(HistoryError, match="Undo takes a number of turns from 1, got"):
            await story.history.undo(turns)


async def test_retry_tells_the_turn_in_new_words_with_the_same_dice(story):
    roll = call("roll_dice", expression="1d20", reason="luck")
    story.model.queue("quest", say("", roll), say("You fail."))
    await story.play("Deed 5")
    fell = story.values["rolls"]
    config, context = await story.history.retry()
    assert context.seed != story.history.context.seed
    first = context.seed
    assert (await story.history.retry(dice=True)).context.seed != first
    other = History(story.app, story.config, {**story.settings, "seed": 8})
    assert (await other.retry()).context.seed != first, "who sets another seed gets another reply"
    story.model.queue("quest", say("You fail beautifully."))
    await story.app.ainvoke(None, config, context=context)
    assert story.reply == "You fail beautifully."
    assert story.values["rolls"] == fell
    assert story.values["turn"] == 5
    assert (await story.history.retry()).context.seed not in (first, story.history.context.seed), "a third time differs"
    config, context = await story.history.retry(dice=True)
    story.model.queue("quest", say("", call("roll_dice", expression="100d100", reason="luck")), say("You win."))
    await story.app.ainvoke(None, config, context=context)
    assert story.reply == "You win."
    assert [r["total"] for r in story.values["rolls"]] != [r["total"] for r in fell]
    assert len(story.values["rolls"]) == 1


async def test_a_message_can_be_written_anew(story):
    config, said = await story.history.last_message()
    assert said == "Deed 4"
    story.model.queue("quest", say("Better."))
    await story.app.ainvoke({"messages": [("user", "Deed 4, but wiser")]}, config, context=story.settings)
    assert [m.text for m in story.values["messages"]][-2:] == ["Deed 4, but wiser", "Better."]
    assert story.values["turn"] == 4


async def test_lines_have_names_that_follow_the_play(story):
    await story.history.undo(2)
    await story.history.name_line("the dark road")
    story.model.queue("quest", say("It is dark."))
    await story.play("Into the dark")
    assert story.values["line"] == "the dark road"
    await story.history.go("main")
    assert story.reply == "Reply 4."
    assert story.values.get("line", "main") == "main"
    assert story.values["quest"]["gold"] == 4
    await story.history.go("the dark road")
    assert story.reply == "It is dark."
    places = await story.history.turns()
    played = sorted((place.turn, place.line) for place in places)
    assert played == [(1, "main"), (2, "main"), (3, "main"), (3, "the dark road"), (4, "main")]
    assert len({place.branch for place in places}) == 2
    await story.history.go("2")
    assert story.reply == "Reply 2."


async def test_a_named_line_can_be_gone_to_before_anything_is_played_on_it(story):
    await story.history.undo(2)
    await story.history.name_line("later")
    await story.history.go("main")
    await story.history.go(" later ")
    assert story.values["turn"] == 2
    assert story.values["line"] == "later"


@pytest.mark.parametrize(("name", "says"), [
    ("", "A line needs a name of 1 to 60 characters, got ''."), ("  ", "1 to 60 characters, got ''."),
    ("x" * 61, "1 to 60 characters, got 'xxx"), ("main", "There is a line named 'main' already; /go main goes there."),
    ("7", "7 would be read as a turn; give the line a name with a letter."), ("0042", "0042 would be read as a turn"),
    ("main#1", "There is a line named 'main#1' already"), ("the  end", "There is a line named 'the end' already"),
    (f"{'x' * 60} ", ""),
])  # fmt: skip
@pytest.mark.slow
async def test_a_line_needs_a_name_of_its_own(story, name, says):
    await story.history.name_line("the end")  # nothing is played on it yet
    await story.history.name_line("and on")
    if not says:
        await story.history.name_line(name)
        assert story.values["line"] == name.strip()
        return
    with pytest.raises(HistoryError, match=re.escape(says)):
        await story.history.name_line(name)
    assert story.values["line"] == "and on"


async def test_what_is_not_there_is_said_with_what_there_is(story):
    await story.history.name_line("later")
    with pytest.raises(HistoryError, match=r"There is no line, branch or turn 'nowhere'\. Lines: main, later\."):
        await story.history.go("nowhere")
    with pytest.raises(HistoryError, match=r"no turn 77 on the way to here: this is turn 4\. /branches shows"):
        await story.history.go("77")
    with pytest.raises(HistoryError, match="There is no line, branch or turn '7777777777777777'"):
        await story.history.go("7" * 16)
    for number in range(11):
        await story.history.name_line(f"line {number:02}")
    with pytest.raises(HistoryError, match=r"Lines: main, later, line 00, .*, line 09, …\.$"):
        await story.history.find("nowhere")


async def test_going_somewhere_writes_no_record_twice_and_asks_no_model(story):
    calls = len(story.model.calls)
    before = {(place.branch, place.turn, place.said_at) for place in await story.history.turns()}
    for where in ("2", "main", "3", "main"):
        await story.history.go(where)
    assert {(place.branch, place.turn, place.said_at) for place in await story.history.turns()} == before
    await story.history.undo(2)
    assert len(story.model.calls) == calls


async def test_undo_moves_the_head_so_that_a_new_thread_knows_nothing_of_the_death(story):
    story.model.queue("quest", say("The pit swallows you. You are dead."))
    await story.play("I leap")
    await story.history.undo()
    config, story.config = story.config, {"configurable": {"thread_id": "another"}}
    await story.play("Where am I?")
    assert story.values["turn"] == 5
    assert "pit" not in str(story.model.asked("quest")[-1])
    story.config = config
    assert story.reply == "Reply 4."


async def test_an_edit_in_studio_is_still_there_when_the_line_is_gone_back_to(story):
    await story.app.aupdate_state(story.config, {"quest": {"gold": 77}}, as_node="remember")
    await story.history.undo()
    assert story.values["quest"]["gold"] == 3
    await story.history.go("main")
    assert story.values["quest"]["gold"] == 77


async def test_the_first_message_can_be_written_anew(game):
    await game.begin()
    history = history_of(game)
    config, said = await history.last_message()
    assert said.startswith("I'm Mira")
    game.model.queue("interview", say("Bor! And where from?"))
    await game.app.ainvoke({"messages": [("user", "I'm Bor")]}, config, context=game.settings)
    assert [m.text for m in game.values["messages"]] == ["I'm Bor", "Bor! And where from?"]
    assert game.values["turn"] == 1
    assert game.values["character"]["name"] == ""
    other = beside(game)
    await other.play("hello")
    assert other.values["turn"] == 1, "nothing is left of what was given up, on any thread"


async def test_during_the_interview_one_can_go_back_and_hear_it_anew(game):
    history = history_of(game)
    game.model.queue("interview", say("Who?"), say("Where from?"))
    await game.play("hello")
    await game.play("Mira")
    config, context = await history.retry()
    game.model.queue("interview", say("From where, Mira?"))
    await game.app.ainvoke(None, config, context=context)
    assert game.reply == "From where, Mira?"
    assert game.values["turn"] == 2
    await history.undo()
    assert game.reply == "Who?"
    await game.play("I am nobody")
    assert game.values["turn"] == 2


async def test_a_turn_of_the_interview_can_be_gone_to_from_the_quest(game):
    game.model.queue("interview", say("Who?"))
    await game.play("hello")
    await game.begin()
    history = history_of(game)
    for _ in range(2):
        await history.go("1")
        assert game.reply == "Who?"
        await history.go("main")
        assert game.values["turn"] == 2


async def test_a_message_that_was_never_taken_up_is_a_turn_to_take_back_or_to_write_anew(game):
    game.model.queue("interview", say("Who?"), ConnectionError("cut"))
    await game.play("hello")
    history = history_of(game)
    with pytest.raises(Exception, match="cut"):
        await game.play("Mira")
    assert position_of(await history.current_state()) == Position(2, "Mira", "", "main")
    with pytest.raises(HistoryError, match=r"Turn 2 has no reply yet: try it again, or take it back, first\."):
        await history.name_line("a line")
    config, said = await history.last_message()
    assert said == "Mira"
    await game.app.ainvoke({"messages": [("user", "I am Mira")]}, config, context=game.settings)
    assert [m.text for m in game.values["messages"]] == ["hello", "Who?", "I am Mira", "And what else?"]
    await history.undo()
    assert game.reply == "Who?"


async def test_a_first_message_is_taken_back_as_often_as_it_fails(game):
    history = history_of(game)
    for _ in range(3):
        game.model.queue("interview", ConnectionError("cut"))
        with pytest.raises(Exception, match="cut"):
            await game.play("I'm Mira.")
        assert not (await history.take_back()).values.get("messages")
    await game.begin()
    assert (game.values["turn"], len(game.values["messages"])) == (1, 4)


async def test_a_first_message_that_is_taken_back_on_another_thread_takes_nothing_from_the_campaign(story):
    other = beside(story)
    for _ in range(2):
        other.model.queue("quest", ConnectionError("cut"))
        with pytest.raises(Exception, match="cut"):
            await other.play("Deed 5")
        assert not (await history_of(other).take_back()).values.get("messages")
    assert (await beside(story).play("Deed 5"))["turn"] == 5


async def test_a_message_that_is_taken_back_twice_takes_no_finished_turn_with_it(story):
    story.model.queue("quest", ConnectionError("cut"))
    with pytest.raises(Exception, match="cut"):
        await story.play("Deed 5")
    for _ in range(2):
        state = await story.history.take_back()
        assert (state.values["turn"], story.reply, story.next) == (4, "Reply 4.", ())


async def test_a_message_whose_past_is_gone_is_not_taken_back_with_the_whole_thread(story):
    story.model.queue("quest", ConnectionError("cut"))
    with pytest.raises(Exception, match="cut"):
        await story.play("Deed 5")
    saved = story.saver.storage[story.config["configurable"]["thread_id"]][""]
    for checkpoint in sorted(saved)[:-1]:
        del saved[checkpoint]
    with pytest.raises(HistoryError, match="are gone"):
        await story.history.undo()
    assert story.values["turn"] == 5


async def test_of_a_turn_that_is_gone_the_nearest_or_the_first_that_is_there_is_named(story):
    saved = story.saver.storage[story.config["configurable"]["thread_id"]][""]
    for state in list(story.app.get_state_history(story.config)):
        if state.values.get("turn", 0) < 3:
            del saved[state.config["configurable"]["checkpoint_id"]]
    with pytest.raises(HistoryError, match=r"turn 2 of 'main' are gone.*\. The nearest on the way to here: turn 3\.$"):
        await story.history.rewind(2)
    for record in story.store.search(EXCHANGES):
        if record.value["turn"] in (2, 3):
            story.store.delete(record.namespace, record.key)
    with pytest.raises(HistoryError, match=r"no turn 2 to go back to: this thread begins with turn 3\.$"):
        await story.history.rewind(2)


async def test_a_turn_told_again_stays_on_the_line_that_was_named(story):
    await story.history.name_line("dark")
    config, context = await story.history.retry()
    await story.app.ainvoke(None, config, context=context)
    assert story.values["line"] == "dark"
    config, _ = await story.history.last_message()
    await story.app.ainvoke({"messages": [("user", "Deed 4, anew")]}, config, context=story.settings)
    assert (story.values["line"], story.values["turn"]) == ("dark", 4)
    await story.history.go("main")
    assert story.reply == "Reply 4."


async def test_an_unfinished_turn_does_not_count_what_another_future_put_under_its_number(story):
    await story.history.undo()
    story.model.queue("quest", ConnectionError("cut"))
    with pytest.raises(Exception, match="cut"):
        await story.play("Deed 4, again")
    branch, _ = story.values["timeline"][-1]
    assert await story.history.current_turn() == (branch, 3)
    with pytest.raises(HistoryError, match="no turn '4' on this line"):
        await story.history.find("4")
    with pytest.raises(HistoryError, match="Turn 4 has no reply yet"):
        await story.history.rewind(4)


async def test_places_differ_in_pages_and_in_what_they_remember_but_secrets_stay_secret(story):
    await story.history.undo(2)
    await story.history.name_line("low road")
    story.model.queue("quest", say("You meet Oda."))
    changed = {"people": {"Oda": {"role": "innkeeper"}}, "secrets": {"Oda": "is the thief"}, "gold": 9}
    story.model.queue("update", say("", call("StateNotebook", **changed)))
    await story.play("I go to the inn")
    found = await story.history.difference("main")
    oda = {"role": "innkeeper", "alive": True}
    assert {c.path: (c.before, c.after) for c in found.pages} == {("people", "Oda"): (None, oda), ("gold",): (4, 9)}
    assert "thief" not in str(found)
    assert [place.player for place in found.only_before] == ["Deed 3", "Deed 4"]
    assert [place.player for place in found.only_after] == ["I go to the inn"]
    assert not any(await story.history.difference("low road"))
    back = await story.history.difference("low road", "main")
    assert [place.player for place in back.only_before] == ["I go to the inn"]


async def test_the_first_message_of_a_thread_that_joined_is_written_anew_on_the_past_it_had(story):
    story.config = {"configurable": {"thread_id": "another"}}
    history = history_of(story)
    story.model.queue("quest", say("The pit swallows you."))
    await story.play("I leap")
    config, said = await history.last_message()
    assert said == "I leap"
    await story.app.ainvoke({"messages": [("user", "I stay")]}, config, context=story.settings)
    assert story.values["turn"] == 5
    assert story.values["messages"][0].text == "I stay"
    assert "pit" not in str(story.model.asked("quest")[-1])
    config, _ = await history.last_message()
    third = beside(story)
    await third.play("Where am I?")
    assert third.values["turn"] == 6, "to look at it gives up nothing that others go on from"


async def test_before_the_notes_of_a_turn_its_dice_have_fallen_and_its_reply_stands(story):
    story.model.queue("quest", say("", call("roll_dice", expression="1d20", reason="luck")), say("You win."))
    await story.play("Deed 5")
    for _ in range(2):
        before = await story.history.before_upkeep()
        assert (before.next, before.values["messages"][-1].text) == (("update_state",), "You win.")
        assert [roll["reason"] for roll in before.values["rolls"]] == ["luck"]
        question = await story.history.last_question()
        assert (question.node, len(question.state.values["rolls"])) == ("run_quest", 1)
        await story.history.write({"quest": {"gold": 8}})
    story.saver.storage[story.config["configurable"]["thread_id"]][""] = {
        key: saved
        for key, saved in story.saver.storage[story.config["configurable"]["thread_id"]][""].items()
        if key == story.app.get_state(story.config).config["configurable"]["checkpoint_id"]
    }
    assert await story.history.before_upkeep() is None, "its checkpoints are gone"
    assert await story.history.last_question() is None


async def test_a_turn_whose_upkeep_was_cut_off_is_finished_and_can_be_gone_back_to(story):
    story.model.queue("quest", say("Reply 5."))
    stream = story.app.astream(
        {"messages": [HumanMessage("Deed 5")]}, story.config, context=story.settings, stream_mode="updates"
    )
    async for update in stream:
        if "run_quest" in update:
            break
    await stream.aclose()
    assert story.next == ("update_state",)
    story.model.queue("update", say("", call("StateNotebook", gold=6)))
    await story.play("Deed 6")
    assert story.values["noted_through"] == 6
    await story.history.undo()
    assert story.reply == "Reply 5."
    assert story.values["quest"]["gold"] == 4
    await story.play("Deed 6, differently")
    assert story.values["turn"] == 6
    await story.history.undo(2)
    assert story.reply == "Reply 4."
    assert [turn.turn for turn in await story.history.turns()].count(5) == 1


async def test_of_turns_on_both_sides_of_one_that_is_gone_those_next_to_it_are_named(story):
    saved = story.saver.storage[story.config["configurable"]["thread_id"]][""]
    states = [(s.config["configurable"]["checkpoint_id"], s.values.get("turn", 0)) for s in
              story.app.get_state_history(story.config)]  # fmt: skip
    gone, second = {key for key, turn in states if turn == 3}, next(key for key, turn in states if turn == 2)
    for key in gone:
        del saved[key]
    for key, (checkpoint, metadata, parent) in saved.items():
        saved[key] = (checkpoint, metadata, second if parent in gone else parent)
    with pytest.raises(HistoryError, match=r"\. The nearest on the way to here: turn 2 and turn 4\.$"):
        await story.history.rewind(3)
