"""Notes after the reply: every error at once with what fits, what is valid is kept, nothing is lost, in plain words."""

import re
from typing import ClassVar

import pytest
from conftest import MIRA
from fact_play import play, stored
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from scripted import call, malformed, say

from questbook import CharacterNotebook, Notebook, NotebookError, StateNotebook, patches
from questbook.graphs.errors import ModelError, PromptTooLongError
from questbook.graphs.settings import Settings
from questbook.graphs.turn.node import GaveWay
from questbook.graphs.turn.notes import ask_of_oldest, attribute_lines, catching_up, oldest_within, take_notes
from questbook.graphs.turn.state import TurnState
from questbook.memory.facts.fact import facts_tool
from questbook.memory.facts.lookup import Slot
from questbook.notebooks import Entry, PartialChange, PatchError, apply_fitting

PAGE = (
    StateNotebook()
    .apply({"condition": {"hp": 9, "max_hp": 11}, "people": {"Goran": {"alive": False, "fate": "eaten"}}, "gold": 3})
    .page
)


def texts(game):
    return [notice["text"] for notice in game.values["notices"]]


def turns_asked(game):
    """The turns that each noting call was given."""
    asked = [next(m.text for m in messages if isinstance(m, HumanMessage)) for messages in game.model.asked("update")]
    return [[n for n in range(1, 9) if f'"turn": {n},' in text] for text in asked]


# A patch of which not all fits


def test_what_the_prompt_shows_may_be_sent_back():
    shown = {"condition": {"hp": 11, "max_hp": 11}, "fallen": {}, "version": 1}
    assert apply_fitting(PAGE, shown) == (PAGE.apply({"condition": {"hp": 11}}).page, [], [])
    assert PAGE.apply(shown, by_model=True).page.condition.hp == 11
    assert shown["condition"] == {"hp": 11, "max_hp": 11}, "the caller's patch is not changed"


def test_every_error_is_said_at_once_with_what_fits_and_the_rest_is_applied():
    patch = {
        "condition": {"hp": 10, "max_hp": 12},
        "gold": "much",
        "invntory": {"rope": 1},
        "people": {"goran": {"alive": True}, "Oda": {"rol": "smith"}, "Ben": {"role": "cook", "age": 3}},
        "quests": {"The Mill": {"status": "paused"}},
        "scene": "A mill.",
    }
    page, notes, problems = apply_fitting(PAGE, patch)
    assert notes == ["people.Ben.age: there is no such field; it was left out."], "not worth another question"
    for begin, fits in [
        ("condition.max_hp: code keeps", "leave it out"),
        ("gold: got 'much'", "whole number"),
        ("invntory: there is no such field", "did you mean inventory?"),
        ("people.Oda.rol: there is no such field", "did you mean role?"),
        ("quests.The Mill.status: got 'paused'", "'open', 'done' or 'failed'"),
        ("people.Goran.alive: Goran is dead", "`fate`"),
    ]:
        assert [fits in problem for problem in problems if problem.startswith(begin)] == [True], begin
    assert len(problems) == 6
    assert (page.scene, page.condition.hp, page.gold, page.people["Ben"].role) == ("A mill.", 10, 3, "cook")
    assert set(page.people) == {"Goran", "Ben"}, "of an entry of which nothing fits nothing is made"
    assert not page.people["Goran"].alive


@pytest.mark.parametrize(
    ("entry", "kept"),
    [
        ({"role": "cook", "hair": "red"}, {"role": "cook"}), ({"role": "cook", "rol": "smith"}, {"role": "cook"}),
        ({"job": "cook", "title": "Dr"}, {"role": "cook"}), ({"hair": "red"}, None),
    ],
)  # fmt: skip
def test_an_unknown_field_of_an_entry_costs_only_itself_beside_a_known_one(entry, kept):
    page, notes, problems = apply_fitting(PAGE, {"gold": 4, "people": {"Ben": entry}})
    ben = page.as_json()["people"].get("Ben")
    assert page.gold == 4
    assert (ben and {name: ben[name] for name in kept}) == kept
    is_asked = kept is None or "rol" in entry
    assert (bool(notes), bool(problems)) == (not is_asked, is_asked)
    with pytest.raises(PatchError, match="there is no such field"):  # a person's own patch is refused
        PAGE.apply({"people": {"Ben": entry}})


class Plot(Entry):
    """What an application's page keeps."""

    plan: str = ""


class Plots(Notebook):
    """A page whose entries are secret."""

    SECRET: ClassVar[frozenset[str]] = frozenset({"plots"})
    plots: dict[str, Plot] = {}


def test_of_a_secret_entry_nothing_is_said_in_a_note():
    _, notes, problems = apply_fitting(Plots(), {"plots": {"Maren": {"plan": "fire", "helper": "Oda"}}})
    assert (notes, len(problems)) == ([], 1)


def test_a_short_name_of_an_ability_is_told_its_long_one():
    page, _, problems = apply_fitting(CharacterNotebook(), {"abilities": {"STR": 15, "wisdom": 12}, "name": "Mira"})
    assert problems == ["abilities.STR: there is no such field; did you mean strength?"]
    assert (page.abilities.wisdom, page.name) == (12, "Mira")
    with pytest.raises(PatchError, match=r"abilities\.STR: .*did you mean strength\?"):
        CharacterNotebook().apply({"abilities": {"STR": 15}})


def test_what_has_no_room_is_refused_field_by_field():
    page, _, problems = apply_fitting(PAGE, {"facts": {"mill": "x" * 7000}, "gold": 4, "scene": "A mill."})
    assert (page.gold, page.scene, page.facts) == (4, "A mill.", {})
    assert "characters of 6000" in problems[0]
    assert problems[1] == "Not noted for that: facts."


class Garden(Notebook):
    """An application's page with a rule of its own."""

    beds: dict[str, int] = {}
    owner: str = ""

    def enforce(self, before):
        if wrong := [name for name, size in self.beds.items() if size > 9]:
            raise PatchError("Garden", [f"beds.{name}: larger than the garden." for name in wrong])
        return super().enforce(before)


def test_an_applications_own_rule_is_heard_with_the_others():
    page, _, problems = apply_fitting(Garden(), {"beds": {"North": 12, "South": 4, "x": "y"}, "owner": "Ann"})
    assert (page.beds, page.owner) == ({"South": 4}, "Ann")
    assert [problem.partition(":")[0] for problem in problems] == ["beds.x", "beds.North"]


def test_a_thousand_errors_are_cut_and_none_is_applied():
    patch = {"gold": 5} | {f"field{n}": n for n in range(1000)}
    page, _, problems = apply_fitting(PAGE, patch)
    assert page.gold == 5
    assert len(problems) == 21
    assert problems[-1] == "And 980 more of the kind."


@pytest.mark.parametrize("patch", ["text", 3, None, [], {"x": {}}, {"": 1}])
def test_what_is_no_patch_at_all_changes_nothing(patch):
    page, notes, problems = apply_fitting(PAGE, patch)
    assert (page, notes, len(problems)) == (PAGE, [], 1)
    assert isinstance(apply_fitting(PAGE, {}), PartialChange)


# Notes of a turn


async def test_the_valid_parts_of_an_answer_are_kept_and_only_the_rest_is_asked_again(mira):
    fact = {"text": "Goran keeps bees.", "subject": "Goran", "kind": "trait"}
    wrong = say("", call("StateNotebook", gold=7, condition={"hp": "all", "max_hp": 9}), call("Facts", facts=[fact]))
    mira.model.queue("quest", say("Goran keeps bees."))
    await mira.play("I look around.", update=[wrong, say("", call("StateNotebook", condition={"hp": 5}))])
    results = [m for m in mira.model.asked("update")[-1] if isinstance(m, ToolMessage)]
    assert results[0].text.startswith("What fits is noted; send only the rest again.")
    assert "condition.hp: got 'all'" in results[0].text
    assert results[1].text == "Noted."
    quest = mira.values["quest"]
    assert (quest["gold"], quest["condition"]["hp"]) == (7, 5)
    assert [value["text"] for value in (await stored(mira)).values()] == ["Goran keeps bees."]
    assert (texts(mira), mira.values["noted_through"]) == ([], 2)


async def test_what_was_sent_in_other_words_is_noted_without_another_question(mira):
    people = {"Wick": {"job": "bell boy", "status": "sleepless", "hair": "red"}}
    odd = call("StateNotebook", place="The Ford", npcs=people, inventory={"ring": "one"}, gold="35 gp")
    asked = len(turns_asked(mira))
    await mira.play("I look around.", update=say("", odd))
    quest = mira.values["quest"]
    assert (quest["location"], quest["inventory"]["ring"], quest["gold"]) == ("The Ford", 1, 35)
    assert [quest["people"]["Wick"][name] for name in ("role", "attitude")] == ["bell boy", "sleepless"]
    assert (len(turns_asked(mira)), mira.values["noted_through"]) == (asked + 1, 2)
    assert texts(mira) == ["people.Wick.hair: there is no such field; it was left out."]


async def test_two_retries_then_the_turn_stays_due_and_what_was_valid_stays_noted(mira):
    fact = {"text": "Goran keeps bees.", "subject": "Goran", "kind": "trait"}
    wrong = call("StateNotebook", gold=7, clock={"day": "dusk"})
    mira.model.queue("quest", say("Goran keeps bees."), say("The bees hum."))
    await mira.play("I look around.", update=[say("", wrong, call("Facts", facts=[fact])), *[say("", wrong)] * 2])
    assert len(turns_asked(mira)) == 1 + 3, "the first turn's, and three of this one"
    assert (mira.values["quest"]["gold"], mira.values["noted_through"]) == (7, 1)
    assert [value["text"] for value in (await stored(mira)).values()] == ["Goran keeps bees."]
    [notice] = mira.values["notices"]
    assert notice["text"] == "Not all of this turn was noted; the next turn will catch up."
    assert "clock.day: got 'dusk'" in notice["detail"]
    await mira.play("I wait.", update=say("", call("StateNotebook", clock={"day": 2}), call("Facts", facts=[fact])))
    assert turns_asked(mira)[-1] == [2, 3]
    assert (mira.values["quest"]["clock"]["day"], mira.values["noted_through"]) == (2, 3)
    assert len(await stored(mira)) == 1, "a fact that is handed over again is no second one"


async def test_what_never_fits_does_not_keep_later_turns_from_being_noted(new_mira):
    game = await new_mira(buffer_tokens=200)
    wrong = say("", call("StateNotebook", gold=7, clock={"day": "dusk"}))
    for number in range(2, 9):
        game.model.queue("quest", say(f"The road goes on to mile {number}. " * 5))
        await game.play("I walk.", update=[wrong] * 3)
    assert turns_asked(game)[-1][-1] >= 7
    assert game.values["noted_through"] >= 4
    assert any("what does not fit is left out" in text for text in texts(game))


async def test_of_turns_that_are_too_long_together_the_oldest_is_noted_and_in_short_and_the_rest_stays_due(new_mira):
    game = await new_mira(buffer_tokens=200)
    game.model.queue("quest", *[say("The road goes on and on. " * 150)] * 2)
    await game.play("I walk.", update=RuntimeError("the line is down"))
    too_long = RuntimeError("prompt is too long")
    too_long.status_code = 400
    await game.play("I walk on.", update=[too_long, say("", call("StateNotebook", gold=7))])
    assert turns_asked(game)[-1] == [2]
    assert (game.values["quest"]["gold"], game.values["noted_through"]) == (7, 2)
    assert "A turn was too long for the model that takes notes" in texts(game)[-1]


@pytest.mark.parametrize("failure", [RuntimeError("the line is down"), TimeoutError()])
async def test_a_model_that_fails_on_the_second_try_takes_nothing_back(mira, failure):
    await mira.play("I look around.", update=[say("", call("StateNotebook", gold=7, clock={"day": "dusk"})), failure])
    assert (mira.values["quest"]["gold"], mira.values["noted_through"]) == (7, 1)
    assert "Not all of this turn was noted" in texts(mira)[-1]


PROSE = "The player has counted their gold, which comes to three pieces, " + "and the road goes on " * 9


@pytest.mark.parametrize("answer", [PROSE, "Noted.", "I have noted all that happened."])
async def test_prose_or_a_claim_that_all_was_noted_is_asked_about_once_more(mira, answer):
    await mira.play("I count my gold.", update=[say(answer), say("", call("StateNotebook", gold=3))])
    assert 'answer "no change"' in mira.model.asked("update")[-1][-1].text
    assert (mira.values["quest"]["gold"], mira.values["noted_through"], texts(mira)) == (3, 2, [])


async def test_prose_twice_leaves_the_turn_to_the_next_noting_call(mira):
    await mira.play("I count my gold.", update=[say(PROSE), say(PROSE)])
    assert (mira.values["noted_through"], len(turns_asked(mira))) == (1, 3)
    assert texts(mira) == ["The quest notes were not updated; the next turn will catch up."]
    await mira.play("I wait.", update=say("", call("StateNotebook", gold=3)))
    assert turns_asked(mira)[-1] == [2, 3]
    assert (mira.values["quest"]["gold"], mira.values["noted_through"]) == (3, 3)


async def test_a_refused_note_that_is_answered_in_words_is_never_asked_again_word_for_word(mira):
    await mira.play("I count my gold.", update=[say("", call("StateNotebook", gold="much")), say(PROSE), say(PROSE)])
    asked = [str(prompt) for prompt in mira.model.asked("update") if "I count my gold." in str(prompt)]
    assert len(asked) == len(set(asked)) == 3


@pytest.mark.parametrize(
    "text", ["no change", "", "Nothing has changed: " + "they only talked of the road and of the weather. " * 9]
)
async def test_to_say_that_nothing_changed_is_an_answer(mira, text):
    await mira.play("I wait.", update=[say(text or "nothing")] * 2)
    assert (mira.values["noted_through"], len(turns_asked(mira)), texts(mira)) == (2, 2, [])


async def test_the_note_taker_is_told_how_full_the_page_is(mira):
    await mira.play("I look around.")
    page = StateNotebook.load(mira.values["quest"])
    [told] = [m.text for m in mira.model.asked("update")[-1] if "<room>\n" in m.text]
    assert f"<quest>: {len(page.render()):,} of 6,000 characters" in told


async def test_a_complete_page_with_an_error_is_mended_before_the_quest_opens(game):
    game.model.queue("interview", say("", call("CharacterNotebook", **MIRA, level=99)))
    await game.play("I am Mira, and as strong as three", interview=say("", call("CharacterNotebook", level=3)))
    assert (game.values["character"]["level"], texts(game)) == (3, [])
    assert game.reply.startswith("The wind turns")


def test_the_tool_says_how_long_a_field_may_be():
    fields = CharacterNotebook.tool()["function"]["parameters"]["properties"]
    assert fields["background"]["maxLength"] == 400


@pytest.mark.parametrize("words", ["", "And?"])
async def test_a_complete_page_whose_error_is_never_mended_opens_the_quest_all_the_same(game, words):
    game.model.queue("interview", *[say(words, call("CharacterNotebook", **MIRA, level=99)) for _ in range(3)])
    await game.play("I am Mira, and as strong as three")
    assert (game.values["character"]["level"], game.values["character"]["name"]) == (1, MIRA["name"])
    assert game.reply.startswith("The wind turns")
    assert "could be noted" in texts(game)[0]
    *_, opening, _ = game.values["messages"]
    assert (opening.type, opening.text) == ("tool", "The page is complete. Open the adventure now.")


# Dice and other tools


async def test_advantage_none_means_none_and_all_errors_of_a_roll_come_at_once(mira):
    mira.model.queue("quest", say("", call("roll_dice", expression="1d20", reason="x", advantage="none")), say("So."))
    await mira.play("I jump")
    assert mira.values["rolls"][-1]["expression"] == "1d20"
    await mira.play("I jump", quest=[say("", call("roll_dice", expresion="1d20", dc=0, advantage="adv")), say("So.")])
    result = [m.text for m in mira.values["messages"] if isinstance(m, ToolMessage)][-1]
    for part in ("expression: it is missing", "did you mean expression?", "dc: got 0", "'advantage' or 'disadvantage'"):
        assert part in result


async def test_all_errors_of_a_companions_call_come_at_once(companion):
    wrong = call("archival_memory_search", querry="x", page="one", match="some")
    await companion.say("Do you know?", say("", wrong), say("No."))
    result = [m.text for m in companion.values["messages"] if isinstance(m, ToolMessage)][-1]
    for part in ("did you mean query?", "page: got 'one'", "'any' or 'all'"):
        assert part in result


class Small(Notebook):
    """Three lines that do not all fit."""

    LIMIT: ClassVar[int] = 100
    a: str = ""
    b: str = ""
    c: str = ""


def test_on_a_full_page_a_field_that_makes_room_goes_before_one_that_needs_it():
    page, _, problems = apply_fitting(Small(a="x" * 60), {"b": "y" * 60, "a": "short", "c": "z" * 90})
    assert (page.a, page.b, page.c) == ("short", "y" * 60, "")
    assert problems[-1] == "Not noted for that: c."


NAMES = st.sampled_from(["Goran", "goran", "the Goran", "Oda", "silver key", "Silver Keys", "torch", "torches"])
COUNTS = st.one_of(st.none(), st.integers(-3, 9), st.builds(lambda n: {"$add": n}, st.integers(-3, 3)))
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
PERSON = st.one_of(st.none(), st.fixed_dictionaries({}, optional={"role": WORDS, "attitude": st.none()}))
PATCH = st.fixed_dictionaries(
    {},
    optional={
        "scene": WORDS,
        "gold": st.integers(0, 30),
        "people": st.dictionaries(NAMES, PERSON, max_size=3),
        "inventory": st.dictionaries(NAMES, COUNTS, max_size=3),
        "condition": st.fixed_dictionaries({}, optional={"hp": st.integers(-5, 40)}),
        "clock": st.fixed_dictionaries({}, optional={"day": st.integers(1, 9), "time": WORDS}),
        "secrets": st.dictionaries(NAMES, st.one_of(st.none(), WORDS), max_size=2),
    },
)


@settings(max_examples=30)
@given(st.lists(PATCH, max_size=3), st.lists(PATCH, min_size=1, max_size=3))
def test_the_reducer_takes_every_patch_that_the_notes_make(before, calls):
    """`update_state` sends what changed on the page without applying it once more: the reducer must not refuse it."""
    page = StateNotebook.load({"condition": {"max_hp": 12, "hp": 12}})
    for patch in before:
        page = _applied(page, patch)
    noted = page
    for patch in calls:
        noted = _applied(noted, patch)
    assume(noted is not page)
    channel = patches(StateNotebook).from_checkpoint(page.as_json()).copy()
    channel.update([noted.patch_from(page)])
    reduced = channel.get()
    assert reduced == noted.as_json()


def _applied(page, patch):
    try:
        return page.apply(patch, by_model=True).page
    except NotebookError:
        return page


def test_notes_catch_up_in_portions_that_hold_at_least_one_turn():
    turns = [{"turn": number, "player": "x" * 400, "reply": ""} for number in (1, 2, 3)]
    assert [turn["turn"] for turn in oldest_within(turns, 250)] == [1, 2]
    assert [turn["turn"] for turn in oldest_within(turns, 1)] == [1]
    assert oldest_within([], 250) == []


async def test_two_calls_that_fit_one_by_one_and_not_together_cost_no_turn(mira):
    mira.model.queue("update", say("", call("StateNotebook", people={"Goran": {"alive": False, "fate": "eaten"}})))
    await mira.play("The wolves come.")
    returned = call("StateNotebook", people={"Goran": {"alive": True, "fate": "called back by Oda"}})
    as_before = call("StateNotebook", people={"Goran": {"fate": "eaten"}})
    mira.model.queue("update", say("", returned, as_before), *[say("", as_before)] * 2)
    values = await mira.play("Oda sings at the grave.")
    assert values["quest"]["people"]["Goran"]["fate"] == "called back by Oda", "what fits is noted"
    assert "Goran is dead" in values["notices"][-1]["detail"]
    assert values["messages"][-1].text == "The wind turns. What do you do?"


JARGON = re.compile(
    r"StateNotebook|CharacterNotebook|Notebook|\bFacts\b|Person|instance of|dictionary|none that there is|\btool\b|"
    r"roll_dice|update_state|JSON|\bnode\b|channel|traceback|_\w+\(|questbook\.",
    re.I,
)
BAD_PAGE = call("StateNotebook", people={"Goran": "the smith"}, gold="much", condition={"max_hp": 99})
BAD_FACT = {"text": "", "kind": 7}


@pytest.mark.parametrize(
    "answer",
    [
        say("", BAD_PAGE),
        say("", call("NoSuchTool", gold=1)),
        malformed("StateNotebook", '{"gold": '),
        say("I would note that {gold: 7} and much more. " * 20),
        say("", call("Facts", facts=[BAD_FACT, 7, {"text": "Oda sings.", "kind": "song", "importance": "very"}])),
        say(""),
    ],
    ids=["page", "tool", "unreadable", "prose", "facts", "nothing"],
)
async def test_errors_of_the_notes_are_told_in_plain_words(mira, answer):
    await mira.play("I look around.", update=[answer] * 4)
    assert [text for text in texts(mira) if JARGON.search(text)] == []


async def test_of_what_was_mended_nothing_is_told(mira):
    before = texts(mira)
    await mira.play("I count my gold.", update=[say("", BAD_PAGE), say("", call("StateNotebook", gold=7))])
    await play(mira, "I listen.", {"text": "Oda sings.", "kind": "song", "importance": "very", "mood": "sad"})
    assert mira.values["quest"]["gold"] == 7
    assert texts(mira) == before


async def test_a_note_of_the_interview_that_was_mended_is_not_told_and_another_in_plain_words(new_game):
    game = new_game()
    wrong = call("CharacterNotebook", **MIRA | {"level": 99})
    await game.play("I am Mira.", interview=[say("And?", wrong), say("", call("CharacterNotebook", **MIRA))])
    assert (game.values["character"]["name"], texts(game)) == (MIRA["name"], [])
    other = new_game()
    await other.play("I am Mira.", interview=[say("And?", wrong)] * 3)
    [told] = texts(other)
    assert not JARGON.search(told)
    assert "level" in other.values["notices"][0]["detail"]


# Taking notes by itself, without a game


PROMPT = [HumanMessage("What changed?")]
GOLD, FACT = call("StateNotebook", gold=7), call("Facts", facts=[{"text": "Oda sings."}])
MISFIT = call("StateNotebook", gold="much", scene="A mill.")


async def noted(model, *answers, pages=None):
    model.queue("update", *answers)
    context = Settings.of({"user": "ann", "model": "scripted"})
    return await take_notes([StateNotebook()] if pages is None else pages, PROMPT, context, [facts_tool()])


async def test_what_fits_is_noted_and_the_rest_asked_for_twice_more_with_all_that_is_wrong(model):
    notes = await noted(model, say("", MISFIT, FACT), say("", MISFIT), say("", MISFIT), say("", GOLD))
    assert len(model.asked("update")) == 3
    assert notes.patches == [{"scene": "A mill."}]
    assert (notes.refused, len(notes.problems)) == ({"StateNotebook"}, 1)
    assert [each.args for each in notes.other_calls] == [FACT["args"]]
    second = model.asked("update")[1]
    assert [message.type for message in second] == ["human", "ai", "tool", "tool"]
    assert "gold: got 'much'" in second[2].text
    model.script["update"].clear()
    notes = await noted(model, say("", MISFIT), say("", GOLD))
    assert (notes.patches, notes.problems, notes.refused) == ([{"gold": 7, "scene": "A mill."}], [], set())
    notes = await noted(model, say("no change"), pages=[StateNotebook(gold=3)])
    assert (notes.patches, notes.problems, notes.other_calls) == ([{}], [], [])


async def test_calls_of_other_tools_that_cannot_be_read_do_not_hold_a_page_up(model):
    broken = malformed("Facts", "{")
    both = AIMessage("", tool_calls=[GOLD], invalid_tool_calls=broken.invalid_tool_calls)
    notes = await noted(model, both, broken, broken)
    told = "The Facts that the model sent could not be read; the page's notes are kept."
    assert (notes.patches, notes.problems, notes.refused, notes.remarks) == ([{"gold": 7}], [], set(), [told])
    assert notes.other_calls == []
    worse = AIMessage("", tool_calls=[MISFIT], invalid_tool_calls=broken.invalid_tool_calls)
    notes = await noted(model, worse, worse, worse)
    assert (notes.refused, len(notes.problems), notes.remarks) == ({"StateNotebook", "Facts"}, 2, [])
    notes = await noted(model, *[malformed("StateNotebook", "{")] * 3)
    assert (notes.refused, len(notes.problems), notes.remarks) == ({"StateNotebook"}, 1, [])


async def test_values_that_code_corrects_are_remarks(model):
    hurt = StateNotebook().apply({"condition": {"max_hp": 11, "hp": 9}}).page
    notes = await noted(model, say("", call("StateNotebook", condition={"hp": 40})), pages=[hurt])
    assert [notes.patches, len(notes.remarks), notes.problems] == [[{"condition": {"hp": 11}}], 1, []]


@pytest.mark.parametrize(("said", "asked"), [
    ("no change", 1), ("Nothing.", 1), ("None", 1), ("n/a", 1), ("The page is UNCHANGED.", 1), ("It does not.", 1),
    ("Noted.", 2), ("Know this: gold is 7.", 2), ('{"no": "change"}', 2),
    ("The innkeeper has no bread. " * 8, 2), (f"{'The innkeeper bakes bread. ' * 8}Nothing has changed.", 1),
    (f"{'The innkeeper bakes bread. ' * 8}There is no change.", 1), (f"{'It rains on. ' * 20}It is unchanged.", 1),
])  # fmt: skip
async def test_an_answer_in_words_is_asked_for_a_call_once_unless_it_says_that_nothing_changed(model, said, asked):
    notes = await noted(model, say(said), say(said), say("", GOLD))
    assert len(model.asked("update")) == asked
    if asked == 1:
        assert (notes.problems, notes.refused) == ([], set())
    else:
        assert (notes.problems, notes.refused) == (
            ["The answer was text in the place of a call."], {"StateNotebook"},
        )  # fmt: skip
        assert model.asked("update")[1][-1].text == (
            "The answer was text in the place of a call. Call StateNotebook, Facts with what is to be noted, or answer "
            '"no change".'
        )


async def test_what_was_noted_counts_if_the_model_then_fails_and_before_that_the_error_is_raised(model):
    notes = await noted(model, say("", MISFIT), ConnectionError("cut"))
    assert (notes.patches, notes.refused) == ([{"scene": "A mill."}], {"StateNotebook"})
    assert "cannot be reached (cut)" in notes.problems[-1]
    with pytest.raises(ModelError, match="cannot be reached"):
        await noted(model, ConnectionError("cut"))


async def test_of_what_is_too_long_the_oldest_turn_is_asked_about_alone_and_then_in_short():
    turns = [{"turn": n, "player": "x" * 4_000, "reply": "Yes."} for n in (1, 2, 3)]

    async def asked(fits):
        shown = []

        async def ask(portion):
            shown.append(portion)
            if not fits(portion):
                raise PromptTooLongError("too long")
            return "noted"

        return await ask_of_oldest(turns, 2_100, ask), shown

    found, shown = await asked(lambda portion: True)
    assert (found.answer, found.turns, found.short, len(shown)) == ("noted", turns[:2], False, 1)
    found, shown = await asked(lambda portion: len(portion) == 1)
    assert (found.turns, found.short, shown) == (turns[:1], False, [turns[:2], turns[:1]])
    found, shown = await asked(lambda portion: len(portion[0]["player"]) < 4_000)
    assert (found.turns, found.short, len(shown)) == (turns[:1], True, 3)
    assert shown[2] == [{"turn": 1, "player": f"{'x' * 1_000} … {'x' * 1_000}", "reply": "Yes."}]
    with pytest.raises(PromptTooLongError):
        await asked(lambda portion: False)


def test_notes_that_fail_are_told_and_those_that_give_way_are_not():
    def told(error, *failures):
        with catching_up(TurnState(turn=3, timeline=[("a", 3)]), "learn", "Not noted", *failures) as notices:
            raise error
        return notices

    text = "Not noted; the next turn will catch up. cut"
    assert told(ModelError("cut")) == [{"turn": 3, "node": "learn", "text": text}]
    assert told(OSError("cut"), Exception) == [{"turn": 3, "node": "learn", "text": text}]
    assert told(GaveWay()) == told(GaveWay(), Exception) == []
    with pytest.raises(OSError, match="cut"):
        told(OSError("cut"))


def test_attributes_are_grouped_by_subject_and_each_is_named_once():
    slots = [
        Slot("goran|home", "Goran", "home", "1"), Slot("oda|age", "Oda", "age", "2"),
        Slot("goran|debt", "goran", "debt", "3"), Slot("goran|home|secret", "Goran", "home", "4"),
    ]  # fmt: skip
    assert attribute_lines(slots) == [
        '{"subject": "Goran", "attributes": ["home", "debt"]}', '{"subject": "Oda", "attributes": ["age"]}',
    ]  # fmt: skip
    many = attribute_lines([Slot(f"goran|{n:03}", "Goran", f"{n:03}", "1") for n in range(200)])
    assert 900 < len(many[0]) <= 4 * 240
    long = [Slot("goran|x", "Goran", "x" * 2_000, "1"), *slots]
    assert attribute_lines(long) == attribute_lines(slots), "what does not fit makes room for what does"


async def test_notes_are_not_streamed(model):
    async def note(state):
        await noted(model, say("no change, he said"), say("", GOLD))

    graph = StateGraph(MessagesState).add_node("note", note).add_edge(START, "note").compile()
    assert [part async for part, _ in graph.astream({"messages": []}, stream_mode="messages")] == []
