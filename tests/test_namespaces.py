"""Names that people choose, as labels of namespaces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from questbook import campaign_namespace, player_namespace
from questbook.memory.timeline.namespaces import escape_label, unescape_label

ODD = [
    "", ".", "..", "../x", "a.b@c.d", "langgraph", "player", "~", "~~", "~2e;", "*", "a/b\\c", "\x00", "é🐉", "\ud800",
]  # fmt: skip
names = st.one_of(st.sampled_from(ODD), st.text(st.characters(exclude_categories=())))


@given(names)
def test_escaping_is_reversible_and_gives_a_valid_label(name):
    label = escape_label(name)
    assert unescape_label(label) == name
    assert label
    assert not set(label) & set("./\\*\x00")
    label.encode()
    InMemoryStore().put((label,), "k", {})


@given(names, names)
def test_different_names_have_different_labels(one, other):
    assert (escape_label(one) == escape_label(other)) == (one == other)


@pytest.mark.parametrize("name", ["Ada", "the-long_night", "Łukasz", "漢字", "two words", "a@b"])
def test_ordinary_names_stay_as_they_are(name):
    assert escape_label(name) == name


@pytest.mark.parametrize("label", ["", "a.b", "~x", "langgraph", "~61;", "~2E;", "~110000;", "~ffffffffffff;"])
def test_labels_that_no_name_escapes_to_are_refused(label):
    with pytest.raises(ValueError, match="not an escaped name"):
        unescape_label(label)


@given(names, names, st.lists(names, max_size=3))
def test_campaigns_and_players_never_meet(user, campaign, rest):
    ours = campaign_namespace(user, campaign, *rest)
    assert len(ours) == 2 + len(rest)
    assert ours[:2] != player_namespace(user)
    InMemoryStore().put(ours, "k", {})
    InMemoryStore().put(player_namespace(user, *rest), "k", {})


def test_shapes():
    assert campaign_namespace("ada", "Nightfall", "turns") == ("ada", "Nightfall", "turns")
    assert player_namespace("ada", "facts") == ("ada", "player", "facts")
