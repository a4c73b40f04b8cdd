"""What a notebook's class says of itself, and what is refused; merge patches, and the tool schema of a page."""

import copy
import json
from datetime import date
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, computed_field

from questbook import (
    CharacterNotebook,
    CoreNotebook,
    Count,
    Notebook,
    PatchError,
    StateNotebook,
    every,
    every_turn,
    on_demand,
    once,
)
from questbook.graphs.companion.state import CompanionState
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.notebooks import check_declarations, patch_schema
from questbook.notebooks.base import Entry, Update
from questbook.notebooks.errors import DeclarationError, PageFullError
from questbook.notebooks.patch import diff_patch, merge_patch


class Visit(Entry):
    times: Count = 0
    last: str = ""


class StatsNotebook(Notebook):
    """Who came how often."""

    total: Count = 0
    level: int = 0
    words: dict[str, Count] = {}
    visits: dict[str, Visit] = {}
    note: str = ""


class Leaf(Entry):
    name: str = ""
    below: "dict[str, Leaf]" = {}


def refused(page, *others):
    with pytest.raises(DeclarationError) as error:
        check_declarations([page, *others])
    return str(error.value)


def test_a_page_is_due_on_every_nth_turn_and_catches_up_without_losing_the_rhythm():
    third = every(3)
    assert [turn for turn in range(1, 10) if third.due(turn, (turn - 1) // 3 * 3)] == [3, 6, 9]
    assert third.due(4, 0), "turn 3 failed"
    assert not third.due(5, 4)
    assert third.due(6, 4)
    assert [every_turn.due(turn, turn - 1) for turn in (1, 2)] == [True, True]
    assert not every_turn.due(2, 2)
    assert not once.due(5, 0)
    assert not on_demand.due(5, 0)


@pytest.mark.parametrize("turns", [0, -1, 1.5, True, "3"])
def test_every_needs_a_whole_number_of_turns(turns):
    with pytest.raises(DeclarationError, match=r"every\(.*expected a whole number of turns from 1"):
        every(turns)


def test_the_channel_is_the_class_name_unless_it_is_said():
    class SupportTicketNotebook(Notebook):
        pass

    class Plain(Notebook):
        CHANNEL = "page"

    assert [page.channel() for page in (SupportTicketNotebook, Plain)] == ["support_ticket", "page"]


def test_the_pages_of_both_graphs_are_declared_as_their_states_have_them():
    check_declarations([CharacterNotebook, StateNotebook, CoreNotebook])
    assert [page.UPDATE for page in (CharacterNotebook, StateNotebook, CoreNotebook)] == [once, every_turn, on_demand]
    for state in (DungeonState, CompanionState):
        assert {channel: page.channel() for channel, page in state.PAGES.items()} == {c: c for c in state.PAGES}


def test_two_notebooks_of_one_name_are_refused():
    class StatsNotebookOfOthers(Notebook):
        CHANNEL = "stats"

    assert "StatsNotebook and StatsNotebookOfOthers are both 'stats'" in refused(StatsNotebook, StatsNotebookOfOthers)
    assert "StatsNotebook is given twice" in refused(StatsNotebook, StatsNotebook)
    twin = type("StatsNotebook", (Notebook,), {"__module__": __name__, "CHANNEL": "other"})
    assert "two classes are called StatsNotebook" in refused(StatsNotebook, twin)


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({"UPDATE": "sometimes"}, ".UPDATE: got 'sometimes'; expected once, every_turn, every(n) or on_demand."),
        ({"UPDATE": Update("never")}, ".UPDATE: got Update(name='never'"),
        ({"PLACE": "nowhere"}, ".PLACE: got 'nowhere'; expected one of 'before', 'after', 'last'."),
        ({"CHANNEL": "My page"}, ".CHANNEL: got 'My page'; expected small letters"),
        ({"LIMIT": 10, "name": "open, and waiting for Ann"}, ".LIMIT: got 10; the empty page already renders to 33"),
        ({"UPDATE": once}, " is filled once: name in REQUIRED the fields"),
        ({"REQUIRED": ("surname",)}, ".REQUIRED: there is no field 'surname'; there are version, name"),
        ({"CHANGING": ("moods",)}, ".CHANGING: there is no field 'moods'"),
        ({"WORDS": {"moods": "temper"}}, ".WORDS: there is no field 'moods'"),
        (
            {"WORDS": {"name": ["who"]}},
            ".WORDS: got {'name': ['who']}; expected other words by field, such as {'goal':",
        ),
        ({"SECRET": frozenset({"names"})}, ".SECRET: there is no field 'names'; there are version, name"),
        (
            {"SECRET": ("plan",), "__annotations__": {"plan": str, "name": str}, "plan": Field("", alias="plot")},
            ".SECRET: there is no field 'plan'; there are version, plot, name",
        ),
        ({"SECRET": "name"}, ".SECRET: got 'name'; expected names of fields, such as ('goal',)"),
        ({"REQUIRED": 5}, ".REQUIRED: got 5; expected names of fields"),
        (
            {"UPDATE": once, "REQUIRED": ("age",), "__annotations__": {"age": int, "name": str}, "age": 0},
            ".REQUIRED: 'age' is never asked for: the empty page has 0 there already; take an empty default, as in",
        ),
        ({"CHANNEL": 5}, ".CHANNEL: got 5; expected small letters"),
        ({"LIMIT": "100"}, ".LIMIT: got '100'; expected a whole number from 1."),
        ({"VERSION": 0}, ".VERSION: got 0; expected a whole number from 1."),
        ({"VERSION": "2"}, ".VERSION: got '2'; expected a whole number from 1."),
        (
            {"__annotations__": {"name": str, "render": str}, "render": ""},
            ".render: every page has something of this name already",
        ),
        (
            {"__annotations__": {"name": str, "fullness": str}, "fullness": ""},
            ".fullness: every page has something of this name",
        ),
        ({"name": ...}, ".name: a page starts empty, so every field needs a default"),
        ({"__annotations__": {"name": dict[str, Leaf]}, "name": {}}, ": the type of a field contains itself"),
    ],
)
def test_a_wrong_declaration_is_refused_by_name(declared, says):
    fields = {"__module__": __name__, "__annotations__": {"name": str}, "name": "", **declared}
    assert f"TicketNotebook{says}" in refused(type("TicketNotebook", (Notebook,), fields))
    assert "got <class 'dict'>" in refused(dict)


def test_the_tool_tells_what_the_page_is_for():
    told = StatsNotebook.tool()["function"]
    assert told["name"] == "StatsNotebook"
    assert told["description"].startswith("Who came how often. Note what changed.")
    assert "$add" not in str(told)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


def test_the_tool_describes_fields_of_any_type_without_references():
    class MixedNotebook(Notebook):
        colour: Colour | None = None
        visits: list[Visit] = []
        size: int | str = ""
        anything: Any = None
        when: date | None = None

    check_declarations([MixedNotebook])
    schema = json.dumps(MixedNotebook.tool())
    assert "$ref" not in schema
    fields = MixedNotebook.tool()["function"]["parameters"]["properties"]
    assert fields["colour"]["anyOf"][0] == {"type": "string", "enum": ["red", "blue"]}
    assert fields["visits"]["items"]["properties"]["last"] == {"type": "string"}
    assert fields["size"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    page = MixedNotebook().apply({"colour": "red", "visits": [{"last": "noon"}], "when": "2026-05-01"}).page
    assert MixedNotebook.load(json.loads(json.dumps(page.as_json()))) == page
    assert page.render() == 'colour: "red"\nvisits: [{"times": 0, "last": "noon"}]\nwhen: "2026-05-01"'


def test_a_patch_between_pages_adds_to_counts_and_replaces_all_else():
    before = StatsNotebook.load({"total": 3, "level": 2, "words": {"hi": 1}, "visits": {"Ann": {"times": 2}}})
    after = before.apply(
        {"total": 5, "level": 3, "words": {"hi": None, "ho": 4}, "visits": {"Ann": {"times": 3}, "Bo": {"times": 1}}}
    ).page
    patch = after.patch_from(before)
    assert patch == {
        "total": {"$add": 2}, "level": 3, "words": {"hi": None, "ho": {"$add": 4}},
        "visits": {"Ann": {"times": {"$add": 1}}, "Bo": {"times": {"$add": 1}, "last": ""}},
    }  # fmt: skip
    assert before.apply(patch).page == after


def test_what_two_add_to_a_new_entry_at_once_adds_up():
    empty = StatsNotebook()
    one = empty.apply({"visits": {"Ann": {"times": 1}}}).page
    patch = one.patch_from(empty)
    assert empty.apply(patch).page.apply(patch).page.visits["Ann"].times == 2


counts = st.integers(-50, 50)
pages = st.builds(
    lambda total, level, words, visits: StatsNotebook.load(
        {"total": total, "level": level, "words": words, "visits": visits}
    ),
    counts,
    counts,
    st.dictionaries(st.sampled_from("abcd"), counts),
    st.dictionaries(st.sampled_from("abcd"), st.fixed_dictionaries({"times": counts, "last": st.text(max_size=3)})),
)


@given(pages, pages)
def test_the_patch_between_two_pages_leads_from_one_to_the_other(before, after):
    patch = after.patch_from(before)
    assert before.apply(patch).page.as_json() == after.as_json()


def test_only_a_number_can_be_added_to():
    with pytest.raises(PatchError, match="note"):
        StatsNotebook.load({"note": "x"}).apply({"note": {"$add": 1}})
    with pytest.raises(PatchError, match="total"):
        StatsNotebook().apply({"total": {"$add": True}})
    assert StatsNotebook().apply({"words": {"$add": 3}}).page.words == {"$add": 3}, "an entry may be called so"


def test_the_limit_holds_unless_several_writers_share_the_page():
    class ShortNotebook(Notebook):
        LIMIT = 20
        text: str = ""

    with pytest.raises(PageFullError):
        ShortNotebook().apply({"text": "x" * 40})
    over = ShortNotebook().apply({"text": "x" * 40}, bounded=False).page
    assert over.apply({"text": "x" * 30}).page.text == "x" * 30, "one that is over it may be shortened"
    with pytest.raises(PageFullError):
        over.apply({"text": "x" * 41})


def test_fields_that_change_often_come_last_in_the_order_declared():
    class OrderedNotebook(Notebook):
        CHANGING = ("mood", "weather")

        weather: str = ""
        name: str = ""
        mood: str = ""

    page = OrderedNotebook(weather="rain", name="Ann", mood="calm")
    assert page.render().splitlines() == ['name: "Ann"', 'mood: "calm"', 'weather: "rain"']


# RFC 7396, appendix A.
RFC_CASES = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}), ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}), ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}), ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}), ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}), (["a", "b"], ["c", "d"], ["c", "d"]), ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None), ({"a": "foo"}, "bar", "bar"), ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}), ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]  # fmt: skip


@pytest.mark.parametrize(("target", "patch", "expected"), RFC_CASES)
def test_merges_as_rfc_7396_says(target, patch, expected):
    before = copy.deepcopy((target, patch))
    assert merge_patch(target, patch) == expected
    assert (target, patch) == before, "neither argument changes"


leaves = st.one_of(st.integers(), st.text(max_size=5), st.booleans())
objects = st.dictionaries(
    st.text(max_size=3),
    st.recursive(leaves, lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=6),
    max_size=4,
)


@given(objects, objects)
def test_a_diff_leads_from_one_object_to_the_other(before, after):
    assert merge_patch(before, diff_patch(before, after)) == after
    assert diff_patch(after, after) == {}


def nested(levels, kind):
    value = {}
    for _ in range(levels):
        value = [value] if kind is list else {"a": value}
    return value


@pytest.mark.parametrize("kind", [dict, list])
@pytest.mark.parametrize("levels", [101, 600, 20_000])
def test_a_patch_that_is_nested_too_deep_is_refused_like_any_other(levels, kind):
    for patch in (nested(levels, kind), {"condition": nested(levels, kind)}):
        with pytest.raises(PatchError, match=r"CharacterNotebook was left as it is\. .* nested more than 100 levels"):
            CharacterNotebook().apply(patch, by_model=True)


def test_a_patch_that_is_nested_less_deep_is_held_to_its_fields():
    with pytest.raises(PatchError, match="there is no such field"):
        CharacterNotebook().apply({"pockets": nested(90, dict)})


def _walk(schema):
    yield schema
    for part in schema.get("properties", {}).values():
        yield from _walk(part)
    for part in schema.get("anyOf", []):
        yield from _walk(part)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _walk(schema["additionalProperties"])


@pytest.mark.parametrize("page", [CharacterNotebook, StateNotebook, CoreNotebook])
def test_every_field_of_a_page_and_its_entries_is_described_for_studio(page):
    schema = page.model_json_schema()
    for part in (schema, *schema["$defs"].values()):
        assert {name for name, field in part["properties"].items() if "description" not in field} <= {"version"}


@pytest.mark.parametrize("page", [CharacterNotebook, StateNotebook])
def test_the_tool_lets_every_field_be_left_out_and_every_entry_be_null(page):
    schema = patch_schema(page)
    for node in _walk(schema):
        assert "$ref" not in node
        assert "required" not in node
        if entry := node.get("additionalProperties"):
            assert "null" in entry["type"]


def test_entries_of_every_type_may_be_null():
    class PaintNotebook(Notebook):
        hues: dict[str, Colour] = {}
        sizes: dict[str, int | str] = {}

    entries = [field["additionalProperties"] for field in patch_schema(PaintNotebook)["properties"].values()]
    assert [{"type": "null"} in entry["anyOf"] for entry in entries] == [True, True]


def test_the_tool_follows_the_notebook_and_leaves_out_what_code_keeps():
    fields = set(patch_schema(StateNotebook)["properties"])
    assert fields == set(StateNotebook.model_fields) - {"version", "fallen"}
    character = patch_schema(CharacterNotebook)["properties"]
    assert "class" in character
    assert "hit_points" not in character
    condition = patch_schema(StateNotebook)["properties"]["condition"]
    assert set(condition["properties"]) == {"hp", "conditions"}


def test_a_field_whose_name_tells_enough_is_described_to_people_alone():
    offered, shown = patch_schema(StateNotebook)["properties"], StateNotebook.model_json_schema()["properties"]
    assert offered["location"] == {"type": "string"}
    assert shown["location"]["description"] == "Where the character is."
    assert offered["scene"] == {"type": "string", "description": "Right now, in a sentence."}
    level = patch_schema(CharacterNotebook)["properties"]["level"]
    assert level == {"type": "integer", "minimum": 1, "maximum": 20, "description": "1 to 20."}
    assert offered["quests"]["additionalProperties"]["properties"]["status"] == {
        "type": "string",
        "enum": ["open", "done", "failed"],
    }
    assert patch_schema(CharacterNotebook)["properties"]["name"]["maxLength"] == 80


def test_who_adds_to_a_tools_schema_changes_no_others():
    patch_schema(StateNotebook)["properties"]["gold"]["strict"] = True
    assert "strict" not in patch_schema(StateNotebook)["properties"]["gold"]


class Numbered(Notebook):
    """Version 1 had minutes."""

    VERSION = 2
    length: int = 0

    @classmethod
    def upgrade(cls, page):
        return page | {"length": page["length"] * 60}


def test_a_page_is_brought_to_a_new_version_once_and_a_new_page_never():
    check_declarations([Numbered])
    assert Numbered(length=30).length == Numbered.load({"length": 30}).length == 30
    assert Numbered.load({"version": 1, "length": 30}).length == 1800
    assert Numbered.load(Numbered(length=30).as_json()).length == 30
    assert Numbered(length=30).apply({"version": 1}).page.length == 30


class Computed(Notebook):
    """A page."""

    a: int = 0

    @computed_field
    @property
    def double(self) -> int:
        return 2 * self.a


class Excluded(Notebook):
    """A page."""

    a: int = Field(default=0, exclude=True)


class Renamed(Notebook):
    """A page."""

    a: int = Field(default=0, serialization_alias="other")


@pytest.mark.parametrize("page", [Computed, Excluded, Renamed])
def test_a_page_that_does_not_come_back_from_its_json_is_refused(page):
    with pytest.raises(DeclarationError, match="a page does not come back from its JSON"):
        check_declarations([page])


class Health(Entry):
    hp: int = 1
    max_hp: int = Field(default=10, json_schema_extra={"engine": True})


class Aliased(Notebook):
    """A page."""

    paid: int = Field(default=0, alias="amountPaid", json_schema_extra={"engine": True})
    health: Health = Field(default=Health(), alias="state")
    note: str = ""


def test_what_belongs_to_code_belongs_to_it_by_any_name():
    for patch in ({"amountPaid": 500}, {"state": {"max_hp": 99}}):
        with pytest.raises(PatchError, match="code keeps this field"):
            Aliased().apply(patch, by_model=True)
    assert Aliased().apply({"state": {"hp": 3}, "note": "x"}, by_model=True).page.health.hp == 3


def test_what_is_added_to_a_name_in_another_spelling_is_added():
    page = StateNotebook(inventory={"Rope": 1})
    for name in ("rope", "ROPE "):
        page = page.apply({"inventory": {name: {"$add": 2}}}).page
    assert page.inventory == {"Rope": 5}
    page = page.apply({"inventory": {"Lamp": 1, "lamp": 2, " ": 3}}).page
    assert page.inventory == {"Rope": 5, "Lamp": 2}, "two spellings of one patch are one; no name is none"
