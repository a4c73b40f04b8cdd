"""Turns that the store could not take in time are written later as what they were: notes, place and day."""

import pytest
from faulty_stores import Refusing
from page_play import turn

from questbook import HashEmbeddings
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.provenance.retract import retract
from questbook.graphs.dungeon_master.provenance.why import visible_records, why
from questbook.graphs.history.history import History

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
    assert {turn: (one["location"], one["day"]) for turn, one in found.items()} == {
        1: ("The Bent Nail", 1),
        2: ("the cellar", 1),
        3: ("the roof", 2),
        4: ("the inn", 2),
    }
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


async def test_a_checkpoint_of_the_first_release_goes_on(game):
    await game.begin()
    await turn(game, "I dig", gold=700)
    state = game.app.get_state(game.config).values
    old = {"from": 2, "through": 2, "patch": {"gold": 700}}
    await game.app.aupdate_state(
        game.config, {"noted": old, "remembered_through": 1, "turn": state["turn"]}, as_node="update_state"
    )
    await game.app.ainvoke(None, game.config, context=game.settings, durability="sync")
    await turn(game, "I rest", gold=699)
    assert set(game.values["noted"]) == {"3"}
    game.args = (game.app, game.config, Context.of(game.settings))
    assert [one["noted"]["patch"].get("gold") for one in (await records(game)).values()][-1] == 699
