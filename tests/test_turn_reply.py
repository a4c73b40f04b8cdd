"""One reply by itself: how often the model is asked, what of its answer stays, what guards it, what is told."""

from typing import ClassVar

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from scripted import call, malformed, say

from questbook import Notebook
from questbook.graphs.errors import ModelError, PromptTooLongError
from questbook.graphs.settings import Settings
from questbook.graphs.turn.interview import Done, interview
from questbook.graphs.turn.prompt import Prompt, Section
from questbook.graphs.turn.reply import (
    MARKUP,
    VERBATIM,
    SecretCheck,
    check_tags,
    guard_of,
    reply,
    secret_phrases,
    secret_texts,
    tells_secret,
)
from questbook.graphs.turn.state import TurnState

TOOLS = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("roll_dice", "keep_secret")]
KEEP, ROLL = call("keep_secret", about="Maren"), call("roll_dice", expression="1d20")
SECRET = "the old king was murdered by wolves"


class Vault(Notebook):
    """What is hidden."""

    SECRET = frozenset({"plan", "names"})
    room: str = ""
    plan: str = ""
    names: dict[str, str] = {}


class Hall(TurnState):
    PAGES: ClassVar = {"vault": Vault}
    vault: Vault = Vault()


def hall(*messages, words="I look around.", **channels):
    spoken = [HumanMessage(words, id="h"), *messages]
    return Hall(messages=spoken, turn=1, timeline=[("a", 1)], **channels)


def prompt_of(state, *sections):
    return Prompt([Section("instructions", "Tell."), *sections], state.messages, [])


async def replied(model, *answers, state=None, rounds=3, told=None, **options):
    model.queue("quest", *answers)
    state, reports = state or hall(), [] if told is None else told
    context = Settings.of({"user": "ann", "model": "scripted"} | options)
    run = Runtime(context=context, stream_writer=reports.append)
    asked = {"node": "quest", "tools": TOOLS, "most_rounds": rounds, "silent": ["keep_secret"]}
    return await reply(state, run, prompt_of(state, Section("memories", "m" * 4_000)), **asked)


async def test_silent_calls_are_in_no_message_and_the_model_is_asked_once_more_only_if_it_said_nothing(model):
    reports = []
    done = await replied(model, say("", KEEP), say("Good.", KEEP), told=reports)
    assert [one.args for one in done.silent] == [KEEP["args"]] * 2
    [message] = done.update["messages"]
    assert (message.text, message.tool_calls) == ("Good.", [])
    assert [report["node"] for report in reports] == ["quest"] * 2
    again = model.asked("quest")[1]
    assert [(one.type, one.text) for one in again[-2:]] == [("ai", ""), ("tool", "Kept. Now answer, in words.")]
    for answer, calls in ((say("Good.", KEEP), []), (say("", KEEP, ROLL), ["roll_dice"])):
        done = await replied(model, answer)
        assert [one["name"] for one in done.update["messages"][0].tool_calls] == calls
        assert len(done.silent) == 1
    assert len(model.asked("quest")) == 4
    with pytest.raises(ModelError, match="scripted keeps calling tools and tells nothing"):
        await replied(model, say("", KEEP), say("", KEEP))


async def test_calls_beyond_the_rounds_of_a_turn_are_dropped_and_nothing_but_calls_is_an_error(model):
    spent = hall(say("", ROLL), ToolMessage("7", tool_call_id=ROLL["id"]))
    [message] = (await replied(model, say("Good.", ROLL), state=spent, rounds=1)).update["messages"]
    assert (message.text, message.tool_calls, bool(message.id)) == ("Good.", [], True)
    [message] = (await replied(model, say("Good.", ROLL), state=spent, rounds=2)).update["messages"]
    assert message.tool_calls[0]["args"] == ROLL["args"]
    [message] = (await replied(model, say("", ROLL), state=spent, rounds=2)).update["messages"]
    assert message.tool_calls[0]["args"] == ROLL["args"]
    with pytest.raises(ModelError, match="keeps calling tools"):
        await replied(model, say("", ROLL), state=spent, rounds=1)


async def test_a_prompt_that_is_too_long_is_made_shorter_once_with_a_notice_that_a_later_question_keeps(model):
    earlier = [AIMessage("Well. " * 90), HumanMessage("And now?")]
    state, long = hall(*earlier), ContextOverflowError("too long")
    done = await replied(model, long, say("", KEEP), say("Good."), state=state)
    assert done.update["window"]["model"] == "scripted"
    [told] = done.update["notices"]
    assert (told["node"], told["turn"]) == ("quest", 1)
    assert told["text"] == "The conversation was too long for the model, so it was given older turns in short."
    assert "window" in told["detail"]
    assert "window" not in (await replied(model, say("Good."), state=state)).update
    done = await replied(model, long, say("", KEEP), long, say("Good."), state=state)
    assert len(done.update["notices"]) == 2, "of both questions"
    with pytest.raises(PromptTooLongError):
        await replied(model, long, long, state=state)
    asked = len(model.asked("quest"))
    bare = Prompt([Section("instructions", "Tell.")], hall().messages, [])
    run = Runtime(context=Settings.of({"user": "ann", "model": "scripted"}))
    model.queue("quest", long)
    with pytest.raises(PromptTooLongError):
        await reply(hall(), run, bare, node="quest", tools=TOOLS, most_rounds=3)
    assert len(model.asked("quest")) == asked + 1, "what cannot get shorter is not sent again"


async def test_a_reply_that_is_cut_is_told_with_its_setting(model):
    done = await replied(model, say("word " * 50), max_reply_chars=140)
    [told] = done.update["notices"]
    assert (told["text"], told["detail"]) == (
        "The reply was cut after 140 characters.", "Setting QUESTBOOK_MAX_REPLY_CHARS.",
    )  # fmt: skip


class Marker:
    found = False

    def mark(self, text, left, *, ended):
        return text

    def __call__(self, text, start, *, ended):
        return len(text), ""


def test_a_guard_has_the_limit_hides_calls_and_marks_and_checks_only_where_there_are_secrets():
    marker, settings = Marker(), Settings(max_reply_chars=177)
    secret, plain = hall(vault=Vault(plan=SECRET)), TurnState(messages=[HumanMessage("Hi.")], turn=1)
    for state, guards, checks in ((secret, True, 2), (hall(), True, 1), (secret, False, 0), (plain, True, 0)):
        given = settings.model_copy(update={"guard_secrets": guards})
        guard = guard_of(state, prompt_of(state), given, ["keep_secret"], marker)
        assert (guard.limit, guard.hidden, guard.marker) == (177, ["keep_secret"], marker)
        assert len(guard.checks) == checks + 1
        assert marker in guard.checks
        assert bool(guard.again("x", "y")) is bool(checks)


def test_what_is_asked_again_says_where_the_reply_was_stopped():
    again = guard_of(hall(), prompt_of(hall()), Settings()).again
    [only] = again("a secret", " \n")
    assert "stopped before its first word, because what came next repeated a secret" in only.text
    assert "Answer again, in words of your own" in only.text
    said, asked = again("a secret", "He nods.")
    assert (said.type, said.text) == ("ai", "He nods.")
    assert "stopped after the words above, which the player has read" in asked.text
    assert "Go on from there with a new sentence, in words of your own" in asked.text


def test_secrets_are_those_of_all_secret_fields_and_those_recalled_and_what_the_player_may_read_is_none():
    recalled = [{"kind": "secret", "text": "The well is deep."}, {"kind": "event", "text": "It rains."}]
    state = hall(vault=Vault(room="red", plan=SECRET, names={"Bo": "is the heir of the throne"}), recalled=recalled)
    assert secret_texts(state) == ["Bo is the heir of the throne", f" {SECRET}", "The well is deep."]
    assert tells_secret(state, "They say that the OLD king — was murdered by wolves!")
    assert not tells_secret(state, "The old king was murdered.")
    leak = f"So {SECRET}."
    known = [
        hall(vault=Vault(room=SECRET, plan=SECRET)), hall(vault=Vault(plan=SECRET), summary=leak),
        hall(vault=Vault(plan=SECRET), recalled=[{"kind": "event", "text": leak}]),
        hall(vault=Vault(plan=SECRET), words=leak),
    ]  # fmt: skip
    for state, problem in ((hall(vault=Vault(plan=SECRET)), VERBATIM), *((one, "") for one in known)):
        check = guard_of(state, prompt_of(state), Settings()).checks[1]
        assert check(leak, 0, ended=True) == (3 if problem else len(leak), problem)
    unspaced = secret_phrases(["船夫奥林淹死了双胞胎把他们的船卖"])
    assert {phrase[0] for phrase in unspaced} >= {"船夫", "夫奥"}, "pairs may begin one character later"


def test_words_with_which_a_secret_may_begin_are_held_back_and_the_last_word_until_it_ends():
    check = SecretCheck(secret_phrases([SECRET]), list)
    for text, safe in (
        ("He says the old", "He says "), ("He says the old ", "He says "), ("He says wolv", "He says "),
        ("He says wolves ", "He says wolves "), ("He says the old ki", "He says "), ("He says the cat ", None),
    ):  # fmt: skip
        assert check(text, 0, ended=False) == (len(text if safe is None else safe), "")
        assert check(text, 0, ended=True) == (len(text), "")


@pytest.mark.parametrize(("text", "ended", "safe", "problem"), [
    ("See <vault>x", False, 4, MARKUP), ("See </ vault >x", False, 4, MARKUP), ("See <VAULT x", False, 4, MARKUP),
    ("See <plan>x", False, 4, MARKUP), ("See <names>x", False, 4, MARKUP), ("See <mill>x", False, 4, MARKUP),
    ("See <summary>x", False, 4, MARKUP), ("See <memories>x", False, 4, MARKUP), ("See <message>x", False, 4, MARKUP),
    ("See <instructions>x", False, 19, ""), ("See <vaults>x", False, 13, ""), ("See <vault", False, 4, ""),
    ("See <vault", True, 4, MARKUP), ("See <vau", False, 4, ""), ("See <vau", True, 8, ""), ("See < ", False, 4, ""),
    ("See <3!", False, 7, ""), (f"See <{'x' * 70}", False, 75, ""), ("See", False, 3, ""),
])  # fmt: skip
def test_a_tag_of_the_prompts_sections_ends_a_reply_and_what_may_become_one_waits(text, ended, safe, problem):
    state = hall()
    check = guard_of(state, prompt_of(state, Section("mill", "")), Settings()).checks[0]
    assert check.func is check_tags
    assert check(text, 0, ended=ended) == (safe, problem)


# The interview


class Card(Notebook):
    """Who they are."""

    REQUIRED = ("name", "home")
    name: str = ""
    home: str = ""
    age: int = 0


NAMED, HOUSED, WRONG = (call("CharacterNotebook", **args) for args in ({"name": "Ann"}, {"home": "Oslo"}, {"age": "x"}))
Card.__name__ = "CharacterNotebook"  # for which the scripted model is asked as "interview"
BEGIN = {"type": "function", "function": {"name": "begin", "parameters": {}}}


async def asked(model, *answers, page=None, words="I'm Ann.", done=None):
    model.queue("interview", *answers)
    state = hall(words=words)

    def make_prompt(page, messages):
        now = state.model_copy(update={"messages": [*state.messages, *messages]})
        return prompt_of(now, Section("memories", "m" * 400))

    run = Runtime(context=Settings.of({"user": "ann", "model": "scripted"}))
    question = "Please tell me: {missing}."
    return await interview(state, page or Card(), run, make_prompt, node="fill", question=question, done=done)


def spoken(turn):
    return [(message.type, message.text) for message in turn.messages]


async def test_what_was_said_to_the_person_ends_a_turn_of_an_interview_behind_what_was_noted(model):
    turn = await asked(model, say("And where do you live?", NAMED))
    assert (turn.page.name, turn.notices, turn.window) == ("Ann", [], {})
    assert spoken(turn) == [("ai", ""), ("tool", "Noted."), ("ai", "And where do you live?")]
    ids = [message.id for message in turn.messages if message.type == "ai"]
    assert ids[0] == f"{ids[1]}-calls"
    turn = await asked(model, say("", NAMED), say("Where do you live?"))
    assert spoken(turn)[-1] == ("ai", "Where do you live?")
    turn = await asked(model, say("Hello."))
    assert spoken(turn) == [("ai", "Hello.")]


async def test_an_interview_that_asks_nothing_asks_an_ordinary_question_and_says_so(model):
    turn = await asked(model, *[say("", NAMED)] * 3)
    assert spoken(turn)[-1] == ("ai", "Please tell me: home.")
    assert [notice["text"] for notice in turn.notices] == [
        "The model asked nothing, so an ordinary question was asked.",
    ]  # fmt: skip


async def test_a_complete_page_ends_with_its_call_and_a_note_that_is_mended_says_nothing_more(model):
    both = say("Welcome!", NAMED, HOUSED)
    turn = await asked(model, both)
    assert turn.page.complete
    assert spoken(turn)[-1] == ("tool", "Noted.")
    assert len(model.asked("interview")) == 1
    turn = await asked(model, say("And then?", WRONG), say("Sorry, then?", NAMED))
    assert [text for _, text in spoken(turn) if text not in ("", "Noted.")] == ["And then?"]
    assert spoken(turn)[-1] == ("ai", "And then?"), "what was said ends the turn"
    assert turn.notices == []
    turn = await asked(model, say("And then?", WRONG), say("I am sorry."))
    [told] = turn.notices
    assert told["text"] == "Not all that you said could be noted; say it again in other words if it is missing."
    assert "age: got 'x'" in told["detail"]
    assert "I am sorry." not in str(turn.messages)
    assert spoken(turn) == [("ai", "And then?")], "nothing blank is left of it"
    again = [say("", call("CharacterNotebook", age="x")) for _ in range(2)]
    turn = await asked(model, say("", NAMED, HOUSED, WRONG), *again)
    assert turn.page.complete
    assert turn.messages[-1].status == "success", "it says what comes now"
    assert "age: got 'x'" in turn.messages[-1].text
    assert len(turn.notices) == 1


async def test_an_interview_ends_early_where_the_model_says_so_but_not_in_private_or_unreadably(model):
    def complete(page, args):
        return page.apply({"home": args.get("home", "here")}).page, f"Home: {args.get('home', 'here')}."

    done = Done(BEGIN, complete)
    turn = await asked(model, say("", NAMED, call("begin"), call("begin", home="Rome")), done=done)
    assert (turn.page.home, turn.page.complete) == ("Rome", True)
    assert [notice["text"] for notice in turn.notices] == ["Home: here.", "Home: Rome."]
    turn = await asked(model, say("Well?", NAMED, call("begin")), words="Don't remember this: I'm Ann.", done=done)
    assert (turn.page, turn.notices) == (Card(), [])
    broken = AIMessage("Well?", invalid_tool_calls=malformed("begin", "{").invalid_tool_calls)
    turn = await asked(model, broken, say("Well?"), done=done)
    assert turn.page == Card()


async def test_the_window_of_an_interview_stays_when_it_is_asked_again(model):
    turn = await asked(model, ContextOverflowError("too long"), say("", NAMED), say("Where do you live?"))
    assert turn.window["window"]["model"] == "scripted"


async def test_what_only_mends_a_note_is_not_streamed(model):
    async def streamed(*answers):
        async def fill(state):
            await asked(model, *answers)

        graph = StateGraph(MessagesState).add_node("fill", fill).add_edge(START, "fill").compile()
        return "".join([part.text async for part, _ in graph.astream({"messages": []}, stream_mode="messages")])

    assert await streamed(say("And then?", WRONG), say("Sorry, then?", NAMED)) == "And then?"
    assert await streamed(say("", NAMED, HOUSED, WRONG), say("Sorry.")) == "", "another answer comes"
    assert await streamed(say("", NAMED), say("And then?")) == "And then?"
