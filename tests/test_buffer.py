"""The message buffer: whole turns stay and leave together."""

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from questbook.memory.buffer.turns import latest, overflow, spoken, turns_of


def turn(number, words=20, rolls=0):
    messages = [HumanMessage(f"player {number}")]
    for roll in range(rolls):
        call = {"name": "roll_dice", "args": {}, "id": f"{number}-{roll}"}
        messages += [AIMessage("", tool_calls=[call]), ToolMessage("12", tool_call_id=f"{number}-{roll}")]
    return [*messages, AIMessage("word " * words)]


def game(turns):
    return [message for number in range(1, turns + 1) for message in turn(number, rolls=number % 3)]


def test_turns_are_numbered_back_from_the_last():
    numbered = turns_of(game(4), 9)
    assert [number for number, _ in numbered] == [6, 7, 8, 9]
    assert numbered[0][1][0].text == "player 1"


def test_two_messages_of_the_player_open_one_turn():
    messages = [HumanMessage("wait"), HumanMessage("I look"), AIMessage("You see."), HumanMessage("go")]
    assert [len(messages) for _, messages in turns_of(messages, 2)] == [3, 1]


def test_what_stands_before_the_first_player_belongs_to_the_first_turn():
    messages = [AIMessage("Welcome."), HumanMessage("hi"), AIMessage("hello"), HumanMessage("go")]
    assert [len(messages) for _, messages in turns_of(messages, 2)] == [3, 1]


def test_spoken_leaves_out_the_machinery():
    player, reply = spoken(turn(7, words=2, rolls=2))
    assert (player, reply) == ("player 7", "word word ")


def test_calls_that_were_never_answered_and_what_is_left_of_them_are_left_out():
    half = AIMessage("I try.", tool_calls=[{"name": "roll_dice", "args": {}, "id": i} for i in ("a", "b")])
    messages = [HumanMessage("go"), half, ToolMessage("12", tool_call_id="a"), *turn(2, rolls=1)]
    kept = latest(messages, 10_000)
    assert [type(message) for message in kept][:3] == [HumanMessage, AIMessage, HumanMessage]
    assert kept[1].text == "I try."
    assert not kept[1].tool_calls
    assert sum(isinstance(message, ToolMessage) for message in kept) == 1


def test_nothing_leaves_while_the_buffer_fits():
    messages = game(5)
    assert overflow(messages, last_turn=5, budget=count_tokens_approximately(messages), may_leave=5) == []


def test_the_oldest_leave_first_and_make_room_for_more_than_one_turn():
    messages = game(20)
    budget = count_tokens_approximately(messages) - 1
    gone = overflow(messages, last_turn=20, budget=budget, may_leave=20)
    assert [number for number, _ in gone] == list(range(1, len(gone) + 1))
    rest = [m for number, t in turns_of(messages, 20) if number > len(gone) for m in t]
    assert count_tokens_approximately(rest) <= budget * 0.6


def test_nothing_leaves_before_it_is_noted():
    gone = overflow(game(20), last_turn=20, budget=200, may_leave=3)
    assert [number for number, _ in gone] == [1, 2, 3]
    assert overflow(game(20), last_turn=20, budget=200, may_leave=0) == []


def test_the_last_turn_never_leaves():
    gone = overflow(game(3), last_turn=3, budget=1, may_leave=3)
    assert [number for number, _ in gone] == [1, 2]
    assert latest(game(3), 1) == turns_of(game(3), 3)[-1][1]


@given(st.integers(1, 12), st.integers(1, 2000), st.integers(0, 12))
def test_tool_calls_never_part_from_their_results(turns, budget, may_leave):
    messages = game(turns)
    gone = [m for _, t in overflow(messages, last_turn=turns, budget=budget, may_leave=may_leave) for m in t]
    for part in (gone, messages[len(gone) :], latest(messages, budget)):
        called = {call["id"] for m in part if isinstance(m, AIMessage) for call in m.tool_calls}
        answered = {m.tool_call_id for m in part if isinstance(m, ToolMessage)}
        assert called == answered
    assert messages[: len(gone)] == gone
