"""A model's window that is too small for a prompt: the prompt gets shorter, and the thread goes on."""

from __future__ import annotations

import httpx
import openai
import pytest
from desk import Desk, TicketNotebook
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from scripted import ScriptedModel, call, say

from questbook.graphs.errors import FatalModelError, ModelError, PromptTooLongError
from questbook.graphs.models.providers import explain
from questbook.graphs.settings import Settings
from questbook.graphs.turn.prompt import Prompt, Section, fit, fit_refused, shorten
from questbook.memory.text.words import count_tokens

REQUEST = httpx.Request("POST", "http://127.0.0.1/v1")
WORDINGS = [
    (400, "This model's maximum context length is 4096 tokens. However, your messages resulted in 6200 tokens."),
    (400, "prompt is too long: 210000 tokens > 200000 maximum"),
    (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
    (500, "the input length exceeds the context length"),
    (400, "request (36146 tokens) exceeds the available context size (32768 tokens), try increasing it"),
    (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
    (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    (400, "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"),
    (400, "Input is too long for requested model."),
    (400, "Trying to keep the first 5000 tokens when context the overflows: greater than the context length"),
    (None, "Requested tokens (5000) exceed context window of 2048"),
]


class ProviderError(Exception):
    def __init__(self, status_code, text):
        super().__init__(text)
        if status_code:
            self.status_code = status_code


def refuse_beyond(model, most, job=""):
    """Let a scripted model refuse prompts of more than so many tokens, of one job or all; return the refusals."""
    kind, refused = type(model), []

    class Narrow(kind):
        def _answer(self, messages):
            tokens = count_tokens_approximately(messages)
            if tokens > most and job in ("", self.job):
                refused.append((self.job, tokens))
                raise ContextOverflowError("too long")
            return super()._answer(messages)

    model.__class__ = Narrow
    return refused


def narrow_game(game, spare):
    """Let a game's model take what its prompt has now and so many tokens more."""
    most = count_tokens_approximately(game.model.asked("quest")[-1]) + spare
    return refuse_beyond(game.model, most), most


async def walk(game, miles):
    start = game.values["turn"]
    for mile in range(start, start + miles):
        game.model.queue("quest", say(f"Mile {mile}: the mill of Hollin is behind you. " + "The road goes on. " * 20))
        await game.play(f"I walk mile {mile}.")


@pytest.mark.parametrize(("status_code", "text"), WORDINGS)
def test_providers_say_it_in_many_ways(status_code, text):
    error = explain(ProviderError(status_code, text), "x:y")
    assert type(error) is PromptTooLongError
    assert isinstance(error, FatalModelError)
    assert "QUESTBOOK_BUFFER_TOKENS" in str(error)


def test_langchains_class_and_openais_code_are_known():
    body = {"message": "Too long.", "code": "context_length_exceeded"}
    error = openai.BadRequestError("Too long.", response=httpx.Response(400, request=REQUEST), body=body)
    for each in (ContextOverflowError("x"), error):
        assert isinstance(explain(each, "x:y"), PromptTooLongError)


@pytest.mark.parametrize(
    ("status_code", "text"),
    [
        (400, "Unsupported parameter: temperature"),
        (429, "Too many tokens per minute"),
        (401, "context length exceeded"),
    ],
)
def test_other_refusals_are_what_they_were(status_code, text):
    assert not isinstance(explain(ProviderError(status_code, text), "x:y"), PromptTooLongError)


@pytest.mark.slow
async def test_the_dungeon_master_goes_on_and_is_not_refused_again_each_turn(mira):
    await walk(mira, 1)
    refused, most = narrow_game(mira, 300)
    before = len(mira.model.asked("quest"))
    await walk(mira, 12)
    assert mira.values["turn"] == 14
    assert mira.values["noted_through"] == 14, "notes fit, too"
    assert [job for job, _ in refused if job == "quest"], "the test is about a window that is too small"
    assert len(refused) <= 4
    assert len(mira.model.asked("quest")) - before == 12
    assert all(count_tokens_approximately(prompt) <= most for prompt in mira.model.asked("quest")[before:])
    notices = [n for n in mira.values["notices"] if "too long" in n["text"]]
    assert "QUESTBOOK_BUFFER_TOKENS" in notices[0]["detail"]
    assert mira.values["window"]["model"] == "scripted"
    assert 0 < mira.values["window"]["tokens"] < 1000
    assert mira.values["summary"], "what no prompt can hold is folded"
    assert len(mira.values["messages"]) < 28


async def test_the_turn_itself_is_told_in_short_what_its_prompt_left_out(mira):
    await walk(mira, 3)
    refused, _ = narrow_game(mira, 0)
    await walk(mira, 1)
    assert refused
    prompt = mira.model.asked("quest")[-1]
    assert "I walk mile 4." in str(prompt[-1].content)
    assert "<summary>" in prompt[0].text
    assert "Mile 2: the mill of Hollin is behind you." in prompt[0].text
    assert len(prompt) == 2, "only the turn itself is word for word"


@pytest.mark.slow
async def test_a_refusal_of_a_short_conversation_does_not_end_remembering(new_mira):
    game = await new_mira(buffer_tokens=200)
    await walk(game, 6)
    game.model.queue("quest", say("The bells toll on. " * 100))  # no later prompt holds this turn
    await game.play("I listen to the bells.")
    game.model.queue("quest", ContextOverflowError("too long"), say("The road is short."))
    await game.play("What was behind me at mile 2?")
    assert game.values["window"]["tokens"] > 50
    await game.play("What was behind me at mile 3?")
    assert "<memories>" in str(game.model.asked("quest")[-1][-1].content)


@pytest.mark.slow
async def test_another_model_is_given_what_the_settings_say(mira):
    await walk(mira, 3)
    refused, _ = narrow_game(mira, 0)
    await walk(mira, 2)
    assert refused
    mira.model.__class__ = ScriptedModel
    mira.settings["model"] = "scripted too"
    await walk(mira, 3)
    turns = [m.text for m in mira.model.asked("quest")[-1] if m.type == "ai"]
    assert len(turns) >= 3


async def test_what_can_never_fit_names_the_setting_and_keeps_the_message(mira):
    refuse_beyond(mira.model, 100)
    with pytest.raises(ModelError, match="QUESTBOOK_BUFFER_TOKENS") as error:
        await mira.play("I open the chest.")
    assert len(str(error.value)) <= 300
    assert mira.values["messages"][-1].text == "I open the chest."
    mira.model.__class__ = ScriptedModel
    await mira.play(None)
    assert mira.values["turn"] == 2


async def test_the_interview_goes_on(game):
    for number in range(8):
        game.model.queue("interview", say(f"Question {number}? " + "Tell me more of it. " * 20))
        await game.play(f"Answer {number}. " + "It was long ago. " * 20)
    refused = refuse_beyond(game.model, 1200)
    await game.play("I was born in Hollin.")
    assert [job for job, _ in refused] == ["interview"]
    assert game.values["window"]["tokens"] > 0
    await game.play("By the sea.")
    assert len(refused) <= 2
    assert game.values["turn"] == 10


@pytest.mark.slow
async def test_an_agent_goes_on_and_notes_all():
    desk = Desk(TicketNotebook)
    for number in range(4):
        await desk.say(f"Part {number}", reply=say("I see. " + "Go on. " * 60))
    refused = refuse_beyond(desk.model, count_tokens_approximately(desk.model.asked("reply")[-1]))
    for number in range(6):
        await desk.say(f"More {number}", reply=say("I see. " + "Go on. " * 60))
    assert desk.values["turn"] == 10
    assert 0 < len(refused) <= 5
    assert desk.values["noted"]["ticket"] == 10


@pytest.mark.slow
async def test_a_profile_makes_the_prompt_fit_before_it_is_sent(mira):
    await walk(mira, 1)
    most = count_tokens_approximately(mira.model.asked("quest")[-1]) + 1_700
    mira.model.profile = {"max_input_tokens": most}
    refused = refuse_beyond(mira.model, most)
    before = len(mira.model.asked("quest"))
    await walk(mira, 16)
    assert refused == []
    assert len(mira.model.asked("quest")) - before == 16
    assert mira.values["summary"]
    assert not [n for n in mira.values["notices"] if "too long" in n["text"]]
    assert len([m for m in mira.model.asked("quest")[-1] if m.type == "ai"]) >= 1, "it is not emptied needlessly"


@pytest.mark.slow
async def test_several_turns_to_note_that_are_too_long_are_noted_one_by_one(mira):
    mira.model.queue("update", ModelError("down"), ModelError("down"))
    await walk(mira, 2)
    assert mira.values["noted_through"] == 1
    first = count_tokens_approximately(mira.model.asked("update")[-2])
    refuse_beyond(mira.model, first + 20, "update")
    await mira.play("I rest.", update=say("", call("StateNotebook", location="The ford")))
    assert mira.values["quest"]["location"] == "The ford"
    assert mira.values["noted_through"] == 2
    assert not any("beginning and the end" in entry["text"] for entry in mira.values["notices"])
    await mira.play("I rest.")
    assert mira.values["noted_through"] == 3


def test_a_shorter_prompt_keeps_its_sections_and_its_last_turn():
    turns = [
        m for n in range(3) for m in (HumanMessage(f"I ask {n}."), AIMessage(f"Goran says {n} < 3. He nods. He goes."))
    ]
    prompt = Prompt([Section("instructions", "Tell."), Section("summary", "Old.")], [*turns, HumanMessage("Now?")], [])
    shorter = shorten(prompt, 0, Settings())
    assert [m.text for m in shorter.conversation] == ["Now?"]
    assert shorter.sections[1].text == (
        "Old. Goran says 0 &lt; 3. He nods. Goran says 1 &lt; 3. He nods. Goran says 2 &lt; 3. He nods."
    )
    assert shorten(prompt, 10_000, Settings()) == prompt
    private = [HumanMessage("Don't remember this: I ask."), AIMessage("Hush."), HumanMessage("Now?")]
    assert "Hush" not in str(shorten(Prompt(prompt.sections, private, []), 0, Settings()).sections)


async def test_one_turn_that_is_too_long_for_an_agents_notes_is_noted_in_short():
    desk = Desk(TicketNotebook)
    refuse_beyond(desk.model, 4000)
    await desk.say("It leaks. " + "word " * 1500, reply=say("blah " * 3000), update=say("", call("TicketNotebook")))
    assert desk.values["noted"] == {"ticket": 1}
    assert any("beginning and the end" in text for text in desk.notices)


async def test_facts_of_one_turn_that_is_too_long_are_noted_in_short():
    desk = Desk(facts=True)
    refuse_beyond(desk.model, 4000)
    await desk.say("It leaks. " + "word " * 1500, reply=say("blah " * 3000))
    assert desk.values["facts_through"] == 1
    assert any("beginning and the end" in text for text in desk.notices)


async def test_one_turn_that_is_too_long_to_note_is_noted_in_short_and_holds_nothing_up(game):
    await game.begin()
    game.model.queue("quest", say("A long tale. " + "blah " * 3000 + "It ends at the mill."))
    refuse_beyond(game.model, 5000)
    game.model.queue("update", say("", call("StateNotebook", location="The mill")))
    await game.play("Tell me. " + "word " * 1500)
    assert (game.values["noted_through"], game.values["quest"]["location"]) == (2, "The mill")
    asked = game.model.asked("update")[-1][-1].text
    assert all(part in asked for part in ("Tell me.", "A long tale.", "It ends at the mill.", "…"))
    assert any("beginning and the end" in entry["text"] for entry in game.values["notices"])


TALK = [m for n in range(8) for m in (HumanMessage(f"I ask {n}. " * 9), AIMessage(f"Goran nods {n}. " * 9))]
NOW = [*TALK, HumanMessage("Now?")]
TOOL = {"type": "function", "function": {"name": "look_up", "description": "x" * 400}}


def told(prompt):
    return [section.name for section in (*prompt.sections, *prompt.behind)]


def test_a_prompt_fits_nine_tenths_of_the_models_window_with_its_tools_and_half_of_the_rest_is_for_memories():
    memories = Section("memories", "word " * 80)
    prompt = Prompt([Section("instructions", "Tell. " * 20), Section("summary", "Old.")], NOW, [memories])
    used, settings = count_tokens_approximately(prompt.messages), Settings(model="small", summary_tokens=100)
    window = int(used / 0.9) + 2
    for profile in (None, {}, {"max_input_tokens": 0}, {"max_input_tokens": -9}, {"max_input_tokens": window}):
        assert fit(prompt, profile, [], settings) == (prompt, {})
    assert fit(prompt, {"max_input_tokens": window + 130}, [TOOL], settings) == (prompt, {})
    shorter, kept = fit(prompt, {"max_input_tokens": window}, [TOOL], settings)
    assert kept["model"] == "small"
    fixed = count_tokens_approximately(Prompt(prompt.sections[:1], [], []).messages) + 115
    assert abs(2 * kept["tokens"] + 100 + fixed - 0.9 * window) < 40
    assert count_tokens_approximately(shorter.conversation) <= kept["tokens"] < count_tokens_approximately(NOW)
    assert fit(prompt, {"max_input_tokens": 50}, [], settings)[1]["tokens"] == 0


@pytest.mark.parametrize(("memories", "conversation"), [(0, NOW), (20, NOW), (4_000, NOW[-3:])])
def test_what_was_refused_is_asked_again_with_the_last_turn_and_a_summary_and_later_with_half(memories, conversation):
    past = [Section("memories", "word" * memories), Section("character_memories", "word" * memories)]
    prompt = Prompt([Section("instructions", "Tell."), Section("summary", "Old."), past[1]], conversation, past[:1])
    shorter, window = fit_refused(prompt, Settings(model="small"))
    assert [message.text for message in shorter.conversation] == ["Now?"]
    assert told(shorter) == ["instructions", "summary"]
    talk = count_tokens_approximately(conversation)
    sections = sum(count_tokens(section.text) for section in (*past, Section("summary", "Old.")))
    half = (talk + sections) // 4 if memories > talk else talk // 2
    assert window == {"model": "small", "tokens": half}


def test_sections_are_beside_the_newest_words_also_behind_a_call_and_a_report_counts_the_turns_before():
    talk = [HumanMessage("One <b>."), AIMessage("Yes."), HumanMessage("Two."), AIMessage("Let me look.")]
    prompt = Prompt([Section("instructions", "Tell.")], talk, [Section("memories", "m"), Section("empty", "")])
    texts = [message.text for message in prompt.messages]
    newest = "<memories>\nm\n</memories>\n\n<message>\nTwo.\n</message>"
    assert texts == ["Tell.", "One &lt;b&gt;.", "Yes.", newest, "Let me look."]
    report = prompt.report("quest", 7)
    assert (report["node"], report["fidelity"]) == ("quest", {"turns": 1, "of": 6})
    assert [part["section"] for part in report["prompt"]] == ["instructions", "messages", "memories", "empty"]
    assert [part["tokens"] for part in report["prompt"][::2]] == [2, 1]
    assert Prompt([], [], []).report("quest", 0)["fidelity"] == {"turns": 0, "of": 0}
