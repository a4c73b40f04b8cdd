"""What a prompt has of long talk and of what has changed: the same in the game, the companion and all agents."""

import json
import math
from datetime import UTC, datetime

import pytest
from answering import Talk
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langgraph.checkpoint.memory import InMemorySaver
from long_talk import NEEDLE, essay
from machines import ASSISTANTS, MACHINES, Machine, home
from scripted import call, say
from stores import execute

from questbook import FactNotes, FaissStore, LastTurns, Recall, build_agent
from questbook.graphs.turn.recall import ASSISTANT, OPENING, Reader, memory_line, memory_of
from questbook.memory.recall.query import Recalled
from questbook.memory.text.passages import Span
from questbook.memory.timeline.timeline import UserTimeline

QUESTION = "Where does the spare cellar key hang?"


@pytest.fixture(params=MACHINES)
async def machine(request, model):
    return await Machine(request.param, model).begin()


@pytest.fixture(params=ASSISTANTS)
async def assistant(request, model):
    return await Machine(request.param, model).begin()


def tokens(lines):
    return sum(math.ceil((len(str(line)) + 1) / 4) for line in lines)


@pytest.mark.parametrize("length", [5_000, pytest.param(25_000, marks=pytest.mark.slow)])
@pytest.mark.slow
async def test_what_a_person_said_is_found_however_long_the_replies_are(machine, length):
    await machine.say("The spare cellar key hangs behind the clock, I tell you.", essay(length, "The house is old."))
    for turn in range(1, 4):
        await machine.say(f"What of house {turn}?", essay(length, f"House {turn} is old.", 1000 * turn))
    lines = await machine.say(QUESTION)
    [line] = [line for line in lines if "behind the clock" in line.get(machine.person, "")]
    assert line[machine.person] == "The spare cellar key hangs behind the clock, I tell you."
    assert tokens(lines) <= 840, "800, and what differs in how a test counts"


@pytest.mark.parametrize("length", [5_000, pytest.param(25_000, marks=pytest.mark.slow)])
async def test_the_sentence_of_a_long_message_or_reply_is_shown_and_dots_for_the_rest(machine, length):
    await machine.say(essay(min(length, 7_000), "My uncle keeps seven geese.", 5_000), essay(length))
    await machine.say("Thanks.")
    lines = await machine.say(QUESTION)
    [line] = [line for line in lines if NEEDLE in line.get(machine.reply, "")]
    assert line[machine.reply].startswith("… ")
    assert line[machine.person].endswith(" …")
    assert tokens(lines) <= 840
    lines = await machine.say("How many geese does my uncle keep?")
    assert any("My uncle keeps seven geese." in line.get(machine.person, "") for line in lines)


async def test_a_standing_instruction_comes_whatever_is_asked(assistant):
    await assistant.say("Always answer in metric units, please.", essay(5_000, "Fine."))
    for turn in range(1, 4):
        await assistant.say(f"What of house {turn}?", essay(5_000, f"House {turn} is old.", 1000 * turn))
    assert "Always answer in metric units" in str(await assistant.say("Which house is old?"))
    assert "Always answer in metric units" in str(await assistant.say("Zzz?"))


async def moved(machine):
    """Tell where one lives, and later that one has moved; return the checkpoint in between."""
    await machine.say("I live in Oslo.", "Nice.", home("Oslo"))
    await machine.say("The weather is fine.")
    before = machine.checkpoint
    await machine.say("I live in Bergen now.", "Nice.", home("Bergen"))
    await machine.say("The weather is fine again.")
    return before


async def test_an_exchange_whose_facts_say_it_all_does_not_come(assistant):
    await moved(assistant)
    lines = await assistant.say("Where do I live?")
    assert [line["fact"] for line in lines if "fact" in line] == ["The user lives in Bergen."]
    assert "Oslo" not in str(lines)
    assert "I live in Bergen now." not in str(lines)
    assert "Nice." not in str(lines), "nor its short answer"


async def test_in_the_game_nobodys_words_are_dropped_for_a_fact(model):
    game = await Machine("game", model).begin()
    await moved(game)
    lines = await game.say("Where do I live?")
    assert {"I live in Oslo.", "I live in Bergen now."} <= {line.get("player") for line in lines}
    assert "The user lives in Oslo." not in str(lines)
    assert "The user lives in Bergen." in str(lines)


async def test_an_exchange_that_tells_more_comes_without_what_has_ended_and_says_until_when(assistant):
    said = "I live in Oslo. My brother Ole lent me a red canoe for the summer trips on the lake."
    await assistant.say(said, "Nice.", home("Oslo"))
    await assistant.say("The weather is fine.")
    await assistant.say("I have moved to Bergen.", "Nice.", home("Bergen"))
    await assistant.say("The weather is fine again.")
    lines = await assistant.say("Who lent me the canoe when I was in Oslo?")
    [line] = [line for line in lines if "canoe" in str(line)]
    assert line["user"] == "My brother Ole lent me a red canoe for the summer trips on the lake."
    assert len(line["until"]) == len("2026-01-01")


async def test_what_took_the_place_of_a_long_fact_is_shown_whole(machine):
    """The passages that fitted the question were those of the old fact, and cut the new one."""
    old = "Goran, whom all call the Heron, lives at the mill, " + "which is old and stands at the river " * 20
    new = f"Goran lives in the tower now, where the bell is, {'and where the wind never rests at all ' * 14}as he says."
    about = {"subject": "Goran", "attribute": "home", "kind": "trait"}
    await machine.say("Go on.", "Well.", {"text": old[:990], "value": "the mill", **about})
    await machine.say("Go on!", "Well.", {"text": new, "value": "the tower", **about})
    await machine.say("The weather is fine.")
    lines = await machine.say("Where at the river does the Heron live?")
    assert [line for line in lines if new in line.values()], lines
    assert "mill" not in str(lines)


def of_person(attribute, value):
    text = f"The user's {attribute} is {value}."
    return {"text": text, "kind": "trait", "subject": "the user", "attribute": attribute, "value": value}


async def test_what_do_you_know_about_me_brings_all_that_holds_and_the_cat(assistant):
    for name, value in (("job", "nurse"), ("home", "Oslo"), ("cat", "Miso"), ("job", "baker")):
        await assistant.say(f"About my {name}: {value}.", "Good.", of_person(name, value))
    miso = {"text": "Miso is afraid of hoovers.", "subject": "Miso", "attribute": "fear", "value": "hoovers"}
    await assistant.say("Miso is afraid of hoovers.", "Oh.", miso | {"kind": "trait"})
    told = str(await assistant.say("What do you know about me?"))
    assert all(word in told for word in ("baker", "Oslo", "Miso", "hoovers"))
    assert "nurse" not in told
    cat = str(await assistant.say("Tell me everything about my cat"))
    assert "hoovers" in cat


async def test_a_facts_line_shows_on_which_day_it_is_and_a_question_for_the_day_brings_it(assistant):
    trip = {"text": "The user flies to Lisbon on 14 December.", "kind": "event", "subject": "the user"}
    await assistant.say("I fly to Lisbon on 14 December.", "Good.", trip)
    await assistant.say("I like tea.", "Good.", of_person("favourite drink", "tea"))
    lines = await assistant.say("What is on 14 December?")
    assert [line["when"].endswith("-12-14") for line in lines if "Lisbon" in line.get("fact", "")] == [True]


@pytest.mark.slow
async def test_no_more_lines_than_most_with_notes_too(model):
    talk = Talk(facts=FactNotes(), recall=Recall(most=12), buffer=LastTurns(1))
    for n in range(14):
        fact = say("", call("Facts", facts=[of_person(f"lamp {n}", "red")]))
        await talk.say(f"Lamp {n} is red and warm.", None, "Good.", fact)
    for words in ("Where are my lamps?", "What do you know about me?"):
        await talk.say(words, None, "There.", "no change")
        prompt = next(one for one in reversed(talk.model.prompts) if one[-1].text == words)
        lines = prompt[0].text.partition("<memories>\n")[2].partition("\n</memories>")[0].splitlines()
        assert len(lines) == 12
    assert any('"user"' in line for line in lines) or words == "What do you know about me?"


async def test_a_fact_of_the_person_is_once_in_the_prompt_and_a_rumour_is_none(assistant):
    await assistant.say("I live in Oslo.", "Good.", home("Oslo"))
    rumour = home("Bergen", kind="rumour", claimed_by="Ole", attribute="second home")
    await assistant.say("Ole says that I live in Bergen, too.", "Does he?", rumour)
    await assistant.say("Hello.")
    for words, town in (("Where do I live?", 1), ("Tell me of volcanoes.", 0)):
        told = [str(line) for line in await assistant.say(words)]
        assert sum("lives in Oslo" in line for line in told) == 1
        assert sum("lives in Bergen" in line for line in told) <= town


async def test_damaged_memories_are_left_out_with_one_notice(tmp_path):
    file, model = tmp_path / "memory.db", GenericFakeChatModel(messages=iter("I see." for _ in range(9)))
    async with FaissStore.open(file) as store:
        app = build_agent([], name="chat", model=model).compile(checkpointer=InMemorySaver(), store=store)
        for thread, words in enumerate(("My lamp is red.", "My boat is blue.", "What colour are my lamp and my boat?")):
            if thread == 2:
                damaged = "replace(replace(value, 'lamp is red', 'lamp is rud'), 'boat is blue', 'boat is blau')"
                execute(file, f"UPDATE items SET value = {damaged}")
            config = {"configurable": {"thread_id": str(thread), "user": "ann"}}
            values = await app.ainvoke({"messages": [("user", words)]}, config)
    [told] = values["notices"]
    assert "A damaged memory was left out; `questbook doctor` examines the file" in str(told)


@pytest.mark.parametrize(("kind", "label"), [
    ("event", "fact"), ("trait", "fact"), ("secret", "fact"), ("promise", "fact"), ("insight", "insight"),
    ("rumour", "rumour"), ("archive", "archive"),
])  # fmt: skip
def test_a_line_names_the_kind_in_a_game_and_for_an_assistant_what_its_prompt_speaks_of(kind, label):
    memory = {"kind": kind, "turn": 3, "age": "just now", "text": "Oda left.", "claimed_by": "Bo"}
    assert json.loads(memory_line(memory)) == {"turn": 3, "age": "just now", kind: "Oda left.", "claimed_by": "Bo"}
    told = {"turn": 3, "age": "just now", label: "Oda left.", "claimed_by": "Bo"}
    assert json.loads(memory_line(memory, ASSISTANT)) == told


def test_a_line_says_when_it_was_and_until_when_and_names_nothing_that_is_not_known():
    times = {"story_time": "day 3", "when": "Mon 2026-12-14", "until": "2026-12-20", "claimed_by": "Bo"}
    memory = {"kind": "event", "turn": 3, "age": "just now", "text": "Oda left.", **times, "tells": ["k"], "score": 0.5}
    told = {"turn": 3, "age": "just now", "event": "Oda left.", **times}
    assert json.loads(memory_line(memory)) == told
    assert memory_line(memory | dict.fromkeys(("age", *times), "")) == '{"turn": 3, "event": "Oda left."}'


def test_a_line_of_lore_has_its_source_and_one_of_talk_the_voices_that_the_prompt_knows():
    lore = {"kind": "lore", "source": "a.pdf", "page": 3, "section": "Inns", "text": "An inn."}
    assert json.loads(memory_line(lore)) == {"source": "a.pdf, page 3, Inns", "text": "An inn."}
    assert json.loads(memory_line({"kind": "lore", "text": "An inn."})) == {"lore": "An inn."}
    said = {"kind": "exchange", "turn": 3, "player": "Hi.", "reply": "Yes.", "rest": "k"}
    lines = [json.loads(memory_line(said, voices)) for voices in (None, ASSISTANT, OPENING)]
    assert lines == [
        {"turn": 3, "player": "Hi.", "reply": "Yes."},
        {"turn": 3, "user": "Hi.", "assistant": "Yes."},
        {"turn": 3, "user": "Hi.", "assistant": "Yes.", "key": "k"},
    ]


HERE = Reader(datetime(2026, 1, 5, tzinfo=UTC))
GAME = HERE._replace(character="Mira", session=3)
PART = HERE._replace(timeline=UserTimeline([("b", 3)], thread="here", heads=("h",)))  # who is shown a part
INN = {"source": "a.pdf", "page": 3, "section": "Inns", "row": 7}
SAID_AT = {"turn": 2, "said_at": "2026-01-03T00:00:00+00:00", "session": 2, "day": 4}


@pytest.mark.parametrize(("record", "reader", "made"), [
    ({"player": "Hi.", **SAID_AT}, HERE, {"kind": "exchange", "age": "2 days ago", "said_at": SAID_AT["said_at"]}),
    ({"player": "Hi.", **SAID_AT}, HERE._replace(session=3), {"age": "2 days ago"}),  # sessions are of games alone
    ({"kind": "trait", "text": "x", **SAID_AT}, GAME, {"when": "", "story_time": "day 4"}),  # said once
    ({"kind": "lore", "text": "An inn.", **INN}, HERE, INN | {"text": "An inn.", "age": None}),
    ({"player": "Hi. Oh.", "reply": "", "turn": 2}, PART, {"turn": 2, "rest": None}),  # its turn names it
    ({"player": "Hi. Oh.", "reply": "", "turn": 2, "thread": "there", "branch": "t"}, PART, {"turn": 0, "rest": "k"}),
    ({"player": "Hi. Oh.", "reply": "", "turn": 2, "thread": "there", "branch": "b"}, PART, {"turn": 2, "rest": None}),
    ({"kind": "trait", "text": "Hi. Oh.", "turn": 2}, PART, {"turn": 2, "rest": "k"}),
    ({"player": "Hi.", **SAID_AT}, GAME, {"age": "2 days ago in real time (last session)", "story_time": "day 4"}),
    ({"player": "Hi.", **SAID_AT, "story_time": "day 4, dusk"}, GAME, {"story_time": "day 4, dusk"}),
    ({"kind": "trait", "text": "x", "slot": "a|b", **SAID_AT}, HERE, {"age": None, "when": "day 4"}),  # it holds now
    ({"kind": "trait", "text": "x", **SAID_AT}, HERE, {"age": "2 days ago"}),
    ({"kind": "trait", "text": "x", "slot": "a|b", **SAID_AT}, GAME, {"age": "2 days ago in real time (last session)"}),
    ({"kind": "event", "text": "x", "turn": 2, "known_by": ["Oda"]}, GAME, {"kind": "secret"}),
    ({"kind": "event", "text": "x", "turn": 2, "known_by": ["Mira"]}, GAME, {"kind": "event"}),
    ({"kind": "event", "text": "x", "turn": 2, "known_by": ["Oda"]}, HERE, {"kind": "event"}),
    ({"kind": "event", "text": "x", "turn": 2, "claimed_by": "Bo"}, GAME, {"claimed_by": "Bo"}),
    ({"player": "Hi.", "turn": 2, "until": "2026-01-01"}, HERE, {"until": "2026-01-01"}),
    ({"player": "Hi.", "turn": 2, "until": ""}, HERE, {"until": "a later turn"}),
])  # fmt: skip
def test_a_memory_says_when_it_was_and_what_its_reader_knows(record, reader, made):
    memory = memory_of(Recalled("k", record, shown=(Span(0, 3),) if reader is PART else ()), reader)
    assert {name: memory.get(name) for name in made} == made
