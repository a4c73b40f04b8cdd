"""What reads foreign text reads a megabyte of the worst without delay: a message, an answer, a command, a name."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from random import Random

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from timing import cpu_seconds

from questbook import CharacterNotebook, StateNotebook
from questbook.graphs.dungeon_master.dice import roll
from questbook.graphs.dungeon_master.facts import split_aside
from questbook.graphs.dungeon_master.sheet import ancestry_said
from questbook.graphs.dungeon_master.told_rolls import ToldRolls
from questbook.graphs.errors import ForgettingError
from questbook.graphs.forgetting.phrase import Phrase
from questbook.graphs.interface.text import clean, one_line
from questbook.graphs.models.providers import redact
from questbook.graphs.offline.assistant import OfflineAssistant
from questbook.graphs.offline.storyteller.model import OfflineStoryteller
from questbook.graphs.terminal.screen import split_paragraphs
from questbook.memory.buffer.summary import clip_summary, extend_summary
from questbook.memory.facts.reading import read_facts
from questbook.memory.facts.reflection import read_questions
from questbook.memory.ltm.memories import memory_key, strip_speaker
from questbook.memory.recall.intents import off_record
from questbook.memory.recall.names import find_names, name_words, remove_words
from questbook.memory.recall.times import names_time, read_asked_time
from questbook.memory.text.words import content_stems, is_negated, names_in, query_words, split_words, stem_words
from questbook.memory.timeline.namespaces import escape_label
from questbook.notebooks.base import parse_fields, render_fields

NOW = datetime(2026, 7, 1, tzinfo=UTC)
UNITS = [*' \naA1."“', "((", *"({[<", "&#9", *"\\,?", "\x1b[", "\x90", "Mira ", "and then ", "please, ", "don't note "]
UNITS += ["last ", "a\n", "<a>", '“"', "d6+", "```", "- ", "\ud800", "é"]
READERS = {
    "off_record": off_record,
    "split_aside": split_aside,
    "times": lambda text: (names_time(text), read_asked_time(text, NOW)),
    "names": lambda text: (find_names(text), name_words(text), remove_words(text, ["Mira"])),
    "words": lambda text: (split_words(text), query_words(text), is_negated(text), names_in(text)),
    "stems": lambda text: (content_stems(text), stem_words(split_words(text)[:100])),
    "summary": lambda text: (extend_summary(text, [text], 400), clip_summary(text, 400)),
    "facts": lambda text: read_facts({"facts": [{"fact": text, "importance": text, "valid_from": text, "who": text}]}),
    "questions": lambda text: read_questions([], text),
    "label": escape_label,
    "speaker": lambda text: (strip_speaker(text, "Mira"), memory_key(text, text, text)),
    "screen": lambda text: (clean(text), one_line(text, 80), split_paragraphs(text)),
    "key": redact,
    "page": lambda text: (parse_fields(text), render_fields({"a": text})),
    "character": lambda text: CharacterNotebook().apply({"name": text, "class": text}),
    "ancestry": lambda text: ancestry_said([text]),
    "rolls": lambda text: ToldRolls([]).mark(text, 0, ended=True),
    "quest": lambda text: StateNotebook().apply({"scene": text, "facts": {text: text}, "gold": text}),
    "dice": lambda text: roll(text, rng=Random(1)),
    "phrase": lambda text: (Phrase("Mira").is_in(text), Phrase(text[:200]).is_in(text)),
}


def read(reader, text):
    with suppress(ValueError, ForgettingError):  # it may be refused
        reader(text)


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_it_is_read_or_refused_at_once(reader):
    for unit in UNITS:
        assert cpu_seconds(partial(read, reader, unit * (40_000 // len(unit))), 1) < 1, repr(unit)


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_megabyte_is_read_or_refused(reader):
    for unit in UNITS[::5]:
        text = f"Mira: {unit * (1_000_000 // len(unit))}\x01"
        assert cpu_seconds(partial(read, reader, text), 20, tries=2) < 20, repr(unit)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [OfflineStoryteller(seed=1), OfflineAssistant(seed=1)], ids=["storyteller", "assistant"]
)
def test_the_offline_models_cut_what_a_person_wrote(model):
    system = SystemMessage("<missing>\nname\n</missing>\n<character>\n</character>")
    for unit in [" ", "\n", "until ", "who am i ", "“'“", "a. ", "((", "&#" + "9" * 5000]:
        text = unit * (400_000 // len(unit))
        turns = f"<turns>\n{json.dumps({'turn': 1, 'player': text, 'reply': text})}\n</turns>"
        for messages, tools in [
            ([system, HumanMessage(text)], ["CharacterNotebook"]),
            (
                [SystemMessage("<quest>\n</quest>"), HumanMessage(text), AIMessage("So."), HumanMessage(text)],
                ["roll_dice"],
            ),
            ([SystemMessage(turns), HumanMessage("Note.")], ["StateNotebook"]),
            ([SystemMessage(turns), HumanMessage("Sum up, in at most 90 words.")], []),
        ]:
            asked = partial(model.bind_tools(tools).invoke, messages)
            assert cpu_seconds(asked, 4) < 4, (repr(unit[:20]), tools)
