"""The computer's clock goes back between two sittings: the order of turns stays, and a notice says it."""

import time
from datetime import UTC, datetime

import pytest
from langgraph.checkpoint.base import id as checkpoint_ids
from threads import history

from questbook.graphs.local.homes import find_home
from questbook.graphs.turn.clock import keep_ids_after, time_of

HOUR = 3600


@pytest.fixture
def restart(monkeypatch):
    """Start "another process", whose clock is so many seconds ahead."""
    real = time.time_ns

    def at(ahead):
        monkeypatch.setattr(time, "time_ns", lambda: real() + int(ahead * 1e9))
        monkeypatch.setattr(checkpoint_ids, "_last_v6_timestamp", None)

    return at


async def sit_down(game, *words):
    """Play in a sitting of its own, on the files of the data directory."""
    async with find_home().open_checkpointer() as game.saver, find_home().open_store("hash") as store:
        game.keep_in(store)
        if not (await game.app.aget_state(game.config)).values:
            await game.begin()
        for said in words:
            await game.play(said)
        return (await game.app.aget_state(game.config)).values


@pytest.mark.parametrize("ahead", [30, 2 * HOUR, 365 * 24 * HOUR], ids=["30 s", "2 h", "a year"])
@pytest.mark.slow
async def test_turns_after_the_clock_went_back_follow_those_before(game, restart, ahead):
    restart(ahead)
    await sit_down(game, "I look around", "I wait")
    restart(0)
    values = await sit_down(game, "I go on")
    assert values["turn"] == 4
    assert "I wait" in [message.text for message in values["messages"]]
    restart(0)
    values = await sit_down(game, "And on")
    assert values["turn"] == 5
    told = [notice["text"] for notice in values["notices"] if notice["node"] == "clock"]
    assert len(told) == 1, "it is told once"
    assert "clock went back" in told[0]
    restart(0)
    async with find_home().open_checkpointer() as game.saver, find_home().open_store("hash") as store:
        game.keep_in(store)
        back = await history(game).undo()
        assert back.values["turn"] == 4, "a fork from an older checkpoint becomes the newest one"
        assert (await game.app.aget_state(game.config)).values["turn"] == 4
        items = await store.asearch(("adventurer", "default", "exchanges"), limit=20)
        told_at = [datetime.fromisoformat(item.value["said_at"]) for item in items if item.value["turn"] > 3]
        assert all(abs((datetime.now(UTC) - then).total_seconds()) < 60 for then in told_at)


async def test_two_processes_on_one_thread_when_the_clock_goes_back(game, restart, monkeypatch):
    """One that has run since before that, and made no id meanwhile, goes on from the other's turns."""
    restart(2 * HOUR)
    await sit_down(game)
    own = checkpoint_ids._last_v6_timestamp
    await sit_down(game, "The other process plays")
    restart(0)
    monkeypatch.setattr(checkpoint_ids, "_last_v6_timestamp", own)
    assert (await sit_down(game, "This one plays"))["turn"] == 3


async def test_a_clock_that_goes_on_is_not_worth_a_word(game, restart):
    restart(0)
    await sit_down(game, "I look around")
    restart(0)
    assert [n for n in (await sit_down(game, "I go on"))["notices"] if n["node"] == "clock"] == []


def test_ids_only_grow(restart):
    restart(0)
    ahead = "3f20de00-0000-6000-8000-000000000000"
    keep_ids_after(ahead)
    keep_ids_after("no id at all")
    keep_ids_after("1b20de00-0000-6000-8000-000000000000")
    ids = [str(checkpoint_ids.uuid6(clock_seq=n)) for n in range(3)]
    assert [ahead, *ids] == sorted([ahead, *ids])
    assert time_of(ids[0]).year > 2100
    assert time_of("") is None
