"""The message buffer: whole turns stay and leave together."""

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from questbook.memory.buffer.turns import latest_messages, overflow, split_turns, turn_text


def turn(number, words=20, rolls=0):
    messages = [HumanMessage(f"player {number}")]
    for roll in range(rolls):
        call = {"name": "roll_dice", "args": {}, "id": f"{number}-{roll}"}
        messages += [AIMessage("", tool_calls=[call]), ToolMessage("12", tool_call_id=f"{number}-{roll}")]
    return [*messages, AIMessage("word " * words)]


def game(turns):
    return [message for number in range(1, turns + 1) for message in turn(number, rolls=number % 3)]


def test_turns_are_numbered_back_from_the_last():
    numbered = split_turns(game(4), 9)
    assert [number for number, _ in numbered] == [6, 7, 8, 9]
    assert numbered[0][1][0].text == "player 1"


def test_two_messages_of_the_player_open_one_turn():
    messages = [HumanMessage("wait"), HumanMessage("I look"), AIMessage("You see."), HumanMessage("go")]
    assert [len(messages) for _, messages in split_turns(messages, 2)] == [3, 1]


def test_what_comes_before_the_first_player_belongs_to_the_first_turn():
    messages = [AIMessage("Welcome."), HumanMessage("hi"), AIMessage("hello"), HumanMessage("go")]
    assert [len(messages) for _, messages in split_turns(messages, 2)] == [3, 1]


def test_each_message_of_a_reply_is_a_paragraph():
    messages = [HumanMessage("I am ready."), AIMessage("The page is full."), AIMessage("Gullhaven smells of tar.")]
    assert turn_text(messages).reply == "The page is full.\n\nGullhaven smells of tar."


def test_turn_text_leaves_out_tool_calls():
    player, reply = turn_text(turn(7, words=2, rolls=2))
    assert (player, reply) == ("player 7", "word word ")


def test_calls_that_were_never_answered_and_what_is_left_of_them_are_left_out():
    half = AIMessage("I try.", tool_calls=[{"name": "roll_dice", "args": {}, "id": i} for i in ("a", "b")])
    messages = [HumanMessage("go"), half, ToolMessage("12", tool_call_id="a"), *turn(2, rolls=1)]
    kept = latest_messages(messages, 10_000)
    assert [type(message) for message in kept][:3] == [HumanMessage, AIMessage, HumanMessage]
    assert kept[1].text == "I try."
    assert not kept[1].tool_calls
    assert sum(isinstance(message, ToolMessage) for message in kept) == 1


def overflowing(messages, budget):
    return [turn.number for turn in overflow(split_turns(messages, 20), budget)]


def test_nothing_leaves_while_the_buffer_fits():
    messages = game(20)
    assert overflowing(messages, count_tokens_approximately(messages)) == []


def test_the_oldest_turns_leave_in_batches():
    messages = game(20)
    budget = count_tokens_approximately(messages) - 1
    gone = overflowing(messages, budget)
    assert gone == list(range(1, len(gone) + 1))
    rest = [m for turn in split_turns(messages, 20) if turn.number > len(gone) for m in turn.messages]
    assert count_tokens_approximately(rest) <= budget * 0.6
    more = [m for turn in split_turns(messages, 20) if turn.number >= len(gone) for m in turn.messages]
    assert count_tokens_approximately(more) > budget * 0.6, "no turn leaves for nothing"


def test_the_last_turn_never_leaves():
    assert overflowing(game(20), 1) == list(range(1, 20))
    assert latest_messages(game(3), 1) == split_turns(game(3), 3)[-1].messages


def test_the_latest_messages_are_the_whole_turns_that_fit():
    last_two = [m for turn in split_turns(game(4), 4)[-2:] for m in turn.messages]
    tokens = count_tokens_approximately(last_two)
    assert latest_messages(game(4), tokens) == last_two
    assert latest_messages(game(4), tokens - 1) == split_turns(game(4), 4)[-1].messages


@given(st.integers(1, 12), st.integers(1, 2000))
def test_tool_calls_never_part_from_their_results(turns, budget):
    messages = game(turns)
    gone = [m for turn in overflow(split_turns(messages, turns), budget) for m in turn.messages]
    for part in (gone, messages[len(gone) :], latest_messages(messages, budget)):
        called = {call["id"] for m in part if isinstance(m, AIMessage) for call in m.tool_calls}
        answered = {m.tool_call_id for m in part if isinstance(m, ToolMessage)}
        assert called == answered
    assert messages[: len(gone)] == gone
