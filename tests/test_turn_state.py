"""The state of a conversation in turns: what it reads of a thread, refuses of an edit, tells of its turns."""

from typing import ClassVar

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables.config import var_child_runnable_config
from scripted import call, say

from questbook import Notebook
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.errors import InputError
from questbook.graphs.turn.state import (
    MOST_REMEMBERED,
    RUNS,
    FactState,
    TurnState,
    failure_notice,
    notice,
    patches,
    reduce_messages,
    turn_of,
    within,
)
from questbook.notebooks.errors import NotebookError


@pytest.mark.parametrize(("most", "shown"), [
    (10, "abcdefghij"), (11, "abcdefghij"), (8, "abcdef … ij"), (9, "abcdefg … ij"), (3, "abc … "),
])  # fmt: skip
def test_of_a_text_that_is_too_long_three_quarters_are_its_beginning(most, shown):
    assert within("abcdefghij", most) == shown


def test_numbers_of_turns_that_lie_ahead_are_put_back_and_told():
    ahead = dict.fromkeys(("remembered_through", "summarised_through", "facts_through"), 9)
    state = FactState.model_validate({"turn": 3, "timeline": [["a", 3]], **ahead})
    assert {name: getattr(state, name) for name in ahead} == dict.fromkeys(ahead, 3) == state.mended
    assert sorted(reason for _, reason in state.refusals) == [
        f"{name}: got 9; expected at most 3, the current turn." for name in sorted(ahead)
    ]
    game = DungeonState.model_validate({"turn": 3, "timeline": [["a", 3]], "noted_through": 4})
    assert (game.noted_through, game.mended) == (3, {"noted_through": 3})
    fits = FactState.model_validate({"turn": 3, "timeline": [["a", 3]], **dict.fromkeys(ahead, 3)})
    assert (fits.refusals, fits.mended) == ([], {})


@pytest.mark.parametrize(("turn", "timeline", "read"), [(3, [["a", 5]], 5), (6, [["a", 2], ["b", 5]], 5), (3, [], 3)])
def test_a_turn_goes_with_the_timeline_and_of_a_thread_without_one_it_stays(turn, timeline, read):
    state = TurnState.model_validate({"turn": turn, "timeline": timeline})
    assert (state.turn, [channel for channel, _ in state.refusals]) == (read, ["turn"])
    with pytest.raises(InputError, match=f"turn: got {turn}, and a timeline that reaches"):
        state.check_edit(upkeep=True)


def test_an_edit_leaves_messages_where_a_turn_goes_on_with_them():
    begun = {"turn": 1, "timeline": [["a", 1]]}
    for state in (TurnState.model_validate(begun), TurnState()):
        with pytest.raises(InputError, match=r'messages: got none.* as_node="remember"'):
            state.check_edit(upkeep=False)
        state.check_edit(upkeep=True)
    TurnState.model_validate(begun | {"messages": [HumanMessage("Hi.")]}).check_edit(upkeep=False)


def asked_in(run, words, **channels):
    """The state as a server's run finds it that brings these words, and its mark."""
    before = var_child_runnable_config.set({"configurable": {"run_id": run}} if run else {})
    try:
        state = TurnState(messages=[HumanMessage(words, id="new")], **channels)
        return state.run_mark, state.is_repeated
    finally:
        var_child_runnable_config.reset(before)


def test_a_servers_run_is_repeated_if_it_has_opened_a_turn_with_these_words():
    mark, repeated = asked_in("run", "Hi.")
    assert (bool(mark), repeated) == (True, False)
    assert asked_in("run", "Hi.", opened_in=["other", mark], opened_by="old") == (mark, True)
    assert asked_in("run", "Hi.", opened_in=[mark], opened_by="new") == (mark, False), "the turn itself, run again"
    assert asked_in("run", "Ho.", opened_in=[mark], opened_by="old")[1] is False
    assert asked_in("next", "Hi.", opened_in=[mark], opened_by="old")[1] is False
    assert asked_in(None, "Hi.", opened_in=[mark], opened_by="old") == ("", False)
    runs = RUNS.from_checkpoint([])
    runs.update([[str(n)] for n in range(60)])
    assert runs.get() == [str(n) for n in range(10, 60)]


class SearchState(TurnState):
    REMEMBERED_TOOLS: ClassVar = frozenset({"look_up"})


def test_a_transcript_has_the_turns_that_were_asked_for_in_part_and_with_what_tools_found():
    found = [say("", call("look_up") | {"id": "c"}), ToolMessage("Seven.", tool_call_id="c", name="look_up")]
    messages = [HumanMessage("a" * MOST_REMEMBERED), AIMessage("b" * (MOST_REMEMBERED + 1)), HumanMessage("How many?")]
    messages += [*found, AIMessage("7."), HumanMessage("Hi."), AIMessage("Ho.")]
    state = SearchState(messages=messages, turn=5, timeline=[("a", 5)])
    assert [turn["turn"] for turn in state.transcript(1, 9)] == [3, 4, 5]
    assert [turn["turn"] for turn in state.transcript(4, 4)] == [4]
    [long] = state.transcript(3, 3)
    assert long["player"] == "a" * MOST_REMEMBERED
    assert long["reply"] == within("b" * (MOST_REMEMBERED + 1), MOST_REMEMBERED)
    assert "Seven." in state.transcript(4, 4)[0]["reply"]
    without = TurnState(messages=messages, turn=5, timeline=[("a", 5)])
    assert without.transcript(4, 5) == [
        {"turn": 4, "player": "How many?", "reply": "7."}, {"turn": 5, "player": "Hi.", "reply": "Ho."},
    ]  # fmt: skip
    assert (state.words, state.opener) == ("Hi.", "")
    assert (TurnState().words, TurnState().current_turn, TurnState().opener) == ("", [], "")


@pytest.mark.parametrize(("window", "tokens"), [
    ({}, 800), ({"model": "small", "tokens": 90}, 90), ({"model": "small", "tokens": 900}, 800),
    ({"model": "big", "tokens": 90}, 800), ({"model": "small"}, 800),
])  # fmt: skip
def test_a_window_that_was_too_small_holds_for_its_model_alone(window, tokens):
    assert TurnState(window=window).fit_tokens(800, "small") == tokens


class Box(Notebook):
    """A box."""

    LIMIT = 40
    SCOPE = "campaign"
    size: str = ""


class Own(Box):
    SCOPE = "thread"


class BoxState(TurnState):
    PAGES: ClassVar = {"box": Box, "own": Own}
    box: Box = Box(size="big")
    own: Own = Own(size="small")


def test_a_new_thread_takes_over_pages_of_the_campaign_the_line_and_the_summary():
    head = BoxState(line="left", summary="They walked on.").head_fields()
    assert head == {"box": {"version": 1, "size": "big"}, "line": "left", "summary": "They walked on."}
    assert TurnState(turn=1).has_past
    assert not TurnState().has_past


def test_a_page_takes_patches_up_to_its_limit_unless_several_write_it_at_once():
    long = {"size": "x" * 60}
    with pytest.raises(NotebookError):
        patches(Box).from_checkpoint({"size": "a"}).copy().update([long])
    channel = patches(Box, bounded=False).from_checkpoint({"size": "a"}).copy()
    channel.update([long])
    assert channel.get()["size"] == "x" * 60


def test_messages_are_added_without_what_no_model_takes_and_what_is_none_is_refused_with_the_reason():
    zwj, kept = "\u200d", "a\n\tb\u00a0c"
    human, ai = reduce_messages([], [HumanMessage(f"{kept}{zwj}\a\x1b\x7f\x85\0d"), AIMessage("a\ab\0c")])
    assert (human.text, ai.text) == (f"{kept}{zwj}\x85d", "a\abc")
    assert [message.text for message in reduce_messages([human], {"role": "user", "content": "Hi."})] == [
        human.text, "Hi.",
    ]  # fmt: skip
    [page_of_a_book] = reduce_messages([], [HumanMessage("Go north.\x0bThen\x0copen")])
    assert page_of_a_book.text == "Go north. Then open", "what separates words does so still"
    blocks = [{"type": "text", "text": "a\ab"}]
    assert reduce_messages([], HumanMessage(blocks))[0].content == blocks
    expected = 'expected messages such as {"role": "user", "content": "…"}. '
    for wrong in (5, [5], [{"role": "alien", "content": "x"}], [RemoveMessage("nobody")], [{"content": "x"}], None):
        with pytest.raises(InputError) as error:
            reduce_messages([human], wrong)
        before, _, reason = str(error.value).partition(expected)
        assert before == f"messages: got {wrong!r:.80}; "
        assert reason
        assert "\n" not in reason


def test_a_notice_says_what_it_means_and_beside_it_what_a_developer_reads(caplog):
    assert notice(3, "learn", "Not noted.") == {"turn": 3, "node": "learn", "text": "Not noted."}
    assert notice(3, "learn", "Not noted.", "why") == {
        "turn": 3,
        "node": "learn",
        "text": "Not noted.",
        "detail": "why",
    }
    failed = failure_notice(3, "learn", "Not noted.", OSError("The disk is full."))
    assert failed == {"turn": 3, "node": "learn", "text": "Not noted. The disk is full."}
    assert "Turn 3, learn: Not noted." in caplog.text
    assert turn_of(3, {"player": "Hi.", "rolls": [1]}) == {"turn": 3, "player": "Hi.", "reply": ""}
