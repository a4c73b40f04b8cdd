"""Merge patches and the tool schema derived from a page."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from questbook import CharacterNotebook, PatchError, StateNotebook
from questbook.notebooks import patch_schema
from questbook.notebooks.patch import diff_patch, merge_patch

# RFC 7396, appendix A.
RFC_CASES = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


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


@pytest.mark.parametrize("page", [CharacterNotebook, StateNotebook])
def test_the_tool_lets_every_field_be_left_out_or_null(page):
    schema = patch_schema(page)
    for node in _walk(schema):
        assert "$ref" not in node
        assert "required" not in node
        for field in node.get("properties", {}).values():
            assert {"type": "null"} in field["anyOf"]


def test_the_tool_follows_the_notebook_and_leaves_out_what_code_keeps():
    fields = set(patch_schema(StateNotebook)["properties"])
    assert fields == set(StateNotebook.model_fields) - {"version", "fallen"}
    character = patch_schema(CharacterNotebook)["properties"]
    assert "class" in character
    assert "hit_points" not in character
    condition = patch_schema(StateNotebook)["properties"]["condition"]["anyOf"][0]
    assert set(condition["properties"]) == {"hp", "conditions"}
