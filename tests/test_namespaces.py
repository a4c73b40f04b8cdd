"""Names that people choose, as labels of namespaces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from questbook import campaign_namespace, player_namespace
from questbook.memory.timeline.namespaces import (
    character_name,
    character_namespace,
    characters_namespace,
    check_namespace,
    escape_label,
    team_namespace,
    unescape_label,
)

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


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("", "~"), ("~", "~7e;"), ("langgraph", "~6c;anggraph"), ("player", "~70;layer"),
        ("characters", "~63;haracters"),
        ("Player", "Player"), ("players", "players"), ("a.b", "a~2e;b"), ("a:b", "a~3a;b"), ("*", "~2a;"),
        ("a\x7fb", "a~7f;b"), ("a\nb", "a~a;b"), ("\ud800", "~d800;"),
    ],
)  # fmt: skip
def test_what_becomes_of_unsafe_characters_and_reserved_names(name, label):
    assert escape_label(name) == label
    assert unescape_label(label) == name


def test_a_text_is_no_namespace():
    with pytest.raises(ValueError, match=r"namespace 'ann': expected a tuple of texts, such as \('ann',\)"):
        check_namespace("ann")
    check_namespace(("ann",))
    check_namespace(())


@pytest.mark.parametrize(
    "spelling",
    ["Ada Lovelace", " ada  lovelace ", "ADA_LOVELACE", "ada\u00a0lovelace", "Ada\tLovelace", "ada__ lovelace"],
)
def test_a_character_is_one_in_any_spelling(spelling):
    assert character_name(spelling) == "ada_lovelace"
    assert character_namespace(spelling, "x", user="ann") == ("ann", "characters", "ada_lovelace", "x")
    assert character_namespace(spelling, user=None) == ("characters", "ada_lovelace")


def test_letters_of_a_characters_name_are_composed_and_folded():
    assert character_name("Zoe\u0301") == character_name("ZOÉ") == "zoé"
    assert character_name("Straße") == "strasse"


def test_teams_and_shared_characters_meet_no_user():
    assert team_namespace("sales", "facts") == ("~teams", "sales", "facts")
    assert team_namespace("a.b") == ("~teams", "a~2e;b")
    assert characters_namespace(None) == ("characters",)
    assert characters_namespace("ann") == ("ann", "characters")
    for user in ("~teams", "characters"):
        assert campaign_namespace(user, "x")[0] not in ("~teams", "characters")
