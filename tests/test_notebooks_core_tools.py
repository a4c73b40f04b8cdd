"""The tools of core memory: what they do, and what they say when a call does not fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from questbook import CoreNotebook
from questbook.notebooks.core_tools import CORE_TOOLS, edit_core
from questbook.notebooks.errors import EditError

PAGE = CoreNotebook.of(
    {"human": {"value": "Name: Ann\nLikes tea\nLikes rain", "limit": 200}, "law": {"read_only": True}}
)


def done(tool, page=PAGE, **args):
    return edit_core(page, f"core_memory_{tool}", {"label": "human", **args})


def refused(tool, page=PAGE, **args):
    with pytest.raises(EditError) as caught:
        edit_core(page, f"core_memory_{tool}", {"label": "human", **args})
    return str(caught.value)


def value(edited):
    return edited.page.sections["human"].value


def test_append_adds_a_line_and_shows_the_section():
    edited = done("append", content="Plays chess")
    assert value(edited) == "Name: Ann\nLikes tea\nLikes rain\nPlays chess"
    assert r"Likes rain\nPlays chess" in edited.text
    assert f"{edited.page.sections['human'].used} of 200" in edited.text
    assert value(done("append", CoreNotebook(), content="First")) == "First"


def test_insert_takes_a_line_and_says_which_there_are():
    assert value(done("insert", content="Born in May", line=1)).splitlines()[1] == "Born in May"
    assert value(done("insert", content="Top", line=0)).startswith("Top\nName")
    assert value(done("insert", content="End")).endswith("\nEnd")
    assert "send 0 to 3, or -1" in refused("insert", content="x", line=4)


def test_replace_and_remove_take_text_that_occurs_once():
    assert value(done("replace", old_content="tea", new_content="coffee")).splitlines()[1] == "Likes coffee"
    assert value(done("remove", content="Likes tea")) == "Name: Ann\nLikes rain"
    assert value(done("remove", content="Likes rain")) == "Name: Ann\nLikes tea"
    assert value(done("remove", content=" Ann")) == "Name:\nLikes tea\nLikes rain"
    assert value(done("remove", CoreNotebook.of({"human": "one"}), content="one")) == ""


def test_text_that_is_absent_is_an_error_that_shows_the_nearest():
    told = refused("replace", old_content="likes TEA", new_content="x")
    assert 'Line 2 has it in other case or spacing: "Likes tea"' in told
    assert 'nearest is line 1: "Name: Ann"' in refused("remove", content="Name: Anne!")
    assert "Nothing was changed" in told
    assert r"Name: Ann\nLikes tea" in told, "the current text"
    assert "human, law" in told, "the labels"


def test_text_that_occurs_several_times_is_an_error_that_shows_where():
    told = refused("replace", old_content="Likes", new_content="Loves")
    assert "occurs 2 times" in told
    assert 'line 2: "Likes tea"' in told
    assert 'line 3: "Likes rain"' in told
    assert "3 times" in refused("remove", CoreNotebook.of({"human": "aaaa"}), content="aa"), "overlaps count"


def test_pasted_line_numbers_are_refused_by_name():
    assert "line numbers are no part" in refused("replace", old_content="2: Likes tea", new_content="x")


def test_rethink_rewrites_the_whole_section():
    assert value(done("rethink", new_content="Ann; tea, rain.")) == "Ann; tea, rain."
    assert value(done("rethink", new_content="")) == ""


def test_every_refusal_leaves_the_page_and_tells_what_the_call_takes():
    before = PAGE.as_json()
    assert "It takes label, content" in refused("append")
    assert "colour" in refused("append", content="x", colour="red")
    assert "got 7" in refused("append", content=7)
    assert "blank" in refused("append", content="  ")
    assert "says this already" in refused("rethink", new_content=PAGE.sections["human"].value)
    assert "by at least" in refused("append", content="x" * 300)
    assert "those of core memory are" in refused("forget_all", content="x")
    assert "Did you mean 'human'?" in refused("append", label="Humans", content="x")
    assert "read-only" in refused("rethink", label="law", new_content="x")
    assert PAGE.as_json() == before


def test_schemas_name_every_argument_and_what_is_required():
    tools = {tool["function"]["name"]: tool["function"] for tool in CORE_TOOLS}
    assert set(tools) == {f"core_memory_{verb}" for verb in ("append", "insert", "replace", "remove", "rethink")}
    assert tools["core_memory_replace"]["parameters"]["required"] == ["label", "old_content", "new_content"]
    assert "line" not in tools["core_memory_insert"]["parameters"]["required"]
    for tool in tools.values():
        assert tool["description"]
        assert all(field["description"] and field["type"] for field in tool["parameters"]["properties"].values())


@given(st.text(alphabet="ab\n", max_size=12), st.text(alphabet="ab\n", min_size=1, max_size=3), st.text(max_size=5))
def test_replace_changes_exactly_the_one_place_or_nothing(text, old, new):
    page = CoreNotebook.of({"human": text})
    places = [at for at in range(len(text)) if text.startswith(old, at)]
    if len(places) != 1 or old == CoreNotebook.of({"human": new}).sections["human"].value:
        assert refused("replace", page, old_content=old, new_content=new)
        return
    [at] = places
    clean = CoreNotebook.of({"human": new}).sections["human"].value
    assert value(done("replace", page, old_content=old, new_content=new)) == text[:at] + clean + text[at + len(old) :]
