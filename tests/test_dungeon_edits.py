"""What people edit by hand in a game's state: it counts if it can be read again, else nothing changes."""

import uuid

import pytest
from langchain_core.messages import RemoveMessage
from scripted import say, sections_of

from questbook import PatchError


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


async def test_a_page_may_be_edited_by_a_person_and_is_checked(game):
    await game.begin()
    await game.app.aupdate_state(game.config, {"quest": {"inventory": {"silver key": 1}}})
    await game.play("I look in my bag")
    assert "silver key" in sections_of(game.model.asked("quest")[-1])
    with pytest.raises(PatchError, match=r"gold: got 'much'"):
        await game.app.aupdate_state(game.config, {"quest": {"gold": "much"}})
    assert game.values["quest"]["inventory"]["silver key"] == 1
    await game.app.aupdate_state(game.config, {"character": {"goal": None}})
    game.model.queue("interview", say("What do you want now?"))
    await game.play("I have changed")
    assert game.reply == "What do you want now?", "without a goal the interview goes on"


async def test_removing_a_message_by_hand_works(game):
    await game.begin()
    last = game.values["messages"][-1]
    await game.app.aupdate_state(game.config, {"messages": [RemoveMessage(last.id)]})
    assert last.id not in [m.id for m in game.values["messages"]]
    assert uuid.UUID(game.config["configurable"]["thread_id"])
