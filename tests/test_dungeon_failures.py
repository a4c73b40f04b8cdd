"""A game whose store or model fails: what was said is kept, and the turn is taken up again."""

import pytest
from faulty_stores import Broken
from scripted import say, sections_of

from questbook.graphs.errors import ModelError, PastUnknownError


async def test_a_new_thread_does_not_begin_anew_because_the_store_is_down(game):
    game.keep_in(Broken())
    game.store.error = OSError("no connection")
    with pytest.raises(PastUnknownError, match="no connection"):
        await game.play("hello")
    assert game.values["messages"][-1].text == "hello"


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
    assert "\n<memories>\n" in sections_of(game.model.asked("quest")[-1])
