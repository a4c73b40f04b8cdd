"""No write leaves a thread that cannot be read: what does not fit is left out, by whichever door it came."""

import copy
import logging
import pickle
import re
import uuid
from contextlib import suppress

import orjson
import pytest
from conftest import EXCHANGES
from desk import Desk, TicketNotebook
from langchain_core.messages import RemoveMessage
from langgraph.channels.last_value import MISSING
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import InvalidUpdateError
from langgraph.types import Command, Overwrite, StateUpdate
from scripted import say, sections_of

from questbook import PatchError
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import InputError
from questbook.graphs.history.history import History
from questbook.graphs.local.homes import find_home
from questbook.graphs.turn.channels import Checked, Last, Names, Own, Owner, check_channel, refusals_in
from questbook.graphs.turn.node import upkeep_nodes

WAITING = {"turns": [1, 1], "fact": {"text": "x"}, "ordinal": 0, "echoes": "", "messages": [], "said": ""}
WRONG = [
    {"quest": {"gold": "x"}}, {"quest": 5}, {"quest": {"__overwrite__": {"gold": "x"}}},
    {"quest": {"type": "__overwrite__", "value": 3}}, {"quest": {"version": 99}}, {"quest": {"scene": "x" * 9000}},
    {"character": {"level": 99}}, {"character": None}, {"messages": 5},
    {"messages": [{"role": "alien", "content": "x"}]},
    {"messages": [{"type": "remove", "content": "", "id": "nobody"}]}, {"messages": {"__overwrite__": 7}},
    {"notices": "x"}, {"notices": [{"text": "no turn"}]}, {"rolls": 3}, {"rolls": [1]},
    {"rolls": {"__overwrite__": {"a": 1}}}, {"turn": "x"}, {"turn": -5}, {"turn": True}, {"turn": "5"},
    {"summary": None}, {"timeline": [["a"]]}, {"timeline": "x"}, {"timeline": [["x", -1]]}, {"timeline": [["x", 0]]},
    {"timeline": [["", 1]]}, {"timeline": [["x", 2], ["y", 2]]}, {"window": {"model": "scripted", "tokens": -5}},
    {"rolls": [{"total": "x"}]}, {"new_secrets": ["x"]}, {"noted": {"1": {"noted": 3}}}, {"facts": [3]},
    {"facts": [{"turns": [1, 1], "fact": {"text": "x"}}]}, {"facts": [WAITING | {"fact": {}}]},
    {"facts": [{"turns": ["a", 1], "fact": {}}]}, {"noted": []}, {"campaign": 1}, {"line": {"__overwrite__": None}},
]  # fmt: skip
SAME = ("turn", "summary", "timeline", "quest", "character", "rolls", "facts", "campaign", "line")


def told(values):
    return [f"{entry['text']} {entry['detail']}" for entry in values["notices"] if entry["node"] == "edit"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "goto"),
    [*((write, ()) for write in WRONG), *((write, "recall") for write in WRONG[::6])],  # one of each kind of channel
    ids=lambda value: str(value)[:50],
)
async def test_a_command_that_does_not_fit_keeps_the_thread_readable_and_the_next_turn_tells(mira, write, goto, caplog):
    before = mira.values
    with caplog.at_level(logging.WARNING):
        await mira.app.ainvoke(Command(update=write, goto=goto), mira.config, context=mira.settings)
    assert "was refused" in caplog.text
    after = mira.values
    unwritten = {"summary": "", "facts": [], "line": "main"}
    same = SAME if not goto else [name for name in SAME if name != "timeline"]  # the turn goes on, on its own branch
    assert [{**unwritten, **after}[name] for name in same] == [{**unwritten, **before}[name] for name in same]
    assert len(list(mira.app.get_state_history(mira.config))) > 3
    if not goto:  # else the command's own run has told it
        await mira.play("I go on")
        assert mira.values["turn"] == 2
    assert len(told(mira.values)) == 1
    assert repr(next(iter(write))) in told(mira.values)[0]
    await mira.play("And on")
    assert len(told(mira.values)) == 1, "it is told once"
    await History(mira.app, mira.config, Context.of(mira.settings)).undo()
    assert mira.values["turn"] == (1 if goto else 2)


async def test_what_did_not_fit_is_told_once_in_a_turn_in_which_the_interview_ends_and_the_quest_begins(game):
    await game.play("Hello.", interview=say("Who are you?"))
    await game.app.ainvoke(Command(update={"quest": {"gold": "much"}}), game.config, context=game.settings)
    await game.begin()
    assert len(game.model.asked("quest")) == 1
    assert len(told(game.values)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("write", WRONG, ids=lambda write: str(write)[:50])
async def test_an_edit_that_does_not_fit_is_refused_before_it_is_saved(mira, write):
    before = mira.checkpointed
    with pytest.raises(ValueError):
        await mira.app.aupdate_state(mira.config, write, as_node="remember")
    assert mira.checkpointed == before
    assert mira.app.get_state(mira.config).tasks == ()


async def test_a_thread_without_a_turn_takes_the_timeline_of_another(mira):
    empty, taken = {"configurable": {"thread_id": "empty"}}, {name: mira.values[name] for name in ("timeline", "turn")}
    await mira.app.aupdate_state(empty, taken, as_node="remember")
    assert (await mira.app.aget_state(empty)).values["timeline"] == mira.values["timeline"]


TOGETHER = [
    ({"turn": 3}, "turn: got 3, and a timeline that reaches turn 1"),
    ({"turn": 0}, "turn: got 0, and a timeline"),
    ({"remembered_through": 99}, "remembered_through: got 99; expected at most 1"),
    ({"noted_through": 2}, "noted_through: got 2"),
    ({"facts": [WAITING | {"turns": [2, 9]}]}, "facts: got one of turn 9"),
    ({"summarised_through": 2}, "summarised_through: got 2"),
    ({"timeline": [["x", 1]]}, "timeline: got branch 'x', of which this thread has no turn"),
]


@pytest.mark.parametrize(("write", "said"), TOGETHER, ids=lambda value: str(value)[:50])
async def test_an_edit_that_does_not_go_with_the_rest_is_refused_in_the_name_of_every_node(mira, write, said):
    before = mira.checkpointed
    for node in mira.app.builder.nodes:
        with pytest.raises(InputError, match=re.escape(said)):
            await mira.app.aupdate_state(mira.config, write, as_node=node)
    assert mira.checkpointed == before
    await mira.play("I go on")
    assert mira.values["remembered_through"] == 2


async def test_a_turn_ahead_that_a_command_wrote_is_put_back_and_the_next_turn_is_remembered(mira):
    await mira.app.ainvoke(Command(update={"remembered_through": 99}), mira.config, context=mira.settings)
    await mira.play("I go on")
    assert mira.values["remembered_through"] == 2
    assert "remembered_through: got 99" in told(mira.values)[0]
    assert len(await mira.store.asearch(EXCHANGES, filter={"turn": 2})) == 1


async def test_messages_are_not_all_removed_where_a_turn_goes_on_with_them(mira, companion):
    await companion.say("Hello", say("Hello."))
    everything = {"messages": [RemoveMessage("__remove_all__")]}
    for app, config in ((mira.app, mira.config), (companion.app, companion.config)):
        before = (await app.aget_state(config)).values
        upkeep = upkeep_nodes(app)
        for node in app.builder.nodes.keys() - upkeep:
            with pytest.raises(InputError, match="messages: got none"):
                await app.aupdate_state(config, everything, as_node=node)
        assert (await app.aget_state(config)).values == before
        await app.aupdate_state(config, everything, as_node="remember")
        assert (await app.aget_state(config)).values["messages"] == []
    await mira.play("I go on")
    assert mira.values["turn"] == 2


async def test_in_the_name_of_whatever_node(mira):
    before = mira.checkpointed
    for node in mira.app.builder.nodes:
        for write in ({"quest": {"gold": "x"}}, {"rolls": 5}):
            with pytest.raises(ValueError):
                await mira.app.aupdate_state(mira.config, write, as_node=node)
    assert mira.checkpointed == before


async def test_pages_of_the_companion_and_of_an_agent_are_as_safe(companion):
    desk = Desk(TicketNotebook)
    await desk.say("It leaks")
    await companion.say("Hello", say("Hello."))
    long = {"sections": {"human": {"value": "x" * 3000}}}
    for app, config, write, context in (
        (
            companion.app,
            companion.config,
            {"core": long, "archived": [{"turn": "a"}], "session": "x"},
            companion.settings,
        ),
        (desk.app, desk.config, {"ticket": {"steps": 3}, "noted": {"ticket": -1}, "mode": 5}, {}),
    ):
        before = (await app.aget_state(config)).values
        for name, value in write.items():
            with pytest.raises(ValueError, match=r"left as it was|left as it is|got|use"):
                await app.aupdate_state(config, {name: value}, as_node="remember")
        await app.ainvoke(Command(update=write), config, context=context)
        after = (await app.aget_state(config)).values
        assert {**after, "session": ""} == {**before, "session": ""}
    with pytest.raises(InputError, match=r"noted: got {'ticket': 99}; expected at most 1"):
        await desk.app.aupdate_state(desk.config, {"noted": {"ticket": 99}}, as_node="remember")
    await companion.say("And now?", say("Now."))
    await desk.say("Below")
    assert len(told(companion.values)) == len(told(desk.values)) == 3


async def test_two_values_for_one_channel_are_no_error_either(mira):
    twice = [("line", "a"), ("line", "b"), ("quest", Overwrite({})), ("quest", Overwrite({"gold": 4}))]
    await mira.app.ainvoke(Command(update=twice), mira.config, context=mira.settings)
    assert (mira.values["line"], mira.values["quest"]["gold"]) == ("b", 4)


@pytest.mark.parametrize("name", ["__start__", "PAGES", "__pregel_tasks", "turn", "recalled"])
@pytest.mark.slow
async def test_a_command_to_whatever_channel_leaves_a_thread_that_opens(game, name):
    async with find_home().open_checkpointer() as game.saver:
        game.keep_in(game.store)
        await game.begin()
        for update in ([(name, "a"), (name, "b")], [(name, Overwrite("a")), (name, Overwrite("b"))], {name: "a"}):
            with suppress(InvalidUpdateError, InputError):
                await game.app.ainvoke(Command(update=update), game.config, context=game.settings)
            assert (await game.app.aget_state(game.config)).values["turn"] == 1
        await game.play("I go on")
        assert (await game.app.aget_state(game.config)).values["turn"] == 2


async def test_a_thread_that_was_bricked_by_an_earlier_version_opens_again(mira):
    """As 0.1 left it: the write is saved beside the last checkpoint, under the id of no task, or of a node's."""
    last = mira.saver.get_tuple(mira.config)
    mira.saver.put_writes(
        last.config, [("quest", {"gold": "x"}), ("messages", 5)], "00000000-0000-0000-0000-000000000000"
    )
    mira.saver.put_writes(last.config, [("rolls", 5), ("notices", "x")], "00000000-0000-0000-0000-000000000000")
    assert mira.values["turn"] == 1
    await mira.play("I go on")
    assert mira.values["turn"] == 2
    assert len(told(mira.values)) >= 2
    assert any("gold: got 'x'" in text for text in told(mira.values))


async def test_a_correct_edit_is_taken_while_a_refused_one_waits(mira):
    await mira.app.ainvoke(Command(update={"quest": {"gold": "x"}}), mira.config, context=mira.settings)
    await mira.app.aupdate_state(mira.config, {"rolls": []}, as_node="remember")
    await mira.app.aupdate_state(mira.config, {"quest": {"gold": 5}}, as_node="remember")
    await mira.app.abulk_update_state(mira.config, [[StateUpdate({"quest": {"gold": 6}}, "remember")]])
    assert mira.values["quest"]["gold"] == 6


async def test_the_state_beside_a_refused_write_can_be_copied_pickled_and_stored(mira):
    await mira.app.ainvoke(Command(update={"quest": 3, "rolls": 3, "turn": ""}), mira.config, context=mira.settings)
    values = {name: mira.values[name] for name in ("quest", "rolls", "turn")}
    assert type(values["quest"]) is not dict
    for again in (pickle.loads(pickle.dumps(values)), copy.deepcopy(values)):
        assert again == values
        assert {type(value) for value in again.values()} == {dict, list, int}
    serializer = JsonPlusSerializer()
    assert serializer.loads_typed(serializer.dumps_typed(values)) == values
    assert orjson.loads(orjson.dumps(values)) == values


async def test_input_of_the_wrong_type_is_refused_with_what_was_expected(mira):
    before = mira.checkpointed
    with pytest.raises(ValueError, match="messages"):
        await mira.play({"messages": 5})
    assert {**mira.checkpointed} == before
    await mira.play("I go on")
    assert mira.values["turn"] == 2


async def test_a_page_may_be_edited_by_a_person_and_is_checked(mira):
    await mira.app.aupdate_state(mira.config, {"quest": {"inventory": {"silver key": 1}}})
    await mira.play("I look in my bag")
    assert "silver key" in sections_of(mira.model.asked("quest")[-1])
    with pytest.raises(PatchError, match=r"gold: got 'much'"):
        await mira.app.aupdate_state(mira.config, {"quest": {"gold": "much"}})
    assert mira.values["quest"]["inventory"]["silver key"] == 1
    await mira.app.aupdate_state(mira.config, {"character": {"goal": None}})
    await mira.play("I have changed", interview=say("What do you want now?"))
    assert mira.reply == "What do you want now?", "without a goal the interview goes on"


async def test_removing_a_message_by_hand_works(mira):
    last = mira.values["messages"][-1]
    await mira.app.aupdate_state(mira.config, {"messages": [RemoveMessage(last.id)]})
    assert last.id not in [m.id for m in mira.values["messages"]]
    assert uuid.UUID(mira.config["configurable"]["thread_id"])


def numbers(typ=int, **options):
    """A channel as a thread has it, by the name of "n"."""
    channel = Last(typ, **options)
    channel.key = "n"
    return channel.from_checkpoint(MISSING)


@pytest.mark.parametrize(("typ", "fits", "wrong"), [
    (int, [0, 5], [-1, True, "5", 1.5, None]), (str, ["", "a"], [5, None, ["a"]]),
    (dict[str, int], [{}, {"a": 1}], [[], {"a": "b"}, None]), (list[str], [[], ["a"]], ["a", [5], None]),
])  # fmt: skip
def test_a_channel_keeps_the_last_value_that_fits_and_tells_what_did_not(typ, fits, wrong):
    channel = numbers(typ)
    assert not channel.is_available()
    for value in fits:
        assert channel.update([value])
        assert channel.get() == value
    for value in wrong:
        assert channel.update([value]) is False
        with pytest.raises(InputError, match=r"n[.\w]*: "):
            channel.copy().update([value])
    assert channel.get() == fits[-1]
    refused = refusals_in({"n": channel.get(), "other": 5})
    assert [each.channel for each in refused] == ["n"] * len(wrong)
    assert refusals_in(None) == []
    assert refusals_in({"n": channel.from_checkpoint(channel.checkpoint()).get()}) == [], "told once"
    channel = numbers(typ)
    channel.update([wrong[0]])
    assert channel.is_available(), "else nothing would bring the refusal along"
    assert channel.get() == fits[0]
    assert len(refusals_in({"n": channel.get()})) == 1


def test_a_list_grows_up_to_its_most_and_an_overwrite_begins_it_anew():
    channel = numbers(list[int], most=3)
    assert channel.get() == []
    for write, value in (
        ([1, 2], [1, 2]), ([3, 4], [2, 3, 4]), (Overwrite([9]), [9]), ([5], [9, 5]), ({"__overwrite__": [1]}, [1]),
        ({"type": "__overwrite__", "value": [2, 3, 4, 5]}, [3, 4, 5]), ([], [3, 4, 5]),
    ):  # fmt: skip
        channel.copy().update([write])
        channel.update([write])
        assert channel.get() == value
    channel.update([[6], [7]])
    assert channel.get() == [5, 6, 7]


def test_what_no_database_takes_is_left_out_of_what_is_written():
    channel = numbers(list[str], most=9)
    channel.update([["a\0b"], ["c\ud800"]])
    assert channel.get() == ["ab", "c"]
    channel.update([Overwrite(["d\0"])])
    assert channel.get() == ["d"]


def test_a_notebook_may_raise_anything_and_the_error_of_an_edit_keeps_its_kind():
    def reduce(current, value):
        raise PatchError("Page", ["oh no"]) if value == "wrong" else KeyError("oh no")

    channel = Checked(dict, reduce, dict).from_checkpoint(MISSING)
    channel.key = "page"
    channel.update(["wrong", "strange"])
    assert [each.reason for each in refusals_in({"page": channel.get()})] == [
        "Page was left as it is. oh no",
        "KeyError: 'oh no'",
    ]
    with pytest.raises(PatchError, match="oh no"):
        channel.copy().update(["wrong"])
    with pytest.raises(InputError, match="page: KeyError: 'oh no'"):
        channel.copy().update(["strange"])


def test_whose_a_thread_is_its_first_turn_writes_and_nobody_afterwards():
    def owner(saved=MISSING):
        channel = Owner(list[str]).from_checkpoint(saved)
        channel.key = "campaign"
        return channel

    new = owner()
    with pytest.raises(InputError, match="its first turn writes"):
        new.copy().update([["bob", "tale"]])
    new.copy().update([Names(["ann", "tale"])])
    new.update([["bob", "tale"]])  # a run's command, which nothing can refuse
    new.update([Names(["ann", "tale"])])
    assert new.get() == ["ann", "tale"]
    assert type(new.get()) is list
    old = owner(["ann", "tale"])
    old.copy().update([["ann", "tale"]])
    with pytest.raises(InputError, match=r"got \['bob', 'tale'\], but this thread belongs to campaign 'tale' of 'ann'"):
        old.copy().update([["bob", "tale"]])
    old.update([["bob", "tale"]])
    assert old.get() == ["ann", "tale"]


def test_a_thread_keeps_its_machine_and_no_other_one_saves_anything():
    mine, other = Own("companion").from_checkpoint("companion"), Own("companion").from_checkpoint("desk")
    assert mine.update(["companion"]) is False
    assert mine.checkpoint() == "companion"
    assert other.update(["companion"]) is False
    assert other.get() == "desk"
    with pytest.raises(InputError, match="This thread belongs to desk, and companion cannot run on it"):
        other.checkpoint()
    new = Own("companion").from_checkpoint(MISSING)
    assert (new.update(["desk"]), new.is_available()) == (False, False)
    assert (new.update(["companion"]), new.checkpoint()) == (True, "companion")


def test_a_value_of_a_file_is_checked_as_its_channel_would():
    channels = {"machine": Own("companion"), "turn": Last(int), "campaign": Owner(list[str]), "log": Last(list, most=2)}
    for name, channel in channels.items():
        channel.key = name
    for name, value in (("machine", "companion"), ("turn", 5), ("campaign", ["ann", "tale"]), ("log", [1]), ("x", 5)):
        check_channel(channels, name, value)
    for name, value in (("machine", "desk"), ("turn", -5), ("campaign", ["ann", 5]), ("log", 5)):
        with pytest.raises(ValueError, match=name):
            check_channel(channels, name, value)
