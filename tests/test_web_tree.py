"""The page's tree of lines: rows that a reader can tell apart."""

from types import SimpleNamespace

from questbook.graphs.history.tree import PlayedTurn
from questbook.graphs.web.tree import rows_of


def played(branch, turn, player, reply, after=None, line="main"):
    return PlayedTurn(branch, turn, after, line, player, reply, "", "", "", f"{turn}{branch}")


async def rows(turns, current):
    async def say(value):
        return value

    history = SimpleNamespace(current_turn=lambda: say(current), turns=lambda: say(turns))
    return await rows_of(SimpleNamespace(saved_game=lambda: say(object()), history=lambda: say(history)))


async def test_ways_of_telling_the_same_words_are_told_apart_by_their_replies():
    quay = played("a", 1, "I go to the quay.", "Gulls.")
    fall, climb = (
        played(branch, 2, "I climb.", reply, "a") for branch, reply in (("a", "You fall."), ("b", "You climb."))
    )
    trunk, fork = await rows([quay, fall, climb], ("a", 2))
    assert (trunk.title, fork.title) == ("turn 2 of main: I go to the quay.", "turn 2: You climb.")
    leave = played("c", 2, "I leave.", "You leave.", "a", "the road")
    _, fork = await rows([quay, fall, leave], ("a", 2))
    assert fork.title == "turn 2 of the road: I leave."


async def test_a_stretch_on_two_lines_has_both_names():
    turns = [played("a", 1, "Hello.", "Hello."), played("a", 2, "I dive.", "Wet.", "a", "the cave")]
    (row,) = await rows(turns, ("a", 2))
    assert row.name == "main → the cave"
