"""The buffer: what is in the prompt word for word, what is folded, how turns are split, and the running summary."""

import asyncio
import re

import pytest
from conftest import EXCHANGES
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.runtime import Runtime
from scripted import say, sections_of, words_of

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import ModelError, SettingsError
from questbook.graphs.settings import Settings
from questbook.graphs.turn.buffer import (
    ModelSummarizer,
    condense,
    conversation,
    eviction,
    fold,
    policy_of,
    summary_prompt,
)
from questbook.graphs.turn.prompt import Section, stack
from questbook.graphs.turn.state import TurnState
from questbook.memory.buffer.policies import (
    ASIDE,
    Buffer,
    LastTurns,
    RunningSummary,
    TokenBudget,
    Unbounded,
    latest_messages,
    overflow,
    split_turns,
    turn_text,
    with_number,
)
from questbook.memory.buffer.summary import ExtractiveSummarizer, append_extract, clip_summary, extend_summary, extract


def talk(turns, open_turn=True):
    messages = []
    for number in range(1, turns + 1):
        messages.append(HumanMessage(f"question {number}", id=f"q{number}"))
        if number < turns or not open_turn:
            messages.append(AIMessage(f"answer {number}", id=f"a{number}"))
    return messages


def numbers(messages):
    return [int(m.text.split()[-1]) for m in messages if isinstance(m, HumanMessage)]


def test_unbounded_shows_every_turn_and_lets_none_leave():
    messages = talk(50)
    assert Unbounded().select(Buffer(messages, last_turn=50)) == messages
    assert not Unbounded().evict(Buffer(talk(50, open_turn=False), last_turn=50, stored_through=50))


def test_a_buffer_of_one_no_longer_knows_the_first_question_at_the_third():
    policy = LastTurns(1)
    assert numbers(policy.select(Buffer(talk(2), last_turn=2))) == [1, 2]
    assert numbers(policy.select(Buffer(talk(3), last_turn=3))) == [2, 3]
    assert numbers(LastTurns(0).select(Buffer(talk(3), last_turn=3))) == [3]


def test_last_turns_drops_what_no_later_prompt_holds_and_folds_nothing():
    eviction = LastTurns(2).evict(Buffer(talk(5, open_turn=False), last_turn=5, stored_through=5))
    assert eviction.fold == []
    assert [number for number, _ in eviction.drop] == [1, 2, 3]
    assert [n for n, _ in LastTurns(2).evict(Buffer(talk(5, False), last_turn=5, stored_through=1)).drop] == [1]
    assert [n for n, _ in LastTurns(0).evict(Buffer(talk(5, False), last_turn=5, stored_through=5)).drop] == [
        *range(1, 5)
    ]


@pytest.mark.parametrize(("offset", "folded"), [(0, 5), (1, 4), (3, 2), (5, 0), (9, 0)])
def test_summary_folds_the_first_steps_less_the_offset(offset, folded):
    policy = RunningSummary(offset, ExtractiveSummarizer())
    eviction = policy.evict(Buffer(talk(5, open_turn=False), last_turn=5, stored_through=5))
    assert [number for number, _ in eviction.fold] == list(range(1, folded + 1))
    # The next question sees the rest word for word.
    assert numbers(policy.select(Buffer(talk(6), last_turn=6, summarised_through=folded))) == list(range(folded + 1, 7))


def test_summary_folds_progressively_one_turn_after_each_reply():
    policy, folded, done = RunningSummary(2), 0, []
    messages = []
    for number in range(1, 8):
        messages += talk(number, open_turn=False)[-2:]
        eviction = policy.evict(Buffer(messages, last_turn=number, summarised_through=folded, stored_through=number))
        done.append([turn for turn, _ in eviction.fold])
        folded = eviction.fold[-1][0] if eviction.fold else folded
        gone = {m.id for _, turn in eviction.drop for m in turn}
        messages = [m for m in messages if m.id not in gone]
    assert done == [[], [], [1], [2], [3], [4], [5]]
    assert numbers(messages) == [6, 7]


def test_a_turn_that_is_folded_at_once_stays_for_people_but_not_in_the_prompt():
    policy = RunningSummary(0)
    eviction = policy.evict(Buffer(talk(1, open_turn=False), last_turn=1, stored_through=1))
    assert ([n for n, _ in eviction.fold], eviction.drop) == ([1], [])
    eviction = policy.evict(Buffer(talk(2, open_turn=False), last_turn=2, summarised_through=1, stored_through=2))
    assert ([n for n, _ in eviction.fold], [n for n, _ in eviction.drop]) == ([2], [1])
    assert numbers(policy.select(Buffer(talk(3)[2:], last_turn=3, summarised_through=2))) == [3]


def test_nothing_is_folded_or_dropped_before_it_is_stored():
    messages = talk(5, open_turn=False)
    for policy in (RunningSummary(0), LastTurns(1), TokenBudget(1)):
        assert not policy.evict(Buffer(messages, last_turn=5, stored_through=0))
        assert [turn.number for turn in policy.evict(Buffer(messages, last_turn=5, stored_through=2)).drop] == [1, 2]


def test_the_token_budget_folds_what_leaves_and_shrinks_to_six_tenths_once_it_is_passed():
    messages = talk(9, open_turn=False)
    tokens = count_tokens_approximately(messages)
    buffer = Buffer(messages, last_turn=9, stored_through=9, summarised_through=1)
    assert not TokenBudget(tokens).evict(buffer)
    eviction = TokenBudget(tokens - 1).evict(buffer)
    assert [turn.number for turn in eviction.drop] == [1, 2, 3, 4]
    assert [turn.number for turn in eviction.fold] == [2, 3, 4]
    assert TokenBudget(tokens - 1, None).evict(buffer).fold == []
    assert numbers(TokenBudget(tokens // 2).select(buffer)) == [6, 7, 8, 9]


@given(st.integers(1, 10), st.integers(0, 10), st.integers(0, 10))
def test_whatever_the_policy_the_present_turn_is_shown_whole_and_order_is_kept(turns, folded, size):
    messages = [AIMessage("recap", name=ASIDE), *talk(turns)]
    for policy in (Unbounded(), LastTurns(size), TokenBudget(size + 1), RunningSummary(size)):
        shown = policy.select(Buffer(messages, last_turn=turns, summarised_through=folded))
        assert shown[-1] is messages[-1]
        assert shown == [m for m in messages if m in shown]
        assert all(m.name != ASIDE for m in shown)


def test_settings_name_the_policy_and_the_summarizer(monkeypatch):
    assert policy_of(Context.of(), "").select(Buffer([], last_turn=0)) == []
    assert isinstance(policy_of(Context.of(), "sum up"), TokenBudget)
    assert policy_of(Context.of({"buffer": "turns", "buffer_turns": 3}), "") == LastTurns(3)
    assert isinstance(policy_of(Context.of({"buffer": "unbounded"}), ""), Unbounded)
    monkeypatch.setenv("QUESTBOOK_BUFFER", "summary")
    monkeypatch.setenv("QUESTBOOK_SUMMARIZER", "extractive")
    policy = policy_of(Context.of({"summary_offset": 4}), "")
    assert isinstance(policy, RunningSummary)
    assert policy.offset == 4
    assert isinstance(policy.summarizer, ExtractiveSummarizer)
    with pytest.raises(SettingsError, match=r"buffer \(QUESTBOOK_BUFFER\): got 'all'"):
        Context.of({"buffer": "all"})


async def play(game, turns):
    await game.begin()
    for number in range(2, turns + 1):
        game.model.queue("quest", say(f"Answer {number}. More of it."))
        await game.play(f"question {number}")


async def test_last_turns_in_the_game_needs_no_summary_and_keeps_what_left_in_the_store(new_game):
    game = new_game(buffer="turns", buffer_turns=1)
    await play(game, 5)
    assert game.model.asked("condense") == []
    assert numbers([m for m in game.values["messages"] if m.text.startswith("question")]) == [5]
    *_, prompt = game.model.asked("quest")
    assert words_of(prompt) == ["question 4", "question 5"]
    assert game.values.get("summary", "") == ""
    kept = await game.store.asearch(EXCHANGES, limit=50)
    assert len(kept) == 5


async def test_summary_in_the_game_folds_after_each_reply(new_game):
    game = new_game(buffer="summary", summary_offset=0)
    await play(game, 4)
    assert len(game.model.asked("condense")) == 4
    assert game.values["summarised_through"] == 4
    assert game.values["summary"] == "They walked on."
    *_, prompt = game.model.asked("quest")
    assert words_of(prompt) == ["question 4"]
    assert "They walked on." in prompt[0].text
    assert game.reply == "Answer 4. More of it.", "the last turn stays for people"


async def test_extractive_summaries_ask_no_model(new_game):
    game = new_game(buffer="summary", summary_offset=1, summarizer="extractive")
    await play(game, 4)
    assert game.model.asked("condense") == []
    assert "question 3. Answer 3. " not in game.values["summary"]
    assert "question 2.” Answer 2." in game.values["summary"], "what the person said is quoted"
    assert game.values["notices"] == []


async def test_a_summarizer_that_fails_is_replaced_and_told(new_game):
    game = new_game(buffer="summary", summary_offset=0)
    await game.begin()
    game.model.queue("quest", say("Answer 2. More of it."))
    game.model.queue("condense", RuntimeError("503"))
    await game.play("question 2")
    assert "Answer 2." in game.values["summary"]
    assert game.values["notices"][-1]["node"] == "condense"


async def test_fidelity_is_told_with_each_prompt(new_game):
    game = new_game(buffer="turns", buffer_turns=2)
    await play(game, 5)
    stream = game.app.astream(
        {"messages": [HumanMessage("question 6")]}, game.config, context=game.settings, stream_mode="custom"
    )
    told = [part async for part in stream if part.get("node") == "run_quest"]
    assert told[-1]["fidelity"] == {"turns": 2, "of": 5}


SECTIONS = [Section("instructions", "Be kind."), Section("quest", "q"), Section("summary", "s"), Section("empty", "")]


def names(prompt):
    return [section.name for section in prompt.sections], [section.name for section in prompt.behind]


def test_the_order_of_the_stack_is_a_setting():
    talk_so_far = talk(1)
    plain = stack(SECTIONS, talk_so_far, Context.of())
    assert names(plain) == (["instructions", "quest", "summary"], [])
    assert len(plain.messages) == 2
    order = ["summary", "instructions", "messages", "quest"]
    turned = stack(SECTIONS, talk_so_far, Context.of({"prompt_order": order}))
    assert names(turned) == (["summary", "instructions"], ["quest"])
    assert [m.type for m in turned.messages] == ["system", "human"]
    assert turned.messages[1].text == "<quest>\nq\n</quest>\n\n<message>\nquestion 1\n</message>"
    assert turned.messages[0].text == "<summary>\ns\n</summary>\n\nBe kind."
    assert [part["section"] for part in turned.report("x", 3)["prompt"]] == order


def test_sections_can_be_added_before_and_after_the_instructions_at_run_time():
    extra = {"house": {"text": "House rules.", "place": "before"}, "mood": {"text": "Gloomy."}}
    prompt = stack(SECTIONS, talk(1), Context.of({"prompt_sections": extra}))
    assert names(prompt)[0] == ["house", "instructions", "mood", "quest", "summary"]
    with pytest.raises(SettingsError, match="a section 'quest' already"):
        stack(SECTIONS, [], Context.of({"prompt_sections": {"quest": {"text": "x"}}}))


async def test_an_added_section_reaches_the_model_and_may_change_from_turn_to_turn(game):
    await game.begin()
    await game.play("look", prompt_sections={"mood": {"text": "Gloomy."}})
    assert "<mood>\nGloomy.\n</mood>" in sections_of(game.model.asked("quest")[-1])
    await game.play("look")
    assert "mood" not in sections_of(game.model.asked("quest")[-1])


def test_the_environment_gives_the_stack_as_json(monkeypatch):
    monkeypatch.setenv("QUESTBOOK_PROMPT_ORDER", '["summary"]')
    assert Context.of().prompt_order == ("summary",)
    monkeypatch.setenv("QUESTBOOK_PROMPT_ORDER", "[summary")
    with pytest.raises(SettingsError, match="QUESTBOOK_PROMPT_ORDER"):
        Context.of()


@pytest.mark.parametrize(
    ("summary", "tokens", "clipped"),
    [
        (" One.\nTwo. ", 100, "One. Two."),
        ("x" * 500, 10, "x" * 39 + "…"),
        ("A sentence. " * 40, 30, "A sentence. " * 9 + "A sentence."),
    ],
)
def test_a_long_summary_ends_with_a_sentence_or_an_ellipsis(summary, tokens, clipped):
    assert clip_summary(summary, tokens) == clipped


REPLY = "He tells of the heron. It flew.  More."


def test_extraction_keeps_the_first_sentences_of_a_reply_and_what_was_noted():
    turn = {"player": "I ask Goran. Twice.", "reply": REPLY, "facts": ["The heron is grey."]}
    assert extract(turn, quote=False) == ["He tells of the heron.", "It flew.", "The heron is grey."]
    assert extend_summary("Mira came.", extract(turn, quote=False)[:1], 100) == "Mira came. He tells of the heron."


@pytest.mark.parametrize(
    ("player", "quotation"),
    [
        ("I ask Goran. Twice.", "The person: “I ask Goran.”"),
        ("Who is there?", "The person: “Who is there?”"),
        ('I say "I go"\nand go', "The person: “I say 'I go' and go.”"),
        ("x" * 900, "The person: “" + "x" * 199 + "…”"),
    ],
)
def test_a_person_is_quoted_one_sentence_that_cannot_end_the_quotation(player, quotation):
    said, *reply = extract({"player": player, "reply": REPLY})
    assert said == quotation
    assert reply == ["He tells of the heron.", "It flew."]
    again = extend_summary(extend_summary("", [said, *reply], 1000), ["New."], 1000)
    assert again.startswith(quotation), "a later extract does not cut it"


def test_nothing_is_put_together_of_a_persons_marks():
    turns = [{"player": player, "reply": "Yes."} for player in ("Who?", "I go.", "So!", "", "…")]
    text = extend_summary("", [sentence for turn in turns for sentence in extract(turn)], 1000)
    assert not re.search(r"[.?!…][.]|^ |  ", text), text


def test_a_summary_that_a_model_wrote_stays_before_an_extract():
    summary = "Mira seeks her sister. " * 8 + "She owes Goran ten crowns."
    sentences = [f"Deed {n} is done." for n in range(50)]
    longer = append_extract(summary, sentences, 60)
    assert longer.startswith(summary)
    assert longer.endswith("Deed 49 is done.")
    again = append_extract(longer, ["Last deed."], 60)
    assert again.startswith(summary)
    assert again.endswith("Deed 49 is done. Last deed.")
    assert len(again) <= 2 * 60 * 4 + 1


def test_the_oldest_make_way_for_the_newest():
    passages = [f"Deed {n} is done." for n in range(50)]
    summary = extend_summary("Long ago it began.", passages, 30)
    assert "Deed 49" in summary
    assert "Long ago" not in summary
    assert len(summary) <= 120


@settings(max_examples=15)
@given(st.text(max_size=300), st.lists(st.text(max_size=300), max_size=5), st.integers(5, 100))
def test_it_never_passes_its_budget(old, passages, tokens):
    assert len(extend_summary(old, passages, tokens)) <= tokens * 4
    assert len(clip_summary(old, tokens)) <= tokens * 4
    assert len(append_extract(old, passages, tokens)) <= tokens * 8 + 1


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


@pytest.mark.parametrize(
    "messages",
    [
        [HumanMessage("wait"), HumanMessage("I look"), AIMessage("You see."), HumanMessage("go")],
        [AIMessage("Welcome."), HumanMessage("hi"), AIMessage("hello"), HumanMessage("go")],
    ],
)
def test_messages_in_a_row_open_one_turn_and_what_comes_before_belongs_to_the_first(messages):
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


def test_the_oldest_turns_leave_in_batches():
    messages = game(20)
    budget = count_tokens_approximately(messages) - 1
    assert overflowing(messages, budget + 1) == []
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


@pytest.mark.parametrize(
    ("player", "quotation"),
    [
        ('I say "I go."', "The person: “I say 'I go.'”"), ("I say ‘Who?’", "The person: “I say ‘Who?’”"),
        ("I say “Ho!”", "The person: “I say ‘Ho!’”"), ("I go", "The person: “I go.”"), ("I go…", "The person: “I go…”"),
        ("x" * 200, "The person: “" + "x" * 200 + ".”"),
        ("x" * 201, "The person: “" + "x" * 199 + "…”"),
        ("I\n go.  Now.", "The person: “I go.”"),
    ],
)  # fmt: skip
def test_a_quotation_ends_with_one_mark(player, quotation):
    assert extract({"player": player, "reply": ""}) == [quotation]


@pytest.mark.parametrize("mark", ".!?…")
def test_a_summary_is_cut_behind_any_mark_of_a_sentence(mark):
    assert clip_summary(f"A heron flew{mark} It came back later in the evening", 5) == f"A heron flew{mark}"
    early = clip_summary(f"A{mark} heron flew and it came back later", 5)
    assert early == f"A{mark} heron flew and i…", "not in the first half"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: LastTurns(-1), "LastTurns.turns: got -1"), (lambda: LastTurns(1.5), "LastTurns.turns"),
        (lambda: TokenBudget(-1), "TokenBudget.tokens: got -1"), (lambda: TokenBudget(9, keep=1.1), "TokenBudget.keep"),
        (lambda: TokenBudget(9, keep=-0.1), "TokenBudget.keep"),
        (lambda: RunningSummary(-1), "RunningSummary.offset: got -1"),
        (lambda: RunningSummary(1, None), "RunningSummary.summarizer: got None; expected an object with"),
        (lambda: RunningSummary(1, ExtractiveSummarizer), "RunningSummary.summarizer: got"),
        (lambda: TokenBudget(9, "x"), "TokenBudget.summarizer: got 'x'"),
    ],
    ids=range(9),
)  # fmt: skip
def test_a_policy_that_makes_no_sense_is_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_a_token_budget_without_a_summarizer_folds_nothing_and_what_is_folded_is_not_folded_again():
    messages = talk(30, open_turn=False)
    buffer = Buffer(messages, last_turn=30, summarised_through=3, stored_through=20)
    folded, dropped = TokenBudget(60).evict(buffer)
    assert [number for number, _ in dropped] == list(range(1, 21))
    assert [number for number, _ in folded] == list(range(4, 21))
    assert TokenBudget(60, None).evict(buffer).fold == []
    assert [number for number, _ in TokenBudget(60, None).evict(buffer).drop] == list(range(1, 21))


def test_of_a_summary_that_was_cut_within_a_sentence_nothing_stays_behind_the_cut():
    assert append_extract("x" * 50, ["New one."], 10) == f"{'x' * 39}… New one."


def test_a_mark_of_a_later_turn_than_may_be_is_passed_over():
    turns = split_turns(talk(2, open_turn=False), 5)
    for mark, numbered in ((2, [2, 5]), (4, [4, 5]), (9, [4, 5])):
        marked = with_number(turns[0]._replace(number=mark))
        messages = [marked, *turns[0].messages[1:], *turns[1].messages]
        assert [turn.number for turn in split_turns(messages, 5)] == numbered


def test_what_only_repeats_what_is_known_is_no_part_of_a_reply():
    recap = AIMessage("You were at the mill.", name=ASIDE)
    assert turn_text([HumanMessage("Hi."), recap, AIMessage("Hello."), AIMessage(" ")]) == ("Hi.", "Hello.")


def test_blank_sentences_take_no_room_in_a_summary():
    assert extend_summary("", [" ", "A.", "", "B."], 10) == "A. B."


def test_how_far_a_token_budget_shrinks_is_said_by_its_share():
    buffer = Buffer(talk(30, open_turn=False), last_turn=30, stored_through=30)
    dropped = [len(TokenBudget(300, keep=keep).evict(buffer).drop) for keep in (0.2, 0.6, 1)]
    assert dropped[0] > dropped[1] > dropped[2] > 0


# The buffer of a state, and folding by itself


def talked(count, **channels):
    """The state after so many turns of about 27 tokens each, all remembered."""
    pairs = [(HumanMessage(f"word {n} " * 8, id=f"h{n}"), AIMessage(f"Well {n}. Yes. So.", id=f"a{n}"))
             for n in range(1, count + 1)]  # fmt: skip
    messages = [message for pair in pairs for message in pair]
    values = {"messages": messages, "turn": count, "timeline": [("a", count)], "remembered_through": count}
    return TurnState(**values | channels)


def test_the_prompt_has_no_more_of_the_conversation_than_fits_the_models_window():
    limits = Settings.of({"model": "small", "buffer": "unbounded"})
    assert conversation(talked(6), limits) == talked(6).messages
    window = {"model": "small", "tokens": 70}
    assert [message.id for message in conversation(talked(6, window=window), limits)] == ["h5", "a5", "h6", "a6"]
    assert len(conversation(talked(6, window=window), limits.model_copy(update={"model": "big"}))) == 12


def test_turns_leave_earlier_where_the_window_is_small_and_never_before_they_are_remembered():
    limits = Settings.of({"model": "small", "buffer_tokens": 5_000})
    assert not eviction(talked(9), limits)
    folded, dropped = eviction(talked(9, window={"model": "small", "tokens": 100}), limits)
    assert len(folded) == len(dropped) > 4
    for through in (0, 2):
        state = talked(9, window={"model": "small", "tokens": 100}, remembered_through=through)
        assert [number for number, _ in eviction(state, limits)[1]] == [1, 2][:through]


class Telling:
    """A summarizer that gives its answer, or fails."""

    def __init__(self, answer=None, error=None):
        self.answer, self.error, self.asked = answer, error, []

    async def fold(self, summary, turns, tokens):
        self.asked.append((summary, [turn["turn"] for turn in turns], tokens))
        if self.error:
            raise self.error
        if self.answer is None:
            await asyncio.sleep(60)
        return self.answer


TOLD = [{"turn": n, "player": "I ask.", "reply": f"Goran says {n}. He nods."} for n in (1, 2)]


@pytest.mark.parametrize(("error", "reason"), [
    (ModelError("It is down."), "It is down."), (TimeoutError(), "no answer within 1 seconds"),
])  # fmt: skip
async def test_a_summary_that_fails_is_made_of_sentences_and_of_what_was_noted(error, reason):
    limits = Settings.of({"update_timeout": 1, "summary_tokens": 200})
    teller = Telling("They met Goran.")
    assert await fold("Old.", TOLD, limits, teller) == ("They met Goran.", "")
    assert teller.asked == [("Old.", [1, 2], 200)]

    async def noted():
        return {2: ["Goran owns a mill."]}

    async def broken():
        raise OSError("The disk is gone.")

    summary, said = await fold("Old.", TOLD, limits, Telling(error=error), noted)
    assert said == f"Older turns were summarised by taking sentences from them, not by the model. {reason}"
    assert summary.startswith("Old.")
    assert [part in summary for part in ("Goran says 1.", "Goran says 2.", "Goran owns a mill.")] == [True] * 3
    for read in (broken, None):
        summary, said = await fold("Old.", TOLD, limits, Telling(error=error), read)
        assert "Goran says 2." in summary
        assert "mill" not in summary
        assert reason in said


async def test_a_summary_that_hangs_ends_with_the_time_that_upkeep_has():
    limits = Settings.of({}).model_copy(update={"update_timeout": 0.01})
    summary, said = await fold("Old.", TOLD, limits, Telling())
    assert "no answer within 0.01 seconds" in said
    assert "Goran says 1." in summary


def test_a_model_is_told_how_many_words_it_has_and_a_summary_cannot_close_its_section():
    for tokens, words in ((400, 240), (60, 40), (0, 40)):
        system, asked = summary_prompt("</summary>", TOLD, tokens, "At most {words} words.")
        assert system.text == f"At most {words} words.\n\n<summary>\n&lt;/summary&gt;\n</summary>"
        assert '"reply": "Goran says 2. He nods."' in asked.text


async def test_a_summary_of_a_model_is_cut_to_its_tokens(model):
    model.queue("condense", say("They walk on. " * 99))
    summary = await ModelSummarizer(Settings.of({"model": "scripted"}), "At most {words} words.").fold("", TOLD, 50)
    assert summary.startswith("They walk on. They walk on.")
    assert len(summary) <= 4 * 50


async def test_what_is_private_leaves_without_a_word_and_what_is_folded_is_told(model):
    state = talked(3)
    state.messages[0] = HumanMessage("Don't remember this: 4711.", id="h1")
    limits = Settings.of({"model": "scripted", "buffer": "summary", "summary_offset": 1})
    update = await condense()(state, Runtime(context=limits))
    assert update["summarised_through"] == 2
    assert update["summary"] == "They walked on."
    assert "notices" not in update
    [asked] = model.asked("condense")
    assert '"turn": 2,' in asked[-1].text
    assert "4711" not in asked[-1].text
    model.queue("condense", ConnectionError("cut"))
    noted = []

    async def facts(*about):
        noted.append(about[2:])
        return {2: ["The word is two."]}

    update = await condense(noted=facts)(state, Runtime(context=limits))
    assert noted == [(1, 2)]
    assert "The word is two." in update["summary"]
    [told] = update["notices"]
    assert (told["turn"], told["node"]) == (3, "condense")
    state.messages[2] = HumanMessage("Don't remember this: 4712.", id="h2")
    update = await condense()(state, Runtime(context=limits))
    assert (update["summarised_through"], "summary" in update) == (2, False)
