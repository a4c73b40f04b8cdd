"""Calls of tools that came as text: read where they fit, held back from the stream only while they may be calls."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from scripted import call, say
from timing import cpu_seconds

from questbook import CharacterNotebook, StateNotebook
from questbook.graphs.companion.tools import TOOLS
from questbook.graphs.dungeon_master.dice import ROLL_DICE
from questbook.graphs.dungeon_master.facts import FACT_WORDS, KEEP_SECRET
from questbook.graphs.events import STREAM_MODES, ReplyPiece, read_stream
from questbook.graphs.models.answer import ask
from questbook.graphs.models.text_calls import TextCallReader
from questbook.memory.facts.fact import facts_tool

NOTING = [StateNotebook.tool(), facts_tool(FACT_WORDS)]
ROLL = '{"expression": "1d20+3", "reason": "Stealth"}'
NAMED = f'{{"name": "roll_dice", "arguments": {ROLL}}}'
SHAPES = [
    f"```json\n{NAMED}\n```",
    f"```\n{NAMED}\n```",
    f"<tool_call>\n{NAMED}\n</tool_call>",
    f"<tool_call>{NAMED}",
    f"<|python_tag|>{NAMED.replace('arguments', 'parameters')}<|eom_id|>",
    NAMED.replace("arguments", "parameters"),
    f"<function=roll_dice>{ROLL}</function>",
    f"[TOOL_CALLS] [{NAMED}]",
    f"[TOOL_CALLS]roll_dice[ARGS]{ROLL}",
    f"[TOOL_CALLS]roll_dice[CALL_ID]a1b2c3d4e[ARGS]{ROLL}",
    f'{{"type": "function", "function": {{"name": "roll_dice", "parameters": {ROLL}}}}}',
    f'{{"type": "function", "name": "roll_dice", "parameters": {ROLL}}}',
    f"<|python_tag|>{NAMED}<|eot_id|>",
    f"<|tool_call|>{NAMED.replace('arguments', 'args')}<|/tool_call|>",
    f"<tool_call>[{NAMED}]</tool_call>",
]


def read(text, tools, hidden=(), size=7):
    """Read a text that comes in pieces; return what is no call, the calls, and those that cannot be read."""
    reader = TextCallReader(tools, hidden)
    shown = [reader.feed(text[at : at + size]) for at in range(0, len(text), size)]
    return ("".join([*shown, reader.end()]), *reader.tool_calls())


def calls(text, tools):
    return [(made["name"], made["args"]) for made in read(text, tools)[1]]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("before", ["", "You creep along the wall.\n\n"])
def test_each_shape_is_a_call_and_no_text(shape, before):
    text, [made], _ = read(before + shape, [ROLL_DICE])
    assert text == before
    assert (made["name"], made["args"]) == ("roll_dice", {"expression": "1d20+3", "reason": "Stealth"})
    assert made["id"]


UNSEEN = ['{"tool_calls": [%s]}', "[%s]", "I roll: %s", '{"call": %s}', "%s {}"]


@pytest.mark.parametrize(
    "text", [ROLL, f"```json\n{ROLL}\n```", NAMED.replace("arguments", "input"), *(shape % NAMED for shape in UNSEEN)]
)
def test_what_no_model_was_seen_to_write_as_a_call_is_text(text):
    assert read(text, [ROLL_DICE, *NOTING, CharacterNotebook.tool()]) == (text, [], [])


def test_several_calls_come_in_their_order():
    both = [("StateNotebook", {"gold": 1}), ("Facts", {"facts": []})]
    one = '{"name": "StateNotebook", "arguments": {"gold": 1}}'
    two = '{"name": "Facts", "arguments": "{\\"facts\\": []}"}'
    assert calls(f"<tool_call>{one}</tool_call>\n<tool_call>{two}</tool_call>", NOTING) == both
    assert calls(f"{one}; {two}", NOTING) == both
    assert calls(f"[TOOL_CALLS][{one}, {two}]", NOTING) == both
    assert calls(f"Here:\n```json\n[{one},\n{two}]\n```\nThat is all.", NOTING) == both


@pytest.mark.parametrize(
    "text",
    [
        'The safe says {"gold": 3}.', "```python\nprint({})\n```", '{"title": "My day", "done": true}',
        "[She looks up.] A < b, `code`, {braces}.\n[2, 3]\n{}", "<tool_call>ing it a day",
        f"Write it so:\n```json\n{ROLL}\n```\nThen the dice roll.", f"{ROLL}\nThen the dice roll.",
    ],
)  # fmt: skip
def test_what_is_no_call_is_text_to_the_letter(text):
    assert read(text, [ROLL_DICE]) == (text, [], [])
    assert read(text, [ROLL_DICE, KEEP_SECRET], ["keep_secret"]) == (text, [], [])
    assert read(text, []) == read(text, [{"function": {"name": "look"}}]) == (text, [], [])


BROKEN = ["<tool_call>{'name': 'roll_dice'}</tool_call>", f"<tool_call>{NAMED[:-5]}", f"```json\n{NAMED[:-5]}"]


@pytest.mark.parametrize("text", [*BROKEN, "[TOOL_CALLS] [1]"])
def test_a_call_that_cannot_be_read_is_a_broken_call_and_no_words_to_the_person(text):
    rest, made, [broken] = read(text, [ROLL_DICE])
    assert (rest, made) == ("", [])
    assert broken["error"].startswith(("Expecting ", "Unterminated ", "expected a JSON object, got "))


@pytest.mark.parametrize(("text", "made"), [
    (f"<|python_tag|>{NAMED}; {NAMED}", ["1d20+3"] * 2), (f"<tool_call>{NAMED},\n{NAMED}</tool_call>", ["1d20+3"] * 2),
    ('{"name": "roll_dice", "arguments": {"expression": "1d6\n+1"}}', ["1d6\n+1"]),  # what it means is clear
    ('<tool_call>{"name": "roll_dice", "arguments": "{\\"expression\\": \\"1d6\\"}"}</tool_call>', ["1d6"]),
    (f"Well.\n{NAMED}\n{NAMED}", ["1d20+3"] * 2),
    ('<tool_call>{"name": "roll_dice"}</tool_call>', [None]), (f" \t{NAMED}", ["1d20+3"]),
])  # fmt: skip
def test_calls_beside_each_other_and_texts_in_them_are_read_as_they_are_meant(text, made):
    rest, calls, broken = read(text, [ROLL_DICE], size=5)
    assert [each["args"].get("expression") for each in calls] == made
    assert len({each["id"] for each in calls}) == len(made)
    assert (rest.strip(), broken) == ("Well." * text.startswith("Well."), [])


@pytest.mark.parametrize("text", [
    "[]", "```json\n[]\n```", f"I roll {NAMED}", '{"name": "roll_dice", "arguments": {}, "why": "luck"}',
    '{"type": "function", "function": {"name": "fly", "parameters": {}}}', '{"name": "roll_dice"}',
    '{"function": {"name": "roll_dice", "parameters": {}}}', '{"name": "roll_dice", "args": {}}',
])  # fmt: skip
def test_what_is_not_marked_and_more_or_less_than_a_call_is_text(text):
    assert read(text, [ROLL_DICE], size=3) == (text, [], [])
    assert read(NAMED, [])[0] == NAMED, "nothing was offered"


def test_a_call_nested_too_deep_is_a_broken_call():
    deep = '{"a": ' * 21 + "1" + "}" * 21
    rest, made, [broken] = read(f'{{"name": "roll_dice", "arguments": {deep}}}', [ROLL_DICE])
    assert (rest, made, broken["error"]) == ("", [], "nested more than 20 levels deep")


SECRET = '{"about": "Oda", "secret": "Oda is the thief.", "turn": 3}'
HANDED = f'{{"name": "keep_secret", "arguments": {SECRET}}}'
KEPT = [SECRET, HANDED, f"```json\n{HANDED}\n```", f"<tool_call>{HANDED}</tool_call>"]
WRAPPED = ['{"keep_secret": %s}', '{"tool_calls": [{"name": "keep_secret", "input": %s}]}', "[%s]", "{} {} %s"]


@pytest.mark.parametrize("before", ["", "Oda smiles.\n", "Oda smiles. "])
@pytest.mark.parametrize("call", [*KEPT, SECRET[:-20], '{"secret": "Oda', *(shape % SECRET for shape in WRAPPED)])
def test_json_for_a_hidden_tool_is_not_shown_whatever_its_shape_and_place(call, before):
    text, made, _ = read(f"{before}{call}", [ROLL_DICE, KEEP_SECRET], ["keep_secret"], size=1)
    assert text.strip("[]{} ") == before.strip(" ")
    assert call not in KEPT or [each["name"] for each in made] == ["keep_secret"]


def test_marked_text_that_names_another_tool_is_left_to_the_machine_to_refuse():
    assert calls('<tool_call>{"name": "fly", "arguments": {}}</tool_call>', [ROLL_DICE]) == [("fly", {})]


SCRAPS = ["The door opens. ", *'\n{[`<}"', "```", "<tool_call>", "[TOOL_CALLS]", '{"name"', '{"a": 1}']
PIECES = st.sampled_from([*SHAPES, *SCRAPS, ROLL])


@given(st.lists(PIECES, max_size=6).map("".join), st.integers(1, 9), st.sampled_from([(), ("roll_dice",)]))
@example(SHAPES[9], 1, ())
def test_an_answer_in_pieces_reads_as_the_whole(text, size, hidden):
    (shown, *parts), (at_once, *whole) = (read(text, [ROLL_DICE], hidden, n) for n in (size, 10_000))
    assert shown == at_once
    assert [[(made["name"], made["args"]) for made in kind] for kind in parts] == [
        [(made["name"], made["args"]) for made in kind] for kind in whole
    ]
    if not parts[0] and not parts[1]:
        assert shown == text


def test_text_is_held_back_only_while_it_may_be_a_call():
    reader = TextCallReader([ROLL_DICE])
    said = "[She looks up.] `Yes`, she says, a < b.\n```text\nA map.\n```\n{no call}"
    shown = 0
    for position, letter in enumerate(said, 1):
        shown += len(reader.feed(letter))
        assert position - shown <= len("```text\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "worst", ["{", "\n{", "[", "`", "<", "<tool_call>{", '{"name": "', "```json\n", "[TOOL_CALLS]", '{"a":', " "]
)
def test_the_worst_text_is_read_in_linear_time(worst):
    text = worst * (300_000 // len(worst))
    assert cpu_seconds(lambda: read(text, TOOLS, size=500), 10) < 10


async def asked(model, answer, tools=(ROLL_DICE,)):
    model.queue("condense", answer)
    return await ask(model, [HumanMessage("I sneak.")], model_name="scripted", tools=tools)


async def test_a_call_that_came_properly_and_as_text_is_made_once(model):
    roll = {"expression": "1d20+3", "reason": "Stealth"}
    answer = await asked(model, say(f"You creep.\n<tool_call>{NAMED}</tool_call>", call("roll_dice", **roll)))
    assert [(made["name"], made["args"]) for made in answer.tool_calls] == [("roll_dice", roll)]
    assert answer.text == "You creep."
    other = call("roll_dice", expression="1d6", reason="Luck")
    answer = await asked(model, say(f"<tool_call>{NAMED}</tool_call><tool_call>{{'a'}}</tool_call>", other))
    assert [made["args"]["expression"] for made in answer.tool_calls] == ["1d6", "1d20+3"]
    assert [broken["name"] for broken in answer.invalid_tool_calls] == [""]


async def test_without_tools_a_call_in_text_is_text(model):
    answer = await asked(model, say(f"  {NAMED}  "), tools=())
    assert (answer.text, answer.tool_calls) == (f"  {NAMED}  ", [])


def test_nothing_of_a_call_is_shown_while_it_comes():
    reader = TextCallReader([ROLL_DICE])
    for shape in SHAPES:
        shown = [reader.feed(letter) for letter in f"Well.\n{shape}\n"]
        assert "".join(shown).strip() == "Well.", shape
        assert reader.end().strip() == ""
    assert len(reader.calls) == len(SHAPES)


def test_a_block_that_never_ends_is_text():
    text = '<tool_call>{"name": "roll_dice", "arguments": {"expression": "' + "x" * 120_000
    reader = TextCallReader([ROLL_DICE])
    shown = "".join(reader.feed(text[at : at + 10_000]) for at in range(0, len(text), 10_000))
    assert len(shown) > 100_000
    assert shown + reader.end() == text


# Through the machines


async def streamed(game, words):
    """Play a turn; return the words of the reply that a door would show."""
    stream = game.app.astream(
        {"messages": [HumanMessage(words)]}, game.config, context=game.settings, stream_mode=STREAM_MODES
    )
    return "".join([event.text async for event in read_stream(stream) if isinstance(event, ReplyPiece)])


@pytest.mark.parametrize("shape", [shape.replace("arguments", "parameters") for shape in SHAPES[:7]])
@pytest.mark.slow
async def test_the_player_sees_the_reply_and_never_the_call(game, shape):
    await game.begin()
    game.model.queue("quest", say(f"You creep along.\n{shape}"), say("Nobody hears you."))
    assert (await streamed(game, "I sneak")).replace("\n", "") == "You creep along.Nobody hears you."
    assert [roll["expression"] for roll in game.values["rolls"]] == ["1d20+3"]
    assert not any("roll_dice" in message.text for message in game.values["messages"])


async def test_a_call_in_a_reply_that_cannot_be_read_is_answered_and_the_reply_goes_on(game):
    await game.begin()
    game.model.queue("quest", say(f"You creep along.\n{BROKEN[1]}"), say("Nobody hears you."))
    assert (await streamed(game, "I sneak")).replace("\n", "") == "You creep along.Nobody hears you."
    assert [message.status for message in game.values["messages"] if message.type == "tool"][-1] == "error"


async def test_a_reply_that_comes_whole_shows_no_call_either(game):
    await game.begin()
    game.model.disable_streaming = True
    game.model.queue("quest", say(f"<tool_call>{NAMED}</tool_call>"), say("Nobody hears you."))
    assert await streamed(game, "I sneak") == "Nobody hears you."


async def test_a_reply_that_only_looks_like_a_call_reaches_the_player_whole(game):
    await game.begin()
    told = 'The sign says:\n{"welcome": "to <b> the ```Bent``` Nail"}\n[Nobody looks up.]'
    game.model.queue("quest", say(told))
    assert await streamed(game, "I read the sign") == told == game.reply


async def test_other_streams_of_langgraph_have_the_reply_once(game):
    await game.begin()
    game.model.queue("quest", say("One two three."))
    events = game.app.astream_events(
        {"messages": [HumanMessage("go")]}, game.config, context=game.settings, version="v2", stream_mode="messages"
    )
    parts = [event["data"]["chunk"] async for event in events if event["event"] == "on_chain_stream"]
    parts = [part[0] for part in parts if isinstance(part, tuple) and part[1]["langgraph_node"] == "run_quest"]
    assert "".join(part.text for part in parts) == "One two three."


async def test_an_interview_that_answers_in_json_notes_it(game):
    page = '{"name": "CharacterNotebook", "arguments": {"name": "Mira", "ancestry": "halfling", "class": "rogue"}}'
    game.model.queue("interview", say(f"```json\n{page}\n```"), say("Where do you come from?"))
    assert await streamed(game, "I'm Mira, a halfling rogue") == "Where do you come from?"
    assert game.values["character"]["name"] == "Mira"


async def test_a_reflection_in_text_is_one(eager):
    from reflecting import tell

    eager.model.queue("question", say('```json\n{"questions": ["Who burnt the mill?"]}\n```'))
    eager.model.queue("conclude", say("nothing"))
    facts = [{"text": f"{who} burnt the mill.", "importance": 9} for who in ("Oda", "Goran")]
    await tell(eager, "I ask.", *facts)
    assert eager.model.asked("conclude"), "the questions were read"


async def test_an_agent_writes_its_page_and_calls_its_own_tools_by_text():
    from desk import CallbackNotebook, Desk, TicketNotebook
    from langchain_core.tools import tool

    @tool
    def look_up(number: str) -> str:
        """Look up an order."""
        return f"Order {number} is on its way."

    desk = Desk(CallbackNotebook, TicketNotebook, tools=[look_up])
    made = '{"name": "look_up", "parameters": {"number": "A7"}}'
    ticket = '{"name": "TicketNotebook", "parameters": {"problem": "late order"}}'
    noted = '```json\n{"name": "CallbackNotebook", "arguments": {"day": "Monday"}}\n```'
    reply = [say(f"<|python_tag|>{made}"), say(f"It is on its way. I call you on Monday.\n{noted}")]
    said = await desk.say("Where is A7?", reply=reply, update=say(ticket))
    assert said == "It is on its way. I call you on Monday."
    assert desk.values["callback"]["day"] == "Monday"
    assert desk.values["ticket"]["problem"] == "late order"
    assert any("Order A7 is on its way." in message.text for message in desk.values["messages"])
