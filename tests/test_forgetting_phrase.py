"""A phrase is found and cut in whatever spelling or encoding it stands."""

import json
import unicodedata
from collections import namedtuple
from datetime import UTC, datetime
from time import process_time

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.store.base import Item
from langgraph.types import Interrupt, Send
from pydantic import BaseModel, Field

from questbook import CharacterNotebook, Notebook, StateNotebook
from questbook.graphs.errors import ForgettingError
from questbook.graphs.forgetting.phrase import Phrase
from questbook.graphs.turn.turn import FORGOTTEN
from questbook.notebooks import CoreNotebook
from questbook.notebooks.base import Entry

HERON, NOW = Phrase("Silver  Heron"), datetime.now(UTC)


def test_case_and_white_space_do_not_count_and_what_only_looks_alike_stays():
    for text in (
        "silver heron",
        "SILVER HERON",
        "a silver\n\theron!",
        r"silver\nheron",
        "Silver Herons",
        "_Silver Heron_",
        "the **silver** heron",
        "silver-heron",
        "silver, heron",
        "silver — *heron*",
        "`silver`_heron_",
        "> silver\n> heron",
        'the "silver" heron',
        r'{"said": "the \"silver\" heron"}',
        "silver&nbsp;heron",
        r"silver\u2014heron",
        "sil\u200bver heron",
        "s\u00adilver\u2060 her\ufeffon",
        r"sil\u200bver heron",
        "ｓｉｌｖｅｒ　ｈｅｒｏｎ",
        r"\uff33ilver heron",
        "𝐬𝐢𝐥𝐯𝐞𝐫 𝓱𝓮𝓻𝓸𝓷",
        r"\ud835\udc2cilver heron",
        "ſilver heron",
        "ⓢilver heron",
    ):
        assert HERON.is_in(text)
        assert FORGOTTEN in HERON.cut_text(text)
        assert "ver" not in HERON.cut_text(text)
    assert Phrase("ｓｉｌ\u200bｖｅｒ **heron**").is_in("Silver heron")
    assert Phrase("fish").is_in("a ﬁsh")
    assert Phrase("Straße").is_in("STRASSE")
    for text in (
        "silverheron",
        "silver and heron",
        "quicksilver\u200b heron",
        '{"silver": "heron"}',
        '["silver","heron"]',
    ):
        assert not HERON.is_in(text)
        assert HERON.cut(text) is text


@pytest.mark.parametrize(
    ("words", "inside", "whole"),
    [
        (
            "Lea",
            "leather sleaze Azalea Lea\u200bther A\u00adLea Lea\u0301 \\u00d6lea Lea\\u00e9",
            "Lea leas LEA's Lea-Marie \\nLea \\u201eLea",
        ),
        ("Elin", "timeline Evelin Elina", "elin Elins (Elin) x_Elin_y \\tElin"),
        ("Größe", "Größenwahn", "GRÖSSE größe Größes"),
        ("L-77", "XL-77 L-770", "L-77 l-77."),
        ("東京都", "", "私は東京都に住む"),
    ],
)
def test_words_are_cut_whole_and_longer_words_stay(words, inside, whole):
    phrase = Phrase(words)
    for word in inside.split():
        assert phrase.cut_text(word) == word
        phrase.check_own(word)
    for word in whole.split():
        assert phrase.cut_text(word).count(FORGOTTEN) == 1, word
        assert phrase.seems_in(b"a" + word.encode() if word[0].isalnum() else word.encode())
        assert phrase.may_be_in(b"a" + word.encode() + b"A")


@pytest.mark.parametrize(
    "words", ["Schwértfisch 😀", 'she said "friend" twice', "a<b>c & d's", "Größe", "東京都", "back\\slash"]
)
@pytest.mark.parametrize("times", [0, 1, 2])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_json_in_json_and_both_unicode_forms_are_seen_through(words, times, ascii_only, form):
    text = unicodedata.normalize(form, f"before {words.upper()} after")
    for _ in range(times):
        text = json.dumps({"said": text}, ensure_ascii=ascii_only)
    cut = Phrase(words).cut_text(text)
    for _ in range(times):
        cut = json.loads(cut)["said"]
    assert cut == f"before {FORGOTTEN} after"


def test_a_name_goes_with_its_entry_and_structure_stays():
    page = {"people": {"The Silver Heron": {"role": "ship"}, "Bo": {"role": "saw the silver heron"}}, "gold": 3}
    assert HERON.cut(page) == {"people": {"Bo": {"role": f"saw the {FORGOTTEN}"}}, "gold": 3}
    assert page["people"]["The Silver Heron"], "the original is left alone"
    StateNotebook.load(HERON.cut(page))


class Room(Entry):
    size: str = ""
    rooms: dict[str, "Room"] = {}


class MapNotebook(Notebook):
    rooms: dict[str, Room] = {}


def test_a_name_goes_from_entries_within_entries_of_their_own_kind():
    page = {"rooms": {"hall": {"rooms": {"Silver Heron": {"size": "small"}, "well": {"size": "deep"}}}}}
    assert Phrase("Silver Heron").cut(page) == {"rooms": {"hall": {"rooms": {"well": {"size": "deep"}}}}}
    MapNotebook.load(page)


def test_a_channel_of_an_app_may_have_keys_that_are_no_strings():
    assert HERON.cut({"inventory": {7: "a silver heron", 8: "rope"}}) == {"inventory": {7: "a [forgotten]", 8: "rope"}}


def test_what_does_not_hold_it_is_the_very_same():
    value = {
        "messages": [HumanMessage("hello", id="1"), AIMessage("hi", id="2")], "timeline": [["a", 1]], "n": (1, 2),
        "quest": {"version": 1, "people": {"Bo": {"role": "sailor"}}},
    }  # fmt: skip
    assert HERON.cut(value) is value


def test_messages_keep_ids_and_shape():
    call = {"name": "roll_dice", "args": {"reason": "silver heron"}, "id": "call_1", "type": "tool_call"}
    asked = AIMessage(
        [{"type": "text", "text": "The silver heron"}],
        id="a",
        tool_calls=[call],
        additional_kwargs={"tool_calls": [{"function": {"arguments": '{"reason": "silver heron"}'}}]},
    )
    told = ToolMessage("silver heron: 7", tool_call_id="call_1", id="b")
    new, answer = HERON.cut([asked, told])
    assert (new.id, new.tool_calls[0]["id"], answer.tool_call_id) == ("a", "call_1", "call_1")
    assert "heron" not in (new.model_dump_json() + answer.model_dump_json()).lower()
    assert asked.tool_calls[0]["args"] == {"reason": "silver heron"}


Pair = namedtuple("Pair", "left right")


class Loose(BaseModel, extra="allow"):
    text: str


def test_what_langgraph_puts_around_values_is_opened():
    cut = HERON.cut([Pair("silver heron", 1), Send("recall", {"x": "silver heron"}), Interrupt("silver heron", id="i")])
    assert cut[0] == Pair(FORGOTTEN, 1)
    assert cut[1].arg == {"x": FORGOTTEN}
    assert cut[2].value == FORGOTTEN
    assert HERON.cut(CharacterNotebook(goal="Find the silver heron")).goal == f"Find the {FORGOTTEN}"
    cut = HERON.cut(Loose(text="silver heron", more="a silver heron"))
    assert (cut.text, cut.more) == (FORGOTTEN, f"a {FORGOTTEN}")


class Form(Notebook):
    nick: str = Field(default="", max_length=20)


@pytest.mark.parametrize(
    "page", [CharacterNotebook(name="elf " * 19, background="elf " * 100, goal="g"), Form(nick="elf elf elf")]
)
def test_a_page_stays_within_the_limits_of_its_fields(page):
    kind = type(page)
    for cut in (Phrase("elf").cut(page.as_json(), kind.channel()), Phrase("elf").cut(page)):
        assert "elf" not in str(cut)
        kind.load(cut if isinstance(cut, dict) else cut.as_json())


@pytest.mark.parametrize("words", ["", "  ", "a", "§§§", "é"])
def test_what_is_too_short_is_refused(words):
    with pytest.raises(ForgettingError, match="too short"):
        Phrase(words)


@pytest.mark.slow
def test_what_is_too_long_is_refused_and_the_rest_is_looked_for_at_once():
    with pytest.raises(ForgettingError, match="at most 500"):
        Phrase("word " * 101)
    for words, text in (
        ("*" * 40 + "silver heron" + "*" * 40, "* " * 20_000 + "silver heron" + "* " * 20_000),
        ("silver heron", "silver" + "\\" * 20_000),
        ("silver heron " * 15, "silver heron " * 3_000),
    ):
        phrase, spent = Phrase(words), process_time()
        assert "silver heron" not in phrase.cut_text(text)
        assert process_time() - spent < 2


@pytest.mark.parametrize("value", [
    {"quest": {}}, {"status": "open quests"}, [HumanMessage("hi")], {"step": 1, "source": "loop", "user": "quest"},
])  # fmt: skip
def test_words_of_the_machinery_are_refused(value):
    with pytest.raises(ForgettingError, match="built on"):
        Phrase("human" if isinstance(value, list) else "quest").cut(value)


def test_a_label_of_core_memory_loses_the_words_and_its_section_stays():
    page = CoreNotebook.of({"Elin": "sings", "trip with Elin-Maria": "in May", "elin b": "plays", "human": "tall"})
    cut = Phrase("Elin").cut({"core": page.as_json()})["core"]
    assert CoreNotebook.load(cut).player_view() == {
        "forgotten": "sings", "trip with forgotten-Maria": "in May", "forgotten b": "plays", "human": "tall",
    }  # fmt: skip
    twins = CoreNotebook.of({"Oda Bell": "sings", "oda-bell": "plays", "x" * 46 + " Oda": "", "x": ""})
    cut = CoreNotebook.load(Phrase("oda bell").cut(twins.as_json()))
    assert {label: cut.sections[label].text for label in cut.labels[:1]} == {"forgotten": "sings"}
    assert cut.sections["forgotten 2"].text == "plays"
    CoreNotebook.load(Phrase("Oda").cut(twins.as_json()))
    assert CoreNotebook.load(Phrase("forgotten").cut(CoreNotebook.of({"forgotten": "x"}).as_json())).labels == [
        "removed"
    ]


@pytest.mark.parametrize("name", ["Max", "Mark", "Story", "Token", "Bo", "Ed", "Tool"])
def test_names_that_are_only_part_of_a_technical_name_are_forgotten(name):
    value = {"max_hp": 3, "marks": 0, "story_time": "", "input_tokens": 2, "tool_calls": [], "text": f"I met {name}."}
    assert Phrase(name).cut(value)["text"] == f"I met {FORGOTTEN}."
    with pytest.raises(ForgettingError, match="part of 'ann bo'"):
        Phrase("Bo").cut({"campaign": "ann bo"})


def test_an_id_holds_a_word_by_chance():
    assert Phrase("dad").cut({"id": "0dad7704-4b6d-40ce-8530-755e0bad3f3c"})
    bee = Phrase("bee")
    bee.check_own({"id": ["1f0a-bee-77c2", "bee:2026.03"]})
    for name in ("the-bee-page", "bee-7"):
        with pytest.raises(ForgettingError, match="is part of"):
            bee.check_own(name)
    with pytest.raises(ForgettingError, match="bytes"):
        HERON.cut({"x": b"silver heron"})


def test_forgetting_the_mark_itself_ends():
    assert Phrase("forgotten").cut_text("what was forgotten") == "what was …"


def test_an_entry_whose_name_says_more_than_the_phrase_stays():
    page = {"facts": {"Oda": "sings", "the limits of Oda": "no spiders", "Bo": "fears Oda", "Oda's limits": "no blood"}}
    cut = Phrase("Oda").cut(page, "quest")
    assert cut == {
        "facts": {
            "the limits of [forgotten]": "no spiders",
            "Bo": "fears [forgotten]",
            "[forgotten]'s limits": "no blood",
        }
    }
    twins = {"facts": {"Oda Bell's limit": "no spiders", "oda bell's limit": "no blood"}}
    assert sorted(Phrase("Oda").cut(twins, "quest")["facts"].values()) == ["no blood", "no spiders"]
    cut_before = {"facts": {"Oda's limits": "no spiders", "[forgotten]'s limits": "no blood"}}
    assert sorted(Phrase("Oda").cut(cut_before, "quest")["facts"].values()) == ["no blood", "no spiders"]


def test_the_fields_that_hold_it_are_named_by_their_paths_once():
    page = {"people": {"Silver Heron": {"role": "ship"}, "Bo": {"saw": ["a silver heron", "silver heron", 3]}}, "n": 1}
    assert HERON.paths(page, "quest") == ["quest.people.Silver Heron", "quest.people.Bo.saw"]
    assert HERON.paths(["silver heron", {"x": "SILVER HERON"}], "summary") == ["summary", "summary.x"]
    assert HERON.paths(7, "n") == []


@pytest.mark.parametrize(
    ("record", "empties"),
    [
        ({"text": "silver heron"}, True),
        ({"text": "Silver heron sails!"}, True),
        ({"text": "The silver heron sails north."}, False),
        ({"text": "Bo sails north to the isle.", "kind": "preference"}, True),
    ],
)
def test_a_record_that_says_nothing_without_it_is_asked_about(record, empties):
    assert HERON.empties(record) is empties


def test_an_item_loses_it_in_its_value_and_where_people_gave_the_key_in_its_key():
    item = Item(value={"text": "a silver heron"}, key="k", namespace=("ann", "facts"), created_at=NOW, updated_at=NOW)
    assert HERON.cut_item(item) == ("k", {"text": f"a {FORGOTTEN}"})
    item.value = {"text": "a carp"}
    assert HERON.cut_item(item) is None
    item.key = "silver heron"
    with pytest.raises(ForgettingError, match="is part of 'silver heron', which the application is built on"):
        HERON.cut_item(item)
    item.namespace = ("ann", "lines")
    assert HERON.cut_item(item) == (FORGOTTEN, {"text": "a carp"})


def test_a_refusal_says_what_is_wrong_and_what_to_do():
    with pytest.raises(
        ForgettingError, match=r"'a' is too short to be forgotten: it is in half of all texts\. Nothing"
    ):
        Phrase("a")
    with pytest.raises(
        ForgettingError, match=r"“w{40}…” is too long to be forgotten at once: 501 characters\. Nothing"
    ):
        Phrase("w" * 501)
    assert Phrase("龍").is_in("青龍が"), "one letter is a word there"
    with pytest.raises(ForgettingError, match=r"“Bo” cannot be forgotten: .*give more of the words around it\. \(If"):
        Phrase("Bo").cut({"campaign": "ann bo"})


def test_a_type_that_cannot_be_read_is_refused_only_if_it_shows_the_words():
    class Odd:
        def __init__(self, says):
            self.says = says

        def __repr__(self):
            return self.says

    assert HERON.cut(odd := Odd("nothing")) is odd
    with pytest.raises(
        ForgettingError, match=r"“Silver Heron” is in a Odd, which cannot be read\. Nothing was changed"
    ):
        HERON.cut(Odd("a silver heron"))


def test_a_cut_text_keeps_to_its_room():
    assert HERON.cut_text("silver heron", 12) == FORGOTTEN
    assert Phrase("elf").cut_text("elf elf", 10) == "… …"
    assert HERON.cut_text("silver heron", 5) == FORGOTTEN, "it is no longer than what stood there"
    assert Phrase("elf").cut_text("elf elf", 40) == f"{FORGOTTEN} {FORGOTTEN}"
    assert Phrase("elf").cut_text("elf elf") == f"{FORGOTTEN} {FORGOTTEN}"


def test_a_long_phrase_is_found_within_words_and_a_short_one_is_not():
    words = "the old lighthouse keeper who never once slept since the Petrel went down"
    assert Phrase(words).is_in(f"x{words}ward")
    assert not Phrase("Petrel went").is_in("xPetrel wentward")
    assert Phrase("“Petrel”!").cut_text("the “Petrel”! went") == f"the {FORGOTTEN} went"


@pytest.mark.parametrize("sign", '"\\[]{}:,')
def test_signs_of_json_around_the_words_are_none_of_them(sign):
    arguments = {"Petrel": ["Petrel", {"Petrel": "Petrel"}]}
    cut = json.loads(Phrase(f"{sign}Petrel{sign}").cut_text(json.dumps(arguments)))
    assert cut == {FORGOTTEN: [FORGOTTEN, {FORGOTTEN: FORGOTTEN}]}
